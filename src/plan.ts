/** What the primary hands to a reactor: plain data and shared memory, nothing else. */
import type { Configuration } from './config/catalogue.ts'
import type { EndpointSettings } from './config/endpoint-settings.ts'
import type { TlsClientPlan, TlsServerPlan } from './socket/tls.ts'

/** A forward proxy on the way to a backend. */
export interface ProxyPlan {
  readonly host: string
  readonly port: number
  /** Value of Proxy-Authorization, '' without credentials. Secret. */
  readonly authorization: string
}

/** How a backend is connected to. Endpoints with the same row share a pool of connections. */
export interface RoutePlan {
  /** Row in the shared gauge of connections. */
  readonly row: number
  readonly secured: boolean
  readonly host: string
  readonly port: number
  /** Key of `ReactorPlan.tlsClients`; '' where the route is not secured. */
  readonly tlsClient: string
  /** null: directly. A secured route goes through it by CONNECT. */
  readonly proxy: ProxyPlan | null
  /** Plain, but by CONNECT all the same: what goes through it is WebSocket (RFC 6455 4.1). */
  readonly connectsThroughProxy: boolean
}

/** One server that answers for an API, and what its failures mean. Times in milliseconds. */
export interface EndpointPlan {
  /** Row in the shared table of endpoint states; unique. */
  readonly row: number
  /** As configured, without credentials: `http://10.0.0.7:8080/base`. */
  readonly url: string
  readonly route: RoutePlan
  /** Path of the URL without a slash at its end. */
  readonly basePath: string
  readonly settings: EndpointSettings
}

export interface EndpointsPlan {
  readonly kind: 'single' | 'failover' | 'load_balance'
  readonly algorithm: 'round_robin' | 'weighted' | 'least_pending'
  /** Of load balancing: one that fails hands over to the next. */
  readonly failsOver: boolean
  /** One for `single`. In the order in which they are tried. */
  readonly endpoints: readonly EndpointPlan[]
}

/** One API. */
export interface ApiPlan {
  readonly name: string
  /** Paths under which it is reached. */
  readonly paths: readonly string[]
  readonly endpoints: EndpointsPlan
}

/** One listener of a reactor. */
export interface ListenerPlan {
  readonly kind: 'http' | 'https' | 'ws' | 'wss'
  readonly host: string
  /** With the offset in it; 0 only for a single reactor. */
  readonly port: number
}

export interface ReactorPlan {
  /** Which reactor, from 0, of how many. */
  readonly reactor: number
  readonly reactors: number
  readonly http: Configuration['transport.passthru_http']
  readonly accessLog: Configuration['access_log']
  /** Absolute path of the access log file. */
  readonly accessLogPath: string
  readonly logLevel: string
  readonly apis: readonly ApiPlan[]
  /** Socket implementation, decided by the primary. */
  readonly level: 'handles' | 'streams'
  readonly listeners: readonly ListenerPlan[]
  /** For the secured listeners; null where there is none. */
  readonly tlsServer: TlsServerPlan | null
  /** What secured routes are secured with, by `RoutePlan.tlsClient`. */
  readonly tlsClients: Readonly<Record<string, TlsClientPlan>>
  /** Longest wait for a response, 0: no limit but that of inactivity (`mediation.synapse.global_timeout_interval`). */
  readonly responseMs: number
  /** Content types of 500s that are warned of, by secured and not. */
  readonly warnOn500: { readonly plain: string; readonly secured: string }
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
  | { readonly kind: 'tls'; readonly server: TlsServerPlan | null; readonly clients: ReactorPlan['tlsClients'] }
  /** Tests only, under a switch of the environment: block the event loop for good. */
  | { readonly kind: 'hang' }
