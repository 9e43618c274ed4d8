/** Configuration of authentication: plain data from the primary, replaced by a reload. Times in milliseconds. */

/** An issuer whose tokens are accepted, and on which conditions. */
export interface IssuerPlan {
  /** `iss`, compared exactly. */
  readonly issuer: string
  /** The built-in key manager; others come from `[[apim.jwt.issuer]]`. */
  readonly isOwn: boolean
  /** Accepted signature algorithms (RFC 7518, RFC 8037). */
  readonly algorithms: readonly string[]
  /** `aud` must have one of them; none: `aud` is not checked. */
  readonly audiences: readonly string[]
  /** Local names of claims. */
  readonly claims: readonly { readonly remote: string; readonly local: string }[]
  /** Claims that may name the client; the first present one counts. */
  readonly consumerKeyClaims: readonly string[]
  readonly scopesClaim: string
  /** Its ECDSA signatures always have the smaller of the two valid s. */
  readonly lowS: boolean
}

export interface AuthPlan {
  readonly issuers: readonly IssuerPlan[]
  /** Header field of access tokens, in lower case, for APIs that name none. */
  readonly authField: string
  /** Module of the operator's custom validator, relative to the home folder; '' for none. */
  readonly validator: string
  /** Backends get the client's access token as it came. */
  readonly forwardsAuthField: boolean
  readonly skewMs: number
  /** Longest time for which a validated token is cached; 0: none is. */
  readonly tokenCacheMs: number
  readonly backendJwt: BackendJwtPlan
}

/** The JWT that tells backends who is calling (`[apim.jwt]`). */
export interface BackendJwtPlan {
  readonly isEnabled: boolean
  /** Header field of the JWT. A field of this name from a client is always removed. */
  readonly field: string
  readonly encoding: 'base64' | 'base64url'
  readonly isSigned: boolean
  /** Prefix of claim names; '' for none. */
  readonly prefix: string
  /** Lifetime of a JWT, which also ends with the caller's credentials. */
  readonly lifetimeMs: number
  /** Longest time for which a JWT is reused; 0: each request has its own. */
  readonly cacheMs: number
  /** Claims of the user are added. */
  readonly hasUserClaims: boolean
  /** How long claims of a user are cached; 0: not at all. */
  readonly claimsCacheMs: number
  /** A module of the operator, in the control thread, makes the JWT. */
  readonly isCustom: boolean
  /** Null where reactors sign nothing. */
  readonly signer: BackendSigner | null
}

/** The key of backend JWTs; a secret. */
export interface BackendSigner {
  /** PKCS#8, PEM; RSA. */
  readonly key: string
  readonly kid: string
  /** Thumbprints of the certificate of the key (RFC 7515 4.1.7, 4.1.8); '' without a certificate. */
  readonly x5t: string
  readonly x5tS256: string
}

/** Access rules of an API, from which its filter chain is built. */
export interface AccessPlan {
  /** `name:version`, as subscriptions name the API. */
  readonly api: string
  /** Header field of access tokens, in lower case; '' for `AuthPlan.authField`. */
  readonly authField: string
  /** Accepted schemes; one is enough, unless one of the next two keys asks for more. None: the API is open. */
  readonly schemes: readonly AccessScheme[]
  /** A client certificate is required, whatever else is sent. */
  readonly requiresCertificate: boolean
  /** A scheme other than mutual TLS is required, whatever certificate is sent. */
  readonly requiresOther: boolean
  /** Client certificates that the API accepts. */
  readonly certificates: readonly { readonly thumbprint: string; readonly alias: string; readonly tier: string }[]
  /** By scope: a user of the scheme Basic has it with any one of these roles. */
  readonly scopeRoles: Readonly<Record<string, readonly string[]>>
  readonly provider: string
}

export type AccessScheme = 'oauth2' | 'api_key' | 'basic' | 'mutual_tls'

/** Credentials of the gateway itself at the backends of an API, by kind of endpoint; null: none. */
export type BackendCredentialPlans = Readonly<Record<'production' | 'sandbox', BackendCredentialPlan | null>>

export type BackendCredentialPlan =
  /** The whole field value, which is a secret. */
  | { readonly kind: 'basic'; readonly authorization: string }
  /** `key`: of the BackendTokenPlan by which the control thread gets the token. */
  | { readonly kind: 'oauth2'; readonly key: string }

/** How the control thread gets an access token for a backend (RFC 6749 4.4). Holds a secret. */
export interface BackendTokenPlan {
  /** As in `BackendCredentialPlan`, or that of an endpoint of sequences. */
  readonly key: string
  readonly tokenUrl: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scopes: readonly string[]
  readonly parameters: Readonly<Record<string, string>>
  /** Left out: client credentials. Others are RFC 6749 4.3 and 6. */
  readonly grant?:
    | { readonly kind: 'password'; readonly username: string; readonly password: string }
    | { readonly kind: 'refresh_token'; readonly refreshToken: string }
  /** The form has the credentials of the client (RFC 6749 2.3.1). Left out: Authorization has them. */
  readonly inForm?: true
  /** Further fields of the request, in lower case. Left out: none. */
  readonly headers?: Readonly<Record<string, string>>
}
