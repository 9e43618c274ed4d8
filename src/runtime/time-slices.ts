/** Divides work that takes long into slices, between which the event loop goes on. */
import { setImmediate } from 'node:timers/promises'

const SLICE_MS = 10

export class TimeSlices {
  #endMs = performance.now() + SLICE_MS

  /** True if the loop should wait for `next` before it goes on. */
  get isOver(): boolean {
    return performance.now() >= this.#endMs
  }

  async next(): Promise<void> {
    await setImmediate()
    this.#endMs = performance.now() + SLICE_MS
  }
}
