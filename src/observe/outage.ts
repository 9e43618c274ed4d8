/** Tells the log of an outage: its cause, at most once a minute, and its end where its cause was told. */
import type { EventLog } from './events.ts'

const INTERVAL_MS = 60_000

interface OutageOptions {
  readonly report: EventLog['report']
  /** Events of the log. */
  readonly failed: string
  readonly works: string
  readonly fields: Readonly<Record<string, string>>
  /** Called as it begins and ends. */
  readonly changed?: (isOn: boolean) => void
  readonly nowMs?: (() => number) | undefined
}

export class Outage {
  readonly #options: OutageOptions
  #state: 'off' | 'on' | 'told' = 'off'
  #dueMs = Number.NEGATIVE_INFINITY

  constructor(options: OutageOptions) {
    this.#options = options
  }

  get isOn(): boolean {
    return this.#state !== 'off'
  }

  /** Tells an outage once: as it begins, or with a failure behind the minute of the last one. */
  failed(error: unknown): void {
    if (this.#state === 'told') return
    const { report, failed, fields, changed, nowMs = () => performance.now() } = this.#options
    if (this.#state === 'off') changed?.(true)
    this.#state = 'on'
    const now = nowMs()
    if (now < this.#dueMs) return
    this.#dueMs = now + INTERVAL_MS
    this.#state = 'told'
    report('error', failed, { ...fields, CAUSE_OF_ERROR: error instanceof Error ? error.message : 'it threw no error' })
  }

  ended(): void {
    if (!this.isOn) return
    const { report, works, fields, changed } = this.#options
    const wasTold = this.#state === 'told'
    this.#state = 'off'
    changed?.(false)
    if (wasTold) report('info', works, fields)
  }
}
