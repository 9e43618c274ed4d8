/** Plans the reactors: their number, their listeners, the memory they share, and what a reload replaces in them. */
import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { CorsDefinition } from '../apis/api-definition.ts'
import type { BackendSigner } from '../auth/auth-plan.ts'
import type { Configuration } from '../config/catalogue.ts'
import { isJavaClass } from '../config/module-file.ts'
import { BODY_CHECK, type BodyChecks } from '../mediation/policies/well-formed-body.ts'
import type { StatisticsSettings } from '../mediation/flow-statistics.ts'
import { formatSettings } from '../mediation/formats/format-settings.ts'
import type { SequencePlan } from '../mediation/sequence-plan.ts'
import { withEndpointForms } from '../mediation/endpoint-forms.ts'
import { type SequenceSet, sequencesOfFlows } from '../mediation/sequence-files.ts'
import { webSocketPlan } from '../mediation/websocket-sequences.ts'
import { allocateMetrics } from '../observe/metrics.ts'
import { ModuleStates } from '../runtime/module-states.ts'
import { SharedGauge } from '../runtime/shared-gauge.ts'
import { SharedPermits } from '../runtime/shared-permits.ts'
import { SharedWakes } from '../runtime/shared-wakes.ts'
import type { PolicySet } from '../throttle/policy.ts'
import type { TlsPlans } from '../tls/tls-material.ts'
import { accessLogPlan } from './access-log-planning.ts'
import type { ApiPlanner, PlannedApis } from './api-planning.ts'
import { authPlan } from './auth-planning.ts'
import { connectionLimits, openFileLimit } from './descriptor-planning.ts'
import { hasTlsListener, planListeners } from './listener-planning.ts'
import {
  type BlockingCallSettings,
  type BodyLimits,
  CLIENT_SLOTS,
  type HandlersPlan,
  type ListenerPlan,
  type LivePlan,
  type ReactorPlan,
  wordsOutcomes,
} from './reactor-plan.ts'
import { redisPlan } from './redis-planning.ts'
import { throttlePlan } from './throttle-planning.ts'
import { keyManagerTrust } from './token-apis.ts'
import { traceSettings } from './trace-planning.ts'
import { PERMIT_ROWS } from './worker-plan.ts'
import { databasePlan, workerSettings } from './worker-planning.ts'

interface PlanningOptions {
  readonly configuration: Configuration
  readonly dataDir: string
  readonly home: string
  readonly level: ReactorPlan['level']
  readonly planner: ApiPlanner
  readonly planned: PlannedApis
  /** Null without any TLS. */
  readonly tls: TlsPlans | null
  readonly sequences: SequenceSet
  /** Throttling policies of the home's files. */
  readonly policies: PolicySet
  /** Signs backend JWTs; null if reactors sign none. */
  readonly signer: BackendSigner | null
  /** Memory of the throttling counters. */
  readonly counters: SharedArrayBuffer
}

/** Number of reactors; one for a free port (0), because each listener would get another port. */
export function reactorCount(configuration: Configuration, listeners: readonly ListenerPlan[]): number {
  const hasFreePort = listeners.some(({ port }) => port === 0)
  if (hasFreePort || !canReusePort()) return 1
  return configuration['transport.passthru_http'].reactors || availableParallelism()
}

/** True if Node's `reusePort` spreads connections over listeners on this system. */
function canReusePort(): boolean {
  return process.platform === 'linux'
}

export function planReactors(options: PlanningOptions): ReactorPlan[] {
  const { configuration, home, dataDir, level, planner, planned, tls, sequences, policies, signer, counters } = options
  const http = configuration['transport.passthru_http']
  const listeners = planListeners(configuration)
  const reactors = reactorCount(configuration, listeners)
  const plan = {
    ...livePlan(configuration, planned, tls, { sequences, policies, signer }),
    bodyChecks: bodyChecks(configuration),
    statistics: flowStatistics(configuration),
    handlers: handlersPlan(configuration, reactors),
    moduleLimitMs: configuration.mediation['handlers.synchronous_timeout'],
    reactors,
    home,
    database: databasePlan(configuration, dataDir),
    accessLog: accessLogPlan(configuration, dataDir, reactors),
    analytics: analyticsSettings(configuration),
    traces: traceSettings(configuration, reactors),
    apis: planned.apis,
    level,
    listeners,
    connectionLimits: connectionLimits(openFileLimit(), reactors),
    // The last two columns belong to the primary and the control thread.
    metrics: allocateMetrics(reactors + 2),
    apiMetrics: planner.metrics,
    gauge: planner.gauge,
    endpoints: planner.endpoints,
    clients: SharedGauge.allocate(reactors, http.max_connections_per_client < 0 ? 1 : CLIENT_SLOTS),
    clientSeed: Math.floor(Math.random() * 2 ** 31),
    hostName: configuration.server.hostname,
    pseudonym: `sluice-${randomBytes(6).toString('hex')}`,
    callToken: randomBytes(8).toString('hex'),
    heartbeats: new SharedArrayBuffer(reactors * Int32Array.BYTES_PER_ELEMENT),
    counters,
    permits: SharedPermits.allocate(reactors, Object.keys(PERMIT_ROWS).length),
    wakes: SharedWakes.allocate(),
    authVersion: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT),
  }
  return Array.from({ length: reactors }, (_, reactor) => ({ ...plan, reactor }))
}

/** `[apim.cors]`: for APIs without CORS settings of their own, and for requests to no API. */
export function globalCors(configuration: Configuration): CorsDefinition {
  const cors = configuration['apim.cors']
  return {
    enabled: cors.enable,
    origins: cors.allow_origins,
    methods: cors.allow_methods,
    headers: cors.allow_headers,
    exposedHeaders: cors.expose_headers,
    credentials: cors.allow_credentials,
    maxAgeS: cors.max_age,
  }
}

/** Sequences that run in flows of APIs alone read the head itself: no field is captured for them. */
function homeSequences({ files, endpoints }: SequenceSet): readonly SequencePlan[] {
  const ofFlows = sequencesOfFlows(files)
  return [...files].map(([name, { plan }]) => {
    const known = withEndpointForms(plan, endpoints)
    return ofFlows.has(name) ? { ...known, requestFields: [] } : known
  })
}

/** Null where flows are not counted. */
function flowStatistics({ mediation }: Configuration): StatisticsSettings | null {
  const settings = {
    capturesAll: mediation['flow.statistics.capture_all'],
    intervalMs: mediation['statistics.clean_interval'],
    cleans: mediation['statistics.enable_clean'],
  }
  return mediation['flow.statistics.enable'] ? settings : null
}

/** Handlers that are enabled, in order. A Java class is left out, with a warning at the start. */
export function enabledHandlers(configuration: Configuration): HandlersPlan['handlers'] {
  const { synapse_handlers: rows } = configuration
  return configuration[''].enabled_global_handlers.flatMap(name => {
    const row = rows.find(row => row.name === name)
    return row?.enabled === true && !isJavaClass(row.class) ? [{ name, path: row.class }] : []
  })
}

/** Null without handlers. */
function handlersPlan(configuration: Configuration, reactors: number): HandlersPlan | null {
  const { mediation } = configuration
  const handlers = enabledHandlers(configuration)
  if (handlers.length === 0) return null
  return {
    handlers,
    states: ModuleStates.allocate(reactors, handlers.length),
    threads: mediation['handlers.pool_size'],
    timeoutMs: mediation['handlers.timeout'],
    heapBytes: mediation['handlers.heap_bytes'],
  }
}

/** Null where no key asks for a check. */
export function bodyChecks(configuration: Configuration): BodyChecks | null {
  const checked = (transport: 'transport.passthru_http' | 'transport.passthru_https') => {
    const { force_json_validation: json, force_xml_validation: xml } = configuration[transport]
    return { json, xml }
  }
  const checks = { plain: checked('transport.passthru_http'), secured: checked('transport.passthru_https') }
  return Object.values(checks).some(({ json, xml }) => json || xml) ? checks : null
}

export function livePlan(
  configuration: Configuration,
  planned: PlannedApis,
  tls: TlsPlans | null,
  { sequences, policies, signer }: Pick<PlanningOptions, 'sequences' | 'policies' | 'signer'>,
): LivePlan {
  const { usesTls, cors } = planned
  const http = configuration['transport.passthru_http']
  const https = configuration['transport.passthru_https']
  const { mediation, logging, recorder } = configuration
  const resourceCache = configuration['apim.cache.resource']
  const clients = tls?.clients.map(({ match, plan }) => [match, plan] as const) ?? []
  return {
    http,
    https,
    logLevel: logging.level,
    recorder: { size: recorder.size, slowMs: recorder.slow_threshold },
    // The key store may serve the management listener alone.
    tlsServer: hasTlsListener(planListeners(configuration)) ? (tls?.server ?? null) : null,
    tlsClients:
      tls !== null && usesTls
        ? Object.fromEntries([...clients, ...keyManagerTrust(configuration, tls), ['wss', tls.wss]])
        : {},
    cors: cors.enabled ? cors : null,
    responseTimeoutMs: mediation['synapse.global_timeout_interval'],
    resourceCacheMs: resourceCache.enable ? resourceCache.expiry_time * 1000 : 0,
    auth: authPlan(configuration, signer),
    warnOn500: { plain: http['sender.warnOnHTTP500'], secured: https['sender.warnOnHTTP500'] },
    faults: {
      sequences: [...homeSequences(sequences), ...(bodyChecks(configuration) === null ? [] : [BODY_CHECK])],
      aiSequence: configuration['apim.ai'].custom_error_response_sequence,
      wordsOutcomes: planned.apis.some(wordsOutcomes),
    },
    webSockets: webSocketPlan(configuration, sequences),
    blockingCalls: {
      plain: blockingCallSettings(configuration['transport.blocking_http']),
      secured: blockingCallSettings(configuration['transport.blocking_https']),
    },
    sequenceEndpoints: planned.ofSequences.plans,
    throttling: throttlePlan(configuration, policies),
    redis: redisPlan(configuration, tls),
    workers: workerSettings(configuration),
    bodies: bodyLimits(configuration),
    formats: formatSettings(configuration),
  }
}

function blockingCallSettings(keys: Configuration['transport.blocking_http']): BlockingCallSettings {
  return {
    timeoutMs: keys['sender.parameters.SO_TIMEOUT'],
    omitsSoap12Action: keys['sender.parameters.OmitSOAP12Action'],
  }
}

/** Limits of bodies that flows on workers read. */
export function bodyLimits({ mediation }: Pick<Configuration, 'mediation'>): BodyLimits {
  return {
    bytesMax: mediation['body.max_bytes'],
    memoryMax: mediation['body.memory_bytes'],
    pieceBytes: mediation['synapse.temp_data_chunk_size'],
  }
}

function analyticsSettings(configuration: Configuration): ReactorPlan['analytics'] {
  const { enable, publish_response_size, client_address } = configuration['apim.analytics']
  return enable ? { hasSizes: publish_response_size, address: client_address } : null
}
