/**
 * CPU time that other programs use meanwhile, from `/proc`: that of all processors without that of this process and its
 * children. Time in interrupts is left out, because the network of the load causes most of it.
 */
import { readdirSync, readFileSync } from 'node:fs'

export interface OtherUse {
  /** Share of the time of all processors, 0 to 1. */
  readonly share: number
  /** The programs that used most, as `NAME (PID) 34 %`; empty where the system does not show them. */
  readonly programs: readonly string[]
}

interface ProcessTime {
  readonly name: string
  readonly parent: number
  readonly ticks: number
}

/** Ticks since the start of the system. */
export interface CpuTimes {
  readonly busy: number
  readonly all: number
  readonly processes: ReadonlyMap<number, ProcessTime>
}

const PROGRAMS_SHOWN = 3
const SHARE_SHOWN = 0.02

/** Null where there is no `/proc`. */
export function cpuTimes(root = '/proc'): CpuTimes | null {
  try {
    const [line = ''] = readFileSync(`${root}/stat`, 'latin1').split('\n')
    const [user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0, steal = 0] = line
      .split(/ +/)
      .slice(1)
      .map(Number)
    const busy = user + nice + system + steal
    return { busy, all: busy + idle + wait + irq + softirq, processes: processTimes(root) }
  } catch {
    return null
  }
}

function processTimes(root: string): ReadonlyMap<number, ProcessTime> {
  const ids = readdirSync(root).filter(name => /^\d+$/.test(name))
  return new Map(
    ids.flatMap(id => {
      const time = processTime(`${root}/${id}/stat`)
      return time === null ? [] : [[Number(id), time] as const]
    }),
  )
}

/** Null for a process that has ended meanwhile, or belongs to others who hide theirs. */
function processTime(file: string): ProcessTime | null {
  try {
    const text = readFileSync(file, 'latin1')
    // A name may contain blanks and brackets.
    const end = text.lastIndexOf(')')
    const fields = text.slice(end + 2).split(' ')
    const name = text.slice(text.indexOf('(') + 1, end)
    return { name, parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) }
  } catch {
    return null
  }
}

/** `own`: the process whose time, with that of its children, does not count. */
export function otherUse(before: CpuTimes | null, after: CpuTimes | null, own: number): OtherUse | null {
  if (before === null || after === null) return null
  const spent = [...after.processes].map(([id, { name, ticks }]) => ({
    ...{ id, name, isOwn: descendsFrom(after, id, own) },
    ticks: ticks - (before.processes.get(id)?.ticks ?? 0),
  }))
  const ours = spent.reduce((sum, { isOwn, ticks }) => sum + (isOwn ? ticks : 0), 0)
  const all = Math.max(1, after.all - before.all)
  const programs = spent
    .filter(({ isOwn, ticks }) => !isOwn && ticks / all >= SHARE_SHOWN)
    .toSorted((one, other) => other.ticks - one.ticks)
    .slice(0, PROGRAMS_SHOWN)
    .map(({ id, name, ticks }) => `${name} (${id}) ${Math.round((ticks / all) * 100)} %`)
  return { share: Math.min(1, Math.max(0, (after.busy - before.busy - ours) / all)), programs }
}

function descendsFrom({ processes }: CpuTimes, id: number, ancestor: number): boolean {
  for (let at = id; at > 0; at = processes.get(at)?.parent ?? 0) if (at === ancestor) return true
  return false
}
