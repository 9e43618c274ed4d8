/** A gateway within the test's own process: one reactor on a free port, with everything it reported at hand. */
import { PLAIN_API } from './api-plan.ts'
import { chainOf } from '../../src/chain-of.ts'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Configuration } from '../../src/config/catalogue.ts'
import { loadConfiguration } from './configuration.ts'
import { DEFAULT_FAULTS } from './default-sequences.ts'
import type { Validator } from '../../src/identity/identity.ts'
import type { IdentityPlan } from '../../src/identity/identity-plan.ts'
import type { Handler } from '../../src/exchange/contract.ts'
import { IdentityState } from '../../src/identity/identity-state.ts'
import { AccessLog } from '../../src/observe/access-log.ts'
import { allocateMetrics, snapshotMetrics } from '../../src/observe/metrics.ts'
import { type ApiPlan, CLIENT_ROWS, type ListenerPlan, type LivePlan, type ReactorPlan } from '../../src/plan.ts'
import { identityPlan } from '../../src/primary/identity-planning.ts'
import type { Route } from '../../src/target/route.ts'
import { Reactor } from '../../src/reactor/reactor.ts'
import { DEFAULT_SETTINGS } from '../../src/config/endpoint-settings.ts'
import { handleLevel } from '../../src/socket/handle-socket.ts'
import { streamLevel } from '../../src/socket/stream-socket.ts'
import type { TlsLevel } from '../../src/socket/tls.ts'
import { SharedGauge } from '../../src/structure/shared-gauge.ts'
import { EndpointTable } from '../../src/target/endpoint-table.ts'

interface Reported {
  readonly level: string
  readonly event: string
  readonly fields: Readonly<Record<string, string | number>>
}

export interface TestGateway {
  /** Of the first listener. */
  readonly port: number
  /** Of all, in order. */
  readonly ports: readonly number[]
  readonly reports: readonly Reported[]
  readonly accessLines: readonly string[]
  readonly reactor: Reactor
  /** What it knows of those who ask. */
  readonly identity: IdentityState
  /** As it began. */
  readonly plan: ReactorPlan
  metrics(): ReturnType<typeof snapshotMetrics>
  /** Connections of all routes that have ever been. */
  heldRows(): number
  /** As the primary would; throws why not. */
  deploy(changes: Changes): Promise<void>
  stop(): void
}

export interface TestApi {
  readonly context: string
  readonly host?: string
  readonly port: number
  readonly basePath?: string
  /** What a plain route does not have. */
  readonly route?: Partial<Route>
  /** What is not as with most APIs of tests: resources, CORS, lifecycle, transports, hosts. */
  readonly unlike?: Partial<ApiPlan>
}

/** What most gateways of tests do not have. */
export interface MorePlan extends Partial<ReactorPlan> {
  /** One plain listener where none are named. */
  readonly kinds?: readonly ListenerPlan['kind'][]
  /** Requests pass the handlers of production first; otherwise those of the test alone. */
  readonly isChained?: boolean
  /** A handler of the operator's own for those who ask. */
  readonly ownValidator?: Validator
  /** Of the plan for those who ask. */
  readonly identityChanges?: Partial<IdentityPlan>
}

/** What a reload brings; everything else is as it was. */
export interface Changes extends Partial<Omit<LivePlan, 'http'>> {
  /** Keys of `[transport.passthru_http]`. */
  readonly http?: Readonly<Record<string, unknown>>
  /** New APIs, and those that are different. */
  readonly apis?: readonly TestApi[]
  /** The same, planned. */
  readonly planned?: readonly ApiPlan[]
  /** First paths of APIs that are gone. */
  readonly removed?: readonly string[]
}

/** Socket level of this run of the suite: `SLUICE_LEVEL=streams npm test`. */
export const LEVEL = process.env.SLUICE_LEVEL === 'streams' ? 'streams' : 'handles'
/** Rows of the shared tables for what reloads bring. */
const SPARE_ROWS = 64

const home = mkdtempSync(join(tmpdir(), 'sluice-test-'))
writeFileSync(join(home, 'deployment.toml'), '')
process.once('exit', () => rmSync(home, { recursive: true, force: true }))

function configured(http: Readonly<Record<string, unknown>>): Configuration {
  const sets = Object.entries(http).map(([key, value]) => `transport.passthru_http.${key}=${JSON.stringify(value)}`)
  return loadConfiguration(home, sets).configuration
}

/** The plan of a gateway, and what keeps its rows. */
export function planGateway(
  apis: readonly TestApi[],
  http: Readonly<Record<string, unknown>> = {},
  { kinds = ['http'], isChained: _, ownValidator: _own, identityChanges = {}, ...more }: MorePlan = {},
): { readonly plan: ReactorPlan; readonly rows: Rows } {
  const configuration = configured(http)
  const rows = new Rows()
  const planned = rows.plan(apis)
  const reactors = more.reactors ?? 1
  const plan: ReactorPlan = {
    reactor: 0,
    reactors,
    http: configuration['transport.passthru_http'],
    accessLog: configuration.access_log,
    accessLogPath: '',
    home,
    logLevel: 'debug',
    apis: planned,
    level: LEVEL,
    listeners: kinds.map(kind => ({ kind, host: '127.0.0.1', port: 0 })),
    tlsServer: null,
    tlsClients: {},
    cors: null,
    faults: DEFAULT_FAULTS,
    sockets: NO_SOCKETS,
    responseMs: configuration.mediation['synapse.global_timeout_interval'],
    resourceMs: 900_000,
    identity: { ...identityPlan(configuration), ...identityChanges },
    warnOn500: { plain: '', secured: '' },
    metrics: allocateMetrics(reactors + 1),
    gauge: SharedGauge.allocate(reactors, 1 + rowsOf(more.apis ?? planned) + SPARE_ROWS),
    endpoints: EndpointTable.allocate(endpointsOf(more.apis ?? planned) + SPARE_ROWS, reactors),
    clients: SharedGauge.allocate(reactors, CLIENT_ROWS),
    clientSeed: 42,
    heartbeats: new SharedArrayBuffer(4 * reactors),
    identityEpoch: new SharedArrayBuffer(4),
    ...more,
  }
  return { plan, rows }
}

/** `http`: keys of `[transport.passthru_http]`. `more`: parts of the plan that take the place of these. */
export async function startGateway(
  apis: readonly TestApi[],
  http: Readonly<Record<string, unknown>> = {},
  accessLogFormat: 'json' | 'combined' | null = null,
  handlers: readonly Handler[] = [],
  more: MorePlan = {},
): Promise<TestGateway> {
  const { plan, rows } = planGateway(apis, http, more)
  const identity = new IdentityState(plan.identityEpoch, plan.identity)
  const reports: Reported[] = []
  const accessLines: string[] = []
  let tls = await tlsLevel(plan)
  const reactor = new Reactor(plan, {
    level: LEVEL === 'streams' ? streamLevel : handleLevel(),
    tls,
    report: (level, event, fields) => reports.push({ level, event, fields }),
    identity,
    accessLog: accessLogFormat === null ? null : linesOf(accessLogFormat, accessLines),
    validator: more.ownValidator ?? null,
    chainOf: (api, identity) => [...(more.isChained ? chainOf(api, identity) : []), ...handlers],
    drained: () => {},
  })
  const ports = await reactor.start()
  let live: LivePlan = plan
  let keys = http
  return {
    port: ports[0]!,
    ports,
    reports,
    accessLines,
    reactor,
    identity,
    plan,
    metrics: () => snapshotMetrics(plan.metrics),
    heldRows: () => new Int32Array(plan.gauge).subarray(1).reduce((sum, held) => sum + held, 0),
    deploy: async ({ http: other = {}, apis = [], planned = [], removed = [], ...changes }) => {
      const nextKeys = { ...keys, ...other }
      const isSame = Object.keys(other).length === 0
      const next = { ...live, ...changes, http: isSame ? live.http : configured(nextKeys)['transport.passthru_http'] }
      tls ??= await tlsLevel(next)
      reactor.deploy(next, { removed, deployed: [...rows.plan(apis), ...planned] }, tls, more.ownValidator ?? null)
      identity.renew(next.identity)
      live = next
      keys = nextKeys
    },
    stop: () => reactor.stop(),
  }
}

/** An access log whose lines are kept. */
function linesOf(format: 'json' | 'combined', lines: string[]): AccessLog {
  const keep = (batch: Uint8Array) => lines.push(...Buffer.from(batch).toString('latin1').trimEnd().split('\n'))
  return new AccessLog(format, keep, { wallOffsetMs: () => Date.now() - performance.now() })
}

async function tlsLevel({ tlsServer, tlsClients }: LivePlan): Promise<TlsLevel | null> {
  if (tlsServer === null && Object.keys(tlsClients).length === 0) return null
  if (LEVEL === 'streams') return (await import('../../src/socket/tls-stream.ts')).streamTls
  return (await import('../../src/socket/tls-handle.ts')).handleTls()
}

/** Rows of the gauge that the routes of these APIs take. */
function rowsOf(apis: readonly ApiPlan[]): number {
  return Math.max(0, ...apis.flatMap(api => api.endpoints.endpoints.map(({ route }) => route.row)))
}

function endpointsOf(apis: readonly ApiPlan[]): number {
  return apis.reduce((sum, api) => sum + api.endpoints.endpoints.length, 0)
}

/** Rows that routes and endpoints of a gateway have got, and keep over reloads. */
class Rows {
  readonly #backends: string[] = []
  readonly #endpoints: string[] = []

  /** Each API with one endpoint, which is never suspended; those with the same backend share a route. */
  plan(apis: readonly TestApi[]): readonly ApiPlan[] {
    return apis.map(({ context, host = '127.0.0.1', port, basePath = '', route, unlike }) => {
      const url = `http://${host}:${port}${basePath}`
      const endpoint = {
        row: rowIn(this.#endpoints, `${context} ${url} ${JSON.stringify(route)}`),
        url,
        route: { ...PLAIN, row: 1 + rowIn(this.#backends, JSON.stringify([host, port, route])), host, port, ...route },
        basePath,
        settings: { ...DEFAULT_SETTINGS, initialMs: 0 },
      }
      const endpoints = { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [endpoint] } as const
      return { ...PLAIN_API, name: context.slice(1), paths: [context], endpoints, ...unlike }
    })
  }
}

function rowIn(known: string[], key: string): number {
  const row = known.indexOf(key)
  return row >= 0 ? row : known.push(key) - 1
}

const PLAIN = { secured: false, tlsClient: '', proxy: null, connectsThroughProxy: false }
const NO_SOCKETS = { ws: { dispatch: '', fault: '' }, wss: { dispatch: '', fault: '' } }
