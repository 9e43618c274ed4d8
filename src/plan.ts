/** What the primary hands to a reactor: plain data and shared memory, nothing else. */
import type {
  CorsDefinition,
  EndpointsDefinition,
  LifecycleState,
  ResourceDefinition,
  Transport,
} from './config/api-definition.ts'
import type { Configuration } from './config/catalogue.ts'
import type { EndpointSettings } from './config/endpoint-settings.ts'
import type { AccessPlan, CredentialPlans, IdentityPlan } from './identity/identity-plan.ts'
import type { SequenceProgram } from './mediation/program.ts'
import type { TlsClientPlan, TlsServerPlan } from './socket/tls.ts'
import type { Route } from './target/route.ts'

/** One server that answers for an API, and what its failures mean. Times in milliseconds. */
export interface EndpointPlan {
  /** Row in the shared table of endpoint states; unique. */
  readonly row: number
  /** As configured, without credentials: `http://10.0.0.7:8080/base`. */
  readonly url: string
  readonly route: Route
  /** Path of the URL without a slash at its end. */
  readonly basePath: string
  readonly settings: EndpointSettings
}

/** As the project of the API has it, its endpoints planned. */
export type EndpointsPlan = Omit<EndpointsDefinition, 'endpoints'> & { readonly endpoints: readonly EndpointPlan[] }

/** Where an API stands in its life. Times in milliseconds since 1970; 0: not known, or none. */
interface LifecyclePlan {
  readonly state: LifecycleState
  readonly deprecatedAtMs: number
  readonly sunsetMs: number
}

/** One API. */
export interface ApiPlan {
  readonly name: string
  readonly version: string
  /** Paths under which it is reached; it is known by the first of them. */
  readonly paths: readonly string[]
  /** Host names under which alone it is reached, in lower case; none: every one. */
  readonly hosts: readonly string[]
  readonly transports: readonly Transport[]
  readonly lifecycle: LifecyclePlan
  /** What a request without a key counts as. */
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
  readonly isAi: boolean
  readonly access: AccessPlan
  /** What its backends ask of the gateway itself; holds secrets. */
  readonly credentials: CredentialPlans
  /** With what it leaves out taken from `[apim.cors]`, or all of it; APIs with the same share it. Null: no CORS. */
  readonly cors: CorsDefinition | null
  /** None: every path and method. */
  readonly resources: readonly ResourceDefinition[]
  /** For production keys; no endpoint in it: none. */
  readonly endpoints: EndpointsPlan
  readonly sandbox: EndpointsPlan
}

/** One listener of a reactor. */
export interface ListenerPlan {
  readonly kind: 'http' | 'https' | 'ws' | 'wss'
  readonly host: string
  /** With the offset in it; 0 only for a single reactor. */
  readonly port: number
}

/** The sequences, and how they word faults. */
export interface FaultPlan {
  readonly programs: readonly SequenceProgram[]
  /** Name of the one for AI APIs; '' for none of their own. */
  readonly aiSequence: string
}

/** Names of sequences for endpoints of a kind; '' for none of their own. */
export interface SocketSequences {
  /** Of the 101 of a backend, in the place of `outDispatchSeq`. */
  readonly dispatch: string
  /** Words what comes of it where no tunnel does. */
  readonly fault: string
}

/** By the kind of the endpoint's URL. */
export interface SocketPlan {
  readonly ws: SocketSequences
  readonly wss: SocketSequences
}

/** What a reload replaces in a reactor that runs. */
export interface LivePlan {
  /** Keys that are not live are as they were at the start. */
  readonly http: Configuration['transport.passthru_http']
  readonly logLevel: string
  /** For the secured listeners; null where there is none. */
  readonly tlsServer: TlsServerPlan | null
  /** What secured routes are secured with, by `Route.tlsClient`. */
  readonly tlsClients: Readonly<Record<string, TlsClientPlan>>
  /** Longest wait for a response, 0: no limit but that of inactivity (`mediation.synapse.global_timeout_interval`). */
  readonly responseMs: number
  /** How long the resource of a path is remembered, 0: not at all (`[apim.cache.resource]`). */
  readonly resourceMs: number
  /** Of `[apim.cors]`, for what is answered where no API is known; null: no CORS. */
  readonly cors: CorsDefinition | null
  /** Content types of 500s that are warned of, by secured and not. */
  readonly identity: IdentityPlan
  readonly warnOn500: { readonly plain: string; readonly secured: string }
  readonly faults: FaultPlan
  readonly sockets: SocketPlan
}

/** What a reload does to the APIs of a reactor. An API is known by its hosts and the first of its paths. */
export interface ApiChanges {
  readonly removed: readonly string[]
  /** New ones, and those of which anything is different. */
  readonly deployed: readonly ApiPlan[]
}

export interface ReactorPlan extends LivePlan {
  /** Which reactor, from 0, of how many. */
  readonly reactor: number
  readonly reactors: number
  /** The home folder, for modules of the operator's own. */
  readonly home: string
  readonly accessLog: Configuration['access_log']
  /** Absolute path of the access log file. */
  readonly accessLogPath: string
  readonly apis: readonly ApiPlan[]
  /** Socket implementation, decided by the primary. */
  readonly level: 'handles' | 'streams'
  readonly listeners: readonly ListenerPlan[]
  readonly metrics: SharedArrayBuffer
  /** Row 0: client connections; then a row per route. */
  readonly gauge: SharedArrayBuffer
  /** States of the endpoints, by row (target/endpoint-table.ts). */
  readonly endpoints: SharedArrayBuffer
  /** Connections by a hash of the client's address; empty when there is no such limit. */
  readonly clients: SharedArrayBuffer
  readonly clientSeed: number
  /** A cell per reactor, counted up while it is alive. */
  readonly heartbeats: SharedArrayBuffer
  /** One cell, up by one after the authority has told all reactors something (identity/feed.ts). */
  readonly identityEpoch: SharedArrayBuffer
}

export const CLIENT_ROWS = 65_536

/** From a reactor to the primary. */
export type FromReactor =
  | import('./questions.ts').Answered
  | { readonly kind: 'listening'; readonly ports: readonly number[] }
  | { readonly kind: 'failed'; readonly cause: string }
  | { readonly kind: 'event'; readonly event: import('./observe/events.ts').LogEvent }
  | { readonly kind: 'access'; readonly batch: Uint8Array }
  | { readonly kind: 'drained' }

/** From the primary to a reactor. */
export type ToReactor =
  | import('./questions.ts').Asked
  | { readonly kind: 'drain' }
  | { readonly kind: 'cutOff' }
  | { readonly kind: 'reopenLogs' }
  /** To a thread of the authority that has begun; that to its predecessor is dead. */
  | { readonly kind: 'line'; readonly port: import('node:worker_threads').MessagePort }
  /** Tests only, under a switch of the environment: block the event loop for good. */
  | { readonly kind: 'hang' }
