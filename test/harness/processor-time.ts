/** Processor time of a test process, which a busy machine changes less than the time that passes. */
import { readFileSync } from 'node:fs'

/** Position of `cutime` behind the name of the program in `/proc/self/stat` (proc(5)), then `cstime`; unit 10 ms. */
const CHILDREN_AT = 13
const TICK_MS = 10

/** Milliseconds of this process with all threads, and of programs that it has started and that have ended. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000 + childrenMs()
}

function childrenMs(): number {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[CHILDREN_AT]) + Number(fields[CHILDREN_AT + 1])) * TICK_MS
  } catch {
    // Other systems have no such file.
    return 0
  }
}
