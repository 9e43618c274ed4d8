/** Monotonic clock that all threads share. `performance.now()` counts from the start of its thread. */

const NS_PER_MS = 1_000_000

/** Returns milliseconds. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / NS_PER_MS
}
