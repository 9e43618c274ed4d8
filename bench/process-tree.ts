/**
 * What a process tree has used, read from /proc: processor time and memory of a process and all its descendants,
 * threads included. A proxy with a master and workers, or with worker threads, is charged for all of them.
 */
import { readdirSync, readFileSync } from 'node:fs'

/** Kernel clock ticks per second of the times in /proc/PID/stat (USER_HZ, 100 on every Linux that Node runs on). */
const TICKS_PER_SECOND = 100

export interface ProcessStat {
  readonly pid: number
  readonly parent: number
  readonly userSeconds: number
  readonly systemSeconds: number
  /** What its ended children took, as far as it has waited for them. */
  readonly endedChildrenSeconds: number
}

interface ProcessorTime {
  readonly userSeconds: number
  readonly systemSeconds: number
}

interface Memory {
  readonly rssMiB: number
  /** Shared pages counted by halves, thirds, ...: the fair figure for a tree that forks. */
  readonly pssMiB: number
}

/**
 * The command name stands in parentheses and may itself hold spaces and parentheses: fields count from the last one.
 */
export function parseStat(line: string): ProcessStat {
  const close = line.lastIndexOf(')')
  const fields = line.slice(close + 2).split(' ')
  return {
    pid: Number.parseInt(line, 10),
    parent: Number(fields[1]),
    userSeconds: Number(fields[11]) / TICKS_PER_SECOND,
    systemSeconds: Number(fields[12]) / TICKS_PER_SECOND,
    endedChildrenSeconds: (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND,
  }
}

export function treeOf(root: number, all: readonly ProcessStat[]): ProcessStat[] {
  const members = new Set([root])
  // Parents may stand behind their children in the list, so pass over it until nothing is added.
  for (let before = 0; before !== members.size; ) {
    before = members.size
    for (const process of all) if (members.has(process.parent)) members.add(process.pid)
  }
  return all.filter(process => members.has(process.pid))
}

function everyProcess(): ProcessStat[] {
  return readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    try {
      return [parseStat(readFileSync(`/proc/${name}/stat`, 'latin1'))]
    } catch {
      return [] // It ended between the listing and the read.
    }
  })
}

/** The process ids of a tree, its root among them. */
export function membersOf(root: number): number[] {
  return treeOf(root, everyProcess()).map(process => process.pid)
}

export function processorTime(root: number): ProcessorTime {
  let userSeconds = 0
  let systemSeconds = 0
  for (const process of treeOf(root, everyProcess())) {
    userSeconds += process.userSeconds
    systemSeconds += process.systemSeconds
  }
  return { userSeconds, systemSeconds }
}

/**
 * Processor time so far that programs outside the bench's own tree took. What somebody else runs on the machine shows
 * up as a slow round; with this it can be told from a slow proxy.
 */
export function secondsElsewhere(): number {
  // cpu  user nice system idle iowait irq softirq steal ...: `steal` is what other virtual machines took.
  const [user, nice, system, , , irq, softirq, steal] = readFileSync('/proc/stat', 'latin1')
    .slice(5, 200)
    .trim()
    .split(' ')
    .map(ticks => Number.parseInt(ticks, 10) / TICKS_PER_SECOND)
  const everyone = user! + nice! + system! + irq! + softirq! + steal!
  const own = treeOf(process.pid, everyProcess()).map(it => it.userSeconds + it.systemSeconds + it.endedChildrenSeconds)
  return everyone - own.reduce((sum, seconds) => sum + seconds, 0)
}

export function memory(root: number): Memory {
  let rssKiB = 0
  let pssKiB = 0
  for (const { pid } of treeOf(root, everyProcess())) {
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
