/** Grants of tokens for one API: validates the token, finds application and subscription, maps the scopes. */
import type { Caller } from '../proxy/exchange/caller.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { type AuthenticationResult, denial, reportRefusal } from './authenticator.ts'
import { CALLER_KIND, type Denial, type Grant, type ResourceRequirements, type TokenGrant } from './grants.ts'
import type { ReactorAuth } from './reactor-auth.ts'
import type { FoundSubscription } from './subscription-index.ts'
import type { AcceptedToken } from './token-result.ts'
import type { TokenEntry } from './token-table.ts'

/** Further conditions of one scheme on a valid token, checked with every request. */
interface TokenConstraint {
  /** True where the condition admits every bearer token: an accepted access token that needs no certificate. */
  readonly admitsBearers: boolean
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
    const { tokens } = this.#auth
    const row = tokens.find(at, length, tokenMemo, at - head!.fieldsAt)
    if (row >= 0) {
      const known = constraint.admitsBearers ? tokens.grantAt(row, this) : null
      return known ?? this.#result(exchange, tokens.entryAt(row), constraint)
    }
    const entry = tokens.validateUnknown(at, length)
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
    const denied = constraint.denialOf(exchange, result)
    if (denied !== undefined) return denied
    const grant = entry.grantFor(this) ?? this.#newGrant(exchange, entry, result)
    if (grant.kind === 'grant') this.#auth.tokens.putGrant(entry, grant)
    return grant
  }

  #newGrant({ api }: Exchange, entry: TokenEntry, token: AcceptedToken): TokenGrant | Denial {
    const { hasSnapshot, subscriptions } = this.#auth.state
    // Before the first snapshot a missing subscription means nothing.
    if (!hasSnapshot) {
      const cause = 'the control thread has sent no subscriptions yet'
      this.#auth.report('warn', 'credentials not checked', { CAUSE_OF_ERROR: cause, ERROR_CODE: 900900 })
      return denial(900900)
    }
    const { issuer, consumerKey, apiKey } = token
    const found =
      apiKey === null
        ? subscriptions.forConsumerKey(issuer, consumerKey, this.#api)
        : subscriptions.forApplication(apiKey.applicationId, apiKey.keyType, this.#api)
    const scopes = this.#requirements.scopeBits.maskOf(token.scopes)
    // The key type of the API is that of a client that is unknown here.
    const grant = new GrantedToken(this, token, found, found.keyType ?? api!.keyType, scopes)
    entry.keepGrant(grant)
    return grant
  }
}

/** Grant of one API for one token. Fields that each request reads come first, so that they share a cache line. */
class GrantedToken implements TokenGrant {
  readonly kind = 'grant'
  readonly api: object
  readonly keyType: Caller['keyType']
  readonly callerKind: number
  limits: object | null = null
  readonly scopes: Grant['scopes']
  readonly subscriptionDenial: Grant['subscriptionDenial']
  readonly application: Caller['application']
  readonly subscriptionTier: string
  readonly isApplication: boolean
  readonly token: AcceptedToken

  constructor(
    api: object,
    token: AcceptedToken,
    found: FoundSubscription,
    keyType: Caller['keyType'],
    scopes: Grant['scopes'],
  ) {
    const isSubscribed = found.kind === 'subscribed'
    this.api = api
    this.keyType = keyType
    this.isApplication = token.apiKey !== null || token.isApplication
    const callerKind = this.isApplication ? CALLER_KIND.APPLICATION : CALLER_KIND.USER
    this.callerKind = isSubscribed ? callerKind : 0
    this.scopes = scopes
    this.subscriptionDenial = isSubscribed ? 0 : found.code
    // A caller that only the custom validator admits has no application: its tunnels need no subscription either.
    this.application = isSubscribed ? found.application : null
    this.subscriptionTier = isSubscribed ? found.tier : 'Unauthenticated'
    this.token = token
  }

  get caller(): Caller {
    return this
  }

  get method(): Caller['method'] {
    return this.token.apiKey === null ? 'oauth2' : 'api_key'
  }

  get user(): string {
    return this.token.user
  }

  get tenant(): string {
    return this.token.tenant
  }

  get consumerKey(): string {
    return this.token.consumerKey
  }

  get heldScopes(): Caller['heldScopes'] {
    return this.token.scopes
  }

  get claims(): Caller['claims'] {
    return this.token.claims
  }

  get expiresMs(): number {
    return this.token.expiresMs
  }

  get revocationKey(): string {
    return this.token.revocationKey
  }
}
