/**
 * Statistics of flows (`flow.statistics.enable`): runs, faults and time of each sequence, and of each mediator where
 * all are captured. Each thread counts; workers hand their counts to their reactor, which logs all in intervals (D282).
 */
import type { Report } from '../proxy/exchange/connection-context.ts'
import type { Run } from './mediator.ts'

export interface StatisticsSettings {
  /** Counts mediators too (`flow.statistics.capture_all`). */
  readonly capturesAll: boolean
  /** From the first count to the report, in milliseconds (`statistics.clean_interval`). */
  readonly intervalMs: number
  /** Counts begin again after each report (`statistics.enable_clean`). */
  readonly cleans: boolean
}

/** Counts of a sequence or mediator. */
export interface StepCounts {
  readonly step: string
  readonly runs: number
  readonly faults: number
  readonly totalMs: number
  readonly longestMs: number
}

/** Sequences and mediators of a thread; later ones are not counted. */
const STEPS_MAX = 10_000

export class FlowCounter {
  readonly capturesAll: boolean
  readonly #nowMs: () => number
  readonly #counted: () => void
  readonly #counts = new Map<string, StepCounts>()

  /** `counted`: called with each count. */
  constructor(capturesAll: boolean, counted: () => void = () => undefined, nowMs = () => performance.now()) {
    this.capturesAll = capturesAll
    this.#counted = counted
    this.#nowMs = nowMs
  }

  /** The run, counted as this step. */
  measured(step: string, run: Run): Run {
    return message => {
      const startMs = this.#nowMs()
      const fail = (error: unknown): never => {
        this.#count(step, startMs, true)
        throw error
      }
      try {
        const goesOn = run(message)
        if (goesOn instanceof Promise) {
          return goesOn.then(on => {
            this.#count(step, startMs, false)
            return on
          }, fail)
        }
        this.#count(step, startMs, false)
        return goesOn
      } catch (error) {
        return fail(error)
      }
    }
  }

  #count(step: string, startMs: number, isFault: boolean): void {
    const ms = this.#nowMs() - startMs
    this.add([{ step, runs: 1, faults: isFault ? 1 : 0, totalMs: ms, longestMs: ms }])
  }

  add(counts: readonly StepCounts[]): void {
    for (const { step, runs, faults, totalMs, longestMs } of counts) {
      const before = this.#counts.get(step)
      if (before === undefined && this.#counts.size >= STEPS_MAX) continue
      this.#counts.set(step, {
        step,
        runs: runs + (before?.runs ?? 0),
        faults: faults + (before?.faults ?? 0),
        totalMs: totalMs + (before?.totalMs ?? 0),
        longestMs: Math.max(longestMs, before?.longestMs ?? 0),
      })
    }
    if (counts.length > 0) this.#counted()
  }

  all(): readonly StepCounts[] {
    return [...this.#counts.values()]
  }

  /** Returns the counts, which begin again. */
  take(): readonly StepCounts[] {
    const counts = this.all()
    this.#counts.clear()
    return counts
  }
}

/** The counts of a reactor and of its workers. */
export class FlowStatistics {
  readonly counter: FlowCounter
  readonly #settings: StatisticsSettings
  readonly #report: Report
  /** Null while nothing was counted since the last report. */
  #timer: NodeJS.Timeout | null = null

  constructor(settings: StatisticsSettings, report: Report, nowMs?: () => number) {
    this.counter = new FlowCounter(settings.capturesAll, () => this.#reportLater(), nowMs)
    this.#settings = settings
    this.#report = report
  }

  #reportLater(): void {
    this.#timer ??= setTimeout(() => this.flush(), this.#settings.intervalMs).unref()
  }

  /** Reports the counts since the last report. */
  flush(): void {
    if (this.#timer === null) return
    clearTimeout(this.#timer)
    this.#timer = null
    const counts = this.#settings.cleans ? this.counter.take() : this.counter.all()
    for (const { step, runs, faults, totalMs, longestMs } of counts) {
      this.#report('info', 'flow statistics', {
        FLOW_STEP: step,
        RUNS: runs,
        FAULTS: faults,
        TOTAL_MS: Math.round(totalMs * 1000) / 1000,
        LONGEST_MS: Math.round(longestMs * 1000) / 1000,
      })
    }
  }
}
