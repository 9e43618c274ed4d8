/** A clock that all threads share: it counts from the start of the machine, where `performance` counts from its thread. */

const NS_PER_MS = 1_000_000

/** Milliseconds. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / NS_PER_MS
}
