/** `/oauth2/userinfo` (OpenID Connect Core 5.3). */
import { userClaims } from './claims.ts'
import type { KeyManager } from './key-manager.ts'
import { NO_STORE, OAuthRefusal, type RefusalCode } from './oauth-refusal.ts'
import { subjectAgain, subjectName } from './subjects.ts'

const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*) *$/i
const SIGNED_S = 300

/** Throws OAuthRefusal with the challenge of RFC 6750 3. */
export async function userInfo(manager: KeyManager, request: Request): Promise<Response> {
  const token = BEARER.exec(request.headers.get('authorization') ?? '')?.[1]
  if (token === undefined) throw challenge(401, 'invalid_request', 'a bearer token is asked for')
  const known = await manager.registry.tokens.find(token)
  const issued = known?.issued
  if (issued?.kind !== 'access' || issued.state !== 'ACTIVE' || issued.expiresMs <= manager.surroundings.now()) {
    throw challenge(401, 'invalid_token', 'the token is not good')
  }
  if (issued.isApplication || !issued.scopes.includes('openid')) {
    throw challenge(403, 'insufficient_scope', 'the token was not given for openid')
  }
  const client = await manager.registry.clients.get(issued.consumerKey)
  const subject = client === null ? null : await subjectAgain(manager, client, issued)
  if (client === null || subject === null) throw challenge(401, 'invalid_token', 'the token is not good')
  const claims = { ...(await userClaims(manager, client, subject, issued.scopes)), sub: subjectName(subject, client) }
  if (manager.settings.userInfoType === 'json') return Response.json(claims, { headers: NO_STORE })
  const nowS = Math.floor(manager.surroundings.now() / 1000)
  const signed = { ...claims, iss: manager.settings.issuer, aud: client.consumerKey, iat: nowS, exp: nowS + SIGNED_S }
  const headers = { ...NO_STORE, 'Content-Type': 'application/jwt' }
  return new Response(await manager.signingKeys.sign('JWT', signed), { headers })
}

function challenge(status: number, code: RefusalCode, description: string): OAuthRefusal {
  const header = `Bearer realm="oauth2", error="${code}", error_description="${description}"`
  return new OAuthRefusal(code, description, { status, headers: { 'WWW-Authenticate': header } })
}
