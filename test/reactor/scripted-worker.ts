/** A worker thread whose tasks do what a test says: wait at a gate, hang, die. */
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { FlowTask } from '../../src/mediation/worker-task.ts'
import { serveTasks } from '../../src/worker/task-server.ts'
import { BEGUN, GATE, MOST, NOW } from './scripted-tasks.ts'

/** Ends once the gate is open. */
async function hold({ cells: shared }: { readonly cells: SharedArrayBuffer }) {
  const cells = new Int32Array(shared)
  const now = Atomics.add(cells, NOW, 1) + 1
  for (let most = Atomics.load(cells, MOST); now > most; most = Atomics.load(cells, MOST)) {
    Atomics.compareExchange(cells, MOST, most, now)
  }
  Atomics.add(cells, BEGUN, 1)
  while (Atomics.load(cells, GATE) === 0) {
    const { async: isPending, value } = Atomics.waitAsync(cells, GATE, 0)
    if (isPending) await value
  }
  Atomics.sub(cells, NOW, 1)
  return { value: { kind: 'held' }, transfer: [] }
}

/** Blocks its thread until the gate is open. */
function block({ cells: shared }: { readonly cells: SharedArrayBuffer }) {
  const cells = new Int32Array(shared)
  Atomics.add(cells, BEGUN, 1)
  Atomics.notify(cells, BEGUN)
  while (Atomics.load(cells, GATE) === 0) Atomics.wait(cells, GATE, 0)
  return { value: { kind: 'held' }, transfer: [] }
}

/** Returns the bytes of its body, and counts that it has begun. */
function count({ cells, message }: { readonly cells: SharedArrayBuffer; readonly message: FlowTask['message'] }) {
  Atomics.add(new Int32Array(cells), BEGUN, 1)
  const { body } = message
  return { value: { kind: 'counted', bytes: body.kind === 'bytes' ? body.bytes : null }, transfer: [] }
}

/** Computes for so many milliseconds. */
function compute({ ms, cells }: { readonly ms: number; readonly cells: SharedArrayBuffer }) {
  Atomics.add(new Int32Array(cells), BEGUN, 1)
  for (const endMs = performance.now() + ms; performance.now() < endMs; );
  return { value: { kind: 'computed' }, transfer: [] }
}

/** Leaves 100 MiB of garbage outside of the heap, after the thread has told of them. */
async function litter(): Promise<number> {
  const held = Array.from({ length: 100 }, () => Buffer.alloc(1_048_576))
  await setTimeout(2500)
  return held.length
}

function exhaust(): never {
  const held: unknown[] = []
  for (;;) held.push(new Array(1_000_000).fill(held.length))
}

export const runTask = serveTasks(({ plan }) => ({
  hold,
  block,
  count,
  compute,
  exhaust,
  read: ({ path }: { readonly path: string }) => ({ value: readFileSync(path, 'utf8'), transfer: [] }),
  litter: async () => ({ value: await litter(), transfer: [] }),
  hang: () => {
    for (;;);
  },
  exit: () => process.exit(7),
  fail: () => {
    throw new TypeError('text of a client')
  },
  rest: () => Promise.withResolvers<never>().promise,
  plan: () => ({ value: plan.logLevel, transfer: [] }),
}))
