/** Gateways of tests whose API has endpoints with states, and backends that fall ill and get well again. */
import { PLAIN_API } from './api-plan.ts'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { DEFAULT_SETTINGS, type EndpointSettings } from '../../src/config/endpoint-settings.ts'
import { monotonicMs } from '../../src/structure/monotonic-clock.ts'
import type { ApiPlan, EndpointPlan, EndpointsPlan } from '../../src/plan.ts'
import { EndpointTable } from '../../src/target/endpoint-table.ts'
import { startGateway, type TestGateway } from './gateway.ts'
import { takeAnswer } from './answers.ts'
import { connectPeer } from './peers.ts'

type Health = 'well' | 'hangs' | 'closes' | 'resets' | 'errs'

/** A backend that answers with its name, while it is well. */
export class Patient {
  readonly name: string
  port = 0
  health: Health = 'well'
  /** What came in, by method and path, each when it was complete. */
  readonly requests: string[] = []
  /** Of requests, in the same order. */
  readonly bodies: string[] = []
  readonly #held: ServerResponse[] = []
  #server: Server | null = null

  private constructor(name: string) {
    this.name = name
  }

  static async start(name: string): Promise<Patient> {
    const patient = new Patient(name)
    await patient.revive()
    return patient
  }

  /** Listens again, at the port that it had. */
  async revive(): Promise<void> {
    this.health = 'well'
    this.#server = createServer((request, response) => void this.#serve(request, response))
    this.#server.listen(this.port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.port = (this.#server.address() as { port: number }).port
  }

  /** Nobody listens any more, and every connection is reset. */
  async die(): Promise<void> {
    const server = this.#server
    if (server === null) return
    this.#server = null
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }

  /** Answers what it has been asked while it hung. */
  answerHeld(): void {
    for (const response of this.#held.splice(0)) response.end(this.name)
  }

  /** Requests that it has not answered. */
  get held(): number {
    return this.#held.length
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    try {
      for await (const piece of request.setEncoding('latin1')) body += piece
    } catch {
      // The gateway gave it up, or we died meanwhile.
      return
    }
    this.requests.push(`${request.method} ${request.url} ${request.headers.host}`)
    this.bodies.push(body)
    if (this.health === 'hangs') this.#held.push(response)
    else if (this.health === 'closes') request.socket.end()
    else if (this.health === 'resets') request.socket.resetAndDestroy()
    else {
      if (this.health === 'errs') response.statusCode = 500
      response.end(this.name)
    }
  }
}

interface GroupSketch {
  readonly kind: EndpointsPlan['kind']
  readonly algorithm?: EndpointsPlan['algorithm']
  readonly failsOver?: boolean
  readonly ports: readonly number[]
  /** Of all endpoints, or of each. */
  readonly settings?: Partial<EndpointSettings> | readonly Partial<EndpointSettings>[]
}

export interface EndpointGateway extends TestGateway {
  readonly table: EndpointTable
  /** Settings of each endpoint, by row. */
  readonly settings: readonly EndpointSettings[]
  readonly states: readonly string[]
}

/** One API, `/t`. */
export async function startEndpoints(
  sketch: GroupSketch,
  http: Readonly<Record<string, unknown>> = {},
): Promise<EndpointGateway> {
  const { kind, algorithm = 'round_robin', failsOver = kind !== 'single', ports, settings = {} } = sketch
  const endpoints: EndpointPlan[] = ports.map((port, row) => ({
    row,
    url: `http://127.0.0.1:${port}`,
    route: {
      ...{ row: row + 1, secured: false, host: '127.0.0.1', port },
      ...{ tlsClient: '', proxy: null, connectsThroughProxy: false },
    },
    basePath: '',
    settings: { ...DEFAULT_SETTINGS, ...(Array.isArray(settings) ? settings[row] : settings) },
  }))
  const api: ApiPlan = { ...PLAIN_API, name: 'T', paths: ['/t'], endpoints: { kind, algorithm, failsOver, endpoints } }
  const shared = EndpointTable.allocate(endpoints.length, 1)
  const gateway = await startGateway([], http, null, [], { apis: [api], endpoints: shared })
  const table = new EndpointTable(shared, 0, monotonicMs)
  return {
    ...gateway,
    table,
    settings: endpoints.map(endpoint => endpoint.settings),
    get states() {
      return endpoints.map(({ row }) => table.read(row).state)
    },
  }
}

/** One request on a connection of its own. */
export async function asked(
  { port }: { readonly port: number },
  method = 'GET',
  body = '',
): ReturnType<typeof takeAnswer> {
  const client = await connectPeer(port)
  const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`
  client.send(`${method} /t/it HTTP/1.1\r\nHost: a\r\n${length}\r\n${body}`)
  const answer = await takeAnswer(client)
  client.destroy()
  return answer
}

/** Code of a fault, or the body of an answer. */
export async function outcome(gateway: { readonly port: number }, method = 'GET', body = ''): Promise<string | number> {
  const answer = await asked(gateway, method, body)
  return answer.status < 500 ? answer.body : (JSON.parse(answer.body) as { fault: { code: number } }).fault.code
}

/** Asks until the answer is that one. */
export async function untilOutcome(gateway: { readonly port: number }, wanted: string | number): Promise<void> {
  let last: string | number = ''
  const end = performance.now() + 15_000
  while (last !== wanted) {
    if (performance.now() > end) throw new Error(`waited in vain for ${wanted}, was answered ${last}`)
    last = await outcome(gateway)
  }
}
