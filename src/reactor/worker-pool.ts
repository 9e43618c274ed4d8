/**
 * Tasks of one row of permits: each runs on a worker thread once it has a permit of the whole process, waits for one in
 * the queue, or is refused. A task that is late has no result; it holds its permit until its thread gives it up.
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
}

/** A task and its buffers, which are moved to the thread. */
interface PoolTask {
  readonly task: { readonly kind: string }
  readonly transfer: readonly ArrayBuffer[]
  /** Permits of the pool that tasks hold which wait for this one; left out: none. */
  readonly held?: HeldPermits
}

interface Job extends PoolTask {
  /** Bytes that the task takes in the queue: in memory alone. */
  readonly bytes: number
  /** Length of the body, wherever it is. */
  readonly bodyBytes: number
  readonly sinceMs: number
  readonly result: PromiseWithResolvers<unknown>
  /** 0: whoever waits for the result has a time-out of its own. */
  readonly timeoutMs: number
  /** Time until which the caller waits for the result, by the monotonic clock; 0: no limit. */
  readonly endMs: number
  readonly wait: TaskWait | null
  timer: NodeJS.Timeout | null
}

export class WorkerPool {
  readonly #options: WorkerPoolOptions
  readonly #counts: (typeof COUNTS)[PoolKind]
  /** Looks at the waiting tasks of this thread until there are none. */
  #looking: Promise<void> | null = null
  /** Tells others of permits that were given back while the lock was not free. */
  #repair: NodeJS.Timeout | null = null

  constructor(options: WorkerPoolOptions) {
    this.#options = options
    this.#counts = COUNTS[options.kind]
  }

  /**
   * `bodyBytes`: length of the body, wherever it is. Throws WorkerFailure where it refuses the task, else rejects with
   * one.
   */
  run(task: PoolTask, bodyBytes: number, wait: TaskWait | null = null): Promise<unknown> {
    return this.#enter(task, bodyBytes, this.#options.settings().timeoutMs, wait).result.promise
  }

  /**
   * Runs a task as `run` does, without the time-out of the pool. `leave`: takes a task off the queue, whose result
   * rejects with `left`; false: it has begun.
   */
  open(task: PoolTask, bodyBytes: number): { readonly result: Promise<unknown>; readonly leave: () => boolean } {
    const job = this.#enter(task, bodyBytes, 0, null)
    return { result: job.result.promise, leave: () => this.#leave(job) }
  }

  #enter({ task, transfer, held }: PoolTask, bodyBytes: number, timeoutMs: number, wait: TaskWait | null): Job {
    const { row, permits, settings, metrics } = this.#options
    const { limits } = settings()
    const result = Promise.withResolvers<unknown>()
    const sinceMs = monotonicMs()
    // A body in a file is in no memory.
    const bytes = transfer.reduce((sum, { byteLength }) => sum + byteLength, TASK_BYTES)
    const endMs = timeoutMs === 0 ? 0 : sinceMs + timeoutMs
    const job: Job = { task, transfer, bytes, bodyBytes, sinceMs, result, timeoutMs, endMs, wait, timer: null }
    const decision = permits.enter(row, limits, job, held)
    metrics.add(this.#counts.tasks, 1)
    if (decision === 'loop') {
      // Only messages have callers that wait.
      metrics.add(METRIC.workerRefusedLoop, 1)
      const cause = 'all messages that are mediated wait for calls that led to this message, or to others that wait'
      throw new WorkerFailure('loop', cause)
    }
    if (decision === 'queue-full' || decision === 'memory' || decision === 'busy') {
      metrics.add(this.#counts.refusals[decision], 1)
      throw new WorkerFailure(decision, causeOfRefusal(decision, limits))
    }
    if (timeoutMs > 0) job.timer = setTimeout(() => this.#atEnd(job), timeoutMs)
    if (decision === 'runs') void this.#start(job)
    else {
      metrics.add(this.#counts.waits, 1)
      wait?.queued(() => void this.#leave(job))
      this.#looking ??= this.#look()
    }
    return job
  }

  async #start(job: Job): Promise<void> {
    const { row, permits, settings, threads, metrics } = this.#options
    const { task, endMs, transfer, bodyBytes, result } = job
    try {
      const value = await threads(bodyBytes).run({ task, endMs }, transfer)
      this.#endIfLate(job)
      result.resolve(value)
    } catch (error) {
      const failure = error as WorkerFailure
      if (failure.reason === 'died') metrics.add(this.#counts.died, 1)
      else if (!this.#endIfLate(job)) metrics.add(this.#counts.failed, 1)
      result.reject(failure)
    }
    if (job.timer !== null) clearTimeout(job.timer)
    if (permits.release(row, settings().limits)) this.#takeWaiting()
    else this.#repairLater()
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
    const { row, permits } = this.#options
    if (!permits.leave(row, job)) return false
    this.#repairLater()
    this.#waited(job)
    if (job.timer !== null) clearTimeout(job.timer)
    job.result.reject(new WorkerFailure('left', 'taken off the queue of the workers before its turn'))
    return true
  }

  #atEnd(job: Job): void {
    // A timer may fire some milliseconds early, and the thread of the task has the exact time.
    if (!this.#endIfLate(job)) job.timer = setTimeout(() => this.#atEnd(job), Math.ceil(job.endMs - monotonicMs()))
  }

  /** Returns whether the result comes too late, or never: whoever waits hears of it now. */
  #endIfLate(job: Job): boolean {
    const { endMs, timeoutMs, timer, result } = job
    if (endMs === 0 || monotonicMs() < endMs) return false
    if (timer === null) return true
    clearTimeout(timer)
    job.timer = null
    const { row, permits, metrics } = this.#options
    metrics.add(this.#counts.timeouts, 1)
    // Not in the queue any more: its thread ends it, by the time in its envelope.
    if (permits.leave(row, job)) {
      this.#repairLater()
      this.#waited(job)
    }
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
      const job = permits.takeWaiting(row, limits, isImpatient) as Job | null
      if (job === null) return
      this.#waited(job)
      void this.#start(job)
    }
  }

  /** A task waits no longer: it has a permit, is late, or was taken off the queue. */
  #waited(job: Job): void {
    const waitMs = monotonicMs() - job.sinceMs
    this.#options.metrics.add(this.#counts.waitSeconds, waitMs / 1000)
    job.wait?.waited(waitMs)
    const { settings, report } = this.#options
    const { queueWarningMs } = settings()
    if (queueWarningMs === 0 || waitMs <= queueWarningMs) return
    report('warn', 'message waited for a worker', { WAIT_MS: Math.round(waitMs), LIMIT_MS: queueWarningMs })
  }
}

function causeOfRefusal(
  reason: 'queue-full' | 'memory' | 'busy',
  { max, queueLength, queueBytes }: PermitLimits,
): string {
  if (reason === 'busy') return 'another thread has held the lock of the permits for too long'
  return reason === 'memory'
    ? `messages that wait would hold more than ${queueBytes} bytes`
    : `${max} messages are mediated and ${queueLength} wait`
}
