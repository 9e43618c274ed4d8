/**
 * The threads of the pools of a reactor: finds new ones, serves their calls, and sees whether they compute, wait or
 * hang. A thread that hangs is terminated; one that does not even exit then is taken for dead.
 */
import { type MessagePort, receiveMessageOnPort, type Worker } from 'node:worker_threads'
import type { StepCounts } from '../mediation/flow-statistics.ts'
import type { TaskCall } from '../mediation/task-calls.ts'
import { WorkerFailure } from '../mediation/worker-service.ts'
import { type ChildThreadKind, ChildThreads } from '../observe/child-threads.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import type { FromMounted } from '../plan/mounted-messages.ts'
import { BEATS, type FromWorker, RUNNING, type ToWorker, TURN_MS, type WorkerHello } from '../plan/worker-messages.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import type { MountedReply } from '../proxy/mediated/mounted-calls.ts'
import { respond } from '../runtime/call-channel.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { heldBytes, memoryRows } from '../runtime/thread-memory.ts'
import { lowerPriority, processorWaitMs } from '../runtime/thread-scheduling.ts'

/** Nice value of worker threads above that of the process: reactors on the same processor go first (D321). */
const NICE = 10
/** Modules that the first tasks load would take too long at that priority where processors are scarce. */
const START_PRIORITY_MS = 300

/** Times of supervision in milliseconds. */
export interface SupervisionTimes {
  /** From the creation of a thread to its first message. */
  readonly startMs: number
  /** Time without a sign of life after which a thread with tasks hangs. */
  readonly silenceMs: number
  /** A thread that computes for longer holds up its other tasks. An event loop that turns says so every 50 ms. */
  readonly heldUpMs: number
}

export interface SupervisionOptions {
  readonly kind: ChildThreadKind
  /** Threads of a pool. */
  readonly threads: number
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
  /** How long a thread has waited for a processor, in milliseconds; for tests. */
  readonly processorWaitMs?: ((systemThreadId: number) => number) | undefined
}

/** A pool, by the threads that it has now. */
interface ThreadPool {
  readonly threads: readonly Worker[]
}

/** Numbers of the threads of a pool. */
export interface ThreadLoad {
  readonly threads: number
  /** Threads that have said hello. */
  readonly greeted: number
  /** Threads that have been in one task for some time: others wait there. */
  readonly heldUp: number
}

/** A thread that has said hello. */
interface Greeted {
  readonly port: MessagePort
  readonly life: Int32Array
  readonly memory: ChildThreads
  /** Its own row of the memory. */
  readonly held: Float64Array
  readonly systemThreadId: number
}

/** A thread as the reactor sees it. */
interface Supervised {
  readonly worker: Worker
  readonly pool: ThreadPool
  /** Null until the thread has said hello. */
  hello: Greeted | null
  beats: number
  /** Time of the last sign of life, or of the start, with later waits for a processor added. */
  aliveMs: number
  /** The wait for a processor when the thread was last seen silent; null: it was not. */
  waitedMs: number | null
  cause: string
}

export class SupervisedThreads {
  readonly #options: SupervisionOptions
  readonly #times: SupervisionTimes
  readonly #threads = new Map<Worker, Supervised>()
  /** Tasks under way for which nobody waits any more. */
  readonly #left = new Set<number>()
  /** Threads that were taken for dead, and have not exited. */
  readonly #stuck = new Set<Worker>()

  constructor(options: SupervisionOptions, times: SupervisionTimes) {
    this.#options = options
    this.#times = times
  }

  #of(pool: ThreadPool): readonly Supervised[] {
    return [...this.#threads.values()].filter(thread => thread.pool === pool)
  }

  /** Counts the threads of a pool by their present states. */
  load(pool: ThreadPool): ThreadLoad {
    const nowMs = monotonicMs()
    const all = this.#of(pool)
    const greeted = all.map(({ hello }) => hello).filter(hello => hello !== null)
    const heldUp = greeted.filter(({ life }) => computesMs(life, nowMs) > this.#times.heldUpMs)
    return { threads: all.length, greeted: greeted.length, heldUp: heldUp.length }
  }

  /** A thread of the pool holds more memory than so many bytes. */
  holdsMore(pool: ThreadPool, bytes: number): boolean {
    return this.#of(pool).some(({ hello }) => hello !== null && heldBytes(hello.held) > bytes)
  }

  /** Ends a task for whose result nobody waits, at the next wait of the task on its thread (D807). */
  leave(task: number): void {
    this.#left.add(task)
    for (const { hello } of this.#threads.values()) hello?.port.postMessage({ kind: 'left', task } satisfies ToWorker)
  }

  /** A task has ended. */
  ended(task: number): void {
    this.#left.delete(task)
  }

  /** Finds the new threads of a pool. */
  find(pool: ThreadPool): void {
    const now = performance.now()
    for (const worker of pool.threads) if (!this.#threads.has(worker)) this.#add(worker, pool, now)
  }

  /** Opens the channel of a thread that has started. */
  greet({ threadId, systemThreadId, port, life, memory, marks }: WorkerHello): void {
    const thread = [...this.#threads.values()].find(({ worker }) => worker.threadId === threadId)
    // Its pool has ended meanwhile.
    if (thread === undefined) {
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
  }

  #record(message: Extract<FromWorker, { readonly kind: 'event' | 'counts' }>): void {
    if (message.kind === 'counts') this.#options.count(message.counts)
    else this.#options.report(message.event.level, message.event.event, message.event.fields)
  }

  /** Looks for signs of life, and terminates threads that hang. */
  look(): void {
    const now = performance.now()
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
      const limitMs = hello === null ? this.#times.startMs : this.#times.silenceMs
      if (now - thread.aliveMs > limitMs) this.#terminate(thread, limitMs)
    }
  }

  /** A silent thread that waits for a processor does not hang: its wait is no silence (D259). */
  #allowForWait(thread: Supervised, systemThreadId: number): void {
    const waitedMs = (this.#options.processorWaitMs ?? processorWaitMs)(systemThreadId)
    thread.aliveMs += waitedMs - (thread.waitedMs ?? waitedMs)
    thread.waitedMs = waitedMs
  }

  #terminate(thread: Supervised, limitMs: number): void {
    thread.aliveMs = performance.now()
    if (thread.cause !== '') {
      this.#giveUp(thread)
      return
    }
    thread.cause = `no sign of life for ${limitMs} ms`
    void thread.worker.terminate()
  }

  /** A terminated thread does not exit, because a call of the system does not return: it is taken for dead (D911). */
  #giveUp(thread: Supervised): void {
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

  #add(worker: Worker, pool: ThreadPool, now: number): void {
    const thread: Supervised = { worker, pool, hello: null, beats: -1, aliveMs: now, waitedMs: null, cause: '' }
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

  #died(thread: Supervised): void {
    const { metrics, report, threads } = this.#options
    this.#forget(thread)
    metrics.add(METRIC.workerDeaths, 1)
    const isReplaced = thread.pool.threads.length >= threads
    const event = isReplaced ? 'worker died; a replacement starts' : 'worker died'
    report('error', event, { CAUSE_OF_ERROR: thread.cause })
  }

  /** Forgets the threads of a pool that ends. */
  forget(pool: ThreadPool): void {
    for (const thread of this.#of(pool)) this.#forget(thread)
  }

  #forget(thread: Supervised): void {
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

/** Code or name of an error: what is thrown in a thread may hold text of a client. Piscina's own texts hold none. */
export function causeOf(error: NodeJS.ErrnoException): string {
  if (error.code !== undefined) return error.code
  return /^worker exited with code: \d+$|^Terminating worker thread$/.test(error.message) ? error.message : error.name
}
