/**
 * The worker threads of a reactor for one plan: a pool of piscina. A thread that dies fails its own tasks and is
 * replaced. Piscina replaces no thread any more after a replacement has failed at its start: another pool takes over
 * then. Piscina is loaded with the first task.
 */
import { getCompileCacheDir } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Piscina } from 'piscina'
import { WorkerFailure } from '../mediation/worker-service.ts'
import { TRIM, type WorkerHello } from '../plan/worker-messages.ts'
import type { TaskEnvelope, TaskReply, WorkerData } from '../plan/worker-plan.ts'
import { makeLoopsInterruptible } from '../runtime/loop-interrupts.ts'
import { refuseThreadsByEvent } from '../runtime/refused-threads.ts'
import { UNCLAIMED } from '../runtime/task-claims.ts'
import { setTimeSlice } from '../runtime/thread-scheduling.ts'
import {
  causeOf,
  SupervisedThreads,
  type SupervisionOptions,
  type SupervisionTimes,
  type ThreadLoad,
} from './supervised-threads.ts'
import { type MovableSize, WithdrawableTasks } from './withdrawable-tasks.ts'

const ENTRY = new URL('../worker/worker-entry.js', import.meta.url)
const MIB = 1_048_576

/** Times in milliseconds. */
interface WorkerWatch extends SupervisionTimes {
  readonly checkMs: number
  /** Pause before another pool starts where threads are missing; doubles until a pool has all its threads. */
  readonly pauseMs: number
  readonly pauseMaxMs: number
  /** Time without a task after which threads give back memory. */
  readonly idleMs: number
}

const WATCH: WorkerWatch = {
  startMs: 10_000,
  silenceMs: 5000,
  checkMs: 1000,
  heldUpMs: 150,
  pauseMs: 1000,
  pauseMaxMs: 60_000,
  idleMs: 10_000,
}

/**
 * What a task may cost, by its body, and whether another thread may begin it where its own does not get to it: movable
 * ones, until a thread has begun them. `bound`: it has the threads of its kind alone.
 */
export type TaskSize = MovableSize | 'bound' | 'long'

/** What `run` resolves with for a task that was withdrawn, or lost its thread, before that began it. */
export const WITHDRAWN: unique symbol = Symbol('withdrawn')

/** A thread that holds more keeps what long messages have left: V8 collects nothing in a thread without tasks. */
const HELD_MAX = 64 * MIB

export interface WorkerThreadsOptions extends SupervisionOptions {
  /** JSON of a `WorkerPlan`. */
  readonly plan: string
  readonly wakes: SharedArrayBuffer
  /** Tasks that one thread takes at once. */
  readonly tasksMax: number
  /** Heap of one thread in bytes. */
  readonly heapBytes: number
  /** First file of a thread, and times; for tests. */
  readonly entry?: URL | undefined
  readonly watch?: Partial<WorkerWatch> | undefined
}

interface OpenPool {
  readonly piscina: Piscina
  /** Tasks that have not ended, with withdrawn ones that their thread has not seen. */
  pending: number
}

/** A task on its way to its thread, and the buffers of its body. */
interface SentTask {
  readonly envelope: TaskEnvelope
  readonly transfer: readonly ArrayBuffer[]
}

const NO_THREADS: ThreadLoad = { threads: 0, greeted: 0, heldUp: 0 }

export class WorkerThreads {
  readonly #options: WorkerThreadsOptions
  readonly #watch: WorkerWatch
  readonly #threads: SupervisedThreads
  /** The current pool, the one that may follow it, and earlier ones whose tasks have not ended. */
  readonly #pools = new Set<OpenPool>()
  /** Takes the tasks; null until it has started. */
  #current: OpenPool | null = null
  /** Takes over from the current one once it has all its threads. */
  #next: OpenPool | null = null
  #starting: Promise<void> | null = null
  /** A pool is being opened. */
  #isOpening = false
  /** Ends the pause before the next pool. */
  #pause: NodeJS.Timeout | null = null
  /** Pauses since a pool had all its threads. */
  #pauses = 0
  #pending = 0
  readonly #withdrawable = new WithdrawableTasks()
  /** When the last task ended; null: the threads have given back memory since. */
  #idleMs: number | null = null
  #timer: NodeJS.Timeout | null = null
  #state: 'open' | 'retired' | 'closed' = 'open'
  /** Why tasks have ended with the threads; '' for none. */
  #closeCause = ''

  constructor(options: WorkerThreadsOptions) {
    this.#options = options
    this.#watch = { ...WATCH, ...options.watch }
    this.#threads = new SupervisedThreads(options, this.#watch)
  }

  /** Tasks that have not ended. */
  get pending(): number {
    return this.#pending
  }

  get isStarted(): boolean {
    return this.#starting !== null
  }

  /** Number of threads, whether they have started or not. */
  get size(): number {
    return this.#options.threads
  }

  /** Tasks of each thread that have not ended, on average. */
  get tasksEach(): number {
    return this.#pending / this.size
  }

  /** Load of the threads that take tasks. */
  get #load(): ThreadLoad {
    return this.#current === null ? NO_THREADS : this.#threads.load(this.#current.piscina)
  }

  /** A thread has started, and takes tasks. */
  get isReady(): boolean {
    return this.#load.greeted > 0
  }

  /** A further task would wait for one that computes, whatever thread gets it, or for threads that are missing. */
  get isHeldUp(): boolean {
    const { threads, heldUp } = this.#load
    return this.#isMissing || (threads > 0 && heldUp === threads)
  }

  /** No thread has started, and none is about to. Piscina has a replacement for one that dies at once, if ever. */
  get #isMissing(): boolean {
    return this.isStarted && !this.#isOpening && (this.#current?.piscina.threads.length ?? 0) === 0
  }

  /** Tasks that may be withdrawn. */
  get waiting(): number {
    return this.#withdrawable.waiting
  }

  /** Tasks that no thread has begun wait behind one that computes, if they have got its thread, or for a start. */
  get holdsUp(): boolean {
    return this.waiting > 0 && (this.#load.heldUp > 0 || !this.isReady)
  }

  /** Withdraws tasks of these sizes that no thread gets to; `run` resolves with WITHDRAWN for each. */
  withdraw(hasSize: (size: MovableSize) => boolean): void {
    this.#withdrawable.withdraw(hasSize, this.isHeldUp || !this.isReady ? 0 : this.#watch.heldUpMs)
  }

  /** Starts the threads before their first task. */
  start(): void {
    this.#starting ??= this.#startPool()
  }

  /**
   * Rejects with WorkerFailure `died` or `failed`; resolves with WITHDRAWN where the task was withdrawn.
   * `transfer`: buffers of the task, which are moved to the thread, but for those of a task that may be withdrawn.
   */
  async run(task: SentTask, size: TaskSize = 'bound'): Promise<unknown> {
    this.#pending++
    try {
      this.start()
      await this.#starting
      const pool = this.#current
      const isMovable = size === 'short' || size === 'large'
      // Piscina would start a thread for each task.
      if (pool === null || pool.piscina.threads.length === 0) {
        if (isMovable && !this.#isClosed) return WITHDRAWN
        throw new WorkerFailure('died', 'no thread has started')
      }
      const reply = isMovable ? await this.#runWithdrawable(pool, task, size) : await this.#runIn(pool, task)
      if ('value' in reply) return reply.value
      if ('kind' in reply) return WITHDRAWN
      throw new WorkerFailure('failed', reply.cause)
    } catch (error) {
      if (error instanceof WorkerFailure) throw error
      throw failureOf(error as NodeJS.ErrnoException, this.#closeCause)
    } finally {
      this.#pending--
      this.#idleMs = performance.now()
      this.#threads.ended(task.envelope.id)
      // Events of the last task are in the queue of another port.
      if (this.#state === 'retired' && this.#pending === 0) setImmediate(() => this.close())
    }
  }

  /** Ends a task for whose result nobody waits, at the next wait of the task on its thread (D807). */
  leave(task: number): void {
    this.#threads.leave(task)
  }

  #runWithdrawable(pool: OpenPool, task: SentTask, size: MovableSize): Promise<TaskReply> {
    const { envelope, transfer } = task
    const bytes = transfer.reduce((sum, { byteLength }) => sum + byteLength, 0)
    const claim = this.#withdrawable.offer(bytes)
    if (claim === UNCLAIMED) return this.#runIn(pool, task)
    const ended = this.#runIn(pool, { envelope: { ...envelope, claim }, transfer: [] })
    return this.#withdrawable.reply(ended, { claim, bytes, size }, isGone)
  }

  async #runIn(pool: OpenPool, { envelope, transfer }: SentTask): Promise<TaskReply> {
    pool.pending++
    try {
      return (await pool.piscina.run(envelope, { transferList: transfer as never })) as TaskReply
    } finally {
      pool.pending--
      if (this.#isEarlier(pool)) setImmediate(() => this.#endIdle(pool))
    }
  }

  /** Ends the threads once their tasks are over. */
  retire(): void {
    this.#state = 'retired'
    if (this.#pending === 0) this.close()
  }

  /** Ends the threads at once; their tasks fail, with this cause. */
  close(cause = ''): void {
    this.#state = 'closed'
    this.#closeCause = cause
    if (this.#timer !== null) clearInterval(this.#timer)
    if (this.#pause !== null) clearTimeout(this.#pause)
    for (const pool of this.#pools) this.#end(pool)
  }

  // ---- pools ------------------------------------------------------------------------------------------------------

  /** Starts a pool. It takes the tasks at once where no thread does, else when it has all its threads. */
  async #startPool(): Promise<void> {
    this.#isOpening = true
    try {
      const { Piscina } = await import('piscina')
      // No thread has started, and none is to.
      if (this.#isClosed) return
      const pool = this.#open(Piscina)
      if (this.#current === null || this.#current.piscina.threads.length === 0) this.#use(pool)
      else this.#next = pool
    } catch (error) {
      this.#isOpening = false
      this.#options.report('error', 'worker failed', { CAUSE_OF_ERROR: causeOf(error as Error) })
      this.#startLater()
    } finally {
      this.#isOpening = false
    }
  }

  /** Threads may be closed during a wait. */
  get #isClosed(): boolean {
    return this.#state === 'closed'
  }

  #open(PoolOfThreads: typeof Piscina): OpenPool {
    const { plan, wakes, threads, tasksMax, heapBytes, entry = ENTRY } = this.#options
    makeLoopsInterruptible()
    refuseThreadsByEvent()
    setTimeSlice('short')
    const piscina = new PoolOfThreads({
      filename: fileURLToPath(entry),
      name: 'runTask',
      // All threads start at once: piscina fills the first one before it starts another.
      ...{ minThreads: threads, maxThreads: threads, concurrentTasksPerWorker: tasksMax },
      workerData: {
        ...{ plan, compileCache: getCompileCacheDir(), wakes, claims: this.#withdrawable.memory },
      } satisfies WorkerData,
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(heapBytes / MIB) },
      recordTiming: false,
    })
    const pool: OpenPool = { piscina, pending: 0 }
    this.#pools.add(pool)
    piscina.on('message', (hello: WorkerHello) => this.#greet(hello, pool))
    // A thread without a task has failed: the cause of one that could not start.
    piscina.on('error', (error: Error) => {
      this.#options.report('error', 'worker failed', { CAUSE_OF_ERROR: causeOf(error) })
    })
    // Its replacement is there, or is not, once piscina has returned.
    piscina.on('workerDestroy', () => setImmediate(() => this.#look()))
    this.#look()
    this.#timer ??= setInterval(() => this.#look(), this.#watch.checkMs).unref()
    return pool
  }

  #use(pool: OpenPool): void {
    const old = this.#current
    this.#current = pool
    this.#next = null
    if (old !== null) this.#endIdle(old)
  }

  /** Starts another pool after a pause, because threads are missing. */
  #startLater(): void {
    if (this.#state !== 'open' || this.#isOpening || this.#next !== null || this.#pause !== null) return
    const { pauseMs, pauseMaxMs } = this.#watch
    const PAUSE_MS = Math.min(pauseMs * 2 ** this.#pauses, pauseMaxMs)
    this.#pauses++
    this.#options.report('warn', 'worker threads are missing; all start anew', { PAUSE_MS })
    this.#pause = setTimeout(() => {
      this.#pause = null
      void this.#startPool()
    }, PAUSE_MS).unref()
  }

  #isEarlier(pool: OpenPool): boolean {
    return pool !== this.#current && pool !== this.#next
  }

  #endIdle(pool: OpenPool): void {
    if (pool.pending === 0) this.#end(pool)
  }

  #end(pool: OpenPool): void {
    if (!this.#pools.delete(pool)) return
    this.#threads.forget(pool.piscina)
    void pool.piscina.destroy()
  }

  /** Looks for threads that piscina has not replaced. */
  #mend(pool: OpenPool): void {
    const { length } = pool.piscina.threads
    if (length >= this.#options.threads) return
    // Piscina would keep the tasks that wait for a thread.
    if (length === 0) void pool.piscina.destroy()
    if (this.#isEarlier(pool)) return
    if (pool === this.#next) {
      this.#next = null
      this.#end(pool)
    }
    this.#startLater()
  }

  #greet(hello: WorkerHello, pool: OpenPool): void {
    this.#look()
    this.#threads.greet(hello)
    this.#greeted(pool)
  }

  /** A pool that has all its threads takes over. */
  #greeted(pool: OpenPool): void {
    if (this.#threads.load(pool.piscina).greeted < this.#options.threads) return
    if (pool === this.#next) this.#use(pool)
    if (pool === this.#current) this.#pauses = 0
  }

  /** Finds new threads, terminates those that hang, and replaces those that piscina does not. */
  #look(): void {
    for (const pool of this.#pools) {
      this.#threads.find(pool.piscina)
      this.#mend(pool)
    }
    this.#trimIdle()
    this.#threads.look()
  }

  /** Lets threads without tasks give back what long messages have left (D913). No client waits for them meanwhile. */
  #trimIdle(): void {
    const pool = this.#current
    if (pool === null || this.#pending > 0 || this.#idleMs === null) return
    if (performance.now() - this.#idleMs < this.#watch.idleMs) return
    this.#idleMs = null
    if (!this.#threads.holdsMore(pool.piscina, HELD_MAX)) return
    // Piscina gives each thread one of so many tasks.
    const trim: SentTask = { envelope: { task: { kind: TRIM }, id: 0, endMs: 0 }, transfer: [] }
    for (const _ of pool.piscina.threads) void this.#runIn(pool, trim).catch(() => undefined)
  }
}

/** The thread of a task is gone. */
function isGone(error: NodeJS.ErrnoException): boolean {
  return failureOf(error, '').reason === 'died'
}

/** An error of piscina: the task could not be sent, or its thread is gone. */
function failureOf(error: NodeJS.ErrnoException, closeCause: string): WorkerFailure {
  if (error.name === 'DataCloneError') return new WorkerFailure('failed', causeOf(error))
  return new WorkerFailure('died', closeCause === '' ? causeOf(error) : closeCause)
}
