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

/** Numbers of sched_setattr(2) and sched_getattr(2), for which older C libraries have no functions. */
const SCHEDULING_CALLS: Partial<Record<NodeJS.Architecture, { readonly set: bigint; readonly get: bigint }>> = {
  x64: { set: 314n, get: 315n },
  arm64: { set: 274n, get: 275n },
}
/** Length of `struct sched_attr`, and where its policy and its time slice, `sched_runtime`, are. */
const ATTRIBUTES_BYTES = 56
const POLICY_AT = 4
const SLICE_AT = 24
const SCHED_OTHER = 0
/** Time slices in nanoseconds: the shortest one that Linux gives, and 0 for that of all threads. */
const SLICES_NS = { short: 100_000n, usual: 0n } as const

/**
 * Sets the time slice that this thread asks Linux for. A thread with short slices that becomes ready, and has not had
 * more than its share, takes the processor at once from one with usual slices. That one otherwise goes on until a tick
 * of the system, for up to 4 ms (D955). Shares of the processor stay the same. Threads inherit the slice of the thread
 * that starts them. Linux regards it from 6.12 on. Returns whether the system has accepted it.
 */
export function takeSlices(slices: keyof typeof SLICES_NS): boolean {
  const numbers = process.platform === 'linux' ? SCHEDULING_CALLS[process.arch] : undefined
  const call = cFunction('syscall', { arguments: ['i64', 'i64', 'buffer', 'i64', 'i64'], return: 'i64' })
  if (numbers === undefined || call === undefined) return false
  const attributes = Buffer.alloc(ATTRIBUTES_BYTES)
  if (call(numbers.get, 0n, attributes, BigInt(ATTRIBUTES_BYTES), 0n) !== 0n) return false
  if (attributes.readUInt32LE(POLICY_AT) !== SCHED_OTHER) return false
  attributes.writeBigUInt64LE(SLICES_NS[slices], SLICE_AT)
  return call(numbers.set, 0n, attributes, 0n, 0n) === 0n
}
