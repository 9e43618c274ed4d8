/** Scheduling of single threads by Linux: their nice values (setpriority(2)), and their waits for a processor. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import { basename } from 'node:path'
import { setFlagsFromString } from 'node:v8'

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
