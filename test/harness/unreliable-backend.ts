/** Backends that fail on command, and gateways with a group of endpoints. */
import { PLAIN_API } from './api-plan.ts'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import {
  DEFAULT_ENDPOINT_SETTINGS,
  type EndpointSettings,
  LONE_ENDPOINT_SETTINGS,
} from '../../src/apis/api-definition.ts'
import { monotonicMs } from '../../src/runtime/monotonic-clock.ts'
import type { ApiPlan, EndpointPlan, EndpointsPlan } from '../../src/plan/reactor-plan.ts'
import { FIRST_ROUTE_SLOT } from '../../src/proxy/target/route.ts'
import { EndpointTable } from '../../src/proxy/target/endpoint-table.ts'
import { type GatewayOptions, startGateway, type TestGateway } from './gateway.ts'
import { takeResponse } from './responses.ts'
import { connectPeer, GUARD_MS } from './peers.ts'

/** Connections get ports from 32768 on, and could take that of a backend that has stopped for a moment. */
const PORTS = { least: 20_000, most: 32_000 }

function anyPort(): number {
  return PORTS.least + Math.floor(Math.random() * (PORTS.most - PORTS.least))
}

type Behaviour = 'responds' | 'hangs' | 'closes' | 'resets' | 'fails with 500'

/** A backend that responds with its name, or fails as `behaviour` says. */
export class UnreliableBackend {
  readonly name: string
  port = 0
  behaviour: Behaviour = 'responds'
  /** Complete requests as "METHOD path host", in order. */
  readonly requests: string[] = []
  /** Bodies of the requests, in the same order. */
  readonly bodies: string[] = []
  readonly #held: ServerResponse[] = []
  #server: Server | null = null

  private constructor(name: string) {
    this.name = name
  }

  static async start(name: string): Promise<UnreliableBackend> {
    const backend = new UnreliableBackend(name)
    await backend.listen()
    return backend
  }

  /** Listens, again on the same port after `stop`. */
  async listen(): Promise<void> {
    this.behaviour = 'responds'
    this.port = await this.#listenOn(this.port === 0 ? anyPort() : this.port, this.port === 0)
  }

  /** Resolves with the port. `isFree`: another one does as well. */
  async #listenOn(port: number, isFree: boolean): Promise<number> {
    const server = createServer((request, response) => void this.#serve(request, response))
    server.listen(port, '127.0.0.1')
    try {
      await once(server, 'listening')
    } catch (error) {
      if (!isFree) throw error
      return this.#listenOn(anyPort(), isFree)
    }
    this.#server = server
    return port
  }

  /** Stops listening and closes every connection. */
  async stop(): Promise<void> {
    const server = this.#server
    if (server === null) return
    this.#server = null
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }

  /** Responds to the requests that arrived while the behaviour was `hangs`. */
  respondToHeld(): void {
    for (const response of this.#held.splice(0)) response.end(this.name)
  }

  /** Number of requests without a response. */
  get held(): number {
    return this.#held.length
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    try {
      for await (const piece of request.setEncoding('latin1')) body += piece
    } catch {
      // The gateway has given up the request, or this backend was stopped.
      return
    }
    this.requests.push(`${request.method} ${request.url} ${request.headers.host}`)
    this.bodies.push(body)
    if (this.behaviour === 'hangs') this.#held.push(response)
    else if (this.behaviour === 'closes') request.socket.end()
    else if (this.behaviour === 'resets') request.socket.resetAndDestroy()
    else {
      if (this.behaviour === 'fails with 500') response.statusCode = 500
      response.end(this.name)
    }
  }
}

interface GroupOptions {
  readonly kind: EndpointsPlan['kind']
  readonly algorithm?: EndpointsPlan['algorithm']
  readonly failsOver?: boolean
  readonly ports: readonly number[]
  /** Settings of all endpoints, or of each endpoint. */
  readonly settings?: Partial<EndpointSettings> | readonly Partial<EndpointSettings>[]
}

export interface EndpointGateway extends TestGateway {
  readonly table: EndpointTable
  /** Settings of each endpoint, by slot. */
  readonly settings: readonly EndpointSettings[]
  readonly states: readonly string[]
}

/** Starts a gateway with one API, `/t`, whose endpoints have the slots 0, 1, 2 and so on. */
export async function startEndpoints(
  group: GroupOptions,
  http: Readonly<Record<string, unknown>> = {},
  options: GatewayOptions = {},
): Promise<EndpointGateway> {
  const { kind, algorithm = 'round_robin', failsOver = kind !== 'single', ports, settings = {} } = group
  const endpoints: EndpointPlan[] = ports.map((port, slot) => ({
    slot,
    url: `http://127.0.0.1:${port}`,
    route: {
      ...{ slot: FIRST_ROUTE_SLOT + slot, secured: false, host: '127.0.0.1', port },
      ...{ tlsClient: '', proxy: null, connectsThroughProxy: false },
    },
    basePath: '',
    settings: {
      ...(kind === 'single' ? LONE_ENDPOINT_SETTINGS : DEFAULT_ENDPOINT_SETTINGS),
      // As for an endpoint of a group whose settings are written.
      eachFailureCounts: kind !== 'single',
      ...(Array.isArray(settings) ? settings[slot] : settings),
    },
  }))
  const api: ApiPlan = { ...PLAIN_API, name: 'T', paths: ['/t'], endpoints: { kind, algorithm, failsOver, endpoints } }
  const shared = EndpointTable.allocate(endpoints.length, 1)
  const gateway = await startGateway([], { ...options, http, apis: [api], endpoints: shared })
  const table = new EndpointTable(shared, 0, monotonicMs)
  return {
    ...gateway,
    table,
    settings: endpoints.map(endpoint => endpoint.settings),
    get states() {
      return endpoints.map(({ slot }) => table.read(slot).state)
    },
  }
}

/** Sends one request on a new connection. */
export async function sendRequest(
  { port }: { readonly port: number },
  method = 'GET',
  body = '',
): ReturnType<typeof takeResponse> {
  const client = await connectPeer(port)
  const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`
  client.send(`${method} /t/it HTTP/1.1\r\nHost: a\r\n${length}\r\n${body}`)
  const response = await takeResponse(client)
  client.destroy()
  return response
}

/** Sends one request: the fault code of a 5xx response, else the body. */
export async function outcome(gateway: { readonly port: number }, method = 'GET', body = ''): Promise<string | number> {
  const response = await sendRequest(gateway, method, body)
  return response.status < 500 ? response.body : (JSON.parse(response.body) as { fault: { code: number } }).fault.code
}

/** Sends requests until the outcome is `wanted`. */
export async function untilOutcome(gateway: { readonly port: number }, wanted: string | number): Promise<void> {
  let last: string | number = ''
  const end = performance.now() + GUARD_MS
  while (last !== wanted) {
    if (performance.now() > end) throw new Error(`waited in vain for ${wanted}, last outcome ${last}`)
    last = await outcome(gateway)
  }
}
