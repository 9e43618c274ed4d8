/** HTTP server whose responses the test scripts: an issuer, a key manager or a token endpoint. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

interface Received {
  readonly path: string
  readonly authorization: string
  readonly body: string
}

type ScriptedResponse = (response: ServerResponse, request: IncomingMessage) => void

export class MisbehavingServer {
  answer: ScriptedResponse = response => response.end()
  readonly received: Received[] = []
  /** Open connections. */
  open = 0
  /** Requests without a response yet, now and at most. */
  inFlight = 0
  mostInFlight = 0
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
    this.mostInFlight = Math.max(this.mostInFlight, ++this.inFlight)
    response.on('close', () => this.inFlight--)
    const { url = '', headers } = request
    this.received.push({ path: url, authorization: headers.authorization ?? '', body: await text(request) })
    this.answer(response, request)
  }

  /** Resolves when a connection has closed. */
  async gone(): Promise<void> {
    await once(this.#server, 'gone')
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

export function json(value: unknown, status = 200, type = 'application/json'): ScriptedResponse {
  const body = typeof value === 'string' ? value : JSON.stringify(value)
  return response => response.writeHead(status, { 'content-type': type }).end(body)
}

const JSON_TYPE = { 'content-type': 'application/json' }

/** Responses that no client may accept, and the cause that it reports. */
export const MISBEHAVIOURS: readonly (readonly [what: string, answer: ScriptedResponse, cause: RegExp])[] = [
  ['is silent', () => {}, /no response within/],
  [
    'stops in the middle of the body',
    response => response.writeHead(200, JSON_TYPE).write('{"keys":['),
    /no response within/,
  ],
  ['hangs up', response => response.destroy(), /other side closed|socket hang up|ECONNRESET/],
  ['redirects', response => response.writeHead(302, { location: '/elsewhere' }).end(), /redirect \(302\)/],
  [
    'sends megabytes',
    response => response.writeHead(200, JSON_TYPE).end(`"${'x'.repeat(1 << 20)}"`),
    /more than \d+ bytes/,
  ],
  ['sends HTML', json('<html>', 200, 'text/html'), /responds with text\/html/],
  ['sends no content type', response => response.end('{}'), /no content type/],
  ['sends half of the JSON', json('{"active": true'), /not JSON/],
  ['repeats members', json('{"active":false,"active":true,"keys":[],"keys":[]}'), /duplicate member/],
  ['sends a list', json([]), /not an object/],
  ['fails with 500', json({ active: true, keys: [] }, 500), /status 500/],
  [
    'compresses',
    response => response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }).end('x'),
    /encoding/,
  ],
]
