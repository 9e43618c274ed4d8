/**
 * Counts in shared memory with a limit that holds over all threads, and the highest sum of each. Each thread has a
 * column of its own, so that the count of a dead thread can be cleared. `acquire` increments its own column first and
 * reads the sum afterwards: at the limit two concurrent callers may both be refused, but never both succeed.
 */
export class SharedGauge {
  readonly #columns: Int32Array
  readonly #rows: number
  readonly #threads: number
  readonly #own: number

  /** `thread`: index of the column that this gauge writes, from 0. */
  constructor(shared: SharedArrayBuffer, threads: number, thread: number) {
    this.#columns = new Int32Array(shared)
    this.#rows = rowsOf(this.#columns, threads)
    this.#threads = threads
    this.#own = thread * this.#rows
  }

  static allocate(threads: number, rows: number): SharedArrayBuffer {
    return new SharedArrayBuffer((threads + 1) * rows * Int32Array.BYTES_PER_ELEMENT)
  }

  /** Increments `row` unless its sum would exceed `limit`; -1 for no limit. */
  acquire(row: number, limit: number): boolean {
    Atomics.add(this.#columns, this.#own + row, 1)
    const sum = this.sum(row)
    if (limit >= 0 && sum > limit) {
      this.release(row)
      return false
    }
    this.#raise(row, sum)
    return true
  }

  #raise(row: number, sum: number): void {
    const at = this.#threads * this.#rows + row
    for (let highest = this.#columns[at]!; sum > highest; ) {
      const found = Atomics.compareExchange(this.#columns, at, highest, sum)
      if (found === highest) return
      highest = found
    }
  }

  release(row: number): void {
    Atomics.sub(this.#columns, this.#own + row, 1)
  }

  sum(row: number): number {
    let sum = 0
    for (let thread = 0; thread < this.#threads; thread++) sum += Atomics.load(this.#columns, thread * this.#rows + row)
    return sum
  }

  /** The highest sum since the start. */
  highest(row: number): number {
    return Atomics.load(this.#columns, this.#threads * this.#rows + row)
  }

  /** Clears the column of a dead thread. Rows at 0 are not written: a write would allocate their untouched pages. */
  static clear(shared: SharedArrayBuffer, threads: number, thread: number): void {
    const columns = new Int32Array(shared)
    const rows = rowsOf(columns, threads)
    for (let at = thread * rows; at < (thread + 1) * rows; at++) if (columns[at] !== 0) Atomics.store(columns, at, 0)
  }
}

/** Behind the columns of the threads is that of the highest sums. */
function rowsOf(columns: Int32Array, threads: number): number {
  return columns.length / (threads + 1)
}
