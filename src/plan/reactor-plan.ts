/** The plan of a reactor, computed by the primary: plain data and shared memory, nothing else. */
import type { AnalyticsSettings } from '../observe/analytics-events.ts'
import type { TraceSettings } from '../observe/trace-records.ts'
import type { RecorderSettings } from '../observe/flight-recorder.ts'
import type { AccessLogPlan } from './access-log-planning.ts'
import type {
  CorsDefinition,
  EndpointSettings,
  EndpointsDefinition,
  EscapedSlashes,
  HardLimits,
  LifecycleState,
  MountedDefinition,
  ResourceDefinition,
  Transport,
} from '../apis/api-definition.ts'
import type { AccessPlan, AuthPlan, BackendCredentialPlans } from '../auth/auth-plan.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { ProxyProfile } from '../config/proxy-choice.ts'
import type { TemplatePiece } from '../mediation/endpoint-plan.ts'
import type { ApiMediationPlan } from '../mediation/flow-plan.ts'
import type { StatisticsSettings } from '../mediation/flow-statistics.ts'
import type { FormatSettings } from '../mediation/formats/format-settings.ts'
import type { BodyChecks } from '../mediation/policies/well-formed-body.ts'
import type { SequencePlan } from '../mediation/sequence-plan.ts'
import type { DatabasePlan } from '../mounted/database-access.ts'
import type { ForwardProxy, Route } from '../proxy/target/route.ts'
import type { ConnectionLimits } from './descriptor-planning.ts'
import type { TlsClientPlan, TlsServerPlan } from '../socket/tls.ts'
import type { RedisPlan } from '../throttle/redis-counters.ts'
import type { ThrottlePlan } from '../throttle/throttle-plan.ts'
import type { WorkerSettings } from './worker-plan.ts'

/** One endpoint of an API. */
export interface EndpointPlan {
  /** Slot in the shared table of endpoint states; unique. */
  readonly slot: number
  /** As configured, without credentials: `http://10.0.0.7:8080/base`. */
  readonly url: string
  readonly route: Route
  /** Path of the URL without a slash at its end. */
  readonly basePath: string
  readonly settings: EndpointSettings
}

/** The endpoints of one key type. */
export type EndpointsPlan = Omit<EndpointsDefinition, 'endpoints'> & { readonly endpoints: readonly EndpointPlan[] }

/** An endpoint of sequences. */
export interface SequenceEndpointPlan {
  /** In capitals; '' for that of the message. */
  readonly method: string
  /** Path and query of the message follow those of the endpoint. */
  readonly appendsPath: boolean
  readonly address: SequenceAddressPlan
  /** Key of the BackendTokenPlan of its access tokens; left out: it needs none. */
  readonly token?: string
}

/**
 * `urls`: to endpoints that are known; `pieces` are path and query behind their URLs. `template`: to one origin;
 * `pieces` are path and query. `dynamic`: `pieces` are the whole URL; null for the destination of the message.
 */
export type SequenceAddressPlan =
  | { readonly kind: 'urls'; readonly endpoints: EndpointsPlan; readonly pieces?: readonly TemplatePiece[] }
  | { readonly kind: 'template'; readonly endpoint: EndpointPlan; readonly pieces: readonly TemplatePiece[] }
  | {
      readonly kind: 'dynamic'
      readonly pieces: readonly TemplatePiece[] | null
      /** Slots that all addresses share: they have one limit of connections, and are never suspended. */
      readonly routeSlot: number
      readonly slot: number
      readonly settings: EndpointSettings
      readonly proxies: ProxyProfiles
      /** Addresses of this endpoint that are kept; left out: as many as of all. */
      readonly kept?: number
    }

/** Forward proxies by the transport of the backend; holds secrets. */
export type ProxyProfiles = Readonly<Record<'plain' | 'secured', readonly ProxyProfile<ForwardProxy>[]>>

/** By name. */
export type SequenceEndpointsPlan = Readonly<Record<string, SequenceEndpointPlan>>

/** Times in milliseconds since 1970; 0 for unknown or none. */
interface LifecyclePlan {
  readonly state: LifecycleState
  readonly deprecatedAtMs: number
  readonly sunsetMs: number
}

export interface ApiPlan {
  readonly name: string
  readonly version: string
  /** With `hosts`, the first path is the identity of the API (`apiIdentity`). */
  readonly paths: readonly string[]
  /** Virtual hosts in lower case; empty for every host. */
  readonly hosts: readonly string[]
  readonly transports: readonly Transport[]
  readonly lifecycle: LifecyclePlan
  /** Key type of a request without a key. */
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
  readonly escapedSlashes: EscapedSlashes
  readonly isAi: boolean
  /** Row of the API in `ReactorPlan.apiMetrics`. */
  readonly metricsRow: number
  readonly access: AccessPlan
  /** Throttling policy of the whole API, in place of those of its resources; '' for none. */
  readonly tier: string
  readonly hardLimits: HardLimits
  /** Credentials of the gateway at the backends; holds secrets. */
  readonly credentials: BackendCredentialPlans
  /** Complete CORS settings; APIs with equal settings share one object. Null for no CORS. */
  readonly cors: CorsDefinition | null
  /** Empty for every path and method. */
  readonly resources: readonly ResourceDefinition[]
  /** Production endpoints; may be empty. */
  readonly endpoints: EndpointsPlan
  /** Sandbox endpoints; may be empty. */
  readonly sandbox: EndpointsPlan
  /** The implementation in the worker pool; null for endpoints. */
  readonly mounted: MountedDefinition | null
  /** Null: messages pass as they are. */
  readonly mediation: ApiMediationPlan | null
}

/** Module of the gateway whose API has faults that are OperationOutcomes. */
const OUTCOME_MODULE = 'sluice:healthcare'

export function wordsOutcomes({ mounted }: Pick<ApiPlan, 'mounted'>): boolean {
  return mounted?.module === OUTCOME_MODULE
}

/** Identifies an API across reloads, restarts and threads: its virtual hosts and the first of its paths. */
export function apiIdentity({ hosts, paths }: Pick<ApiPlan, 'hosts' | 'paths'>): string {
  return `${hosts.join()}${paths[0]!}`
}

/** Names of the APIs for `/token` and `/revoke`, which no project declares (token-apis.ts). */
export const TOKEN_API_NAMES: readonly string[] = ['_TokenAPI_', '_RevokeAPI_']

export interface ListenerPlan {
  readonly kind: 'http' | 'https' | 'ws' | 'wss'
  /** '' for all addresses. */
  readonly host: string
  /** With `server.offset`; 0 (any free port) only for a single reactor. */
  readonly port: number
  /** Networks whose connections begin with a PROXY header; others are reset. Null: the listener asks for no header. */
  readonly proxies: readonly string[] | null
  /** Sockets of a predecessor that listen already; left out: the reactor binds one. */
  readonly fds?: readonly number[]
}

/** The sequences that format faults. */
export interface FaultPlan {
  readonly sequences: readonly SequencePlan[]
  /** Fault sequence of AI APIs; '' for none of their own. */
  readonly aiSequence: string
  /** An API has faults that are OperationOutcomes, whose media type depends on Accept; left out: none. */
  readonly wordsOutcomes?: boolean
}

/** Names of sequences for WebSocket endpoints of one scheme; '' for none. */
export interface WebSocketSequences {
  /** Mediates the 101 of the backend, in place of `outDispatchSeq`. */
  readonly dispatch: string
  /** Formats the fault if there is no tunnel. */
  readonly fault: string
}

/** By the scheme of the endpoint URL. */
export type WebSocketPlan = Readonly<Record<'ws' | 'wss', WebSocketSequences>>

/** Settings of the blocking calls of sequences. */
export interface BlockingCallSettings {
  /** Longest time without progress of a call in milliseconds; 0: no limit of its own. */
  readonly timeoutMs: number
  /** The content type of a request in SOAP 1.2 does not carry the action. */
  readonly omitsSoap12Action: boolean
}

/** By the transport of the backend. */
export type BlockingCalls = Readonly<Record<'plain' | 'secured', BlockingCallSettings>>

/** Limits of bodies that a reactor collects for flows, in bytes. */
export interface BodyLimits {
  readonly bytesMax: number
  /** A longer body goes to a file. */
  readonly memoryMax: number
  /** A file grows by pieces of this length. */
  readonly pieceBytes: number
}

/** Handlers of the operator, in order, and the threads of one reactor for those that do not run on it. */
export interface HandlersPlan {
  readonly handlers: readonly { readonly name: string; readonly path: string }[]
  /** `ModuleStates` of the synchronous ones, by their places. */
  readonly states: SharedArrayBuffer
  readonly threads: number
  /** Longest time of one phase on a thread, in milliseconds. */
  readonly timeoutMs: number
  /** Heap of one thread in bytes. */
  readonly heapBytes: number
}

/** Parts of a running reactor that a reload replaces. */
export interface LivePlan {
  /** Keys that are not live keep the values of the start. */
  readonly http: Configuration['transport.passthru_http']
  /** Settings of connections on TLS. Keys that are not live keep the values of the start. */
  readonly https: Configuration['transport.passthru_https']
  readonly logLevel: string
  readonly recorder: RecorderSettings
  /** For the https and wss listeners; null without one. */
  readonly tlsServer: TlsServerPlan | null
  /** TLS of connections to backends, by `Route.tlsClient` or `host:port`. */
  readonly tlsClients: Readonly<Record<string, TlsClientPlan>>
  /** Longest wait for a response (`mediation.synapse.global_timeout_interval`); 0 for no limit but inactivity. */
  readonly responseTimeoutMs: number
  /** Lifetime in the resource cache (`[apim.cache.resource]`); 0 for no cache. */
  readonly resourceCacheMs: number
  /** `[apim.cors]`, for requests to no known API; null for no CORS. */
  readonly cors: CorsDefinition | null
  readonly auth: AuthPlan
  /** Content types of responses with status 500 that are logged, for plain and TLS backends. */
  readonly warnOn500: { readonly plain: string; readonly secured: string }
  readonly faults: FaultPlan
  readonly webSockets: WebSocketPlan
  /** `[transport.blocking_http]` and `[transport.blocking_https]`. */
  readonly blockingCalls: BlockingCalls
  /** Endpoints that sequences name or contain. */
  readonly sequenceEndpoints: SequenceEndpointsPlan
  readonly throttling: ThrottlePlan
  /** The Redis of counters that gateways share; null for none. */
  readonly redis: RedisPlan | null
  readonly workers: WorkerSettings
  /** Limits of bodies that flows on workers read. */
  readonly bodies: BodyLimits
  /** Builders, formatters and conversions of bodies that sequences read. */
  readonly formats: FormatSettings
}

/** Changes of a reload to the APIs of a reactor. */
export interface ApiChanges {
  /** Identities (`apiIdentity`). */
  readonly removed: readonly string[]
  /** New and changed APIs. */
  readonly deployed: readonly ApiPlan[]
}

export interface ReactorPlan extends LivePlan {
  /** `server.hostname`. */
  readonly hostName: string
  /** `force_json_validation` and `force_xml_validation`, by the transport of the client; null where none is set. */
  readonly bodyChecks: BodyChecks | null
  /** Null: flows are not counted. */
  readonly statistics: StatisticsSettings | null
  /** Null without handlers. */
  readonly handlers: HandlersPlan | null
  /** Longest time of one call of a module of the operator on the reactor, in milliseconds. */
  readonly moduleLimitMs: number
  /** Index of this reactor, from 0. */
  readonly reactor: number
  readonly reactors: number
  /** The home folder, for modules of the operator. */
  readonly home: string
  /** Database of mounted APIs; null: the configuration names no supported one. */
  readonly database: DatabasePlan | null
  readonly accessLog: AccessLogPlan
  /** Null: no events for analytics. */
  readonly analytics: AnalyticsSettings | null
  /** Null: requests are not traced. */
  readonly traces: TraceSettings | null
  readonly apis: readonly ApiPlan[]
  /** Socket implementation. */
  readonly level: 'handles' | 'streams'
  readonly listeners: readonly ListenerPlan[]
  /** Limits that follow from the open files of the process. */
  readonly connectionLimits: ConnectionLimits
  readonly metrics: SharedArrayBuffer
  /** Metrics of APIs, by row (observe/api-metrics.ts). */
  readonly apiMetrics: SharedArrayBuffer
  /** Client connections by `CLIENT_ROWS` (proxy/source/admission.ts), all backend connections, one slot per route. */
  readonly gauge: SharedArrayBuffer
  /** States of the endpoints, by slot (proxy/target/endpoint-table.ts). */
  readonly endpoints: SharedArrayBuffer
  /** Connections by hash of the client address, in CLIENT_SLOTS slots; one slot without such a limit. */
  readonly clients: SharedArrayBuffer
  readonly clientSeed: number
  /** Name of this node in Via, new with each start. */
  readonly pseudonym: string
  /** Stands in Via of calls of sequences, as a proof that they are its own; new with each start. Lower case. */
  readonly callToken: string
  /** One cell per reactor, which the reactor increments while it is alive. */
  readonly heartbeats: SharedArrayBuffer
  /** Counters of limits (throttle/counter-table.ts); kept over reloads and replaced threads. */
  readonly counters: SharedArrayBuffer
  /** Permits of worker threads, by `PERMIT_ROWS` (runtime/shared-permits.ts). */
  readonly permits: SharedArrayBuffer
  /** Wake-ups of the work of mounted APIs, by identity (runtime/shared-wakes.ts). */
  readonly wakes: SharedArrayBuffer
  /** One cell, incremented after each update of the control thread (auth/control-protocol.ts). */
  readonly authVersion: SharedArrayBuffer
}

export const CLIENT_SLOTS = 65_536
