/**
 * One exchange through a whole reactor on sockets in memory: the cost of the gateway's own code without the kernel.
 * `npx node bench/micro/exchange.ts [operations] [resources] [cors] [origin]`: an API with ten operations, the filters
 * resources and CORS, and a request with Origin.
 */
import { buildFilterChain } from '../../src/filters/build-chain.ts'
import type { ApiPlan } from '../../src/plan/reactor-plan.ts'
import { globalCors } from '../../src/plan/reactor-planning.ts'
import { authPlan } from '../../src/plan/auth-planning.ts'
import { PLAIN_API } from '../../test/harness/api-plan.ts'
import { DEFAULT_ENDPOINT_SETTINGS } from '../../src/apis/api-definition.ts'
import { AuthState } from '../../src/auth/auth-state.ts'
import { loadConfiguration } from '../../test/harness/configuration.ts'
import { allocateMetrics } from '../../src/observe/metrics.ts'
import { Reactor } from '../../src/reactor/reactor.ts'
import type { ByteSocket, ConnectingOwner, SocketLevel, SocketOwner } from '../../src/socket/byte-socket.ts'
import { SharedGauge } from '../../src/runtime/shared-gauge.ts'
import { EndpointTable } from '../../src/proxy/target/endpoint-table.ts'
import { OPERATIONS } from '../peers/exported-project.ts'

/** A socket without a kernel: what is written is dropped, what is received is copied. */
class MemorySocket implements ByteSocket {
  readonly remoteAddress = '127.0.0.1'
  readonly addresses = null
  readonly peerThumbprint = ''
  owner!: SocketOwner
  view!: Uint8Array
  written = 0

  attach(owner: SocketOwner, view: Uint8Array): void {
    this.owner = owner
    this.view = view
  }

  write(): 0 {
    this.written++
    return 0
  }

  receive(bytes: Uint8Array): void {
    this.view.set(bytes)
    this.view = this.owner.onBytes(bytes.length) ?? this.view
  }

  serves(): boolean {
    return true
  }

  setReading(): void {}
  end(): void {}
  destroy(): void {}
  reset(): void {}
}

let accept!: (socket: ByteSocket) => void
const dialled: MemorySocket[] = []
const level: SocketLevel = {
  name: 'streams',
  async listen(_options, onConnection) {
    accept = onConnection
    return { port: 1, fd: -1, close: () => {} }
  },
  dial(_address, _port, owner: ConnectingOwner, view) {
    const socket = new MemorySocket()
    socket.attach(owner, view)
    dialled.push(socket)
    queueMicrotask(() => owner.onConnected())
    return socket
  },
}

const ARGUMENTS = process.argv.slice(2)
const { configuration } = loadConfiguration(`${import.meta.dirname}/../../conf`, [])
const route = { slot: 3, secured: false, host: '127.0.0.1', port: 2, tlsClient: '', proxy: null }
const endpoint = { slot: 0, url: 'http://127.0.0.1:2', basePath: '', settings: DEFAULT_ENDPOINT_SETTINGS }
const ENDPOINTS = {
  kind: 'single',
  algorithm: 'round_robin',
  failsOver: false,
  endpoints: [{ ...endpoint, route: { ...route, connectsThroughProxy: false } }],
} as const

function plannedParts(): Pick<ApiPlan, 'resources' | 'cors'> {
  const operation = { authType: 'None', tier: 'Unlimited', scopes: [] } as const
  const resources = Object.entries(OPERATIONS).flatMap(([template, verbs]) => {
    return verbs.map(verb => ({ template, verb, ...operation }))
  })
  const cors = globalCors(configuration)
  return {
    resources: ARGUMENTS.includes('operations') ? resources : [],
    cors: ARGUMENTS.includes('cors') ? cors : null,
  }
}

const reactor = new Reactor(
  {
    reactor: 0,
    reactors: 1,
    http: configuration['transport.passthru_http'],
    https: configuration['transport.passthru_https'],
    accessLog: configuration.access_log,
    accessLogPath: '',
    logLevel: 'error',
    apis: [{ name: 'Bench', paths: ['/bench/1.0.0', '/bench'], endpoints: ENDPOINTS, ...PLAIN_API, ...plannedParts() }],
    level: 'streams',
    listeners: [{ kind: 'http', host: '127.0.0.1', port: 0, proxies: null }],
    connectionLimits: { clients: -1, backends: -1 },
    tlsServer: null,
    tlsClients: {},
    cors: null,
    faults: { sequences: [], aiSequence: '' },
    webSockets: { ws: { dispatch: '', fault: '' }, wss: { dispatch: '', fault: '' } },
    responseTimeoutMs: 120_000,
    resourceCacheMs: 900_000,
    auth: authPlan(configuration),
    warnOn500: { plain: '', secured: '' },
    endpoints: EndpointTable.allocate(1, 1),
    metrics: allocateMetrics(1),
    gauge: SharedGauge.allocate(1, 3),
    clients: SharedGauge.allocate(1, 1),
    clientSeed: 1,
    heartbeats: new SharedArrayBuffer(4),
    home: '',
    authVersion: new SharedArrayBuffer(4),
  },
  {
    level,
    tls: null,
    report: console.error,
    accessLog: null,
    authState: new AuthState(new SharedArrayBuffer(4), authPlan(configuration)),
    validator: null,
    buildFilterChain: (api, identity) => buildFilterChain(api, identity).filter(({ name }) => ARGUMENTS.includes(name)),
    drained: () => {},
  },
)
await reactor.start()

const CONNECTIONS = 64
const ROUNDS = 20_000
const request = Buffer.from(
  `GET /bench/orders/4711 HTTP/1.1\r\nHost: 127.0.0.1:8290\r\nAuthorization: Bearer ${'t'.repeat(600)}\r\n` +
    `${ARGUMENTS.includes('origin') ? 'Origin: https://portal.example.com\r\n' : ''}` +
    'Accept: application/json\r\n' +
    'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/120\r\nAccept-Encoding: gzip, deflate\r\n' +
    'Cookie: a=1; b=2; c=3333333333333333333333\r\n\r\n',
)
const response = Buffer.from(
  'HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 21 Nov 2026 05:00:00 GMT\r\nContent-Type: text/plain\r\n' +
    `Content-Length: 1024\r\nConnection: keep-alive\r\n\r\n${'x'.repeat(1024)}`,
)
const clients = Array.from({ length: CONNECTIONS }, () => {
  const socket = new MemorySocket()
  accept(socket)
  return socket
})
for (const client of clients) client.receive(request)
await new Promise(resolve => setTimeout(resolve, 50))
for (const backend of dialled) backend.receive(response)

function measure(rounds: number): number {
  const started = process.cpuUsage()
  for (let round = 0; round < rounds; round++) {
    // The pool takes the connection used last, so pairs of connections change from round to round.
    for (const client of clients) client.receive(request)
    for (const backend of dialled) backend.receive(response)
  }
  const { user, system } = process.cpuUsage(started)
  return ((user + system) * 1000) / (rounds * CONNECTIONS)
}

measure(ROUNDS / 4)
const nanoseconds = Array.from({ length: 5 }, () => measure(ROUNDS / 5)).sort((a, b) => a - b)
const rounds = nanoseconds.map(Math.round).join(', ')
process.stdout.write(`exchange: ${Math.round(nanoseconds[2]!)} ns of CPU (median of ${rounds})\n`)
reactor.stop()
process.exit(0)
