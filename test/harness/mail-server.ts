/** A real mail server (RFC 5321) that keeps what it takes, and can refuse, delay and break off. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from 'smtp-server'
import { SERVER } from './certificates.ts'

interface ReceivedMail {
  readonly from: string
  readonly to: readonly string[]
  /** Head and body as they came, with dots unstuffed. */
  readonly raw: string
  readonly isSecured: boolean
  /** '' without a login. */
  readonly user: string
}

/** Refuses with a reply; nothing is refused where it returns ''. */
type Decide = (session: SMTPServerSession) => string

export class MailServer {
  readonly mails: ReceivedMail[] = []
  /** Names and passwords of all logins, accepted or refused. */
  readonly logins: string[] = []
  /** Connections so far. */
  connections = 0
  /** Called with each mail that is complete, before the reply. The reply waits for the promise. */
  onMail: (mail: ReceivedMail, connection: Socket) => Promise<void> | void = () => {}
  /** Replies to RCPT, such as '450 4.2.0 later'. */
  refusal: Decide = () => ''
  readonly #server: SMTPServer
  #waiting: (() => void)[] = []

  private constructor(server: SMTPServer) {
    this.#server = server
  }

  /** Takes the login `user` with `password`, and mail without a login unless `options` asks for one. */
  static async listen(options: SMTPServerOptions = {}, port = 0): Promise<MailServer> {
    let opened: MailServer
    const server = new SMTPServer({
      authOptional: true,
      cert: SERVER.cert,
      key: SERVER.key,
      disableReverseLookup: true,
      closeTimeout: 1,
      onAuth: ({ username = '', password }, _, done) => {
        opened.logins.push(`${username}:${password}`)
        if (username === 'user' && password === 'password') done(null, { user: username })
        else done(Object.assign(new Error('5.7.8 authentication failed'), { responseCode: 535 }))
      },
      onRcptTo: (_, session, done) => done(errorOf(opened.refusal(session))),
      onData: (stream, session, done) => {
        const parts: Buffer[] = []
        stream.on('data', (part: Buffer) => parts.push(part))
        stream.on('end', () => {
          opened.#take(mailOf(session, Buffer.concat(parts)), session).then(
            () => done(null, '2.0.0 queued'),
            (error: Error) => done(error),
          )
        })
      },
      ...options,
    })
    opened = new MailServer(server)
    server.on('error', () => {})
    server.on('connect', () => opened.connections++)
    server.listen(port, '127.0.0.1')
    await once(server.server, 'listening')
    return opened
  }

  get port(): number {
    return (this.#server.server.address() as { port: number }).port
  }

  /** Resolves when `count` mails have come. */
  async received(count: number): Promise<readonly ReceivedMail[]> {
    while (this.mails.length < count) await new Promise<void>(resolve => this.#waiting.push(resolve))
    return this.mails
  }

  close(): Promise<void> {
    return new Promise(resolve => this.#server.close(resolve))
  }

  async #take(mail: ReceivedMail, session: SMTPServerSession): Promise<void> {
    const connection = [...this.#server.connections].find(({ session: of }) => of === session)
    await this.onMail(mail, connection!._socket as Socket)
    this.mails.push(mail)
    for (const wake of this.#waiting.splice(0)) wake()
  }
}

/** Value of a field, unfolded and with encoded words (RFC 2047) decoded; '' for none. */
export function fieldOf({ raw }: ReceivedMail, name: string): string {
  const head = raw.slice(0, raw.indexOf('\r\n\r\n') + 2)
  const value = new RegExp(`^${name}: ((?:.*)(?:\\r\\n[ \\t].*)*)\\r\\n`, 'im').exec(head)?.[1] ?? ''
  const words = value.replace(/\r\n([ \t])/g, '$1').replace(/(\?=)[ \t]+(=\?)/g, '$1$2')
  const bytes = words.replace(/=\?UTF-8\?([QB])\?([^?]*)\?=/gi, (_, kind: string, text: string) =>
    kind.toUpperCase() === 'B' ? Buffer.from(text, 'base64').toString('latin1') : quoted(text.replaceAll('_', ' ')),
  )
  return Buffer.from(bytes, 'latin1').toString()
}

/** The body, decoded (RFC 2045 6). */
export function bodyOf(mail: ReceivedMail): string {
  const body = mail.raw.slice(mail.raw.indexOf('\r\n\r\n') + 4)
  const encoding = fieldOf(mail, 'Content-Transfer-Encoding').toLowerCase()
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString()
  return encoding === 'quoted-printable' ? Buffer.from(quoted(body.replace(/=\r\n/g, '')), 'latin1').toString() : body
}

function quoted(text: string): string {
  return text.replace(/=([0-9A-F]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

function mailOf({ envelope, secure, user }: SMTPServerSession, bytes: Buffer): ReceivedMail {
  const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address
  const to = envelope.rcptTo.map(({ address }) => address)
  return { from, to, raw: bytes.toString('latin1'), isSecured: secure, user: String(user ?? '') }
}

function errorOf(reply: string): Error | null {
  return reply === '' ? null : Object.assign(new Error(reply.slice(4)), { responseCode: Number(reply.slice(0, 3)) })
}
