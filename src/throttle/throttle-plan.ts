/** Throttling as the primary plans it for reactors: plain data, replaced by a reload. */
import type { PolicySet } from './policy.ts'

/** Condition types that a key of `[apim.throttling]` enables; conditions on addresses always apply. */
export interface ConditionSettings {
  readonly header: boolean
  readonly claim: boolean
  readonly query: boolean
}

export interface ThrottlePlan {
  /** Policies of the home's files. */
  readonly files: PolicySet
  /** The tier `Unlimited` exists (`enable_unlimited_tier`). */
  readonly hasUnlimited: boolean
  /** Deny policies refuse callers (`enable_blacklist_condition`). */
  readonly denies: boolean
  readonly conditions: ConditionSettings
  /** Subscription tier of requests without credentials (`unauthenticated_tier`). */
  readonly unauthenticatedTier: string
  /** Milliseconds between reports to traffic managers, which decide too; 0: there is none. */
  readonly reportMs: number
  /** Passes carry RateLimit fields too (`rate_limit_headers`). */
  readonly rateLimitHeaders: boolean
  /** Messages beyond a limit are dropped; false: their tunnel is closed with 1008 (`throttled_messages`). */
  readonly dropsMessages: boolean
}

export const NO_THROTTLING: ThrottlePlan = {
  files: { policies: [], denied: [] },
  hasUnlimited: true,
  denies: true,
  conditions: { header: false, claim: false, query: false },
  unauthenticatedTier: 'Unlimited',
  reportMs: 0,
  rateLimitHeaders: false,
  dropsMessages: false,
}
