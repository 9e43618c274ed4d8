/** Checks the claims of a JWT against the plan of its issuer and maps them to an AcceptedToken; no signatures. */
import { createHash } from 'node:crypto'
import { SUPER_TENANT, stripTenant } from './account-names.ts'
import type { IssuerPlan } from './auth-plan.ts'
import type { JwtClaims, ParsedJwt } from './jwt-parser.ts'
import { isString, type JsonObject } from './strict-json.ts'
import { type AcceptedToken, type ApiKeyClaims, EXPIRED, NOT_YET, type TimeError } from './token-result.ts'

/** Reason why the token cannot be used, independent of its time and its signature. */
export function validityError({ claims, type }: ParsedJwt, plan: IssuerPlan): string | undefined {
  const { exp, cnf } = claims
  if (exp === undefined && !isApiKey(claims, plan)) return 'exp is missing'
  return audienceError(claims, plan) ?? purposeError(claims, type, plan) ?? confirmationError(cnf)
}

/** Reason why the token cannot be used now. `skewMs`: accepted difference of clocks. */
export function timeError({ exp, nbf }: JwtClaims, nowMs: number, skewMs: number): TimeError | undefined {
  if (exp !== undefined && nowMs >= exp * 1000 + skewMs) return EXPIRED
  return nbf !== undefined && nowMs + skewMs < nbf * 1000 ? NOT_YET : undefined
}

export function audienceError({ aud = [] }: JwtClaims, { audiences }: IssuerPlan): string | undefined {
  const named = isString(aud) ? [aud] : aud
  return audiences.length === 0 || named.some(name => audiences.includes(name)) ? undefined : 'wrong audience'
}

/** Refuses tokens that the issuer signs with the same keys for other purposes. */
function purposeError(claims: JsonObject, type: string, plan: IssuerPlan): string | undefined {
  // The built-in key manager always marks access tokens (RFC 9068 2.1) and API keys.
  if (plan.isOwn && type !== 'at+jwt' && !isApiKey(claims, plan)) return 'not an access token'
  // OpenID Connect Core 3.1.3.6 and 3.3.2.11; token_use and typ are words of issuers that have one header typ for all.
  const { token_use: use, typ } = claims
  const isIdToken = 'at_hash' in claims || 'c_hash' in claims || use === 'id'
  const isOther = isIdToken || (isString(typ) && ['ID', 'Refresh', 'Offline'].includes(typ))
  return isOther && type !== 'at+jwt' ? 'not an access token' : undefined
}

/** RFC 7800: a token that is bound to a key which the gateway cannot check is no bearer token. */
export function confirmationError(cnf: unknown): string | undefined {
  if (cnf === undefined) return undefined
  if (typeof cnf !== 'object' || cnf === null) return 'cnf is not an object'
  const { 'x5t#S256': thumbprint, ...others } = cnf as JsonObject
  if (Object.keys(others).length > 0) return 'cnf has a member other than x5t#S256'
  return isString(thumbprint) && /^[\w-]{43}$/.test(thumbprint) ? undefined : 'x5t#S256 is not a SHA-256'
}

/** `cnf`: accepted by `confirmationError`. */
export function confirmationIn({ cnf }: JwtClaims): string {
  return cnf === undefined ? '' : (cnf as { readonly 'x5t#S256': string })['x5t#S256']
}

/** The token as accepted if its signature is genuine, or the reason why its claims are malformed. */
export function acceptedToken(jwt: ParsedJwt, plan: IssuerPlan): AcceptedToken | string {
  const { claims } = jwt
  const scopes = scopesIn(claims[plan.scopesClaim])
  if (scopes === undefined) return `${plan.scopesClaim} is neither a string nor a list of strings`
  const consumerKey = consumerKeyIn(claims, plan)
  const { sub, nbf = 0, exp = 0, aut } = claims
  const tenant = tenantIn(claims, plan)
  // The built-in key manager writes `name@tenant` into sub, because tenants may have users of the same name.
  const user = plan.isOwn ? stripTenant(sub ?? consumerKey, tenant) : (sub ?? consumerKey)
  const apiKey = isApiKey(claims, plan) ? apiKeyClaims(claims) : null
  if (apiKey === undefined) return 'permittedIP or permittedReferer is neither a string nor a list of strings'
  return {
    kind: 'accepted',
    issuer: plan.issuer,
    consumerKey,
    user,
    tenant,
    isApplication: isString(aut) ? aut === 'APPLICATION' : user === consumerKey,
    scopes,
    notBeforeMs: nbf * 1000,
    expiresMs: exp * 1000,
    revocationKey: revocationKeyOf(jwt),
    confirmation: confirmationIn(claims),
    apiKey,
    claims: localClaims(claims, plan),
  }
}

/** jti, else the digest of the signed part: a malleable signature must not make a revoked token another one. */
export function revocationKeyOf({ claims: { jti }, signedPart }: ParsedJwt): string {
  return jti === undefined || jti === '' ? digestRevocationKey(signedPart) : jti
}

/** Revocation key of a token without jti. */
export function digestRevocationKey(bytes: Buffer | string): string {
  return `#${createHash('sha256').update(bytes).digest('base64url')}`
}

/** undefined: malformed. */
function scopesIn(claim: unknown): ReadonlySet<string> | undefined {
  if (claim === undefined || claim === null) return new Set()
  if (isString(claim)) return new Set(claim.split(' ').filter(scope => scope !== ''))
  return Array.isArray(claim) && claim.every(isString) ? new Set(claim) : undefined
}

function consumerKeyIn(claims: JsonObject, { consumerKeyClaims }: IssuerPlan): string {
  const values = consumerKeyClaims.map(name => claims[name])
  return values.find((value): value is string => isString(value) && value !== '') ?? ''
}

/** Only the built-in key manager may name a tenant: from another issuer it would be a claim to users of that tenant. */
export function tenantIn(claims: JsonObject, { isOwn }: Pick<IssuerPlan, 'isOwn'>): string {
  const { tenant } = claims
  return isOwn && isString(tenant) && tenant !== '' ? tenant : SUPER_TENANT
}

/** Claims under their local names; a mapped claim is not repeated under its remote name. */
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

/** undefined where a restriction of the key is malformed. */
function apiKeyClaims(claims: JsonObject): ApiKeyClaims | undefined {
  const { application, keytype, permittedIP, permittedReferer } = claims
  const { uuid } = (application ?? {}) as { readonly uuid?: unknown }
  const permittedIps = listIn(permittedIP)
  const permittedReferers = listIn(permittedReferer)
  if (permittedIps === undefined || permittedReferers === undefined) return undefined
  return {
    applicationId: isString(uuid) ? uuid : '',
    keyType: keytype === 'SANDBOX' ? 'SANDBOX' : 'PRODUCTION',
    permittedIps,
    permittedReferers,
  }
}

/** A list, or `a,b` as API keys of the reference platform have it. */
function listIn(claim: unknown): readonly string[] | undefined {
  const values = isString(claim) ? claim.split(',') : (claim ?? [])
  if (!Array.isArray(values) || !values.every(isString)) return undefined
  return values.map(value => value.trim()).filter(value => value !== '')
}
