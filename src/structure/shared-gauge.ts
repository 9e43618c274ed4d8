/**
 * Numbers that all threads keep together, with a limit that none of them can overstep. A column per thread, so that
 * what a dead thread held can be taken off. A take adds to its own column first and looks at the sum afterwards: two
 * takers at once may both be refused at the limit, but are never both let in.
 */
export class SharedGauge {
  readonly #columns: Int32Array
  readonly #rows: number
  readonly #threads: number
  readonly #own: number

  /** `thread`: whose column is written here, from 0. */
  constructor(shared: SharedArrayBuffer, threads: number, thread: number) {
    this.#columns = new Int32Array(shared)
    this.#rows = this.#columns.length / threads
    this.#threads = threads
    this.#own = thread * this.#rows
  }

  static allocate(threads: number, rows: number): SharedArrayBuffer {
    return new SharedArrayBuffer(threads * rows * Int32Array.BYTES_PER_ELEMENT)
  }

  /** One more of `row`, unless that would be more than `limit` (-1: there is none). */
  take(row: number, limit: number): boolean {
    Atomics.add(this.#columns, this.#own + row, 1)
    if (limit < 0 || this.sum(row) <= limit) return true
    this.give(row)
    return false
  }

  give(row: number): void {
    Atomics.sub(this.#columns, this.#own + row, 1)
  }

  sum(row: number): number {
    let sum = 0
    for (let thread = 0; thread < this.#threads; thread++) sum += Atomics.load(this.#columns, thread * this.#rows + row)
    return sum
  }

  /** A thread died: what it held is free. Rows that nobody has used are only read: their memory is not there yet. */
  static clear(shared: SharedArrayBuffer, threads: number, thread: number): void {
    const columns = new Int32Array(shared)
    const rows = columns.length / threads
    for (let at = thread * rows; at < (thread + 1) * rows; at++) if (columns[at] !== 0) Atomics.store(columns, at, 0)
  }
}
