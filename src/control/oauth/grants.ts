/**
 * The grants of the token endpoint: authorization code, password, refresh token, client credentials, JWT bearer. Each
 * validates its own parameters and issues tokens.
 */
import { createHash } from 'node:crypto'
import type { Client } from '../registry/entities.ts'
import { authenticateUser } from './authentication.ts'
import type { Form } from './form.ts'
import type { KeyManager, VerifiedAssertion } from './key-manager.ts'
import { OAuthError } from './oauth-error.ts'
import { revokeFamily } from './revocation.ts'
import { readScopes } from './scopes.ts'
import { applicationSubject, currentSubject, federatedSubject } from './subjects.ts'
import { issueTokens, mayRefresh, type RefreshData, type TokenResponse } from './token-issuance.ts'

/** A token request (RFC 6749 4) of an authenticated client that is registered for the grant. */
export interface GrantRequest {
  readonly manager: KeyManager
  readonly client: Client
  readonly form: Form
  /** Address of the client, for the log. */
  readonly address: string
}

/** Data that the registry keeps with an authorization code, as JSON. */
export interface CodeData {
  /** As the authorization request named it; '' where it named none. */
  readonly redirectUri: string
  /** S256 challenge; '' without PKCE, which confidential clients may omit. */
  readonly challenge: string
  readonly nonce: string
  readonly authenticatedS: number
}

const INVALID_CODE = 'the code is invalid'
const INVALID_REFRESH_TOKEN = 'the refresh token is invalid'
/** RFC 7636 4.1. */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/
const ASSERTION_CHARS_MAX = 16_384
const SUBJECT_CHARS_MAX = 255
/** A longer-lived assertion does not prove that the user is present. */
const ASSERTION_LIFE_MS_MAX = 24 * 3_600_000

/** RFC 6749 4.1.3, RFC 7636 4.6. A code that is used twice revokes the tokens of its first use (RFC 6749 10.5). */
export async function authorizationCodeGrant({ manager, client, form, address }: GrantRequest): Promise<TokenResponse> {
  const code = form.required('code')
  const known = await manager.registry.tokens.find(code)
  if (known?.issued.kind !== 'code' || known.issued.consumerKey !== client.consumerKey) throw invalidGrant(INVALID_CODE)
  const data = JSON.parse(known.data) as CodeData
  const consumed = await manager.registry.tokens.consume(code)
  if (consumed === null) throw invalidGrant(INVALID_CODE)
  const { issued } = consumed
  if (issued.state !== 'ACTIVE') {
    await revokeFamily(manager, issued, 'authorization code replayed', address)
    throw invalidGrant(INVALID_CODE)
  }
  if (issued.expiresMs <= manager.nowMs()) throw invalidGrant(INVALID_CODE)
  if (form.text('redirect_uri') !== data.redirectUri) {
    throw invalidGrant('redirect_uri differs from the authorization request')
  }
  if (!isVerified(form.text('code_verifier'), data.challenge)) throw invalidGrant('code_verifier is wrong')
  const subject = await currentSubject(manager, client, issued)
  if (subject === null) throw invalidGrant(INVALID_CODE)
  return issueTokens(manager, {
    client,
    subject,
    scopes: issued.scopes,
    family: issued.family,
    withRefreshToken: mayRefresh(manager, client),
    withIdToken: true,
    nonce: data.nonce,
    authenticatedS: data.authenticatedS,
  })
}

/** A verifier without a challenge means that an attacker removed the challenge from the request (RFC 9700 4.8.2). */
function isVerified(verifier: string, challenge: string): boolean {
  if (challenge === '' || verifier === '') return challenge === verifier
  return VERIFIER.test(verifier) && createHash('sha256').update(verifier).digest('base64url') === challenge
}

/** RFC 6749 4.3. */
export async function passwordGrant({ manager, client, form, address }: GrantRequest): Promise<TokenResponse> {
  const requested = readScopes(form.text('scope'))
  const credentials = { name: form.required('username'), password: form.required('password'), address }
  const subject = await authenticateUser(manager, client.tenant, credentials)
  if (subject === null) throw invalidGrant('the user name or the password is wrong')
  return issueTokens(manager, {
    client,
    subject,
    scopes: manager.scopePolicy.grant(requested, subject),
    family: '',
    withRefreshToken: mayRefresh(manager, client),
    withIdToken: true,
    nonce: '',
    authenticatedS: Math.floor(manager.nowMs() / 1000),
  })
}

/**
 * RFC 6749 6 with rotation: a refresh token is valid once, and the response contains its successor. A replay means that
 * it was stolen, so all tokens of the authorisation are revoked (RFC 9700 4.14.2).
 */
export async function refreshTokenGrant({ manager, client, form, address }: GrantRequest): Promise<TokenResponse> {
  const token = form.required('refresh_token')
  const requested = readScopes(form.text('scope'))
  const { tokens } = manager.registry
  const known = await tokens.find(token)
  // Checked before the token is consumed: another client must not be able to use it up.
  if (known?.issued.kind !== 'refresh' || known.issued.consumerKey !== client.consumerKey) {
    throw invalidGrant(INVALID_REFRESH_TOKEN)
  }
  if (known.issued.state === 'ACTIVE' && requested.some(scope => !known.issued.scopes.includes(scope))) {
    throw new OAuthError('invalid_scope', 'a requested scope was not granted originally')
  }
  const consumed = await tokens.consume(token)
  if (consumed === null) throw invalidGrant(INVALID_REFRESH_TOKEN)
  const { issued } = consumed
  if (issued.state !== 'ACTIVE') {
    const event = issued.state === 'USED' ? 'refresh token replayed' : 'revoked refresh token used'
    await revokeFamily(manager, issued, event, address)
    throw invalidGrant(INVALID_REFRESH_TOKEN)
  }
  if (issued.expiresMs <= manager.nowMs()) throw invalidGrant(INVALID_REFRESH_TOKEN)
  const subject = await currentSubject(manager, client, issued)
  if (subject === null) throw invalidGrant(INVALID_REFRESH_TOKEN)
  return issueTokens(manager, {
    client,
    subject,
    scopes: manager.scopePolicy.grant(requested.length === 0 ? issued.scopes : requested, subject),
    family: issued.family,
    withRefreshToken: true,
    withIdToken: true,
    nonce: '',
    authenticatedS: (JSON.parse(consumed.data) as RefreshData).authenticatedS,
  })
}

/** RFC 6749 4.4: for confidential clients only. */
export async function clientCredentialsGrant({ manager, client, form }: GrantRequest): Promise<TokenResponse> {
  if (client.isPublic) throw new OAuthError('unauthorized_client', 'a public client has no credentials')
  const { applicationRefreshTokens, applicationIdTokens } = manager.settings.grants
  const requested = readScopes(form.text('scope'))
  const subject = await applicationSubject(manager, client)
  return issueTokens(manager, {
    client,
    subject,
    scopes: manager.scopePolicy.grant(requested, subject),
    family: '',
    withRefreshToken: applicationRefreshTokens && mayRefresh(manager, client),
    withIdToken: applicationIdTokens,
    nonce: '',
    authenticatedS: 0,
  })
}

/** RFC 7523 2.1: a JWT of a trusted issuer that vouches for its user. */
export async function jwtBearerGrant({ manager, client, form }: GrantRequest): Promise<TokenResponse> {
  const assertion = form.required('assertion')
  const requested = readScopes(form.text('scope'))
  if (assertion.length > ASSERTION_CHARS_MAX) throw invalidGrant('the assertion is too long')
  const verified = await manager.verifyAssertion(assertion)
  if (verified === null) throw invalidGrant('no trusted issuer signed the assertion')
  const { name, untilMs } = validateAssertion(manager, verified)
  refuseReplay(manager, verified.issuer, assertion, untilMs)
  const subject = federatedSubject(verified.issuer, name, client.tenant)
  return issueTokens(manager, {
    client,
    subject,
    scopes: manager.scopePolicy.grant(requested, subject),
    family: '',
    // RFC 7521 4.1: the client can present another assertion instead.
    withRefreshToken: false,
    withIdToken: true,
    nonce: '',
    authenticatedS: 0,
  })
}

/** RFC 7523 3. Returns the user and the time until which the assertion can be replayed (milliseconds since 1970). */
function validateAssertion({ settings, origin, nowMs }: KeyManager, { claims }: VerifiedAssertion) {
  const { sub, aud, exp, nbf = 0, iat = 0 } = claims
  const now = nowMs()
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  const own = [settings.issuer, `${origin}/oauth2/token`]
  if (typeof sub !== 'string' || sub === '' || sub.length > SUBJECT_CHARS_MAX) {
    throw invalidGrant('the assertion has no valid sub')
  }
  if (!audiences.some(audience => own.some(one => one === audience))) {
    throw invalidGrant('the assertion has another audience')
  }
  const expiresMs = typeof exp === 'number' ? exp * 1000 : 0
  const untilMs = expiresMs + settings.skewMs
  const isEarly = [nbf, iat].some(moment => typeof moment !== 'number' || moment * 1000 > now + settings.skewMs)
  if (untilMs <= now || isEarly || expiresMs > now + ASSERTION_LIFE_MS_MAX) {
    throw invalidGrant('the assertion is expired, not yet valid, or valid for too long')
  }
  return { name: sub, untilMs }
}

/** Throws OAuthError for a replay, and where the replay cache is full: an assertion must never be accepted twice. */
function refuseReplay(
  { replayCache, nowMs, report }: KeyManager,
  issuer: string,
  assertion: string,
  untilMs: number,
): void {
  const result = replayCache.add(assertion, untilMs, nowMs())
  if (result === 'replayed') throw invalidGrant('the assertion was used before')
  if (result === 'added') return
  report('warn', 'assertion refused: replay cache full', { ISSUER: issuer })
  throw new OAuthError('temporarily_unavailable', 'the server cannot accept more assertions now', { status: 503 })
}

function invalidGrant(description: string): OAuthError {
  return new OAuthError('invalid_grant', description)
}
