/**
 * Room in the heap of this thread, and for bytes outside of it. A thread that reaches the limit of its heap within
 * native code, as a parser of JSON is, ends the whole process, because V8 cannot stop there; so what needs much memory
 * asks first.
 */
import { getHeapStatistics } from 'node:v8'
import { resourceLimits } from 'node:worker_threads'
import { collectGarbage } from './heap-trim.ts'

/** Smaller needs are met by what V8 keeps in reserve. */
const MIB = 1_048_576
const SMALL_BYTES = MIB

/** The sweeper of V8 frees buffers on another thread, which a busy machine may delay: waits for it in milliseconds. */
const SWEEP_WAIT_MS = 5
const SWEEP_WAITS = 10
const NOBODY_WAKES = new Int32Array(new SharedArrayBuffer(4))

/** True if `bytes` more fit into the heap. Where they do not at once, garbage is collected, which blocks the thread. */
export function hasHeapRoom(bytes: number): boolean {
  if (bytes < SMALL_BYTES || freeBytes() >= bytes) return true
  collectGarbage('regular')
  return freeBytes() >= bytes
}

/**
 * True if the buffers of this thread, which are outside of its heap, take no more bytes than the heap may have. V8 has
 * no limit for them. Garbage is collected as for the heap.
 */
export function hasBytesRoom(): boolean {
  const { heap_size_limit: limit, external_memory: outside } = getHeapStatistics()
  if (outside <= limitOf(limit)) return true
  collectGarbage('regular')
  // The statistics of V8 lack what its sweeper frees meanwhile; those of Node do not, and take longer.
  for (let waits = 0; process.memoryUsage().arrayBuffers > limitOf(limit); waits++) {
    if (waits === SWEEP_WAITS) return false
    Atomics.wait(NOBODY_WAKES, 0, 0, SWEEP_WAIT_MS)
  }
  return true
}

function freeBytes(): number {
  const { heap_size_limit: limit, used_heap_size: used } = getHeapStatistics()
  return limitOf(limit) - used
}

/** The limit of the whole heap has the young generation in it, which long-lived data cannot use. */
function limitOf(heap: number): number {
  const { maxOldGenerationSizeMb: old } = resourceLimits
  return old === undefined ? heap : old * MIB
}
