/** From configuration and APIs to one plan per reactor: what listens, what memory is shared, what a reload replaces. */
import { availableParallelism } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { ApiPlanner, PlannedApis } from './api-planner.ts'
import type { CorsDefinition } from '../config/api-definition.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { BackendSigner } from '../identity/identity-plan.ts'
import { identityPlan } from './identity-planning.ts'
import { listensSecured, planListeners } from './listener-plans.ts'
import { allocateMetrics } from '../observe/metrics.ts'
import { CLIENT_ROWS, type ListenerPlan, type LivePlan, type ReactorPlan } from '../plan.ts'
import type { SequenceSet } from './sequence-files.ts'
import { socketPlan } from './socket-sequences.ts'
import { SharedGauge } from '../structure/shared-gauge.ts'
import { ownTrust } from './token-apis.ts'
import type { TlsPlans } from '../tls/tls-material.ts'

interface PlanningOptions {
  readonly configuration: Configuration
  readonly dataDir: string
  readonly home: string
  readonly level: ReactorPlan['level']
  readonly planner: ApiPlanner
  readonly planned: PlannedApis
  /** Null where nothing is secured. */
  readonly tls: TlsPlans | null
  readonly sequences: SequenceSet
  /** Of tokens for backends; null where nothing is signed. */
  readonly signer: BackendSigner | null
}

/** How many there are. Every listener of a free port would get one of its own. */
export function reactorsOf(configuration: Configuration, listeners: readonly ListenerPlan[]): number {
  const hasFreePort = listeners.some(({ port }) => port === 0)
  if (hasFreePort || !canReusePort()) return 1
  return configuration['transport.passthru_http'].reactors || availableParallelism()
}

/** Systems on which Node's `reusePort` spreads connections over listeners. */
function canReusePort(): boolean {
  return process.platform === 'linux'
}

export function reactorPlans(options: PlanningOptions): ReactorPlan[] {
  const { configuration, home, dataDir, level, planner, planned, tls, sequences, signer } = options
  const http = configuration['transport.passthru_http']
  const { path } = configuration.access_log
  const listeners = planListeners(configuration)
  const reactors = reactorsOf(configuration, listeners)
  const plan = {
    ...livePlan(configuration, planned, tls, sequences, signer),
    reactors,
    home,
    accessLog: configuration.access_log,
    accessLogPath: isAbsolute(path) ? path : join(dataDir, path),
    apis: planned.apis,
    level,
    listeners,
    // The last columns are those of the primary and of the authority.
    metrics: allocateMetrics(reactors + 2),
    gauge: planner.gauge,
    endpoints: planner.endpoints,
    clients: SharedGauge.allocate(reactors, http.max_connections_per_client < 0 ? 1 : CLIENT_ROWS),
    clientSeed: Math.floor(Math.random() * 2 ** 31),
    heartbeats: new SharedArrayBuffer(reactors * Int32Array.BYTES_PER_ELEMENT),
    identityEpoch: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT),
  }
  return Array.from({ length: reactors }, (_, reactor) => ({ ...plan, reactor }))
}

/** Of every API that says nothing of CORS itself, and of what no API answers. */
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

export function livePlan(
  configuration: Configuration,
  planned: PlannedApis,
  tls: TlsPlans | null,
  sequences: SequenceSet,
  signer: BackendSigner | null,
): LivePlan {
  const { dialsSecured, cors } = planned
  const http = configuration['transport.passthru_http']
  const https = configuration['transport.passthru_https']
  const { mediation, logging } = configuration
  const resourceCache = configuration['apim.cache.resource']
  const clients = tls?.clients.map(({ match, plan }) => [match, plan] as const) ?? []
  return {
    http,
    logLevel: logging.level,
    // It may be there for the management listener alone.
    tlsServer: listensSecured(planListeners(configuration)) ? (tls?.server ?? null) : null,
    tlsClients:
      tls !== null && dialsSecured
        ? Object.fromEntries([...clients, ...ownTrust(configuration, tls), ['wss', tls.wss]])
        : {},
    cors: cors.enabled ? cors : null,
    responseMs: mediation['synapse.global_timeout_interval'],
    resourceMs: resourceCache.enable ? resourceCache.expiry_time * 1000 : 0,
    identity: identityPlan(configuration, signer),
    warnOn500: { plain: http['sender.warnOnHTTP500'], secured: https['sender.warnOnHTTP500'] },
    faults: {
      programs: [...sequences.files.values()].map(({ program }) => program),
      aiSequence: configuration['apim.ai'].custom_error_response_sequence,
    },
    sockets: socketPlan(configuration, sequences),
  }
}
