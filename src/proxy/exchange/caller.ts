/**
 * The authenticated client (caller) of an API: one object for all requests with the same credentials, never edited but
 * for `limits`. Tokens for backends, rate limits and logs read it.
 */

/** An application as the key manager knows it (auth/records.ts). */
export interface CallingApplication {
  /** UUID. */
  readonly id: string
  readonly name: string
  /** Account that owns the application. */
  readonly owner: string
  readonly tenant: string
  /** Name of its throttling policy. */
  readonly tier: string
  readonly attributes: Readonly<Record<string, string>>
}

export interface Caller {
  /** Authentication scheme; `none` on a resource without authentication. */
  readonly method: 'oauth2' | 'api_key' | 'basic' | 'mutual_tls' | 'none'
  /** User who allowed the token, or owner of an application that acts for itself; `anonymous` without either. */
  readonly user: string
  readonly tenant: string
  /** An application that acts for itself, without a user. */
  readonly isApplication: boolean
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
  /** Null without an application: anonymous clients, users with a password, clients known by certificate. */
  readonly application: CallingApplication | null
  readonly consumerKey: string
  /** Scopes that the credentials have; of a user with a password, those that the API asks for. */
  readonly heldScopes: ReadonlySet<string>
  /** Name of the throttling policy of the subscription; `Unauthenticated` without authentication. */
  readonly subscriptionTier: string
  /** Claims of the token under their local names; empty without one. */
  readonly claims: Readonly<Record<string, unknown>>
  /** End of the credentials in milliseconds since 1970; 0: they do not end. */
  readonly expiresMs: number
  /** Key of a revocation: jti, or the hash of header and payload; '' for credentials that cannot be revoked. */
  readonly revocationKey: string
  /**
   * Limits of the caller at the API that has listed them last; null before. Only the throttling filter reads and writes
   * it: a look-up by caller would wait for memory three times more.
   */
  limits: object | null
}

/** `user@tenant`; a caller without an account has no tenant. */
export function accountOf({ user, tenant }: Caller): string {
  return tenant === '' || user.endsWith(`@${tenant}`) ? user : `${user}@${tenant}`
}

/** Credentials of the gateway itself for a protected backend. */
export interface OwnCredential {
  /** Request line with its CRLF. */
  readonly line: string
  /** The backend has answered 401. */
  refused(): void
}

/**
 * The token that fields carry which a client repeats: the same fields hold the same token at the same place. Kept
 * beside the repeated fields (`proxy/source/request-decoder.ts`); the validator of tokens writes and reads it.
 */
export class TokenMemo {
  /** Where the token begins, from the first field on. */
  offset = -1
  length = 0
  /** Entry of the token table; null: no token was found yet. */
  entry: object | null = null
}

/** Most characters of `Exchange.callerLines`; buffers have this room behind the longest head. */
export const CALLER_LINES_MAX = 8192
