/**
 * Makes hashes of passwords cheap in the process of a test, because they would take half of the processor time of the
 * tests of the control thread. Loaded before the sources, which keep the function that they import.
 */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

/** KiB of the hashes that the gateway makes; those of others are computed as they are. */
const MEMORY = 19_456
const CHEAP_MEMORY = 64

// A named import would become the function below.
const { argon2 } = crypto
let isCheap = true

crypto.argon2 = (algorithm, parameters, callback) => {
  const memory = isCheap && parameters.memory === MEMORY ? CHEAP_MEMORY : parameters.memory
  argon2(algorithm, { ...parameters, memory }, callback)
}
syncBuiltinESMExports()

/** Computes hashes as the gateway does, for tests of the hashes themselves. */
export async function withRealHashes(body: () => Promise<void>): Promise<void> {
  isCheap = false
  try {
    await body()
  } finally {
    isCheap = true
  }
}
