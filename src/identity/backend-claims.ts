/** What a backend is told of a caller: the claims of the documented dialect, and what else is known of a user. */
import { SUPER_TENANT } from '../config/account-names.ts'
import type { Caller } from '../exchange/caller.ts'

export type JwtClaims = Readonly<Record<string, unknown>>

/** What of an API stands in the token. */
export interface BackendApi {
  readonly name: string
  readonly version: string
  /** With its version. */
  readonly context: string
}

/** Number of the tenant that is there without being made, as documented. */
const SUPER_TENANT_ID = '-1234'
/** Of the token itself, or of the OAuth around it: nothing about a user. */
const NOT_OF_THE_USER = new Set([
  ...['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'azp', 'client_id', 'consumerKey', 'scope', 'cnf', 'aut', 'act'],
  ...[
    'typ',
    'at_hash',
    'c_hash',
    'nonce',
    'sid',
    'auth_time',
    'token_type',
    'active',
    'events',
    'binding_type',
    'tenant',
  ],
])

/** Whoever names no application has none of its claims. */
export function callerClaims(caller: Caller, api: BackendApi, prefix: string): JwtClaims {
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
  claims[`${prefix}enduser`] = tenant === '' || caller.user.endsWith(`@${tenant}`) ? caller.user : endUser(caller)
  claims[`${prefix}enduserTenantId`] = tenant === SUPER_TENANT ? SUPER_TENANT_ID : tenant
  return claims
}

function endUser({ user, tenant }: Caller): string {
  return `${user}@${tenant}`
}

/** What the caller's token says of its user, and what the store does, which wins. Names that are URIs stay so. */
export function userClaims(known: JwtClaims, { claims }: Caller, prefix: string): JwtClaims {
  const ofToken = Object.entries(claims).filter(([name]) => !NOT_OF_THE_USER.has(name))
  const all = [...ofToken, ...Object.entries(known)]
  return Object.fromEntries(all.map(([name, value]) => [name.includes('://') ? name : `${prefix}${name}`, value]))
}
