/**
 * Signs users in to the dashboard by the key manager's own login: its form, its rules for passwords and lockout, and
 * its browser session where the user has one. The dashboard has a cookie of its own, which no other site sends.
 */
import type { Context } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { SUPER_TENANT } from '../../auth/account-names.ts'
import { authenticateUser } from '../oauth/authentication.ts'
import {
  COOKIE,
  FORM_COOKIE,
  isFormOfBrowser,
  seeOther,
  SESSION_COOKIE,
  withCookies,
} from '../oauth/authorization-endpoint.ts'
import { type BrowserSession, BrowserSessions } from '../oauth/browser-sessions.ts'
import { readForm } from '../oauth/form.ts'
import type { KeyManager } from '../oauth/key-manager.ts'
import { loginPage, pageResponse, signedInPage } from '../oauth/pages.ts'
import { countRequest } from '../oauth/rate-limit.ts'
import { randomToken } from '../oauth/token-issuance.ts'

export const PAGE = '/dashboard'
export const SIGN_IN = `${PAGE}/sign-in`
const DASHBOARD_COOKIE = 'dashboard'
const STRICT = { ...COOKIE, sameSite: 'Strict' } as const
const PURPOSE = 'dashboard sign-in'
/** Sessions are in memory. */
const ENDED = 'The session has ended, or the gateway was started again. Sign in again.'

/** Values of Sec-Fetch-Site: the same scheme, host and port, or the user himself. */
const SITES = ['same-origin', 'none']

export interface SignedIn {
  readonly session: BrowserSession
  readonly name: string
}

export class SignIn {
  readonly #manager: KeyManager
  readonly #roles: () => readonly string[]
  /** Apart from the key manager's: a cookie of the dashboard is no login for clients. */
  readonly #sessions: BrowserSessions

  constructor(manager: KeyManager, roles: () => readonly string[]) {
    this.#manager = manager
    this.#roles = roles
    this.#sessions = new BrowserSessions(manager.nowMs)
  }

  /** The user of the browser's session, whose account, password and roles still hold; null without one. */
  async find(context: Context): Promise<SignedIn | null> {
    const cookie = getCookie(context, DASHBOARD_COOKIE, 'host') ?? ''
    const session = cookie === '' ? null : this.#sessions.find(cookie)
    return session !== null && (await this.#mayUse(session)) ? { session, name: session.user } : null
  }

  /** Whether the cookie of this request still names that session. */
  async holds(context: Context, { session }: SignedIn): Promise<boolean> {
    return (await this.find(context))?.session === session
  }

  /** The form, or at once a session for a user who has logged in to the key manager. */
  async show(context: Context): Promise<Response> {
    countRequest(this.#manager, context)
    const cookie = getCookie(context, SESSION_COOKIE, 'host') ?? ''
    const session = cookie === '' ? null : this.#manager.sessions.find(cookie)
    const note = context.req.query('ended') === undefined ? '' : ENDED
    if (session === null || session.tenant !== SUPER_TENANT) return this.#form(context, note, 200)
    if (!(await this.#mayUse(session))) return this.#form(context, refusalOf(session.user), 403)
    await this.#start(context, session.user)
    // A link on another site may have led here, and a redirect would still count as that site's: no strict cookie.
    const response = await pageResponse(signedInPage(PAGE), 200)
    response.headers.set('Refresh', `0; url=${PAGE}`)
    return withCookies(context, response)
  }

  async post(context: Context): Promise<Response> {
    const manager = this.#manager
    const address = countRequest(manager, context)
    const form = await readForm(context.req.raw)
    const formCookie = getCookie(context, FORM_COOKIE, 'host')
    const name = form.text('username')
    if (!isFormOfBrowser(manager, context, form.text('form_token'), formCookie, PURPOSE))
      return this.#form(context, 'The form has expired. Try again.', 401, name)
    const user = await authenticateUser(manager, SUPER_TENANT, { name, password: form.text('password'), address })
    const isAllowed = user !== null && this.#hasRole(user.roles)
    if (user === null || !isAllowed) {
      manager.report('warn', 'dashboard sign-in refused', { USER: name, CLIENT_ADDRESS: address })
      return user === null
        ? this.#form(context, 'The user name or the password is wrong.', 401, name)
        : this.#form(context, refusalOf(user.name), 403, name)
    }
    manager.report('info', 'dashboard sign-in', { USER: user.name, CLIENT_ADDRESS: address })
    await this.#start(context, user.name)
    return withCookies(context, seeOther(PAGE))
  }

  /** True if a page of this listener makes the request; browsers tell its origin. */
  isOwnPage({ req }: Context): boolean {
    const origin = req.header('origin')
    const isOwn = origin === undefined || origin === this.#manager.origin || origin === new URL(req.url).origin
    return isOwn && SITES.includes(req.header('sec-fetch-site') ?? 'none')
  }

  /** Ends the session of the dashboard, and the key manager's login too: it would start the next session at once. */
  end(context: Context): Response {
    this.#sessions.end(getCookie(context, DASHBOARD_COOKIE, 'host') ?? '')
    this.#manager.sessions.end(getCookie(context, SESSION_COOKIE, 'host') ?? '')
    for (const name of [DASHBOARD_COOKIE, SESSION_COOKIE]) deleteCookie(context, name, COOKIE)
    return withCookies(context, seeOther(SIGN_IN))
  }

  async #start(context: Context, name: string): Promise<void> {
    const version = await this.#manager.registry.users.passwordVersion(name, SUPER_TENANT)
    setCookie(context, DASHBOARD_COOKIE, this.#sessions.start(name, SUPER_TENANT, version), STRICT)
  }

  async #form(context: Context, error: string, status: number, name = ''): Promise<Response> {
    const known = getCookie(context, FORM_COOKIE, 'host')
    const cookie = known ?? randomToken()
    if (known === undefined) setCookie(context, FORM_COOKIE, cookie, COOKIE)
    const state = { request: '', token: this.#manager.sessions.formToken(cookie, PURPOSE), action: SIGN_IN }
    const page = loginPage(state, 'the dashboard', name, error)
    return withCookies(context, await pageResponse(page, status, this.#manager.origin))
  }

  async #mayUse({ user, tenant, passwordVersion }: BrowserSession): Promise<boolean> {
    const { users } = this.#manager.registry
    const account = await users.find(user, tenant)
    if (account === null || account.isLocked || !this.#hasRole(account.roles)) return false
    return (await users.passwordVersion(user, tenant)) === passwordVersion
  }

  #hasRole(roles: readonly string[]): boolean {
    const wanted = this.#roles()
    return roles.some(role => wanted.includes(role))
  }
}

function refusalOf(user: string): string {
  return `${user} has no role that may use the dashboard (management.dashboard_roles).`
}
