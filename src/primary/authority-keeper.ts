/**
 * The authority's thread, seen from the primary: starts it, hears whether it is alive, puts another one in its place,
 * and gives reactors their lines to it. While there is none, reactors go on with what they know.
 */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import type {
  AuthorityPlan,
  AuthorityThreadData,
  FromAuthorityThread,
  PrimaryQuestion,
  ToAuthority,
} from '../authority-messages.ts'
import type { ManagementRequest } from '../management/commands.ts'
import { NotAnswered, PendingAnswers } from '../structure/pending-answers.ts'
import type { LogEvent } from '../observe/events.ts'
import { type AuthorityEvent, type AuthorityState, nextAuthorityState } from './authority-states.ts'

const ENTRY = new URL('../authority-entry.js', import.meta.url)

/** It cannot begin its work and said why, or said nothing in time. */
export class AuthorityFailed extends Error {
  override readonly name = 'AuthorityFailed'
}

/** In milliseconds. */
interface KeeperLimits {
  /** The first one may have to wait for a database and to make its tables. */
  readonly startMs: number
  /** One silent for so long is hung. */
  readonly silenceMs: number
  /** Between the end of a thread and the next one: the second time in a row so long, then twice as long each time. */
  readonly pauseMs: number
  readonly pauseMsMax: number
  /** One that has worked for so long has not died of what it began with. */
  readonly settledMs: number
  /** What is under way may take so long at the end. */
  readonly stopMs: number
  readonly reloadMs: number
  /** Between two looks at it. */
  readonly checkMs: number
}
const LIMITS: KeeperLimits = {
  startMs: 30_000,
  silenceMs: 5000,
  pauseMs: 500,
  pauseMsMax: 30_000,
  settledMs: 60_000,
  stopMs: 3000,
  reloadMs: 10_000,
  checkMs: 1000,
}
/** A command may wait for a database. */
const MANAGE_LIMITS = { waitingMax: 256, answerMs: 20_000 }

export interface KeeperWatcher {
  event(event: LogEvent): void
  /** It has ended, and why; another one begins in so many milliseconds. */
  died(cause: string, pauseMs: number): void
  /** Another one has told everything: reactors need lines to it. */
  replaced(): void
  /** What the authority asks of the primary. Rejects with why there is no answer, which the client is told. */
  question(question: PrimaryQuestion): Promise<object>
}

/** What a thread says when it has begun. */
export type Begun = Pick<Extract<FromAuthorityThread, { kind: 'started' }>, 'port' | 'said'>

interface Seat {
  readonly worker: Worker
  readonly beats: Int32Array
  beat: number
  /** When the last beat was seen. */
  beatMs: number
  readonly bornMs: number
  /** Why it is ended, or what it died of. */
  cause: string
  readonly begun: PromiseWithResolvers<Begun>
  readonly gone: PromiseWithResolvers<void>
  /** Of the last reload that it was told. */
  reloaded: (cause: string) => void
}

export class AuthorityKeeper {
  readonly #compileCache: string
  readonly #entry: URL
  readonly #limits: KeeperLimits
  readonly #managing = new PendingAnswers<object>('the authority', MANAGE_LIMITS)
  #watcher: KeeperWatcher | null = null
  #plan: AuthorityPlan | null = null
  #state: AuthorityState = 'waiting'
  /** The thread that there is. */
  #seat: Seat | null = null
  /** Threads in a row that have not lasted: how long the next pause is. */
  #deaths = 0
  #check: NodeJS.Timeout | null = null
  #pause: NodeJS.Timeout | null = null
  /** The reload before: each is answered before the next one is told. */
  #reloading: Promise<unknown> = Promise.resolve()

  /** `entry`, `limits`: for tests. */
  constructor(compileCache: string, entry = ENTRY, limits: Partial<KeeperLimits> = {}) {
    this.#compileCache = compileCache
    this.#entry = entry
    this.#limits = { ...LIMITS, ...limits }
  }

  /** The thread loads its modules from now on, and then waits for its plan. */
  begin(runsKeyManager: boolean): void {
    this.#seat ??= this.#spawn(runsKeyManager)
  }

  /** Resolves once reactors can be told everything. Rejects with AuthorityFailed. */
  async start(plan: AuthorityPlan, watcher: KeeperWatcher): Promise<Begun> {
    this.#watcher = watcher
    this.#plan = plan
    this.begin(plan.runsKeyManager)
    this.#move('planned')
    const seat = this.#seat!
    // It may have waited for long.
    seat.beatMs = performance.now()
    seat.worker.postMessage({ kind: 'start', plan } satisfies ToAuthority)
    this.#check = setInterval(() => this.#look(), this.#limits.checkMs)
    return seat.begun.promise
  }

  /** Whether there is one that has told everything. */
  get isThere(): boolean {
    return this.#state === 'serving'
  }

  /** The reactor's end of a line to the thread that runs now. */
  newLine(reactor: number): MessagePort {
    const { port1, port2 } = new MessageChannel()
    // Without a thread it is a dead one, and the next thread comes with others.
    if (this.#seat === null) port2.close()
    else this.#seat.worker.postMessage({ kind: 'line', reactor, port: port2 } satisfies ToAuthority, [port2])
    return port1
  }

  /** For this thread and those that follow. Answers why it has not taken it over; '' if it has. */
  reload(plan: AuthorityPlan): Promise<string> {
    this.#plan = plan
    const next = this.#reloading.then(() => this.#tell(plan))
    this.#reloading = next
    return next
  }

  async #tell(plan: AuthorityPlan): Promise<string> {
    const seat = this.#seat
    if (seat === null) return ''
    const { promise, resolve } = Promise.withResolvers<string>()
    const late = 'it has not answered, and takes it over when it can'
    const timer = setTimeout(() => resolve(late), this.#limits.reloadMs)
    seat.reloaded = resolve
    seat.worker.postMessage({ kind: 'reload', plan } satisfies ToAuthority)
    const cause = await promise
    clearTimeout(timer)
    return cause
  }

  /** What the command line asks of it. Rejects with NotAnswered, whose message says why. */
  manage(request: ManagementRequest): Promise<object> {
    if (!this.isThere) return Promise.reject(new NotAnswered('the authority is not there; try again'))
    const { worker } = this.#seat!
    return this.#managing.ask(id => worker.postMessage({ kind: 'manage', id, request } satisfies ToAuthority))
  }

  /** Ends it once what is under way is done, or after a while. */
  async stop(): Promise<void> {
    const seat = this.#seat
    this.#endWatching()
    if (seat === null) return
    seat.worker.postMessage({ kind: 'stop' } satisfies ToAuthority)
    const timer = setTimeout(() => void seat.worker.terminate(), this.#limits.stopMs)
    await seat.gone.promise
    clearTimeout(timer)
  }

  /** Ends it at once. */
  abort(): void {
    const seat = this.#seat
    this.#endWatching()
    void seat?.worker.terminate()
  }

  /** For tests: ends the thread as a crash would. */
  kill(): void {
    void this.#seat?.worker.terminate()
  }

  #move(event: AuthorityEvent): void {
    this.#state = nextAuthorityState(this.#state, event)
  }

  #endWatching(): void {
    this.#move('ended')
    if (this.#check !== null) clearInterval(this.#check)
    if (this.#pause !== null) clearTimeout(this.#pause)
  }

  #spawn(runsKeyManager: boolean): Seat {
    const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
    const workerData: AuthorityThreadData = { compileCache: this.#compileCache, runsKeyManager, beats }
    const worker = new Worker(this.#entry, { workerData, name: 'authority' })
    const nowMs = performance.now()
    const seat: Seat = {
      worker,
      beats,
      beat: 0,
      beatMs: nowMs,
      bornMs: nowMs,
      cause: '',
      begun: Promise.withResolvers(),
      gone: Promise.withResolvers(),
      reloaded: () => {},
    }
    // Of those that follow the first one nobody waits for it.
    seat.begun.promise.catch(() => {})
    worker.on('error', (error: Error) => {
      seat.cause = error.stack ?? error.message
    })
    worker.on('message', (message: FromAuthorityThread) => this.#receive(seat, message))
    // However it came to its end: the one place from which it is replaced.
    worker.on('exit', code => {
      if (seat.cause === '') seat.cause = `the thread has ended with code ${code}`
      this.#ended(seat)
    })
    return seat
  }

  #receive(seat: Seat, message: FromAuthorityThread): void {
    if (message.kind === 'event') this.#watcher?.event(message.event)
    else if (message.kind === 'started') {
      this.#move('begun')
      seat.beatMs = performance.now()
      seat.begun.resolve(message)
    } else if (message.kind === 'reloaded') seat.reloaded(message.cause)
    else if (message.kind === 'managed') this.#managing.answer(message.id, message.value)
    else if (message.kind === 'unmanaged') this.#managing.fail(message.id, message.cause)
    else if (message.kind === 'question') void this.#answer(seat, message.id, message.question)
    else {
      if (message.kind === 'failed') seat.cause = message.cause
      void seat.worker.terminate()
    }
  }

  async #answer({ worker }: Seat, id: number, question: PrimaryQuestion): Promise<void> {
    const told = await this.#watcher!.question(question).then(
      (value): ToAuthority => ({ kind: 'told', id, value }),
      (error: Error): ToAuthority => ({ kind: 'untold', id, cause: error.message }),
    )
    worker.postMessage(told)
  }

  #ended(seat: Seat): void {
    seat.gone.resolve()
    this.#managing.failAll('the authority has ended')
    seat.reloaded('')
    seat.begun.reject(new AuthorityFailed(seat.cause))
    this.#seat = null
    const hasServed = this.#state === 'serving'
    this.#move('died')
    if (this.#state === 'pausing') this.#pauseAfter(seat, hasServed)
  }

  #pauseAfter({ bornMs, cause }: Seat, hasServed: boolean): void {
    const { pauseMs, pauseMsMax, settledMs } = this.#limits
    if (hasServed && performance.now() - bornMs >= settledMs) this.#deaths = 0
    const pause = this.#deaths === 0 ? 0 : Math.min(pauseMs * 2 ** (this.#deaths - 1), pauseMsMax)
    this.#deaths++
    this.#watcher!.died(cause, pause)
    this.#pause = setTimeout(() => this.#replace(), pause)
  }

  #replace(): void {
    this.#move('resumed')
    const plan = this.#plan!
    const seat = this.#spawn(plan.runsKeyManager)
    this.#seat = seat
    seat.worker.postMessage({ kind: 'start', plan } satisfies ToAuthority)
    // Lines are of use only to a thread that stays.
    seat.begun.promise.then(
      () => this.#watcher!.replaced(),
      () => {},
    )
  }

  #look(): void {
    const seat = this.#seat
    if (seat === null) return
    const isServing = this.#state === 'serving'
    const now = performance.now()
    const beat = Atomics.load(seat.beats, 0)
    if (beat !== seat.beat) {
      seat.beat = beat
      if (isServing) seat.beatMs = now
    }
    const { silenceMs, startMs } = this.#limits
    const limitMs = isServing ? silenceMs : startMs
    if (now - seat.beatMs <= limitMs) return
    seat.beatMs = now
    seat.cause = isServing ? `no heartbeat for ${limitMs} ms` : `has not begun after ${limitMs} ms`
    void seat.worker.terminate()
  }
}
