/** Memory that all threads of the process share, by name. */
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'

/** Each thread has what the thread that started it had then. */
function keyOf(name: string): string {
  return `sluice.memory.${name}`
}

/** For a thread of a process whose main thread has shared none, such as a command or a test. */
const ofThread = new Map<string, SharedArrayBuffer>()

/** In the main thread, before it starts others. */
export function shareMemory(name: string, bytes: number): void {
  setEnvironmentData(keyOf(name), new SharedArrayBuffer(bytes))
}

/** Zeroed at first; that of the thread alone where the main thread has shared none. */
export function processMemory(name: string, bytes: number): SharedArrayBuffer {
  const shared = getEnvironmentData(keyOf(name)) ?? ofThread.get(name) ?? new SharedArrayBuffer(bytes)
  if (!(shared instanceof SharedArrayBuffer)) throw new TypeError(`${name} is no shared memory`)
  ofThread.set(name, shared)
  return shared
}
