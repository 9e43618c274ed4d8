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
    const window = index | 0
    this.#endMs = (index + 1) * this.#lengthMs
    for (;;) {
      const seen = Atomics.load(this.#rows, this.#at + WINDOW)
      // Ahead of us is in force as well: a clock that went back opens no window a second time.
      if (seen === window || (seen !== BEGINNING && seen > window)) return
      if (seen === BEGINNING) continue
      if (Atomics.compareExchange(this.#rows, this.#at + WINDOW, seen, BEGINNING) !== seen) continue
      Atomics.store(this.#rows, this.#at + COUNT, 0)
      Atomics.store(this.#rows, this.#at + WINDOW, window)
      return
    }
  }
}

/** The same with the division for each request, and the window compared in shared memory. */
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
