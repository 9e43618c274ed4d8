/**
 * Memory of the threads that a reactor has started, and delays of workers, as rows of its column of the metrics. The
 * reactor copies what they have written; `/metrics` reads the column and asks no thread.
 */
import { HEAP_SIZE, MEMORY_KINDS, type MemoryKind, memoryRows } from '../runtime/thread-memory.ts'
import { CHILD_CELL_COUNT, CHILD_CELLS, METRIC, MetricsColumn } from './metrics.ts'
import { DELAY_CELLS, USED } from './worker-marks.ts'

/** Workers by what they run, and the threads of scripts, handlers and the publisher of analytics. */
const KINDS = ['mediation', 'long', 'spare', 'background', 'script', 'handler', 'publisher'] as const
export type ChildThreadKind = (typeof KINDS)[number]

/** Kinds that run several tasks at once; others have one, which delays nobody. */
const COUNTS_DELAYS: readonly ChildThreadKind[] = ['mediation', 'long', 'spare', 'background']

/** The number of the kind, from 1 on, the memory, and delays of the event loop; 0: the row is free. */
const DELAYS = 1 + MEMORY_KINDS.length
const ROW_CELLS = DELAYS + DELAY_CELLS
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
  /** Marks of the worker in row 0; null where there is none. */
  readonly #marks: Float64Array | null
  /** Numbers in use, as the gauges count them. */
  readonly #used = { scripts: 0, connections: 0 }

  /** `shared`: of `allocateMemoryRows`. `marks`: of `allocateMarks`. */
  constructor(
    column: MetricsColumn,
    kindOf: (row: number) => ChildThreadKind,
    shared: SharedArrayBuffer,
    marks: SharedArrayBuffer | null = null,
  ) {
    this.#column = column
    this.#kindOf = kindOf
    this.#memory = memoryRows(shared)
    this.#marks = marks === null ? null : new Float64Array(marks)
    this.#rows = this.#memory.map(() => NONE)
  }

  /** Copies the memory of the threads that run; a row that is 0 is one of a thread that does not. */
  tick(): void {
    for (const [index, memory] of this.#memory.entries()) {
      if (memory[HEAP_SIZE] === 0) this.#release(index)
      else this.#copy(index, memory)
    }
    if (this.#marks !== null) this.#showUsed(this.#marks[USED.scripts]!, this.#marks[USED.connections]!)
  }

  /** The threads have ended. */
  close(): void {
    for (const index of this.#rows.keys()) this.#release(index)
    this.#showUsed(0, 0)
  }

  #showUsed(scripts: number, connections: number): void {
    this.#column.add(METRIC.scriptThreadsUsed, scripts - this.#used.scripts)
    this.#column.add(METRIC.mountedConnectionsUsed, connections - this.#used.connections)
    this.#used.scripts = scripts
    this.#used.connections = connections
  }

  #copy(index: number, memory: Float64Array): void {
    if (this.#rows[index] === NONE) this.#rows[index] = this.#take(this.#kindOf(index))
    const row = this.#rows[index]!
    if (row === NONE) return
    for (const [at, bytes] of memory.entries()) this.#column.set(cellOf(row) + 1 + at, bytes)
    if (index > 0 || this.#marks === null) return
    for (let at = 0; at < DELAY_CELLS; at++) this.#column.set(cellOf(row) + DELAYS + at, this.#marks[at]!)
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
  /** Delays of its event loop per bucket, not cumulative; none of a thread that counts none. */
  readonly delays: readonly number[]
  readonly delaySeconds: number
}

/** The threads that reactors and the control thread have started and that run. */
export function readChildThreads(shared: SharedArrayBuffer, reactors: number): readonly ChildThreadSample[] {
  const parents = Array.from({ length: reactors }, (_, reactor) => [`reactor-${reactor}`, reactor] as const)
  return [...parents, ['control', reactors + 1] as const].flatMap(([parent, index]) => {
    const column = new MetricsColumn(shared, index)
    return Array.from({ length: ROWS }, (_, row) => {
      const kind = KINDS[column.read(cellOf(row)) - 1]
      const values = MEMORY_KINDS.map((name, at) => [name, column.read(cellOf(row) + 1 + at)])
      const memory = Object.fromEntries(values) as Record<MemoryKind, number>
      if (kind === undefined || memory.heap_size === 0) return []
      const cells = Array.from({ length: DELAY_CELLS }, (_, at) => column.read(cellOf(row) + DELAYS + at))
      const delaySeconds = cells.pop()!
      const delays = COUNTS_DELAYS.includes(kind) ? cells : []
      return [{ thread: `${parent}/${kind}-${row}`, memory, delays, delaySeconds }]
    }).flat()
  })
}

function cellOf(row: number): number {
  return CHILD_CELLS + row * ROW_CELLS
}
