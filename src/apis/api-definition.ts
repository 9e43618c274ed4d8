/**
 * The definition of one API as its project declares it: plain data for planning and, as part of the plan, for reactors.
 * Imports only types, so every thread can load this file.
 */
import type { Diagnostic } from '../config/diagnostics.ts'
import type { AdmissionPlan } from '../mediation/flow-plan.ts'
import type { TemplatePiece } from '../mediation/endpoint-plan.ts'
import type { SequencePlan } from '../mediation/sequence-plan.ts'

/** Lifecycle state, in capitals as exports write it. */
export type LifecycleState = 'CREATED' | 'PROTOTYPED' | 'PUBLISHED' | 'BLOCKED' | 'DEPRECATED' | 'RETIRED'

export type Transport = 'http' | 'https'

/**
 * The treatment of a request whose path holds `%2F`: refused; passed on as it is, as part of one segment; or decoded,
 * as the end of a segment.
 */
export type EscapedSlashes = 'refuse' | 'pass' | 'decode'

export interface ApiDefinition {
  readonly name: string
  /** Starts with a slash, has none at the end, may hold segments `{version}` and `{name}`: `/t/{tenant}/echo`. */
  readonly context: string
  readonly version: string
  readonly isDefaultVersion: boolean
  /** The context alone is the path of the API; left out: its version is part of the path. */
  readonly isUnversioned?: true
  /** As declared; changes made on the command line are lifecycle records (lifecycle-records.ts). */
  readonly lifecycle: LifecycleState
  /** Listeners that serve the API. */
  readonly transports: readonly Transport[]
  /** Virtual hosts in lower case; empty for every host. */
  readonly hosts: readonly string[]
  /** Key type of a request without a key: SANDBOX on a gateway with sandbox endpoints only. */
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
  readonly escapedSlashes: EscapedSlashes
  /** True for an API of a language model. */
  readonly isAi: boolean
  /** The backend sends events that may never end (type SSE); left out: another API. */
  readonly isEventStream?: true
  readonly access: ApiAccess
  /** Hard limits towards the backends (`maxTps`), by key type. */
  readonly hardLimits: HardLimits
  /** Clients known by their certificates. */
  readonly clientCertificates: readonly ClientCertificate[]
  /** Credentials that the gateway sends to the backends; holds secrets. */
  readonly credentials: CredentialsByKeyType
  /** CORS settings of the API itself; null for those of `[apim.cors]`. */
  readonly cors: CorsOverrides | null
  /** Empty for every path and method. */
  readonly resources: readonly ResourceDefinition[]
  /** Production endpoints; may be empty. */
  readonly endpoints: EndpointsDefinition
  /** Sandbox endpoints; may be empty. */
  readonly sandbox: EndpointsDefinition
  /** Null: the API has endpoints. */
  readonly mounted: MountedDefinition | null
  /** Null: the project has neither sequences nor policies. */
  readonly mediation: MediationDefinition | null
}

/** The implementation of an API in the worker pool of the gateway, in place of endpoints. */
export interface MountedDefinition {
  /** Absolute path of an ES module, or the name of a built-in one: `sluice:sample`. */
  readonly module: string
  /** SHA-256 of the file, so that a changed module is a changed API; '' for a built-in one. */
  readonly digest: string
  /** As the project writes them. */
  readonly settings: Readonly<Record<string, unknown>>
  /** Key types that the gateway accepts. */
  readonly keyTypes: Readonly<Record<'production' | 'sandbox', boolean>>
  readonly work: WorkStart
}

/**
 * When work beside requests begins. `start`: with the gateway. `use`: with the database of the API, or its first
 * request. `off`: the project switches it off. `none`: nobody speaks of work.
 */
export type WorkStart = 'start' | 'use' | 'off' | 'none'

/** Sequences and policies of the project of an API. */
export interface MediationDefinition {
  /** Sequences of the project, and those that its policies became; their names are unique within the API. */
  readonly sequences: readonly SequencePlan[]
  /** Extension sequences of the project, by flow. */
  readonly extensions: FlowNames
  /** Policies of the whole API. */
  readonly policies: FlowNames
  /** Policies of operations, by `VERB template` of `resources`. */
  readonly byOperation: Readonly<Record<string, FlowNames>>
  /** Sequences of the home that the project names; left out: none. */
  readonly ofHome?: readonly HomeSequence[]
  /** Sequences of the gateway itself, which run before all others; left out: none. */
  readonly first?: FirstSequences
  /** Admission of the operations of GraphQL queries; left out: the resource of a request decides. */
  readonly admission?: AdmissionPlan
}

/** A sequence of the home that a project names. */
export interface HomeSequence {
  readonly name: string
  /** Refuses the project where the home has no such sequence. */
  readonly missing: Diagnostic
}

/** Sequences that run before those of the home and of the project. */
export interface FirstSequences {
  readonly request: readonly string[]
  readonly response: readonly string[]
  /** Operations whose response flow does not begin with them, as `VERB template` of `resources`. */
  readonly unread: readonly string[]
}

/** The sequence that ends each request flow of an API whose sequences choose the backend, or stand for it. */
export const DESTINATION_SEQUENCE = '(to the destination)'

/** Names of the sequences that run in each flow, in order. */
export type FlowNames = Readonly<Record<Flow, readonly string[]>>

export type Flow = 'request' | 'response' | 'fault'

export const FLOWS: readonly Flow[] = ['request', 'response', 'fault']

/** No sequence in any flow. */
export const NO_FLOW_NAMES: FlowNames = { request: [], response: [], fault: [] }

/** Requests of all callers together; null: no limit. */
export type HardLimits = Readonly<Record<'production' | 'sandbox', HardLimit | null>>

export interface HardLimit {
  /** At least 1. */
  readonly limit: number
  readonly unit: 'sec' | 'min' | 'hour'
}

export const NO_HARD_LIMITS: HardLimits = { production: null, sandbox: null }

/** The access to an API: its callers, and their plans. */
export interface ApiAccess {
  /** Account of the publisher; '' if the project names none. */
  readonly provider: string
  /** Subscription plans. */
  readonly plans: readonly string[]
  /** Throttling policy of the whole API, in place of those of its resources; '' for none. */
  readonly tier: string
  /** Header that carries the credentials of clients; '' for the header of `[apim.oauth_config]`. */
  readonly authHeader: string
  /** Security schemes as the project spells them, in lower case: `oauth2`, `api_key`. */
  readonly securitySchemes: readonly string[]
  /** Scope -> roles. A user needs one of them; a scope without roles is open to every user. */
  readonly scopeRoles: Readonly<Record<string, readonly string[]>>
}

export interface ClientCertificate {
  readonly alias: string
  /** SHA-256 of the DER form in base64url, as in certificate-bound tokens (RFC 8705 3.1). */
  readonly thumbprint: string
  /** Throttling policy; '' for none. */
  readonly tier: string
}

/** Credentials that the gateway presents to a backend. */
export type EndpointCredentials =
  | { readonly kind: 'basic'; readonly username: string; readonly password: string }
  | {
      readonly kind: 'oauth2'
      readonly tokenUrl: string
      readonly clientId: string
      readonly clientSecret: string
      readonly scopes: readonly string[]
      /** Additional parameters of the token request. */
      readonly parameters: Readonly<Record<string, string>>
    }

/** Null: the backends of that key type ask for no credentials. */
export type CredentialsByKeyType = Readonly<Record<'production' | 'sandbox', EndpointCredentials | null>>

/** One operation. */
export interface ResourceDefinition {
  /** Starts with a slash: `/pets/{petId}`, `/menu/*`. */
  readonly template: string
  /** HTTP method in capitals; `*` for any. */
  readonly verb: string
  readonly authType: 'None' | 'Application' | 'Application User' | 'Application & Application User'
  /** Throttling policy. */
  readonly tier: string
  /** Any one of these is enough; empty for no scope. */
  readonly scopes: readonly string[]
}

export interface CorsDefinition {
  readonly enabled: boolean
  /** Origins, `*`, or patterns with `*`. */
  readonly origins: readonly string[]
  readonly methods: readonly string[]
  readonly headers: readonly string[]
  readonly exposedHeaders: readonly string[]
  readonly credentials: boolean
  /** Lifetime of a preflight response in seconds; -1 for the browser's own default. */
  readonly maxAgeS: number
}

/** CORS settings of one API; absent fields come from `[apim.cors]`. */
export type CorsOverrides = Pick<CorsDefinition, 'enabled'> & Partial<CorsDefinition>

/** The endpoints of one key type. */
export interface EndpointsDefinition {
  readonly kind: 'single' | 'failover' | 'load_balance'
  readonly algorithm: 'round_robin' | 'weighted' | 'least_pending'
  /** For load balancing: a failed request goes to the next endpoint. */
  readonly failsOver: boolean
  /** In the order in which they are tried; exactly one for `single`, empty if the API has none of this key type. */
  readonly endpoints: readonly EndpointDefinition[]
  /** Path with variables behind that of each endpoint; left out: none. */
  readonly template?: readonly TemplatePiece[]
  /** Groups within the group, which follow each other in `endpoints`; left out: none. */
  readonly parts?: readonly EndpointPart[]
}

/** A group within a group. */
export interface EndpointPart {
  /** Number of its endpoints. */
  readonly size: number
  /** Its endpoints are tried in order; else in turn. */
  readonly isInOrder: boolean
  /** A failed request goes to the next endpoint of the part. */
  readonly failsOver: boolean
}

export interface EndpointDefinition {
  /** http, https, ws or wss. */
  readonly url: string
  readonly settings: EndpointSettings
}

/** Consequences of failures of an endpoint: its states TIMEOUT and SUSPENDED. Times in milliseconds. */
export interface EndpointSettings {
  /**
   * Every lost connection and every late response counts by itself, as the reference platform has it: only for an
   * endpoint of a group that configures time-outs or suspension. Others count them in a row (`suspend.failures`).
   */
  readonly eachFailureCounts: boolean
  /** Timeouts in a row that only delay the next try, before the endpoint is suspended. */
  readonly retriesBeforeSuspension: number
  /** Time until an endpoint in TIMEOUT is tried again. */
  readonly retryDelayMs: number
  /** First suspension; 0: the endpoint is never suspended. */
  readonly suspensionMs: number
  /** Each further suspension is longer by this factor. */
  readonly suspensionFactor: number
  /** Longest suspension; 0: the endpoint is never suspended. */
  readonly suspensionMaxMs: number
  /** Error codes that lead to TIMEOUT; -1 alone for none. Empty: 101504 and 101505, where each failure counts. */
  readonly timeoutCodes: readonly number[]
  /** Error codes that suspend; -1 alone for none. Empty: failures to connect, and others where each failure counts. */
  readonly suspendCodes: readonly number[]
  /** Longest wait for a response; 0 for the limit of all endpoints. */
  readonly responseTimeoutMs: number
  /** Share of the load in weighted balancing. */
  readonly weight: number
  /** Each connection begins with a PROXY header about the client, and serves one request. */
  readonly sendsProxyHeader: boolean
  /** Null for no active health checks. */
  readonly healthCheck: HealthCheckSettings | null
}

/** An active health check: a GET whose status below 400 counts as healthy. */
export interface HealthCheckSettings {
  readonly path: string
  readonly intervalMs: number
  readonly timeoutMs: number
  /** Failures in a row that suspend the endpoint. */
  readonly unhealthyAfter: number
  /** Successes in a row that end the suspension. */
  readonly healthyAfter: number
}

export const DEFAULT_ENDPOINT_SETTINGS: EndpointSettings = {
  eachFailureCounts: false,
  retriesBeforeSuspension: 0,
  retryDelayMs: 0,
  suspensionMs: 30_000,
  suspensionFactor: 1,
  suspensionMaxMs: Number.MAX_SAFE_INTEGER,
  timeoutCodes: [],
  suspendCodes: [],
  responseTimeoutMs: 0,
  weight: 1,
  sendsProxyHeader: false,
  healthCheck: null,
}

/** The only endpoint of an API is tried again soon and often: there is no other one to use meanwhile. */
export const LONE_ENDPOINT_SETTINGS: EndpointSettings = {
  ...DEFAULT_ENDPOINT_SETTINGS,
  suspensionMs: 1000,
  suspensionFactor: 2,
  suspensionMaxMs: 10_000,
}

/** Resources of an API, and the operations of a GraphQL API. */
export function operationsOf({
  resources,
  mediation,
}: {
  readonly resources: readonly ResourceDefinition[]
  readonly mediation: { readonly admission?: AdmissionPlan } | null
}): readonly ResourceDefinition[] {
  const operations = mediation?.admission?.operations ?? []
  return operations.length === 0 ? resources : [...resources, ...operations]
}

export const NO_ENDPOINTS: EndpointsDefinition = {
  kind: 'single',
  algorithm: 'round_robin',
  failsOver: false,
  endpoints: [],
}

/** Production and sandbox endpoints. */
export function endpointsOf<E>(
  api: Record<'endpoints' | 'sandbox', { readonly endpoints: readonly E[] }>,
): readonly E[] {
  return [...api.endpoints.endpoints, ...api.sandbox.endpoints]
}

export function hasWebSocketEndpoint(api: Pick<ApiDefinition, 'endpoints' | 'sandbox'>): boolean {
  return endpointsOf(api).some(({ url }) => /^wss?:/i.test(url))
}
