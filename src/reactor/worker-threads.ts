/**
 * The worker threads of a reactor for one plan: a pool of piscina, and the channel that each thread opens. A thread
 * that dies fails its own tasks and is replaced; a thread that hangs is terminated. Piscina replaces no thread any more
 * after a replacement has failed at its start: another pool takes over then. Piscina is loaded with the first task.
 */
import { getCompileCacheDir } from 'node:module'
import { fileURLToPath } from 'node:url'
import { type MessagePort, receiveMessageOnPort, type Worker } from 'node:worker_threads'
import type { Piscina } from 'piscina'
import { WorkerFailure } from '../mediation/worker-service.ts'
import { type ChildThreadKind, ChildThreads } from '../observe/child-threads.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import type { StepCounts } from '../mediation/flow-statistics.ts'
import type { TaskCall } from '../mediation/task-calls.ts'
import {
  BEATS,
  type FromWorker,
  RUNNING,
  type ToWorker,
  TRIM,
  TURN_MS,
  type WorkerHello,
} from '../plan/worker-messages.ts'
import type { FromMounted } from '../plan/mounted-messages.ts'
import type { TaskEnvelope, TaskReply, WorkerData } from '../plan/worker-plan.ts'
import type { MountedReply } from '../proxy/mediated/mounted-calls.ts'
import { respond } from '../runtime/call-channel.ts'
import { heldBytes, memoryRows } from '../runtime/thread-memory.ts'
import { makeLoopsInterruptible } from '../runtime/loop-interrupts.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { refuseThreadsByEvent } from '../runtime/refused-threads.ts'
import { UNCLAIMED } from '../runtime/task-claims.ts'
import { lowerPriority, processorWaitMs } from '../runtime/thread-scheduling.ts'
import { type MovableSize, WithdrawableTasks } from './withdrawable-tasks.ts'

const ENTRY = new URL('../worker/worker-entry.js', import.meta.url)
const MIB = 1_048_576

/** Times of supervision in milliseconds. */
interface WorkerWatch {
  /** From the creation of a thread to its first message. */
  readonly startMs: number
  /** Time without a sign of life after which a thread with tasks hangs. */
  readonly silenceMs: number
  readonly checkMs: number
  /** A thread that computes for longer holds up its other tasks. An event loop that turns says so every 50 ms. */
  readonly heldUpMs: number
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

/** Nice value of worker threads above that of the process: reactors on the same processor go first (D321). */
const NICE = 10
/** Modules that the first tasks load would take too long at that priority where processors are scarce. */
const START_PRIORITY_MS = 300

/**
 * What a task may cost, by its body, and whether another thread may begin it where its own does not get to it: movable
 * ones, until a thread has begun them. `bound`: it has the threads of its kind alone.
 */
export type TaskSize = MovableSize | 'bound' | 'long'

/** What `run` resolves with for a task that was withdrawn, or lost its thread, before that began it. */
export const WITHDRAWN: unique symbol = Symbol('withdrawn')

/** A thread that holds more keeps what long messages have left: V8 collects nothing in a thread without tasks. */
const HELD_MAX = 64 * MIB

export interface WorkerThreadsOptions {
  readonly kind: ChildThreadKind
  /** JSON of a `WorkerPlan`. */
  readonly plan: string
  readonly wakes: SharedArrayBuffer
  readonly threads: number
  /** Tasks that one thread takes at once. */
  readonly tasksMax: number
  /** Heap of one thread in bytes. */
  readonly heapBytes: number
  readonly report: Report
  readonly metrics: MetricsColumn
  /** Serves the calls of tasks. */
  readonly serve: (call: TaskCall) => unknown
  /** Takes what a thread says about a request to a mounted API; `reply` posts to that thread. */
  readonly receive: (message: FromMounted, reply: MountedReply) => void
  /** Ends the calls of a task, for whose result nobody waits any more. */
  readonly left: (task: number) => void
  /** Takes the counts of flows. */
  readonly count: (counts: readonly StepCounts[]) => void
  /** First file of a thread, and times; for tests. */
  readonly entry?: URL | undefined
  readonly watch?: Partial<WorkerWatch> | undefined
  /** How long a thread has waited for a processor, in milliseconds; for tests. */
  readonly processorWaitMs?: (systemThreadId: number) => number
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

/** A thread as the reactor sees it. */
interface Watched {
  readonly worker: Worker
  readonly pool: OpenPool
  /** Null until the thread has said hello. */
  hello: {
    readonly port: MessagePort
    readonly life: Int32Array
    readonly memory: ChildThreads
    /** Its own row of the memory. */
    readonly held: Float64Array
    readonly systemThreadId: number
  } | null
  beats: number
  /** Time of the last sign of life, or of the start, with later waits for a processor added. */
  aliveMs: number
  /** The wait for a processor when the thread was last seen silent; null: it was not. */
  waitedMs: number | null
  cause: string
}

export class WorkerThreads {
  readonly #options: WorkerThreadsOptions
  readonly #watch: WorkerWatch
  readonly #threads = new Map<Worker, Watched>()
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
  /** Tasks under way for which nobody waits any more. */
  readonly #left = new Set<number>()
  /** Threads that were taken for dead, and have not exited. */
  readonly #stuck = new Set<Worker>()
  #timer: NodeJS.Timeout | null = null
  #state: 'open' | 'retired' | 'closed' = 'open'
  /** Why tasks have ended with the threads; '' for none. */
  #closeCause = ''

  constructor(options: WorkerThreadsOptions) {
    this.#options = options
    this.#watch = { ...WATCH, ...options.watch }
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

  /** A thread has started, and takes tasks. */
  get isReady(): boolean {
    return [...this.#threads.values()].some(({ pool, hello }) => pool === this.#current && hello !== null)
  }

  /** Threads that take tasks, and those of them that have been in one task for some time: others wait there. */
  get #load(): { readonly threads: number; readonly heldUp: number } {
    const nowMs = monotonicMs()
    const all = [...this.#threads.values()].filter(({ pool }) => pool === this.#current)
    const heldUp = all.filter(({ hello }) => hello !== null && computesMs(hello.life, nowMs) > this.#watch.heldUpMs)
    return { threads: all.length, heldUp: heldUp.length }
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
      this.#left.delete(task.envelope.id)
      // Events of the last task are in the queue of another port.
      if (this.#state === 'retired' && this.#pending === 0) setImmediate(() => this.close())
    }
  }

  /** Nobody waits for the result of a task that is under way: its thread ends it at its next wait (D807). */
  leave(task: number): void {
    this.#left.add(task)
    for (const { hello } of this.#threads.values()) hello?.port.postMessage({ kind: 'left', task } satisfies ToWorker)
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
    for (const thread of this.#threads.values()) if (thread.pool === pool) this.#forget(thread)
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

  // ---- threads ----------------------------------------------------------------------------------------------------

  #greet({ threadId, systemThreadId, port, life, memory, marks }: WorkerHello, pool: OpenPool): void {
    this.#look()
    const thread = [...this.#threads.values()].find(({ worker }) => worker.threadId === threadId)
    if (thread === undefined || this.#state === 'closed') {
      port.close()
      return
    }
    const { metrics, kind } = this.#options
    const children = new ChildThreads(metrics, row => (row === 0 ? kind : 'script'), memory, marks)
    children.tick()
    const held = memoryRows(memory)[0]!
    thread.hello = { port, life: new Int32Array(life), memory: children, held, systemThreadId }
    thread.aliveMs = performance.now()
    metrics.add(METRIC.workerThreads, 1)
    const reply: MountedReply = (message, transfer = []) => port.postMessage(message, transfer as ArrayBuffer[])
    port.on('message', (message: FromWorker) => {
      if (message.kind === 'mounted') this.#options.receive(message, reply)
      else if (message.kind === 'left') this.#options.left(message.task)
      else if (message.kind === 'call') void respond(port, message, this.#options.serve)
      else this.#record(message)
    })
    port.unref()
    for (const task of this.#left) port.postMessage({ kind: 'left', task } satisfies ToWorker)
    const { worker } = thread
    setTimeout(() => this.#threads.has(worker) && lowerPriority(systemThreadId, NICE), START_PRIORITY_MS).unref()
    this.#greeted(pool)
  }

  #record(message: Extract<FromWorker, { readonly kind: 'event' | 'counts' }>): void {
    if (message.kind === 'counts') this.#options.count(message.counts)
    else this.#options.report(message.event.level, message.event.event, message.event.fields)
  }

  /** A pool that has all its threads takes over. */
  #greeted(pool: OpenPool): void {
    const greeted = [...this.#threads.values()].filter(thread => thread.pool === pool && thread.hello !== null)
    if (greeted.length < this.#options.threads) return
    if (pool === this.#next) this.#use(pool)
    if (pool === this.#current) this.#pauses = 0
  }

  /** Finds new threads, terminates those that hang, and replaces those that piscina does not. */
  #look(): void {
    const now = performance.now()
    for (const pool of this.#pools) {
      for (const worker of pool.piscina.threads) if (!this.#threads.has(worker)) this.#add(worker, pool, now)
      this.#mend(pool)
    }
    this.#trimIdle(now)
    for (const thread of this.#threads.values()) {
      const { hello } = thread
      hello?.memory.tick()
      const beats = hello === null ? -1 : Atomics.load(hello.life, BEATS)
      const isIdle = hello !== null && Atomics.load(hello.life, RUNNING) === 0
      if (isIdle || beats !== thread.beats) {
        thread.aliveMs = now
        thread.waitedMs = null
      } else if (hello !== null) this.#allowForWait(thread, hello.systemThreadId)
      thread.beats = beats
      const limitMs = hello === null ? this.#watch.startMs : this.#watch.silenceMs
      if (now - thread.aliveMs > limitMs) this.#terminate(thread, limitMs)
    }
  }

  /** Lets threads without tasks give back what long messages have left (D913). No client waits for them meanwhile. */
  #trimIdle(now: number): void {
    const pool = this.#current
    if (pool === null || this.#pending > 0 || this.#idleMs === null) return
    if (now - this.#idleMs < this.#watch.idleMs) return
    this.#idleMs = null
    const own = [...this.#threads.values()].filter(thread => thread.pool === pool)
    if (!own.some(({ hello }) => hello !== null && heldBytes(hello.held) > HELD_MAX)) return
    // Piscina gives each thread one of so many tasks.
    const trim: SentTask = { envelope: { task: { kind: TRIM }, id: 0, endMs: 0 }, transfer: [] }
    for (const _ of own) void this.#runIn(pool, trim).catch(() => undefined)
  }

  /** A silent thread that waits for a processor does not hang: its wait is no silence (D259). */
  #allowForWait(thread: Watched, systemThreadId: number): void {
    const waitedMs = (this.#options.processorWaitMs ?? processorWaitMs)(systemThreadId)
    thread.aliveMs += waitedMs - (thread.waitedMs ?? waitedMs)
    thread.waitedMs = waitedMs
  }

  #terminate(thread: Watched, limitMs: number): void {
    thread.aliveMs = performance.now()
    if (thread.cause !== '') {
      this.#giveUp(thread)
      return
    }
    thread.cause = `no sign of life for ${limitMs} ms`
    void thread.worker.terminate()
  }

  /** A terminated thread does not exit, because a call of the system does not return: it is taken for dead (D911). */
  #giveUp(thread: Watched): void {
    const { threads, report } = this.#options
    if (this.#stuck.size >= threads) {
      const CAUSE_OF_ERROR = `${this.#stuck.size} threads are in calls of the system that do not return`
      report('error', 'worker is not replaced; restart the gateway', { CAUSE_OF_ERROR })
      return
    }
    this.#stuck.add(thread.worker)
    thread.cause += '; a call of the system that does not return keeps its thread'
    // Piscina fails its tasks, and starts a replacement.
    thread.worker.emit('error', new WorkerFailure('died', thread.cause))
    this.#died(thread)
  }

  #add(worker: Worker, pool: OpenPool, now: number): void {
    const thread: Watched = { worker, pool, hello: null, beats: -1, aliveMs: now, waitedMs: null, cause: '' }
    this.#threads.set(worker, thread)
    worker.once('error', (error: Error) => {
      thread.cause ||= causeOf(error)
    })
    worker.once('exit', code => {
      this.#stuck.delete(worker)
      if (!this.#threads.has(worker)) return
      thread.cause ||= `exit code ${code}`
      this.#died(thread)
    })
  }

  #died(thread: Watched): void {
    const { metrics, report, threads } = this.#options
    this.#forget(thread)
    metrics.add(METRIC.workerDeaths, 1)
    const isReplaced = thread.pool.piscina.threads.length >= threads
    const event = isReplaced ? 'worker died; a replacement starts' : 'worker died'
    report('error', event, { CAUSE_OF_ERROR: thread.cause })
  }

  #forget(thread: Watched): void {
    this.#threads.delete(thread.worker)
    if (thread.hello === null) return
    const { port } = thread.hello
    // A thread that ends itself has said why: that may still be in the queue of the port, which closing empties.
    for (let last = receiveMessageOnPort(port); last !== undefined; last = receiveMessageOnPort(port)) {
      const message = last.message as FromWorker
      if (message.kind === 'event' || message.kind === 'counts') this.#record(message)
    }
    port.close()
    thread.hello.memory.close()
    this.#options.metrics.add(METRIC.workerThreads, -1)
  }
}

/** How long a thread has computed without a turn of its event loop, in milliseconds. */
function computesMs(life: Int32Array, nowMs: number): number {
  return Atomics.load(life, RUNNING) === 0 ? 0 : (nowMs - Atomics.load(life, TURN_MS)) | 0
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

/** Code or name of an error: what is thrown in a thread may hold text of a client. Piscina's own texts hold none. */
function causeOf(error: NodeJS.ErrnoException): string {
  if (error.code !== undefined) return error.code
  return /^worker exited with code: \d+$|^Terminating worker thread$/.test(error.message) ? error.message : error.name
}
