/**
 * The traffic manager: counts what gateways report by key, and publishes a decision when the quota of a key is used up.
 * A quota travels with each row, so policies live on the gateways alone. A decision that still holds is repeated, at
 * most once a second, while reports of its key go on: a gateway that has missed it hears it then.
 */
import { LRUCache } from 'lru-cache'
import { growingTo } from '../runtime/lru-options.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import { type Counter, CounterTable } from '../throttle/counter-table.ts'
import type { UsageRow } from '../throttle/cluster-limits.ts'
import { windowAt } from '../throttle/window.ts'
import type { Decision } from './messages.ts'
import type { UsageReport } from './report-codec.ts'

interface TrafficManagerContext {
  readonly metrics: Pick<MetricsColumn, 'add'>
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  decide(decision: Decision): void
}

interface Counted {
  readonly counter: Counter
  /** Milliseconds since 1970: end of the window that is used up. */
  throttledUntilMs: number
  decidedMs: number
}

/** Handles of counters that are kept; one that was unused for longest is made anew when its key comes again. */
const HANDLES_MAX = 100_000
const REPEAT_MS = 1000
/** The counter table belongs to this thread alone. */
const OWNER = 1

export class TrafficManager {
  readonly #table: CounterTable
  readonly #context: TrafficManagerContext
  readonly #counted = new LRUCache<string, Counted>(growingTo(HANDLES_MAX))

  /** `memory`: of `CounterTable.allocate`. */
  constructor(memory: SharedArrayBuffer, context: TrafficManagerContext) {
    this.#table = new CounterTable(memory, context.wallMs, OWNER)
    this.#context = context
  }

  receive({ atMs, rows }: UsageReport): void {
    const nowMs = this.#context.wallMs()
    for (const row of rows) this.#count(row, atMs, nowMs)
  }

  #count(row: UsageRow, atMs: number, nowMs: number): void {
    const { unit, units } = row.quota
    const { metrics } = this.#context
    // A report that comes late must not use up the next window.
    if (windowAt(atMs, unit, units) < windowAt(nowMs, unit, units)) {
      metrics.add(METRIC.throttleReportsRefused, 1)
      return
    }
    metrics.add(METRIC.throttleReportsReceived, 1)
    const counted = this.#countedOf(row)
    this.#table.charge(counted.counter, row.amount)
    if (this.#table.remaining(counted.counter) > 0) return
    const untilMs = this.#table.endsMs(counted.counter)
    if (counted.throttledUntilMs === untilMs && nowMs - counted.decidedMs < REPEAT_MS) return
    counted.throttledUntilMs = untilMs
    counted.decidedMs = nowMs
    metrics.add(METRIC.throttleDecisionsSent, 1)
    this.#context.decide({ key: row.key, isThrottled: true, untilMs })
  }

  #countedOf({ key, quota }: UsageRow): Counted {
    const name = `${quota.type} ${quota.limit} ${quota.units} ${quota.unit} ${quota.window} ${key}`
    let counted = this.#counted.get(name)
    if (counted === undefined) {
      const policy = key.slice(0, Math.max(0, key.indexOf(':')))
      // Requests have passed already, so every one of them counts.
      const counter = this.#table.counter({ key, quota, overruns: true, policy, failMode: 'open' })
      counted = { counter, throttledUntilMs: 0, decidedMs: 0 }
      this.#counted.set(name, counted)
    }
    return counted
  }
}
