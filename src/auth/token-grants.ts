/** Grants of tokens for one API: validates the token, finds application and subscription, maps the scopes. */
import type { Caller } from '../proxy/exchange/caller.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { type AuthenticationResult, denial, reportRefusal } from './authenticator.ts'
import { CALLER_KIND, type Denial, type Grant, type ResourceRequirements } from './grants.ts'
import type { ReactorAuth } from './reactor-auth.ts'
import type { AcceptedToken } from './token-result.ts'
import type { TokenEntry } from './token-table.ts'

/** Further conditions of one scheme on a valid token, checked with every request. */
interface TokenConstraint {
  denialOf(exchange: Exchange, token: AcceptedToken): Denial | undefined
}

export class TokenGrants {
  readonly #auth: ReactorAuth
  readonly #requirements: ResourceRequirements
  /** `name:version`. */
  readonly #api: string

  constructor(auth: ReactorAuth, requirements: ResourceRequirements, api: string) {
    this.#auth = auth
    this.#requirements = requirements
    this.#api = api
  }

  /** Grant of the token whose bytes are in the arena at `at`. Allocates nothing for a known token. */
  authenticate(
    exchange: Exchange,
    at: number,
    length: number,
    constraint: TokenConstraint,
  ): AuthenticationResult | Promise<AuthenticationResult> {
    const { tokenMemo, head } = exchange
    const entry = this.#auth.tokens.validate(at, length, tokenMemo, at - head!.fieldsAt)
    return entry instanceof Promise
      ? this.#resultLater(exchange, entry, constraint)
      : this.#result(exchange, entry, constraint)
  }

  async #resultLater(
    exchange: Exchange,
    entry: Promise<TokenEntry>,
    constraint: TokenConstraint,
  ): Promise<AuthenticationResult> {
    return this.#result(exchange, await entry, constraint)
  }

  #result(exchange: Exchange, entry: TokenEntry, constraint: TokenConstraint): AuthenticationResult {
    const { result } = entry
    if (result.kind === 'refused') {
      reportRefusal(this.#auth, exchange, result.code, result.description)
      return denial(result.code)
    }
    return constraint.denialOf(exchange, result) ?? this.#grantOf(exchange, entry, result)
  }

  #grantOf({ api }: Exchange, entry: TokenEntry, token: AcceptedToken): Grant | Denial {
    const known = entry.grantFor(this)
    if (known !== undefined) return known
    // Before the first snapshot a missing subscription means nothing.
    if (!this.#auth.state.hasSnapshot) {
      const cause = 'the control thread has sent no subscriptions yet'
      this.#auth.report('warn', 'credentials not checked', { CAUSE_OF_ERROR: cause, ERROR_CODE: 900900 })
      return denial(900900)
    }
    const grant = this.#newGrant(token, api!.keyType)
    entry.keepGrant(this, grant)
    return grant
  }

  /** `keyType`: for a client that is unknown here. */
  #newGrant(token: AcceptedToken, keyType: Caller['keyType']): Grant {
    const { issuer, consumerKey, apiKey } = token
    const { subscriptions } = this.#auth.state
    const found =
      apiKey === null
        ? subscriptions.forConsumerKey(issuer, consumerKey, this.#api)
        : subscriptions.forApplication(apiKey.applicationId, apiKey.keyType, this.#api)
    const isSubscribed = found.kind === 'subscribed'
    const isApplication = apiKey !== null || token.isApplication
    const caller: Caller = {
      method: apiKey === null ? 'oauth2' : 'api_key',
      user: token.user,
      tenant: token.tenant,
      isApplication,
      keyType: found.keyType ?? keyType,
      // A caller that only the custom validator admits has no application: its tunnels need no subscription either.
      application: isSubscribed ? found.application : null,
      consumerKey,
      subscriptionTier: isSubscribed ? found.tier : 'Unauthenticated',
      claims: token.claims,
      expiresMs: token.expiresMs,
      revocationKey: token.revocationKey,
    }
    const callerKind = isApplication ? CALLER_KIND.APPLICATION : CALLER_KIND.USER
    return {
      kind: 'grant',
      caller,
      callerKind: isSubscribed ? callerKind : 0,
      subscriptionDenial: isSubscribed ? 0 : found.code,
      scopes: this.#requirements.scopeBits.maskOf(token.scopes),
      token,
    }
  }
}
