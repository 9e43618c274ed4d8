/** From the bytes of a token to what it may do with an API: its application, its subscription, its scopes. */
import type { Caller } from '../exchange/caller.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { CALLER_KIND, type Denial, type Grant, type ResourceNeeds } from '../identity/grants.ts'
import type { Identity } from '../identity/identity.ts'
import type { AcceptedToken, TokenEntry } from '../identity/token-verdict.ts'
import { denial, type Found, refused } from './authenticator.ts'

/** Of one kind of credentials: what a good token has to hold to besides. Asked of every request. */
interface TokenTerms {
  denialOf(exchange: Exchange, token: AcceptedToken): Denial | undefined
}

export class TokenGrants {
  readonly #identity: Identity
  readonly #needs: ResourceNeeds
  /** `name:version`. */
  readonly #subject: string

  constructor(identity: Identity, needs: ResourceNeeds, subject: string) {
    this.#identity = identity
    this.#needs = needs
    this.#subject = subject
  }

  /** Of the token whose bytes stand there in the arena. Allocates nothing where it is known. */
  check(exchange: Exchange, at: number, length: number, terms: TokenTerms): Found | Promise<Found> {
    const entry = this.#identity.tokens.check(at, length)
    return entry instanceof Promise ? this.#foundLater(exchange, entry, terms) : this.#found(exchange, entry, terms)
  }

  async #foundLater(exchange: Exchange, entry: Promise<TokenEntry<Grant | Denial>>, terms: TokenTerms): Promise<Found> {
    return this.#found(exchange, await entry, terms)
  }

  #found(exchange: Exchange, entry: TokenEntry<Grant | Denial>, terms: TokenTerms): Found {
    const { verdict } = entry
    if (verdict.kind === 'refused') return refused(this.#identity, exchange, verdict)
    return terms.denialOf(exchange, verdict) ?? this.#grantOf(entry, verdict)
  }

  /** Kept with the token until anything changes. */
  #grantOf(entry: TokenEntry<Grant | Denial>, token: AcceptedToken): Grant | Denial {
    const known = entry.grantFor(this)
    if (known !== undefined) return known
    // Until everything was told, nobody can say that a subscription is missing.
    if (!this.#identity.sources.isComplete) {
      const cause = 'nothing was told of subscriptions yet'
      this.#identity.report('warn', 'credentials not checked', { CAUSE_OF_ERROR: cause, ERROR_CODE: 900900 })
      return denial(900900)
    }
    const grant = this.#newGrant(token)
    entry.keepGrant(this, grant)
    return grant
  }

  #newGrant(token: AcceptedToken): Grant | Denial {
    const { issuer, consumerKey, apiKey } = token
    const { subscriptions } = this.#identity.sources
    const found =
      apiKey === null
        ? subscriptions.ofKey(issuer, consumerKey, this.#subject)
        : subscriptions.ofApplication(apiKey.applicationId, apiKey.keyType, this.#subject)
    if (found.kind === 'unsubscribed') return denial(found.code)
    const isApplication = apiKey !== null || token.isApplication
    const caller: Caller = {
      method: apiKey === null ? 'oauth2' : 'api_key',
      user: token.user,
      tenant: token.tenant,
      isApplication,
      keyType: found.keyType,
      application: found.application,
      consumerKey,
      subscriptionTier: found.tier,
      claims: token.claims,
      expiresMs: token.expiresMs,
      revocationKey: token.revocationKey,
    }
    return {
      kind: 'grant',
      caller,
      callerKind: isApplication ? CALLER_KIND.APPLICATION : CALLER_KIND.USER,
      scopes: this.#needs.bits.maskOf(token.scopes),
      token,
    }
  }
}
