/**
 * Limits that a traffic manager decides for all gateways. A reactor adds up what passes each limit, hands the sums to
 * the control thread, and looks up the decisions that come back. Without a traffic manager there is no such object.
 */
import type { Decisions } from './decisions.ts'
import type { Quota } from './policy.ts'

/** Usage of one key at one reactor since its last report. */
export interface UsageRow {
  readonly key: string
  readonly quota: Quota
  /** Requests, bytes or messages. */
  readonly amount: number
}

/** A limit that a traffic manager decides. */
interface ClusterLimit {
  readonly key: string
  readonly quota: Quota
  /** Level of the limit: the hard limit protects a backend from one gateway, and stays on it. */
  readonly level: string
  /** Null where the limit is not counted in Redis, which decides for all gateways by itself. */
  readonly shared: object | null
  /** Key in this file; null before the limit is first used. */
  cluster: ClusterKey | null
}

/** State of one key in this reactor. */
export interface ClusterKey {
  readonly key: string
  readonly quota: Quota
  amount: number
  /** Version of the decisions at the last look-up. */
  version: number
  untilMs: number
}

/** Keys with unreported amounts; beyond them amounts are lost and counted. */
const KEYS_MAX = 65_536

export class ClusterLimits {
  readonly #decisions: Decisions
  /** Keys with an amount. */
  #used: ClusterKey[] = []
  #isReporting = false
  readonly #send: (rows: readonly UsageRow[]) => Promise<unknown>
  readonly #lost: (rows: number) => void

  /** `send`: resolves when the control thread has the rows. `lost`: rows that it did not get. */
  constructor(
    decisions: Decisions,
    send: (rows: readonly UsageRow[]) => Promise<unknown>,
    lost: (rows: number) => void,
  ) {
    this.#decisions = decisions
    this.#send = send
    this.#lost = lost
  }

  /** The first of the limits that the traffic manager throttles now; null: none. */
  refusing<L extends ClusterLimit>(limits: readonly L[], nowMs: number): L | null {
    for (let at = 0; at < limits.length; at++) if (this.throttledUntilMs(limits[at]!) > nowMs) return limits[at]!
    return null
  }

  /** Milliseconds since 1970 until which the traffic manager throttles the limit; 0: it does not. */
  throttledUntilMs(limit: ClusterLimit): number {
    const key = this.#keyOf(limit)
    if (key.version !== this.#decisions.version) {
      key.version = this.#decisions.version
      key.untilMs = this.#decisions.untilMs(key.key)
    }
    return key.untilMs
  }

  /** Adds one request to each limit on requests. */
  addRequest(limits: readonly ClusterLimit[]): void {
    for (let at = 0; at < limits.length; at++) if (limits[at]!.quota.type === 'requests') this.add(limits[at]!, 1)
  }

  /** Adds what has passed. */
  add(limit: ClusterLimit, amount: number): void {
    if (limit.level === 'hard' || limit.shared !== null) return
    const key = this.#keyOf(limit)
    if (key.amount === 0) {
      if (this.#used.length >= KEYS_MAX) {
        this.#lost(1)
        return
      }
      this.#used.push(key)
    }
    key.amount += amount
  }

  /** Hands the sums to the control thread; at most one report is under way, so a slow thread gets larger sums. */
  report(): void {
    if (this.#isReporting || this.#used.length === 0) return
    const rows = this.#used.map(({ key, quota, amount }) => ({ key, quota, amount }))
    for (const key of this.#used) key.amount = 0
    this.#used = []
    this.#isReporting = true
    this.#send(rows).then(
      () => {
        this.#isReporting = false
      },
      () => {
        this.#isReporting = false
        this.#lost(rows.length)
      },
    )
  }

  #keyOf(limit: ClusterLimit): ClusterKey {
    limit.cluster ??= { key: limit.key, quota: limit.quota, amount: 0, version: 0, untilMs: 0 }
    return limit.cluster
  }
}
