/** Users with their passwords (RFC 7617). No application takes part, so nothing has to be subscribed to. */
import type { Exchange } from '../exchange/exchange.ts'
import { arena } from '../http1/llhttp.ts'
import { trimmedEnd } from '../http1/strictness.ts'
import { readBasic } from '../identity/basic-credentials.ts'
import { CALLER_KIND, type Grant, type ResourceNeeds } from '../identity/grants.ts'
import type { Identity } from '../identity/identity.ts'
import type { AccessPlan } from '../identity/identity-plan.ts'
import type { ConfirmedUser } from '../identity/passwords.ts'
import { addressOf } from './client-address.ts'
import { type Authenticator, credentialsAt, denial, type Found, told } from './authenticator.ts'

/** Characters of base64. */
const CREDENTIALS_MAX = 1024

export class BasicAuthenticator implements Authenticator {
  readonly scheme = 'basic'
  readonly #identity: Identity
  readonly #needs: ResourceNeeds
  readonly #scopeRoles: AccessPlan['scopeRoles']

  constructor(identity: Identity, needs: ResourceNeeds, scopeRoles: AccessPlan['scopeRoles']) {
    this.#identity = identity
    this.#needs = needs
    this.#scopeRoles = scopeRoles
  }

  authenticate(exchange: Exchange, field: number): Found | Promise<Found> {
    if (field < 0) return undefined
    const { bytes } = arena
    const head = exchange.head!
    const end = trimmedEnd(bytes, head, field)
    const at = credentialsAt(bytes, head.valueAt(field), end, 'basic')
    if (at < 0) return undefined
    const read = end - at > CREDENTIALS_MAX ? undefined : readBasic(bytes.latin1Slice(at, end))
    if (read === undefined) return denial(900901)
    const confirmed = this.#identity.passwords.check(...read, addressOf(exchange))
    return confirmed instanceof Promise ? this.#foundLater(exchange, confirmed) : this.#grantTo(exchange, confirmed)
  }

  async #foundLater(exchange: Exchange, confirmed: Promise<ConfirmedUser | null>): Promise<Found> {
    try {
      const user = await confirmed
      return user === null ? this.#refused(exchange) : this.#grantTo(exchange, user)
    } catch (error) {
      told(this.#identity, exchange, 900900, (error as Error).message)
      return denial(900900)
    }
  }

  #refused(exchange: Exchange): Found {
    told(this.#identity, exchange, 900901, 'no such user, or another password')
    return denial(900901)
  }

  #grantTo({ api }: Exchange, { user, grants }: ConfirmedUser): Grant {
    let grant = grants.get(this)
    if (grant === undefined) {
      grant = this.#newGrant(user, api!.keyType)
      grants.set(this, grant)
    }
    return grant
  }

  #newGrant({ name, tenant, roles }: ConfirmedUser['user'], keyType: 'PRODUCTION' | 'SANDBOX'): Grant {
    const caller = {
      method: 'basic',
      user: name,
      tenant,
      isApplication: false,
      keyType,
      application: null,
      consumerKey: '',
      subscriptionTier: 'Unauthenticated',
      claims: {},
      expiresMs: 0,
      revocationKey: '',
    } as const
    const holds = (scope: string): boolean => {
      const bound = Object.hasOwn(this.#scopeRoles, scope) ? this.#scopeRoles[scope]! : []
      // As for tokens: a scope that is bound to no role is given to every user who asks.
      return bound.length === 0 || bound.some(role => roles.includes(role))
    }
    const scopes = this.#needs.bits.maskWhere(holds)
    return { kind: 'grant', caller, callerKind: CALLER_KIND.USER, scopes, token: null }
  }
}
