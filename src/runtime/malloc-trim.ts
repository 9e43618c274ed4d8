/**
 * Returns memory that malloc keeps after it was freed. glibc gives back the end of an arena only, and each thread has
 * an arena: what a start has freed below memory in use stays resident, 2 MB per thread.
 */

/**
 * Trims the arenas of all threads, in the time of a collection of garbage. Returns whether memory was returned: not
 * without `node:ffi`, which `--permission` refuses, and not with another C library than glibc (D580).
 */
export function trimMalloc(): boolean {
  const { emitWarning } = process
  // Node warns that the module is experimental; without it a gateway only keeps the memory.
  process.emitWarning = () => {}
  try {
    const ffi = process.getBuiltinModule('node:ffi')
    const { lib, functions } = ffi.dlopen(null, { malloc_trim: { arguments: ['u64'], return: 'i32' } })
    try {
      return functions.malloc_trim(0n) === 1
    } finally {
      lib.close()
    }
  } catch {
    return false
  } finally {
    process.emitWarning = emitWarning
  }
}
