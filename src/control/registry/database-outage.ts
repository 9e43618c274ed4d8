/**
 * Tells the operator that a database does not answer: a gauge and a counter, and events when the outage begins, every
 * half minute while it lasts, and when it ends.
 */
import type { EventLog } from '../../observe/events.ts'
import { METRIC, type MetricsColumn } from '../../observe/metrics.ts'

/** Milliseconds between two events about one outage. */
const REPEAT_MS = 30_000

const CELLS = {
  'database.apim_db': { gauge: METRIC.apimDatabaseDown, failures: METRIC.apimDatabaseFailures },
  'database.shared_db': { gauge: METRIC.sharedDatabaseDown, failures: METRIC.sharedDatabaseFailures },
} as const

interface OutageOptions {
  readonly section: keyof typeof CELLS
  /** Kind and location, without credentials. */
  readonly description: string
  readonly report: EventLog['report']
  readonly metrics: Pick<MetricsColumn, 'add'>
  /** Milliseconds of a monotonic clock. */
  readonly nowMs?: () => number
}

export class DatabaseOutage {
  readonly #options: OutageOptions
  readonly #nowMs: () => number
  #sinceMs = 0
  #reportedMs = 0
  /** Failed attempts in this outage; 0: the database answers. */
  #failures = 0

  constructor(options: OutageOptions) {
    this.#options = options
    this.#nowMs = options.nowMs ?? (() => performance.now())
  }

  get isDown(): boolean {
    return this.#failures > 0
  }

  /** A connection did not open, or a statement got no answer. */
  failed(cause: string): void {
    const { section, description, report, metrics } = this.#options
    const nowMs = this.#nowMs()
    metrics.add(CELLS[section].failures, 1)
    if (this.#failures++ === 0) {
      metrics.add(CELLS[section].gauge, 1)
      this.#sinceMs = nowMs
    } else if (nowMs - this.#reportedMs < REPEAT_MS) return
    this.#reportedMs = nowMs
    report('error', 'database unavailable', {
      DATABASE: description,
      CAUSE_OF_ERROR: cause,
      DOWN_S: this.#downS(),
      FAILURES: this.#failures,
      HINT: `known tokens and open APIs go on; check that the server runs, and that [${section}] names it`,
    })
  }

  worked(): void {
    if (this.#failures === 0) return
    const { section, description, report, metrics } = this.#options
    metrics.add(CELLS[section].gauge, -1)
    report('warn', 'database available again', { DATABASE: description, DOWN_S: this.#downS() })
    this.#failures = 0
  }

  /** The registry closes. */
  end(): void {
    if (this.#failures > 0) this.#options.metrics.add(CELLS[this.#options.section].gauge, -1)
    this.#failures = 0
  }

  #downS(): number {
    return Math.round((this.#nowMs() - this.#sinceMs) / 1000)
  }
}
