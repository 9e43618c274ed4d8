/** What authentication in a reactor is configured with: plain data, made by the primary, replaced by a reload. */

/** Whose tokens are accepted, and on which terms. */
export interface IssuerPlan {
  /** `iss`, compared exactly. */
  readonly issuer: string
  /** The built-in key manager; others are of `[[apim.jwt.issuer]]`. */
  readonly isOwn: boolean
  /** Algorithms (RFC 7518, RFC 8037) that its signatures may have. */
  readonly algorithms: readonly string[]
  /** One of them must be in `aud`; none: `aud` is not asked for. */
  readonly audiences: readonly string[]
  /** Names under which claims are known here. */
  readonly claims: readonly { readonly remote: string; readonly local: string }[]
  /** Claims that name the client, the first that is there. */
  readonly consumerKeyClaims: readonly string[]
  readonly scopesClaim: string
}

export interface IdentityPlan {
  readonly issuers: readonly IssuerPlan[]
  /** Field that carries tokens where an API names no other, in lower case. */
  readonly authField: string
  /** Backends get that field as it came. */
  readonly passesAuthField: boolean
  readonly skewMs: number
  /** How long a verdict holds at most; 0: nothing is remembered. */
  readonly verdictMs: number
}

/** Who may use an API, as its chain is built for it. */
export interface AccessPlan {
  /** `name:version`, what subscriptions name. */
  readonly subject: string
  /** Field that carries tokens, in lower case; '' for that of all APIs. */
  readonly authField: string
  /** What clients may identify themselves with: one is enough, but for what is mandatory. None: nothing is asked. */
  readonly schemes: readonly AccessScheme[]
  /** A client certificate is asked for besides another scheme. */
  readonly needsCertificate: boolean
  /** One of the others is asked for besides a client certificate. */
  readonly needsOther: boolean
  /** Certificates of clients that have been let in for this API. */
  readonly certificates: readonly { readonly thumbprint: string; readonly tier: string }[]
  /** Roles that a user without a token must have one of, by scope. */
  readonly scopeRoles: Readonly<Record<string, readonly string[]>>
  readonly provider: string
}

export type AccessScheme = 'oauth2' | 'api_key' | 'basic' | 'mutual_tls'
