/** Between the primary and the authority's thread: plain data, by message. */
import type { MessagePort } from 'node:worker_threads'
import type { Configuration } from './config/catalogue.ts'
import type { DeclaredApplications } from './identity/declared-applications.ts'
import type { BackendTokenPlan, IssuerPlan } from './identity/identity-plan.ts'
import type { ManagementRequest } from './management/commands.ts'
import type { ManagementPlan } from './management-plan.ts'
import type { LogEvent } from './observe/events.ts'
import type { TlsClientPlan } from './socket/tls.ts'

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
  /** With a key manager of its own, its database and its management listener; else it asks another node's. */
  readonly runsKeyManager: boolean
  /** Whom it trusts where it asks others over TLS: by `host:port`, else `default`; without it, whom Node trusts. */
  readonly trust: Readonly<Record<string, TlsClientPlan>>
  /** `iss` of the tokens of the key manager that this gateway belongs to. */
  readonly ownIssuer: string
  /** Whose tokens are accepted. */
  readonly issuers: readonly IssuerPlan[]
  /** What backends ask of the gateway; holds secrets. */
  readonly backends: readonly BackendTokenPlan[]
  /** Of the listener for management and key manager; null without one. */
  readonly management: ManagementPlan | null
  /** What files of the home say of applications; they stand beside those of the database. */
  readonly declared: DeclaredApplications
  /** Goes up by one after all reactors were told something. */
  readonly epoch: SharedArrayBuffer
  /** A column of the table of counters. */
  readonly metrics: SharedArrayBuffer
  readonly column: number
}

/** What a thread is begun with. */
export interface AuthorityThreadData {
  readonly compileCache: string
  /** What it will need is loaded while it waits for its plan. */
  readonly runsKeyManager: boolean
  /** One cell, counted up while the thread is alive. */
  readonly beats: Int32Array
}

export type ToAuthority =
  | { readonly kind: 'start'; readonly plan: AuthorityPlan }
  | { readonly kind: 'reload'; readonly plan: AuthorityPlan }
  /** The line to a reactor that begins; that of its predecessor is dead. */
  | { readonly kind: 'line'; readonly reactor: number; readonly port: MessagePort }
  /** Of the command line: answered by `managed` or `unmanaged` with the same number. */
  | { readonly kind: 'manage'; readonly id: number; readonly request: ManagementRequest }
  /** What the primary answers to a question. */
  | { readonly kind: 'told'; readonly id: number; readonly value: object }
  | { readonly kind: 'untold'; readonly id: number; readonly cause: string }
  | { readonly kind: 'stop' }

/** What the authority cannot know by itself: APIs are the primary's. */
export type PrimaryQuestion =
  | { readonly kind: 'apis' }
  | { readonly kind: 'lifecycle'; readonly name: string; readonly action: string; readonly sunsetMs?: number }

export type FromAuthorityThread =
  /** `port`: that of the management listener; 0 without one. `said`: for whoever starts it, on standard output. */
  | { readonly kind: 'started'; readonly port: number; readonly said: readonly string[] }
  | { readonly kind: 'failed'; readonly cause: string }
  /** A reload is in force, or why it is not; '' if it is. */
  | { readonly kind: 'reloaded'; readonly cause: string }
  | { readonly kind: 'event'; readonly event: LogEvent }
  | { readonly kind: 'managed'; readonly id: number; readonly value: object }
  | { readonly kind: 'unmanaged'; readonly id: number; readonly cause: string }
  /** Answered by `told` or `untold` with the same number. */
  | { readonly kind: 'question'; readonly id: number; readonly question: PrimaryQuestion }
  | { readonly kind: 'stopped' }
