/** What has become known of a token, and where it is asked. Plain data: one verdict for all requests that carry it. */

/** What an API key says beyond what an access token does. */
export interface ApiKeyTerms {
  /** UUID of the application that it was made for; '' where the key does not say. */
  readonly applicationId: string
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
  /** Addresses and networks that it may be used from; none: any. */
  readonly permittedIps: readonly string[]
  /** Patterns of referers that it may be used from; none: any. */
  readonly permittedReferers: readonly string[]
}

export interface AcceptedToken {
  readonly kind: 'accepted'
  readonly issuer: string
  /** '' where no claim of the issuer's names a client. */
  readonly consumerKey: string
  /** The user on whose behalf the client asks; of an application's own token what `sub` says. */
  readonly user: string
  readonly tenant: string
  /** Given to an application that asks for itself. */
  readonly isApplication: boolean
  readonly scopes: ReadonlySet<string>
  /** `exp`, in milliseconds since 1970, without skew; 0: not said. */
  readonly expiresMs: number
  /** jti, else `#` and the base64url SHA-256 of header and payload as they stand (of all of it: opaque). */
  readonly revocationKey: string
  /** `x5t#S256` of `cnf` (RFC 8705 3.1): only with the client certificate of that thumbprint. '' for a bearer token. */
  readonly confirmation: string
  /** Null of an access token: neither may stand for the other. */
  readonly apiKey: ApiKeyTerms | null
  /** Under their local names. */
  readonly claims: Readonly<Record<string, unknown>>
}

export interface RefusedToken {
  readonly kind: 'refused'
  /** 900901: the token is not good. 900900: whether it is could not be found out. */
  readonly code: 900901 | 900900
  /** What is wrong with it, for the log alone: clients get the wording of the code. */
  readonly description: string
}

export type TokenVerdict = AcceptedToken | RefusedToken

/**
 * What a reactor holds of a token. `G` is what authentication makes of it for an API: kept here, and dropped as soon as
 * anything has changed that it may have been made of.
 */
export interface TokenEntry<G> {
  readonly verdict: TokenVerdict
  grantFor(api: object): G | undefined
  keepGrant(api: object, grant: G): void
}

/** Where verdicts are asked for. */
export interface TokenChecks<G> {
  /**
   * Of the token whose bytes stand in the arena: read during the call only. A promise where the token was not known;
   * it is never rejected.
   */
  check(at: number, length: number): TokenEntry<G> | Promise<TokenEntry<G>>
}
