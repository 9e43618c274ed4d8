/** Scheduling of single threads by Linux: nice values (setpriority(2)), time slices, and waits for a processor. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import { basename } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { cFunction } from './c-functions.ts'

const NICE_MAX = 19
/** Folders of the threads of the process (proc_pid_task(5)). */
const THREADS = '/proc/self/task'
/** Name of the threads in which V8 compiles and collects garbage for all threads of the process. */
const V8_HELPER = /V8Worker\n$/
const NANOSECONDS_PER_MS = 1e6

/**
 * Gives a thread, and V8's helper threads, a nice value of that of this thread plus `nice`. Collections of the young
 * generation then do without helpers: a reactor would wait for one that waits for a processor. `id`: of the system; 0:
 * it is not known, and the call does nothing. Other systems than Linux know nice values of processes alone: there the
 * call does nothing either.
 */
export function lowerPriority(id: number, nice: number): void {
  if (process.platform !== 'linux' || id === 0) return
  try {
    const lowered = Math.min(NICE_MAX, getPriority() + nice)
    setPriority(id, lowered)
    setFlagsFromString('--no-parallel-scavenge')
    for (const helper of v8Helpers()) setPriority(helper, lowered)
  } catch {
    // A sandbox may refuse the calls. Then threads compete for processors as equals; nothing else changes.
  }
}

/** Returns the ids of V8's helper threads. They exist as long as the process; another thread may end meanwhile. */
function v8Helpers(): readonly number[] {
  return readdirSync(THREADS)
    .filter(id => {
      try {
        return V8_HELPER.test(readFileSync(`${THREADS}/${id}/comm`, 'utf8'))
      } catch {
        return false
      }
    })
    .map(Number)
}

/** Returns the id of this thread in the system; 0 where it is not known. */
export function systemThreadId(): number {
  try {
    return Number(basename(readlinkSync('/proc/thread-self')))
  } catch {
    return 0
  }
}

/**
 * Returns how long a thread of the process has waited for a processor since its start, in milliseconds
 * (/proc/PID/task/TID/schedstat); 0 where the system does not tell.
 */
export function processorWaitMs(id: number): number {
  try {
    return Number(readFileSync(`${THREADS}/${id}/schedstat`, 'latin1').split(' ')[1]) / NANOSECONDS_PER_MS
  } catch {
    return 0
  }
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
/** Time slices in nanoseconds: the shortest one that Linux gives, and 0 for the default one. */
const SLICES_NS = { short: 100_000n, default: 0n } as const

/**
 * Sets the time slice of this thread. A thread with a short slice that becomes ready, and has not had more than its
 * share, takes the processor at once from a thread with a longer slice. That thread otherwise goes on until a tick of
 * the system, for up to 4 ms (D955). Shares of the processor stay the same. A thread inherits the slice of the thread
 * that starts it. Linux has such slices from 6.12 on. Returns whether the system has accepted the slice.
 */
export function setTimeSlice(slice: keyof typeof SLICES_NS): boolean {
  const numbers = process.platform === 'linux' ? SCHEDULING_CALLS[process.arch] : undefined
  const call = cFunction('syscall', { arguments: ['i64', 'i64', 'buffer', 'i64', 'i64'], return: 'i64' })
  if (numbers === undefined || call === undefined) return false
  const attributes = Buffer.alloc(ATTRIBUTES_BYTES)
  if (call(numbers.get, 0n, attributes, BigInt(ATTRIBUTES_BYTES), 0n) !== 0n) return false
  if (attributes.readUInt32LE(POLICY_AT) !== SCHED_OTHER) return false
  attributes.writeBigUInt64LE(SLICES_NS[slice], SLICE_AT)
  return call(numbers.set, 0n, attributes, 0n, 0n) === 0n
}
