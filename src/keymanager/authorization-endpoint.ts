/**
 * `/oauth2/authorize`: a user logs in with a browser and allows an application to act for them. Nothing is kept between
 * the pages: forms carry the request along, bound to the browser, and it is judged again each time.
 */
import { type Context, Hono } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import {
  type AuthorizationRequest,
  readAuthorizationRequest,
  type ReturnAddress,
  ToldToClient,
} from './authorization-request.ts'
import { digestKey } from '../identity/jwt-claims.ts'
import type { BrowserSession } from './browser-sessions.ts'
import { admitAddress } from './client-address.ts'
import type { CodeData } from './code-grant.ts'
import { readForm } from './form.ts'
import type { KeyManager } from './key-manager.ts'
import { OAuthRefusal } from './oauth-refusal.ts'
import { consentPage, errorPage, loginPage, pageAnswer } from './pages.ts'
import { logIn } from './log-in.ts'
import { sourceOf, withParameters } from './redirect-uri.ts'
import { type Subject, userSubject } from './subjects.ts'
import { issued, randomToken } from './token-maker.ts'
import { randomUUID } from 'node:crypto'

const SESSION_COOKIE = 'session'
const FORM_COOKIE = 'form'
/** RFC 6265bis: with this prefix of a name no other host, path or plain connection can set it. */
const COOKIE = { prefix: 'host', path: '/', secure: true, httpOnly: true, sameSite: 'Lax' } as const
/** A code is exchanged at once or never. */
const CODE_S = 60

/** The user at the browser, and the session that says so. */
interface Visitor {
  readonly session: BrowserSession
  readonly cookie: string
  readonly subject: Subject
  /** Just now: what asks for a fresh login has had it. */
  readonly isFresh: boolean
}

export function authorizationApp(manager: KeyManager): Hono {
  const app = new Hono()
  app.onError((error, context) => refused(manager, error, context))
  app.get('/oauth2/authorize', async context => {
    admitAddress(manager, context)
    const request = await readAuthorizationRequest(manager, new URL(context.req.url).search.slice(1))
    return proceed(manager, context, request, await visitorOf(manager, context, request))
  })
  // OpenID Connect Core 3.1.2.1: by POST as well.
  app.post('/oauth2/authorize', async context => {
    admitAddress(manager, context)
    const query = String(new URLSearchParams([...(await readForm(context.req.raw)).entries()].map(pair => [...pair])))
    const request = await readAuthorizationRequest(manager, query)
    return proceed(manager, context, request, await visitorOf(manager, context, request))
  })
  app.post('/oauth2/authorize/login', context => login(manager, context))
  app.post('/oauth2/authorize/consent', context => consent(manager, context))
  app.get('/oauth2/error', context => {
    const { error = '', client_id: client = '' } = context.req.query()
    return pageAnswer(errorPage(error, manager.settings.tellsErrorPageMore ? client : ''), 400, [])
  })
  return app
}

async function visitorOf(
  manager: KeyManager,
  context: Context,
  { client }: AuthorizationRequest,
): Promise<Visitor | null> {
  const cookie = getCookie(context, SESSION_COOKIE, 'host')
  const session = cookie === undefined ? null : manager.sessions.find(cookie)
  if (cookie === undefined || session?.tenant !== client.tenant) return null
  const user = await manager.registry.users.find(session.user, session.tenant)
  if (user === null || user.isLocked) return null
  if ((await manager.registry.users.passwordMark(user.name, user.tenant)) !== session.passwordMark) return null
  return { session, cookie, subject: userSubject(user), isFresh: false }
}

/** The next page, or the end of it: a code. Throws ToldToClient. */
async function proceed(
  manager: KeyManager,
  context: Context,
  request: AuthorizationRequest,
  visitor: Visitor | null,
): Promise<Response> {
  if (visitor === null || needsLogin(manager, request, visitor)) {
    if (request.prompts.includes('none')) throw new ToldToClient('login_required', 'nobody is logged in', request)
    return showLogin(manager, context, request, '')
  }
  const scopes = manager.scopes.grant(request.scopes, visitor.subject)
  const isAllowed = manager.sessions.isAllowed(visitor.session, consentTo(request, scopes))
  if (isAllowed && !request.prompts.includes('consent')) return giveCode(manager, request, visitor, scopes, context)
  if (request.prompts.includes('none')) throw new ToldToClient('consent_required', 'nothing was allowed yet', request)
  const state = {
    request: request.query,
    token: manager.sessions.formToken(visitor.cookie, `consent\n${request.query}`),
  }
  const page = consentPage(state, request.client.name, visitor.subject.name, scopes)
  return withCookies(context, await pageAnswer(page, 200, [sourceOf(request.redirectUri)]))
}

function needsLogin(
  { surroundings }: KeyManager,
  { prompts, maxAgeS }: AuthorizationRequest,
  { isFresh, session }: Visitor,
): boolean {
  if (isFresh) return false
  const ageMs = surroundings.now() - session.authenticatedMs
  return prompts.includes('login') || prompts.includes('select_account') || (maxAgeS !== -1 && ageMs > maxAgeS * 1000)
}

/** What a user has allowed, for as long as the session lasts. */
function consentTo({ client }: AuthorizationRequest, scopes: readonly string[]): string {
  return [client.consumerKey, ...scopes.toSorted()].join(' ')
}

async function showLogin(
  manager: KeyManager,
  context: Context,
  request: AuthorizationRequest,
  fault: string,
  user = request.loginHint,
): Promise<Response> {
  const known = getCookie(context, FORM_COOKIE, 'host')
  const cookie = known ?? randomToken()
  if (known === undefined) setCookie(context, FORM_COOKIE, cookie, COOKIE)
  const state = { request: request.query, token: manager.sessions.formToken(cookie, `login\n${request.query}`) }
  const page = loginPage(state, request.client.name, user, fault)
  // Browsers hold redirects that follow a form to the policy of its page, so the client's address is in it.
  const answer = await pageAnswer(page, fault === '' ? 200 : 401, [sourceOf(request.redirectUri)])
  return withCookies(context, answer)
}

async function login(manager: KeyManager, context: Context): Promise<Response> {
  const address = admitAddress(manager, context)
  const form = await readForm(context.req.raw)
  const query = form.text('request')
  const request = await readAuthorizationRequest(manager, query)
  const cookie = getCookie(context, FORM_COOKIE, 'host')
  // A form that is too old, or of another browser: it is shown anew, and nothing has happened.
  if (!isOwnForm(manager, context, form.text('form_token'), cookie, `login\n${query}`)) {
    return showLogin(manager, context, request, 'The form was too old. Try again.', form.text('username'))
  }
  const shown = { name: form.text('username'), password: form.text('password'), address }
  const subject = await logIn(manager, request.client.tenant, shown)
  if (subject === null) {
    return showLogin(manager, context, request, 'The user name or the password is wrong.', shown.name)
  }
  const mark = await manager.registry.users.passwordMark(subject.name, subject.tenant)
  const fresh = manager.sessions.begin(subject.name, subject.tenant, mark)
  setCookie(context, SESSION_COOKIE, fresh, COOKIE)
  const session = manager.sessions.find(fresh)!
  return proceed(manager, context, request, { session, cookie: fresh, subject, isFresh: true })
}

async function consent(manager: KeyManager, context: Context): Promise<Response> {
  admitAddress(manager, context)
  const form = await readForm(context.req.raw)
  const query = form.text('request')
  const request = await readAuthorizationRequest(manager, query)
  const visitor = await visitorOf(manager, context, request)
  const token = form.text('form_token')
  if (visitor === null || !isOwnForm(manager, context, token, visitor.cookie, `consent\n${query}`)) {
    return showLogin(manager, context, request, 'The form was too old. Try again.')
  }
  if (form.text('decision') !== 'allow') throw new ToldToClient('access_denied', 'the user has refused', request)
  const scopes = manager.scopes.grant(request.scopes, visitor.subject)
  manager.sessions.allow(visitor.session, consentTo(request, scopes))
  return giveCode(manager, request, visitor, scopes, context)
}

/** Of this browser, from one of these pages. */
function isOwnForm(
  { sessions, surroundings }: KeyManager,
  context: Context,
  token: string,
  cookie: string | undefined,
  about: string,
): boolean {
  const origin = context.req.header('origin')
  if (origin !== undefined && origin !== surroundings.origin && origin !== new URL(context.req.url).origin) return false
  return cookie !== undefined && sessions.isFormToken(token, cookie, about)
}

async function giveCode(
  manager: KeyManager,
  request: AuthorizationRequest,
  { subject, session }: Visitor,
  scopes: readonly string[],
  context: Context,
): Promise<Response> {
  const { client, namedRedirectUri, challenge, nonce } = request
  const code = randomToken()
  const about = { client, subject, scopes, family: randomUUID() }
  const kept = issued('code', about, digestKey(code), manager.surroundings.now(), CODE_S)
  const authenticatedS = Math.floor(session.authenticatedMs / 1000)
  const data: CodeData = { redirectUri: namedRedirectUri, challenge, nonce, authenticatedS }
  await manager.registry.tokens.add(code, kept, JSON.stringify(data))
  return withCookies(context, returned(manager, request, { code }))
}

/** To the client. RFC 9207: it is told who answers. */
function returned(
  { settings }: KeyManager,
  { redirectUri, state }: ReturnAddress,
  answer: Readonly<Record<string, string>>,
): Response {
  return seeOther(withParameters(redirectUri, { ...answer, state, iss: settings.issuer }))
}

function seeOther(location: string): Response {
  const headers = { Location: location, 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' }
  return new Response(null, { status: 303, headers })
}

function withCookies(context: Context, answer: Response): Response {
  for (const cookie of context.res.headers.getSetCookie()) answer.headers.append('Set-Cookie', cookie)
  return answer
}

/** To the client where its address is known to be its own, else to whoever sits at the browser. */
function refused(manager: KeyManager, error: Error, context: Context): Response | Promise<Response> {
  if (error instanceof ToldToClient) {
    return returned(manager, error.to, { error: error.code, error_description: error.message })
  }
  // What is no refusal is a failure, and told by whoever has mounted these pages.
  if (!(error instanceof OAuthRefusal)) throw error
  if (error.status === 429) return limited(error)
  const { usesErrorPage, tellsErrorPageMore } = manager.settings
  const { client_id: client = '', state = '' } = tellsErrorPageMore ? context.req.query() : {}
  const isShort = client.length + state.length < 2048
  if (usesErrorPage) {
    const more = isShort ? { client_id: client, state } : {}
    return seeOther(withParameters('/oauth2/error', { error: error.code, ...more }))
  }
  return pageAnswer(errorPage(error.code, isShort ? client : ''), error.status, [])
}

async function limited(error: OAuthRefusal): Promise<Response> {
  const answer = await pageAnswer(errorPage(error.code, ''), error.status, [])
  for (const [name, value] of Object.entries(error.headers)) answer.headers.set(name, value)
  return answer
}
