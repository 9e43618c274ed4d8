/** The plan of the control thread, and the messages between it and the primary. */
import type { MessagePort } from 'node:worker_threads'
import type { Configuration } from '../config/catalogue.ts'
import type { DeclaredApplications } from '../auth/records.ts'
import type { BackendTokenPlan, IssuerPlan } from '../auth/auth-plan.ts'
import type { CallMessage, ResultMessage } from '../runtime/call-channel.ts'
import type { ManagementCommand } from '../control/admin-api/commands.ts'
import type { ManagedApi } from '../control/admin-api/admin-services.ts'
import type { ConfigurationRow, DashboardPart, DashboardParts } from './dashboard-messages.ts'
import type { ManagementPlan } from './management-plan.ts'
import type { ReceiverPlan } from './receiver-planning.ts'
import type { ThreadData, ThreadReport } from './thread-messages.ts'
import type { ThrottlePlan } from '../throttle/throttle-plan.ts'
import type { TlsClientPlan } from '../socket/tls.ts'

/** An API as the control thread knows it. */
export interface ApiRecord {
  readonly name: string
  readonly version: string
  readonly context: string
  readonly provider: string
  readonly state: string
  readonly tiers: readonly string[]
  readonly scopes: readonly { readonly name: string; readonly roles: readonly string[] }[]
}

export interface ControlPlan {
  readonly configuration: Configuration
  readonly home: string
  readonly dataDir: string
  /** Milliseconds that a start waits for a database that cannot be reached. */
  readonly databaseWaitMs: number
  readonly apis: readonly ApiRecord[]
  /** Runs the key manager with database and management listener; otherwise calls that of another node. */
  readonly runsKeyManager: boolean
  /** Runs reactors. */
  readonly runsGateway: boolean
  /** Null: this node receives no reports of gateways. */
  readonly receiver: ReceiverPlan | null
  /** Trust for TLS to other servers, by `host:port`, then `default`; without an entry: the authorities of Node. */
  readonly trust: Readonly<Record<string, TlsClientPlan>>
  /** `iss` of the tokens of this node's key manager, local or remote. */
  readonly ownIssuer: string
  /** The operator has named no issuer: that of a database server comes first. */
  readonly takesIssuer: boolean
  /** Issuers whose tokens are accepted. */
  readonly issuers: readonly IssuerPlan[]
  /** Tokens that backends ask of the gateway; holds secrets. */
  readonly backends: readonly BackendTokenPlan[]
  /** Null: no management listener. */
  readonly management: ManagementPlan | null
  /** Applications of the home's files, beside those of the database. */
  readonly declared: DeclaredApplications
  /** Settings of throttling, and the policies of the home's files. */
  readonly throttling: ThrottlePlan
  /** One cell: the version number of what reactors know (auth/control-protocol.ts). */
  readonly authVersion: SharedArrayBuffer
  /** Table of counters, and the column of the control thread in it. */
  readonly metrics: SharedArrayBuffer
  readonly column: number
}

export interface ControlThreadData extends ThreadData {
  /** The modules of the key manager load while the thread waits for its plan. */
  readonly runsKeyManager: boolean
  /** One cell that the thread counts up while it is alive. */
  readonly heartbeats: Int32Array
}

export interface ControlStarted {
  /** Port of the management listener; 0: none. */
  readonly port: number
  /** Null unless this start has created the account. */
  readonly firstAccount: FirstAccount | null
  /** The issuer that the database has given this node; '' where it uses that of its configuration. */
  readonly sharedIssuer: string
}

/** The account of the super admin with its generated password, which is shown on a terminal only. */
export interface FirstAccount {
  readonly username: string
  readonly password: string
}

/** A call of the primary to the control thread. */
export type SupervisorCall =
  /** Apply another plan. Where it fails, nothing has changed. */
  | { readonly kind: 'reload'; readonly plan: ControlPlan }
  /** A management command from the command line. */
  | { readonly kind: 'manage'; readonly request: ManagementCommand }
  /** Descriptor of the management listener, for another process; NEW_SOCKET: none. */
  | { readonly kind: 'socket' }
  /** Close the management listener behind its pending requests: nothing changes any more from outside. */
  | { readonly kind: 'closeListener' }

export interface SupervisorCallResults {
  readonly reload: true
  readonly manage: object
  readonly socket: number
  readonly closeListener: true
}

/** A call of the control thread to the primary, which owns the APIs. */
export type PrimaryCall = ApiCall | DashboardCall

export type ApiCall =
  | { readonly kind: 'apis' }
  | { readonly kind: 'lifecycle'; readonly name: string; readonly action: string; readonly sunsetMs?: number }

export type DashboardCall =
  /** Asks for these parts of the dashboard. */
  | { readonly kind: 'dashboard'; readonly parts: readonly DashboardPart[] }
  /** The effective configuration, without secrets. */
  | { readonly kind: 'configuration' }

export interface PrimaryCallResults {
  readonly apis: readonly ManagedApi[]
  /** The new state. */
  readonly lifecycle: { readonly state: string }
  readonly dashboard: DashboardParts
  readonly configuration: readonly ConfigurationRow[]
}

export type ToControlThread =
  /** `fd`: an inherited socket for the management listener; NEW_SOCKET: it binds one. */
  | { readonly kind: 'start'; readonly plan: ControlPlan; readonly fd: number }
  /** Channel to a reactor that starts; it replaces the channel to the reactor's predecessor. */
  | { readonly kind: 'channel'; readonly reactor: number; readonly port: MessagePort }
  | { readonly kind: 'stop' }
  | CallMessage<SupervisorCall>
  | ResultMessage

export type FromControlThread = ThreadReport<ControlStarted> | CallMessage<PrimaryCall> | ResultMessage
