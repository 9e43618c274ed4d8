/** An HTTP server for whatever answers the test wants of an issuer, a key manager, a token endpoint. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

interface Received {
  readonly path: string
  readonly authorization: string
  readonly body: string
}

type Answer = (response: ServerResponse, request: IncomingMessage) => void

export class MisbehavingServer {
  answer: Answer = response => response.end()
  readonly received: Received[] = []
  /** Connections that are open. */
  open = 0
  /** Requests that have not been answered, now and at most. */
  underWay = 0
  mostUnderWay = 0
  readonly #server = createServer((request, response) => void this.#serve(request, response))

  static async listen(): Promise<MisbehavingServer> {
    const server = new MisbehavingServer()
    server.#server.on('connection', socket => {
      server.open++
      socket.on('close', () => {
        server.open--
        server.#server.emit('gone')
      })
    })
    server.#server.listen(0, '127.0.0.1')
    await once(server.#server, 'listening')
    return server
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.mostUnderWay = Math.max(this.mostUnderWay, ++this.underWay)
    response.on('close', () => this.underWay--)
    const { url = '', headers } = request
    this.received.push({ path: url, authorization: headers.authorization ?? '', body: await text(request) })
    this.answer(response, request)
  }

  /** A connection is closed. */
  async gone(): Promise<void> {
    await once(this.#server, 'gone')
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

export function json(value: unknown, status = 200, type = 'application/json'): Answer {
  const body = typeof value === 'string' ? value : JSON.stringify(value)
  return response => response.writeHead(status, { 'content-type': type }).end(body)
}

const JSON_TYPE = { 'content-type': 'application/json' }

/** Answers that no client may take for one, and what is said of them. */
export const MISBEHAVIOURS: readonly (readonly [what: string, answer: Answer, cause: RegExp])[] = [
  ['is silent', () => {}, /no answer within/],
  ['stops in the middle', response => response.writeHead(200, JSON_TYPE).write('{"keys":['), /no answer within/],
  ['hangs up', response => response.destroy(), /other side closed|socket hang up|ECONNRESET/],
  ['redirects', response => response.writeHead(302, { location: '/elsewhere' }).end(), /redirect \(302\)/],
  [
    'sends megabytes',
    response => response.writeHead(200, JSON_TYPE).end(`"${'x'.repeat(1 << 20)}"`),
    /more than \d+ bytes/,
  ],
  ['sends HTML', json('<html>', 200, 'text/html'), /answers with text\/html/],
  ['sends no content type', response => response.end('{}'), /no content type/],
  ['sends half of it', json('{"active": true'), /not JSON/],
  ['sends members twice', json('{"active":false,"active":true,"keys":[],"keys":[]}'), /twice/],
  ['sends a list', json([]), /not an object/],
  ['has a fault of its own', json({ active: true, keys: [] }, 500), /status 500/],
  [
    'compresses',
    response => response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }).end('x'),
    /encoding/,
  ],
]
