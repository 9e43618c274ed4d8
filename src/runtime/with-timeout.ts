/** Settles with `result`, or rejects with the error of `late` after `ms` milliseconds. */
export async function withTimeout<T>(result: Promise<T>, ms: number, late: () => Error): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(late()), ms)
  try {
    return await Promise.race([result, promise])
  } finally {
    clearTimeout(timer)
  }
}
