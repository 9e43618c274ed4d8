/**
 * Lets other threads of the same processor run first. The scheduler of Linux otherwise switches between threads that
 * compute only at its tick, every 1 to 4 ms, and a reactor that becomes ready waits as long.
 */

/**
 * Returns a call of sched_yield(2), below 1 µs where no other thread waits for the processor. The call does nothing
 * without `node:ffi`, which is experimental and which `--permission` refuses, and on systems other than Linux (D700).
 */
export function processorYield(): () => void {
  if (process.platform !== 'linux') return () => undefined
  const { emitWarning } = process
  // Node warns that the module is experimental; without it threads only switch later.
  process.emitWarning = () => {}
  try {
    const ffi = process.getBuiltinModule('node:ffi')
    const { functions } = ffi.dlopen(null, { sched_yield: { arguments: [], return: 'i32' } })
    return () => void functions.sched_yield()
  } catch {
    return () => undefined
  } finally {
    process.emitWarning = emitWarning
  }
}
