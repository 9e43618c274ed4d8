/**
 * Measures of each thread in its column of the metrics: how late its event loop comes to a timer, and its
 * memory. A timer that runs anyway is the measure: `monitorEventLoopDelay` wakes a thread a hundred times a second.
 */
import { MEMORY_KINDS, type MemoryKind, writeMemory } from '../runtime/thread-memory.ts'
import { MetricsColumn, THREAD_CELLS } from './metrics.ts'

/** Upper bounds in seconds, inclusive; one more bucket holds longer delays. */
export const DELAY_BOUNDS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5] as const
const BUCKETS = DELAY_BOUNDS_SECONDS.length + 1
const DELAY_SUM = THREAD_CELLS + BUCKETS
const MEMORY_CELLS = DELAY_SUM + 1

/** Memory is read once a second. */
const MEMORY_MS = 1000
const INTERVAL_MS = 500

export class ThreadWatch {
  readonly #column: MetricsColumn
  readonly #intervalMs: number
  readonly #memory = new Float64Array(MEMORY_KINDS.length)
  #dueMs = 0
  #memoryMs = 0

  /** `intervalMs`: of the timer that calls `tick`. */
  constructor(column: MetricsColumn, intervalMs: number) {
    this.#column = column
    this.#intervalMs = intervalMs
  }

  /** A watch with a timer of its own, which keeps no thread alive. */
  static start(shared: SharedArrayBuffer, column: number): NodeJS.Timeout {
    const watch = new ThreadWatch(new MetricsColumn(shared, column), INTERVAL_MS)
    watch.tick(performance.now())
    return setInterval(() => watch.tick(performance.now()), INTERVAL_MS).unref()
  }

  /** `nowMs`: `performance.now()`. */
  tick(nowMs: number): void {
    if (this.#dueMs > 0) this.#countDelay(Math.max(0, nowMs - this.#dueMs) / 1000)
    this.#dueMs = nowMs + this.#intervalMs
    if (nowMs < this.#memoryMs) return
    this.#memoryMs = nowMs + MEMORY_MS
    writeMemory(this.#memory)
    for (let at = 0; at < MEMORY_KINDS.length; at++) this.#column.set(MEMORY_CELLS + at, this.#memory[at]!)
  }

  #countDelay(seconds: number): void {
    const bucket = DELAY_BOUNDS_SECONDS.findIndex(bound => seconds <= bound)
    this.#column.add(THREAD_CELLS + (bucket === -1 ? BUCKETS - 1 : bucket), 1)
    this.#column.add(DELAY_SUM, seconds)
  }
}

export interface ThreadSample {
  /** `reactor-0`, `primary` or `control`. */
  readonly thread: string
  /** Delays of the event loop per bucket, not cumulative. */
  readonly delays: readonly number[]
  readonly delaySeconds: number
  readonly memory: Readonly<Record<MemoryKind, number>>
}

/** The threads of a process: its reactors, the primary and the control thread, in the order of their columns. */
export function readThreads(shared: SharedArrayBuffer, reactors: number): readonly ThreadSample[] {
  const names = [...Array.from({ length: reactors }, (_, reactor) => `reactor-${reactor}`), 'primary', 'control']
  return names.map((thread, index) => {
    const column = new MetricsColumn(shared, index)
    return {
      thread,
      delays: Array.from({ length: BUCKETS }, (_, bucket) => column.read(THREAD_CELLS + bucket)),
      delaySeconds: column.read(DELAY_SUM),
      memory: Object.fromEntries(MEMORY_KINDS.map((kind, at) => [kind, column.read(MEMORY_CELLS + at)])) as Record<
        MemoryKind,
        number
      >,
    }
  })
}
