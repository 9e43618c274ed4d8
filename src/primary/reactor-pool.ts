/**
 * The reactors' threads, seen from the primary: starts them, watches their heartbeats, replaces one that died or hangs,
 * drains them. A replaced reactor takes over the column of its predecessor in shared memory.
 */
import type { MessagePort, Worker } from 'node:worker_threads'
import { identityOf } from '../api-identity.ts'
import { clearGauges } from '../observe/metrics.ts'
import type { ApiChanges, ApiPlan, FromReactor, LivePlan, ReactorPlan, ToReactor } from '../plan.ts'
import type { Answer, Question } from '../questions.ts'
import type { ReactorThreads } from './reactor-threads.ts'
import { SharedGauge } from '../structure/shared-gauge.ts'
import { EndpointTable } from '../target/endpoint-table.ts'

interface PoolWatcher {
  message(reactor: number, message: FromReactor): void
  /** A reactor is replaced, and why. */
  replaced(reactor: number, cause: string): void
  /** Reactors die faster than they can be replaced. */
  hopeless(cause: string): void
  /** A line to the authority for a reactor; left out: there is none. */
  newLine?(reactor: number): MessagePort
}

/** A reactor that cannot begin its work said why, or said nothing in time. */
export class ReactorFailed extends Error {
  override readonly name = 'ReactorFailed'
}

const CHECK_MS = 1000
/** In milliseconds; each has more time, the more APIs it has to build. */
export interface PoolLimits {
  /** A reactor that does not listen by then never will. */
  readonly startMs: number
  /** One silent for so long is hung: it would go on receiving its share of new connections. */
  readonly silenceMs: number
  /** Some twenty times what an API takes where nothing else runs. */
  readonly perApiMs: number
}
const LIMITS: PoolLimits = { startMs: 10_000, silenceMs: 5000, perApiMs: 2 }
/** So many deaths within the window are not bad luck. */
const DEATHS_MAX = 10
const DEATH_WINDOW_MS = 30_000
/** A reactor that has not answered a question by then is not waited for. */
const ANSWER_MS = 2000
/** The same for one that has APIs to build, beside the time that they take. */
const DEPLOY_MS = 10_000

/** How the reactors have taken what was deployed. */
interface Deployed {
  /** Why reactors have not: everything is as it was there, and the next time they are told again. */
  readonly refusals: readonly string[]
  /** Those that have not answered in time, and take it when they can. */
  readonly late: readonly number[]
}

const NO_CHANGES: ApiChanges = { removed: [], deployed: [] }

interface Seat {
  readonly worker: Worker
  beat: number
  /** When the last beat was seen; before it listens, when it was started. */
  beatMs: number
  /** Why it is ended, or else what it died of. */
  cause: Error
  /** How long it may be silent beyond the limit, for what it has been given to build since `beatMs`. */
  graceMs: number
  readonly listening: PromiseWithResolvers<readonly number[]>
  hasListened: boolean
  readonly gone: PromiseWithResolvers<void>
  /** By the number of the question; null: there will be no answer. */
  readonly questions: Map<number, (answer: Answer | null) => void>
}

export class ReactorPool {
  #plans: readonly ReactorPlan[]
  readonly #threads: ReactorThreads
  readonly #watcher: PoolWatcher
  readonly #limits: PoolLimits
  readonly #heartbeats: Int32Array
  readonly #seats: Seat[] = []
  #deathsMs: number[] = []
  #timer: NodeJS.Timeout | null = null
  #isStopping = false
  #nextQuestion = 1
  /** What some reactor has refused, and has to be told again. */
  #owed = NO_CHANGES

  /** `limits`: for tests. */
  constructor(plans: readonly ReactorPlan[], threads: ReactorThreads, watcher: PoolWatcher, limits = LIMITS) {
    this.#plans = plans
    this.#threads = threads
    this.#watcher = watcher
    this.#limits = limits
    this.#heartbeats = new Int32Array(plans[0]!.heartbeats)
  }

  /**
   * Answers the ports, in the order of the listeners, once all of them listen. Throws ReactorFailed, or what the first
   * thread died of.
   */
  async start(): Promise<readonly number[]> {
    for (let reactor = 0; reactor < this.#plans.length; reactor++) this.#seats[reactor] = this.#spawn(reactor, true)
    this.#timer = setInterval(() => this.#check(), CHECK_MS)
    const ports = await Promise.all(this.#seats.map(seat => seat.listening.promise))
    return ports[0]!
  }

  /** Other settings, keys and APIs, for those that run and those that come. */
  async deploy(live: LivePlan, apis: readonly ApiPlan[], changes: ApiChanges): Promise<Deployed> {
    this.#plans = this.#plans.map(plan => ({ ...plan, ...live, apis }))
    const owed = together(this.#owed, changes, apis)
    // Who is asked next must have all of it, too.
    this.#owed = NO_CHANGES
    const seats = [...this.#seats]
    const answers = await this.#deployed({ kind: 'deploy', live, apis: owed })
    const refusals = answers.filter(cause => cause !== null && cause !== '') as string[]
    if (refusals.length > 0) this.#owed = together(owed, this.#owed, this.#plans[0]!.apis)
    // One that was replaced meanwhile was started with all of it.
    const isLate = answers.map((answer, reactor) => answer === null && this.#seats[reactor] === seats[reactor])
    return { refusals, late: [...isLate.keys()].filter(reactor => isLate[reactor]) }
  }

  /** Nobody answers heartbeats while it builds. */
  async #deployed(question: Extract<Question, { kind: 'deploy' }>): Promise<readonly (string | null)[]> {
    const graceMs = this.#graceFor(question.apis.deployed)
    const seats = [...this.#seats]
    for (const seat of seats) seat.graceMs += graceMs
    const answers = await Promise.all(this.ask(question, DEPLOY_MS + graceMs))
    for (const seat of seats) seat.graceMs -= graceMs
    return answers
  }

  #graceFor(apis: readonly ApiPlan[]): number {
    return apis.length * this.#limits.perApiMs
  }

  send(message: ToReactor, only?: number): void {
    this.#seats.forEach((seat, reactor) => {
      if (only === undefined || only === reactor) seat.worker.postMessage(message)
    })
  }

  /** New lines to the authority, whose thread was replaced. */
  connect(): void {
    for (const [reactor, { worker }] of this.#seats.entries()) this.#connect(worker, reactor)
  }

  #connect(worker: Worker, reactor: number): void {
    const port = this.#watcher.newLine?.(reactor)
    if (port !== undefined) worker.postMessage({ kind: 'line', port } satisfies ToReactor, [port])
  }

  /** What each reactor answers; null where one does not within `waitMs`. */
  ask<Q extends Question>(question: Q, waitMs = ANSWER_MS): readonly Promise<Answer<Q> | null>[] {
    return this.#seats.map(seat => this.#askOne(seat, question, waitMs) as Promise<Answer<Q> | null>)
  }

  #askOne({ worker, questions }: Seat, question: Question, waitMs: number): Promise<Answer | null> {
    const id = this.#nextQuestion++
    const { promise, resolve } = Promise.withResolvers<Answer | null>()
    const timer = setTimeout(() => questions.get(id)?.(null), waitMs)
    questions.set(id, answer => {
      clearTimeout(timer)
      questions.delete(id)
      resolve(answer)
    })
    worker.postMessage({ kind: 'ask', id, question } satisfies ToReactor)
    return promise
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

  /** One of the first that does not come to listen ends the start; any other is replaced. */
  #spawn(reactor: number, isFirst: boolean): Seat {
    const graceMs = this.#graceFor(this.#plans[reactor]!.apis)
    const worker = this.#threads.take(this.#plans[reactor]!)
    this.#connect(worker, reactor)
    const seat: Seat = {
      worker,
      beat: Atomics.load(this.#heartbeats, reactor),
      beatMs: performance.now(),
      cause: new ReactorFailed('ended'),
      graceMs,
      listening: Promise.withResolvers(),
      hasListened: false,
      gone: Promise.withResolvers(),
      questions: new Map(),
    }
    worker.on('error', (error: Error) => {
      seat.cause = error
    })
    worker.on('message', (message: FromReactor) => {
      if (message.kind === 'answer') {
        // As good as a beat, and here before the next one after a long silence.
        seat.beatMs = performance.now()
        seat.questions.get(message.id)?.(message.answer)
        return
      }
      if (message.kind === 'listening') {
        seat.hasListened = true
        seat.beatMs = performance.now()
        seat.graceMs -= graceMs
        seat.listening.resolve(message.ports)
      } else if (message.kind === 'failed') end(seat, new ReactorFailed(message.cause))
      this.#watcher.message(reactor, message)
    })
    // However it came to its end: the one place from which it is replaced.
    worker.on('exit', () => {
      seat.gone.resolve()
      for (const answered of [...seat.questions.values()]) answered(null)
      if (isFirst && !seat.hasListened) seat.listening.reject(seat.cause)
      else this.#replace(reactor, causeOf(seat))
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
    EndpointTable.clear(plan.endpoints, reactor)
    const seat = this.#spawn(reactor, false)
    this.#seats[reactor] = seat
    seat.listening.promise.then(() => this.#watcher.replaced(reactor, cause))
  }

  #check(): void {
    const now = performance.now()
    this.#seats.forEach((seat, reactor) => {
      const beat = Atomics.load(this.#heartbeats, reactor)
      if (beat !== seat.beat) {
        seat.beat = beat
        if (seat.hasListened) seat.beatMs = now
      }
      const { silenceMs, startMs } = this.#limits
      const limitMs = (seat.hasListened ? silenceMs : startMs) + seat.graceMs
      if (now - seat.beatMs <= limitMs) return
      seat.beatMs = now
      const cause = seat.hasListened ? `no heartbeat for ${limitMs} ms` : `does not listen after ${limitMs} ms`
      const event = { level: 'error', event: 'reactor hangs', fields: { CAUSE_OF_ERROR: cause } } as const
      this.#watcher.message(reactor, { kind: 'event', event })
      end(seat, new ReactorFailed(`reactor ${reactor} ${cause}`))
    })
  }
}

/** The later changes, and of the earlier ones what they do not undo, as it is now. */
function together(earlier: ApiChanges, later: ApiChanges, apis: readonly ApiPlan[]): ApiChanges {
  if (earlier.removed.length + earlier.deployed.length === 0) return later
  const settled = new Set([...later.removed, ...later.deployed.map(identityOf)])
  const open = [...earlier.removed, ...earlier.deployed.map(identityOf)].filter(it => !settled.has(it))
  const deployed = apis.filter(api => open.includes(identityOf(api)))
  const removed = open.filter(identity => !deployed.some(api => identityOf(api) === identity))
  return { removed: [...later.removed, ...removed], deployed: [...later.deployed, ...deployed] }
}

/** The rest follows from the thread's exit. */
function end(seat: Seat, cause: Error): void {
  seat.cause = cause
  void seat.worker.terminate()
}

/** Of an error nobody foresaw, where it came from. */
function causeOf({ cause }: Seat): string {
  return cause instanceof ReactorFailed ? cause.message : (cause.stack ?? cause.message)
}
