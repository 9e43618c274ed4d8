/** What this machine has to offer to a gateway. */
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { Configuration } from '../config/catalogue.ts'
import { planListeners } from '../primary/listener-plans.ts'
import { reactorsOf } from '../primary/planning.ts'

export interface Machine {
  readonly processors: number
  readonly reactors: number
  /** Files and sockets that a process may have open; 0 where that is not known. */
  readonly openFiles: number
}

export function machineFor(configuration: Configuration): Machine {
  return {
    processors: availableParallelism(),
    reactors: reactorsOf(configuration, planListeners(configuration)),
    openFiles: openFiles(),
  }
}

/** Linux alone says so in a file. */
function openFiles(): number {
  if (process.platform !== 'linux') return 0
  const limits = readFileSync('/proc/self/limits', 'utf8')
  return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? 0)
}
