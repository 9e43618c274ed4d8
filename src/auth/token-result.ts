/** Results of token validation: plain data, one object for every request that carries the token. */
import type { VerificationKey } from './verification-key.ts'

/** Claims that only an API key has. */
export interface ApiKeyClaims {
  /** UUID of the application that the key was issued for; '' where the key names none. */
  readonly applicationId: string
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
  /** Addresses and networks from which the key may be used; none: any. */
  readonly permittedIps: readonly string[]
  /** Patterns of Referer with which the key may be used; none: any. */
  readonly permittedReferers: readonly string[]
}

export interface AcceptedToken {
  readonly kind: 'accepted'
  readonly issuer: string
  /** '' where no claim of the token names a client. */
  readonly consumerKey: string
  /** The user on whose behalf the client calls; in a token of the application itself, its `sub`. */
  readonly user: string
  readonly tenant: string
  /** Issued to an application that calls for itself. */
  readonly isApplication: boolean
  readonly scopes: ReadonlySet<string>
  /** `nbf` and `exp` in milliseconds since 1970, without clock skew; 0: the token has none. */
  readonly notBeforeMs: number
  readonly expiresMs: number
  /** As `RevocationRecord.key`. */
  readonly revocationKey: string
  /** `x5t#S256` of `cnf` (RFC 8705 3.1), the client certificate that the token requires; '' for a bearer token. */
  readonly confirmation: string
  /** Null for an access token, which cannot take the place of an API key, nor the other way round. */
  readonly apiKey: ApiKeyClaims | null
  /** Claims under their local names. */
  readonly claims: Readonly<Record<string, unknown>>
}

interface RefusedToken {
  readonly kind: 'refused'
  /** 900901: the token is invalid. 900900: its validation failed, for a cause that is not the token's. */
  readonly code: 900901 | 900900
  /** Reason for the log; clients only get the text of the code. */
  readonly description: string
}

export type TokenResult = AcceptedToken | RefusedToken

/** A result with what the cache needs to know about it. */
export interface TokenValidation {
  readonly result: TokenResult
  /** The key that has verified the signature; null for an opaque token and for a refused one. */
  readonly key: VerificationKey | null
  /** Validation would give the same result again. */
  readonly isCacheable: boolean
  /** The same token with the other valid ECDSA signature, (r, n - s); '' for other algorithms. */
  readonly alternate: string
}

export function refusedToken(description: string): TokenValidation {
  return { result: { kind: 'refused', code: 900901, description }, key: null, isCacheable: true, alternate: '' }
}

/** Reasons that end with time, or with a clock that is set right: never cached. */
export const EXPIRED = 'expired'
export const NOT_YET = 'not valid yet'
export type TimeError = typeof EXPIRED | typeof NOT_YET

export function untimelyToken(description: TimeError): TokenValidation {
  return { ...refusedToken(description), isCacheable: false }
}

/** Never cached: a token is not invalid because its validation failed. */
export function failedValidation(cause: string): TokenValidation {
  return { result: { kind: 'refused', code: 900900, description: cause }, key: null, isCacheable: false, alternate: '' }
}
