/** What clients are told of users: chosen by scope (OpenID Connect Core 5.4), named as configured. */
import type { Client } from '../registry/entities.ts'
import type { Claims, ClaimFacts } from './extensions.ts'
import type { KeyManager } from './key-manager.ts'
import type { Subject } from './subjects.ts'

const DIALECT = 'http://wso2.org/claims/'

/** Names of claims by the scope that opens them. */
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

/** What attributes of user stores are called in OpenID Connect. */
const OIDC_NAMES: Readonly<Record<string, string>> = {
  [`${DIALECT}fullname`]: 'name',
  [`${DIALECT}displayName`]: 'name',
  [`${DIALECT}lastname`]: 'family_name',
  [`${DIALECT}givenname`]: 'given_name',
  [`${DIALECT}middleName`]: 'middle_name',
  [`${DIALECT}nickname`]: 'nickname',
  [`${DIALECT}username`]: 'preferred_username',
  [`${DIALECT}url`]: 'website',
  [`${DIALECT}photourl`]: 'picture',
  [`${DIALECT}gender`]: 'gender',
  [`${DIALECT}dob`]: 'birthdate',
  [`${DIALECT}timeZone`]: 'zoneinfo',
  [`${DIALECT}local`]: 'locale',
  [`${DIALECT}emailaddress`]: 'email',
  [`${DIALECT}identity/emailVerified`]: 'email_verified',
  [`${DIALECT}telephone`]: 'phone_number',
  [`${DIALECT}mobile`]: 'phone_number',
  [`${DIALECT}addresses`]: 'address',
}

export const CLAIM_NAMES: readonly string[] = [...SCOPE_OF.keys()]

export function claimFacts({ consumerKey }: Client, subject: Subject, scopes: readonly string[]): ClaimFacts {
  const { name, tenant, roles, isApplication } = subject
  return { client: consumerKey, user: isApplication ? null : { name, tenant, roles }, scopes }
}

/** Without `sub`. Throws OAuthRefusal where a module of the operator's fails. */
export async function userClaims(
  manager: KeyManager,
  client: Client,
  subject: Subject,
  scopes: readonly string[],
): Promise<Claims> {
  if (subject.isApplication) return {}
  const { namesClaimsByOidc, addsUnmappedAttributes } = manager.settings
  const found = await manager.extensions.userClaims(claimFacts(client, subject, scopes))
  const told: Record<string, unknown> = scopes.includes('profile') ? { preferred_username: subject.name } : {}
  for (const [stored, value] of Object.entries(found ?? subject.claims)) {
    const meaning = OIDC_NAMES[stored] ?? stored
    const scope = SCOPE_OF.get(meaning)
    const isMapped = scope !== undefined
    if (isMapped ? !scopes.includes(scope) : !addsUnmappedAttributes || !scopes.includes('profile')) continue
    told[isMapped && namesClaimsByOidc ? meaning : stored] = typed(meaning, value)
  }
  return told
}

/** Claims that are not text (OpenID Connect Core 5.1). */
function typed(name: string, value: unknown): unknown {
  if (name.endsWith('_verified')) return value === true || value === 'true'
  if (name === 'updated_at') return Number(value)
  if (name === 'address' && typeof value === 'string') return { formatted: value }
  return value
}
