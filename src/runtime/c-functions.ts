/**
 * Calls of the C library for which Node has no function, by `node:ffi`. That module is experimental, and `--permission`
 * refuses it: callers go on without what they ask for.
 */
import { readlinkSync } from 'node:fs'

const SHUT_RDWR = 2

/** Returns a call of `name`, or undefined where `node:ffi`, or the C library, has none. */
export function cFunction(
  name: string,
  signature: { readonly arguments: readonly ('i32' | 'i64' | 'u64' | 'buffer')[]; readonly return: 'i32' | 'i64' },
): ((...values: readonly (bigint | number | Uint8Array)[]) => unknown) | undefined {
  const { emitWarning } = process
  // Node warns that the module is experimental; without it a gateway only keeps memory, and threads switch later.
  process.emitWarning = () => {}
  try {
    const ffi = process.getBuiltinModule('node:ffi')
    // The call keeps the library: Node may close one that nothing holds.
    const library = ffi.dlopen(null, { [name]: { ...signature, arguments: [...signature.arguments] } })
    return (...values) => library.functions[name]!(...values)
  } catch {
    return undefined
  } finally {
    process.emitWarning = emitWarning
  }
}

/**
 * Returns memory that malloc keeps after it was freed, in the time of a collection of garbage. glibc gives back the end
 * of an arena alone, and each thread has an arena: memory that a start has freed below memory in use stays resident,
 * 2 MB per thread. Returns whether memory was returned: not with another C library (D580).
 */
export function trimMalloc(): boolean {
  return cFunction('malloc_trim', { arguments: ['u64'], return: 'i32' })?.(0n) === 1
}

/** Parameters of mallopt(3), as malloc.h has them. */
const M_TRIM_THRESHOLD = -1
const M_MMAP_THRESHOLD = -3
/** Larger blocks are mapped, each alone. */
const MAPPED_BYTES = 4 * 1_048_576

/**
 * Lets large blocks go back to the system as soon as they are freed, for all threads (D913). By itself glibc raises the
 * size from which it maps a block to that of the largest one freed, up to 32 MiB, and then keeps bodies in its arenas.
 */
export function mapLargeBlocks(): void {
  const setOption = cFunction('mallopt', { arguments: ['i32', 'i32'], return: 'i32' })
  setOption?.(M_MMAP_THRESHOLD, MAPPED_BYTES)
  // As glibc does with the size from which it maps.
  setOption?.(M_TRIM_THRESHOLD, 2 * MAPPED_BYTES)
}

/** Returns what a descriptor of this process stands for, which no other one has; '' on other systems than Linux. */
export function openObject(descriptor: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return ''
  }
}

/** Ends the connections of a socket, and its listening, though another thread has it. */
export function shutDown(descriptor: number): void {
  cFunction('shutdown', { arguments: ['i32', 'i32'], return: 'i32' })?.(descriptor, SHUT_RDWR)
}

/**
 * Ends the process. `process.exit` waits for all threads, and a thread in a call of the system that does not return
 * keeps it for ever (D911). Listeners of `exit` run.
 */
export function endProcess(code: number): never {
  process.emit('exit', code)
  cFunction('_exit', { arguments: ['i32'], return: 'i32' })?.(code)
  process.kill(process.pid, 'SIGKILL')
  throw new Error('the process goes on after SIGKILL')
}

/**
 * Returns a call of sched_yield(2), which lets other threads of the same processor run first (D700). The scheduler of
 * Linux otherwise switches between threads that compute at its tick alone, and a reactor that becomes ready waits for
 * it. The call does nothing on other systems.
 */
export function processorYield(): () => void {
  const call = process.platform === 'linux' ? cFunction('sched_yield', { arguments: [], return: 'i32' }) : undefined
  return call === undefined ? () => undefined : () => void call()
}
