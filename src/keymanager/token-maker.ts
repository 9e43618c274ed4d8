/** Makes tokens, and has the registry remember them: what is not written down was never given. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { digestKey } from '../identity/jwt-claims.ts'
import type { Application, Client } from '../registry/entities.ts'
import { RegistryRefusal } from '../registry/registry.ts'
import { claimFacts, userClaims } from './claims.ts'
import type { KeyManager } from './key-manager.ts'
import { OAuthRefusal } from './oauth-refusal.ts'
import { applicationSubject, type Subject, subjectName } from './subjects.ts'

/** 256 bits: a guess is worth nothing. */
const RANDOM_BYTES = 32
/** An API key without an end has one all the same: then it is made anew. */
const API_KEY_S_MAX = 10 * 366 * 86_400

interface TokenGrant {
  readonly client: Client
  readonly subject: Subject
  readonly scopes: readonly string[]
  /** Of the authorisation that it goes back to; '' for a new one. */
  readonly family: string
  readonly refreshes: boolean
  readonly identifies: boolean
  /** Of the request for an id token; '' without one. */
  readonly nonce: string
  /** When the user has logged in, in seconds since 1970; 0: here nobody has. */
  readonly authenticatedS: number
}

/** RFC 6749 5.1. */
export interface TokenAnswer {
  readonly access_token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly scope?: string
  readonly refresh_token?: string
  readonly id_token?: string
}

/** What is kept beside a refresh token. */
export interface RefreshData {
  readonly authenticatedS: number
}

/** Whether a refresh token is worth giving. */
export function mayRefresh({ settings }: KeyManager, { grants }: Client): boolean {
  return settings.grants.refreshToken && grants.includes('refresh_token')
}

/** Throws what the registry throws, and OAuthRefusal where a module of the operator's fails. */
export async function issueTokens(manager: KeyManager, given: TokenGrant): Promise<TokenAnswer> {
  const grant = given.family === '' ? { ...given, family: randomUUID() } : given
  const { scopes } = grant
  const { token, validityS, about } = await makeAccessToken(manager, grant)
  const refresh = grant.refreshes ? makeRefreshToken(manager, grant) : null
  const identity = grant.identifies && scopes.includes('openid') ? await makeIdToken(manager, grant, token) : ''
  try {
    await manager.registry.tokens.addAll([{ token, issued: about }, ...(refresh === null ? [] : [refresh])])
  } catch (error) {
    if (!(error instanceof RegistryRefusal)) throw error
    throw new OAuthRefusal('invalid_grant', 'the client or its authorisation has ended meanwhile')
  }
  return {
    access_token: token,
    token_type: 'Bearer',
    expires_in: validityS,
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    ...(refresh !== null && { refresh_token: refresh.token }),
    ...(identity !== '' && { id_token: identity }),
  }
}

export function randomToken(): string {
  return randomBytes(RANDOM_BYTES).toString('base64url')
}

/** What the registry keeps of a token or a code. */
export function issued(
  kind: 'access' | 'refresh' | 'code',
  { client, subject, scopes, family }: Pick<TokenGrant, 'client' | 'subject' | 'scopes' | 'family'>,
  revocationKey: string,
  issuedMs: number,
  validityS: number,
) {
  const { name: user, tenant, isApplication } = subject
  const { consumerKey } = client
  const expiresMs = issuedMs + validityS * 1000
  const about = { kind, revocationKey, consumerKey, user, tenant, isApplication, scopes, issuedMs, expiresMs, family }
  return { ...about, id: randomUUID(), state: 'ACTIVE' } as const
}

async function makeAccessToken(manager: KeyManager, grant: TokenGrant) {
  const { client, subject } = grant
  const { settings, surroundings } = manager
  const configuredS = subject.isApplication ? settings.applicationTokenS : settings.userTokenS
  const validityS = client.validityS === 0 ? configuredS : client.validityS
  const nowMs = surroundings.now()
  const jti = randomUUID()
  const isOpaque = client.tokenType === 'OPAQUE'
  const token = isOpaque ? randomToken() : await signAccessToken(manager, grant, jti, nowMs, validityS)
  const revocationKey = isOpaque ? digestKey(token) : jti
  return { token, validityS, about: issued('access', grant, revocationKey, nowMs, validityS) }
}

/** RFC 9068 2. */
async function signAccessToken(
  manager: KeyManager,
  { client, subject, scopes }: TokenGrant,
  jti: string,
  nowMs: number,
  validityS: number,
): Promise<string> {
  const nowS = Math.floor(nowMs / 1000)
  const exp = nowS + validityS
  const claims = {
    iss: manager.settings.issuer,
    sub: subjectName(subject, client),
    aud: client.consumerKey,
    azp: client.consumerKey,
    client_id: client.consumerKey,
    scope: scopes.join(' '),
    tenant: subject.tenant,
    aut: subject.isApplication ? 'APPLICATION' : 'APPLICATION_USER',
    iat: nowS,
    nbf: nowS,
    exp,
    jti,
  }
  const extended = await manager.extensions.accessToken(claims, claimFacts(client, subject, scopes))
  return manager.signingKeys.sign('at+jwt', { ...extended, exp })
}

function makeRefreshToken(manager: KeyManager, grant: TokenGrant) {
  const token = randomToken()
  const nowMs = manager.surroundings.now()
  const about = issued('refresh', grant, digestKey(token), nowMs, manager.settings.refreshTokenS)
  const data: RefreshData = { authenticatedS: grant.authenticatedS }
  return { token, issued: about, data: JSON.stringify(data) }
}

/** OpenID Connect Core 2, 3.1.3.6. */
async function makeIdToken(manager: KeyManager, grant: TokenGrant, accessToken: string): Promise<string> {
  const { client, subject, scopes, nonce, authenticatedS } = grant
  const nowS = Math.floor(manager.surroundings.now() / 1000)
  const exp = nowS + manager.settings.idTokenS
  const hash = createHash('sha256').update(accessToken).digest()
  const claims = {
    ...(await userClaims(manager, client, subject, scopes)),
    iss: manager.settings.issuer,
    sub: subjectName(subject, client),
    aud: client.consumerKey,
    azp: client.consumerKey,
    iat: nowS,
    exp,
    at_hash: hash.subarray(0, hash.length / 2).toString('base64url'),
    ...(nonce !== '' && { nonce }),
    ...(authenticatedS !== 0 && { auth_time: authenticatedS }),
  }
  const extended = await manager.extensions.idToken(claims, claimFacts(client, subject, scopes))
  return manager.signingKeys.sign('JWT', { ...extended, exp })
}

/** For an application that has just been made. Throws OAuthRefusal where there is no such client. */
export async function issueApplicationToken(
  manager: KeyManager,
  consumerKey: string,
  scopes: readonly string[],
): Promise<TokenAnswer> {
  const client = await manager.registry.clients.get(consumerKey)
  if (client === null) throw new OAuthRefusal('invalid_client', 'there is no such client')
  const subject = await applicationSubject(manager, client)
  const granted = manager.scopes.grant(scopes, subject)
  const alone = { family: '', refreshes: false, identifies: false, nonce: '', authenticatedS: 0 }
  return issueTokens(manager, { client, subject, scopes: granted, ...alone })
}

export interface ApiKeyTerms {
  readonly application: Pick<Application, 'id' | 'name' | 'owner' | 'tenant' | 'tier'>
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
  /** Addresses and networks; none: any. */
  readonly permittedIps: readonly string[]
  /** Patterns; none: any. */
  readonly permittedReferers: readonly string[]
  /** Seconds; -1: ten years. */
  readonly validityS: number
}

/** A key that an application uses without asking for tokens. It is not kept: revoking one takes its `jti`. */
export async function makeApiKey(
  manager: KeyManager,
  { application, keyType, permittedIps, permittedReferers, validityS }: ApiKeyTerms,
): Promise<{ readonly key: string; readonly jti: string; readonly expiresMs: number }> {
  const nowS = Math.floor(manager.surroundings.now() / 1000)
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
