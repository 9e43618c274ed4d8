/**
 * Work beside requests of one API: when it is asked what is due, which jobs wait, which run, and which have failed and
 * pause. `WorkScheduler` runs the tasks.
 */
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { JOBS_MAX, type DueResult } from '../plan/work-messages.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'

/** Times of work beside requests, in milliseconds. */
export interface WorkTimes {
  /** From the start of the reactor to its first question. */
  readonly startMs: number
  /** Between two questions to one API, at least. */
  readonly spacingMs: number
  /** Between two questions to one API, at most. */
  readonly againMs: number
  /** Pause after a failure; each further one doubles it. */
  readonly pauseMs: number
  readonly pauseMaxMs: number
  /** Longest time of a question. */
  readonly dueMs: number
  /** A longer job is aborted. */
  readonly lateMs: number
  /** From its abort to the end of a job, at most. */
  readonly endMs: number
  /** How long a gateway that stops waits for its jobs. */
  readonly stopMs: number
}

export interface PlannedWork {
  /** Identity of the API (`apiIdentity`). */
  readonly identity: string
  /** Name and version, for the log. */
  readonly label: string
  /** False: it begins with the first use of the API. */
  readonly begins: boolean
}

/** A job that runs, or waits for a permit. */
interface RunningJob {
  abort(): void
}

/** A job that has failed: it is not started before `untilMs`. */
interface Pause {
  readonly failures: number
  readonly untilMs: number
}

/** Why a question or a job has failed. */
export interface WorkFailure {
  readonly level: 'warn' | 'error'
  readonly event: string
  readonly cause: string
}

interface ApiWorkOptions {
  /** Asks the API on a background thread. Rejects with an error that `failureOf` knows. */
  readonly ask: (identity: string) => Promise<DueResult>
  readonly failureOf: (error: unknown) => WorkFailure
  /** Jobs may be due. */
  readonly changed: () => void
  readonly report: Report
  readonly times: WorkTimes
}

/** `waits`: for the first use of the API. `none`: the API has no work. `over`: it is removed, or the gateway stops. */
type ApiWorkState = 'waits' | 'asks' | 'none' | 'over'

export class ApiWork {
  readonly running = new Map<string, RunningJob>()
  readonly #options: ApiWorkOptions
  #planned: PlannedWork
  #state: ApiWorkState = 'waits'
  /** Counts the changes of the API: what an earlier one has answered does not hold. */
  #edition = 0
  /** Jobs that are due and do not run, in the order in which they were first named. */
  #due = new Set<string>()
  readonly #pauses = new Map<string, Pause>()
  #failures = 0
  #isAsking = false
  /** When it is asked next, in monotonic milliseconds; not before `#notBeforeMs`. */
  #nextMs = Infinity
  #notBeforeMs = 0
  #timer: NodeJS.Timeout | undefined
  /** Number of wake-ups that it knows of. */
  #wakes = 0

  constructor(planned: PlannedWork, options: ApiWorkOptions) {
    this.#planned = planned
    this.#options = options
  }

  get planned(): PlannedWork {
    return this.#planned
  }

  get isOver(): boolean {
    return this.#state === 'over' && this.running.size === 0
  }

  /** The API is new or has changed: its jobs are aborted, and others begin once those have ended. */
  begin(planned: PlannedWork): void {
    this.#forget('waits')
    this.#planned = planned
    if (planned.begins || this.#wakes !== 0) this.#state = 'asks'
    this.askAt(monotonicMs())
  }

  end(): void {
    this.#forget('over')
  }

  /** `wakes`: number of wake-ups of this API so far. */
  look(wakes: number): void {
    if (wakes === this.#wakes) return
    this.#wakes = wakes
    if (this.#state === 'waits') this.#state = 'asks'
    this.askAt(monotonicMs())
  }

  /** Asks at that time at the latest, unless the API pauses because it has failed. */
  askAt(ms: number): void {
    if (this.#state !== 'asks') return
    const atMs = Math.max(ms, this.#notBeforeMs)
    if (atMs >= this.#nextMs) return
    this.#nextMs = atMs
    if (!this.#isAsking) this.#setTimer()
  }

  /** The job that is to run next; null: none is. */
  take(): string | null {
    const now = monotonicMs()
    for (const job of this.#due) {
      if (this.running.has(job) || (this.#pauses.get(job)?.untilMs ?? 0) > now) continue
      this.#due.delete(job)
      return job
    }
    return null
  }

  jobEnded(job: string, failure: WorkFailure | null): void {
    this.running.delete(job)
    if (failure === null) this.#pauses.delete(job)
    else {
      const failures = (this.#pauses.get(job)?.failures ?? 0) + 1
      const pauseMs = this.#pauseMs(failures)
      this.#pauses.set(job, { failures, untilMs: monotonicMs() + pauseMs })
      this.#report(failure, pauseMs, { JOB: job })
    }
    this.askAt(monotonicMs())
  }

  #forget(state: ApiWorkState): void {
    this.#state = state
    this.#edition++
    clearTimeout(this.#timer)
    this.#isAsking = false
    this.#nextMs = Infinity
    this.#notBeforeMs = 0
    this.#due = new Set()
    this.#pauses.clear()
    this.#failures = 0
    for (const job of [...this.running.values()]) job.abort()
  }

  #setTimer(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#ask(), Math.max(0, Math.ceil(this.#nextMs - monotonicMs())))
  }

  async #ask(): Promise<void> {
    const { ask, failureOf, changed, times } = this.#options
    const edition = this.#edition
    this.#isAsking = true
    this.#nextMs = Infinity
    const answer = await ask(this.#planned.identity).catch((error: unknown) => failureOf(error))
    if (edition !== this.#edition) return
    this.#isAsking = false
    const isFailure = answer !== null && 'cause' in answer
    const pauseMs = isFailure ? this.#failed(answer) : times.spacingMs
    const againMs = isFailure ? pauseMs : this.#learn(answer)
    this.#notBeforeMs = monotonicMs() + pauseMs
    // Questions that were asked for meanwhile wait, too.
    const meanwhileMs = this.#nextMs
    this.#nextMs = Infinity
    this.askAt(Math.min(meanwhileMs, monotonicMs() + againMs))
    changed()
  }

  /** Returns the milliseconds until it is asked again. */
  #learn(due: DueResult): number {
    this.#failures = 0
    if (due === null) {
      this.#state = 'none'
      const cause = 'its project says work: true, and its module has none'
      this.#report({ level: 'warn', event: 'mounted API has no work', cause }, 0)
      return 0
    }
    const named = new Set(due.jobs)
    const known = [...this.#due].filter(job => named.has(job))
    // The end of a job that runs leads to another question.
    this.#due = new Set([...known, ...named].filter(job => !this.running.has(job)))
    const now = monotonicMs()
    const { times } = this.#options
    let againMs = Math.min(due.againMs, times.againMs)
    for (const [job, { untilMs }] of this.#pauses) {
      if (named.has(job)) againMs = Math.min(againMs, untilMs - now)
      // A failure that is long past counts no more.
      else if (now > untilMs + times.pauseMaxMs || this.#pauses.size > JOBS_MAX) this.#pauses.delete(job)
    }
    return Math.max(0, againMs)
  }

  /** Returns the milliseconds until it may be asked again. */
  #failed(failure: WorkFailure): number {
    const pauseMs = this.#pauseMs(++this.#failures)
    this.#report(failure, pauseMs)
    return pauseMs
  }

  #pauseMs(failures: number): number {
    const { pauseMs, pauseMaxMs } = this.#options.times
    return Math.min(pauseMaxMs, pauseMs * 2 ** (failures - 1))
  }

  #report({ level, event, cause }: WorkFailure, pauseMs: number, fields: { readonly JOB?: string } = {}): void {
    const PAUSE_MS = Math.round(pauseMs)
    this.#options.report(level, event, { API: this.#planned.label, ...fields, CAUSE_OF_ERROR: cause, PAUSE_MS })
  }
}
