/**
 * Throttling policies as every thread knows them: plain data, from files of the home, from the admin REST API, or built
 * in. Shapes and level names are those of the reference platform (`conf/guide/throttling.md`).
 */

/** Length of a window in units. Windows are aligned to the epoch in UTC; months are calendar months. */
export type TimeUnit = 'sec' | 'min' | 'hour' | 'day' | 'month'

/** Amount that one caller, API or resource may use in one window. */
export interface Quota {
  /** Unit of the count: requests, bytes of requests and responses, or messages of WebSocket connections. */
  readonly type: 'requests' | 'bandwidth' | 'events'
  /** Requests, bytes or messages per window; at least 1. */
  readonly limit: number
  readonly unit: TimeUnit
  /** Units per window; at least 1. */
  readonly units: number
  /** `sliding`: the window before counts in proportion to the part of it that is within the last window length. */
  readonly window: 'tumbling' | 'sliding'
}

/** Where a limit is counted, and what happens where that place cannot be reached or is full. */
export interface Sharing {
  /** `node`: on this machine, exact over all reactors. `redis`: exact over all gateways of one Redis. */
  readonly scope: 'node' | 'redis'
  /** `open`: the request passes; `closed`: it is refused; `local`: it is counted on this machine. */
  readonly failMode: 'open' | 'closed' | 'local'
}

export interface ApplicationPolicy extends Sharing {
  readonly level: 'application'
  readonly name: string
  /** Null: no limit. */
  readonly quota: Quota | null
}

export interface SubscriptionPolicy extends Sharing {
  readonly level: 'subscription'
  readonly name: string
  readonly quota: Quota | null
  /** Limit of the rate in seconds or minutes; null for none. */
  readonly burst: Quota | null
  /** False: requests beyond the quota pass, and are marked. */
  readonly stopOnQuotaReach: boolean
  /** Left out: no limits. */
  readonly graphQL?: QueryLimits
}

/** Largest depth and complexity of a GraphQL query; 0 for no limit. */
interface QueryLimits {
  readonly depth: number
  readonly complexity: number
}

export const NO_QUERY_LIMITS: QueryLimits = { depth: 0, complexity: 0 }

/** A policy of an API or a resource. */
export interface AdvancedPolicy extends Sharing {
  readonly level: 'advanced'
  readonly name: string
  /** `PER_USER`: each user has counters of their own. */
  readonly userLevel: 'PER_API' | 'PER_USER'
  /** The first group whose conditions all hold has its own counter. */
  readonly groups: readonly ConditionGroup[]
  /** For requests to which no group applies; null: no limit. */
  readonly quota: Quota | null
}

export interface ConditionGroup {
  readonly description: string
  readonly conditions: readonly Condition[]
  readonly quota: Quota
}

/** `inverted`: holds where it would not. */
export type Condition =
  | { readonly type: 'address'; readonly inverted: boolean; readonly address: string }
  | { readonly type: 'range'; readonly inverted: boolean; readonly from: string; readonly to: string }
  /** Patterns are regular expressions in linear time (re2); the whole value matches. */
  | { readonly type: 'header'; readonly inverted: boolean; readonly name: string; readonly pattern: string }
  | { readonly type: 'query'; readonly inverted: boolean; readonly name: string; readonly pattern: string }
  | { readonly type: 'claim'; readonly inverted: boolean; readonly name: string; readonly pattern: string }

export interface CustomPolicy extends Sharing {
  readonly level: 'custom'
  readonly name: string
  /** Template over `$resourceKey $userId $apiContext $apiVersion $appTenant $apiTenant $appId $clientIp`. */
  readonly keyTemplate: string
  readonly quota: Quota
}

export type ThrottlingPolicy = ApplicationPolicy | SubscriptionPolicy | AdvancedPolicy | CustomPolicy
export type PolicyLevel = ThrottlingPolicy['level']

/** Refuses whoever it names with 900805 while it is enabled. */
export interface DenyPolicy {
  /** UUID; of a policy from a file a name-based one. */
  readonly id: string
  readonly type: 'API' | 'APPLICATION' | 'USER' | 'SUBSCRIPTION' | 'IP' | 'IPRANGE'
  /**
   * API: `/context/version`. APPLICATION: `owner:name`. USER: name. SUBSCRIPTION: `/context/version:owner:name`. IP: an
   * address or a network (CIDR). IPRANGE: `from-to`.
   */
  readonly value: string
  /** True for IP and IPRANGE: denies every address but these. */
  readonly inverted: boolean
  readonly enabled: boolean
}

export interface PolicySet {
  readonly policies: readonly ThrottlingPolicy[]
  readonly denied: readonly DenyPolicy[]
}

/** The name of the tier without a limit. `enable_unlimited_tier` provides it. */
export const UNLIMITED = 'Unlimited'

const NODE = { scope: 'node', failMode: 'local' } as const

function perMinute(limit: number): Quota {
  return { type: 'requests', limit, unit: 'min', units: 1, window: 'tumbling' }
}

function subscription(name: string, quota: Quota | null): SubscriptionPolicy {
  return { level: 'subscription', name, quota, burst: null, stopOnQuotaReach: true, ...NODE }
}

function application(name: string, quota: Quota | null): ApplicationPolicy {
  return { level: 'application', name, quota, ...NODE }
}

function advanced(name: string, quota: Quota | null): AdvancedPolicy {
  return { level: 'advanced', name, userLevel: 'PER_API', groups: [], quota, ...NODE }
}

/** The tiers that the reference platform has from the start. */
export const DEFAULT_POLICIES: readonly ThrottlingPolicy[] = [
  subscription('Gold', perMinute(5000)),
  subscription('Silver', perMinute(2000)),
  subscription('Bronze', perMinute(1000)),
  subscription('Unauthenticated', perMinute(500)),
  subscription(UNLIMITED, null),
  application('50PerMin', perMinute(50)),
  application('20PerMin', perMinute(20)),
  application('10PerMin', perMinute(10)),
  application(UNLIMITED, null),
  advanced('50KPerMin', perMinute(50_000)),
  advanced('20KPerMin', perMinute(20_000)),
  advanced('10KPerMin', perMinute(10_000)),
  advanced(UNLIMITED, null),
]
