/**
 * The reactors' threads, seen from the primary: starts them, watches their heartbeats, replaces one that died or hangs,
 * drains them. A replaced reactor takes over the column of its predecessor in shared memory.
 */
import { Worker } from 'node:worker_threads'
import { clearGauges } from './observe/metrics.ts'
import type { FromReactor, ReactorPlan, ToReactor } from './plan.ts'
import { SharedGauge } from './structure/shared-gauge.ts'

interface PoolWatcher {
  message(reactor: number, message: FromReactor): void
  /** A reactor is replaced, and why. */
  replaced(reactor: number, cause: string): void
  /** Reactors die faster than they can be replaced. */
  hopeless(cause: string): void
}

const CHECK_MS = 1000
/** A reactor silent for so long is hung: it would go on receiving its share of new connections. */
const SILENCE_MS = 5000
/** So many deaths within the window are not bad luck. */
const DEATHS_MAX = 10
const DEATH_WINDOW_MS = 30_000

interface Seat {
  worker: Worker
  beat: number
  beatMs: number
  /** Settled by the first word of the reactor. */
  listening: PromiseWithResolvers<number>
  hasListened: boolean
  readonly gone: PromiseWithResolvers<void>
}

export class ReactorPool {
  readonly #plans: readonly ReactorPlan[]
  readonly #compileCache: string
  readonly #watcher: PoolWatcher
  readonly #heartbeats: Int32Array
  readonly #seats: Seat[] = []
  #deathsMs: number[] = []
  #timer: NodeJS.Timeout | null = null
  #isStopping = false

  constructor(plans: readonly ReactorPlan[], compileCache: string, watcher: PoolWatcher) {
    this.#plans = plans
    this.#compileCache = compileCache
    this.#watcher = watcher
    this.#heartbeats = new Int32Array(plans[0]!.heartbeats)
  }

  /** Answers the port once all of them listen. */
  async start(): Promise<number> {
    for (let reactor = 0; reactor < this.#plans.length; reactor++) this.#seats[reactor] = this.#spawn(reactor)
    const ports = await Promise.all(this.#seats.map(seat => seat.listening.promise))
    this.#timer = setInterval(() => this.#check(), CHECK_MS)
    return ports[0]!
  }

  send(message: ToReactor, only?: number): void {
    this.#seats.forEach((seat, reactor) => {
      if (only === undefined || only === reactor) seat.worker.postMessage(message)
    })
  }

  /** Resolves when every reactor has finished what it had, or was cut off after `waitMs`. */
  async drain(waitMs: number): Promise<void> {
    this.#stopWatching()
    this.send({ kind: 'drain' })
    const cutOff = setTimeout(() => this.send({ kind: 'cutOff' }), waitMs)
    // One that hangs does not even take the cut.
    const kill = setTimeout(() => this.stop(), waitMs + 1000)
    await Promise.all(this.#seats.map(seat => seat.gone.promise))
    clearTimeout(cutOff)
    clearTimeout(kill)
  }

  stop(): void {
    this.#stopWatching()
    for (const seat of this.#seats) void seat.worker.terminate()
  }

  /** For tests: ends one thread as a crash would. */
  kill(reactor: number): void {
    void this.#seats[reactor]?.worker.terminate()
  }

  #stopWatching(): void {
    this.#isStopping = true
    if (this.#timer !== null) clearInterval(this.#timer)
  }

  #spawn(reactor: number): Seat {
    const workerData = { ...this.#plans[reactor]!, compileCache: this.#compileCache }
    const worker = new Worker(new URL('./thread-entry.js', import.meta.url), { workerData, name: `reactor-${reactor}` })
    const seat: Seat = {
      worker,
      beat: 0,
      beatMs: performance.now(),
      listening: Promise.withResolvers(),
      hasListened: false,
      gone: Promise.withResolvers(),
    }
    let cause = 'ended'
    worker.on('error', (error: Error) => {
      cause = error.stack ?? error.message
    })
    worker.on('message', (message: FromReactor) => {
      if (message.kind === 'listening') {
        seat.hasListened = true
        seat.listening.resolve(message.port)
      } else if (message.kind === 'failed') seat.listening.reject(new Error(message.cause))
      this.#watcher.message(reactor, message)
    })
    worker.on('exit', () => {
      seat.gone.resolve()
      if (seat.hasListened) this.#replace(reactor, cause)
      else seat.listening.reject(new Error(cause))
    })
    return seat
  }

  #replace(reactor: number, cause: string): void {
    if (this.#isStopping) return
    const plan = this.#plans[reactor]!
    const now = performance.now()
    this.#deathsMs = [...this.#deathsMs.filter(ms => now - ms < DEATH_WINDOW_MS), now]
    if (this.#deathsMs.length > DEATHS_MAX) {
      this.#watcher.hopeless(cause)
      return
    }
    clearGauges(plan.metrics, reactor)
    SharedGauge.clear(plan.gauge, plan.reactors, reactor)
    SharedGauge.clear(plan.clients, plan.reactors, reactor)
    const seat = this.#spawn(reactor)
    this.#seats[reactor] = seat
    seat.listening.promise.then(
      () => this.#watcher.replaced(reactor, cause),
      (error: Error) => {
        seat.hasListened = true
        this.#replace(reactor, error.message)
      },
    )
  }

  #check(): void {
    const now = performance.now()
    this.#seats.forEach((seat, reactor) => {
      const beat = Atomics.load(this.#heartbeats, reactor)
      if (beat !== seat.beat || !seat.hasListened) {
        seat.beat = beat
        seat.beatMs = now
      } else if (now - seat.beatMs > SILENCE_MS) {
        seat.beatMs = now
        this.#watcher.message(reactor, { kind: 'event', event: HUNG })
        void seat.worker.terminate()
      }
    })
  }
}

const HUNG = {
  level: 'error',
  event: 'reactor hangs',
  fields: { CAUSE_OF_ERROR: `no heartbeat for ${SILENCE_MS} ms` },
} as const
