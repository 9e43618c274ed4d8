/**
 * Tasks of one row of permits: each runs on a worker thread once it has a permit of the whole process, waits for one in
 * the queue, or is refused. A task that is late has no result; it holds its permit until its thread gives it up. A task
 * that waits for its client alone is suspended: it stays on its thread without a permit.
 */
import { type TaskWait, WorkerFailure } from '../mediation/worker-service.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import { type PoolName, TASK_BYTES } from '../plan/worker-plan.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import type { HeldPermits, PermitLimits, SharedPermits } from '../runtime/shared-permits.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { type TaskSize, WITHDRAWN, type WorkerThreads } from './worker-threads.ts'

/** A task that no thread has begun changes its thread so often at most; then it waits for the one that it has. */
const MOVES_MAX = 20
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
  /** For the log. */
  readonly name: PoolName
  readonly row: number
  readonly permits: SharedPermits
  readonly settings: () => WorkerPoolSettings
  /** The threads of the current plan for a task of that size. */
  readonly threads: (size: TaskSize) => WorkerThreads
  readonly report: Report
  readonly metrics: MetricsColumn
  /** Numbers of the tasks of all pools of a reactor. */
  readonly ids: TaskIds
}

/** A task and its buffers, which are moved to the thread. */
interface PoolTask {
  /** Identity of the API, for the log. */
  readonly api: string
  readonly task: { readonly kind: string }
  readonly size: TaskSize
  readonly transfer: readonly ArrayBuffer[]
  /** Permits of the pool that tasks hold which wait for this one; left out: none. */
  readonly held?: HeldPermits | undefined
}

/**
 * `new`: the task arrives. `queued`: it waits for its first permit. `runs`: it has a permit. `left`: it has a permit,
 * and its result is needed no more. `suspended`: it has begun, and waits for its client. `resuming`: it waits for a
 * permit to go on. `ended`: it is over, or was taken off the queue.
 */
type TaskState = 'new' | 'queued' | 'runs' | 'left' | 'suspended' | 'resuming' | 'ended'
/** `RUN`: it gets a permit. `WAIT`: it enters the queue. `LEAVE`: the result is needed no more. */
type TaskEvent = 'RUN' | 'WAIT' | 'LEAVE' | 'SUSPEND' | 'END'

const TASK_TRANSITIONS: { readonly [S in TaskState]: { readonly [E in TaskEvent]?: TaskState } } = {
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
  readonly entry: TaskEntry
  /** The task has a permit. */
  readonly taken: () => void
}

/** A task from its entry into the pool to its end. */
interface TaskEntry extends PoolTask {
  readonly id: number
  state: TaskState
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
  readonly state: TaskState
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
  readonly #suspended = new Set<TaskEntry>()

  constructor(options: WorkerPoolOptions) {
    this.#options = options
    this.#counts = COUNTS[options.kind]
  }

  /** Throws WorkerFailure where it refuses the task, else rejects with one. */
  run(task: PoolTask, wait: TaskWait | null = null): Promise<unknown> {
    return this.#enter(task, this.#options.settings().timeoutMs, wait, NOBODY).result.promise
  }

  /** Runs a task as `run` does, without the time-out of the pool. `evicted`: see `TaskEntry`. */
  open(task: PoolTask, evicted: () => void = NOBODY): OpenTask {
    const entry = this.#enter(task, 0, null, evicted)
    return {
      result: entry.result.promise,
      get state() {
        return entry.state
      },
      leave: () => this.#leave(entry),
      suspend: () => this.#suspend(entry),
      resume: (goesOn, way) => this.#resume(entry, goesOn, way),
    }
  }

  #enter(
    { api, task, size, transfer, held }: PoolTask,
    timeoutMs: number,
    wait: TaskWait | null,
    evicted: () => void,
  ): TaskEntry {
    const { row, permits, settings, metrics, ids } = this.#options
    const { limits } = settings()
    const result = Promise.withResolvers<unknown>()
    const sinceMs = monotonicMs()
    // A body in a file is in no memory.
    const bytes = transfer.reduce((sum, { byteLength }) => sum + byteLength, TASK_BYTES)
    const endMs = timeoutMs === 0 ? 0 : sinceMs + timeoutMs
    const parts = { api, task, size, transfer, held, result, timeoutMs, endMs, wait, evicted }
    const entry: TaskEntry = { ...parts, id: ids.next(), state: 'new', threads: null, place: null, timer: null }
    const place: Place = { bytes, sinceMs, entry, taken: () => void this.#start(entry) }
    const decision = permits.enter(row, limits, place, held)
    metrics.add(this.#counts.tasks, 1)
    if (decision !== 'runs' && decision !== 'waits') throw this.#refused(decision, limits)
    wait?.entered(() => this.#giveUp(entry))
    if (timeoutMs > 0) entry.timer = setTimeout(() => this.#atEnd(entry), timeoutMs)
    if (decision === 'runs') {
      advance(entry, 'RUN')
      void this.#start(entry)
    } else {
      this.#queue(entry, place)
      wait?.queued(() => void this.#leave(entry))
    }
    return entry
  }

  #queue(entry: TaskEntry, place: Place): void {
    advance(entry, 'WAIT')
    entry.place = place
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

  async #start(entry: TaskEntry): Promise<void> {
    const { metrics } = this.#options
    const { result } = entry
    try {
      const value = await this.#run(entry)
      this.#endIfLate(entry)
      if (isLeft(entry)) result.reject(GIVEN_UP)
      else result.resolve(value)
    } catch (error) {
      const failure = error as WorkerFailure
      if (failure.reason === 'died') metrics.add(this.#counts.died, 1)
      else if (!this.#endIfLate(entry) && !isLeft(entry)) metrics.add(this.#counts.failed, 1)
      result.reject(isLeft(entry) ? GIVEN_UP : failure)
    }
    if (entry.timer !== null) clearTimeout(entry.timer)
    this.#ended(entry)
  }

  /** Resolves with the result of the task, from the threads that have begun it. */
  async #run(entry: TaskEntry): Promise<unknown> {
    const { task, size, id, endMs, transfer } = entry
    const sent = { envelope: { task, id, endMs }, transfer }
    for (let moves = 0; ; moves++) {
      entry.threads = this.#options.threads(size)
      const value = await entry.threads.run(sent, moves < MOVES_MAX ? size : 'bound')
      if (value !== WITHDRAWN || isLeft(entry)) return value
    }
  }

  /** The task is over on its thread. */
  #ended(entry: TaskEntry): void {
    const { row, permits, settings } = this.#options
    const { state } = entry
    advance(entry, 'END')
    this.#suspended.delete(entry)
    if (state === 'resuming') {
      permits.leave(row, entry.place!)
      this.#waited(entry.place!)
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

  #suspend(entry: TaskEntry): void {
    const { row, permits, settings } = this.#options
    advance(entry, 'SUSPEND')
    this.#suspended.add(entry)
    this.#offer(permits.suspend(row, settings().limits))
    if (permits.interrupted(row) <= SUSPENDED_MAX) return
    const [slowest] = this.#suspended
    this.#suspended.delete(slowest!)
    slowest!.evicted()
  }

  #resume(entry: TaskEntry, goesOn: () => void, way: 'go on' | 'end'): void {
    const { row, permits, settings } = this.#options
    const { limits } = settings()
    const { held } = entry
    // By its arrival it would be ahead of all tasks of other threads, again and again.
    const place: Place = { bytes: 0, sinceMs: monotonicMs(), entry, taken: goesOn }
    const decision = permits.resume(row, limits, place, held, way)
    if (decision === 'loop' || decision === 'busy') throw this.#refused(decision, limits)
    this.#suspended.delete(entry)
    if (decision === 'waits') this.#queue(entry, place)
    else {
      advance(entry, 'RUN')
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

  #leave(entry: TaskEntry): boolean {
    if (!this.#leaveQueue(entry)) return false
    this.#hasLeft(entry)
    entry.result.reject(new WorkerFailure('left', 'taken off the queue of the workers before its turn'))
    return true
  }

  /** Ends a task whose result is needed no more, in the queue or on its thread. */
  #giveUp(entry: TaskEntry): void {
    if (this.#leave(entry) || entry.state !== 'runs') return
    advance(entry, 'LEAVE')
    this.#hasLeft(entry)
    entry.threads?.leave(entry.id)
  }

  #hasLeft(entry: TaskEntry): void {
    if (entry.timer !== null) clearTimeout(entry.timer)
    entry.timer = null
    this.#options.metrics.add(this.#counts.left, 1)
  }

  /** Returns false where the task does not wait for its first permit. */
  #leaveQueue(entry: TaskEntry): boolean {
    const { row, permits } = this.#options
    if (entry.state !== 'queued') return false
    advance(entry, 'END')
    permits.leave(row, entry.place!)
    this.#repairLater()
    this.#waited(entry.place!)
    return true
  }

  #atEnd(entry: TaskEntry): void {
    // A timer may fire some milliseconds early, and the thread of the task has the exact time.
    if (!this.#endIfLate(entry))
      entry.timer = setTimeout(() => this.#atEnd(entry), Math.ceil(entry.endMs - monotonicMs()))
  }

  /** Returns whether the result comes too late, or never: whoever waits hears of it now. */
  #endIfLate(entry: TaskEntry): boolean {
    const { endMs, timeoutMs, timer, result } = entry
    if (endMs === 0 || isLeft(entry) || monotonicMs() < endMs) return false
    if (timer === null) return true
    clearTimeout(timer)
    entry.timer = null
    this.#options.metrics.add(this.#counts.timeouts, 1)
    // Not in the queue any more: its thread ends it, by the time in its envelope.
    if (!this.#leaveQueue(entry)) advance(entry, 'LEAVE')
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
      advance(place.entry, 'RUN')
      this.#waited(place)
      place.taken()
    }
  }

  /** A task waits no longer: it has a permit, is late, or was taken off the queue. */
  #waited({ sinceMs, entry }: Place): void {
    const waitMs = monotonicMs() - sinceMs
    this.#options.metrics.add(this.#counts.waitSeconds, waitMs / 1000)
    entry.wait?.waited(waitMs)
    const { name, settings, report } = this.#options
    const { queueWarningMs } = settings()
    if (queueWarningMs === 0 || waitMs <= queueWarningMs) return
    const times = { WAIT_MS: Math.round(waitMs), LIMIT_MS: queueWarningMs }
    report('warn', 'message waited for a worker', { API: entry.api, POOL: name, ...times })
  }
}

/** Throws where the table has no such transition: a bug of the gateway. */
function advance(entry: TaskEntry, event: TaskEvent): void {
  const next = TASK_TRANSITIONS[entry.state][event]
  if (next === undefined) throw new Error(`a task that is ${entry.state} cannot take ${event}`)
  entry.state = next
}

/** Nobody waits for the result of a task that has begun. */
function isLeft({ state }: TaskEntry): boolean {
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
