/** Creates tokens and stores them in the registry before they are returned. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { digestRevocationKey } from '../../auth/jwt-claims.ts'
import type { Application, Client } from '../registry/entities.ts'
import { RegistryRefusal } from '../registry/registry-errors.ts'
import { claimContext, userClaims } from './claims.ts'
import type { KeyManager } from './key-manager.ts'
import { OAuthError } from './oauth-error.ts'
import { readScopes } from './scopes.ts'
import { applicationSubject, type Subject, subjectClaim } from './subjects.ts'

/** 256 bits cannot be guessed. */
const RANDOM_BYTES = 32
/** Seconds by which `nbf` precedes `iat`: clocks of nodes may differ by so much, and a fresh token is good on all. */
export const NOT_BEFORE_MARGIN_S = 5
/** Maximum life of an API key, also where none is configured. */
const API_KEY_S_MAX = 10 * 366 * 86_400

interface TokenParameters {
  readonly client: Client
  readonly subject: Subject
  readonly scopes: readonly string[]
  /** Identifies all tokens of one authorisation; '' starts a new one. */
  readonly family: string
  readonly withRefreshToken: boolean
  readonly withIdToken: boolean
  /** From the authorization request; '' for none. */
  readonly nonce: string
  /** Login time of the user (`auth_time`), in seconds since 1970; 0 without a login. */
  readonly authenticatedS: number
}

/** RFC 6749 5.1. */
export interface TokenResponse {
  readonly access_token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly scope?: string
  readonly refresh_token?: string
  readonly id_token?: string
}

/** Data that the registry keeps with a refresh token, as JSON. */
export interface RefreshData {
  readonly authenticatedS: number
}

/** True if refresh tokens are enabled and the client is registered for them. */
export function mayRefresh({ settings }: KeyManager, { grants }: Client): boolean {
  return settings.grants.refreshToken && grants.includes('refresh_token')
}

/** Rejects with registry errors, and with OAuthError where an operator's module fails. */
export async function issueTokens(manager: KeyManager, given: TokenParameters): Promise<TokenResponse> {
  const parameters = given.family === '' ? { ...given, family: randomUUID() } : given
  const { scopes } = parameters
  const { token, validityS, issued } = await createAccessToken(manager, parameters)
  const refreshToken = parameters.withRefreshToken ? createRefreshToken(manager, parameters) : null
  const idToken =
    parameters.withIdToken && scopes.includes('openid') ? await createIdToken(manager, parameters, token) : ''
  try {
    await manager.registry.tokens.addAll([{ token, issued }, ...(refreshToken === null ? [] : [refreshToken])])
  } catch (error) {
    if (!(error instanceof RegistryRefusal)) throw error
    throw new OAuthError('invalid_grant', 'the client or its authorisation was removed meanwhile')
  }
  return {
    access_token: token,
    token_type: 'Bearer',
    expires_in: validityS,
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    ...(refreshToken !== null && { refresh_token: refreshToken.token }),
    ...(idToken !== '' && { id_token: idToken }),
  }
}

export function randomToken(): string {
  return randomBytes(RANDOM_BYTES).toString('base64url')
}

/** The registry's entry for a token or a code. */
export function issuedTokenOf(
  kind: 'access' | 'refresh' | 'code',
  { client, subject, scopes, family }: Pick<TokenParameters, 'client' | 'subject' | 'scopes' | 'family'>,
  revocationKey: string,
  issuedMs: number,
  validityS: number,
) {
  const { name: user, tenant, isApplication } = subject
  const { consumerKey } = client
  const expiresMs = issuedMs + validityS * 1000
  const issued = { kind, revocationKey, consumerKey, user, tenant, isApplication, scopes, issuedMs, expiresMs, family }
  return { ...issued, id: randomUUID(), state: 'ACTIVE' } as const
}

async function createAccessToken(manager: KeyManager, parameters: TokenParameters) {
  const { client, subject } = parameters
  const { settings } = manager
  const configuredS = subject.isApplication ? settings.applicationTokenS : settings.userTokenS
  const validityS = client.validityS === 0 ? configuredS : client.validityS
  const nowMs = manager.nowMs()
  const jti = randomUUID()
  const isOpaque = client.tokenType === 'OPAQUE'
  const token = isOpaque ? randomToken() : await signAccessToken(manager, parameters, jti, nowMs, validityS)
  const revocationKey = isOpaque ? digestRevocationKey(token) : jti
  return { token, validityS, issued: issuedTokenOf('access', parameters, revocationKey, nowMs, validityS) }
}

/** RFC 9068 2. */
async function signAccessToken(
  manager: KeyManager,
  { client, subject, scopes }: TokenParameters,
  jti: string,
  nowMs: number,
  validityS: number,
): Promise<string> {
  const nowS = Math.floor(nowMs / 1000)
  const exp = nowS + validityS
  const claims = {
    iss: manager.settings.issuer,
    sub: subjectClaim(subject, client),
    aud: client.consumerKey,
    azp: client.consumerKey,
    client_id: client.consumerKey,
    scope: scopes.join(' '),
    tenant: subject.tenant,
    aut: subject.isApplication ? 'APPLICATION' : 'APPLICATION_USER',
    iat: nowS,
    nbf: nowS - NOT_BEFORE_MARGIN_S,
    exp,
    jti,
  }
  const extended = await manager.extensions.accessToken(claims, claimContext(client, subject, scopes))
  return manager.signingKeys.sign('at+jwt', { ...extended, exp })
}

function createRefreshToken(manager: KeyManager, parameters: TokenParameters) {
  const token = randomToken()
  const nowMs = manager.nowMs()
  const issued = issuedTokenOf('refresh', parameters, digestRevocationKey(token), nowMs, manager.settings.refreshTokenS)
  const data: RefreshData = { authenticatedS: parameters.authenticatedS }
  return { token, issued, data: JSON.stringify(data) }
}

/** OpenID Connect Core 2, 3.1.3.6. */
async function createIdToken(manager: KeyManager, parameters: TokenParameters, accessToken: string): Promise<string> {
  const { client, subject, scopes, nonce, authenticatedS } = parameters
  const nowS = Math.floor(manager.nowMs() / 1000)
  const exp = nowS + manager.settings.idTokenS
  const digest = createHash('sha256').update(accessToken).digest()
  const claims = {
    ...(await userClaims(manager, client, subject, scopes)),
    iss: manager.settings.issuer,
    sub: subjectClaim(subject, client),
    aud: client.consumerKey,
    azp: client.consumerKey,
    iat: nowS,
    exp,
    at_hash: digest.subarray(0, digest.length / 2).toString('base64url'),
    ...(nonce !== '' && { nonce }),
    ...(authenticatedS !== 0 && { auth_time: authenticatedS }),
  }
  const extended = await manager.extensions.idToken(claims, claimContext(client, subject, scopes))
  return manager.signingKeys.sign('JWT', { ...extended, exp })
}

/** A token for an application itself. Rejects with OAuthError for an unknown client and for malformed scopes. */
export async function issueApplicationToken(
  manager: KeyManager,
  consumerKey: string,
  requested: readonly string[],
): Promise<TokenResponse> {
  const client = await manager.registry.clients.get(consumerKey)
  if (client === null) throw new OAuthError('invalid_client', 'unknown client')
  const subject = await applicationSubject(manager, client)
  // A scope with a space within is several scopes, each of which has to be granted.
  const scopes = manager.scopePolicy.grant(readScopes(requested.join(' ')), subject)
  return issueTokens(manager, {
    client,
    subject,
    scopes,
    family: '',
    withRefreshToken: false,
    withIdToken: false,
    nonce: '',
    authenticatedS: 0,
  })
}

export interface ApiKeyParameters {
  readonly application: Pick<Application, 'id' | 'name' | 'owner' | 'tenant' | 'tier'>
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
  /** Addresses and networks; an empty list allows all. */
  readonly permittedIps: readonly string[]
  /** Patterns; an empty list allows all. */
  readonly permittedReferers: readonly string[]
  /** Seconds; -1 for the maximum of ten years. */
  readonly validityS: number
}

/** An API key for an application. The registry does not keep it: a revocation needs its `jti`. */
export async function issueApiKey(
  manager: KeyManager,
  { application, keyType, permittedIps, permittedReferers, validityS }: ApiKeyParameters,
): Promise<{ readonly key: string; readonly jti: string; readonly expiresMs: number }> {
  const nowS = Math.floor(manager.nowMs() / 1000)
  const exp = nowS + (validityS === -1 ? API_KEY_S_MAX : Math.min(validityS, API_KEY_S_MAX))
  const jti = randomUUID()
  const { id, name, owner, tenant, tier } = application
  const key = await manager.signingKeys.sign('JWT', {
    iss: manager.settings.issuer,
    sub: `${owner}@${tenant}`,
    tenant,
    token_type: 'apiKey',
    application: { id, uuid: id, name, owner, tier },
    keytype: keyType,
    permittedIP: permittedIps.join(','),
    permittedReferer: permittedReferers.join(','),
    iat: nowS,
    exp,
    jti,
  })
  return { key, jti, expiresMs: exp * 1000 }
}
