/**
 * Counters of tumbling windows that all reactors share, four to a request. Two numbers of 32 bits each: which window,
 * and how many in it. A count is added only to a window that is begun; who finds it over begins the next one.
 */
const WINDOW = 0
const COUNT = 1
/** 64 bytes, a cache line: neighbours of two reactors do not disturb each other. */
export const ROW_INTS = 16
/** In the place of a window while its count goes back to nothing. */
const BEGINNING = -1

/** One thread's hold of a shared counter. */
export class SharedWindow {
  readonly #rows: Int32Array
  readonly #at: number
  readonly #limit: number
  readonly #lengthMs: number
  /** Wall clock at which the window that was seen last ends, aligned to the epoch of the clock. */
  #endMs = 0

  constructor(rows: Int32Array, row: number, limit: number, lengthMs: number) {
    this.#rows = rows
    this.#at = row * ROW_INTS
    this.#limit = limit
    this.#lengthMs = lengthMs
  }

  /** One more, unless the limit is reached. */
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

/** The counters of one request: where each begins, and the second from which one of them has another window. */
export interface Hold {
  readonly at: readonly number[]
  turnS: number
}

/** The same without an object for a counter: limit and length stand beside the count, in the same line of the cache. */
export class SharedWindows {
  readonly #rows: Int32Array

  constructor(rows: Int32Array) {
    this.#rows = rows
  }

  /** Limits and lengths are those of the policy in force, whoever sets them last. */
  hold(counters: readonly { row: number; limit: number; lengthS: number }[]): Hold {
    for (const { row, limit, lengthS } of counters) {
      Atomics.store(this.#rows, row * ROW_INTS + LIMIT, limit)
      Atomics.store(this.#rows, row * ROW_INTS + LENGTH_S, lengthS)
    }
    return { at: counters.map(({ row }) => row * ROW_INTS), turnS: 0 }
  }

  /** One more of each, in order; answers which one is out, or -1. `wallS`: seconds of the wall clock, whole. */
  take(hold: Hold, wallS: number): number {
    const { at } = hold
    const rows = this.#rows
    if (wallS >= hold.turnS) this.#turn(hold, wallS)
    for (let i = 0; i < at.length; i++) {
      const row = at[i]!
      const limit = rows[row + LIMIT]!
      // Looked at first, however late: a month of refusals would count beyond what 32 bits hold.
      if (rows[row + COUNT]! >= limit || Atomics.add(rows, row + COUNT, 1) >= limit) return i
    }
    return -1
  }

  #turn(hold: Hold, wallS: number): void {
    let turnS = 2 ** 31 - 1
    for (const row of hold.at) {
      const lengthS = this.#rows[row + LENGTH_S]!
      const window = Math.floor(wallS / lengthS)
      turnS = Math.min(turnS, (window + 1) * lengthS)
      begin(this.#rows, row, window)
    }
    hold.turnS = turnS
  }
}

/** Begins a window unless somebody did. One ahead of us is in force too: a clock that went back opens none again. */
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

/** The same as the first with the division for each request, and the window compared in shared memory. */
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
