/** `/oauth2/introspect` (RFC 7662), for authenticated gateways and resource servers. */
import { hash } from 'node:crypto'
import { SUPER_TENANT } from '../../auth/account-names.ts'
import { METRIC } from '../../observe/metrics.ts'
import { networkOf } from '../../runtime/ip-address.ts'
import type { Client, IssuedToken } from '../registry/entities.ts'
import { ADMIN_ROLE } from '../registry/management-scopes.ts'
import { authenticateClient, authenticateUser, basicCredentials } from './authentication.ts'
import { decodePart, type Form } from './form.ts'
import type { KeyManager } from './key-manager.ts'
import { invalidClient, isRefusal, OAuthError } from './oauth-error.ts'
import type { IntrospectionResponse } from './introspection-cache.ts'
import { subjectClaim } from './subjects.ts'
import { NOT_BEFORE_MARGIN_S } from './token-issuance.ts'

const INACTIVE = { active: false }

/** A client; or 'account': a gateway that uses an administrator's account because it has no client. */
type IntrospectionCaller = Client | 'account'

/** Rejects with OAuthError and registry errors, and counts what becomes of the request. */
export async function introspectionResponse(
  manager: KeyManager,
  request: Request,
  form: Form,
  address: string,
): Promise<IntrospectionResponse> {
  const { metrics } = manager
  try {
    const response = await introspected(manager, request, form, address)
    metrics.add(response.active === true ? METRIC.introspectionActive : METRIC.introspectionInactive, 1)
    return response
  } catch (error) {
    metrics.add(isRefusal(error) ? METRIC.introspectionRefused : METRIC.introspectionFailed, 1)
    throw error
  }
}

async function introspected(
  manager: KeyManager,
  request: Request,
  form: Form,
  address: string,
): Promise<IntrospectionResponse> {
  const caller = await authenticateAndLimitCaller(manager, request, form, address)
  const token = form.required('token')
  const hint = form.text('token_type_hint')
  const key = hash('sha256', `${caller === 'account' ? '' : caller.consumerKey}\n${hint}\n${token}`, 'base64url')
  const cached = manager.introspectionCache.get(key)
  const isHit = cached !== undefined && isUnexpired(manager, cached)
  manager.metrics.add(isHit ? METRIC.introspectionHits : METRIC.introspectionMisses, 1)
  if (isHit) return cached
  const { version } = manager.introspectionCache
  const response = await lookUp(manager, caller, token, hint)
  const { introspectionCacheMs } = manager.settings
  if (introspectionCacheMs > 0) manager.introspectionCache.set(key, response, introspectionCacheMs, version)
  return response
}

function isUnexpired({ nowMs }: KeyManager, response: IntrospectionResponse): boolean {
  return response.active === false || Number(response.exp) * 1000 > nowMs()
}

/** Limits failed authentications per address, not requests: a gateway introspects for all of its clients. */
async function authenticateAndLimitCaller(
  manager: KeyManager,
  request: Request,
  form: Form,
  address: string,
): Promise<IntrospectionCaller> {
  const { perAddress } = manager.settings.limits
  const key = `refused ${networkOf(address)}`
  manager.rateLimiter.check(key, perAddress)
  try {
    return await authenticateCaller(manager, request, form, address)
  } catch (error) {
    if (error instanceof OAuthError && error.status === 401) manager.rateLimiter.count(key, perAddress)
    throw error
  }
}

async function authenticateCaller(
  manager: KeyManager,
  request: Request,
  form: Form,
  address: string,
): Promise<IntrospectionCaller> {
  const basic = basicCredentials(request.headers.get('authorization'))
  if (basic !== null && form.text('client_id') === '' && !(await isClient(manager, basic.name))) {
    const subject = await authenticateUser(manager, SUPER_TENANT, { name: basic.name, password: basic.secret, address })
    if (subject?.roles.includes(ADMIN_ROLE)) return 'account'
    throw invalidClient()
  }
  const client = await authenticateClient(manager, request, form, address)
  if (client.isPublic) throw new OAuthError('unauthorized_client', 'a public client cannot introspect tokens')
  return client
}

/** Client ids are form-encoded in Basic, account names are not. */
async function isClient({ registry }: KeyManager, name: string): Promise<boolean> {
  return /%(?![0-9A-Fa-f]{2})/.test(name) ? false : (await registry.clients.get(decodePart(name))) !== null
}

async function lookUp(
  manager: KeyManager,
  caller: IntrospectionCaller,
  token: string,
  hint: string,
): Promise<IntrospectionResponse> {
  const known = await manager.registry.tokens.find(token)
  if (known === null || !mayLearn(known.issued, caller, hint)) return INACTIVE
  const { issued } = known
  if (issued.state !== 'ACTIVE' || issued.expiresMs <= manager.nowMs()) return INACTIVE
  const client = await manager.registry.clients.get(issued.consumerKey)
  if (client === null) return INACTIVE
  const { tenant, isApplication } = issued
  const issuedS = Math.floor(issued.issuedMs / 1000)
  return {
    active: true,
    scope: issued.scopes.join(' '),
    client_id: issued.consumerKey,
    username: `${issued.user}@${tenant}`,
    token_type: issued.kind === 'access' ? 'Bearer' : 'refresh_token',
    sub: subjectClaim({ name: issued.user, tenant, isApplication }, client),
    aud: issued.consumerKey,
    iss: manager.settings.issuer,
    aut: isApplication ? 'APPLICATION' : 'APPLICATION_USER',
    jti: issued.revocationKey,
    iat: issuedS,
    nbf: issuedS - NOT_BEFORE_MARGIN_S,
    exp: Math.floor(issued.expiresMs / 1000),
  }
}

/**
 * Decides who may learn that a token is active. A refresh token is active for its own client, with the hint only: a
 * resource server must never take one for an access token (RFC 7662 4).
 */
function mayLearn({ kind, consumerKey, tenant }: IssuedToken, caller: IntrospectionCaller, hint: string): boolean {
  if (kind === 'code') return false
  if (kind === 'refresh') return hint === 'refresh_token' && caller !== 'account' && caller.consumerKey === consumerKey
  return caller === 'account' || caller.tenant === tenant
}
