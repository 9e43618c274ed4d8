/**
 * Timelines of the open exchanges of a thread: each change of state of both machines with its time, in memory that is
 * allocated once. The flight recorder reads the timeline of an exchange that failed or was slow, and releases all.
 */
import { EVENT, EVENT_NAMES, type Event, type State, STATE_NAMES, type StateName, type EventName } from './states.ts'

/** The id of no timeline. */
export const NO_TIMELINE = 0

const SLOT_BITS = 15
const SLOTS = 1 << SLOT_BITS
const SLOT_MASK = SLOTS - 1
/** Generations tell the exchanges of a slot apart, so a machine with an old id changes nothing. */
const GENERATION = SLOTS
const ID_MAX = 0x7fffffff

const CELL_BITS = 5
const CELLS = 1 << CELL_BITS
/** The first cells of a slot are the times of the last bytes, by direction. */
const REQUEST_BYTES = 0
const RESPONSE_BYTES = 1
const FIRST_STEP = 2
/** Behind it the last step is replaced: an exchange with so many steps ends as its last one says. */
const LAST_CELL = CELLS - 1

/** A cell is microseconds times CODES plus the code of the step: side, event, state. */
const CODES = 2048
const OF_TARGET = 1024
const EVENT_SHIFT = 5
const FIVE_BITS = 31
/** In place of an event: a backend connection has taken the exchange. */
const ASSIGNED = 31

export interface TimelineStep {
  /** Microseconds since the start of the exchange. */
  readonly us: number
  readonly side: 'source' | 'target'
  /** `ASSIGNED`: a backend connection in `state` has taken the exchange. */
  readonly event: EventName | 'ASSIGNED'
  readonly state: StateName
}

export interface Timeline {
  /** Monotonic milliseconds of the first step. */
  readonly startMs: number
  readonly steps: readonly TimelineStep[]
  /** Number of steps that are missing in front of the last one. */
  readonly dropped: number
  /** Microseconds since the start at the last body bytes of request and response; -1: there were none. */
  readonly lastRequestBytesUs: number
  readonly lastResponseBytesUs: number
}

export class Timelines {
  /** Off: no exchange gets a timeline. */
  isOn = false
  /** Milliseconds of a monotonic clock, which is read once per event at most. */
  now: () => number = () => performance.now()
  // Only the pages that slots in use touch become memory.
  readonly #cells = new Float64Array(SLOTS * CELLS)
  /** Cells in use by slot; more than CELLS where steps were dropped. */
  readonly #counts = new Uint32Array(SLOTS)
  /** Id by slot; negative: the id of the next exchange, of a slot that is free; 0: never used. */
  readonly #ids = new Int32Array(SLOTS)
  readonly #free = new Uint16Array(SLOTS)
  #freeCount = 0
  /** The first slot that was never used. Slot 0 is that of NO_TIMELINE, and belongs to none. */
  #unused = 1

  constructor() {
    this.#ids[0] = -1
  }

  /** Starts the timeline of an exchange; NO_TIMELINE where all slots are in use. */
  begin(): number {
    if (!this.isOn) return NO_TIMELINE
    const slot = this.#freeCount > 0 ? this.#free[--this.#freeCount]! : this.#newSlot()
    if (slot === 0) return NO_TIMELINE
    const before = this.#ids[slot]!
    const id = before === 0 ? GENERATION + slot : -before
    this.#ids[slot] = id
    this.#counts[slot] = FIRST_STEP
    const at = slot << CELL_BITS
    this.#cells[at + REQUEST_BYTES] = 0
    this.#cells[at + RESPONSE_BYTES] = 0
    return id
  }

  #newSlot(): number {
    return this.#unused < SLOTS ? this.#unused++ : 0
  }

  /** A machine has changed its state. */
  add(id: number, side: 'source' | 'target', event: Event, state: State): void {
    this.#write(id, (side === 'target' ? OF_TARGET : 0) | (event << EVENT_SHIFT) | state)
  }

  /** A backend connection in `state` has taken the exchange. */
  assign(id: number, state: State): void {
    this.#write(id, OF_TARGET | (ASSIGNED << EVENT_SHIFT) | state)
  }

  #write(id: number, code: number): void {
    const slot = id & SLOT_MASK
    if (this.#ids[slot] !== id) return
    const count = this.#counts[slot]!
    this.#cells[(slot << CELL_BITS) + (count < LAST_CELL ? count : LAST_CELL)] =
      Math.floor(this.now() * 1000) * CODES + code
    this.#counts[slot] = count + 1
  }

  /** Bytes have passed that change no state. */
  touch(id: number, event: Event): void {
    const slot = id & SLOT_MASK
    if (this.#ids[slot] !== id) return
    const cell = event < EVENT.RESPONSE_INTERIM ? REQUEST_BYTES : RESPONSE_BYTES
    this.#cells[(slot << CELL_BITS) + cell] = this.now()
  }

  /** The exchange is over. */
  release(id: number): void {
    const slot = id & SLOT_MASK
    if (this.#ids[slot] !== id) return
    this.#ids[slot] = id > ID_MAX - GENERATION ? -(GENERATION + slot) : -(id + GENERATION)
    this.#free[this.#freeCount++] = slot
  }

  /** Number of timelines that were begun and not released. */
  get open(): number {
    return this.#unused - 1 - this.#freeCount
  }

  /** A copy of the cells of an exchange, for `readTimeline`. */
  copy(id: number): TimelineCells {
    const slot = id & SLOT_MASK
    const at = slot << CELL_BITS
    const count = this.#counts[slot]!
    return { cells: this.#cells.slice(at, at + Math.min(count, CELLS)), dropped: Math.max(0, count - CELLS) }
  }
}

export interface TimelineCells {
  readonly cells: Float64Array
  readonly dropped: number
}

export function readTimeline({ cells, dropped }: TimelineCells): Timeline {
  const startUs = Math.floor(cells[FIRST_STEP]! / CODES)
  const steps = [...cells.subarray(FIRST_STEP)].map(cell => readStep(cell, startUs))
  const since = (ms: number) => (ms === 0 ? -1 : Math.max(0, Math.round(ms * 1000) - startUs))
  return {
    startMs: startUs / 1000,
    steps,
    dropped,
    lastRequestBytesUs: since(cells[REQUEST_BYTES]!),
    lastResponseBytesUs: since(cells[RESPONSE_BYTES]!),
  }
}

function readStep(cell: number, startUs: number): TimelineStep {
  const us = Math.floor(cell / CODES)
  const code = cell - us * CODES
  const event = (code >> EVENT_SHIFT) & FIVE_BITS
  return {
    us: us - startUs,
    side: code >= OF_TARGET ? 'target' : 'source',
    event: event === ASSIGNED ? 'ASSIGNED' : EVENT_NAMES[event]!,
    state: STATE_NAMES[code & FIVE_BITS]!,
  }
}

/** The timelines of this thread. */
export const timelines = new Timelines()
