/**
 * A name for this run of the program, the same on all of its threads. Host name and process id are not enough: in
 * containers both may be those of another node, or of the program before it was killed. The name stands in the data
 * folder too, so that the next process with that folder knows the name of the one before.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'

/** Each thread has what the thread that started it had then. */
const KEY = 'sluice.process'
const PREDECESSOR = 'sluice.predecessor'
const FILE = 'process'

/** In the main thread, before it starts others. */
export function nameProcess(dataDir: string): void {
  setEnvironmentData(KEY, randomBytes(12).toString('hex'))
  setEnvironmentData(PREDECESSOR, recordedName(dataDir))
}

export function processName(): string {
  return `${hostname()}:${process.pid}:${String(getEnvironmentData(KEY) ?? '')}`
}

/** By the process that holds the lock of the data folder. Throws errors of the file system. */
export function recordProcessName(dataDir: string): void {
  writeFileSync(join(dataDir, FILE), processName(), { mode: 0o600 })
}

/**
 * True if the process of that name is certainly gone: it was the one before this one in the data folder, on a host of
 * this name, and has ended. Where its id belongs to another process by now, nobody can say so.
 */
export function isGoneProcess(name: string): boolean {
  if (name === '' || name !== String(getEnvironmentData(PREDECESSOR) ?? '')) return false
  const [, host, id] = /^(.+):(\d+):[\da-f]*$/.exec(name) ?? []
  const pid = Number(id)
  return host === hostname() && name !== processName() && (pid === process.pid || hasEnded(pid))
}

/** '' where there is none. */
function recordedName(dataDir: string): string {
  try {
    return readFileSync(join(dataDir, FILE), 'utf8')
  } catch {
    return ''
  }
}

function hasEnded(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
