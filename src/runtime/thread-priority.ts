/** Priorities of threads: on Linux each thread has a nice value of its own (setpriority(2)). */
import { readdirSync, readFileSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

const NICE_MAX = 19
/** Folders of the threads of the process (proc_pid_task(5)). */
const THREADS = '/proc/self/task'
/** Name of the threads in which V8 compiles and collects garbage for all threads of the process. */
const V8_HELPER = /V8Worker\n$/

/**
 * Adds `nice` to the nice value of this thread, and gives V8's helper threads the same one. Other systems than Linux
 * know nice values of processes alone: there the call does nothing.
 */
export function lowerPriority(nice: number): void {
  if (process.platform !== 'linux') return
  try {
    const lowered = Math.min(NICE_MAX, getPriority() + nice)
    setPriority(lowered)
    for (const id of v8Helpers()) setPriority(id, lowered)
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
