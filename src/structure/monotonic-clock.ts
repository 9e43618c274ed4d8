/** A clock that all threads share; that of `performance` counts from the start of each thread. */

const NS_PER_MS = 1_000_000

/** Milliseconds. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / NS_PER_MS
}
