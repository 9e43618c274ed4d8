/**
 * The states of all endpoints, in one piece of memory shared by the reactors and the primary: what one reactor finds
 * holds for all, and the primary lists and switches. Rule: state, retries, suspensions in a row and the time of the
 * next try stand together in one 64-bit word that is only ever replaced by compare-and-swap in `#advance`, so that two
 * reactors never both count one suspension, none loses an update, and one that dies leaves no lock behind.
 *
 * Times are tenths of a second of a monotonic clock that the caller brings, compared by their difference: they may wrap
 * around, as they do every 6.8 years.
 */
import type { EndpointSettings } from '../config/endpoint-settings.ts'
import {
  ENDPOINT_EVENT,
  ENDPOINT_STATE,
  type EndpointEvent,
  type EndpointState,
  nextState,
  REPORTED_STATE,
} from './endpoint-states.ts'

/** An endpoint has moved: for log and metrics. */
export interface EndpointChange {
  readonly from: EndpointState
  readonly to: EndpointState
  /** Tenths of a second until it may be tried again; -1: not by waiting. */
  readonly waitTenths: number
}

/** What the command line and the metrics show. */
interface EndpointReading {
  readonly state: (typeof REPORTED_STATE)[number]
  /** Milliseconds until it is tried again; -1: it is not waited for. */
  readonly retryInMs: number
  readonly failures: number
  readonly timeouts: number
  readonly suspensions: number
  readonly recoveries: number
  /** Base code and state of the failure last counted; 0 and 0 where there was none. */
  readonly lastBase: number
  readonly lastState: number
}

const HEADER_CELLS = 4
/** Two for the word, of which the first is the lower half (little-endian); five counted, one spare. */
const ROW_CELLS = 8
const FAILURES = 2
const TIMEOUTS = 3
const SUSPENSIONS = 4
const RECOVERIES = 5
const LAST_FAILURE = 6
/** Columns of pending requests begin on cache lines of their own. */
const LINE_CELLS = 32

const RETRIES_SHIFT = 3
const RETRIES_MAX = 0xff
const LEVEL_SHIFT = 11
const LEVEL_MAX = 0xffff
const STATE_MASK = 7

/**
 * While a request tries a suspended endpoint no other is let through, but only for so long: one that is answered
 * slowly, or whose reactor dies, must not keep the endpoint suspended.
 */
const TRIAL_TENTHS = 10
/** So long a suspended endpoint whose time is up waits for a request that could be sent again. */
const OVERDUE_TENTHS = 10
/** No suspension is longer, whatever the factor: beyond it the clock could not tell past and future apart. */
const YEAR_TENTHS = 365 * 864_000

export class EndpointTable {
  readonly #cells: Int32Array
  readonly #words: BigInt64Array
  readonly #rows: number
  readonly #reactors: number
  readonly #column: number
  readonly #now: () => number

  /** `reactor`: whose pending requests are counted here. `now`: milliseconds of a clock that all threads share. */
  constructor(shared: SharedArrayBuffer, reactor: number, now: () => number) {
    this.#cells = new Int32Array(shared)
    this.#words = new BigInt64Array(shared)
    this.#rows = this.#cells[0]!
    this.#reactors = this.#cells[1]!
    this.#column = this.#columnOf(reactor)
    this.#now = now
  }

  static allocate(rows: number, reactors: number): SharedArrayBuffer {
    const columns = reactors * paddedTo(rows)
    const cells = new Int32Array(
      new SharedArrayBuffer((paddedTo(HEADER_CELLS + rows * ROW_CELLS) + columns) * Int32Array.BYTES_PER_ELEMENT),
    )
    cells[0] = rows
    cells[1] = reactors
    return cells.buffer
  }

  /** A reactor died, and with it the requests that it had. */
  static clear(shared: SharedArrayBuffer, reactor: number): void {
    const table = new EndpointTable(shared, reactor, () => 0)
    const cells = table.#cells
    const end = table.#column + table.#rows
    // Rows that nobody has used are only read: their memory is not there yet.
    for (let at = table.#column; at < end; at++) if (cells[at] !== 0) Atomics.store(cells, at, 0)
  }

  /** The row goes to another endpoint, which has no past. */
  reset(row: number): void {
    const cell = cellOf(row)
    Atomics.store(this.#words, cell >> 1, 0n)
    for (let offset = FAILURES; offset <= LAST_FAILURE; offset++) Atomics.store(this.#cells, cell + offset, 0)
  }

  #columnOf(reactor: number): number {
    return paddedTo(HEADER_CELLS + this.#rows * ROW_CELLS) + reactor * paddedTo(this.#rows)
  }

  // ---- whether it may be used -------------------------------------------------------------------------------------

  isActive(row: number): boolean {
    return (this.#cells[cellOf(row)]! & STATE_MASK) === ENDPOINT_STATE.ACTIVE
  }

  isTried(row: number): boolean {
    return (this.#cells[cellOf(row)]! & STATE_MASK) === ENDPOINT_STATE.TRIED
  }

  /** Only its health check can bring it back. */
  isUnhealthy(row: number): boolean {
    return (this.#cells[cellOf(row)]! & STATE_MASK) === ENDPOINT_STATE.UNHEALTHY
  }

  /** What is sent to it now may fail: it has failed when it was asked last. */
  isDoubtful(row: number): boolean {
    const state = this.#cells[cellOf(row)]! & STATE_MASK
    return state === ENDPOINT_STATE.SUSPENDED || state === ENDPOINT_STATE.TRIED
  }

  /** It may be used now; `admit` decides. */
  isReady(row: number): boolean {
    const state = this.#cells[cellOf(row)]! & STATE_MASK
    if (state === ENDPOINT_STATE.ACTIVE) return true
    return state <= ENDPOINT_STATE.TRIED && left(this.#cells[cellOf(row) + 1]!, this.#tenths()) <= 0
  }

  /** Suspended, though its time is up: nobody has tried it for a while. */
  isOverdue(row: number): boolean {
    return left(this.#cells[cellOf(row) + 1]!, this.#tenths()) < -OVERDUE_TENTHS
  }

  /** A request goes to it: in ACTIVE and TIMEOUT every one, to a suspended endpoint one at a time. */
  admit(row: number, settings: EndpointSettings): boolean {
    const state = this.#cells[cellOf(row)]! & STATE_MASK
    if (state === ENDPOINT_STATE.ACTIVE) return true
    if (!this.isReady(row)) return false
    return state === ENDPOINT_STATE.TIMEOUT || this.#advance(row, ENDPOINT_EVENT.TRIED, settings) !== null
  }

  /** Milliseconds until it may be used; 0: now, -1: not by waiting. */
  waitMs(row: number): number {
    const state = this.#cells[cellOf(row)]! & STATE_MASK
    if (state === ENDPOINT_STATE.ACTIVE) return 0
    if (state > ENDPOINT_STATE.TRIED) return -1
    return Math.max(0, left(this.#cells[cellOf(row) + 1]!, this.#tenths())) * 100
  }

  // ---- what happened to it ----------------------------------------------------------------------------------------

  /** Null: nothing has changed, as nearly always. */
  succeeded(row: number, settings: EndpointSettings): EndpointChange | null {
    return this.isActive(row) ? null : this.#advance(row, ENDPOINT_EVENT.SUCCEEDED, settings)
  }

  /** A failure that is the endpoint's. `timedOut`: of those that lead to TIMEOUT. */
  failed(
    row: number,
    settings: EndpointSettings,
    timedOut: boolean,
    base: number,
    state: number,
  ): EndpointChange | null {
    const cell = cellOf(row)
    Atomics.add(this.#cells, cell + FAILURES, 1)
    Atomics.store(this.#cells, cell + LAST_FAILURE, (base << 4) | state)
    return this.#advance(row, timedOut ? ENDPOINT_EVENT.TIMED_OUT : ENDPOINT_EVENT.FAILED, settings)
  }

  switched(row: number, settings: EndpointSettings, isOn: boolean): EndpointChange | null {
    return this.#advance(row, isOn ? ENDPOINT_EVENT.SWITCHED_ON : ENDPOINT_EVENT.SWITCHED_OFF, settings)
  }

  /** Its health has changed, as its checks say. */
  checked(row: number, settings: EndpointSettings, isHealthy: boolean): EndpointChange | null {
    return this.#advance(row, isHealthy ? ENDPOINT_EVENT.CHECK_PASSED : ENDPOINT_EVENT.CHECK_FAILED, settings)
  }

  /** The only writer of the words. Null: the event changes nothing. */
  #advance(row: number, given: EndpointEvent, settings: EndpointSettings): EndpointChange | null {
    const at = cellOf(row) >> 1
    for (;;) {
      const word = Atomics.load(this.#words, at)
      const low = Number(BigInt.asUintN(32, word))
      const due = Number(word >> 32n)
      const now = this.#tenths()
      const state = (low & STATE_MASK) as EndpointState
      if (isStale(state, given, due, now)) return null
      const retries = (low >>> RETRIES_SHIFT) & RETRIES_MAX
      const event = effectOf(given, state, retries, settings)
      const to = event === undefined ? undefined : nextState(state, event)
      if (to === undefined) return null
      const level =
        to === ENDPOINT_STATE.SUSPENDED ? Math.min(LEVEL_MAX, (low >>> LEVEL_SHIFT) + 1) : low >>> LEVEL_SHIFT
      const wait = waitTenths(to, level, settings)
      const next = wordOf(to, to === ENDPOINT_STATE.TIMEOUT ? retries + 1 : retries, level, dueAfter(now, wait))
      if (Atomics.compareExchange(this.#words, at, word, next) !== word) continue
      this.#count(row, state, to)
      return { from: state, to, waitTenths: to > ENDPOINT_STATE.TRIED ? -1 : wait }
    }
  }

  #count(row: number, from: EndpointState, to: EndpointState): void {
    const cell = cellOf(row)
    if (to === ENDPOINT_STATE.TIMEOUT) Atomics.add(this.#cells, cell + TIMEOUTS, 1)
    else if (to === ENDPOINT_STATE.SUSPENDED || to === ENDPOINT_STATE.UNHEALTHY) {
      Atomics.add(this.#cells, cell + SUSPENSIONS, 1)
    } else if (to === ENDPOINT_STATE.ACTIVE && from !== ENDPOINT_STATE.OFF)
      Atomics.add(this.#cells, cell + RECOVERIES, 1)
  }

  #tenths(): number {
    return Math.floor(this.#now() / 100) | 0
  }

  // ---- requests under way -----------------------------------------------------------------------------------------

  /** An exchange is pending here, and nowhere else. */
  entered(row: number, exchange: { pendingRow: number }): void {
    this.left(exchange)
    exchange.pendingRow = row
    Atomics.add(this.#cells, this.#column + row, 1)
  }

  /** An exchange is no longer pending, wherever it was. */
  left(exchange: { pendingRow: number }): void {
    if (exchange.pendingRow >= 0) Atomics.sub(this.#cells, this.#column + exchange.pendingRow, 1)
    exchange.pendingRow = -1
  }

  /** Requests under way to it, of all reactors. */
  pending(row: number): number {
    let sum = 0
    for (let reactor = 0; reactor < this.#reactors; reactor++) sum += this.#cells[this.#columnOf(reactor) + row]!
    return sum
  }

  // ---- for those who look at it -----------------------------------------------------------------------------------

  read(row: number): EndpointReading {
    const cell = cellOf(row)
    const counted = (offset: number): number => Atomics.load(this.#cells, cell + offset) >>> 0
    const last = Atomics.load(this.#cells, cell + LAST_FAILURE)
    const state = REPORTED_STATE[this.#cells[cell]! & STATE_MASK]!
    return {
      state,
      retryInMs: state === 'ACTIVE' ? -1 : this.waitMs(row),
      failures: counted(FAILURES),
      timeouts: counted(TIMEOUTS),
      suspensions: counted(SUSPENSIONS),
      recoveries: counted(RECOVERIES),
      lastBase: last >> 4,
      lastState: last & 15,
    }
  }
}

/** Tenths of a second from `now` until `due`; negative behind it. */
function left(due: number, now: number): number {
  return (due - now) | 0
}

function cellOf(row: number): number {
  return HEADER_CELLS + row * ROW_CELLS
}

function paddedTo(cells: number): number {
  return Math.ceil(cells / LINE_CELLS) * LINE_CELLS
}

function wordOf(state: EndpointState, retries: number, level: number, due: number): bigint {
  // An active endpoint has forgotten what was: all of its word is 0.
  if (state === ENDPOINT_STATE.ACTIVE) return 0n
  const low = state | (Math.min(RETRIES_MAX, retries) << RETRIES_SHIFT) | (level << LEVEL_SHIFT)
  return (BigInt(due) << 32n) | BigInt(low >>> 0)
}

/** Nothing new: the time-out of a request that was under way when another was counted, or a try before its time. */
function isStale(state: EndpointState, event: EndpointEvent, due: number, now: number): boolean {
  const isEarly = left(due, now) > 0
  if (event === ENDPOINT_EVENT.TRIED) return isEarly
  return isEarly && state === ENDPOINT_STATE.TIMEOUT && event === ENDPOINT_EVENT.TIMED_OUT
}

/** A time-out with no retry left suspends; where suspension is switched off a failure has no effect. */
function effectOf(
  event: EndpointEvent,
  state: EndpointState,
  retries: number,
  settings: EndpointSettings,
): EndpointEvent | undefined {
  const { retriesBeforeSuspension: allowed } = settings
  const suspends = settings.initialMs > 0 && settings.maximumMs > 0
  if (event === ENDPOINT_EVENT.FAILED) return suspends ? event : undefined
  if (event !== ENDPOINT_EVENT.TIMED_OUT || state === ENDPOINT_STATE.TRIED) return event
  if (retries < allowed || (!suspends && allowed > 0)) return event
  return suspends ? ENDPOINT_EVENT.FAILED : undefined
}

/** How long the endpoint stays as it is by itself, in tenths of a second. */
function waitTenths(state: EndpointState, level: number, settings: EndpointSettings): number {
  if (state === ENDPOINT_STATE.TIMEOUT) return tenths(settings.retryDelayMs)
  if (state === ENDPOINT_STATE.TRIED) return TRIAL_TENTHS
  if (state !== ENDPOINT_STATE.SUSPENDED) return 0
  return tenths(Math.min(settings.initialMs * settings.factor ** (level - 1), settings.maximumMs))
}

/** Never early: `now` may have begun nearly a tenth ago. */
function dueAfter(now: number, wait: number): number {
  return wait === 0 ? now : (now + wait + 1) | 0
}

function tenths(ms: number): number {
  return Math.min(YEAR_TENTHS, Math.ceil(ms / 100))
}
