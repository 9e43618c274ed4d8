/** Claims of users: selected by scope (OpenID Connect Core 5.4), named as configured. */
import type { Client } from '../registry/entities.ts'
import type { Claims, ClaimContext } from './extensions.ts'
import type { KeyManager } from './key-manager.ts'
import type { Subject } from './subjects.ts'

const DIALECT = 'http://wso2.org/claims/'

/** Claim names by the scope that releases them. */
const BY_SCOPE: Readonly<Record<string, readonly string[]>> = {
  profile: [
    ...['name', 'family_name', 'given_name', 'middle_name', 'nickname', 'preferred_username', 'profile', 'picture'],
    ...['website', 'gender', 'birthdate', 'zoneinfo', 'locale', 'updated_at'],
  ],
  email: ['email', 'email_verified'],
  address: ['address'],
  phone: ['phone_number', 'phone_number_verified'],
}

const SCOPE_OF: ReadonlyMap<string, string> = new Map(
  Object.entries(BY_SCOPE).flatMap(([scope, names]) => names.map(name => [name, scope] as const)),
)

/** OpenID Connect names of user store attributes. */
const OIDC_NAMES: ReadonlyMap<string, string> = new Map([
  [`${DIALECT}fullname`, 'name'],
  [`${DIALECT}displayName`, 'name'],
  [`${DIALECT}lastname`, 'family_name'],
  [`${DIALECT}givenname`, 'given_name'],
  [`${DIALECT}middleName`, 'middle_name'],
  [`${DIALECT}nickname`, 'nickname'],
  [`${DIALECT}username`, 'preferred_username'],
  [`${DIALECT}url`, 'website'],
  [`${DIALECT}photourl`, 'picture'],
  [`${DIALECT}gender`, 'gender'],
  [`${DIALECT}dob`, 'birthdate'],
  [`${DIALECT}timeZone`, 'zoneinfo'],
  [`${DIALECT}local`, 'locale'],
  [`${DIALECT}emailaddress`, 'email'],
  [`${DIALECT}identity/emailVerified`, 'email_verified'],
  [`${DIALECT}telephone`, 'phone_number'],
  [`${DIALECT}mobile`, 'phone_number'],
  [`${DIALECT}addresses`, 'address'],
])

export const CLAIM_NAMES: readonly string[] = [...SCOPE_OF.keys()]

export function claimContext({ consumerKey }: Client, subject: Subject, scopes: readonly string[]): ClaimContext {
  const { name, tenant, roles, isApplication } = subject
  return { client: consumerKey, user: isApplication ? null : { name, tenant, roles }, scopes }
}

/** Claims without `sub`. Rejects with OAuthError where an operator's module fails. */
export async function userClaims(
  manager: KeyManager,
  client: Client,
  subject: Subject,
  scopes: readonly string[],
): Promise<Claims> {
  if (subject.isApplication) return {}
  const { usesOidcClaimNames, includesUnmappedAttributes } = manager.settings
  const provided = await manager.extensions.userClaims(claimContext(client, subject, scopes))
  const claims: Record<string, unknown> = scopes.includes('profile') ? { preferred_username: subject.name } : {}
  for (const [attribute, value] of Object.entries(provided ?? subject.claims)) {
    const name = OIDC_NAMES.get(attribute) ?? attribute
    const scope = SCOPE_OF.get(name)
    const isMapped = scope !== undefined
    if (isMapped ? !scopes.includes(scope) : !includesUnmappedAttributes || !scopes.includes('profile')) continue
    claims[isMapped && usesOidcClaimNames ? name : attribute] = typed(name, value)
  }
  return claims
}

/** Types of claims that are not strings (OpenID Connect Core 5.1). */
function typed(name: string, value: unknown): unknown {
  if (name.endsWith('_verified')) return value === true || value === 'true'
  if (name === 'updated_at') return Number(value)
  if (name === 'address' && typeof value === 'string') return { formatted: value }
  return value
}
