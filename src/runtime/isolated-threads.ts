/**
 * Threads that run one task each, for code of operators: a task that loops, dies or needs too much memory ends its own
 * thread and no other task. Threads start when tasks need them; further tasks wait in a bounded queue.
 */
import { type Transferable, Worker } from 'node:worker_threads'
import { makeLoopsInterruptible } from './loop-interrupts.ts'
import { monotonicMs } from './monotonic-clock.ts'

/**
 * Why a task has no result. `late`: it has not ended in time. `memory`: its thread has no memory left. `died`: its
 * thread has ended. `queue-full`: too many tasks wait, or the task has waited too long.
 */
export class ThreadFailure extends Error {
  override readonly name = 'ThreadFailure'
  readonly reason: 'late' | 'memory' | 'died' | 'queue-full'

  constructor(reason: ThreadFailure['reason'], cause: string) {
    super(cause)
    this.reason = reason
  }
}

/** Hears what the threads do. */
export interface ThreadsObserver {
  /** The number of threads with a task has changed. */
  used(threads: number): void
  /** A task waits for a thread. */
  waits(): void
  waited(ms: number): void
  /** A task has no result. */
  failed(reason: ThreadFailure['reason']): void
}

interface IsolatedThreadsOptions {
  /** First file of a thread. It posts READY once, and then one reply for each task. */
  readonly entry: URL
  readonly workerData: object | null
  readonly threadsMax: number
  /** Longest time of a task on its thread, in milliseconds. */
  readonly timeoutMs: number
  /** Heap of one thread in bytes. */
  readonly heapBytes: number
  /** A row for the memory of each thread (thread-memory.ts), which the thread gets as `memory` of its `workerData`. */
  readonly memory: readonly Float64Array[]
  readonly observer?: ThreadsObserver
}

/** Message of a thread that takes tasks. */
export const READY = 'ready'

/** Tasks that wait, for each thread. */
export const WAITING_PER_THREAD = 100
/** From the start of a thread to READY, in milliseconds. A task waits for so long beyond its own time. */
export const START_MS = 10_000
/** A further thread without a task for so long ends with the next task that ends, in milliseconds. */
const IDLE_MS = 60_000
/** From the termination of a thread: it is stuck in a call of the system, which nothing ends. In milliseconds. */
const STUCK_MS = 5000
const MIB = 1_048_576

interface Job {
  readonly task: unknown
  readonly transfer: readonly Transferable[]
  readonly result: PromiseWithResolvers<unknown>
  /** When it began to wait; 0 where it did not. */
  sinceMs: number
  /** Ends the wait for a thread; none after that. */
  timer: NodeJS.Timeout | undefined
}

interface Thread {
  readonly worker: Worker
  /** Null while it waits for a task, and after its end. */
  work: Job | 'starting' | null
  timer: NodeJS.Timeout
  idleMs: number
  readonly memory: Float64Array | undefined
}

export class IsolatedThreads {
  readonly #options: IsolatedThreadsOptions
  readonly #threads = new Set<Thread>()
  readonly #idle: Thread[] = []
  readonly #waiting = new Set<Job>()
  /** When each thread was terminated that has not exited. */
  readonly #ending = new Map<Worker, number>()
  /** Threads with a task. */
  #used = 0

  constructor(options: IsolatedThreadsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#threads.size
  }

  /** Rejects with ThreadFailure. `transfer`: parts of the task that are moved. */
  run(task: unknown, transfer: readonly Transferable[] = []): Promise<unknown> {
    const job: Job = { task, transfer, result: Promise.withResolvers(), sinceMs: 0, timer: undefined }
    const thread = this.#idle.pop()
    if (thread !== undefined) this.#give(thread, job)
    else this.#wait(job)
    return job.result.promise
  }

  /** Ends all threads; their tasks fail. */
  close(): void {
    for (const thread of [...this.#threads]) this.#end(thread, new ThreadFailure('died', 'the threads are closed'))
    for (const job of this.#waiting) settle(job).reject(new ThreadFailure('died', 'the threads are closed'))
    this.#waiting.clear()
  }

  #wait(job: Job): void {
    const { threadsMax, timeoutMs, observer } = this.#options
    if (this.#waiting.size >= threadsMax * WAITING_PER_THREAD) {
      observer?.failed('queue-full')
      job.result.reject(new ThreadFailure('queue-full', `${this.#waiting.size} tasks wait`))
      return
    }
    const waitMs = timeoutMs + START_MS
    job.timer = setTimeout(() => {
      this.#waiting.delete(job)
      observer?.failed('queue-full')
      job.result.reject(new ThreadFailure('queue-full', `no thread was free within ${waitMs} ms`))
    }, waitMs)
    job.sinceMs = monotonicMs()
    observer?.waits()
    this.#waiting.add(job)
    this.#startForWaiting()
  }

  /** Starts a thread if more tasks wait than threads start. */
  #startForWaiting(): void {
    const { threadsMax } = this.#options
    if (this.#threads.size >= threadsMax) return
    // A thread that does not end keeps its memory: as many of them may exist as of others.
    if (this.#threads.size + this.#ending.size >= 2 * threadsMax) {
      this.#failIfStuck()
      return
    }
    const starting = [...this.#threads].filter(({ work }) => work === 'starting')
    if (starting.length < this.#waiting.size) this.#start()
  }

  /** Fails the tasks that wait where no thread is left, and none will be. */
  #failIfStuck(): void {
    const now = monotonicMs()
    const stuck = [...this.#ending.values()].filter(sinceMs => now - sinceMs > STUCK_MS)
    if (this.#threads.size > 0 || stuck.length < this.#options.threadsMax) return
    const cause = `${stuck.length} threads are in calls of the system that do not return: restart the gateway`
    for (const job of this.#waiting) {
      this.#options.observer?.failed('died')
      settle(job).reject(new ThreadFailure('died', cause))
    }
    this.#waiting.clear()
  }

  #start(): void {
    const { entry, workerData: given, heapBytes } = this.#options
    makeLoopsInterruptible()
    const resourceLimits = { maxOldGenerationSizeMb: Math.ceil(heapBytes / MIB) }
    const memory = this.#options.memory.find(row => !this.#hasMemory(row))
    const workerData = { ...given, memory }
    const worker = new Worker(entry, { workerData, resourceLimits, stdout: false, stderr: false })
    const timer = setTimeout(() => {
      this.#lost(thread, new ThreadFailure('died', `not started within ${START_MS} ms`))
    }, START_MS)
    const thread: Thread = { worker, work: 'starting', timer, idleMs: 0, memory }
    this.#threads.add(thread)
    worker.on('message', (message: unknown) => this.#received(thread, message))
    worker.once('error', (error: NodeJS.ErrnoException) => {
      const isMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
      this.#lost(thread, new ThreadFailure(isMemory ? 'memory' : 'died', error.code ?? error.name))
    })
    worker.once('exit', code => this.#lost(thread, new ThreadFailure('died', `exit code ${code}`)))
  }

  #give(thread: Thread, job: Job): void {
    const { timeoutMs, observer } = this.#options
    settle(job)
    if (job.sinceMs > 0) observer?.waited(monotonicMs() - job.sinceMs)
    if (!isJob(thread.work)) observer?.used(++this.#used)
    thread.work = job
    thread.worker.ref()
    thread.timer = setTimeout(() => {
      this.#lost(thread, new ThreadFailure('late', `no result within ${timeoutMs} ms`))
    }, timeoutMs)
    try {
      thread.worker.postMessage(job.task, job.transfer)
    } catch (error) {
      clearTimeout(thread.timer)
      job.result.reject(new ThreadFailure('died', `the task cannot be sent: ${(error as Error).name}`))
      this.#next(thread)
    }
  }

  #received(thread: Thread, message: unknown): void {
    const { work } = thread
    if (work === null || (work === 'starting' && message !== READY)) return
    clearTimeout(thread.timer)
    if (work !== 'starting') work.result.resolve(message)
    this.#next(thread)
  }

  /** Gives the thread the task that has waited longest. */
  #next(thread: Thread): void {
    const [job] = this.#waiting
    if (job !== undefined) {
      this.#waiting.delete(job)
      this.#give(thread, job)
      return
    }
    if (isJob(thread.work)) this.#options.observer?.used(--this.#used)
    thread.work = null
    thread.worker.unref()
    const now = monotonicMs()
    thread.idleMs = now
    this.#idle.push(thread)
    // The parent may be a thread whose event loop stands still without a task, so no timer does this.
    const [oldest] = this.#idle
    if (this.#idle.length > 1 && oldest !== undefined && now - oldest.idleMs > IDLE_MS) {
      this.#end(oldest, new ThreadFailure('died', 'not needed'))
    }
  }

  #lost(thread: Thread, failure: ThreadFailure): void {
    if (!this.#threads.has(thread)) return
    const wasStarting = thread.work === 'starting'
    if (isJob(thread.work)) this.#options.observer?.failed(failure.reason)
    this.#end(thread, failure)
    const [first] = this.#waiting
    if (wasStarting && first !== undefined) {
      // A thread that cannot start would be tried for ever.
      this.#waiting.delete(first)
      this.#options.observer?.failed(failure.reason)
      settle(first).reject(failure)
    }
    this.#startForWaiting()
  }

  /** A thread that is not over has the row. */
  #hasMemory(row: Float64Array | undefined): boolean {
    return [...this.#threads].some(({ memory }) => memory === row)
  }

  #end(thread: Thread, failure: ThreadFailure): void {
    if (!this.#threads.delete(thread)) return
    clearTimeout(thread.timer)
    const at = this.#idle.indexOf(thread)
    if (at >= 0) this.#idle.splice(at, 1)
    if (isJob(thread.work)) {
      this.#options.observer?.used(--this.#used)
      thread.work.result.reject(failure)
    }
    thread.work = null
    this.#ending.set(thread.worker, monotonicMs())
    void thread.worker.terminate().then(() => {
      this.#ending.delete(thread.worker)
      this.#startForWaiting()
      if (!this.#hasMemory(thread.memory)) thread.memory?.fill(0)
    })
  }
}

function isJob(work: Thread['work']): work is Job {
  return work !== null && work !== 'starting'
}

function settle(job: Job): Job['result'] {
  clearTimeout(job.timer)
  job.timer = undefined
  return job.result
}
