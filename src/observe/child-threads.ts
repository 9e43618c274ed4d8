/**
 * Memory of the threads that a reactor has started, as rows of its column of the metrics. The reactor copies what they
 * have written; `/metrics` reads the column and asks no thread.
 */
import { HEAP_SIZE, MEMORY_KINDS, type MemoryKind, memoryRows } from '../runtime/thread-memory.ts'
import { CHILD_CELL_COUNT, CHILD_CELLS, MetricsColumn } from './metrics.ts'

/** Workers by what they run, and the threads of scripts and handlers. */
const KINDS = ['mediation', 'long', 'background', 'script', 'handler'] as const
export type ChildThreadKind = (typeof KINDS)[number]

/** The number of the kind, from 1 on, and the memory; 0: the row is free. */
const ROW_CELLS = 1 + MEMORY_KINDS.length
/** Further threads of a reactor are not listed. */
const ROWS = Math.floor(CHILD_CELL_COUNT / ROW_CELLS)
const NONE = -1

/** Threads that share one allocation of memory rows: a worker and its scripts, or the handlers of a reactor. */
export class ChildThreads {
  readonly #column: MetricsColumn
  readonly #kindOf: (row: number) => ChildThreadKind
  readonly #memory: readonly Float64Array[]
  /** Row of the column by row of the memory. */
  readonly #rows: number[]

  /** `shared`: of `allocateMemoryRows`. */
  constructor(column: MetricsColumn, kindOf: (row: number) => ChildThreadKind, shared: SharedArrayBuffer) {
    this.#column = column
    this.#kindOf = kindOf
    this.#memory = memoryRows(shared)
    this.#rows = this.#memory.map(() => NONE)
  }

  /** Copies the memory of the threads that run; a row that is 0 is one of a thread that does not. */
  tick(): void {
    for (const [index, memory] of this.#memory.entries()) {
      if (memory[HEAP_SIZE] === 0) this.#release(index)
      else this.#copy(index, memory)
    }
  }

  /** The threads have ended. */
  close(): void {
    for (const index of this.#rows.keys()) this.#release(index)
  }

  #copy(index: number, memory: Float64Array): void {
    if (this.#rows[index] === NONE) this.#rows[index] = this.#take(this.#kindOf(index))
    const row = this.#rows[index]!
    if (row === NONE) return
    for (const [at, bytes] of memory.entries()) this.#column.set(cellOf(row) + 1 + at, bytes)
  }

  #take(kind: ChildThreadKind): number {
    for (let row = 0; row < ROWS; row++) {
      if (this.#column.read(cellOf(row)) !== 0) continue
      this.#column.set(cellOf(row), KINDS.indexOf(kind) + 1)
      return row
    }
    return NONE
  }

  #release(index: number): void {
    const row = this.#rows[index]!
    if (row === NONE) return
    this.#rows[index] = NONE
    for (let at = 0; at < ROW_CELLS; at++) this.#column.set(cellOf(row) + at, 0)
  }
}

export interface ChildThreadSample {
  /** `reactor-0/script-3`: the number is that of a row, which another thread takes later. */
  readonly thread: string
  readonly memory: Readonly<Record<MemoryKind, number>>
}

/** The threads that reactors have started and that run. */
export function readChildThreads(shared: SharedArrayBuffer, reactors: number): readonly ChildThreadSample[] {
  return Array.from({ length: reactors }, (_, reactor) => {
    const column = new MetricsColumn(shared, reactor)
    return Array.from({ length: ROWS }, (_, row) => {
      const kind = KINDS[column.read(cellOf(row)) - 1]
      const values = MEMORY_KINDS.map((name, at) => [name, column.read(cellOf(row) + 1 + at)])
      const memory = Object.fromEntries(values) as Record<MemoryKind, number>
      return kind === undefined || memory.heap_size === 0
        ? []
        : [{ thread: `reactor-${reactor}/${kind}-${row}`, memory }]
    }).flat()
  }).flat()
}

function cellOf(row: number): number {
  return CHILD_CELLS + row * ROW_CELLS
}
