/** Lifetime of a reactor's counters in Redis: a reload that changes where Redis is replaces them. */
import type { MetricsColumn } from '../observe/metrics.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import type { RedisCounters, RedisPlan } from '../throttle/redis-counters.ts'
import type { Throttle } from '../throttle/throttle.ts'

interface SharedCountingOptions {
  readonly report: Report
  readonly metrics: MetricsColumn
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
}

export class SharedCounting {
  readonly #throttle: Throttle
  readonly #options: SharedCountingOptions
  /** The plan of the last call, as text. */
  #wanted = 'null'
  #counters: RedisCounters | null = null

  constructor(throttle: Throttle, options: SharedCountingOptions) {
    this.#throttle = throttle
    this.#options = options
  }

  /**
   * Counts in the Redis of a plan; null: in none. The old counters decide until the new Redis has answered or failed
   * once; then the promise resolves. Never rejects.
   */
  async use(plan: RedisPlan | null): Promise<void> {
    const wanted = JSON.stringify(plan)
    if (wanted === this.#wanted) return
    this.#wanted = wanted
    const next = plan === null ? null : await this.#newCounters(plan)
    await next?.start()
    if (this.#wanted !== wanted) {
      next?.close()
      return
    }
    this.#counters?.close()
    this.#counters = next
    this.#throttle.shared = next
    this.#sharesChanged()
  }

  close(): void {
    this.#wanted = 'closed'
    this.#counters?.close()
  }

  /** Loads the client of Redis, which most reactors never need. */
  async #newCounters(plan: RedisPlan): Promise<RedisCounters> {
    const { RedisCounters } = await import('../throttle/redis-counters.ts')
    return new RedisCounters(plan, {
      ...this.#options,
      nowMs: monotonicMs,
      sharesChanged: () => this.#sharesChanged(),
    })
  }

  /** Limits that callers have are made for one version of the policies, and hold local shares. */
  #sharesChanged(): void {
    this.#throttle.policies.version++
  }
}
