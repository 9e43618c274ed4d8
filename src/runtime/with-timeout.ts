/** Settles as `result` does; if that takes more than `ms` milliseconds, rejects with the error that `late` returns. */
export async function withTimeout<T>(result: Promise<T>, ms: number, late: () => Error): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(late()), ms)
  try {
    return await Promise.race([result, promise])
  } finally {
    clearTimeout(timer)
  }
}
