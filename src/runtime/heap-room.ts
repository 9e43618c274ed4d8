/**
 * Room in the heap of this thread. A thread that reaches its limit within native code, as a parser of JSON is, ends the
 * whole process, because V8 cannot stop there; so what needs much memory asks first.
 */
import { getHeapStatistics } from 'node:v8'
import { resourceLimits } from 'node:worker_threads'
import { collectGarbage } from './heap-trim.ts'

/** Smaller needs are met by what V8 keeps in reserve. */
const MIB = 1_048_576
const SMALL_BYTES = MIB

/** True if `bytes` more fit into the heap. Where they do not at once, garbage is collected, which blocks the thread. */
export function hasHeapRoom(bytes: number): boolean {
  if (bytes < SMALL_BYTES || freeBytes() >= bytes) return true
  collectGarbage('regular')
  return freeBytes() >= bytes
}

function freeBytes(): number {
  const { heap_size_limit: limit, used_heap_size: used } = getHeapStatistics()
  const { maxOldGenerationSizeMb: old } = resourceLimits
  // The limit of the whole heap has the young generation in it, which long-lived data cannot use.
  return (old === undefined ? limit : old * MIB) - used
}
