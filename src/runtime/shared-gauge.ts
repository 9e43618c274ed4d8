/**
 * Counts in shared memory with a limit that holds over all threads. Each thread has a column of its own, so that the
 * count of a dead thread can be cleared. `acquire` increments its own column first and reads the sum afterwards: at the
 * limit two concurrent callers may both be refused, but never both succeed.
 */
export class SharedGauge {
  readonly #columns: Int32Array
  readonly #rows: number
  readonly #threads: number
  readonly #own: number

  /** `thread`: index of the column that this gauge writes, from 0. */
  constructor(shared: SharedArrayBuffer, threads: number, thread: number) {
    this.#columns = new Int32Array(shared)
    this.#rows = this.#columns.length / threads
    this.#threads = threads
    this.#own = thread * this.#rows
  }

  static allocate(threads: number, rows: number): SharedArrayBuffer {
    return new SharedArrayBuffer(threads * rows * Int32Array.BYTES_PER_ELEMENT)
  }

  /** Increments `row` unless its sum would exceed `limit`; -1 for no limit. */
  acquire(row: number, limit: number): boolean {
    Atomics.add(this.#columns, this.#own + row, 1)
    if (limit < 0 || this.sum(row) <= limit) return true
    this.release(row)
    return false
  }

  release(row: number): void {
    Atomics.sub(this.#columns, this.#own + row, 1)
  }

  sum(row: number): number {
    let sum = 0
    for (let thread = 0; thread < this.#threads; thread++) sum += Atomics.load(this.#columns, thread * this.#rows + row)
    return sum
  }

  /** Clears the column of a dead thread. Rows at 0 are not written: a write would allocate their untouched pages. */
  static clear(shared: SharedArrayBuffer, threads: number, thread: number): void {
    const columns = new Int32Array(shared)
    const rows = columns.length / threads
    for (let at = thread * rows; at < (thread + 1) * rows; at++) if (columns[at] !== 0) Atomics.store(columns, at, 0)
  }
}
