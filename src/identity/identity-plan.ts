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
  /** Of the two ECDSA signatures that are one, it makes the one with the smaller s alone. */
  readonly lowS: boolean
}

export interface IdentityPlan {
  readonly issuers: readonly IssuerPlan[]
  /** Field that carries tokens where an API names no other, in lower case. */
  readonly authField: string
  /** Patterns of scopes that every caller counts as having. */
  readonly allowedScopes: readonly string[]
  /** The module with the operator's own word on who is let in, from the home folder on; '' for none. */
  readonly validator: string
  /** Backends get that field as it came. */
  readonly passesAuthField: boolean
  readonly skewMs: number
  /** How long a verdict holds at most; 0: nothing is remembered. */
  readonly verdictMs: number
  readonly backendJwt: BackendJwtPlan
}

/** The token that tells backends who is calling (`[apim.jwt]`). Times in milliseconds. */
export interface BackendJwtPlan {
  readonly isMade: boolean
  /** Field that carries it. What clients send in it is removed, whether or not one is made. */
  readonly field: string
  readonly encoding: 'base64' | 'base64url'
  readonly isSigned: boolean
  /** In front of the names of claims; '' for none. */
  readonly prefix: string
  /** How long one is good, but for the end of what the caller has shown. */
  readonly lifeMs: number
  /** How long one is used again at most; 0: each request has its own. */
  readonly keptMs: number
  /** What is known of the user is asked for. */
  readonly hasUserClaims: boolean
  /** How long that is remembered; 0: not at all. */
  readonly claimsMs: number
  /** A module of the operator's makes it, in the authority's thread. */
  readonly isCustom: boolean
  /** Null where nothing is signed here. */
  readonly signer: BackendSigner | null
}

/** What it is signed with; holds a secret. */
export interface BackendSigner {
  /** PKCS#8, PEM; RSA. */
  readonly key: string
  readonly kid: string
  /** Thumbprints of the certificate that goes with the key (RFC 7515 4.1.7, 4.1.8); '' without one. */
  readonly x5t: string
  readonly x5tS256: string
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
  readonly certificates: readonly { readonly thumbprint: string; readonly alias: string; readonly tier: string }[]
  /** Roles that a user without a token must have one of, by scope. */
  readonly scopeRoles: Readonly<Record<string, readonly string[]>>
  readonly provider: string
}

export type AccessScheme = 'oauth2' | 'api_key' | 'basic' | 'mutual_tls'

/** What an API's backends ask of the gateway itself, by the kind of endpoint; null: nothing. */
export type CredentialPlans = Readonly<Record<'production' | 'sandbox', CredentialPlan | null>>

export type CredentialPlan =
  /** A whole field value, which is a secret. */
  | { readonly kind: 'basic'; readonly authorization: string }
  /** The authority has a token for it under that key. */
  | { readonly kind: 'oauth2'; readonly key: string }

/** How the authority gets a token for a backend (RFC 6749 4.4). Holds a secret. */
export interface BackendTokenPlan {
  /** As `CredentialPlan` has it. */
  readonly key: string
  readonly tokenUrl: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scopes: readonly string[]
  readonly parameters: Readonly<Record<string, string>>
}
