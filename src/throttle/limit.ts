/**
 * One limit on the requests of one caller: a quota of a policy at one level, with its counter. Composes the refusal of
 * each second once, so that a flood of refused requests composes nothing.
 */
import type { FaultCode } from '../faults/error-codes.ts'
import { METRIC } from '../observe/metrics.ts'
import type { Refusal } from '../proxy/exchange/outcome.ts'
import type { ClusterKey } from './cluster-limits.ts'
import type { Counter } from './counter-table.ts'
import type { Quota, Sharing, TimeUnit } from './policy.ts'
import type { SharedCounter } from './shared-counters.ts'

/** Levels in the order in which they decide. */
export type Level = 'api' | 'resource' | 'subscription' | 'burst' | 'application' | 'custom' | 'hard'

interface LevelRow {
  readonly code: FaultCode
  /** Cells of requests that pass the level, and that it refuses. */
  readonly passed: number
  readonly refused: number
}

export const LEVELS: Readonly<Record<Level, LevelRow>> = {
  api: { code: 900800, passed: METRIC.throttlePassedApi, refused: METRIC.throttleRefusedApi },
  resource: { code: 900802, passed: METRIC.throttlePassedResource, refused: METRIC.throttleRefusedResource },
  subscription: {
    code: 900804,
    passed: METRIC.throttlePassedSubscription,
    refused: METRIC.throttleRefusedSubscription,
  },
  burst: { code: 900807, passed: METRIC.throttlePassedBurst, refused: METRIC.throttleRefusedBurst },
  application: { code: 900803, passed: METRIC.throttlePassedApplication, refused: METRIC.throttleRefusedApplication },
  custom: { code: 900806, passed: METRIC.throttlePassedCustom, refused: METRIC.throttleRefusedCustom },
  hard: { code: 900801, passed: METRIC.throttlePassedHard, refused: METRIC.throttleRefusedHard },
}

/** State of a counter now. */
export interface CounterState {
  readonly remaining: number
  /** End of the window in milliseconds since 1970. */
  readonly endsMs: number
}

const UNIT_SECONDS: Readonly<Record<Exclude<TimeUnit, 'month'>, number>> = { sec: 1, min: 60, hour: 3600, day: 86_400 }
/** Quota units of draft-ietf-httpapi-ratelimit-headers; requests are the default, and there is none for messages. */
const QUOTA_UNITS = { requests: '', bandwidth: ';qu="content-bytes"', events: '' } as const

export class Limit {
  readonly level: Level
  readonly policy: string
  readonly key: string
  readonly quota: Quota
  readonly failMode: Sharing['failMode']
  /** False: requests beyond the quota pass, and are marked. */
  readonly stops: boolean
  /** Counts on this machine; of a shared limit its local share, while Redis does not answer. */
  readonly counter: Counter
  /** Null: the limit counts on this machine. */
  readonly shared: SharedCounter | null
  /** Item of `RateLimit-Policy`: `"Gold";q=5000;w=60`. */
  readonly policyItem: string
  /** State of the limit with a traffic manager (`cluster-limits.ts`). */
  cluster: ClusterKey | null = null
  readonly #name: string
  #refusal: Refusal | null = null
  #composedAtS = 0
  #composedEndsMs = 0

  constructor(
    level: Level,
    policy: Sharing & { readonly name: string },
    key: string,
    quota: Quota,
    stops: boolean,
    counter: Counter,
  ) {
    this.level = level
    this.policy = policy.name
    this.key = key
    this.quota = quota
    this.failMode = policy.failMode
    this.stops = stops
    this.counter = counter
    this.shared = policy.scope === 'redis' ? { key, quota } : null
    this.#name = stringItem(policy.name)
    const window = quota.unit === 'month' ? '' : `;w=${quota.units * UNIT_SECONDS[quota.unit]}`
    this.policyItem = `${this.#name};q=${quota.limit}${window}${QUOTA_UNITS[quota.type]}`
  }

  /** Item of `RateLimit`: `"Gold";r=42;t=17`. */
  item({ remaining, endsMs }: CounterState, nowMs: number): string {
    return `${this.#name};r=${remaining};t=${secondsUntil(endsMs, nowMs)}`
  }

  /** The refusal of this second. `endsMs`: end of the window; it names when the next request is allowed. */
  refusal(endsMs: number, nowMs: number): Refusal {
    const second = Math.floor(nowMs / 1000)
    if (this.#refusal !== null && second === this.#composedAtS && endsMs === this.#composedEndsMs) return this.#refusal
    const retry = `Retry-After: ${secondsUntil(endsMs, nowMs)}\r\n`
    const rates = `RateLimit-Policy: ${this.policyItem}\r\nRateLimit: ${this.item({ remaining: 0, endsMs }, nowMs)}\r\n`
    this.#composedAtS = second
    this.#composedEndsMs = endsMs
    this.#refusal = {
      code: LEVELS[this.level].code,
      status: undefined,
      description: undefined,
      lines: retry + rates,
      throttling: { nextAccessMs: Math.max(endsMs, nowMs), kept: null },
    }
    return this.#refusal
  }
}

/** At least 1: a client that waits shorter is refused again. */
function secondsUntil(endsMs: number, nowMs: number): number {
  return Math.max(1, Math.ceil((endsMs - nowMs) / 1000))
}

/** A string of structured fields (RFC 9651 3.3.3), which has ASCII characters only. */
function stringItem(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`
}
