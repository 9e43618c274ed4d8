/**
 * Marks of a worker thread beside its memory, which its reactor reads: how late its event loop runs a timer, and what
 * it uses of its pools. The loop of a thread without a task stands still (piscina waits with Atomics): a delay counts
 * from the task that has woken the loop.
 */
import { DELAY_BOUNDS_SECONDS } from './thread-metrics.ts'

const BUCKETS = DELAY_BOUNDS_SECONDS.length + 1
/** Delays per bucket, not cumulative, and their sum. */
export const DELAY_CELLS = BUCKETS + 1

/** Pools of the thread; cells of what is in use now. */
export const USED = { scripts: DELAY_CELLS, connections: DELAY_CELLS + 1 } as const
const MARK_CELLS = DELAY_CELLS + Object.keys(USED).length

export function allocateMarks(): SharedArrayBuffer {
  return new SharedArrayBuffer(MARK_CELLS * Float64Array.BYTES_PER_ELEMENT)
}

export class WorkerMarks {
  readonly #cells: Float64Array
  readonly #intervalMs: number
  #dueMs: number
  /** When the first of the running tasks began. */
  #wokenMs = 0
  #tasks = 0

  /** `intervalMs`: of the timer that calls `tick`. Times are those of the monotonic clock. */
  constructor(shared: SharedArrayBuffer, intervalMs: number, nowMs: number) {
    this.#cells = new Float64Array(shared)
    this.#intervalMs = intervalMs
    this.#dueMs = nowMs + intervalMs
  }

  begin(nowMs: number): void {
    if (this.#tasks++ === 0) this.#wokenMs = nowMs
  }

  /** The loop may stand still from here on, before it comes to a timer that is due. */
  end(nowMs: number): void {
    if (--this.#tasks === 0 && nowMs > this.#dueMs) this.#count(nowMs)
  }

  tick(nowMs: number): void {
    if (this.#tasks > 0) this.#count(nowMs)
    else this.#dueMs = nowMs + this.#intervalMs
  }

  setUsed(pool: keyof typeof USED, count: number): void {
    this.#cells[USED[pool]] = count
  }

  #count(nowMs: number): void {
    const seconds = Math.max(0, nowMs - Math.max(this.#dueMs, this.#wokenMs)) / 1000
    const bucket = DELAY_BOUNDS_SECONDS.findIndex(bound => seconds <= bound)
    this.#cells[bucket === -1 ? BUCKETS - 1 : bucket]! += 1
    this.#cells[BUCKETS]! += seconds
    this.#dueMs = nowMs + this.#intervalMs
  }
}
