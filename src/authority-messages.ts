/** Between the primary and the authority's thread: plain data, by message. */
import type { MessagePort } from 'node:worker_threads'
import type { Configuration } from './config/catalogue.ts'
import type { LogEvent } from './observe/events.ts'

/** What an API is to the authority. */
export interface ApiFacts {
  readonly name: string
  readonly version: string
  readonly context: string
  readonly provider: string
  readonly state: string
  readonly tiers: readonly string[]
  readonly scopes: readonly { readonly name: string; readonly roles: readonly string[] }[]
}

/** What a start or a reload hands over. */
export interface AuthorityPlan {
  readonly configuration: Configuration
  readonly home: string
  readonly dataDir: string
  readonly apis: readonly ApiFacts[]
  /** Goes up by one after all reactors were told something. */
  readonly epoch: SharedArrayBuffer
  /** A column of the table of counters. */
  readonly metrics: SharedArrayBuffer
  readonly column: number
}

export type ToAuthority =
  | { readonly kind: 'start'; readonly plan: AuthorityPlan }
  | { readonly kind: 'reload'; readonly plan: AuthorityPlan }
  /** The line to a reactor that begins; that of its predecessor is dead. */
  | { readonly kind: 'line'; readonly reactor: number; readonly port: MessagePort }
  | { readonly kind: 'stop' }

export type FromAuthorityThread =
  | { readonly kind: 'started'; readonly port: number }
  | { readonly kind: 'failed'; readonly cause: string }
  | { readonly kind: 'event'; readonly event: LogEvent }
  | { readonly kind: 'stopped' }
