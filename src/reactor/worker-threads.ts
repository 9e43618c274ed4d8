/**
 * The worker threads of a reactor for one plan: a pool of piscina, and the channel that each thread opens. A thread
 * that dies fails its own tasks and is replaced; a thread that hangs is terminated. Piscina is loaded with the first
 * task.
 */
import { getCompileCacheDir } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { MessagePort, Worker } from 'node:worker_threads'
import type { Piscina } from 'piscina'
import { WorkerFailure } from '../mediation/worker-service.ts'
import { type ChildThreadKind, ChildThreads } from '../observe/child-threads.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import type { TaskCall } from '../mediation/task-calls.ts'
import { BEATS, type FromWorker, RUNNING, type WorkerHello } from '../plan/worker-messages.ts'
import type { FromMounted } from '../plan/mounted-messages.ts'
import type { TaskEnvelope, TaskReply, WorkerData } from '../plan/worker-plan.ts'
import type { MountedReply } from '../proxy/mediated/mounted-calls.ts'
import { respond } from '../runtime/call-channel.ts'
import { makeLoopsInterruptible } from '../runtime/loop-interrupts.ts'

const ENTRY = new URL('../worker/worker-entry.js', import.meta.url)
const MIB = 1_048_576

/** Times of supervision in milliseconds. */
interface WorkerWatch {
  /** From the creation of a thread to its first message. */
  readonly startMs: number
  /** Of a thread with tasks, without a sign of life: it hangs. */
  readonly silenceMs: number
  readonly checkMs: number
}

const WATCH: WorkerWatch = { startMs: 10_000, silenceMs: 5000, checkMs: 1000 }

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
  /** First file of a thread, and times; for tests. */
  readonly entry?: URL | undefined
  readonly watch?: Partial<WorkerWatch> | undefined
}

/** A thread as the reactor sees it. */
interface Watched {
  readonly worker: Worker
  /** Null until the thread has said hello. */
  hello: { readonly port: MessagePort; readonly life: Int32Array; readonly memory: ChildThreads } | null
  beats: number
  /** When the last sign of life was seen; before the first one, when the thread was. */
  aliveMs: number
  cause: string
}

export class WorkerThreads {
  readonly #options: WorkerThreadsOptions
  readonly #watch: WorkerWatch
  readonly #threads = new Map<Worker, Watched>()
  #pool: Promise<Piscina> | null = null
  #pending = 0
  #timer: NodeJS.Timeout | null = null
  #state: 'open' | 'retired' | 'closed' = 'open'

  constructor(options: WorkerThreadsOptions) {
    this.#options = options
    this.#watch = { ...WATCH, ...options.watch }
  }

  /** Tasks that have not ended. */
  get pending(): number {
    return this.#pending
  }

  get isStarted(): boolean {
    return this.#pool !== null
  }

  /** Starts the threads before their first task. */
  start(): void {
    this.#pool ??= this.#open()
    // The tasks that need the pool reject.
    this.#pool.catch(() => undefined)
  }

  /** Rejects with WorkerFailure `died` or `failed`. `transfer`: buffers of the task, which are moved to the thread. */
  async run(envelope: TaskEnvelope, transfer: readonly ArrayBuffer[]): Promise<unknown> {
    this.#pending++
    try {
      this.#pool ??= this.#open()
      const pool = await this.#pool
      const reply = (await pool.run(envelope, { transferList: transfer as never })) as TaskReply
      if ('value' in reply) return reply.value
      throw new WorkerFailure('failed', reply.cause)
    } catch (error) {
      throw error instanceof WorkerFailure ? error : failureOf(error as NodeJS.ErrnoException)
    } finally {
      this.#pending--
      // What the last task has logged is in the queue of another port.
      if (this.#state === 'retired' && this.#pending === 0) setImmediate(() => this.close())
    }
  }

  /** Ends the threads once their tasks are over. */
  retire(): void {
    this.#state = 'retired'
    if (this.#pending === 0) this.close()
  }

  /** Ends the threads at once; their tasks fail. */
  close(): void {
    this.#state = 'closed'
    if (this.#timer !== null) clearInterval(this.#timer)
    for (const thread of this.#threads.values()) this.#forget(thread)
    this.#pool?.then(
      pool => pool.destroy(),
      () => undefined,
    )
  }

  async #open(): Promise<Piscina> {
    const { plan, wakes, threads, tasksMax, heapBytes, entry = ENTRY } = this.#options
    const { Piscina } = await import('piscina')
    makeLoopsInterruptible()
    const pool = new Piscina({
      filename: fileURLToPath(entry),
      name: 'runTask',
      // All threads start at once: piscina fills the first one before it starts another.
      ...{ minThreads: threads, maxThreads: threads, concurrentTasksPerWorker: tasksMax },
      workerData: { plan, compileCache: getCompileCacheDir(), wakes } satisfies WorkerData,
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(heapBytes / MIB) },
      recordTiming: false,
    })
    pool.on('message', (hello: WorkerHello) => this.#greet(hello, pool))
    pool.on('error', (error: Error) => this.#failed(error, pool))
    this.#look(pool)
    this.#timer = setInterval(() => this.#look(pool), this.#watch.checkMs).unref()
    return pool
  }

  /** A thread without a task has failed: the cause of one that could not start. */
  #failed(error: Error, pool: Piscina): void {
    this.#options.report('error', 'worker failed', { CAUSE_OF_ERROR: causeOf(error) })
    // Without a thread piscina would keep its tasks for good.
    if (pool.threads.length === 0) void pool.destroy()
  }

  #greet({ threadId, port, life, memory, marks }: WorkerHello, pool: Piscina): void {
    this.#look(pool)
    const thread = [...this.#threads.values()].find(({ worker }) => worker.threadId === threadId)
    if (thread === undefined || this.#state === 'closed') {
      port.close()
      return
    }
    const { metrics, kind } = this.#options
    const children = new ChildThreads(metrics, row => (row === 0 ? kind : 'script'), memory, marks)
    children.tick()
    thread.hello = { port, life: new Int32Array(life), memory: children }
    thread.aliveMs = performance.now()
    metrics.add(METRIC.workerThreads, 1)
    const reply: MountedReply = (message, transfer = []) => port.postMessage(message, transfer as ArrayBuffer[])
    port.on('message', (message: FromWorker) => {
      if (message.kind === 'mounted') this.#options.receive(message, reply)
      else if (message.kind === 'call') void respond(port, message, this.#options.serve)
      else this.#options.report(message.event.level, message.event.event, message.event.fields)
    })
    port.unref()
  }

  /** Finds new threads, and terminates those that hang. */
  #look(pool: Piscina): void {
    const now = performance.now()
    for (const worker of pool.threads) if (!this.#threads.has(worker)) this.#add(worker, now)
    for (const thread of this.#threads.values()) {
      const { hello } = thread
      hello?.memory.tick()
      const beats = hello === null ? -1 : Atomics.load(hello.life, BEATS)
      const isIdle = hello !== null && Atomics.load(hello.life, RUNNING) === 0
      if (isIdle || beats !== thread.beats) thread.aliveMs = now
      thread.beats = beats
      const limitMs = hello === null ? this.#watch.startMs : this.#watch.silenceMs
      if (now - thread.aliveMs > limitMs) this.#terminate(thread, limitMs)
    }
  }

  #terminate(thread: Watched, limitMs: number): void {
    thread.cause = `no sign of life for ${limitMs} ms`
    thread.aliveMs = performance.now()
    void thread.worker.terminate()
  }

  #add(worker: Worker, now: number): void {
    const thread: Watched = { worker, hello: null, beats: -1, aliveMs: now, cause: '' }
    this.#threads.set(worker, thread)
    worker.once('error', (error: Error) => {
      thread.cause ||= causeOf(error)
    })
    worker.once('exit', code => {
      if (!this.#threads.has(worker)) return
      this.#forget(thread)
      this.#options.metrics.add(METRIC.workerDeaths, 1)
      const CAUSE_OF_ERROR = thread.cause || `exit code ${code}`
      this.#options.report('error', 'worker died; a replacement starts', { CAUSE_OF_ERROR })
    })
  }

  #forget(thread: Watched): void {
    this.#threads.delete(thread.worker)
    if (thread.hello === null) return
    thread.hello.port.close()
    thread.hello.memory.close()
    this.#options.metrics.add(METRIC.workerThreads, -1)
  }
}

/** An error of piscina: the task could not be sent, or its thread is gone. */
function failureOf(error: NodeJS.ErrnoException): WorkerFailure {
  return new WorkerFailure(error.name === 'DataCloneError' ? 'failed' : 'died', causeOf(error))
}

/** Code or name of an error: what is thrown in a thread may hold text of a client. Piscina's own texts hold none. */
function causeOf(error: NodeJS.ErrnoException): string {
  if (error.code !== undefined) return error.code
  return /^worker exited with code: \d+$|^Terminating worker thread$/.test(error.message) ? error.message : error.name
}
