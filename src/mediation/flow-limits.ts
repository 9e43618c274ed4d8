/** Limits that end a message of a flow: what it may compute, and what it may run. */
import { hasHeapRoom } from '../runtime/heap-room.ts'
import { showLife } from '../runtime/signs-of-life.ts'
import { MediationFault } from './mediation-fault.ts'

/** Longest processor time in milliseconds in which a flow computes without waiting. */
const COMPUTES_MAX_MS = 3000

/** Fault of a message that reached a limit: its code, and what the client is told. */
interface LimitFault {
  readonly code: number
  readonly told: string
}

export const TOO_LONG: LimitFault = { code: 102542, told: 'The mediation of the message took too long' }
export const TOO_MANY: LimitFault = {
  code: 102545,
  told: 'The message has entered more sequences, or run more mediators, than one message may',
}

/** Ends a message that reached a limit; no `onError` runs. */
export class LimitReached extends Error {
  override readonly name = 'LimitReached'
  readonly fault: LimitFault

  constructor(cause: string, fault: LimitFault) {
    super(cause)
    this.fault = fault
  }
}

/** Since when this thread computes without a pause; 0: not known. */
const turn = { sinceMs: 0, cpuMs: 0 }

/** A flow begins: time counts from now. */
export function beginTurn(): void {
  turn.sinceMs = 0
}

/** Throws LimitReached where this thread has computed for too long: its other messages wait. */
export function checkTime(): void {
  const now = performance.now()
  showLife()
  if (turn.sinceMs === 0) {
    turn.sinceMs = now
    turn.cpuMs = threadCpuMs()
    setImmediate(() => {
      turn.sinceMs = 0
    })
    // Processor time counts: a thread that gets little of it has not computed.
  } else if (now - turn.sinceMs > COMPUTES_MAX_MS && threadCpuMs() - turn.cpuMs > COMPUTES_MAX_MS) {
    throw new LimitReached(`computed for more than ${COMPUTES_MAX_MS} ms without waiting`, TOO_LONG)
  }
}

/** Work between two looks at the clock and the heap: nodes that are made or copied, or 64 characters each. */
const WORK_PER_LOOK = 4096
const CHARACTERS_PER_WORK = 64
const ROOM_BYTES = 2_097_152

/** Work of this thread since the last look: many small pieces of work count as one large piece does. */
let work = 0

/** Counts work. Throws LimitReached where the flow computes for too long, MediationFault without room in the heap. */
export function countWork(amount: number): void {
  work += amount
  if (work < WORK_PER_LOOK) return
  work = 0
  checkTime()
  if (!hasHeapRoom(ROOM_BYTES)) throw noRoom('the payloads of a flow need more memory than the worker has left')
}

/** Counts the making of a text. */
export function countText({ length }: string): void {
  countWork(1 + length / CHARACTERS_PER_WORK)
}

export function noRoom(cause: string): MediationFault {
  return new MediationFault({ code: 102533, message: 'The message could not be processed', cause })
}

/**
 * Bounds the processor time of one piece of work of this thread at a time. A thread that gets little processor time has
 * not computed.
 */
export class ProcessorTimeLimit {
  readonly #limitMs: number
  /** Processor time that the present work may take, in milliseconds. */
  #allowedMs = 0
  /** The work cannot have taken so much before this time. */
  #endMs = 0
  /** Processor time of the thread at the first look; -1: there was none yet. */
  #sinceCpuMs = -1

  constructor(limitMs: number) {
    this.#limitMs = limitMs
  }

  /** Another piece of work begins. `limitMs`: for tests. */
  start(limitMs = this.#limitMs): void {
    this.#allowedMs = limitMs
    this.#endMs = performance.now() + limitMs
    this.#sinceCpuMs = -1
  }

  /** A look at the work: it takes too long. */
  get isOver(): boolean {
    if (this.#sinceCpuMs === -1) this.#sinceCpuMs = threadCpuMs()
    return performance.now() > this.#endMs && threadCpuMs() - this.#sinceCpuMs > this.#allowedMs
  }
}

/** Processor time that this thread has taken, in milliseconds. */
function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
