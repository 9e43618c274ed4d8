/**
 * Sends messages to mail servers (RFC 5321) over pooled connections per server and account. The reply of the server
 * decides: a 4xx or a lost connection is tried again, which may deliver a message twice, with one Message-ID.
 */
import { createHash } from 'node:crypto'
import type { SecureContext } from 'node:tls'
import { domainToASCII } from 'node:url'
import { LRUCache } from 'lru-cache'
import type { createTransport, SMTPPoolOptions } from 'nodemailer'
import { growingTo } from '../runtime/lru-options.ts'
import { type AddressGuard, AddressRefused } from './address-guard.ts'
import type { AttemptResult, MessageSender, SenderOptions } from './attempt.ts'
import { trustOf } from './trust.ts'

export interface MailServer {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  /** `offered`: TLS where the server has it, and always before a login. */
  readonly startTls: 'required' | 'offered' | 'off'
  /** TLS from the first byte, as on port 465 (RFC 8314 3.3). */
  readonly implicitTls: boolean
  readonly isAuthenticated: boolean
}

export interface MailMessage {
  readonly server: MailServer
  /** One mailbox, as are `replyTo` and `to`: `a@example.com` or `Name <a@example.com>`. */
  readonly from: string
  /** '' for none. */
  readonly replyTo: string
  readonly to: string
  /** Control characters become spaces. */
  readonly subject: string
  readonly type: 'text' | 'html'
  readonly body: string
  /** Plain text below the body; '' for none. */
  readonly signature: string
  /** `<id@domain>`, the same for every attempt, so that receivers can find duplicates. */
  readonly messageId: string
}

interface SmtpSenderLimits {
  readonly connectMs: number
  readonly greetingMs: number
  /** Between two replies of the server, or parts of one. */
  readonly silenceMs: number
  /** One whole attempt, including its wait for a connection. */
  readonly attemptMs: number
  readonly idleMs: number
  /** Without a further login after the server has refused one: many would lock the account. */
  readonly loginPauseMs: number
}

interface PoolOptions {
  readonly guard: AddressGuard
  readonly connectionsMax: number
  readonly trust: SecureContext | undefined
}

type Transport = ReturnType<typeof createPool>
/** Error of the mail client with the members that it adds. */
type SmtpError = Error & { readonly code?: string; readonly responseCode?: number; readonly response?: string }
interface Mailbox {
  readonly name: string
  readonly address: string
}

const LIMITS: SmtpSenderLimits = {
  connectMs: 10_000,
  greetingMs: 15_000,
  silenceMs: 30_000,
  attemptMs: 45_000,
  idleMs: 30_000,
  loginPauseMs: 60_000,
}
const CONNECTIONS_MAX = 5
/** A connection is replaced after so many messages. */
const MESSAGES_MAX = 100
/** Pools of servers; the one that was not used for the longest time is closed. */
const POOLS_MAX = 256
const REPLY_BYTES_MAX = 16_384
const CAUSE_LENGTH_MAX = 300
const RECIPIENT = '(recipient)'
/** RFC 4954 6: the server wants another login, a stronger one, or TLS first. */
const LOGIN_REPLIES = new Set([530, 534, 535, 538])
/** Errors of the mail client about the message itself. */
const MESSAGE_ERRORS = new Set(['EENVELOPE', 'EMESSAGE', 'EMAXRECIPIENTS'])

const MAILBOX = /^(?:(?<name>[^<>]*)<(?<bracketed>[^<>]+)>|(?<bare>[^<>]+))$/
/** RFC 5321 4.1.2 without quoted local parts and address literals, with characters of RFC 6531. */
const ADDRESS = /^(?<local>[^\s@()<>[\]\\,;:"\p{Cc}\p{Zl}\p{Zp}]{1,64})@(?<domain>[^\s@()<>[\]\\,;:"\p{Cc}]{1,255})$/u
const MESSAGE_ID = /^<[\w.+=-]{1,200}@[\w.-]{1,200}>$/
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]+/gu

export class SmtpSender implements MessageSender<MailMessage> {
  readonly #options: PoolOptions
  readonly #limits: SmtpSenderLimits
  /** By hash of server and account. A pool ends its messages before it closes. */
  readonly #pools = new LRUCache<string, Transport>({ ...growingTo(POOLS_MAX), dispose: pool => pool.close() })
  /** Ends of the pauses after refused logins, by the key of the pool. */
  readonly #pausedUntilMs = new LRUCache<string, number>(growingTo(POOLS_MAX))

  constructor({ guard, connectionsMax = CONNECTIONS_MAX, ca = [], limits = {} }: SenderOptions<SmtpSenderLimits>) {
    this.#options = { guard, connectionsMax, trust: trustOf(ca) }
    this.#limits = { ...LIMITS, ...limits }
  }

  async send(message: MailMessage, signal: AbortSignal): Promise<AttemptResult> {
    const { from, to, replyTo } = mailboxesOf(message)
    if (from === null || to === null || replyTo === null) return { kind: 'failed', cause: wrongAddress(message) }
    if (!MESSAGE_ID.test(message.messageId)) return { kind: 'failed', cause: 'the Message-ID is not valid' }
    if (signal.aborted) return INTERRUPTED
    const key = keyOf(message.server)
    const waitMs = (this.#pausedUntilMs.get(key) ?? 0) - performance.now()
    if (waitMs > 0) return refusedLogin('has refused the login, and is asked again later', waitMs)
    const timeout = AbortSignal.timeout(this.#limits.attemptMs)
    try {
      const pool = await this.#poolFor(key, message.server)
      const { response } = await pool.sendMail({
        from,
        to,
        ...(replyTo !== undefined && { replyTo }),
        subject: message.subject.replace(CONTROL, ' '),
        ...contentOf(message),
        messageId: message.messageId,
        // RFC 3834 5: no holiday notices.
        headers: { 'Auto-Submitted': 'auto-generated' },
        xMailer: false,
        signal: AbortSignal.any([signal, timeout]),
      })
      return { kind: 'delivered', detail: shown(response, to.address) }
    } catch (error) {
      if (signal.aborted) return INTERRUPTED
      if (timeout.aborted) return retry(`the mail server does not take the message within ${this.#limits.attemptMs} ms`)
      return this.#resultOf(error as SmtpError, key, to.address)
    }
  }

  close(): void {
    for (const pool of this.#pools.values()) pool.close({ force: true })
    this.#pools.clear()
  }

  #resultOf(error: SmtpError, key: string, recipient: string): AttemptResult {
    const { code = '', responseCode = 0 } = error
    if (error instanceof AddressRefused) return { kind: 'failed', cause: error.message }
    if (LOGIN_REPLIES.has(responseCode)) {
      const { loginPauseMs } = this.#limits
      this.#pausedUntilMs.set(key, performance.now() + loginPauseMs)
      return refusedLogin(`refuses the login (${responseCode})`, loginPauseMs)
    }
    const cause = shown(error.message === '' ? code : error.message, recipient)
    // A reply to the greeting, to EHLO or to STARTTLS is about the server, and 503 about the order of commands.
    const isFinal = MESSAGE_ERRORS.has(code) && (responseCode === 0 || responseCode >= 500) && responseCode !== 503
    return isFinal ? { kind: 'failed', cause } : retry(cause)
  }

  /** Loads nodemailer with the first message. */
  async #poolFor(key: string, server: MailServer): Promise<Transport> {
    const { createTransport: create } = await import('nodemailer')
    const known = this.#pools.get(key)
    if (known !== undefined) return known
    const pool = createPool(create, server, this.#options, this.#limits)
    this.#pools.set(key, pool)
    return pool
  }
}

function createPool(
  create: typeof createTransport,
  { host, port, user, password, startTls, implicitTls, isAuthenticated }: MailServer,
  { guard, connectionsMax, trust }: PoolOptions,
  { connectMs, greetingMs, silenceMs, idleMs }: SmtpSenderLimits,
) {
  const options: SMTPPoolOptions & { readonly pool: true } = {
    pool: true,
    host,
    port,
    secure: implicitTls,
    requireTLS: startTls === 'required' || (startTls === 'offered' && isAuthenticated),
    ignoreTLS: startTls === 'off',
    ...(isAuthenticated && { auth: { user, pass: password } }),
    ...(trust !== undefined && { tls: { secureContext: trust } }),
    getSocket: (_, done) => {
      guard.connect(host, port, connectMs).then(
        connection => done(null, { connection }),
        (error: Error) => done(error),
      )
    },
    maxConnections: connectionsMax,
    maxMessages: MESSAGES_MAX,
    // The outbox decides about further attempts.
    maxRequeues: 0,
    maxResponseSize: REPLY_BYTES_MAX,
    connectionTimeout: connectMs,
    greetingTimeout: greetingMs,
    socketTimeout: silenceMs,
    idleTimeout: idleMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  }
  return create(options)
}

const INTERRUPTED: AttemptResult = { kind: 'retry', cause: 'the attempt was interrupted', afterMs: null }

function retry(cause: string): AttemptResult {
  return { kind: 'retry', cause, afterMs: null }
}

function refusedLogin(what: string, afterMs: number): AttemptResult {
  return { kind: 'retry', cause: `the mail server ${what}: check user, password and TLS of the sender`, afterMs }
}

/** A hash, because passwords do not belong into the keys of a map that a heap snapshot lists. */
function keyOf(server: MailServer): string {
  return createHash('sha256').update(JSON.stringify(server)).digest('base64')
}

/** Null for a text that is not exactly one mailbox. */
export function readMailbox(text: string): Mailbox | null {
  const { name = '', bracketed, bare = '' } = MAILBOX.exec(text.trim())?.groups ?? {}
  const { local, domain } = ADDRESS.exec((bracketed ?? bare).trim())?.groups ?? {}
  if (local === undefined || domain === undefined || name.search(CONTROL) >= 0) return null
  const ascii = domainToASCII(domain)
  // No address and no number: `@127.1` becomes 127.0.0.1.
  if (ascii === '' || /(?:^|\.)[\d.]+$/.test(ascii)) return null
  return { name: name.trim().replace(/^"(.*)"$/, '$1'), address: `${local}@${domain}` }
}

/** Null: not one mailbox; `replyTo` is undefined where there is none. */
function mailboxesOf({ from, to, replyTo }: MailMessage) {
  return { from: readMailbox(from), to: readMailbox(to), replyTo: replyTo === '' ? undefined : readMailbox(replyTo) }
}

function wrongAddress(message: MailMessage): string {
  const wrong = Object.entries(mailboxesOf(message)).filter(([, mailbox]) => mailbox === null)
  return `not one mailbox: ${wrong.map(([field]) => field).join(', ')}`
}

function contentOf({ type, body, signature }: MailMessage): { readonly text: string } | { readonly html: string } {
  const lines = (text: string): string => text.replaceAll(/\r\n?/g, '\n')
  if (type === 'html') {
    const below = signature === '' ? '' : `\n<p>-- <br>\n${escapeHtml(lines(signature)).replaceAll('\n', '<br>\n')}</p>`
    return { html: `${lines(body)}${below}` }
  }
  return { text: `${lines(body)}${signature === '' ? '' : `\n\n-- \n${lines(signature)}`}` }
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** A reply of the server, on one line. It may repeat the recipient, whom logs and stored causes do not name. */
function shown(text: string, recipient: string): string {
  const address = new RegExp(RegExp.escape(recipient), 'gi')
  return text.replace(CONTROL, ' ').replace(address, RECIPIENT).slice(0, CAUSE_LENGTH_MAX)
}
