/**
 * Cells of shared memory in which each task is claimed once: by the thread that begins it, or by the one that withdraws
 * it, because the thread does not get to it.
 */

const FREE = 0
const OFFERED = 1
const BEGUN = 2
const WITHDRAWN = 3

/** Further tasks are in no cell, and cannot be withdrawn. */
const CELLS = 4096
/** The number of no cell. */
export const UNCLAIMED = 0

export class TaskClaims {
  readonly memory: SharedArrayBuffer
  readonly #cells: Int32Array
  /** Cells that have been used and are free again. */
  readonly #free: number[] = []
  /** The first cell that was never used; cell 0 is none. */
  #next = UNCLAIMED + 1

  /** `memory`: of the thread that offers the tasks; left out: this is that thread. */
  constructor(memory = new SharedArrayBuffer(CELLS * Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory
    this.#cells = new Int32Array(memory)
  }

  /** Returns the cell of another task; UNCLAIMED where all are in use. */
  offer(): number {
    const cell = this.#free.pop() ?? (this.#next < CELLS ? this.#next++ : UNCLAIMED)
    if (cell !== UNCLAIMED) Atomics.store(this.#cells, cell, OFFERED)
    return cell
  }

  /** The task begins; false where it has been withdrawn. */
  begin(cell: number): boolean {
    return cell === UNCLAIMED || this.#claim(cell, BEGUN)
  }

  hasBegun(cell: number): boolean {
    return Atomics.load(this.#cells, cell) === BEGUN
  }

  /** Returns whether the task had not begun; then it never will. */
  withdraw(cell: number): boolean {
    return this.#claim(cell, WITHDRAWN)
  }

  #claim(cell: number, state: number): boolean {
    return Atomics.compareExchange(this.#cells, cell, OFFERED, state) === OFFERED
  }

  /** The thread has dealt with the task, or is gone. */
  free(cell: number): void {
    if (cell === UNCLAIMED) return
    Atomics.store(this.#cells, cell, FREE)
    this.#free.push(cell)
  }
}
