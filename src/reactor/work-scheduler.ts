/**
 * Schedules work of mounted APIs beside requests. One reactor of the node asks each API what is due, and runs its jobs
 * as tasks of the background pool. It asks when the API is woken, when a job has ended, and at the time that the API
 * has named. A job runs once at a time. A failed question or job is logged and tried again, each time later.
 */
import type { WorkerFailure } from '../mediation/worker-service.ts'
import type { SharedWakes } from '../runtime/shared-wakes.ts'
import type { DueResult, DueTask, JobTask } from '../plan/work-messages.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import { ApiWork, type PlannedWork, type WorkFailure, type WorkTimes } from './api-work.ts'

const TIMES: WorkTimes = {
  startMs: 1000,
  spacingMs: 20,
  againMs: 60_000,
  pauseMs: 1000,
  pauseMaxMs: 60_000,
  dueMs: 30_000,
  lateMs: 60_000,
  endMs: 5000,
  stopMs: 3000,
}

interface WorkSchedulerOptions {
  /**
   * Runs a task on a background thread once it has a permit. Throws WorkerFailure where the pool refuses it; `result`
   * rejects with one. `leave`: takes a task off the queue; false: it runs already.
   */
  readonly open: (task: DueTask | JobTask) => { readonly result: Promise<unknown>; readonly leave: () => boolean }
  /** Jobs that may run at once. */
  readonly jobsMax: () => number
  readonly wakes: SharedWakes
  readonly report: Report
  /** For tests. */
  readonly times?: Partial<WorkTimes> | undefined
}

/** `starts`: the reactor itself starts first. `stops`: jobs are aborted. `over`: nobody waits for a job. */
type SchedulerState = 'starts' | 'runs' | 'stops' | 'over'

export class WorkScheduler {
  readonly #options: WorkSchedulerOptions
  readonly #times: WorkTimes
  /** By identity; who has waited longest for a job comes first. */
  readonly #apis = new Map<string, ApiWork>()
  #state: SchedulerState = 'starts'
  /** Jobs of all APIs. */
  #running = 0
  #isListening = false
  #timer: NodeJS.Timeout | undefined
  readonly #over = Promise.withResolvers<void>()

  constructor(options: WorkSchedulerOptions) {
    this.#options = options
    this.#times = { ...TIMES, ...options.times }
  }

  get isOver(): boolean {
    return this.#state === 'over'
  }

  /** `removed`: identities of APIs that are gone, or have no work. `planned`: new and changed APIs with work. */
  deploy(removed: readonly string[], planned: readonly PlannedWork[]): void {
    for (const identity of removed) this.#apis.get(identity)?.end()
    this.#forgetEnded()
    for (const each of planned) {
      const api = this.#apis.get(each.identity) ?? this.#add(each)
      if (this.#state === 'runs') api.begin(each)
    }
    if (this.#apis.size === 0) return
    if (this.#state === 'runs') void this.#listen()
    else if (this.#state === 'starts') this.#timer ??= setTimeout(() => this.#start(), this.#times.startMs)
  }

  /** Aborts all jobs. Resolves once they have ended, or are given up. */
  stop(): Promise<void> {
    if (this.#state === 'stops' || this.#state === 'over') return this.#over.promise
    this.#state = 'stops'
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.giveUp(), this.#times.stopMs)
    for (const api of this.#apis.values()) api.end()
    if (this.#running === 0) this.giveUp()
    return this.#over.promise
  }

  /** Gives up jobs that were aborted and have not ended. */
  giveUp(): void {
    this.#state = 'over'
    clearTimeout(this.#timer)
    for (const api of this.#apis.values()) api.end()
    this.#over.resolve()
  }

  #add(planned: PlannedWork): ApiWork {
    const { open, report } = this.#options
    const api = new ApiWork(planned, {
      ask: async identity => {
        const { result } = open({ kind: 'due', api: identity, timeoutMs: this.#times.dueMs })
        return (await result) as DueResult
      },
      failureOf: error => failureOf(error, 'work'),
      changed: () => this.#startJobs(),
      report,
      times: this.#times,
    })
    this.#apis.set(planned.identity, api)
    return api
  }

  #start(): void {
    this.#state = 'runs'
    for (const api of this.#apis.values()) api.begin(api.planned)
    void this.#listen()
  }

  /** Looks at the wake-ups while there are APIs with work. */
  async #listen(): Promise<void> {
    if (this.#isListening) return
    this.#isListening = true
    const { wakes } = this.#options
    while (this.#state === 'runs' && this.#apis.size > 0) {
      const { total } = wakes
      for (const [identity, api] of this.#apis) api.look(wakes.count(identity))
      await wakes.woken(total)
      for (const [identity, api] of this.#apis) api.look(wakes.count(identity))
      // The first of many wake-ups in a row costs this thread a turn, the others none.
      await new Promise(resolve => setTimeout(resolve, this.#times.spacingMs).unref())
    }
    this.#isListening = false
  }

  #forgetEnded(): void {
    for (const [identity, api] of this.#apis) if (api.isOver) this.#apis.delete(identity)
  }

  #startJobs(): void {
    while (this.#state === 'runs' && this.#running < this.#options.jobsMax()) {
      const next = this.#next()
      if (next === null || !this.#startJob(next.api, next.job)) return
    }
  }

  /** The next job that is due; the APIs take turns. */
  #next(): { readonly api: ApiWork; readonly job: string } | null {
    for (const [identity, api] of this.#apis) {
      const job = api.take()
      if (job === null) continue
      this.#apis.delete(identity)
      this.#apis.set(identity, api)
      return { api, job }
    }
    return null
  }

  /** False: the pool refuses it. */
  #startJob(api: ApiWork, job: string): boolean {
    const { lateMs, endMs } = this.#times
    const abort = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
    let state: 'runs' | 'aborted' | 'over' = 'runs'
    const ended = (error: unknown): void => {
      if (state === 'over') return
      // Work that an abort interrupts may throw anything.
      const failure = error === null || state === 'aborted' ? null : failureOf(error, 'job')
      state = 'over'
      this.#running--
      api.jobEnded(job, failure)
      this.#jobEnded()
    }
    try {
      const { result, leave } = this.#options.open({
        ...{ kind: 'job', api: api.planned.identity, job, abort, lateMs, endMs },
      })
      const abortJob = (): void => {
        if (state !== 'runs') return
        state = 'aborted'
        if (leave()) ended(null)
        else setAborted(abort)
      }
      this.#running++
      api.running.set(job, { abort: abortJob })
      result.then(() => ended(null), ended)
      return true
    } catch (error) {
      api.jobEnded(job, failureOf(error, 'job'))
      return false
    }
  }

  #jobEnded(): void {
    if (this.#state === 'stops' && this.#running === 0) this.giveUp()
    this.#forgetEnded()
    this.#startJobs()
  }
}

function setAborted(abort: SharedArrayBuffer): void {
  const cell = new Int32Array(abort)
  Atomics.store(cell, 0, 1)
  Atomics.notify(cell, 0)
}

/** A full pool refuses a task, which is not lost: it is tried again. */
function failureOf(error: unknown, what: 'work' | 'job'): WorkFailure {
  const { reason, message: cause } = error as WorkerFailure
  if (reason === 'queue-full' || reason === 'memory' || reason === 'busy')
    return { level: 'warn', event: `background ${what} delayed`, cause }
  return { level: 'error', event: what === 'job' ? 'background job failed' : 'background work failed', cause }
}
