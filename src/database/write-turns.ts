/**
 * The order in which the threads of this process write to an embedded database. SQLite lets one write at a time, and
 * tells the others to ask again later: a thread with one transaction after the other kept the others waiting for
 * seconds. Turns are taken in the order in which they were asked for. The lock of SQLite alone keeps writers apart:
 * whoever keeps a turn for long, or has died with it, is passed over.
 */
import { processMemory, shareMemory } from '../runtime/process-memory.ts'

const MEMORY = 'write turns'
/** Milliseconds of one turn; then the next one begins. Transactions are shorter, unless the disk is slow. */
const TURN_MS = 250

/** Files share rows, which costs a wait at most. */
const ROWS = 64
const ROW_CELLS = 2
/** Cells of a row: the next ticket, and the one whose turn it is. Tickets are 32-bit numbers that wrap around. */
const NEXT = 0
const SERVED = 1
const BYTES = ROWS * ROW_CELLS * Int32Array.BYTES_PER_ELEMENT

/** FNV-1a, in 32 bits. */
const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/** In the main thread, before it starts others. */
export function shareWriteTurns(): void {
  shareMemory(MEMORY, BYTES)
}

export class WriteTurns {
  readonly #cells: Int32Array

  /** `file`: as all threads name it. */
  constructor(file: string) {
    const at = rowOf(file) * ROW_CELLS * Int32Array.BYTES_PER_ELEMENT
    this.#cells = new Int32Array(processMemory(MEMORY, BYTES), at, ROW_CELLS)
  }

  /** Resolves with the ticket of this turn, which ends with `end`. */
  async take(): Promise<number> {
    const ticket = Atomics.add(this.#cells, NEXT, 1)
    for (;;) {
      const served = Atomics.load(this.#cells, SERVED)
      // Below: it was passed over.
      if (((ticket - served) | 0) <= 0) return ticket
      if (!(await this.#changed(served))) this.end(served)
    }
  }

  /** Does nothing where the turn was passed over. */
  end(ticket: number): void {
    if (Atomics.compareExchange(this.#cells, SERVED, ticket, (ticket + 1) | 0) !== ticket) return
    Atomics.notify(this.#cells, SERVED)
  }

  /** False: the turn lasts too long. */
  async #changed(served: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    // A wait for shared memory alone would not keep a process alive.
    const timer = setTimeout(() => resolve(false), TURN_MS)
    const { async: isPending, value } = Atomics.waitAsync(this.#cells, SERVED, served)
    if (isPending) value.then(() => resolve(true))
    else resolve(true)
    const isChanged = await promise
    clearTimeout(timer)
    return isChanged
  }
}

function rowOf(file: string): number {
  let hash = FNV_OFFSET
  for (let at = 0; at < file.length; at++) hash = Math.imul(hash ^ file.charCodeAt(at), FNV_PRIME)
  return (hash >>> 0) % ROWS
}
