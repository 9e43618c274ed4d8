/** An event that every batch could cause: reported at once, then once a minute with the sum of what came between. */
import type { EventLog } from './events.ts'

const INTERVAL_MS = 60_000

export class RareEvent {
  readonly #report: EventLog['report']
  readonly #event: string
  readonly #nowMs: () => number
  #dueMs = Number.NEGATIVE_INFINITY
  #sum = 0

  constructor(report: EventLog['report'], event: string, nowMs = () => performance.now()) {
    this.#report = report
    this.#event = event
    this.#nowMs = nowMs
  }

  /** `fields` are reported with the sum of the amounts since the last report, under the name `unit`. */
  happened(unit: string, amount: number, fields: Readonly<Record<string, string>>): void {
    this.#sum += amount
    const nowMs = this.#nowMs()
    if (nowMs < this.#dueMs) return
    this.#dueMs = nowMs + INTERVAL_MS
    this.#report('error', this.#event, { ...fields, [unit]: this.#sum })
    this.#sum = 0
  }
}
