/** Authenticates users by name and password (RFC 7617). No application is involved, so no subscription is required. */
import { trimmedEnd } from '../http1/head-rules.ts'
import { arena } from '../http1/llhttp.ts'
import type { Caller } from '../proxy/exchange/caller.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { AccessPlan } from './auth-plan.ts'
import {
  type AuthenticationResult,
  type Authenticator,
  clientAddressOf,
  credentialsAt,
  denial,
  reportRefusal,
} from './authenticator.ts'
import { parseBasicCredentials } from './basic-credentials.ts'
import type { AuthenticatedUser } from './control-protocol.ts'
import { CALLER_KIND, type Grant, type ResourceRequirements } from './grants.ts'
import type { ConfirmedUser } from './password-validator.ts'
import type { ReactorAuth } from './reactor-auth.ts'

/** Longest credentials in base64 characters. */
const CREDENTIALS_MAX = 1024

export class BasicAuthenticator implements Authenticator {
  readonly scheme = 'basic'
  readonly #auth: ReactorAuth
  readonly #requirements: ResourceRequirements
  readonly #scopeRoles: AccessPlan['scopeRoles']

  constructor(auth: ReactorAuth, requirements: ResourceRequirements, scopeRoles: AccessPlan['scopeRoles']) {
    this.#auth = auth
    this.#requirements = requirements
    this.#scopeRoles = scopeRoles
  }

  authenticate(exchange: Exchange, field: number): AuthenticationResult | Promise<AuthenticationResult> {
    if (field < 0) return undefined
    const { bytes } = arena
    const head = exchange.head!
    const end = trimmedEnd(bytes, head, field)
    const at = credentialsAt(bytes, head.valueAt(field), end, 'basic')
    if (at < 0) return undefined
    const credentials = end - at > CREDENTIALS_MAX ? undefined : parseBasicCredentials(bytes.latin1Slice(at, end))
    if (credentials === undefined) return denial(900901)
    const confirmed = this.#auth.passwords.validate(...credentials, clientAddressOf(exchange))
    return confirmed instanceof Promise ? this.#resultLater(exchange, confirmed) : this.#grantTo(exchange, confirmed)
  }

  async #resultLater(exchange: Exchange, confirmed: Promise<ConfirmedUser | null>): Promise<AuthenticationResult> {
    try {
      const user = await confirmed
      if (user !== null) return this.#grantTo(exchange, user)
      reportRefusal(this.#auth, exchange, 900901, 'wrong user name or password')
      return denial(900901)
    } catch (error) {
      reportRefusal(this.#auth, exchange, 900900, (error as Error).message)
      return denial(900900)
    }
  }

  #grantTo({ api }: Exchange, { user, grants }: ConfirmedUser): Grant {
    let grant = grants.get(this)
    if (grant === undefined) {
      grant = this.#newGrant(user, api!.keyType)
      grants.set(this, grant)
    }
    return grant
  }

  #newGrant({ name, tenant, roles }: AuthenticatedUser, keyType: 'PRODUCTION' | 'SANDBOX'): Grant {
    const holds = (scope: string): boolean => {
      const bound = Object.hasOwn(this.#scopeRoles, scope) ? this.#scopeRoles[scope]! : []
      // A scope that is bound to no role belongs to every user, as it does when the key manager issues tokens.
      return bound.length === 0 || bound.some(role => roles.includes(role))
    }
    const { scopeBits } = this.#requirements
    const heldScopes = new Set(scopeBits.names.filter(holds))
    const caller: Caller = {
      method: 'basic',
      user: name,
      tenant,
      isApplication: false,
      keyType,
      application: null,
      consumerKey: '',
      heldScopes,
      subscriptionTier: 'Unauthenticated',
      claims: {},
      expiresMs: 0,
      revocationKey: '',
      limits: null,
    }
    const scopes = scopeBits.maskOf(heldScopes)
    return { kind: 'grant', caller, callerKind: CALLER_KIND.USER, scopes, subscriptionDenial: 0, token: null }
  }
}
