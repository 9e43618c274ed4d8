/** What files of a home say of applications: facts as gateways are told them. */
import type { ApplicationFacts, KeyFacts, SubscriptionFacts } from './facts.ts'

export interface DeclaredApplications {
  readonly applications: readonly ApplicationFacts[]
  readonly keys: readonly DeclaredKey[]
  readonly subscriptions: readonly SubscriptionFacts[]
}

export interface DeclaredKey extends KeyFacts {
  /** Of the built-in key manager's clients: argon2id in PHC form; '' for clients of other issuers, or without one. */
  readonly secretHash: string
  readonly grants: readonly string[]
}

export const NOTHING_DECLARED: DeclaredApplications = { applications: [], keys: [], subscriptions: [] }
