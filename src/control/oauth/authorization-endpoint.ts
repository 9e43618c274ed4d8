/**
 * `/oauth2/authorize` (RFC 6749 4.1): a user logs in and consents in the browser. No state is kept between the pages:
 * forms carry the request, bound to the browser, and it is validated again each time.
 */
import { type Context, Hono } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import {
  type AuthorizationRequest,
  readAuthorizationRequest,
  type RedirectTarget,
  AuthorizationError,
} from './authorization-request.ts'
import { digestRevocationKey } from '../../auth/jwt-claims.ts'
import { authenticateUser } from './authentication.ts'
import type { BrowserSession } from './browser-sessions.ts'
import { queryOf, readForm } from './form.ts'
import type { CodeData } from './grants.ts'
import type { KeyManager } from './key-manager.ts'
import { OAuthError } from './oauth-error.ts'
import { consentPage, errorPage, loginPage, pageResponse } from './pages.ts'
import { countRequest } from './rate-limit.ts'
import { type Subject, userSubject } from './subjects.ts'
import { issuedTokenOf, randomToken } from './token-issuance.ts'
import { randomUUID } from 'node:crypto'

export const SESSION_COOKIE = 'session'
export const FORM_COOKIE = 'form'
/** RFC 6265bis: no other host, path or plain connection can set a cookie with the prefix __Host-. */
export const COOKIE = { prefix: 'host', path: '/', secure: true, httpOnly: true, sameSite: 'Lax' } as const
/** Life of an authorization code: clients exchange it at once. */
const CODE_S = 60

/** The user of the browser's session. */
interface SignedInUser {
  readonly session: BrowserSession
  readonly cookie: string
  readonly subject: Subject
  /** Logged in by this very request, which satisfies `prompt=login` and `max_age`. */
  readonly isFresh: boolean
}

export function authorizationApp(manager: KeyManager): Hono {
  const app = new Hono()
  app.onError((error, context) => authorizationErrorResponse(manager, error, context))
  app.get('/oauth2/authorize', async context => {
    countRequest(manager, context)
    const request = await readAuthorizationRequest(manager, new URL(context.req.url).search.slice(1))
    return continueAuthorization(manager, context, request, await findSignedInUser(manager, context, request))
  })
  // OpenID Connect Core 3.1.2.1 requires POST as well.
  app.post('/oauth2/authorize', async context => {
    countRequest(manager, context)
    const request = await readAuthorizationRequest(manager, queryOf(await readForm(context.req.raw)))
    return continueAuthorization(manager, context, request, await findSignedInUser(manager, context, request))
  })
  app.post('/oauth2/authorize/login', context => login(manager, context))
  app.post('/oauth2/authorize/consent', context => consent(manager, context))
  app.get('/oauth2/error', context => {
    const { error = '', client_id: client = '' } = context.req.query()
    return pageResponse(errorPage(error, manager.settings.errorPageHasParameters ? client : ''), 400)
  })
  return app
}

async function findSignedInUser(
  manager: KeyManager,
  context: Context,
  { client }: AuthorizationRequest,
): Promise<SignedInUser | null> {
  const cookie = getCookie(context, SESSION_COOKIE, 'host')
  const session = cookie === undefined ? null : manager.sessions.find(cookie)
  if (cookie === undefined || session?.tenant !== client.tenant) return null
  const account = await manager.registry.users.find(session.user, session.tenant)
  if (account === null || account.isLocked) return null
  if ((await manager.registry.users.passwordVersion(account.name, account.tenant)) !== session.passwordVersion)
    return null
  return { session, cookie, subject: userSubject(account), isFresh: false }
}

/**
 * The response to an authorization request: login page, consent page, or a redirect with a code. Throws
 * AuthorizationError.
 */
async function continueAuthorization(
  manager: KeyManager,
  context: Context,
  request: AuthorizationRequest,
  user: SignedInUser | null,
): Promise<Response> {
  if (user === null || needsLogin(manager, request, user)) {
    if (request.prompts.includes('none'))
      throw new AuthorizationError('login_required', 'no user is logged in', request)
    return showLogin(manager, context, request, '')
  }
  const scopes = manager.scopePolicy.grant(request.scopes, user.subject)
  const isAllowed = manager.sessions.isAllowed(user.session, consentKey(request, scopes))
  if (isAllowed && !request.prompts.includes('consent')) return issueCode(manager, request, user, scopes, context)
  if (request.prompts.includes('none'))
    throw new AuthorizationError('consent_required', 'the user has not consented yet', request)
  const state = {
    request: request.query,
    token: manager.sessions.formToken(user.cookie, `consent\n${request.query}`),
  }
  const page = consentPage(state, request.client.name, user.subject.name, scopes)
  return withCookies(context, await pageResponse(page, 200, request.redirectUri))
}

function needsLogin(
  { nowMs }: KeyManager,
  { prompts, maxAgeS }: AuthorizationRequest,
  { isFresh, session }: SignedInUser,
): boolean {
  if (isFresh) return false
  const ageMs = nowMs() - session.authenticatedMs
  return prompts.includes('login') || prompts.includes('select_account') || (maxAgeS !== -1 && ageMs > maxAgeS * 1000)
}

/** Key of a consent: the client and its scopes. */
function consentKey({ client }: AuthorizationRequest, scopes: readonly string[]): string {
  return [client.consumerKey, ...scopes.toSorted()].join(' ')
}

async function showLogin(
  manager: KeyManager,
  context: Context,
  request: AuthorizationRequest,
  error: string,
  user = request.loginHint,
): Promise<Response> {
  const known = getCookie(context, FORM_COOKIE, 'host')
  const cookie = known ?? randomToken()
  if (known === undefined) setCookie(context, FORM_COOKIE, cookie, COOKIE)
  const state = { request: request.query, token: manager.sessions.formToken(cookie, `login\n${request.query}`) }
  const page = loginPage(state, request.client.name, user, error)
  // Browsers apply form-action to redirects after a form too, so it lists the client's origin.
  const response = await pageResponse(page, error === '' ? 200 : 401, request.redirectUri)
  return withCookies(context, response)
}

async function login(manager: KeyManager, context: Context): Promise<Response> {
  const address = countRequest(manager, context)
  const form = await readForm(context.req.raw)
  const query = form.text('request')
  const request = await readAuthorizationRequest(manager, query)
  const formCookie = getCookie(context, FORM_COOKIE, 'host')
  // A form that has expired or comes from another browser is shown again, without effect.
  if (!isFormOfBrowser(manager, context, form.text('form_token'), formCookie, `login\n${query}`)) {
    return showLogin(manager, context, request, 'The form has expired. Try again.', form.text('username'))
  }
  const credentials = { name: form.text('username'), password: form.text('password'), address }
  const subject = await authenticateUser(manager, request.client.tenant, credentials)
  if (subject === null) {
    return showLogin(manager, context, request, 'The user name or the password is wrong.', credentials.name)
  }
  const passwordVersion = await manager.registry.users.passwordVersion(subject.name, subject.tenant)
  const cookie = manager.sessions.start(subject.name, subject.tenant, passwordVersion)
  setCookie(context, SESSION_COOKIE, cookie, COOKIE)
  const session = manager.sessions.find(cookie)!
  return continueAuthorization(manager, context, request, { session, cookie, subject, isFresh: true })
}

async function consent(manager: KeyManager, context: Context): Promise<Response> {
  countRequest(manager, context)
  const form = await readForm(context.req.raw)
  const query = form.text('request')
  const request = await readAuthorizationRequest(manager, query)
  const user = await findSignedInUser(manager, context, request)
  const token = form.text('form_token')
  if (user === null || !isFormOfBrowser(manager, context, token, user.cookie, `consent\n${query}`)) {
    return showLogin(manager, context, request, 'The form has expired. Try again.')
  }
  if (form.text('decision') !== 'allow')
    throw new AuthorizationError('access_denied', 'the user denied access', request)
  const scopes = manager.scopePolicy.grant(request.scopes, user.subject)
  manager.sessions.allow(user.session, consentKey(request, scopes))
  return issueCode(manager, request, user, scopes, context)
}

/** Checks that the form was shown to this browser and posted from one of these pages. */
export function isFormOfBrowser(
  { sessions, origin: ownOrigin }: KeyManager,
  context: Context,
  token: string,
  cookie: string | undefined,
  purpose: string,
): boolean {
  const origin = context.req.header('origin')
  if (origin !== undefined && origin !== ownOrigin && origin !== new URL(context.req.url).origin) return false
  return cookie !== undefined && sessions.isFormToken(token, cookie, purpose)
}

async function issueCode(
  manager: KeyManager,
  request: AuthorizationRequest,
  { subject, session }: SignedInUser,
  scopes: readonly string[],
  context: Context,
): Promise<Response> {
  const { client, namedRedirectUri, challenge, nonce } = request
  const code = randomToken()
  const issuedFor = { client, subject, scopes, family: randomUUID() }
  const issued = issuedTokenOf('code', issuedFor, digestRevocationKey(code), manager.nowMs(), CODE_S)
  const authenticatedS = Math.floor(session.authenticatedMs / 1000)
  const data: CodeData = { redirectUri: namedRedirectUri, challenge, nonce, authenticatedS }
  await manager.registry.tokens.add(code, issued, JSON.stringify(data))
  return withCookies(context, redirectToClient(manager, request, { code }))
}

/** Redirects to the client, with the issuer (RFC 9207). */
function redirectToClient(
  { settings }: KeyManager,
  { redirectUri, state }: RedirectTarget,
  response: Readonly<Record<string, string>>,
): Response {
  return seeOther(withQuery(redirectUri, { ...response, state, iss: settings.issuer }))
}

/** Adds parameters to a URI, without the empty ones. */
export function withQuery(uri: string, parameters: Readonly<Record<string, string>>): string {
  const added = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== ''))
  return added.size === 0 ? uri : `${uri}${uri.includes('?') ? '&' : '?'}${added}`
}

export function seeOther(location: string): Response {
  const headers = { Location: location, 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' }
  return new Response(null, { status: 303, headers })
}

export function withCookies(context: Context, response: Response): Response {
  for (const cookie of context.res.headers.getSetCookie()) response.headers.append('Set-Cookie', cookie)
  return response
}

/** Redirects to the client where its redirect URI is verified; otherwise shows the error to the user. */
export function authorizationErrorResponse(
  manager: KeyManager,
  error: Error,
  context: Context,
): Response | Promise<Response> {
  if (error instanceof AuthorizationError) {
    return redirectToClient(manager, error.target, { error: error.code, error_description: error.message })
  }
  // Any other error is a failure, which the app that mounts this one reports.
  if (!(error instanceof OAuthError)) throw error
  if (error.status === 429) return tooManyRequestsPage(error)
  const { usesErrorPage, errorPageHasParameters } = manager.settings
  const { client_id: client = '', state = '' } = errorPageHasParameters ? context.req.query() : {}
  const fitsInUrl = client.length + state.length < 2048
  if (usesErrorPage) {
    const parameters = fitsInUrl ? { client_id: client, state } : {}
    return seeOther(withQuery('/oauth2/error', { error: error.code, ...parameters }))
  }
  return pageResponse(errorPage(error.code, fitsInUrl ? client : ''), error.status)
}

async function tooManyRequestsPage(error: OAuthError): Promise<Response> {
  const response = await pageResponse(errorPage(error.code, ''), error.status)
  for (const [name, value] of Object.entries(error.headers)) response.headers.set(name, value)
  return response
}
