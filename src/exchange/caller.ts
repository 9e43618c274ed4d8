/**
 * Who asks, as authentication has found it out: one for all requests with the same credentials for the same API, and
 * never edited. What backends are told of it, what a limit counts by and what a log names is read of it.
 */

/** An application as the key manager knows it (identity/facts.ts). */
export interface CallingApplication {
  /** UUID. */
  readonly id: string
  readonly name: string
  /** Account that it belongs to. */
  readonly owner: string
  readonly tenant: string
  /** Name of its throttling policy. */
  readonly tier: string
  readonly attributes: Readonly<Record<string, string>>
}

export interface Caller {
  /** What it identified itself with; `none` on a resource that asks for nothing. */
  readonly method: 'oauth2' | 'api_key' | 'basic' | 'mutual_tls' | 'none'
  /** The user on whose behalf it asks, or the owner of an application that asks for itself; `anonymous` for nobody. */
  readonly user: string
  readonly tenant: string
  /** An application that asks for itself, without a user. */
  readonly isApplication: boolean
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
  /** Null where no application takes part: nobody, users with their password, clients known by certificate. */
  readonly application: CallingApplication | null
  readonly consumerKey: string
  /** Name of the throttling policy of the subscription; `Unauthenticated` for nobody. */
  readonly subscriptionTier: string
  /** Claims of the token under their local names; empty without one. */
  readonly claims: Readonly<Record<string, unknown>>
  /** When what it rests on ends, in milliseconds since 1970; 0: it does not. */
  readonly expiresMs: number
  /** What a revocation would name: jti, or the hash of header and payload; '' where nothing can be revoked. */
  readonly revocationKey: string
}

/** What the gateway shows to a protected backend as its own. */
export interface OwnCredential {
  /** Whole line, with its CRLF. */
  readonly line: string
  /** The backend would not have it. */
  refused(): void
}

/** Characters of `Exchange.callerLines`: so much room is behind the longest head. */
export const CALLER_LINES_MAX = 8192
