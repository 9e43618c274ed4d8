/**
 * Memory of child threads: each writes its row of shared memory, and its parent reads the rows without asking. An event
 * loop without a task may stand still, so a thread writes with its tasks and not by a timer.
 */
import { getHeapStatistics } from 'node:v8'
import { monotonicMs } from './monotonic-clock.ts'

/** Memory of a thread in bytes, as V8 counts it, in the order of a row. */
export const MEMORY_KINDS = ['heap_used', 'heap_size', 'heap_limit', 'external'] as const
export type MemoryKind = (typeof MEMORY_KINDS)[number]
/** Column of a row that is 0 for a thread that does not run. */
export const HEAP_SIZE = 1
const EXTERNAL = 3

const ROW_BYTES = MEMORY_KINDS.length * Float64Array.BYTES_PER_ELEMENT
const INTERVAL_MS = 1000

export function allocateMemoryRows(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(threads * ROW_BYTES)
}

/** The rows that an allocation holds. */
export function memoryRows(shared: SharedArrayBuffer): readonly Float64Array[] {
  const count = shared.byteLength / ROW_BYTES
  return Array.from({ length: count }, (_, row) => new Float64Array(shared, row * ROW_BYTES, MEMORY_KINDS.length))
}

/** Bytes of the heap, live or dead, and outside of it, by the row of a thread. */
export function heldBytes(row: Float64Array): number {
  return row[HEAP_SIZE]! + row[EXTERNAL]!
}

/** Writes the memory of this thread to a row. */
export function writeMemory(row: Float64Array): void {
  const { used_heap_size, total_heap_size, heap_size_limit, external_memory } = getHeapStatistics()
  row[0] = used_heap_size
  row[HEAP_SIZE] = total_heap_size
  row[2] = heap_size_limit
  row[EXTERNAL] = external_memory
}

/** The memory of this thread in its row, written at once and then at most once a second. */
export class MemoryReport {
  readonly #row: Float64Array
  #dueMs: number

  constructor(row: Float64Array) {
    this.#row = row
    writeMemory(row)
    this.#dueMs = monotonicMs() + INTERVAL_MS
  }

  update(nowMs = monotonicMs()): void {
    if (nowMs < this.#dueMs) return
    this.#dueMs = nowMs + INTERVAL_MS
    writeMemory(this.#row)
  }
}
