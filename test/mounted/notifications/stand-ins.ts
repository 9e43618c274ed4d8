/** Stand-ins for an SMS provider and a mail server, which keep what they receive. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

interface ReceivedRequest {
  readonly method: string
  readonly url: string
  readonly fields: Readonly<Record<string, string>>
  readonly body: string
}

export interface Provider {
  readonly url: string
  readonly received: readonly ReceivedRequest[]
  /** Statuses of the next responses; 202 after them. */
  readonly statuses: number[]
  close(): void
}

export async function startProvider(): Promise<Provider> {
  const received: ReceivedRequest[] = []
  const statuses: number[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const piece of request.setEncoding('utf8')) body += piece
    const fields = request.headers as Readonly<Record<string, string>>
    received.push({ method: request.method!, url: request.url!, fields, body })
    response.writeHead(statuses.shift() ?? 202).end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const close = (): void => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${port}/send`, received, statuses, close }
}

interface ReceivedMail {
  readonly from: string
  readonly to: readonly string[]
  readonly user: string
  readonly text: string
}

export interface MailServer {
  readonly port: number
  readonly received: readonly ReceivedMail[]
  close(): void
}

/** Takes the account `ann` with the password `mail-secret`. */
export async function startMailServer(): Promise<MailServer> {
  const received: ReceivedMail[] = []
  const server = new SMTPServer({
    ...{ authOptional: true, allowInsecureAuth: true, closeTimeout: 1, disabledCommands: ['STARTTLS'], logger: false },
    onAuth: ({ username = '', password }, _, done) => {
      if (username === 'ann' && password === 'mail-secret') done(null, { user: username })
      else done(new Error('wrong account'))
    },
    onData: async (stream, session, done) => {
      let text = ''
      for await (const piece of stream) text += String(piece)
      const { mailFrom, rcptTo } = session.envelope
      const from = mailFrom === false ? '' : mailFrom.address
      received.push({ from, to: rcptTo.map(({ address }) => address), user: String(session.user ?? ''), text })
      done()
    },
  })
  server.on('error', () => {})
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.server.address() as AddressInfo
  return { port, received, close: () => server.close() }
}
