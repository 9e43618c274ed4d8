/** Counters for tests: specifications, threads of a process, and threads that die in the middle. */
import { Worker } from 'node:worker_threads'
import { type Counter, type CounterSpec, CounterTable } from '../../src/throttle/counter-table.ts'
import { CounterListing } from '../../src/throttle/counter-listing.ts'
import type { Quota } from '../../src/throttle/policy.ts'

/** 2026-11-22T00:00:00Z, the beginning of a day. */
export const DAY_MS = Date.UTC(2026, 10, 22)

export function quotaOf(limit: number, given: Partial<Quota> = {}): Quota {
  return { type: 'requests', limit, unit: 'min', units: 1, window: 'tumbling', ...given }
}

export function specOf(key: string, quota: Quota, given: Partial<CounterSpec> = {}): CounterSpec {
  return { key, quota, overruns: false, policy: 'subscription:Gold', failMode: 'closed', ...given }
}

/** A clock that a test moves, and tables of several threads that read it. */
export class Clock {
  nowMs = DAY_MS
  readonly read = (): number => this.nowMs
}

export function tables(threads: number, counters: number, clock: () => number): readonly CounterTable[] {
  const memory = CounterTable.allocate(counters)
  return Array.from({ length: threads }, (_, at) => new CounterTable(memory, clock, at + 1))
}

/** Requests that one counter admits in a row. */
export function admitted(table: CounterTable, counter: Counter, tries: number): number {
  let count = 0
  for (let at = 0; at < tries; at++) if (table.admit([counter]) < 0) count++
  return count
}

/** What a thread of `startThread` gets besides `workerData.given`. */
const PRELUDE = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { memory, owner, given } = workerData
  import(workerData.module).then(async ({ CounterTable }) => {`

/** Starts a thread that runs `body`, which sees CounterTable, memory, owner, given and parentPort. */
export function startThread(body: string, memory: SharedArrayBuffer, owner: number, given: unknown): Worker {
  const module = import.meta.resolve('../../src/throttle/counter-table.ts')
  const source = `${PRELUDE}${body}})`
  return new Worker(source, { eval: true, workerData: { module, memory, owner, given } })
}

type AtomicName = 'compareExchange' | 'store' | 'add' | 'sub'
const NAMES: readonly AtomicName[] = ['compareExchange', 'store', 'add', 'sub']

/** Runs `body`; `before` is called before each atomic write, with its number from 0. */
export function withAtomicWrites(before: (write: number) => void, body: () => void): void {
  const atomics = Atomics as unknown as Record<AtomicName, (...args: unknown[]) => unknown>
  const originals = NAMES.map(name => [name, atomics[name]] as const)
  let write = 0
  for (const [name, original] of originals) {
    atomics[name] = (...args) => {
      before(write++)
      return original(...args)
    }
  }
  try {
    body()
  } finally {
    for (const [name, original] of originals) atomics[name] = original
  }
}

/** Runs `body` on a thread that dies before its atomic write number `write`. False: `body` has ended before. */
export function diesAt(write: number, body: () => void): boolean {
  const death = new Error('the thread is dead')
  let hasDied = false
  try {
    withAtomicWrites(at => {
      // The dead thread writes nothing more, not even the end of its lock.
      if (at < write) return
      hasDied = true
      throw death
    }, body)
  } catch (error) {
    if (error !== death) throw error
  }
  return hasDied
}

/** The counters of a table as commands and the state file see them. */
export function listing(table: CounterTable): CounterListing {
  return new CounterListing(table)
}
