/**
 * Authenticates and authorises callers of the admin API.
 *
 * A token must be an active access token of the own key manager, issued to a user, with the scope of the operation. The
 * user must still have a role for the scope. Tokens of applications are refused: every application of an administrator
 * could do what the administrator may. Basic is for administrators, who need it to create the first client.
 */
import type { Context } from 'hono'
import { resolveAccountName, SUPER_TENANT } from '../../auth/account-names.ts'
import { parseBasicCredentials } from '../../auth/basic-credentials.ts'
import { ADMIN_ROLE, MANAGEMENT_SCOPES } from '../registry/management-scopes.ts'
import type { User } from '../registry/entities.ts'
import { Problem } from './problem.ts'
import type { AdminServices } from './admin-services.ts'

export interface AdminCaller {
  readonly user: string
  readonly tenant: string
  /** Administrators see and change entities of other owners. */
  readonly isAdmin: boolean
  /** True if the caller has one of the scopes. */
  hasAnyScope(scopes: readonly string[]): boolean
}

const BEARER = /^Bearer +([A-Za-z0-9\-._~+/]+=*)$/i
const BASIC = /^Basic +([A-Za-z0-9+/]+={0,2})$/i
const CREDENTIALS_CHARS_MAX = 8192
/** Concurrent password checks: each costs 20 ms and 20 MB. */
const LOGINS_MAX = 4
const UNSAFE = ['POST', 'PUT', 'PATCH', 'DELETE']

export class AdminAuthenticator {
  readonly #services: () => AdminServices
  #logins = 0

  constructor(services: () => AdminServices) {
    this.#services = services
  }

  /** Rejects with Problem: 401 without valid credentials, 403 without any of the scopes. */
  async authorize(context: Context, scopes: readonly string[]): Promise<AdminCaller> {
    refuseOtherOrigins(context)
    const authorization = context.req.header('authorization') ?? ''
    if (authorization.length > CREDENTIALS_CHARS_MAX) throw new Problem(401, 'the Authorization header is too long')
    const token = BEARER.exec(authorization)?.[1]
    const basic = BASIC.exec(authorization)?.[1]
    const caller =
      token !== undefined
        ? await this.#callerOfToken(token)
        : basic !== undefined
          ? await this.#callerOfPassword(basic, clientAddressOf(context))
          : null
    if (caller === null) throw new Problem(401, 'an access token with the scope of the operation is required')
    if (!caller.hasAnyScope(scopes)) throw new Problem(403, `one of these scopes is required: ${scopes.join(', ')}`)
    return caller
  }

  async #callerOfToken(token: string): Promise<AdminCaller | null> {
    const { registry, nowMs } = this.#services()
    const issued = (await registry.tokens.find(token))?.issued
    if (issued === undefined || issued.kind !== 'access' || issued.state !== 'ACTIVE') return null
    if (issued.expiresMs <= nowMs() || issued.isApplication) return null
    const user = await registry.users.find(issued.user, issued.tenant)
    return user === null || user.isLocked ? null : callerOf(user, issued.scopes)
  }

  async #callerOfPassword(encoded: string, address: string): Promise<AdminCaller | null> {
    const [account, password] = parseBasicCredentials(encoded) ?? []
    if (account === undefined || password === undefined) return null
    if (this.#logins >= LOGINS_MAX) throw new Problem(429, 'too many concurrent logins')
    this.#logins++
    try {
      const { registry, report } = this.#services()
      const { name, tenant } = await resolveAccountName(account, () => registry.tenants.list())
      const user = await registry.users.authenticate(name, tenant, password, address)
      if (user === null || user === 'locked' || !user.roles.includes(ADMIN_ROLE)) {
        report('warn', 'management login refused', { USER: name, TENANT: tenant, CLIENT_ADDRESS: address })
        if (user === 'locked') throw new Problem(429, 'too many failures; try again later')
        return null
      }
      return callerOf(user, Object.keys(MANAGEMENT_SCOPES))
    } finally {
      this.#logins--
    }
  }
}

/** A scope counts only while the user has a role for it. */
function callerOf({ name, tenant, roles }: User, scopes: readonly string[]): AdminCaller {
  const hasScope = (scope: string): boolean => {
    return scopes.includes(scope) && (MANAGEMENT_SCOPES[scope] ?? []).some(role => roles.includes(role))
  }
  return { user: name, tenant, isAdmin: hasScope('apim:admin'), hasAnyScope: wanted => wanted.some(hasScope) }
}

/** Throws Problem for administrators of other tenants. `action`: what holds for every tenant of the node. */
export function requireSuperTenant({ tenant }: AdminCaller, action: string): void {
  if (tenant !== SUPER_TENANT) throw new Problem(403, `only the super tenant can ${action}`)
}

/** Refuses unsafe requests from pages of other origins: browsers may send remembered credentials (CSRF). */
function refuseOtherOrigins(context: Context): void {
  if (!UNSAFE.includes(context.req.method)) return
  const origin = context.req.header('origin')
  const site = context.req.header('sec-fetch-site') ?? 'none'
  const isSameOrigin = origin === undefined || origin === new URL(context.req.url).origin
  if (!isSameOrigin || (site !== 'none' && site !== 'same-origin'))
    throw new Problem(403, 'requests from pages of other origins are refused')
}

export function clientAddressOf(context: Context): string {
  const { clientAddress } = context.env as { readonly clientAddress?: unknown }
  return typeof clientAddress === 'string' ? clientAddress : ''
}
