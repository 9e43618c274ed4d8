/** What the primary hands to a reactor: plain data and shared memory, nothing else. */
import type { Configuration } from './config/catalogue.ts'

/** One API, with its backend resolved to a row of the shared gauge. */
export interface ApiPlan {
  readonly name: string
  /** Paths under which it is reached. */
  readonly paths: readonly string[]
  readonly host: string
  readonly port: number
  readonly basePath: string
  /** Row of its backend in the shared gauge. */
  readonly row: number
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
  /** Port to listen on, with the offset in it; 0 only for a single reactor. */
  readonly port: number
  readonly metrics: SharedArrayBuffer
  /** Row 0: client connections; then a row per backend. */
  readonly gauge: SharedArrayBuffer
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
  | { readonly kind: 'listening'; readonly port: number }
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
  /** Tests only, under a switch of the environment: block the event loop for good. */
  | { readonly kind: 'hang' }
