/**
 * Between a reactor and the authority, the thread that knows who may do what. News are posted to every reactor before
 * the shared epoch goes up by one: a reactor whose epoch differs takes in all of them before it decides anything.
 */
import type { IssuerKeys, RevokedFacts, SubscriptionNews } from './facts.ts'

export type IdentityNews =
  | { readonly kind: 'keys'; readonly issuers: readonly IssuerKeys[] }
  | { readonly kind: 'subscriptions'; readonly news: SubscriptionNews }
  | { readonly kind: 'revoked'; readonly tokens: readonly RevokedFacts[] }
  /** Some were removed, locked, or given another password or other roles: nothing remembered of any of them holds. */
  | { readonly kind: 'users' }
  /** Of a thread that has just begun: what was known before holds no longer. The rest follows. */
  | { readonly kind: 'anew' }
  /** Everything that there was has been told. */
  | { readonly kind: 'complete' }

/** What a reactor cannot find out by itself. */
export type Inquiry =
  /** Look for a key that nobody knows. Answered when the set was fetched or need not be: keys come as news before. */
  | { readonly kind: 'key'; readonly issuer: string; readonly kid: string }
  /** RFC 7662. */
  | { readonly kind: 'introspect'; readonly token: string }
  /** `address`: of the client, because guesses count by where they come from. */
  | { readonly kind: 'password'; readonly user: string; readonly password: string; readonly address: string }
  /** What is known of a user, for the token that goes to backends. */
  | { readonly kind: 'claims'; readonly user: string; readonly tenant: string }
  /** An access token for a protected backend: `key` names the API and the kind of its endpoint. */
  | {
      readonly kind: 'backendToken'
      readonly key: string
      /** A token that the backend would not have: not to be answered again. '' for none. */
      readonly refused: string
    }
  /** A module of the operator's makes the token for backends of what would stand in it. */
  | { readonly kind: 'backendJwt'; readonly claims: Readonly<Record<string, unknown>> }

export interface InquiryResults {
  readonly key: true
  readonly introspect: Introspection
  readonly password: KnownUser | null
  readonly claims: Readonly<Record<string, unknown>>
  readonly backendToken: { readonly token: string; readonly expiresMs: number }
  readonly backendJwt: string
}

/** What an authorisation server says of a token (RFC 7662 2.2); null: it is not active. */
export type Introspection = {
  readonly issuer: string
  readonly consumerKey: string
  readonly user: string
  readonly isApplication: boolean
  readonly scopes: readonly string[]
  /** Milliseconds since 1970; 0: not said. */
  readonly expiresMs: number
  readonly claims: Readonly<Record<string, unknown>>
} | null

export interface KnownUser {
  readonly name: string
  readonly tenant: string
  readonly roles: readonly string[]
}

/** An inquiry with its number. */
export interface Asked {
  readonly id: number
  readonly inquiry: Inquiry
}

/** To a reactor. `cause`: why there is no answer, for the log. */
export type FromAuthority =
  | { readonly kind: 'news'; readonly news: IdentityNews }
  | { readonly kind: 'answer'; readonly id: number; readonly value: InquiryResults[Inquiry['kind']] }
  | { readonly kind: 'failed'; readonly id: number; readonly cause: string }
