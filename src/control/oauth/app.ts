/**
 * Routes of the key manager's endpoints. An endpoint throws OAuthError for what it refuses; this file makes the
 * response.
 */
import { type Context, Hono } from 'hono'
import { countTime, type Operation } from '../../observe/operation-times.ts'
import { RegistryUnavailable } from '../registry/registry-errors.ts'
import { authorizationApp } from './authorization-endpoint.ts'
import { authenticateAndCountClient } from './authentication.ts'
import { dynamicRegistrationApp } from './dynamic-registration.ts'
import { serverMetadata } from './discovery.ts'
import { readForm } from './form.ts'
import { introspectionResponse } from './introspection-endpoint.ts'
import type { KeyManager } from './key-manager.ts'
import { logoutApp } from './logout-endpoint.ts'
import { NO_STORE, OAuthError, errorResponse } from './oauth-error.ts'
import { clientAddressOf, countRequest } from './rate-limit.ts'
import { registrationApp } from './registration-endpoint.ts'
import { tokenResponse } from './token-endpoint.ts'
import { revokeToken } from './revocation.ts'
import { userInfo } from './userinfo-endpoint.ts'

/** Caching is safe: keys stay published as long as a token signed by them is valid. */
const PUBLIC = { 'Cache-Control': 'public, max-age=300' }
const DISCOVERY = [
  '/.well-known/openid-configuration',
  '/oauth2/token/.well-known/openid-configuration',
  '/.well-known/oauth-authorization-server',
  '/.well-known/oauth-authorization-server/oauth2/token',
]

const TIMED: Readonly<Record<string, Operation>> = {
  '/oauth2/token': 'token',
  '/oauth2/introspect': 'introspect',
  '/oauth2/authorize': 'authorize',
  '/oauth2/jwks': 'keys',
}

export function keyManagerApp(manager: KeyManager): Hono {
  const app = new Hono()
  app.onError((error, context) => failureResponse(manager, error, context))
  app.use(async (context, next) => {
    const fromMs = performance.now()
    await next()
    countTime(manager.metrics, TIMED[context.req.path] ?? 'other', (performance.now() - fromMs) / 1000)
  })
  app.post('/oauth2/token', async context => {
    const address = countRequest(manager, context)
    const form = await readForm(context.req.raw)
    return Response.json(await tokenResponse(manager, context.req.raw, form, address), { headers: NO_STORE })
  })
  app.post('/oauth2/revoke', async context => {
    const address = countRequest(manager, context)
    const form = await readForm(context.req.raw)
    await revokeToken(manager, await authenticateAndCountClient(manager, context.req.raw, form, address), form)
    return new Response(null, { headers: NO_STORE })
  })
  app.post('/oauth2/introspect', async context => {
    const address = clientAddressOf(context)
    const form = await readForm(context.req.raw)
    return Response.json(await introspectionResponse(manager, context.req.raw, form, address), { headers: NO_STORE })
  })
  app.on(['GET', 'POST'], '/oauth2/userinfo', context => {
    countRequest(manager, context)
    return userInfo(manager, context.req.raw)
  })
  app.get('/oauth2/jwks', () => Response.json({ keys: manager.signingKeys.published }, { headers: PUBLIC }))
  for (const path of DISCOVERY) app.get(path, () => Response.json(serverMetadata(manager), { headers: PUBLIC }))
  app.route('/', authorizationApp(manager))
  app.route('/', logoutApp(manager))
  app.route('/', registrationApp(manager))
  app.route('/', dynamicRegistrationApp(manager))
  return app
}

/** The client never sees the cause of a failure; the log does. */
function failureResponse({ report }: KeyManager, error: Error, context: Context): Response {
  if (error instanceof OAuthError) {
    if (error.cause !== undefined) report('error', error.message, { CAUSE_OF_ERROR: String(error.cause) })
    return errorResponse(error)
  }
  const isUnavailable = error instanceof RegistryUnavailable
  const fields = { HTTP_URL: context.req.path, CAUSE_OF_ERROR: error.message }
  report('error', isUnavailable ? 'the registry is unavailable' : 'key manager request failed', fields)
  return errorResponse(
    isUnavailable
      ? new OAuthError('temporarily_unavailable', 'the registry is unavailable', { status: 503 })
      : new OAuthError('server_error', 'the request failed', { status: 500 }),
  )
}
