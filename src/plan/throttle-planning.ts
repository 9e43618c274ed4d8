/** Plans throttling: the settings of `[apim.throttling]` that reactors read, and the policies of the home's files. */
import type { Configuration } from '../config/catalogue.ts'
import type { PolicySet } from '../throttle/policy.ts'
import type { ThrottlePlan } from '../throttle/throttle-plan.ts'

export function throttlePlan(configuration: Configuration, files: PolicySet): ThrottlePlan {
  const throttling = configuration['apim.throttling']
  const reports = throttling.enable_data_publishing && configuration['apim.throttling.url_group'].length > 0
  return {
    files,
    hasUnlimited: throttling.enable_unlimited_tier,
    denies: throttling.enable_blacklist_condition,
    conditions: {
      header: throttling.enable_header_based_throttling,
      claim: throttling.enable_jwt_claim_based_throttling,
      query: throttling.enable_query_param_based_throttling,
    },
    unauthenticatedTier: throttling.unauthenticated_tier,
    reportMs: reports ? throttling.publishing_interval : 0,
    rateLimitHeaders: throttling.rate_limit_headers,
    dropsMessages: throttling.throttled_messages === 'drop',
  }
}
