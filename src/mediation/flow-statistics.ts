/**
 * Statistics of flows (`flow.statistics.enable`): runs, faults and time of each sequence, and of each mediator where
 * all are captured. Each thread counts for itself and logs its counts in intervals, while messages come.
 */
import type { Report } from '../proxy/exchange/connection-context.ts'
import type { Run } from './mediator.ts'

export interface StatisticsSettings {
  /** Counts mediators too (`flow.statistics.capture_all`). */
  readonly capturesAll: boolean
  /** Between two reports of a thread, in milliseconds (`statistics.clean_interval`). */
  readonly intervalMs: number
  /** Counts begin again after each report (`statistics.enable_clean`). */
  readonly cleans: boolean
}

interface Counts {
  runs: number
  faults: number
  totalMs: number
  longestMs: number
}

/** Sequences and mediators of a thread; later ones are not counted. */
const NAMES_MAX = 10_000

/** Null where flows are not counted. */
export function statisticsOf(settings: StatisticsSettings | null, report: Report): FlowStatistics | null {
  return settings === null ? null : new FlowStatistics(settings, report)
}

export class FlowStatistics {
  readonly capturesAll: boolean
  readonly #settings: StatisticsSettings
  readonly #report: Report
  readonly #nowMs: () => number
  readonly #counts = new Map<string, Counts>()
  #reportedMs: number

  constructor(settings: StatisticsSettings, report: Report, nowMs: () => number = () => performance.now()) {
    this.capturesAll = settings.capturesAll
    this.#settings = settings
    this.#report = report
    this.#nowMs = nowMs
    this.#reportedMs = nowMs()
  }

  /** The run, counted under the name. */
  measured(name: string, run: Run): Run {
    return message => {
      const startMs = this.#nowMs()
      const fail = (error: unknown): never => {
        this.#count(name, startMs, true)
        throw error
      }
      try {
        const goesOn = run(message)
        if (goesOn instanceof Promise) {
          return goesOn.then(on => {
            this.#count(name, startMs, false)
            return on
          }, fail)
        }
        this.#count(name, startMs, false)
        return goesOn
      } catch (error) {
        return fail(error)
      }
    }
  }

  #count(name: string, startMs: number, isFault: boolean): void {
    const nowMs = this.#nowMs()
    let counts = this.#counts.get(name)
    if (counts === undefined) {
      if (this.#counts.size >= NAMES_MAX) return
      counts = { runs: 0, faults: 0, totalMs: 0, longestMs: 0 }
      this.#counts.set(name, counts)
    }
    const ms = nowMs - startMs
    counts.runs++
    if (isFault) counts.faults++
    counts.totalMs += ms
    counts.longestMs = Math.max(counts.longestMs, ms)
    if (nowMs - this.#reportedMs >= this.#settings.intervalMs) this.#reportAll(nowMs)
  }

  #reportAll(nowMs: number): void {
    this.#reportedMs = nowMs
    for (const [name, { runs, faults, totalMs, longestMs }] of this.#counts) {
      this.#report('info', 'flow statistics', {
        FLOW_STEP: name,
        RUNS: runs,
        FAULTS: faults,
        TOTAL_MS: Math.round(totalMs * 1000) / 1000,
        LONGEST_MS: Math.round(longestMs * 1000) / 1000,
      })
    }
    if (this.#settings.cleans) this.#counts.clear()
  }
}
