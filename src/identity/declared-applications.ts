/** What files of a home say of applications: facts as gateways are told them. */
import type { ApplicationFacts, KeyFacts, SubscriptionFacts } from './facts.ts'

export interface DeclaredApplications {
  readonly applications: readonly ApplicationFacts[]
  readonly keys: readonly KeyFacts[]
  readonly subscriptions: readonly SubscriptionFacts[]
}

export const NOTHING_DECLARED: DeclaredApplications = { applications: [], keys: [], subscriptions: [] }
