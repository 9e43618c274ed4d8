/**
 * States of all endpoints, in memory that the reactors and the primary share, by slot. Rule: the word of an endpoint is
 * replaced only by compare-and-swap in `#advance`: no suspension is counted twice, no update is lost, and a thread that
 * dies leaves no lock behind (D42). `endpoint-word.ts` says what the word holds.
 */
import type { EndpointSettings } from '../../apis/api-definition.ts'
import {
  ENDPOINT_EVENT,
  ENDPOINT_STATE,
  type EndpointEvent,
  type EndpointState,
  REPORTED_STATE,
} from './endpoint-states.ts'
import {
  clientBit,
  type EndpointChange,
  type FailureLimits,
  nextWord,
  recoversByItself,
  STATE_MASK,
  tenthsUntil,
} from './endpoint-word.ts'

/** State and counters of an endpoint, for the command line and the metrics. */
interface EndpointStatus {
  readonly state: (typeof REPORTED_STATE)[number]
  /** Milliseconds until the endpoint may get requests; -1 where it is active, or waiting does not help. */
  readonly retryInMs: number
  readonly failures: number
  readonly timeouts: number
  readonly suspensions: number
  readonly recoveries: number
  /** Base code and state of the last counted failure; 0 and 0 without one. */
  readonly lastBase: number
  readonly lastState: number
}

const HEADER_CELLS = 4
/** Two cells for the word, lower half first (little-endian); five counters, one spare. */
const SLOT_CELLS = 8
const FAILURES = 2
const TIMEOUTS = 3
const SUSPENSIONS = 4
const RECOVERIES = 5
const LAST_FAILURE = 6
/** A cache line: each reactor's column of pending requests begins on a line of its own. */
const LINE_CELLS = 32

/** Time after a suspension in which only a request that can be retried is sent as a probe. */
const OVERDUE_TENTHS = 10

export class EndpointTable {
  readonly #cells: Int32Array
  readonly #words: BigInt64Array
  readonly #slots: number
  readonly #reactors: number
  readonly #column: number
  readonly #now: () => number

  /**
   * `reactor`: counts its pending requests in its own column. `now`: milliseconds of a clock that all threads share.
   */
  constructor(shared: SharedArrayBuffer, reactor: number, now: () => number) {
    this.#cells = new Int32Array(shared)
    this.#words = new BigInt64Array(shared)
    this.#slots = this.#cells[0]!
    this.#reactors = this.#cells[1]!
    this.#column = this.#columnOf(reactor)
    this.#now = now
  }

  static allocate(slots: number, reactors: number): SharedArrayBuffer {
    const columns = reactors * paddedTo(slots)
    const cells = new Int32Array(
      new SharedArrayBuffer((paddedTo(HEADER_CELLS + slots * SLOT_CELLS) + columns) * Int32Array.BYTES_PER_ELEMENT),
    )
    cells[0] = slots
    cells[1] = reactors
    return cells.buffer
  }

  /** Clears the pending requests of a reactor that died. */
  static clear(shared: SharedArrayBuffer, reactor: number): void {
    const table = new EndpointTable(shared, reactor, () => 0)
    const cells = table.#cells
    const end = table.#column + table.#slots
    // Unused slots are only read: writing would make the system commit their memory.
    for (let at = table.#column; at < end; at++) if (cells[at] !== 0) Atomics.store(cells, at, 0)
  }

  /** Clears a slot that is given to another endpoint. */
  reset(slot: number): void {
    const cell = cellOf(slot)
    Atomics.store(this.#words, cell >> 1, 0n)
    for (let offset = FAILURES; offset <= LAST_FAILURE; offset++) Atomics.store(this.#cells, cell + offset, 0)
  }

  #columnOf(reactor: number): number {
    return paddedTo(HEADER_CELLS + this.#slots * SLOT_CELLS) + reactor * paddedTo(this.#slots)
  }

  // ---- availability -----------------------------------------------------------------------------------------------

  isActive(slot: number): boolean {
    return (this.#cells[cellOf(slot)]! & STATE_MASK) === ENDPOINT_STATE.ACTIVE
  }

  isProbing(slot: number): boolean {
    return (this.#cells[cellOf(slot)]! & STATE_MASK) === ENDPOINT_STATE.PROBING
  }

  /** Only the health check brings such an endpoint back. */
  isUnhealthy(slot: number): boolean {
    return (this.#cells[cellOf(slot)]! & STATE_MASK) === ENDPOINT_STATE.UNHEALTHY
  }

  /** The endpoint failed last time, so the next request may fail too. */
  isDoubtful(slot: number): boolean {
    const state = this.#cells[cellOf(slot)]! & STATE_MASK
    return state === ENDPOINT_STATE.SUSPENDED || state === ENDPOINT_STATE.PROBING
  }

  /** The endpoint may get requests now; `admit` decides for one request. */
  isReady(slot: number): boolean {
    const state = this.#cells[cellOf(slot)]! & STATE_MASK
    if (state === ENDPOINT_STATE.ACTIVE) return true
    return recoversByItself(state) && tenthsUntil(this.#cells[cellOf(slot) + 1]!, this.#tenths()) <= 0
  }

  /** The suspension is over for a while, and no request has probed the endpoint. */
  isOverdue(slot: number): boolean {
    return tenthsUntil(this.#cells[cellOf(slot) + 1]!, this.#tenths()) < -OVERDUE_TENTHS
  }

  /** Admits a request: every one in ACTIVE and TIMEOUT, one probe at a time once a suspension is over. */
  admit(slot: number, settings: EndpointSettings): boolean {
    const state = this.#cells[cellOf(slot)]! & STATE_MASK
    if (state === ENDPOINT_STATE.ACTIVE) return true
    if (!this.isReady(slot)) return false
    return state === ENDPOINT_STATE.TIMEOUT || this.#advance(slot, ENDPOINT_EVENT.PROBED, settings) !== null
  }

  /** Milliseconds until the endpoint may get requests; 0: now, -1: waiting does not help. */
  waitMs(slot: number): number {
    const state = this.#cells[cellOf(slot)]! & STATE_MASK
    if (state === ENDPOINT_STATE.ACTIVE) return 0
    if (!recoversByItself(state)) return -1
    return Math.max(0, tenthsUntil(this.#cells[cellOf(slot) + 1]!, this.#tenths())) * 100
  }

  // ---- events -----------------------------------------------------------------------------------------------------

  /** null: nothing has changed, as nearly always. */
  succeeded(slot: number, settings: EndpointSettings): EndpointChange | null {
    // An active endpoint without failures in a row.
    return this.#cells[cellOf(slot)] === 0 ? null : this.#advance(slot, ENDPOINT_EVENT.SUCCEEDED, settings)
  }

  /** Counts a failure of the endpoint that counts by itself. `timedOut`: the failure leads to TIMEOUT. */
  failed(
    slot: number,
    settings: EndpointSettings,
    timedOut: boolean,
    base: number,
    state: number,
  ): EndpointChange | null {
    this.#countFailure(slot, base, state)
    return this.#advance(slot, timedOut ? ENDPOINT_EVENT.TIMED_OUT : ENDPOINT_EVENT.FAILED, settings)
  }

  /** Counts a failure that belongs to its exchange: it suspends with enough others in a row. `client`: its address. */
  exchangeFailed(
    slot: number,
    settings: EndpointSettings,
    limits: FailureLimits,
    client: string,
    base: number,
    state: number,
  ): EndpointChange | null {
    this.#countFailure(slot, base, state)
    return this.#advance(slot, ENDPOINT_EVENT.EXCHANGE_FAILED, settings, limits, clientBit(client))
  }

  #countFailure(slot: number, base: number, state: number): void {
    const cell = cellOf(slot)
    Atomics.add(this.#cells, cell + FAILURES, 1)
    Atomics.store(this.#cells, cell + LAST_FAILURE, (base << 4) | state)
  }

  switchTo(slot: number, settings: EndpointSettings, isOn: boolean): EndpointChange | null {
    return this.#advance(slot, isOn ? ENDPOINT_EVENT.SWITCHED_ON : ENDPOINT_EVENT.SWITCHED_OFF, settings)
  }

  /** The health checks have changed their result. */
  healthChanged(slot: number, settings: EndpointSettings, isHealthy: boolean): EndpointChange | null {
    return this.#advance(slot, isHealthy ? ENDPOINT_EVENT.CHECK_PASSED : ENDPOINT_EVENT.CHECK_FAILED, settings)
  }

  /** The only writer of the words. null: the event changes no state. `limits`, `bit`: for EXCHANGE_FAILED. */
  #advance(
    slot: number,
    event: EndpointEvent,
    settings: EndpointSettings,
    limits?: FailureLimits,
    bit?: number,
  ): EndpointChange | null {
    const at = cellOf(slot) >> 1
    for (;;) {
      const word = Atomics.load(this.#words, at)
      const next = nextWord(word, event, this.#tenths(), settings, limits, bit)
      if (next === null) return null
      if (Atomics.compareExchange(this.#words, at, word, next.word) !== word) continue
      if (next.change !== null) this.#count(slot, next.change.from, next.change.to)
      return next.change
    }
  }

  #count(slot: number, from: EndpointState, to: EndpointState): void {
    const cell = cellOf(slot)
    if (to === ENDPOINT_STATE.TIMEOUT) Atomics.add(this.#cells, cell + TIMEOUTS, 1)
    else if (to === ENDPOINT_STATE.SUSPENDED || to === ENDPOINT_STATE.UNHEALTHY) {
      Atomics.add(this.#cells, cell + SUSPENSIONS, 1)
    } else if (to === ENDPOINT_STATE.ACTIVE && from !== ENDPOINT_STATE.OFF)
      Atomics.add(this.#cells, cell + RECOVERIES, 1)
  }

  #tenths(): number {
    return Math.floor(this.#now() / 100) | 0
  }

  // ---- pending requests -------------------------------------------------------------------------------------------

  /** Counts an exchange as pending at this endpoint, and at no other. */
  requestStarted(slot: number, exchange: { pendingSlot: number }): void {
    this.requestEnded(exchange)
    exchange.pendingSlot = slot
    Atomics.add(this.#cells, this.#column + slot, 1)
  }

  /** Counts an exchange as pending no more, at whichever endpoint it was. */
  requestEnded(exchange: { pendingSlot: number }): void {
    if (exchange.pendingSlot >= 0) Atomics.sub(this.#cells, this.#column + exchange.pendingSlot, 1)
    exchange.pendingSlot = -1
  }

  /** Pending requests of all reactors. */
  pending(slot: number): number {
    let sum = 0
    for (let reactor = 0; reactor < this.#reactors; reactor++) sum += this.#cells[this.#columnOf(reactor) + slot]!
    return sum
  }

  // ---- status -----------------------------------------------------------------------------------------------------

  read(slot: number): EndpointStatus {
    const cell = cellOf(slot)
    const counted = (offset: number): number => Atomics.load(this.#cells, cell + offset) >>> 0
    const last = Atomics.load(this.#cells, cell + LAST_FAILURE)
    const state = REPORTED_STATE[this.#cells[cell]! & STATE_MASK]!
    return {
      state,
      retryInMs: state === 'ACTIVE' ? -1 : this.waitMs(slot),
      failures: counted(FAILURES),
      timeouts: counted(TIMEOUTS),
      suspensions: counted(SUSPENSIONS),
      recoveries: counted(RECOVERIES),
      lastBase: last >> 4,
      lastState: last & 15,
    }
  }
}

function cellOf(slot: number): number {
  return HEADER_CELLS + slot * SLOT_CELLS
}

function paddedTo(cells: number): number {
  return Math.ceil(cells / LINE_CELLS) * LINE_CELLS
}
