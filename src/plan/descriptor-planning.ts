/**
 * Connection limits that follow from the open files of the process (`ulimit -n`): without them, idle clients would take
 * the descriptors of backends, health port, control socket and files (D168).
 */
import { readFileSync } from 'node:fs'

/** -1: no limit is known. */
export interface ConnectionLimits {
  /** Client connections of all listeners. */
  readonly clients: number
  /** Connections to all backends. */
  readonly backends: number
}

/** Descriptors of an idle process without reactors, and of each reactor with its listeners; both rounded up. */
const OWN = 40
const PER_REACTOR = 12
/** For management, health and control connections, databases, requests of the control thread, and files. */
const RESERVE_SHARE = 4
const RESERVE_MIN = 48
const RESERVE_MAX = 1024
/** Where fewer descriptors are left, the limit of the process is too low to work with. */
const CLIENTS_MIN = 8
const MANAGEMENT_MAX = 256
const HEALTH_MAX = 64

/** Limit of open files of this process; 0 if unknown. Node raises the soft limit to the hard one when it starts. */
export function openFileLimit(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? 0)
  } catch {
    // Other systems, and Linux without /proc.
    return 0
  }
}

/** Every client may have a backend connection of its own. `openFiles`: 0 if unknown. */
export function connectionLimits(openFiles: number, reactors: number): ConnectionLimits {
  if (openFiles === 0) return { clients: -1, backends: -1 }
  const left = openFiles - OWN - PER_REACTOR * reactors - reserve(openFiles)
  const clients = Math.max(CLIENTS_MIN, Math.floor(left / 2))
  return { clients, backends: clients }
}

/** Largest numbers of connections of the management listener and of the health port. `openFiles`: 0 if unknown. */
export function reservedConnections(openFiles: number): { readonly management: number; readonly health: number } {
  if (openFiles === 0) return { management: MANAGEMENT_MAX, health: HEALTH_MAX }
  return {
    management: Math.min(MANAGEMENT_MAX, Math.floor(reserve(openFiles) / 4)),
    health: Math.min(HEALTH_MAX, Math.floor(reserve(openFiles) / 8)),
  }
}

function reserve(openFiles: number): number {
  return Math.min(RESERVE_MAX, Math.max(RESERVE_MIN, Math.floor(openFiles / RESERVE_SHARE)))
}
