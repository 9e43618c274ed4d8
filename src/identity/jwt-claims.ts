/** From the claims of a token to a verdict, as its issuer's terms have it. Nothing here looks at a signature. */
import { createHash } from 'node:crypto'
import { SUPER_TENANT, withoutTenant } from '../config/account-names.ts'
import type { IssuerPlan } from './identity-plan.ts'
import type { JwtClaims, StrictJwt } from './strict-jwt.ts'
import { isText, type JsonObject } from '../structure/strict-json.ts'
import type { AcceptedToken, ApiKeyTerms } from './token-verdict.ts'

/** The only fault that time mends. */
export const NOT_YET = 'not valid yet'

/** What makes a token useless now, whoever signed it. `skewMs`: by how much clocks may differ. */
export function termsFault(
  { claims, type }: StrictJwt,
  plan: IssuerPlan,
  nowMs: number,
  skewMs: number,
): string | undefined {
  const { exp, nbf, cnf } = claims
  if (exp === undefined && !isApiKey(claims, plan)) return 'it never expires'
  if (exp !== undefined && nowMs >= exp * 1000 + skewMs) return 'expired'
  if (nbf !== undefined && nowMs + skewMs < nbf * 1000) return NOT_YET
  return audienceFault(claims, plan) ?? purposeFault(claims, type, plan) ?? confirmationFault(cnf)
}

export function audienceFault({ aud = [] }: JwtClaims, { audiences }: IssuerPlan): string | undefined {
  const named = isText(aud) ? [aud] : aud
  return audiences.length === 0 || named.some(name => audiences.includes(name)) ? undefined : 'for another audience'
}

/** Tokens of the same issuer, with the same keys, that nobody may call an API with. */
function purposeFault(claims: JsonObject, type: string, plan: IssuerPlan): string | undefined {
  // What the built-in key manager makes says what it is: RFC 9068 2.1, and keys of API keys.
  if (plan.isOwn && type !== 'at+jwt' && !isApiKey(claims, plan)) return 'not an access token'
  // OpenID Connect Core 3.1.3.6 and 3.3.2.11, and words of issuers that have only one type for all tokens.
  const { token_use: use, typ } = claims
  const isOfLogin = 'at_hash' in claims || 'c_hash' in claims || use === 'id'
  const isOther = isOfLogin || (isText(typ) && ['ID', 'Refresh', 'Offline'].includes(typ))
  return isOther && type !== 'at+jwt' ? 'not an access token' : undefined
}

/** RFC 7800: a token that is bound to something we cannot ask for is no bearer token. */
export function confirmationFault(cnf: unknown): string | undefined {
  if (cnf === undefined) return undefined
  if (typeof cnf !== 'object' || cnf === null) return 'cnf is not an object'
  const { 'x5t#S256': thumbprint, ...others } = cnf as JsonObject
  if (Object.keys(others).length > 0) return 'bound to a key that is not asked for'
  return isText(thumbprint) && /^[\w-]{43}$/.test(thumbprint) ? undefined : 'x5t#S256 is not a SHA-256'
}

/** Of claims in whose `cnf` is no fault. */
export function confirmationIn({ cnf }: JwtClaims): string {
  return cnf === undefined ? '' : (cnf as { readonly 'x5t#S256': string })['x5t#S256']
}

/** The verdict, provided that it is genuine; or what is wrong with what it says of its client. */
export function acceptedToken(jwt: StrictJwt, plan: IssuerPlan): AcceptedToken | string {
  const { claims } = jwt
  const scopes = scopesIn(claims[plan.scopesClaim])
  if (scopes === undefined) return `${plan.scopesClaim} is neither a text nor a list of texts`
  const consumerKey = consumerKeyIn(claims, plan)
  const { sub, exp, aut } = claims
  const tenant = tenantIn(claims, plan)
  const user = nameIn(sub ?? consumerKey, tenant, plan)
  const apiKey = isApiKey(claims, plan) ? apiKeyTerms(claims) : null
  if (apiKey === undefined) return 'where the API key may be used is neither a text nor a list'
  return {
    kind: 'accepted',
    issuer: plan.issuer,
    consumerKey,
    user,
    tenant,
    isApplication: isText(aut) ? aut === 'APPLICATION' : user === consumerKey,
    scopes,
    expiresMs: exp === undefined ? 0 : exp * 1000,
    revocationKey: revocationKeyOf(jwt),
    confirmation: confirmationIn(claims),
    apiKey,
    claims: localClaims(claims, plan),
  }
}

/** jti, else what the signature is of: the signature itself may be made anew. */
export function revocationKeyOf({ claims: { jti }, signedPart }: StrictJwt): string {
  return jti === undefined || jti === '' ? digestKey(signedPart) : jti
}

/** What a revocation calls a token that has no name of its own. */
export function digestKey(bytes: Buffer | string): string {
  return `#${createHash('sha256').update(bytes).digest('base64url')}`
}

/** undefined: of no form that is known. */
function scopesIn(claim: unknown): ReadonlySet<string> | undefined {
  if (claim === undefined || claim === null) return new Set()
  if (isText(claim)) return new Set(claim.split(' ').filter(scope => scope !== ''))
  return Array.isArray(claim) && claim.every(isText) ? new Set(claim) : undefined
}

function consumerKeyIn(claims: JsonObject, { consumerKeyClaims }: IssuerPlan): string {
  return (
    consumerKeyClaims.map(name => claims[name]).find((value): value is string => isText(value) && value !== '') ?? ''
  )
}

/** Our own key manager writes `name@tenant` into `sub`, because names repeat. */
function nameIn(sub: string, tenant: string, { isOwn }: IssuerPlan): string {
  return isOwn ? withoutTenant(sub, tenant) : sub
}

/** Of an issuer that is not ours the name of a tenant would be a claim to the users of another. */
export function tenantIn(claims: JsonObject, { isOwn }: Pick<IssuerPlan, 'isOwn'>): string {
  const { tenant } = claims
  return isOwn && isText(tenant) && tenant !== '' ? tenant : SUPER_TENANT
}

/** Those that have another name here come under that one alone. */
export function localClaims(claims: JsonObject, plan: Pick<IssuerPlan, 'claims'>): JsonObject {
  if (plan.claims.length === 0) return claims
  const names = new Map(plan.claims.map(({ remote, local }) => [remote, local]))
  const mapped = Object.entries(claims).filter(([name]) => names.has(name))
  const locals = new Set(mapped.map(([name]) => names.get(name)))
  const others = Object.entries(claims).filter(([name]) => !names.has(name) && !locals.has(name))
  return Object.fromEntries([...others, ...mapped.map(([name, value]) => [names.get(name)!, value] as const)])
}

function isApiKey({ token_type: type }: JsonObject, { isOwn }: IssuerPlan): boolean {
  return isOwn && type === 'apiKey'
}

/** undefined where a condition of its use cannot be read. */
function apiKeyTerms(claims: JsonObject): ApiKeyTerms | undefined {
  const { application, keytype, permittedIP, permittedReferer } = claims
  const { uuid } = (application ?? {}) as { readonly uuid?: unknown }
  const permittedIps = listIn(permittedIP)
  const permittedReferers = listIn(permittedReferer)
  if (permittedIps === undefined || permittedReferers === undefined) return undefined
  return {
    applicationId: isText(uuid) ? uuid : '',
    keyType: keytype === 'SANDBOX' ? 'SANDBOX' : 'PRODUCTION',
    permittedIps,
    permittedReferers,
  }
}

/** `a,b` as keys of the reference platform have it, or a list. */
function listIn(claim: unknown): readonly string[] | undefined {
  const values = isText(claim) ? claim.split(',') : (claim ?? [])
  if (!Array.isArray(values) || !values.every(isText)) return undefined
  return values.map(value => value.trim()).filter(value => value !== '')
}
