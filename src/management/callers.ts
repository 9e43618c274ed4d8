/**
 * Who asks the management API. A token must be an access token of the own key manager, given to a user, with the scope
 * that the operation needs; and that user must still have a role for it, whatever the token says. Tokens of
 * applications are not let in: every application of an administrator could do what the administrator may. Basic is for
 * administrators: somebody has to make the first client.
 */
import type { Context } from 'hono'
import { accountNamed } from '../config/account-names.ts'
import { readBasic } from '../identity/basic-credentials.ts'
import { ADMIN_ROLE, MANAGEMENT_SCOPES } from '../registry/management-scopes.ts'
import type { User } from '../registry/entities.ts'
import { Problem } from './problem.ts'
import type { ManagementRoom } from './room.ts'

export interface ManagementCaller {
  readonly user: string
  readonly tenant: string
  /** Sees and changes what others own too. */
  readonly isAdmin: boolean
  /** Whether it was given one of them. */
  mayAny(scopes: readonly string[]): boolean
}

const BEARER = /^Bearer +([A-Za-z0-9\-._~+/]+=*)$/i
const BASIC = /^Basic +([A-Za-z0-9+/]+={0,2})$/i
const CREDENTIALS_CHARS_MAX = 8192
/** A password costs 20 ms of a processor and 20 MB: others wait no longer than for so many. */
const LOGINS_MAX = 4
const UNSAFE = ['POST', 'PUT', 'PATCH', 'DELETE']

export class Callers {
  readonly #room: () => ManagementRoom
  #logins = 0

  constructor(room: () => ManagementRoom) {
    this.#room = room
  }

  /** Throws Problem: 401 without credentials or with wrong ones, 403 without any of the scopes. */
  async admit(context: Context, scopes: readonly string[]): Promise<ManagementCaller> {
    refuseOtherOrigins(context)
    const given = context.req.header('authorization') ?? ''
    if (given.length > CREDENTIALS_CHARS_MAX) throw new Problem(401, 'the credentials are too long')
    const token = BEARER.exec(given)?.[1]
    const basic = BASIC.exec(given)?.[1]
    const caller =
      token !== undefined
        ? await this.#ofToken(token)
        : basic !== undefined
          ? await this.#ofPassword(basic, clientOf(context))
          : null
    if (caller === null) throw new Problem(401, 'an access token with the scope of the operation is needed')
    if (!caller.mayAny(scopes)) throw new Problem(403, `one of these scopes is needed: ${scopes.join(', ')}`)
    return caller
  }

  async #ofToken(token: string): Promise<ManagementCaller | null> {
    const { registry, now } = this.#room()
    const issued = (await registry.tokens.find(token))?.issued
    if (issued === undefined || issued.kind !== 'access' || issued.state !== 'ACTIVE') return null
    if (issued.expiresMs <= now() || issued.isApplication) return null
    const user = await registry.users.find(issued.user, issued.tenant)
    return user === null || user.isLocked ? null : callerOf(user, issued.scopes)
  }

  async #ofPassword(encoded: string, address: string): Promise<ManagementCaller | null> {
    const [given, password] = readBasic(encoded) ?? []
    if (given === undefined || password === undefined) return null
    if (this.#logins >= LOGINS_MAX) throw new Problem(429, 'too many are logging in')
    this.#logins++
    try {
      const { registry, report } = this.#room()
      const { name, tenant } = await accountNamed(given, () => registry.tenants.list())
      const user = await registry.users.authenticate(name, tenant, password, address)
      if (user === null || user === 'locked' || !user.roles.includes(ADMIN_ROLE)) {
        report('warn', 'management login refused', { USER: name, TENANT: tenant, CLIENT_ADDRESS: address })
        if (user === 'locked') throw new Problem(429, 'too many failures; wait a while')
        return null
      }
      return callerOf(user, Object.keys(MANAGEMENT_SCOPES))
    } finally {
      this.#logins--
    }
  }
}

/** Scopes hold as far as the roles still do. */
function callerOf({ name, tenant, roles }: User, scopes: readonly string[]): ManagementCaller {
  const may = (scope: string): boolean => {
    return scopes.includes(scope) && (MANAGEMENT_SCOPES[scope] ?? []).some(role => roles.includes(role))
  }
  return { user: name, tenant, isAdmin: may('apim:admin'), mayAny: wanted => wanted.some(may) }
}

/** A browser that remembers a password must not use it for a page of somebody else. */
function refuseOtherOrigins(context: Context): void {
  if (!UNSAFE.includes(context.req.method)) return
  const origin = context.req.header('origin')
  const site = context.req.header('sec-fetch-site') ?? 'none'
  const isOwn = origin === undefined || origin === new URL(context.req.url).origin
  if (!isOwn || (site !== 'none' && site !== 'same-origin')) throw new Problem(403, 'pages of other origins may not')
}

export function clientOf(context: Context): string {
  const { clientAddress } = context.env as { readonly clientAddress?: unknown }
  return typeof clientAddress === 'string' ? clientAddress : ''
}
