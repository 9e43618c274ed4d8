/**
 * Sends messages to HTTP providers: one request per attempt, over a bounded pool per origin and proxy. The status of
 * the response decides; its body is drained and thrown away, because a provider may repeat credentials in it.
 */
import type { Socket } from 'node:net'
import { connect as connectTls, type SecureContext } from 'node:tls'
import { LRUCache } from 'lru-cache'
import type { Pool } from 'undici'
import { growingTo } from '../runtime/lru-options.ts'
import { type AddressGuard, AddressRefused } from './address-guard.ts'
import type { AttemptResult, MessageSender, SenderOptions } from './attempt.ts'
import { openTunnel, ProxyRefused } from './proxy-tunnel.ts'
import { retryAfterMs } from './retry-after.ts'
import { trustOf } from './trust.ts'

export interface HttpMessage {
  readonly url: string
  readonly method: 'GET' | 'POST' | 'PUT'
  /** Sent as they are, before the sender's own. */
  readonly fields: readonly (readonly [name: string, value: string])[]
  /** Not sent where `fields` has a Content-Type, or the method is GET. */
  readonly contentType: string
  /** Not sent with GET. */
  readonly body: string
  /** Sent as Basic (RFC 7617) where `fields` has no Authorization. */
  readonly credentials: { readonly username: string; readonly password: string } | null
  readonly proxy: { readonly host: string; readonly port: number } | null
  /** The same for every attempt, so that the provider can find duplicates. */
  readonly idempotencyKey: string
}

interface HttpSenderLimits {
  readonly connectMs: number
  /** From the request to the head of the response. */
  readonly headMs: number
  /** Between two parts of the response's body. */
  readonly bodyMs: number
  /** One whole attempt, including its wait for a connection. */
  readonly attemptMs: number
  readonly idleMs: number
}

const LIMITS: HttpSenderLimits = {
  connectMs: 10_000,
  headMs: 30_000,
  bodyMs: 10_000,
  attemptMs: 45_000,
  idleMs: 30_000,
}
const CONNECTIONS_MAX = 100
/** Requests that wait for a connection of one origin. */
const WAITING_MAX = 2000
/** Pools of origins; the one that was not used for the longest time is closed. */
const POOLS_MAX = 256
const HEAD_BYTES_MAX = 16_384
/** The rest of a longer response body is not read: its connection is closed. */
const BODY_BYTES_MAX = 65_536
/** RFC 9110 5.6.2 and 5.5; a value of a field is ASCII here, as providers document theirs. */
const FIELD_NAME = /^[!#$%&'*+.^_`|~\w-]+$/
const FIELD_VALUE = /^[\t\x20-\x7e]*$/
/** Fields of framing and of the connection, which the sender writes, and the key, which makes repetitions harmless. */
const OWN_FIELDS = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'idempotency-key',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
/** Statuses below 500 after which a later attempt may succeed (RFC 9110 15.5.9, RFC 8470 5.2, RFC 6585 4). */
const RETRIED = new Set([408, 425, 429])

export class HttpSender implements MessageSender<HttpMessage> {
  readonly #guard: AddressGuard
  readonly #connectionsMax: number
  readonly #trust: SecureContext | undefined
  readonly #limits: HttpSenderLimits
  /** By origin and proxy. A pool ends its requests before it closes. */
  readonly #pools = new LRUCache<string, Pool>({
    ...growingTo(POOLS_MAX),
    dispose: pool => void pool.close().catch(() => {}),
  })

  constructor({ guard, connectionsMax = CONNECTIONS_MAX, ca = [], limits = {} }: SenderOptions<HttpSenderLimits>) {
    this.#guard = guard
    this.#connectionsMax = connectionsMax
    this.#trust = trustOf(ca)
    this.#limits = { ...LIMITS, ...limits }
  }

  async send(message: HttpMessage, signal: AbortSignal): Promise<AttemptResult> {
    const url = URL.parse(message.url)
    const refusal = url === null ? 'the address of the provider is not a URL' : refusalOf(url, message)
    if (url === null || refusal !== '') return { kind: 'failed', cause: refusal }
    const timeout = AbortSignal.timeout(this.#limits.attemptMs)
    try {
      signal.throwIfAborted()
      return await this.#exchange(url, message, AbortSignal.any([signal, timeout]))
    } catch (error) {
      if (signal.aborted) return { kind: 'retry', cause: 'the attempt was interrupted', afterMs: null }
      if (timeout.aborted) return retry(`no response within ${this.#limits.attemptMs} ms`)
      return resultOfError(error as NodeJS.ErrnoException)
    }
  }

  close(): void {
    for (const pool of this.#pools.values()) pool.destroy().catch(() => {})
    this.#pools.clear()
  }

  async #exchange(url: URL, message: HttpMessage, signal: AbortSignal): Promise<AttemptResult> {
    const { method, body, proxy } = message
    // The proxy resolves the name again. A name that only the proxy knows is left to the proxy.
    if (proxy !== null) await this.#guard.resolve(url.hostname).catch(rethrowRefusal)
    const pool = await this.#poolFor(url, proxy)
    if ((pool.stats.queued ?? 0) >= WAITING_MAX) return retry('too many requests wait for this provider')
    const isAbsolute = proxy !== null && url.protocol === 'http:'
    const response = await pool.request({
      path: `${isAbsolute ? url.origin : ''}${url.pathname}${url.search}`,
      method,
      headers: requestFields(url, message).flat(),
      body: method === 'GET' ? null : body,
      signal,
    })
    // The provider has decided: a body that does not end changes nothing.
    await response.body.dump({ limit: BODY_BYTES_MAX }).catch(() => {})
    return resultOf(response.statusCode, String(response.headers['retry-after'] ?? ''))
  }

  /** Loads undici with the first message. */
  async #poolFor(url: URL, proxy: HttpMessage['proxy']): Promise<Pool> {
    const key = JSON.stringify([url.origin, proxy])
    const known = this.#pools.get(key)
    if (known !== undefined) return known
    const { Pool: Opened } = await import('undici')
    const { connectMs, headMs, bodyMs, idleMs } = this.#limits
    const pool = new Opened(proxy !== null && url.protocol === 'http:' ? originOf(proxy) : url.origin, {
      connections: this.#connectionsMax,
      pipelining: 1,
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: idleMs,
      headersTimeout: headMs,
      bodyTimeout: bodyMs,
      maxHeaderSize: HEAD_BYTES_MAX,
      connect: (_, done) => {
        this.#connect(url, proxy, connectMs).then(
          socket => done(null, socket),
          (error: Error) => done(error, null),
        )
      },
    })
    const opened = this.#pools.get(key)
    if (opened !== undefined) return opened
    this.#pools.set(key, pool)
    return pool
  }

  async #connect(url: URL, proxy: HttpMessage['proxy'], timeoutMs: number): Promise<Socket> {
    const isSecured = url.protocol === 'https:'
    const port = Number(url.port || (isSecured ? 443 : 80))
    const socket = await this.#guard.connect(proxy?.host ?? url.hostname, proxy?.port ?? port, timeoutMs)
    if (!isSecured) return socket
    // Destroys the socket in each phase that takes too long, whatever bytes come.
    const timer = setTimeout(() => socket.destroy(new Error(`no TLS connection within ${timeoutMs} ms`)), timeoutMs)
    try {
      if (proxy !== null) await openTunnel(socket, `${url.hostname}:${port}`)
      return await this.#secure(socket, url.hostname.replace(/^\[(.*)\]$/, '$1'))
    } catch (error) {
      socket.destroy()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  async #secure(socket: Socket, host: string): Promise<Socket> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const secured = connectTls({
      socket,
      host,
      ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
      ALPNProtocols: ['http/1.1'],
      secureContext: this.#trust,
    })
    const closed = (): void => reject(new Error('the connection is closed during the TLS handshake'))
    secured.once('secureConnect', resolve).once('close', closed).on('error', reject)
    await promise
    secured.off('close', closed)
    return secured
  }
}

/** Why the message can never be sent; '' if it can. Names of fields are shown, values are not. */
function refusalOf({ protocol, username, password }: URL, { fields, credentials }: HttpMessage): string {
  if (protocol !== 'http:' && protocol !== 'https:') return 'the address of the provider is neither http nor https'
  if (username !== '' || password !== '') {
    return 'the address of the provider contains credentials: set http.username and http.password'
  }
  if (credentials?.username.includes(':') === true) return 'http.username contains a colon (RFC 7617 2)'
  for (const [name, value] of fields) {
    if (!FIELD_NAME.test(name)) return 'http.headers has a name that is no field name'
    if (OWN_FIELDS.has(name.toLowerCase())) return `http.headers cannot set ${name}`
    if (!FIELD_VALUE.test(value)) return `http.headers: the value of ${name} has characters beyond printable ASCII`
  }
  return ''
}

/** The fields of the request but those of its framing. */
export function requestFields(
  url: URL,
  { fields, method, contentType, credentials, idempotencyKey }: HttpMessage,
): readonly [name: string, value: string][] {
  const given = new Set(fields.map(([name]) => name.toLowerCase()))
  const all: [string, string][] = [
    ['Host', url.host],
    ...fields.map(([name, value]): [string, string] => [name, value]),
  ]
  const addMissing = (name: string, value: string): void => {
    if (!given.has(name.toLowerCase())) all.push([name, value])
  }
  if (method !== 'GET') addMissing('Content-Type', contentType)
  if (credentials !== null) {
    const { username, password } = credentials
    addMissing('Authorization', `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`)
  }
  addMissing('User-Agent', 'sluice')
  addMissing('Accept', '*/*')
  all.push(['Idempotency-Key', idempotencyKey])
  return all
}

function resultOf(status: number, retryAfter: string): AttemptResult {
  if (status >= 200 && status < 300) return { kind: 'delivered', detail: `HTTP ${status}` }
  if (status >= 500 || RETRIED.has(status)) {
    return { kind: 'retry', cause: `the provider responds with HTTP ${status}`, afterMs: retryAfterMs(retryAfter) }
  }
  const isRedirect = status >= 300 && status < 400
  const cause = `the provider responds with HTTP ${status}${isRedirect ? ', a redirect, which is not followed' : ''}`
  return { kind: 'failed', cause }
}

function resultOfError(error: NodeJS.ErrnoException): AttemptResult {
  if (error instanceof AddressRefused) return { kind: 'failed', cause: error.message }
  if (error instanceof ProxyRefused) {
    const { status, message } = error
    return status >= 500 || RETRIED.has(status) ? retry(message) : { kind: 'failed', cause: message }
  }
  // Node reports one error per address that it tried.
  const { code, message } = error instanceof AggregateError ? (error.errors[0] as NodeJS.ErrnoException) : error
  // A request that the client refuses to write is the same at the next attempt.
  if (code === 'UND_ERR_INVALID_ARG') return { kind: 'failed', cause: `the request cannot be written: ${message}` }
  return retry(message === '' ? String(code) : message)
}

function retry(cause: string): AttemptResult {
  return { kind: 'retry', cause, afterMs: null }
}

function rethrowRefusal(error: Error): void {
  if (error instanceof AddressRefused) throw error
}

function originOf({ host, port }: NonNullable<HttpMessage['proxy']>): string {
  return `http://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${port}`
}
