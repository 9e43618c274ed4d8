/** One API, as its project says: plain data, handed to planning and from there to the reactors. */
import type { ClientCertificate } from './client-certificates.ts'
import type { BothCredentials } from './endpoint-security.ts'
import type { EndpointSettings } from './endpoint-settings.ts'

/** As of the reference platform, in capitals as exports write them. */
export type LifecycleState = 'CREATED' | 'PROTOTYPED' | 'PUBLISHED' | 'BLOCKED' | 'DEPRECATED' | 'RETIRED'

export type Transport = 'http' | 'https'

export interface ApiDefinition {
  readonly name: string
  /** `/echo`: no slash at the end; may hold a segment `{version}`. */
  readonly context: string
  readonly version: string
  readonly isDefaultVersion: boolean
  /** As declared; what the command line has made of it since stands in the data folder. */
  readonly lifecycle: LifecycleState
  /** Listeners on which it is reached. */
  readonly transports: readonly Transport[]
  /** Host names under which alone it is reached, in lower case; none: every one. */
  readonly hosts: readonly string[]
  /** What a request without a key counts as: SANDBOX on a gateway that has sandbox endpoints only. */
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
  /** An API of a language model. */
  readonly isAi: boolean
  readonly access: AccessTerms
  /** Clients that are known by their certificates. */
  readonly clientCertificates: readonly ClientCertificate[]
  /** What its backends ask of the gateway; holds secrets. */
  readonly credentials: BothCredentials
  /** What it says of CORS itself; null: as `[apim.cors]`. */
  readonly cors: CorsStatement | null
  /** None: every path and method. */
  readonly resources: readonly ResourceDefinition[]
  /** No endpoint in it: none for production keys. */
  readonly endpoints: EndpointsDefinition
  /** No endpoint in it: none for sandbox keys. */
  readonly sandbox: EndpointsDefinition
}

/** Who may use an API, and how much, as it is declared. */
export interface AccessTerms {
  /** Account that has published it; '' where nobody is named. */
  readonly provider: string
  /** Names of the plans under which applications subscribe to it. */
  readonly plans: readonly string[]
  /** Name of the throttling policy of the API as a whole, in place of those of its resources; '' for none. */
  readonly tier: string
  /** Field in which clients send their credentials; '' for the one of all APIs. */
  readonly authHeader: string
  /** What clients may identify themselves with: `oauth2`, `api_key`. */
  readonly securitySchemes: readonly string[]
  /** Roles of which a user must have one, by scope; none, or no scope of the name: every user may have it. */
  readonly scopeRoles: Readonly<Record<string, readonly string[]>>
}

/** One operation, as declared. */
export interface ResourceDefinition {
  /** `/pets/{petId}`, `/menu/*`; begins with a slash. */
  readonly template: string
  /** In capitals; `*` for any. */
  readonly verb: string
  readonly authType: 'None' | 'Application' | 'Application User' | 'Application & Application User'
  /** Name of the throttling policy. */
  readonly tier: string
  /** Any one of them is enough; none: no scope is needed. */
  readonly scopes: readonly string[]
}

export interface CorsDefinition {
  readonly enabled: boolean
  /** Origins, `*`, or patterns with `*` in them. */
  readonly origins: readonly string[]
  readonly methods: readonly string[]
  readonly headers: readonly string[]
  readonly exposedHeaders: readonly string[]
  readonly credentials: boolean
  /** Seconds that a preflight may be remembered; -1: the browser's own default. */
  readonly maxAgeS: number
}

/** What it leaves out is as in `[apim.cors]`. */
export type CorsStatement = Pick<CorsDefinition, 'enabled'> & Partial<CorsDefinition>

/** Where an API is answered, as its project says. */
export interface EndpointsDefinition {
  readonly kind: 'single' | 'failover' | 'load_balance'
  readonly algorithm: 'round_robin' | 'weighted' | 'least_pending'
  /** Of load balancing: one that fails hands over to the next. */
  readonly failsOver: boolean
  /** One for `single`. In the order in which they are tried. */
  readonly endpoints: readonly EndpointDefinition[]
}

export interface EndpointDefinition {
  /** http, https, ws or wss. */
  readonly url: string
  readonly settings: EndpointSettings
}

/** Of both kinds. */
export function endpointsOf<E>(
  api: Record<'endpoints' | 'sandbox', { readonly endpoints: readonly E[] }>,
): readonly E[] {
  return [...api.endpoints.endpoints, ...api.sandbox.endpoints]
}

export const NO_ENDPOINTS: EndpointsDefinition = {
  kind: 'single',
  algorithm: 'round_robin',
  failsOver: false,
  endpoints: [],
}
