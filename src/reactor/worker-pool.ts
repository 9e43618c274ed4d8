/**
 * Tasks of one row of permits: each runs on a worker thread once it has a permit of the whole process, waits for one in
 * the queue, or is refused. A task that is late has no result; it holds its permit until its thread gives it up. A task
 * that waits for its client alone is suspended: it stays on its thread without a permit.
 */
import { type TaskWait, WorkerFailure } from '../mediation/worker-service.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import { TASK_BYTES } from '../plan/worker-plan.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import type { HeldPermits, PermitLimits, SharedPermits } from '../runtime/shared-permits.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import type { WorkerThreads } from './worker-threads.ts'

/** Pause between two tries to tell others what has changed while the lock was not free. */
const REPAIR_MS = 1000

/** Cells of the metrics of each pool. */
const COUNTS = {
  mediation: {
    tasks: METRIC.workerTasks,
    refusals: {
      'queue-full': METRIC.workerRefusedQueueFull,
      memory: METRIC.workerRefusedMemory,
      busy: METRIC.workerRefusedBusy,
    },
    waits: METRIC.workerWaits,
    waitSeconds: METRIC.workerWaitSeconds,
    timeouts: METRIC.workerTimeouts,
    left: METRIC.workerTasksLeft,
    died: METRIC.workerTasksDied,
    failed: METRIC.workerTasksFailed,
  },
  background: {
    tasks: METRIC.backgroundTasks,
    refusals: {
      'queue-full': METRIC.backgroundRefusedQueueFull,
      memory: METRIC.backgroundRefusedMemory,
      busy: METRIC.backgroundRefusedBusy,
    },
    waits: METRIC.backgroundWaits,
    waitSeconds: METRIC.backgroundWaitSeconds,
    timeouts: METRIC.backgroundTimeouts,
    left: METRIC.backgroundTasksLeft,
    died: METRIC.backgroundTasksDied,
    failed: METRIC.backgroundTasksFailed,
  },
} as const
export type PoolKind = keyof typeof COUNTS

/** Settings that a reload may change. */
interface WorkerPoolSettings {
  readonly limits: PermitLimits
  /** Longest time from the call to the result in milliseconds; 0: no limit. */
  readonly timeoutMs: number
  /** A longer wait for a permit is logged; 0: none is. */
  readonly queueWarningMs: number
}

interface WorkerPoolOptions {
  readonly kind: PoolKind
  readonly row: number
  readonly permits: SharedPermits
  readonly settings: () => WorkerPoolSettings
  /** The threads of the current plan for a task with a body of that length. */
  readonly threads: (bytes: number) => WorkerThreads
  readonly report: Report
  readonly metrics: MetricsColumn
  /** Numbers of the tasks of all pools of a reactor. */
  readonly ids: TaskIds
}

/** A task and its buffers, which are moved to the thread. */
interface PoolTask {
  readonly task: { readonly kind: string }
  readonly transfer: readonly ArrayBuffer[]
  /** Permits of the pool that tasks hold which wait for this one; left out: none. */
  readonly held?: HeldPermits | undefined
}

/**
 * `new`: the task arrives. `queued`: it waits for its first permit. `runs`: it has a permit. `left`: it has a permit,
 * and its result is needed no more. `suspended`: it has begun, and waits for its client. `resuming`: it waits for a
 * permit to go on. `ended`: it is over, or was taken off the queue.
 */
type JobState = 'new' | 'queued' | 'runs' | 'left' | 'suspended' | 'resuming' | 'ended'
/** `RUN`: it gets a permit. `WAIT`: it enters the queue. `LEAVE`: the result is needed no more. */
type JobEvent = 'RUN' | 'WAIT' | 'LEAVE' | 'SUSPEND' | 'END'

const JOB_TRANSITIONS: { readonly [S in JobState]: { readonly [E in JobEvent]?: JobState } } = {
  new: { RUN: 'runs', WAIT: 'queued' },
  queued: { RUN: 'runs', END: 'ended' },
  runs: { LEAVE: 'left', SUSPEND: 'suspended', END: 'ended' },
  left: { END: 'ended' },
  suspended: { RUN: 'runs', WAIT: 'resuming', END: 'ended' },
  resuming: { RUN: 'runs', END: 'ended' },
  ended: {},
}

/** Tasks of one pool of a reactor that are suspended or resuming; each may hold two windows of a body. */
export const SUSPENDED_MAX = 1024

/** A place in the queue. */
interface Place {
  /** Bytes of memory that the task takes; a body in a file takes none. */
  readonly bytes: number
  /** Since when the task waits. */
  readonly sinceMs: number
  readonly job: Job
  /** The task has a permit. */
  readonly taken: () => void
}

interface Job extends PoolTask {
  /** Length of the body, wherever it is. */
  readonly bodyBytes: number
  readonly id: number
  state: JobState
  /** Null before the task has its first permit. */
  threads: WorkerThreads | null
  /** The last place of the task in the queue; null: it had none. */
  place: Place | null
  readonly result: PromiseWithResolvers<unknown>
  /** 0: whoever waits for the result has a time-out of its own. */
  readonly timeoutMs: number
  /** Time until which the caller waits for the result, by the monotonic clock; 0: no limit. */
  readonly endMs: number
  readonly wait: TaskWait | null
  /** The pool has too many tasks that have begun, of which this one has waited longest for its client. */
  readonly evicted: () => void
  timer: NodeJS.Timeout | null
}

/** A task without a time-out of the pool. */
interface OpenTask {
  readonly result: Promise<unknown>
  readonly state: JobState
  /** Takes a task off the queue, whose result rejects with `left`; false: it has begun. */
  leave(): boolean
  /** A running task waits for its client. */
  suspend(): void
  /**
   * A suspended task goes on with `goesOn`, once it has a permit. `way`: whether it is to end then. Throws
   * WorkerFailure; then it stays suspended.
   */
  resume(goesOn: () => void, way: 'go on' | 'end'): void
}

export class WorkerPool {
  readonly #options: WorkerPoolOptions
  readonly #counts: (typeof COUNTS)[PoolKind]
  /** Looks at the waiting tasks of this thread until there are none. */
  #looking: Promise<void> | null = null
  /** Tells others of permits that were given back while the lock was not free. */
  #repair: NodeJS.Timeout | null = null
  /** Suspended tasks; the longest suspended one comes first. */
  readonly #suspended = new Set<Job>()

  constructor(options: WorkerPoolOptions) {
    this.#options = options
    this.#counts = COUNTS[options.kind]
  }

  /**
   * `bodyBytes`: length of the body, wherever it is. Throws WorkerFailure where it refuses the task, else rejects with
   * one.
   */
  run(task: PoolTask, bodyBytes: number, wait: TaskWait | null = null): Promise<unknown> {
    return this.#enter(task, bodyBytes, this.#options.settings().timeoutMs, wait, NOBODY).result.promise
  }

  /** Runs a task as `run` does, without the time-out of the pool. `evicted`: see Job. */
  open(task: PoolTask, bodyBytes: number, evicted: () => void = NOBODY): OpenTask {
    const job = this.#enter(task, bodyBytes, 0, null, evicted)
    return {
      result: job.result.promise,
      get state() {
        return job.state
      },
      leave: () => this.#leave(job),
      suspend: () => this.#suspend(job),
      resume: (goesOn, way) => this.#resume(job, goesOn, way),
    }
  }

  #enter(
    { task, transfer, held }: PoolTask,
    bodyBytes: number,
    timeoutMs: number,
    wait: TaskWait | null,
    evicted: () => void,
  ): Job {
    const { row, permits, settings, metrics, ids } = this.#options
    const { limits } = settings()
    const result = Promise.withResolvers<unknown>()
    const sinceMs = monotonicMs()
    // A body in a file is in no memory.
    const bytes = transfer.reduce((sum, { byteLength }) => sum + byteLength, TASK_BYTES)
    const endMs = timeoutMs === 0 ? 0 : sinceMs + timeoutMs
    const parts = { task, transfer, held, bodyBytes, result, timeoutMs, endMs, wait, evicted }
    const job: Job = { ...parts, id: ids.next(), state: 'new', threads: null, place: null, timer: null }
    const place: Place = { bytes, sinceMs, job, taken: () => void this.#start(job) }
    const decision = permits.enter(row, limits, place, held)
    metrics.add(this.#counts.tasks, 1)
    if (decision !== 'runs' && decision !== 'waits') throw this.#refused(decision, limits)
    wait?.entered(() => this.#giveUp(job))
    if (timeoutMs > 0) job.timer = setTimeout(() => this.#atEnd(job), timeoutMs)
    if (decision === 'runs') {
      advance(job, 'RUN')
      void this.#start(job)
    } else {
      this.#queue(job, place)
      wait?.queued(() => void this.#leave(job))
    }
    return job
  }

  #queue(job: Job, place: Place): void {
    advance(job, 'WAIT')
    job.place = place
    this.#options.metrics.add(this.#counts.waits, 1)
    this.#looking ??= this.#look()
  }

  #refused(reason: 'loop' | 'queue-full' | 'memory' | 'busy', limits: PermitLimits): WorkerFailure {
    const { metrics } = this.#options
    if (reason === 'loop') {
      // Only messages have callers that wait.
      metrics.add(METRIC.workerRefusedLoop, 1)
      const cause = 'all messages that are mediated wait for calls that led to this message, or to others that wait'
      return new WorkerFailure('loop', cause)
    }
    metrics.add(this.#counts.refusals[reason], 1)
    return new WorkerFailure(reason, causeOfRefusal(reason, limits))
  }

  async #start(job: Job): Promise<void> {
    const { threads, metrics } = this.#options
    const { task, id, endMs, transfer, bodyBytes, result } = job
    job.threads = threads(bodyBytes)
    try {
      const value = await job.threads.run({ task, id, endMs }, transfer)
      this.#endIfLate(job)
      if (isLeft(job)) result.reject(GIVEN_UP)
      else result.resolve(value)
    } catch (error) {
      const failure = error as WorkerFailure
      if (failure.reason === 'died') metrics.add(this.#counts.died, 1)
      else if (!this.#endIfLate(job) && !isLeft(job)) metrics.add(this.#counts.failed, 1)
      result.reject(isLeft(job) ? GIVEN_UP : failure)
    }
    if (job.timer !== null) clearTimeout(job.timer)
    this.#ended(job)
  }

  /** The task is over on its thread. */
  #ended(job: Job): void {
    const { row, permits, settings } = this.#options
    const { state } = job
    advance(job, 'END')
    this.#suspended.delete(job)
    if (state === 'resuming') {
      permits.leave(row, job.place!)
      this.#waited(job.place!)
      this.#repairLater()
      return
    }
    const { limits } = settings()
    this.#offer(state === 'suspended' ? permits.endSuspended(row, limits) : permits.release(row, limits))
  }

  #offer(isOwn: boolean): void {
    if (isOwn) this.#takeWaiting()
    else this.#repairLater()
  }

  #suspend(job: Job): void {
    const { row, permits, settings } = this.#options
    advance(job, 'SUSPEND')
    this.#suspended.add(job)
    this.#offer(permits.suspend(row, settings().limits))
    if (permits.interrupted(row) <= SUSPENDED_MAX) return
    const [slowest] = this.#suspended
    this.#suspended.delete(slowest!)
    slowest!.evicted()
  }

  #resume(job: Job, goesOn: () => void, way: 'go on' | 'end'): void {
    const { row, permits, settings } = this.#options
    const { limits } = settings()
    const { held } = job
    // By its arrival it would be ahead of all tasks of other threads, again and again.
    const place: Place = { bytes: 0, sinceMs: monotonicMs(), job, taken: goesOn }
    const decision = permits.resume(row, limits, place, held, way)
    if (decision === 'loop' || decision === 'busy') throw this.#refused(decision, limits)
    this.#suspended.delete(job)
    if (decision === 'waits') this.#queue(job, place)
    else {
      advance(job, 'RUN')
      goesOn()
    }
  }

  #repairLater(): void {
    const { row, permits, settings } = this.#options
    if (!permits.isStale(row)) return
    this.#repair ??= setTimeout(() => {
      this.#repair = null
      if (permits.republish(row, settings().limits)) this.#takeWaiting()
      else this.#repairLater()
    }, REPAIR_MS).unref()
  }

  #leave(job: Job): boolean {
    if (!this.#leaveQueue(job)) return false
    this.#hasLeft(job)
    job.result.reject(new WorkerFailure('left', 'taken off the queue of the workers before its turn'))
    return true
  }

  /** Ends a task whose result is needed no more, in the queue or on its thread. */
  #giveUp(job: Job): void {
    if (this.#leave(job) || job.state !== 'runs') return
    advance(job, 'LEAVE')
    this.#hasLeft(job)
    job.threads?.leave(job.id)
  }

  #hasLeft(job: Job): void {
    if (job.timer !== null) clearTimeout(job.timer)
    job.timer = null
    this.#options.metrics.add(this.#counts.left, 1)
  }

  /** Returns false where the task does not wait for its first permit. */
  #leaveQueue(job: Job): boolean {
    const { row, permits } = this.#options
    if (job.state !== 'queued') return false
    advance(job, 'END')
    permits.leave(row, job.place!)
    this.#repairLater()
    this.#waited(job.place!)
    return true
  }

  #atEnd(job: Job): void {
    // A timer may fire some milliseconds early, and the thread of the task has the exact time.
    if (!this.#endIfLate(job)) job.timer = setTimeout(() => this.#atEnd(job), Math.ceil(job.endMs - monotonicMs()))
  }

  /** Returns whether the result comes too late, or never: whoever waits hears of it now. */
  #endIfLate(job: Job): boolean {
    const { endMs, timeoutMs, timer, result } = job
    if (endMs === 0 || isLeft(job) || monotonicMs() < endMs) return false
    if (timer === null) return true
    clearTimeout(timer)
    job.timer = null
    this.#options.metrics.add(this.#counts.timeouts, 1)
    // Not in the queue any more: its thread ends it, by the time in its envelope.
    if (!this.#leaveQueue(job)) advance(job, 'LEAVE')
    result.reject(new WorkerFailure('late', `no result within ${timeoutMs} ms`))
    return true
  }

  async #look(): Promise<void> {
    const { row, permits } = this.#options
    let isImpatient = false
    // `#looking` is set before the loop may end.
    await undefined
    while (permits.waiting(row) > 0) {
      const { wakes } = permits
      this.#takeWaiting(isImpatient)
      if (permits.waiting(row) > 0) isImpatient = !(await permits.woken(wakes))
    }
    this.#looking = null
  }

  /** Starts the tasks of the queue that have permits now. */
  #takeWaiting(isImpatient = false): void {
    const { row, permits, settings } = this.#options
    const { limits } = settings()
    for (;;) {
      const place = permits.takeWaiting(row, limits, isImpatient) as Place | null
      if (place === null) return
      advance(place.job, 'RUN')
      this.#waited(place)
      place.taken()
    }
  }

  /** A task waits no longer: it has a permit, is late, or was taken off the queue. */
  #waited({ sinceMs, job }: Place): void {
    const waitMs = monotonicMs() - sinceMs
    this.#options.metrics.add(this.#counts.waitSeconds, waitMs / 1000)
    job.wait?.waited(waitMs)
    const { settings, report } = this.#options
    const { queueWarningMs } = settings()
    if (queueWarningMs === 0 || waitMs <= queueWarningMs) return
    report('warn', 'message waited for a worker', { WAIT_MS: Math.round(waitMs), LIMIT_MS: queueWarningMs })
  }
}

/** Throws where the table has no such transition: a bug of the gateway. */
function advance(job: Job, event: JobEvent): void {
  const next = JOB_TRANSITIONS[job.state][event]
  if (next === undefined) throw new Error(`a task that is ${job.state} cannot take ${event}`)
  job.state = next
}

/** Nobody waits for the result of a task that has begun. */
function isLeft({ state }: Job): boolean {
  return state === 'left'
}

/** Numbers of tasks, of which none is 0. */
export class TaskIds {
  #last = 0

  next(): number {
    return ++this.#last
  }
}

const GIVEN_UP = new WorkerFailure('left', 'given up, because nobody waits for the result')
const NOBODY = (): void => undefined

function causeOfRefusal(
  reason: 'queue-full' | 'memory' | 'busy',
  { max, queueLength, queueBytes }: PermitLimits,
): string {
  if (reason === 'busy') return 'another thread has held the lock of the permits for too long'
  return reason === 'memory'
    ? `messages that wait would hold more than ${queueBytes} bytes`
    : `${max} messages are mediated and ${queueLength} wait`
}
