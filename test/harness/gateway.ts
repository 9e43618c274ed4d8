/** A gateway in the process of the test: one reactor on free ports, with its log events and access log recorded. */
import { templateOf } from '../../src/apis/endpoint-url.ts'
import { PLAIN_API } from './api-plan.ts'
import { builtWorkerEntry } from './built-program.ts'
import { buildFilterChain } from '../../src/filters/build-chain.ts'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Configuration } from '../../src/config/catalogue.ts'
import { ConfigurationErrors } from '../../src/config/diagnostics.ts'
import { examine } from '../../src/config/load.ts'
import { DEFAULT_FAULTS } from './default-sequences.ts'
import { LEVEL } from './socket-level.ts'
import type { CustomValidator } from '../../src/auth/custom-validator.ts'
import type { AuthPlan } from '../../src/auth/auth-plan.ts'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import { AuthState } from '../../src/auth/auth-state.ts'
import { AccessLog } from '../../src/observe/access-log.ts'
import type { AnalyticsEvents } from '../../src/observe/analytics-events.ts'
import type { TraceRecords } from '../../src/observe/trace-records.ts'
import { allocateApiMetrics } from '../../src/observe/api-metrics.ts'
import { allocateMetrics, MetricsColumn, snapshotMetrics } from '../../src/observe/metrics.ts'
import {
  type ApiPlan,
  CLIENT_SLOTS,
  type ListenerPlan,
  type LivePlan,
  type ReactorPlan,
} from '../../src/plan/reactor-plan.ts'
import { accessLogPlan } from '../../src/plan/access-log-planning.ts'
import { authPlan } from '../../src/plan/auth-planning.ts'
import { FIRST_ROUTE_SLOT, type Route } from '../../src/proxy/target/route.ts'
import type { Report } from '../../src/proxy/exchange/connection-context.ts'
import { loadHandlers } from '../../src/reactor/handler-loading.ts'
import { loadMediation } from '../../src/reactor/mediation-loading.ts'
import type { WorkTimes } from '../../src/reactor/api-work.ts'
import { Reactor } from '../../src/reactor/reactor.ts'
import { DEFAULT_ENDPOINT_SETTINGS } from '../../src/apis/api-definition.ts'
import type { Dialer } from '../../src/socket/byte-socket.ts'
import { gatherAlways } from '../../src/socket/gathered-writes.ts'
import { handleLevel } from '../../src/socket/handle-socket.ts'
import { streamLevel } from '../../src/socket/stream-socket.ts'
import type { TlsLevel } from '../../src/socket/tls.ts'
import { CounterTable } from '../../src/throttle/counter-table.ts'
import { NO_THROTTLING } from '../../src/throttle/throttle-plan.ts'
import { PERMIT_ROWS } from '../../src/plan/worker-plan.ts'
import { formatSettings } from '../../src/mediation/formats/format-settings.ts'
import { bodyChecks, bodyLimits } from '../../src/plan/reactor-planning.ts'
import { workerSettings } from '../../src/plan/worker-planning.ts'
import type { WorkerService } from '../../src/mediation/worker-service.ts'
import { SharedGauge } from '../../src/runtime/shared-gauge.ts'
import { SharedPermits } from '../../src/runtime/shared-permits.ts'
import { SharedWakes } from '../../src/runtime/shared-wakes.ts'
import { EndpointTable } from '../../src/proxy/target/endpoint-table.ts'

// Writes of the reactor wait until their turn ends, so that every test shows that nothing depends on when they leave.
gatherAlways()

/** Modules in the process of the tests are not guarded. */
const UNGUARDED = { add: () => undefined }

interface LogEvent {
  readonly level: string
  readonly event: string
  readonly fields: Readonly<Record<string, string | number>>
}

export interface TestGateway {
  /** Port of the first listener. */
  readonly port: number
  /** Ports of all listeners, in order. */
  readonly ports: readonly number[]
  /** Log events, in order. */
  readonly reports: readonly LogEvent[]
  readonly accessLines: readonly string[]
  readonly reactor: Reactor
  /** Tokens, keys and subscriptions that the reactor knows. */
  readonly authState: AuthState
  /** The plan at the start. */
  readonly plan: ReactorPlan
  metrics(): ReturnType<typeof snapshotMetrics>
  /** Backend connections that the shared gauge counts, over all routes of all deployments. */
  countedTargets(): number
  /** Reloads the reactor as the primary does; rejects with the reason when the reactor refuses. */
  deploy(changes: Changes): Promise<void>
  stop(): void
}

export interface TestApi {
  readonly context: string
  readonly host?: string
  readonly port: number
  readonly basePath?: string
  /** Overrides of a plain route without a proxy. */
  readonly route?: Partial<Route>
  /** Path with variables behind the base path. */
  readonly template?: string
  /** Overrides of `PLAIN_API`: resources, CORS, lifecycle, transports, hosts. */
  readonly overrides?: Partial<ApiPlan>
}

/** Options of a gateway; a part of the plan replaces the default part of the same name. */
export interface GatewayOptions extends Partial<Omit<ReactorPlan, 'http' | 'https' | 'accessLog'>> {
  /** Keys of `[transport.passthru_http]`. */
  readonly http?: Readonly<Record<string, unknown>>
  /** Keys of `[transport.passthru_https]`. */
  readonly https?: Readonly<Record<string, unknown>>
  /** Format of the access log; no access log by default. */
  readonly accessLog?: 'json' | 'combined'
  readonly analyticsEvents?: AnalyticsEvents
  readonly traceRecords?: TraceRecords
  /** Kinds of the listeners; one plain HTTP listener by default. */
  readonly kinds?: readonly ListenerPlan['kind'][]
  /** Networks whose connections begin with a PROXY header. */
  readonly proxies?: ListenerPlan['proxies']
  /** Requests pass the filter chain of production before `filters`. */
  readonly hasFilterChain?: boolean
  /** Filters of the test. */
  readonly filters?: readonly Filter[]
  /** Clock of limits. */
  readonly wallMs?: () => number
  /** Of work beside requests. */
  readonly workTimes?: Partial<WorkTimes>
  /** The token validator of the operator. */
  readonly customValidator?: CustomValidator
  /** Replaces the dialer of backend connections. */
  readonly wrapDialer?: (dialer: Dialer) => Dialer
  /** Runs the flows that need a worker, in place of worker threads. */
  readonly worker?: Pick<WorkerService, 'mediate'>
  /** Overrides of the plan for authentication. */
  readonly authChanges?: Partial<AuthPlan>
}

/** Changes that a reload deploys; everything else stays. */
export interface Changes extends Partial<Omit<LivePlan, 'http' | 'https'>> {
  /** Keys of `[transport.passthru_http]`. */
  readonly http?: Readonly<Record<string, unknown>>
  /** Keys of `[transport.passthru_https]`. */
  readonly https?: Readonly<Record<string, unknown>>
  /** New and changed APIs. */
  readonly apis?: readonly TestApi[]
  /** New and changed APIs, as plans. */
  readonly planned?: readonly ApiPlan[]
  /** First paths of removed APIs. */
  readonly removed?: readonly string[]
}

/** Slots of the shared tables reserved for reloads. */
const SPARE_SLOTS = 64

const BLOCKING_CALLS = { timeoutMs: 60_000, omitsSoap12Action: false }
const home = mkdtempSync(join(tmpdir(), 'sluice-test-'))
writeFileSync(join(home, 'deployment.toml'), '')
process.once('exit', () => rmSync(home, { recursive: true, force: true }))

type Keys = Readonly<Record<string, unknown>>

/** Configurations by what is written in them. They are frozen, and reloads under load ask for the same ones. */
const configurations = new Map<string, Configuration>()

function configured(http: Keys, https: Keys): Configuration {
  const sets = (section: string, keys: Keys): readonly string[] =>
    Object.entries(keys).map(([key, value]) => `transport.${section}.${key}=${JSON.stringify(value)}`)
  const written = [...sets('passthru_http', http), ...sets('passthru_https', https)]
  const name = written.join('\n')
  const known = configurations.get(name)
  if (known !== undefined) return known
  const { configuration, errors, unknown } = examine(home, written, join(home, 'data'))
  // A key that does not exist has no effect, and a test with it could pass.
  if (errors.length + unknown.length > 0) throw new ConfigurationErrors([...errors, ...unknown])
  configurations.set(name, configuration)
  return configuration
}

function transports(configuration: Configuration): Pick<LivePlan, 'http' | 'https'> {
  return { http: configuration['transport.passthru_http'], https: configuration['transport.passthru_https'] }
}

/** The plan of a gateway, and the slots of its routes and endpoints. */
export function planGateway(
  apis: readonly TestApi[],
  options: GatewayOptions = {},
): { readonly plan: ReactorPlan; readonly slots: Slots } {
  const {
    http = {},
    https = {},
    accessLog: _accessLog,
    analyticsEvents: _analyticsEvents,
    traceRecords: _traceRecords,
    kinds = ['http'],
    proxies = null,
    hasFilterChain: _hasFilterChain,
    filters: _filters,
    customValidator: _validator,
    wrapDialer: _wrapDialer,
    wallMs: _wallMs,
    worker: _worker,
    authChanges = {},
    ...overrides
  } = options
  const configuration = configured(http, https)
  const slots = new Slots()
  const planned = slots.plan(apis)
  const reactors = overrides.reactors ?? 1
  const plan: ReactorPlan = {
    reactor: 0,
    reactors,
    ...transports(configuration),
    accessLog: accessLogPlan(configuration, '/', reactors),
    analytics: null,
    traces: null,
    home,
    database: null,
    logLevel: 'debug',
    recorder: { size: 256, slowMs: 0 },
    apis: planned,
    level: LEVEL,
    listeners: kinds.map(kind => ({ kind, host: '127.0.0.1', port: 0, proxies })),
    connectionLimits: { clients: -1, backends: -1 },
    tlsServer: null,
    tlsClients: {},
    throttling: NO_THROTTLING,
    redis: null,
    workers: { ...workerSettings(configuration), threads: ONE_THREAD },
    bodies: bodyLimits(configuration),
    formats: formatSettings(configuration),
    bodyChecks: bodyChecks(configuration),
    statistics: null,
    handlers: null,
    moduleLimitMs: 2000,
    cors: null,
    faults: DEFAULT_FAULTS,
    webSockets: NO_SOCKETS,
    sequenceEndpoints: {},
    blockingCalls: { plain: BLOCKING_CALLS, secured: BLOCKING_CALLS },
    hostName: configuration.server.hostname,
    responseTimeoutMs: configuration.mediation['synapse.global_timeout_interval'],
    resourceCacheMs: 900_000,
    auth: { ...authPlan(configuration), ...authChanges },
    warnOn500: { plain: '', secured: '' },
    metrics: allocateMetrics(reactors + 1),
    apiMetrics: allocateApiMetrics(reactors),
    gauge: SharedGauge.allocate(reactors, FIRST_ROUTE_SLOT + lastSlotOf(overrides.apis ?? planned) + SPARE_SLOTS),
    endpoints: EndpointTable.allocate(endpointsOf(overrides.apis ?? planned) + SPARE_SLOTS, reactors),
    clients: SharedGauge.allocate(reactors, CLIENT_SLOTS),
    clientSeed: 42,
    pseudonym: 'sluice',
    callToken: 'own',
    heartbeats: new SharedArrayBuffer(4 * reactors),
    counters: CounterTable.allocate(1024),
    permits: SharedPermits.allocate(reactors, Object.keys(PERMIT_ROWS).length),
    wakes: SharedWakes.allocate(),
    authVersion: new SharedArrayBuffer(4),
    ...overrides,
  }
  return { plan, slots }
}

function countedTargets({ gauge }: ReactorPlan): number {
  const counts = new Int32Array(gauge)
  // Behind the column of the only reactor are the highest sums.
  return counts.subarray(FIRST_ROUTE_SLOT, counts.length / 2).reduce((sum, count) => sum + count, 0)
}

export async function startGateway(apis: readonly TestApi[], options: GatewayOptions = {}): Promise<TestGateway> {
  const { http = {}, https = {}, accessLog = null, filters = [], customValidator = null } = options
  const { plan, slots } = planGateway(apis, options)
  const authState = new AuthState(plan.authVersion, plan.auth)
  authState.policies.setPlan(plan.throttling)
  const reports: LogEvent[] = []
  const accessLines: string[] = []
  let tls = await tlsLevel(plan)
  const level = LEVEL === 'streams' ? streamLevel : handleLevel()
  const dialer = options.wrapDialer?.(level) ?? level
  const report: Report = (level, event, fields) => reports.push({ level, event, fields })
  const column = new MetricsColumn(plan.metrics, plan.reactor)
  const handlers =
    plan.handlers === null
      ? null
      : await loadHandlers(plan.handlers, plan, { report, metrics: column, guard: UNGUARDED })
  const reactor = new Reactor(plan, {
    level: { ...level, dial: (...options) => dialer.dial(...options) },
    tls,
    report,
    authState,
    accessLog: accessLog === null ? null : recordedLog(accessLog, accessLines),
    analytics: options.analyticsEvents ?? null,
    traces: options.traceRecords ?? null,
    validator: customValidator,
    mediation: await loadMediation(plan, plan.apis),
    buildFilterChain: (api, auth, throttle) => {
      const chain = [...(options.hasFilterChain ? buildFilterChain(api, auth, throttle) : []), ...filters]
      return handlers?.filter.chain(chain) ?? chain
    },
    ...(options.wallMs === undefined ? {} : { wallMs: options.wallMs }),
    ...(options.worker === undefined ? {} : { worker: options.worker }),
    workerEntry: builtWorkerEntry(),
    workTimes: options.workTimes,
    drained: () => {},
  })
  const ports = await reactor.start()
  let live: LivePlan = plan
  let keys = { http, https }
  return {
    port: ports[0]!,
    ports,
    reports,
    accessLines,
    reactor,
    authState,
    plan,
    metrics: () => snapshotMetrics(plan.metrics),
    countedTargets: () => countedTargets(plan),
    deploy: async ({ http: ofPlain, https: ofTls, apis = [], planned = [], removed = [], ...changes }) => {
      const nextKeys = { http: { ...keys.http, ...ofPlain }, https: { ...keys.https, ...ofTls } }
      const isSame = ofPlain === undefined && ofTls === undefined
      const next = { ...live, ...changes, ...(isSame ? {} : transports(configured(nextKeys.http, nextKeys.https))) }
      tls ??= await tlsLevel(next)
      const deployed = [...slots.plan(apis), ...planned]
      const mediation = await loadMediation(next, deployed)
      reactor.deploy(next, { removed, deployed }, { tls, validator: customValidator, mediation })
      authState.updatePlan(next.auth)
      authState.policies.setPlan(next.throttling)
      live = next
      keys = nextKeys
    },
    stop: () => {
      reactor.stop()
      handlers?.close()
    },
  }
}

/** An access log that appends its lines to `lines`. */
function recordedLog(format: 'json' | 'combined', lines: string[]): AccessLog {
  const append = (batch: Uint8Array) => lines.push(...Buffer.from(batch).toString('latin1').trimEnd().split('\n'))
  return new AccessLog(format, append, { wallOffsetMs: () => Date.now() - performance.now() })
}

async function tlsLevel({ tlsServer, tlsClients }: LivePlan): Promise<TlsLevel | null> {
  if (tlsServer === null && Object.keys(tlsClients).length === 0) return null
  if (LEVEL === 'streams') return (await import('../../src/socket/tls-stream.ts')).streamTls
  return (await import('../../src/socket/tls-handle.ts')).handleTls()
}

/** The highest slot of the gauge that a route of these APIs has. */
function lastSlotOf(apis: readonly ApiPlan[]): number {
  return Math.max(0, ...apis.flatMap(api => api.endpoints.endpoints.map(({ route }) => route.slot)))
}

function endpointsOf(apis: readonly ApiPlan[]): number {
  return apis.reduce((sum, api) => sum + api.endpoints.endpoints.length, 0)
}

/** Slots of routes and endpoints, which stay the same over reloads. */
class Slots {
  readonly #backends: string[] = []
  readonly #endpoints: string[] = []

  /** Plans each API with one endpoint that is never suspended; APIs with the same backend share a route. */
  plan(apis: readonly TestApi[]): readonly ApiPlan[] {
    return apis.map(({ context, host = '127.0.0.1', port, basePath = '', template, route, overrides }) => {
      const url = `http://${host}:${port}${basePath}`
      const endpoint = {
        slot: slotOf(this.#endpoints, `${context} ${url} ${JSON.stringify(route)}`),
        url,
        route: {
          ...PLAIN,
          slot: FIRST_ROUTE_SLOT + slotOf(this.#backends, JSON.stringify([host, port, route])),
          host,
          port,
          ...route,
        },
        basePath,
        settings: { ...DEFAULT_ENDPOINT_SETTINGS, suspensionMs: 0 },
      }
      const single = { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [endpoint] } as const
      const endpoints =
        template === undefined ? single : { ...single, template: templateOf(`http://h${template}`)!.pieces }
      return { ...PLAIN_API, name: context.slice(1), paths: [context], endpoints, ...overrides }
    })
  }
}

function slotOf(known: string[], key: string): number {
  const slot = known.indexOf(key)
  return slot >= 0 ? slot : known.push(key) - 1
}

/** Worker threads of each pool: each loads the sources, which takes most of the time of a test with a worker. */
const ONE_THREAD = { mediation: 1, background: 1 }
const PLAIN = { secured: false, tlsClient: '', proxy: null, connectsThroughProxy: false }
const NO_SOCKETS = { ws: { dispatch: '', fault: '' }, wss: { dispatch: '', fault: '' } }
