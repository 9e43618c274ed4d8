/**
 * `/oidc/logout` (OpenID Connect RP-Initiated Logout 1.0): ends the login session of the browser. The user is asked,
 * unless the ID token of the request is of this very session. Tokens of clients stay valid until they are revoked.
 */
import { verify } from 'node:crypto'
import { type Context, Hono } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import { parseJwt } from '../../auth/jwt-parser.ts'
import type { Client } from '../registry/entities.ts'
import { isAllowedRedirectUri } from '../registry/redirect-uri.ts'
import {
  authorizationErrorResponse,
  COOKIE,
  isFormOfBrowser,
  seeOther,
  SESSION_COOKIE,
  withCookies,
  withQuery,
} from './authorization-endpoint.ts'
import type { BrowserSession } from './browser-sessions.ts'
import { parseForm, queryOf, readForm } from './form.ts'
import type { KeyManager } from './key-manager.ts'
import { OAuthError } from './oauth-error.ts'
import { logoutPage, pageResponse, signedOutPage } from './pages.ts'
import { countRequest } from './rate-limit.ts'

const PATH = '/oidc/logout'
const STATE_CHARS_MAX = 2048
/** A longer request is not repeated as a query: the listener limits heads. */
const QUERY_CHARS_MAX = 8000

/** The session that an ID token was issued in. */
interface IdTokenHint {
  readonly sub: string
  readonly clientId: string
  /** Seconds since 1970; 0 without a login. */
  readonly authTime: number
}

interface LogoutRequest {
  /** The query as received, which the form carries so that it is validated again. */
  readonly query: string
  readonly hint: IdTokenHint | null
  /** Null where the request names none. */
  readonly client: Client | null
  /** Registered by the client; '' for none. */
  readonly redirectUri: string
  readonly state: string
}

export function logoutApp(manager: KeyManager): Hono {
  const app = new Hono()
  app.onError((error, context) => authorizationErrorResponse(manager, error, context))
  app.get(PATH, async context => {
    countRequest(manager, context)
    return logout(manager, context, await readRequest(manager, new URL(context.req.url).search.slice(1)))
  })
  app.post(PATH, async context => {
    countRequest(manager, context)
    const query = queryOf(await readForm(context.req.raw))
    const request = await readRequest(manager, query)
    // A form of another site comes without cookies (SameSite), the navigation that follows has them.
    const isWithoutCookies = getCookie(context, SESSION_COOKIE, 'host') === undefined
    if (isWithoutCookies && query.length <= QUERY_CHARS_MAX) return seeOther(`${PATH}?${query}`)
    return logout(manager, context, request)
  })
  app.post(`${PATH}/confirm`, async context => {
    countRequest(manager, context)
    const form = await readForm(context.req.raw)
    const request = await readRequest(manager, form.text('request'))
    const current = currentSession(manager, context)
    if (current === null) return finish(context, request)
    const purpose = `logout\n${request.query}`
    if (!isFormOfBrowser(manager, context, form.text('form_token'), current.cookie, purpose))
      return confirmationResponse(manager, request, current)
    manager.sessions.end(current.cookie)
    return finish(context, request)
  })
  return app
}

/** The session of the browser that sends the request. */
interface CurrentSession {
  readonly session: BrowserSession
  readonly cookie: string
}

function currentSession(manager: KeyManager, context: Context): CurrentSession | null {
  const cookie = getCookie(context, SESSION_COOKIE, 'host')
  const session = cookie === undefined ? null : manager.sessions.find(cookie)
  return cookie === undefined || session === null ? null : { session, cookie }
}

async function logout(manager: KeyManager, context: Context, request: LogoutRequest): Promise<Response> {
  const current = currentSession(manager, context)
  if (current === null) return finish(context, request)
  if (!isOfSession(request.hint, current.session)) return confirmationResponse(manager, request, current)
  manager.sessions.end(current.cookie)
  return finish(context, request)
}

/** Section 2: without such a hint the user must be asked. */
function isOfSession(hint: IdTokenHint | null, { user, tenant, authenticatedMs }: BrowserSession): boolean {
  return hint !== null && hint.sub === `${user}@${tenant}` && hint.authTime === Math.floor(authenticatedMs / 1000)
}

function confirmationResponse(
  manager: KeyManager,
  { query, client, redirectUri }: LogoutRequest,
  { session, cookie }: CurrentSession,
): Promise<Response> {
  const state = { request: query, token: manager.sessions.formToken(cookie, `logout\n${query}`) }
  return pageResponse(logoutPage(state, client?.name ?? '', session.user), 200, redirectUri || manager.origin)
}

/** Section 3: back to the client where it has asked for that. */
async function finish(context: Context, { redirectUri, state }: LogoutRequest): Promise<Response> {
  setCookie(context, SESSION_COOKIE, '', { ...COOKIE, maxAge: 0 })
  const response =
    redirectUri === '' ? await pageResponse(signedOutPage(), 200) : seeOther(withQuery(redirectUri, { state }))
  return withCookies(context, response)
}

/** Throws OAuthError: a request that is wrong logs nobody out and leads nowhere (section 4). */
async function readRequest(manager: KeyManager, query: string): Promise<LogoutRequest> {
  const form = parseForm(query)
  const given = form.text('id_token_hint')
  const hint = given === '' ? null : hintOf(manager, given)
  const clientId = form.text('client_id')
  if (hint !== null && clientId !== '' && clientId !== hint.clientId)
    throw new OAuthError('invalid_request', 'id_token_hint is of another client')
  const name = clientId || (hint?.clientId ?? '')
  const client = name === '' ? null : await manager.registry.clients.get(name)
  const redirectUri = form.text('post_logout_redirect_uri')
  if (redirectUri !== '' && !(await isRegistered(manager, client, redirectUri)))
    throw new OAuthError('invalid_request', 'post_logout_redirect_uri is not registered')
  const state = form.text('state')
  if (state.length > STATE_CHARS_MAX) throw new OAuthError('invalid_request', 'state is too long')
  return { query, hint, client, redirectUri, state }
}

/** A client without such a list may name its redirect URIs, as on the reference platform. */
async function isRegistered({ registry }: KeyManager, client: Client | null, uri: string): Promise<boolean> {
  if (client === null || !isAllowedRedirectUri(uri)) return false
  const registration = await registry.clients.registration(client.consumerKey)
  return (registration?.logoutUris ?? client.redirectUris).includes(uri)
}

/** Verifies an ID token of this key manager; one that has expired still counts (section 2). Throws OAuthError. */
function hintOf(manager: KeyManager, token: string): IdTokenHint {
  const jwt = parseJwt(token)
  if (typeof jwt !== 'string' && jwt.type === 'jwt' && jwt.algorithm === 'RS256') {
    const { claims, kid, signedPart, signature } = jwt
    const key = manager.signingKeys.verificationKey(kid ?? '')
    const isOwn = key !== undefined && claims.iss === manager.settings.issuer
    const { sub, aud, auth_time: authTime = 0, token_type: otherType } = claims
    const isIdToken = typeof sub === 'string' && typeof aud === 'string' && otherType === undefined
    if (isOwn && isIdToken && verify('RSA-SHA256', signedPart, key, signature))
      return { sub, clientId: aud, authTime: Number(authTime) }
  }
  throw new OAuthError('invalid_request', 'id_token_hint is no ID token of this key manager')
}
