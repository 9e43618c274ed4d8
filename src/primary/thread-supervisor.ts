/**
 * Supervises the threads of one kind: starts them, watches their heartbeats, replaces a thread that has died or hangs,
 * ends them. Reactors and the control thread differ in data only (`ThreadKind`), and in what their owner tells them.
 */
import { Worker } from 'node:worker_threads'
import type { ThreadData, ThreadReport } from '../plan/thread-messages.ts'
import { CallChannel, CallFailed, type CallLimits, type Kinded } from '../runtime/call-channel.ts'
import type { ResultMessage, ResultsOf } from '../runtime/call-channel.ts'
import { nextThreadState, type ThreadEvent, type ThreadState } from './thread-states.ts'

/** In milliseconds. */
export interface ThreadLimits {
  /** From the plan to the report that the thread does its work. */
  readonly startMs: number
  /** Without a heartbeat: the thread hangs. */
  readonly silenceMs: number
  /** Between two looks at the heartbeats. */
  readonly checkMs: number
  /** From its termination to its exit: the thread is stuck in a call of the system, and is given up (D911). */
  readonly stuckMs: number
}

/** In milliseconds. */
export interface RestartPolicy {
  /** Pause before the second replacement in a row; doubles with each further one. The first one comes at once. */
  readonly pauseMs: number
  readonly pauseMsMax: number
  /** A thread that has run for so long ends the row. */
  readonly settledMs: number
  /** More deaths than `deathsMax` within `windowMs` are fatal to the node. */
  readonly deathsMax: number
  readonly windowMs: number
}

/** Stuck threads that exist at once; one more is fatal to the node, because each keeps its memory and descriptors. */
const STUCK_MAX = 4

export interface ThreadKind {
  /** `reactor 0`, for messages. */
  readonly nameOf: (index: number) => string
  readonly entry: URL
  readonly workerData: Omit<ThreadData, 'planPosted'>
  readonly limits: ThreadLimits
  readonly restarts: RestartPolicy
  readonly calls: CallLimits
}

/** Writes log lines of threads that die and are replaced. */
export interface ThreadWatcher {
  /** A replacement starts in `pauseMs` milliseconds. */
  died(index: number, cause: string, pauseMs: number): void
  replaced(index: number): void
  /** Text that Node or a module of the operator has printed in the thread, without its last line end. */
  printed(index: number, text: string): void
  /** More deaths than the policy allows: no replacement follows. */
  fatal(cause: string): void
}

/** The owner of the threads: plans, messages, and the log of their deaths. */
interface ThreadOwner<Message> extends ThreadWatcher {
  /** A cell for each thread, which the thread counts up. */
  readonly heartbeats: Int32Array
  /** Posts the plan, and whatever else a new thread is told. */
  sendPlan(worker: Worker, index: number): void
  /** Milliseconds beyond `startMs` that the plan takes. */
  startGraceMs(index: number): number
  /** The thread is given up, and its descriptors stay open until its call of the system ends. */
  stuck(index: number): void
  /** Clears what the dead thread held in shared memory and files, before its replacement starts. */
  release(index: number, threadId: number): void
  /** A message that is neither a report of the thread's life nor the result of a call. */
  receive(index: number, message: Message): void
}

/** A first thread has not started; the message says why, and the node does not start either. */
export class ThreadFailed extends Error {
  override readonly name = 'ThreadFailed'
}

interface Thread<Call extends Kinded, Results extends ResultsOf<Call>> {
  readonly worker: Worker
  /** A worker that has ended does not know it any more. */
  readonly id: number
  readonly planPosted: Int32Array
  readonly calls: CallChannel<Call, Results>
  readonly bornMs: number
  beat: number
  /** When the last heartbeat was seen; before the thread has started, when it got its plan. */
  beatMs: number
  /** Silence allowed beyond the limit, for work that the thread was given. */
  graceMs: number
  /** The part of it that is for the start. */
  startGraceMs: number
  /** Why the thread is terminated, or what it died of. */
  cause: string
  /** Ends the wait for the exit of a terminated thread; null: it is not terminated. */
  exiting: NodeJS.Timeout | null
  readonly started: PromiseWithResolvers<unknown>
  readonly gone: PromiseWithResolvers<void>
}

/** The place of one thread and its successors. */
interface Slot<Call extends Kinded, Results extends ResultsOf<Call>> {
  readonly index: number
  state: ThreadState
  thread: Thread<Call, Results> | null
  /** Deaths in a row: they make the next pause longer. */
  deaths: number
  pause: NodeJS.Timeout | null
}

export class ThreadSupervisor<Started, Message extends Kinded, Call extends Kinded, Results extends ResultsOf<Call>> {
  readonly #kind: ThreadKind
  readonly #slots: Slot<Call, Results>[] = []
  #owner: ThreadOwner<Message> | null = null
  #deathsMs: number[] = []
  /** Threads that are given up and have not ended. */
  readonly #stuck = new Set<Thread<Call, Results>>()
  #check: NodeJS.Timeout | null = null

  constructor(kind: ThreadKind) {
    this.#kind = kind
  }

  /** Creates so many threads, which load their modules and then wait for their plans. */
  preload(count: number): void {
    for (let index = 0; index < count; index++) {
      const slot = this.#slots[index] ?? { index, state: 'waiting', thread: null, deaths: 0, pause: null }
      slot.thread ??= this.#spawn(slot)
      this.#slots[index] = slot
    }
  }

  /** Resolves once so many threads do their work, with what each has reported. Rejects with ThreadFailed. */
  async start(count: number, owner: ThreadOwner<Message>): Promise<readonly Started[]> {
    this.#owner = owner
    this.preload(count)
    for (const slot of this.#slots) this.#plan(slot, 'planned')
    this.#check = setInterval(() => this.#look(), this.#kind.limits.checkMs)
    return Promise.all(this.#slots.map(({ thread }) => thread!.started.promise as Promise<Started>))
  }

  /** Threads are in calls of the system that do not end; they keep the process from ending too. */
  get hasStuck(): boolean {
    return this.#stuck.size > 0
  }

  isServing(index: number): boolean {
    return this.#slots[index]?.state === 'serving'
  }

  /** Null while there is no thread; a replacement has another worker. */
  workerOf(index: number): Worker | null {
    return this.#slots[index]?.thread?.worker ?? null
  }

  /** Workers of the threads that exist now. */
  get workers(): readonly Worker[] {
    return this.#slots.flatMap(({ thread }) => (thread === null ? [] : [thread.worker]))
  }

  /** `graceMs`: silence allowed beyond the limit while the call is pending. Rejects with CallFailed. */
  async call<One extends Call>(
    index: number,
    call: One,
    timeoutMs = this.#kind.calls.timeoutMs,
    graceMs = 0,
  ): Promise<Results[One['kind']]> {
    const thread = this.#slots[index]?.thread ?? null
    if (thread === null) throw new CallFailed(`${this.#kind.nameOf(index)} is not there`, 'closed')
    thread.graceMs += graceMs
    try {
      return await thread.calls.call(call, timeoutMs)
    } finally {
      thread.graceMs -= graceMs
    }
  }

  /**
   * Resolves when all threads have exited, or are stuck. The owner has told them to exit; after `waitMs` the rest is
   * terminated.
   */
  async end(waitMs: number): Promise<void> {
    const slots = this.#stopReplacing()
    const timer = setTimeout(() => this.#terminateAll(slots), waitMs)
    await Promise.all(slots.map(({ thread }) => thread?.gone.promise))
    clearTimeout(timer)
  }

  /** Terminates all threads. */
  abort(): void {
    this.#terminateAll(this.#stopReplacing())
  }

  /** For tests: ends one thread as a crash would. */
  kill(index: number): void {
    void this.workerOf(index)?.terminate()
  }

  #stopReplacing(): readonly Slot<Call, Results>[] {
    if (this.#check !== null) clearInterval(this.#check)
    for (const slot of this.#slots) {
      this.#move(slot, 'ended')
      if (slot.pause !== null) clearTimeout(slot.pause)
    }
    return this.#slots
  }

  #terminateAll(slots: readonly Slot<Call, Results>[]): void {
    for (const slot of slots) if (slot.thread !== null) this.#terminate(slot, slot.thread)
  }

  #terminate(slot: Slot<Call, Results>, thread: Thread<Call, Results>): void {
    void thread.worker.terminate()
    thread.exiting ??= setTimeout(() => this.#giveUp(slot, thread), this.#kind.limits.stuckMs)
  }

  /** No code of the thread runs any more: V8 ends it as soon as its call of the system returns. */
  #giveUp(slot: Slot<Call, Results>, thread: Thread<Call, Results>): void {
    this.#stuck.add(thread)
    const cause = thread.cause === '' ? `${this.#kind.nameOf(slot.index)} has not ended` : thread.cause
    thread.cause = `${cause}; a call of the system that does not return keeps its thread and its connections`
    this.#owner?.stuck(slot.index)
    this.#exited(slot, thread)
  }

  #move(slot: Slot<Call, Results>, event: ThreadEvent): void {
    slot.state = nextThreadState(slot.state, event)
  }

  #spawn(slot: Slot<Call, Results>): Thread<Call, Results> {
    const { nameOf, entry, workerData, calls } = this.#kind
    const name = nameOf(slot.index)
    const planPosted = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
    const worker = new Worker(entry, { workerData: { ...workerData, planPosted }, name, stdout: true, stderr: true })
    const nowMs = performance.now()
    const thread: Thread<Call, Results> = {
      worker,
      id: worker.threadId,
      planPosted,
      calls: new CallChannel(name, worker, calls),
      bornMs: nowMs,
      beat: 0,
      beatMs: nowMs,
      graceMs: 0,
      startGraceMs: 0,
      cause: '',
      exiting: null,
      started: Promise.withResolvers(),
      gone: Promise.withResolvers(),
    }
    // Only the first thread's promise has a reader.
    thread.started.promise.catch(() => {})
    worker.on('error', (error: Error) => {
      thread.cause = error.stack ?? error.message
    })
    worker.on('message', (message: ThreadReport<Started> | ResultMessage | Message) => {
      this.#receive(slot, thread, message)
    })
    // Every death comes here, whatever its cause.
    worker.on('exit', code => {
      if (thread.exiting !== null) clearTimeout(thread.exiting)
      if (this.#stuck.delete(thread)) return
      if (thread.cause === '') thread.cause = `${name} has ended with code ${code}`
      this.#exited(slot, thread)
    })
    return thread
  }

  #plan(slot: Slot<Call, Results>, event: 'planned' | 'resumed'): void {
    const { index } = slot
    const thread = slot.thread!
    const owner = this.#owner!
    this.#move(slot, event)
    thread.beat = Atomics.load(owner.heartbeats, index)
    for (const output of [thread.worker.stdout, thread.worker.stderr]) {
      output.setEncoding('utf8').on('data', (text: string) => owner.printed(index, text.trimEnd()))
    }
    // A preloaded thread may have waited for long.
    thread.beatMs = performance.now()
    thread.startGraceMs = owner.startGraceMs(index)
    thread.graceMs += thread.startGraceMs
    owner.sendPlan(thread.worker, index)
    Atomics.store(thread.planPosted, 0, 1)
    Atomics.notify(thread.planPosted, 0)
  }

  #receive(
    slot: Slot<Call, Results>,
    thread: Thread<Call, Results>,
    message: ThreadReport<Started> | ResultMessage | Message,
  ): void {
    if (isReport(message, 'started')) this.#started(slot, thread, message.started)
    else if (isReport(message, 'failed')) {
      thread.cause = message.cause
      this.#terminate(slot, thread)
    } else if (isReport(message, 'stopped')) this.#terminate(slot, thread)
    else if (isResult(message)) {
      // As good as a heartbeat, and here before the next one after a long silence.
      thread.beatMs = performance.now()
      thread.calls.settle(message)
    } else this.#owner?.receive(slot.index, message as Message)
  }

  #started(slot: Slot<Call, Results>, thread: Thread<Call, Results>, started: Started): void {
    const isReplacement = slot.state === 'replacing'
    this.#move(slot, 'started')
    thread.beatMs = performance.now()
    thread.graceMs -= thread.startGraceMs
    thread.started.resolve(started)
    if (isReplacement) this.#owner!.replaced(slot.index)
  }

  #exited(slot: Slot<Call, Results>, thread: Thread<Call, Results>): void {
    const { cause } = thread
    slot.thread = null
    thread.gone.resolve()
    thread.calls.close(`${this.#kind.nameOf(slot.index)} has ended`)
    thread.started.reject(new ThreadFailed(cause))
    const { pauseMs, pauseMsMax, settledMs, deathsMax, windowMs } = this.#kind.restarts
    const nowMs = performance.now()
    if (slot.state === 'serving' && nowMs - thread.bornMs >= settledMs) slot.deaths = 0
    this.#move(slot, 'died')
    if (slot.state !== 'pausing') return
    this.#deathsMs = [...this.#deathsMs.filter(ms => nowMs - ms < windowMs), nowMs]
    if (this.#deathsMs.length > deathsMax || this.#stuck.size > STUCK_MAX) {
      this.#owner!.fatal(cause)
      return
    }
    const pause = slot.deaths === 0 ? 0 : Math.min(pauseMs * 2 ** (slot.deaths - 1), pauseMsMax)
    slot.deaths++
    this.#owner!.died(slot.index, cause, pause)
    slot.pause = setTimeout(() => {
      this.#owner!.release(slot.index, thread.id)
      slot.thread = this.#spawn(slot)
      this.#plan(slot, 'resumed')
    }, pause)
  }

  #look(): void {
    const { startMs, silenceMs } = this.#kind.limits
    const nowMs = performance.now()
    for (const slot of this.#slots) {
      const { index, state, thread } = slot
      if (thread === null) continue
      const isServing = state === 'serving'
      const beat = Atomics.load(this.#owner!.heartbeats, index)
      if (beat !== thread.beat) {
        thread.beat = beat
        if (isServing) thread.beatMs = nowMs
      }
      const limitMs = (isServing ? silenceMs : startMs) + thread.graceMs
      if (nowMs - thread.beatMs <= limitMs) continue
      thread.beatMs = nowMs
      const name = this.#kind.nameOf(index)
      const lack = isServing ? `no heartbeat from ${name} for` : `${name} has not started within`
      // A thread that is terminated already may take a while to exit.
      if (thread.exiting === null) thread.cause = `${lack} ${limitMs} ms`
      this.#terminate(slot, thread)
    }
  }
}

function isReport<Started, Kind extends ThreadReport<Started>['kind']>(
  message: Kinded | ThreadReport<Started>,
  kind: Kind,
): message is Extract<ThreadReport<Started>, { kind: Kind }> {
  return message.kind === kind
}

function isResult(message: Kinded): message is ResultMessage {
  return message.kind === 'result' || message.kind === 'failure'
}
