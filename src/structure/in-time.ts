/** A wait with an end: what somebody else promises may never come. */

/** What an answer comes to within `ms` milliseconds; afterwards it rejects with what `late` makes. */
export async function inTime<T>(answer: Promise<T>, ms: number, late: () => Error): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(late()), ms)
  try {
    return await Promise.race([answer, promise])
  } finally {
    clearTimeout(timer)
  }
}
