/** Services that the control thread provides to the admin API. */
import type { DeclaredApplications } from '../../auth/records.ts'
import type { EventLog } from '../../observe/events.ts'
import type { ThrottlePlan } from '../../throttle/throttle-plan.ts'
import type { Application, Client, User, Workflow } from '../registry/entities.ts'
import type { Registry } from '../registry/registry.ts'

/** An API that the gateway has deployed. */
export interface ManagedApi {
  readonly name: string
  readonly version: string
  /** First path of the API. */
  readonly context: string
  /** Hosts on which it is served; empty: on all. */
  readonly hosts: readonly string[]
  readonly provider: string
  readonly state: string
  /** Lifecycle actions that are allowed now: `Publish`, `Block`. */
  readonly actions: readonly string[]
  /** Time of the last lifecycle change (ISO 8601); '' where the state is the declared one. */
  readonly since: string
  /** Subscription tiers. */
  readonly tiers: readonly string[]
  /** Policy of the whole API; '' for none. */
  readonly tier: string
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

/** APIs of the primary. Both methods reject with an error whose message may be shown to clients. */
export interface ApiCatalogue {
  list(): Promise<readonly ManagedApi[]>
  /** Resolves with the new state. */
  change(change: LifecycleChange): Promise<string>
}

export interface ApiKeyRequest {
  readonly application: Application
  readonly keyType: Client['keyType']
  readonly permittedIps: readonly string[]
  readonly permittedReferers: readonly string[]
  /** Seconds; -1 for the maximum. */
  readonly validityS: number
}

export interface IssuedAccessToken {
  readonly token: string
  /** The granted ones among those requested. */
  readonly scopes: readonly string[]
  readonly validityS: number
}

/** Tokens and API keys of the key manager. */
export interface TokenService {
  /** A token for an application itself, as by client credentials. */
  issueToken(client: Client, scopes: readonly string[]): Promise<IssuedAccessToken>
  issueApiKey(terms: ApiKeyRequest): Promise<{ readonly key: string; readonly expiresMs: number }>
  /** Reads an API key that this node signed and that is not expired; null for any other. */
  verifyApiKey(
    key: string,
  ): Promise<{ readonly jti: string; readonly applicationId: string; readonly expiresMs: number } | null>
  /** Enabled grant types (RFC 6749 and extensions). */
  readonly grants: readonly string[]
  readonly issuer: string
}

/** Subjects that wait for approval (`[apim.workflow]`). */
interface Approvals {
  readonly subscriptions: boolean
  readonly applications: boolean
  readonly keys: boolean
  /** A workflow engine hears of each request. */
  readonly callsEngine: boolean
  /** Has the engine called for requests that it has not heard of. */
  wake(): void
}

/** Mails to users (`[apim.notification]`). Each method resolves when its mails are stored, and never rejects. */
export interface Notices {
  /** To the administrators of the requester's tenant. */
  approvalRequested(
    kind: Workflow['kind'],
    requester: { readonly name: string; readonly tenant: string },
    application: string,
  ): Promise<void>
  /** To the requester, once per request. */
  approvalDecided(workflow: Workflow): Promise<void>
  passwordReset(user: User): Promise<void>
  /** To the subscribers of other versions, once per version. */
  apiPublished(api: Pick<ManagedApi, 'name' | 'version'>): Promise<void>
  status(): Promise<object>
  /** Lets dead letters wait again. Their number. */
  retry(): Promise<number>
}

/** URLs without a slash at the end; '' for none. */
export interface PortalAddresses {
  readonly http: string
  readonly https: string
  readonly ws: string
  readonly wss: string
}

export interface PortalEnvironment {
  readonly name: string
  readonly type: string
  readonly description: string
  /** Shown where APIs are tried. */
  readonly isInConsole: boolean
  /** Addresses of the environment itself, then of its virtual hosts. */
  readonly addresses: readonly PortalAddresses[]
}

/** Settings that the portals show. */
export interface PortalSettings {
  readonly environments: readonly PortalEnvironment[]
  readonly tokenEndpoint: string
  readonly revokeEndpoint: string
  readonly showsDeprecatedApis: boolean
  /** All versions of an API, not the latest alone. */
  readonly showsAllVersions: boolean
}

export interface AdminServices {
  readonly registry: Registry
  readonly apis: ApiCatalogue
  readonly tokens: TokenService
  readonly declared: DeclaredApplications
  /** Settings of throttling, and the policies of the home's files. */
  readonly throttling: ThrottlePlan
  readonly approvals: Approvals
  /** Null: no mail is sent. */
  readonly notices: Notices | null
  readonly portal: PortalSettings
  /** `/scim2` is served. */
  readonly hasScim: boolean
  /** `super_admin.username`: default owner of what commands create. */
  readonly adminName: string
  /** `https://host:port` of the key manager's endpoints. */
  readonly origin: string
  readonly report: EventLog['report']
  /** Milliseconds since 1970. */
  readonly nowMs: () => number
}
