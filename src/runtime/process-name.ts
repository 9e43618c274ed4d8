/**
 * A name for this run of the program, the same on all of its threads. Host name and process id are not enough: in
 * containers both may be those of another node, or of the program before it was killed.
 */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'

/** Each thread has what the thread that started it had then. */
const KEY = 'sluice.process'

/** In the main thread, before it starts others. */
export function nameProcess(): void {
  setEnvironmentData(KEY, randomBytes(12).toString('hex'))
}

export function processName(): string {
  return `${hostname()}:${process.pid}:${String(getEnvironmentData(KEY) ?? '')}`
}
