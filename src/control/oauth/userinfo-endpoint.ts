/** `/oauth2/userinfo` (OpenID Connect Core 5.3). */
import { bearerToken } from './authentication.ts'
import { userClaims } from './claims.ts'
import type { KeyManager } from './key-manager.ts'
import { bearerError, NO_STORE } from './oauth-error.ts'
import { currentSubject, subjectClaim } from './subjects.ts'

const SIGNED_S = 300

/** Rejects with OAuthError, whose challenge follows RFC 6750 3. */
export async function userInfo(manager: KeyManager, request: Request): Promise<Response> {
  const token = bearerToken(request)
  if (token === '') throw bearerError(401, 'invalid_request', 'a bearer token is required')
  const known = await manager.registry.tokens.find(token)
  const issued = known?.issued
  if (issued?.kind !== 'access' || issued.state !== 'ACTIVE' || issued.expiresMs <= manager.nowMs()) {
    throw bearerError(401, 'invalid_token', 'the token is invalid or expired')
  }
  if (issued.isApplication || !issued.scopes.includes('openid')) {
    throw bearerError(403, 'insufficient_scope', 'the token lacks the scope openid')
  }
  const client = await manager.registry.clients.get(issued.consumerKey)
  const subject = client === null ? null : await currentSubject(manager, client, issued)
  if (client === null || subject === null) throw bearerError(401, 'invalid_token', 'the token is invalid or expired')
  const claims = { ...(await userClaims(manager, client, subject, issued.scopes)), sub: subjectClaim(subject, client) }
  if (manager.settings.userInfoType === 'json') return Response.json(claims, { headers: NO_STORE })
  const nowS = Math.floor(manager.nowMs() / 1000)
  const signed = { ...claims, iss: manager.settings.issuer, aud: client.consumerKey, iat: nowS, exp: nowS + SIGNED_S }
  const headers = { ...NO_STORE, 'Content-Type': 'application/jwt' }
  return new Response(await manager.signingKeys.sign('JWT', signed), { headers })
}
