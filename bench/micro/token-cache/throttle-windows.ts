/**
 * Throttle counters with tumbling windows in memory shared by all reactors; a request counts four. A counter has two
 * 32-bit numbers: the window and its count. The first thread that finds the window over begins the next one.
 */
const WINDOW = 0
const COUNT = 1
/** 64 bytes, one cache line, against false sharing. */
export const ROW_INTS = 16
/** Value of the window while its count is reset. */
const BEGINNING = -1

/** Access of one thread to a shared counter, with an object per counter. */
export class WindowObject {
  readonly #rows: Int32Array
  readonly #at: number
  readonly #limit: number
  readonly #lengthMs: number
  /** End of the last seen window in wall clock time; windows are aligned to the Unix epoch. */
  #endMs = 0

  constructor(rows: Int32Array, row: number, limit: number, lengthMs: number) {
    this.#rows = rows
    this.#at = row * ROW_INTS
    this.#limit = limit
    this.#lengthMs = lengthMs
  }

  /** Counts one; false if the limit is reached. */
  take(wallMs: number): boolean {
    if (wallMs >= this.#endMs) this.#turn(wallMs)
    return Atomics.add(this.#rows, this.#at + COUNT, 1) < this.#limit
  }

  #turn(wallMs: number): void {
    const index = Math.floor(wallMs / this.#lengthMs)
    this.#endMs = (index + 1) * this.#lengthMs
    begin(this.#rows, this.#at, index)
  }
}

const LIMIT = 2
const LENGTH_S = 3

/** The counters of one request: their offsets, and the wall clock second at which the first of their windows ends. */
export interface Counters {
  readonly at: readonly number[]
  nextWindowS: number
}

/** The same counters without objects: limit and window length are in the same cache line as the count. */
export class SharedWindows {
  readonly #rows: Int32Array

  constructor(rows: Int32Array) {
    this.#rows = rows
  }

  /** Sets limits and window lengths; the last caller for a row wins. */
  counters(counters: readonly { row: number; limit: number; lengthS: number }[]): Counters {
    for (const { row, limit, lengthS } of counters) {
      Atomics.store(this.#rows, row * ROW_INTS + LIMIT, limit)
      Atomics.store(this.#rows, row * ROW_INTS + LENGTH_S, lengthS)
    }
    return { at: counters.map(({ row }) => row * ROW_INTS), nextWindowS: 0 }
  }

  /** Counts one in each counter in order; the index of the first exhausted one, or -1. `wallS`: whole seconds. */
  take(hold: Counters, wallS: number): number {
    const { at } = hold
    const rows = this.#rows
    if (wallS >= hold.nextWindowS) this.#turn(hold, wallS)
    for (let i = 0; i < at.length; i++) {
      const row = at[i]!
      const limit = rows[row + LIMIT]!
      // Compare first without counting, because a month of refusals would overflow 32 bits.
      if (rows[row + COUNT]! >= limit || Atomics.add(rows, row + COUNT, 1) >= limit) return i
    }
    return -1
  }

  #turn(hold: Counters, wallS: number): void {
    let turnS = 2 ** 31 - 1
    for (const row of hold.at) {
      const lengthS = this.#rows[row + LENGTH_S]!
      const window = Math.floor(wallS / lengthS)
      turnS = Math.min(turnS, (window + 1) * lengthS)
      begin(this.#rows, row, window)
    }
    hold.nextWindowS = turnS
  }
}

/** Begins a window unless it has begun. A later window stays, so a clock that goes back does not reset a count. */
function begin(rows: Int32Array, row: number, window: number): void {
  for (;;) {
    const seen = Atomics.load(rows, row + WINDOW)
    if (seen !== BEGINNING && seen >= window) return
    if (seen === BEGINNING || Atomics.compareExchange(rows, row + WINDOW, seen, BEGINNING) !== seen) continue
    Atomics.store(rows, row + COUNT, 0)
    Atomics.store(rows, row + WINDOW, window)
    return
  }
}

/** A variant of the first: calculates the window for each request and compares it in shared memory. */
export class DividedWindow {
  readonly #rows: Int32Array
  readonly #at: number
  readonly #limit: number
  readonly #lengthMs: number

  constructor(rows: Int32Array, row: number, limit: number, lengthMs: number) {
    this.#rows = rows
    this.#at = row * ROW_INTS
    this.#limit = limit
    this.#lengthMs = lengthMs
  }

  take(wallMs: number): boolean {
    const window = Math.floor(wallMs / this.#lengthMs) | 0
    if (Atomics.load(this.#rows, this.#at + WINDOW) !== window) {
      Atomics.store(this.#rows, this.#at + COUNT, 0)
      Atomics.store(this.#rows, this.#at + WINDOW, window)
    }
    return Atomics.add(this.#rows, this.#at + COUNT, 1) < this.#limit
  }
}
