/**
 * Builds the filter chain of an API when it is deployed. A chain holds only the filters that the API needs. The primary
 * builds chains too, to describe them; those have no authentication of a reactor and see no request.
 */
import { type CorsDefinition, type HardLimit, operationsOf } from '../apis/api-definition.ts'
import { ApiKeyAuthenticator } from '../auth/api-key.ts'
import { AuthenticationFilter } from '../auth/authentication-filter.ts'
import type { Authenticator } from '../auth/authenticator.ts'
import { BackendCredentialsFilter } from '../auth/backend-credentials.ts'
import { BasicAuthenticator } from '../auth/basic.ts'
import { BearerAuthenticator } from '../auth/bearer.ts'
import type { DescribedFilter } from './filter-chain.ts'
import { CorsFilter } from './cors.ts'
import { type CorsPolicy, corsPolicyOf } from './cors-policy.ts'
import { BlockedFilter, DeprecationFilter } from './lifecycle.ts'
import { ResourceFilter } from './resources.ts'
import { MutualTlsAuthenticator } from '../auth/mutual-tls.ts'
import { TokenGrants } from '../auth/token-grants.ts'
import { TransportFilter } from './transports.ts'
import { ResourceRequirements } from '../auth/grants.ts'
import type { ReactorAuth } from '../auth/reactor-auth.ts'
import type { ApiPlan } from '../plan/reactor-plan.ts'
import { DenyFilter } from '../throttle/deny-filter.ts'
import type { LimitedApi } from '../throttle/caller-limits.ts'
import type { Quota } from '../throttle/policy.ts'
import type { Throttle } from '../throttle/throttle.ts'
import { ThrottleFilter } from '../throttle/throttle-filter.ts'

/** Filters that many APIs share. */
const TRANSPORT_ONLY = { http: new TransportFilter('http'), https: new TransportFilter('https') }
const BLOCKED = new BlockedFilter()
const RESOURCES = new ResourceFilter(false)
const RESOURCES_AND_OPTIONS = new ResourceFilter(true)
const corsFilters = new WeakMap<CorsPolicy, CorsFilter>()

/**
 * Order: transports, CORS, denied addresses and APIs, lifecycle, resources, authentication, throttling, backend
 * credentials. Unknown resources are refused before authentication, as on the reference platform. `auth`, `throttle`:
 * of the reactor; null where the chain is only described.
 */
export function buildFilterChain(
  api: ApiPlan,
  auth: ReactorAuth | null,
  throttle: Throttle | null,
): readonly DescribedFilter[] {
  const cors = corsOf(api.cors)
  const resources = cors === null ? RESOURCES : RESOURCES_AND_OPTIONS
  const chain = [
    transportOf(api),
    cors,
    new DenyFilter(throttle, api.paths[0]!),
    lifecycleOf(api),
    api.resources.length === 0 ? null : resources,
    authenticationOf(api, auth),
    new ThrottleFilter(throttle, limitedApi(api, requiresAuthentication(api))),
    backendCredentialsOf(api, auth),
  ]
  return chain.filter(filter => filter !== null)
}

/** False for created and retired APIs: their requests get the fault of an unknown API. */
export function isServed({ lifecycle: { state } }: Pick<ApiPlan, 'lifecycle'>): boolean {
  return state !== 'CREATED' && state !== 'RETIRED'
}

/** The filters that requests of the API pass, in order. */
export function describeFilterChain(api: ApiPlan): readonly { readonly name: string; readonly about: string }[] {
  if (!isServed(api)) return [{ name: 'lifecycle', about: `${api.lifecycle.state}: 404 as for an unknown API` }]
  return buildFilterChain(api, null, null).map(({ name, about }) => ({ name, about }))
}

function transportOf({ transports }: ApiPlan): TransportFilter | null {
  const [only] = transports
  return transports.length === 1 ? TRANSPORT_ONLY[only!] : null
}

function corsOf(definition: CorsDefinition | null): CorsFilter | null {
  const policy = corsPolicyOf(definition)
  if (policy === null) return null
  let filter = corsFilters.get(policy)
  if (filter === undefined) {
    filter = new CorsFilter(policy)
    corsFilters.set(policy, filter)
  }
  return filter
}

/** Null for published APIs and prototypes. */
function lifecycleOf({ lifecycle: { state, deprecatedAtMs, sunsetMs } }: ApiPlan): DescribedFilter | null {
  if (state === 'BLOCKED') return BLOCKED
  if (state !== 'DEPRECATED' || deprecatedAtMs + sunsetMs === 0) return null
  return new DeprecationFilter(deprecatedAtMs, sunsetMs)
}

/** True if any resource of the API requires authentication. */
export function requiresAuthentication({ access, resources }: Pick<ApiPlan, 'access' | 'resources'>): boolean {
  const isSecured = resources.length === 0 || resources.some(({ authType }) => authType !== 'None')
  return access.schemes.length > 0 && isSecured
}

/** True if callers of the API are authenticated; those of a prototype are not. */
export function authenticatesCallers(api: Pick<ApiPlan, 'access' | 'resources' | 'lifecycle'>): boolean {
  return requiresAuthentication(api) && api.lifecycle.state !== 'PROTOTYPED'
}

/** Null where no resource requires authentication: then the backend gets the credentials that clients send. */
function authenticationOf(
  { access, resources, keyType, mediation, lifecycle: { state } }: ApiPlan,
  auth: ReactorAuth | null,
): DescribedFilter | null {
  if (!requiresAuthentication({ access, resources })) return null
  const operations = operationsOf({ resources, mediation })
  const requirements = new ResourceRequirements(operations)
  const others = auth === null ? [] : authenticatorsOf(access, requirements, auth)
  const certificates = certificatesOf({ access, resources: operations, keyType }, requirements)
  return new AuthenticationFilter({
    auth,
    access,
    requirements,
    isOpen: state === 'PROTOTYPED',
    admitsAnonymous: mediation?.admission?.operations.some(({ authType }) => authType === 'None') === true,
    certificates,
    others,
  })
}

function certificatesOf(
  { access, resources, keyType }: Pick<ApiPlan, 'access' | 'resources' | 'keyType'>,
  requirements: ResourceRequirements,
): MutualTlsAuthenticator | null {
  if (!access.requiresCertificate && !access.schemes.includes('mutual_tls')) return null
  return new MutualTlsAuthenticator({
    access,
    keyType,
    requirements,
    scopes: new Set(resources.flatMap(({ scopes }) => scopes)),
  })
}

/** Null where backends get no caller token and require no credentials. */
function backendCredentialsOf({ name, version, paths, credentials, ...api }: ApiPlan, auth: ReactorAuth | null) {
  const hasCallers = authenticatesCallers(api)
  if (!hasCallers && credentials.production === null && credentials.sandbox === null) return null
  return new BackendCredentialsFilter({
    api: { name, version, context: paths[0]! },
    plans: credentials,
    hasCallers,
    credentials: auth?.backend ?? null,
  })
}

function authenticatorsOf(
  { schemes, api, scopeRoles }: ApiPlan['access'],
  requirements: ResourceRequirements,
  auth: ReactorAuth,
): readonly Authenticator[] {
  const grants = new TokenGrants(auth, requirements, api)
  return [
    schemes.includes('oauth2') ? new BearerAuthenticator(grants) : null,
    schemes.includes('basic') ? new BasicAuthenticator(auth, requirements, scopeRoles) : null,
    schemes.includes('api_key') ? new ApiKeyAuthenticator(grants) : null,
  ].filter(authenticator => authenticator !== null)
}

/** `hasCallers`: some resource requires credentials. */
export function limitedApi(
  { name, version, paths, access, tier, hardLimits, resources, mediation }: ApiPlan,
  hasCallers: boolean,
): LimitedApi {
  return {
    name,
    version,
    path: paths[0]!,
    provider: access.provider,
    tier,
    hard: { PRODUCTION: quotaOf(hardLimits.production), SANDBOX: quotaOf(hardLimits.sandbox) },
    resourceTiers: operationsOf({ resources, mediation }).map(resource => resource.tier),
    hasCallers,
  }
}

function quotaOf(hard: HardLimit | null): Quota | null {
  return hard === null ? null : { type: 'requests', ...hard, units: 1, window: 'tumbling' }
}
