/**
 * Messages between a reactor and the control thread. The control thread posts an update to every reactor, and then adds
 * one to the shared version number. A reactor that reads a new number applies all updates before it decides anything.
 */
import type { IssuerKeys, RevocationRecord, SubscriptionUpdate } from './records.ts'
import type { UsageRow } from '../throttle/cluster-limits.ts'
import type { ThrottleDecision } from '../throttle/decisions.ts'
import type { PolicySet } from '../throttle/policy.ts'
import type { ResultMessage } from '../runtime/call-channel.ts'

/** A change of what reactors know. A snapshot is a `reset`, the updates that rebuild the state, and `complete`. */
export type AuthUpdate =
  | { readonly kind: 'keys'; readonly issuers: readonly IssuerKeys[] }
  | { readonly kind: 'subscriptions'; readonly update: SubscriptionUpdate }
  | { readonly kind: 'revoked'; readonly tokens: readonly RevocationRecord[] }
  /** Users were removed or locked, or have another password or other roles: drop everything remembered of users. */
  | { readonly kind: 'users' }
  /** All throttling policies of the registry; they replace those that were told before. */
  | { readonly kind: 'policies'; readonly set: PolicySet }
  /** A traffic manager has decided on keys. */
  | { readonly kind: 'decisions'; readonly decisions: readonly ThrottleDecision[] }
  /** Discard applications, keys and subscriptions once `complete` comes; a full snapshot follows. */
  | { readonly kind: 'reset' }
  /** The snapshot is complete. */
  | { readonly kind: 'complete' }

/** A reactor's question to the control thread. */
export type ControlCall =
  /** Fetch an unknown signing key. The result comes when the key set was fetched or need not be, behind its update. */
  | { readonly kind: 'key'; readonly issuer: string; readonly kid: string }
  /** RFC 7662. */
  | { readonly kind: 'introspect'; readonly token: string }
  /** `address`: of the client, because wrong passwords count by address. */
  | { readonly kind: 'password'; readonly user: string; readonly password: string; readonly address: string }
  /** Claims of a user, for the token that goes to backends. */
  | { readonly kind: 'claims'; readonly user: string; readonly tenant: string }
  /** An access token for a protected backend: `key` names the API and the kind of its endpoint. */
  | {
      readonly kind: 'backendToken'
      readonly key: string
      /** A token that the backend has refused, never to be returned again; '' for none. */
      readonly refused: string
    }
  /** The operator's module makes the token for backends from these claims. */
  | { readonly kind: 'backendJwt'; readonly claims: Readonly<Record<string, unknown>> }
  /** Reports usage since the last report to the traffic managers. */
  | { readonly kind: 'usage'; readonly rows: readonly UsageRow[] }
  /** Events for analytics: lines of JSON, each with its line feed. */
  | { readonly kind: 'analytics'; readonly lines: string; readonly events: number }
  /** Traced exchanges, as `observe/trace-records.ts` writes them. */
  | { readonly kind: 'traces'; readonly records: string }

export interface ControlCallResults {
  readonly key: true
  readonly introspect: IntrospectionResult
  readonly password: AuthenticatedUser | null
  readonly claims: Readonly<Record<string, unknown>>
  readonly backendToken: { readonly token: string; readonly expiresMs: number }
  readonly backendJwt: string
  readonly usage: true
  readonly analytics: true
  readonly traces: true
}

/** The introspection response of an authorisation server (RFC 7662 2.2); null: the token is not active. */
export type IntrospectionResult = {
  readonly issuer: string
  readonly consumerKey: string
  readonly user: string
  readonly isApplication: boolean
  readonly scopes: readonly string[]
  /** `nbf` and `exp` in milliseconds since 1970; 0: not given. */
  readonly notBeforeMs: number
  readonly expiresMs: number
  readonly claims: Readonly<Record<string, unknown>>
} | null

export interface AuthenticatedUser {
  readonly name: string
  readonly tenant: string
  readonly roles: readonly string[]
}

/** The reason why a call has no result; never a part of the call, which may be a credential. */
export class ControlCallFailed extends Error {
  override readonly name = 'ControlCallFailed'
}

/** From the control thread to a reactor; a reactor posts `CallMessage<ControlCall>`. */
export type ControlMessage = { readonly kind: 'update'; readonly update: AuthUpdate } | ResultMessage
