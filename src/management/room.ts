/** What the management room is given by the thread that runs it. */
import type { DeclaredApplications } from '../identity/declared-applications.ts'
import type { EventLog } from '../observe/events.ts'
import type { Application, Client } from '../registry/entities.ts'
import type { Registry } from '../registry/registry.ts'

/** An API as the gateway has it in force. */
export interface ManagedApi {
  readonly name: string
  readonly version: string
  /** Its first path. */
  readonly context: string
  readonly provider: string
  readonly state: string
  /** What can be done to it: `Publish`, `Block`. */
  readonly actions: readonly string[]
  /** As of ISO 8601; '' where it is as declared. */
  readonly since: string
  readonly tiers: readonly string[]
  readonly transports: readonly string[]
  readonly isDefaultVersion: boolean
  readonly operations: readonly {
    readonly target: string
    readonly verb: string
    readonly authType: string
    readonly throttlingPolicy: string
    readonly scopes: readonly string[]
  }[]
}

interface LifecycleChange {
  /** `name:version`. */
  readonly name: string
  readonly action: string
}

/** APIs are the primary's. Both reject with an error whose message may be told. */
export interface ApiShelf {
  list(): Promise<readonly ManagedApi[]>
  /** Answers the new state. */
  change(change: LifecycleChange): Promise<string>
}

export interface ApiKeyTerms {
  readonly application: Application
  readonly keyType: Client['keyType']
  readonly permittedIps: readonly string[]
  readonly permittedReferers: readonly string[]
  /** Seconds; -1: as long as there can be. */
  readonly validityS: number
}

export interface GivenToken {
  readonly token: string
  /** Those of them that were granted. */
  readonly scopes: readonly string[]
  readonly validityS: number
}

/** What the key manager makes and knows. */
export interface TokenDesk {
  /** For an application itself, as client credentials would get it. */
  issue(client: Client, scopes: readonly string[]): Promise<GivenToken>
  issueApiKey(terms: ApiKeyTerms): Promise<{ readonly key: string; readonly expiresMs: number }>
  /** Of a key that this node has signed and that is not over; null for any other. */
  readApiKey(
    key: string,
  ): Promise<{ readonly jti: string; readonly applicationId: string; readonly expiresMs: number } | null>
  /** Grants that are enabled, as RFC 6749 and its extensions name them. */
  readonly grants: readonly string[]
  readonly issuer: string
}

export interface ManagementRoom {
  readonly registry: Registry
  readonly apis: ApiShelf
  readonly tokens: TokenDesk
  readonly declared: DeclaredApplications
  /** `super_admin.username`: who owns what the command line makes, where it names nobody. */
  readonly adminName: string
  /** `https://host:port`, where the endpoints of the key manager are. */
  readonly origin: string
  readonly report: EventLog['report']
  /** Milliseconds since 1970. */
  readonly now: () => number
}
