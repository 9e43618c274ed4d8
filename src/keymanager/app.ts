/** The addresses of the key manager. What an endpoint refuses it throws; what it answers nobody else keeps. */
import { type Context, Hono } from 'hono'
import { RegistryUnavailable } from '../registry/registry.ts'
import { authorizationApp } from './authorization-endpoint.ts'
import { admitAddress, clientAddress } from './client-address.ts'
import { admitClient } from './client-authentication.ts'
import { discovery } from './discovery.ts'
import { readForm } from './form.ts'
import { introspect } from './introspection.ts'
import type { KeyManager } from './key-manager.ts'
import { NO_STORE, OAuthRefusal, refusalAnswer } from './oauth-refusal.ts'
import { registrationApp } from './registration.ts'
import { tokenAnswer } from './token-endpoint.ts'
import { revokeToken } from './token-revocation.ts'
import { userInfo } from './user-info.ts'

/** Keys stay published for as long as anything was signed with them, so that a cached set does no harm. */
const PUBLIC = { 'Cache-Control': 'public, max-age=300' }
const DISCOVERY = [
  '/.well-known/openid-configuration',
  '/oauth2/token/.well-known/openid-configuration',
  '/.well-known/oauth-authorization-server',
  '/.well-known/oauth-authorization-server/oauth2/token',
]

export function keyManagerApp(manager: KeyManager): Hono {
  const app = new Hono()
  app.onError((error, context) => failure(manager, error, context))
  app.post('/oauth2/token', async context => {
    const address = admitAddress(manager, context)
    const form = await readForm(context.req.raw)
    return Response.json(await tokenAnswer(manager, context.req.raw, form, address), { headers: NO_STORE })
  })
  app.post('/oauth2/revoke', async context => {
    const address = admitAddress(manager, context)
    const form = await readForm(context.req.raw)
    await revokeToken(manager, await admitClient(manager, context.req.raw, form, address), form)
    return new Response(null, { headers: NO_STORE })
  })
  app.post('/oauth2/introspect', async context => {
    const address = clientAddress(context)
    const form = await readForm(context.req.raw)
    return Response.json(await introspect(manager, context.req.raw, form, address), { headers: NO_STORE })
  })
  app.on(['GET', 'POST'], '/oauth2/userinfo', context => {
    admitAddress(manager, context)
    return userInfo(manager, context.req.raw)
  })
  app.get('/oauth2/jwks', () => Response.json({ keys: manager.signingKeys.published }, { headers: PUBLIC }))
  for (const path of DISCOVERY) app.get(path, () => Response.json(discovery(manager), { headers: PUBLIC }))
  app.route('/', authorizationApp(manager))
  app.route('/', registrationApp(manager))
  return app
}

/** No cause of a failure leaves: it may name what nobody outside should know. */
function failure({ surroundings: { log } }: KeyManager, error: Error, context: Context): Response {
  if (error instanceof OAuthRefusal) {
    if (error.cause !== undefined) log('error', error.message, { CAUSE_OF_ERROR: String(error.cause) })
    return refusalAnswer(error)
  }
  const isAway = error instanceof RegistryUnavailable
  const fields = { HTTP_URL: context.req.path, CAUSE_OF_ERROR: error.message }
  log('error', isAway ? 'the registry does not answer' : 'a request to the key manager has failed', fields)
  const answer = isAway
    ? new OAuthRefusal('temporarily_unavailable', 'the registry does not answer', { status: 503 })
    : new OAuthRefusal('server_error', 'the request has failed', { status: 500 })
  return refusalAnswer(answer)
}
