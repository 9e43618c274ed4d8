/**
 * CPU time and memory of a process tree from /proc: of a process, all its descendants and all their threads. Thus a
 * proxy with a master and workers is measured as a whole.
 */
import { readdirSync, readFileSync } from 'node:fs'

/** Kernel clock ticks per second of the times in /proc/PID/stat (USER_HZ, 100 on every Linux that Node runs on). */
const TICKS_PER_SECOND = 100

export interface ProcessStat {
  readonly pid: number
  readonly parent: number
  readonly session: number
  /** The process has ended, and its parent has not waited for it. */
  readonly isZombie: boolean
  readonly userSeconds: number
  readonly systemSeconds: number
  /** CPU time of ended children that the process has waited for. */
  readonly endedChildrenSeconds: number
}

interface ProcessorTime {
  readonly userSeconds: number
  readonly systemSeconds: number
}

interface Memory {
  readonly rssMiB: number
  /** Proportional set size: a page shared by n processes counts as 1/n, which is fair to programs that fork. */
  readonly pssMiB: number
}

/** Fields count from the last parenthesis, because the command name in parentheses may contain some itself. */
export function parseStat(line: string): ProcessStat {
  const close = line.lastIndexOf(')')
  const fields = line.slice(close + 2).split(' ')
  return {
    pid: Number.parseInt(line, 10),
    parent: Number(fields[1]),
    session: Number(fields[3]),
    isZombie: fields[0] === 'Z',
    userSeconds: Number(fields[11]) / TICKS_PER_SECOND,
    systemSeconds: Number(fields[12]) / TICKS_PER_SECOND,
    endedChildrenSeconds: (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND,
  }
}

/** The root and all its descendants. */
export function processTree(root: number, all: readonly ProcessStat[]): ProcessStat[] {
  const members = new Set([root])
  // Children may precede their parents in the list, so repeat until nothing is added.
  for (let before = 0; before !== members.size; ) {
    before = members.size
    for (const process of all) if (members.has(process.parent)) members.add(process.pid)
  }
  return all.filter(process => members.has(process.pid))
}

export function allProcesses(): ProcessStat[] {
  return readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    try {
      return [parseStat(readFileSync(`/proc/${name}/stat`, 'latin1'))]
    } catch {
      return [] // The process ended between the listing and the read.
    }
  })
}

/** Process ids of the root and all its descendants. */
export function processTreeIds(root: number): number[] {
  return processTree(root, allProcesses()).map(process => process.pid)
}

export function processorTime(root: number): ProcessorTime {
  let userSeconds = 0
  let systemSeconds = 0
  for (const process of processTree(root, allProcesses())) {
    userSeconds += process.userSeconds
    systemSeconds += process.systemSeconds
  }
  return { userSeconds, systemSeconds }
}

/** CPU time so far of programs outside the bench. It distinguishes a busy machine from a slow proxy. */
export function otherProgramsSeconds(): number {
  // cpu  user nice system idle iowait irq softirq steal ...: `steal` is the time of other virtual machines.
  const [user, nice, system, , , irq, softirq, steal] = readFileSync('/proc/stat', 'latin1')
    .slice(5, 200)
    .trim()
    .split(' ')
    .map(ticks => Number.parseInt(ticks, 10) / TICKS_PER_SECOND)
  const everyone = user! + nice! + system! + irq! + softirq! + steal!
  const own = processTree(process.pid, allProcesses()).map(
    it => it.userSeconds + it.systemSeconds + it.endedChildrenSeconds,
  )
  return everyone - own.reduce((sum, seconds) => sum + seconds, 0)
}

export function memory(root: number): Memory {
  let rssKiB = 0
  let pssKiB = 0
  for (const { pid } of processTree(root, allProcesses())) {
    let rollup: string
    try {
      rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')
    } catch {
      continue
    }
    rssKiB += Number(/^Rss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0)
    pssKiB += Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0)
  }
  return { rssMiB: rssKiB / 1024, pssMiB: pssKiB / 1024 }
}
