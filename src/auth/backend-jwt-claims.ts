/** Claims of the backend JWT: about caller and API in the documented dialect, and further claims of the user. */
import { SUPER_TENANT } from './account-names.ts'
import { accountOf, type Caller } from '../proxy/exchange/caller.ts'

export type BackendJwtClaims = Readonly<Record<string, unknown>>

export interface BackendApi {
  readonly name: string
  readonly version: string
  /** Including the version. */
  readonly context: string
}

/** Number of SUPER_TENANT, as documented. */
const SUPER_TENANT_ID = '-1234'
/** Claims about the token or its OAuth exchange, not about a user. */
const NOT_ABOUT_USER = new Set([
  ...['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'azp', 'client_id', 'consumerKey', 'scope', 'cnf', 'aut', 'act'],
  ...['typ', 'at_hash', 'c_hash', 'nonce', 'sid', 'auth_time', 'token_type', 'active', 'events', 'binding_type'],
  'tenant',
])

/** Claims about the application are left out where the caller has none. */
export function callerClaims(caller: Caller, api: BackendApi, prefix: string): BackendJwtClaims {
  const { application, tenant } = caller
  const claims: Record<string, unknown> = {}
  if (application !== null) {
    claims[`${prefix}subscriber`] = application.owner
    claims[`${prefix}applicationid`] = application.id
    claims[`${prefix}applicationname`] = application.name
    claims[`${prefix}applicationtier`] = application.tier
    claims[`${prefix}applicationUUId`] = application.id
    claims[`${prefix}applicationAttributes`] = application.attributes
  }
  claims[`${prefix}apiname`] = api.name
  claims[`${prefix}apicontext`] = api.context
  claims[`${prefix}version`] = api.version
  claims[`${prefix}tier`] = caller.subscriptionTier
  claims[`${prefix}keytype`] = caller.keyType
  claims[`${prefix}usertype`] = caller.isApplication ? 'APPLICATION' : 'APPLICATION_USER'
  claims[`${prefix}enduser`] = accountOf(caller)
  claims[`${prefix}enduserTenantId`] = tenant === SUPER_TENANT ? SUPER_TENANT_ID : tenant
  return claims
}

/** Claims of the token, then those of the user store, which win. A name that is a URI gets no prefix. */
export function userClaims(stored: BackendJwtClaims, { claims }: Caller, prefix: string): BackendJwtClaims {
  const ofToken = Object.entries(claims).filter(([name]) => !NOT_ABOUT_USER.has(name))
  const all = [...ofToken, ...Object.entries(stored)]
  return Object.fromEntries(all.map(([name, value]) => [name.includes('://') ? name : `${prefix}${name}`, value]))
}
