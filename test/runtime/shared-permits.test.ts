/** Permits of several threads at once: never more than the limit, no wake-up lost, none lost with a dead thread. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { OwnerLock } from '../../src/runtime/owner-lock.ts'
import { type PermitLimits, SharedPermits } from '../../src/runtime/shared-permits.ts'

const THREADS = 4
const MODULE = import.meta.resolve('../../src/runtime/shared-permits.ts')

/** Has several tasks at once, each of which enters, waits and holds its permit for a turn; counts them in `cells`. */
const HOLDER = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { shared, threads, thread, limits, tasks, cells } = workerData
  const counts = new Int32Array(cells)
  // Atomics.waitAsync alone keeps no thread alive.
  parentPort.on('message', () => {})
  const turn = () => new Promise(resolve => setImmediate(resolve))
  import(workerData.module).then(async ({ SharedPermits }) => {
    const permits = new SharedPermits(shared, threads, thread)
    const waiting = new Map()
    let looking = null
    const take = isImpatient => {
      for (let job; (job = permits.takeWaiting(0, limits, isImpatient)) !== null; ) waiting.get(job)()
    }
    const look = async () => {
      let isImpatient = false
      await undefined
      while (permits.waiting(0) > 0) {
        const wakes = permits.wakes
        take(isImpatient)
        if (permits.waiting(0) > 0) isImpatient = !(await permits.woken(wakes))
      }
      looking = null
    }
    const run = async () => {
      for (let at = 0; at < tasks; at++) {
        const job = { bytes: 1, sinceMs: performance.timeOrigin + performance.now() }
        const decision = permits.enter(0, limits, job)
        if (decision === 'waits') {
          const started = new Promise(resolve => waiting.set(job, resolve))
          looking ??= look()
          await started
          waiting.delete(job)
        } else if (decision !== 'runs') {
          Atomics.add(counts, 2, 1)
          continue
        }
        const now = Atomics.add(counts, 0, 1) + 1
        if (now > Atomics.load(counts, 1)) Atomics.store(counts, 1, now)
        if (now > limits.max) Atomics.add(counts, 3, 1)
        await turn()
        Atomics.sub(counts, 0, 1)
        if (permits.release(0, limits)) take(false)
      }
    }
    await Promise.all(Array.from({ length: 8 }, run))
    parentPort.postMessage('done')
  })`

function start(
  shared: SharedArrayBuffer,
  limits: PermitLimits,
  tasks: number,
  thread: number,
  cells: SharedArrayBuffer,
) {
  const workerData = { module: MODULE, shared, threads: THREADS, thread, limits, tasks, cells }
  return new Worker(HOLDER, { eval: true, workerData })
}

/** [core, max, queue length]; with a queue for every task none is refused. */
for (const [core, max, queueLength] of [
  [1, 1, -1],
  [3, 3, -1],
  [2, 5, 4],
  [1, 2, 0],
] as const) {
  test(`${THREADS} threads with ${core} to ${max} permits and a queue of ${queueLength}`, async () => {
    const limits = { core, max, queueLength, queueBytes: 1_000_000 }
    const shared = SharedPermits.allocate(THREADS, 1)
    const cells = new SharedArrayBuffer(16)
    const workers = Array.from({ length: THREADS }, (_, thread) => start(shared, limits, 200, thread, cells))
    await Promise.all(workers.map(worker => once(worker, 'message')))
    for (const worker of workers) await worker.terminate()
    const [now, , refused, beyond] = new Int32Array(cells)
    assert.deepEqual([now, beyond], [0, 0])
    if (queueLength < 0) assert.equal(refused, 0)
    const { running, waiting, waitingBytes, highest } = SharedPermits.counts(shared, THREADS, 0)
    assert.deepEqual([running, waiting, waitingBytes], [0, 0, 0])
    assert.ok(highest <= max, String(highest))
  })
}

test('threads that are killed at any moment leave no permit behind', async () => {
  const limits = { core: 2, max: 2, queueLength: -1, queueBytes: 1_000_000 }
  const shared = SharedPermits.allocate(THREADS, 1)
  const cells = new SharedArrayBuffer(16)
  const survivors = [2, 3].map(thread => start(shared, limits, 400, thread, cells))
  const done = Promise.all(survivors.map(worker => once(worker, 'message')))
  for (let round = 0; round < 10; round++) {
    const victims = [0, 1].map(thread => start(shared, limits, 100_000, thread, cells))
    while (SharedPermits.counts(shared, THREADS, 0).running === 0) await new Promise(resolve => setImmediate(resolve))
    for (const [thread, victim] of victims.entries()) {
      await victim.terminate()
      SharedPermits.clear(shared, THREADS, thread)
    }
  }
  await done
  for (const worker of survivors) await worker.terminate()
  const { running, waiting, waitingBytes } = SharedPermits.counts(shared, THREADS, 0)
  assert.deepEqual([running, waiting, waitingBytes], [0, 0, 0])
})

const LIMITS: PermitLimits = { core: 2, max: 2, queueLength: -1, queueBytes: 1000 }
/** [permits that tasks of both threads hold, those of the task's own callers, queue, decision]. */
const LOOPS: readonly (readonly [running: readonly [number, number], held: number, queue: number, decision: string])[] =
  [
    [[0, 0], 0, -1, 'runs'],
    [[1, 0], 1, -1, 'runs'],
    [[1, 1], 2, -1, 'loop'],
    [[2, 0], 2, 10, 'loop'],
    [[2, 0], 2, 0, 'loop'],
    [[1, 1], 1, -1, 'waits'],
    [[1, 1], 1, 0, 'queue-full'],
    [[1, 1], 0, -1, 'waits'],
  ]

test('D531: a task that only its own callers could make a permit free for is refused', () => {
  for (const [running, held, queueLength, decision] of LOOPS) {
    const shared = SharedPermits.allocate(2, 1)
    const threads = [0, 1].map(thread => new SharedPermits(shared, 2, thread))
    const task = () => ({ bytes: 1, sinceMs: 1 })
    for (const [thread, count] of running.entries()) {
      for (let at = 0; at < count; at++) assert.equal(threads[thread]!.enter(0, LIMITS, task()), 'runs')
    }
    const limits = { ...LIMITS, queueLength }
    const told = { permits: [held], isAlone: true }
    assert.equal(threads[1]!.enter(0, limits, task(), told), decision, JSON.stringify([running, held, queueLength]))
  }
})

test('D531: several loops that hold all permits for each other are noticed by the last of them', () => {
  for (const [first, last] of [
    [0, 1],
    [1, 1],
  ] as const) {
    const shared = SharedPermits.allocate(2, 1)
    const threads = [0, 1].map(thread => new SharedPermits(shared, 2, thread))
    const task = () => ({ bytes: 1, sinceMs: 1 })
    for (const thread of threads) assert.equal(thread.enter(0, LIMITS, task()), 'runs')
    const enter = (thread: number, isAlone = true, waiting = task()) =>
      threads[thread]!.enter(0, LIMITS, waiting, { permits: [1], isAlone })
    const waiting = task()
    assert.equal(enter(first, true, waiting), 'waits')
    // A call beside another one could count a permit twice.
    assert.equal(enter(0, false), 'waits')
    assert.equal(enter(last), 'loop')
    assert.equal(threads[first]!.leave(0, waiting), true)
    assert.equal(enter(last), 'waits')
    SharedPermits.clear(shared, 2, last)
    assert.notEqual(enter(0), 'loop')
  }
})

/** A task that enters a row whose callers hold permits of rows 0 and 1. */
type Arrival = readonly [row: number, held: readonly number[], decision: string, isAlone?: boolean]

/** [what, permits that tasks hold of rows 0, 1 and 2, tasks that arrive one after the other]. */
const CROSS_LOOPS: readonly (readonly [what: string, running: readonly number[], arrivals: readonly Arrival[]])[] = [
  [
    'two rows wait for each other',
    [1, 1, 0],
    [
      [1, [1, 0], 'waits'],
      [0, [0, 1], 'loop'],
    ],
  ],
  [
    'a task without callers waits beside',
    [1, 1, 1],
    [
      [1, [], 'waits'],
      [1, [1, 0], 'waits'],
      [0, [0, 1], 'loop'],
    ],
  ],
  [
    'a permit of the first row can become free',
    [2, 1, 0],
    [
      [1, [1, 0], 'waits'],
      [0, [0, 1], 'waits'],
      [1, [1, 0], 'loop'],
    ],
  ],
  [
    'a permit of the other row can become free',
    [1, 2, 0],
    [
      [1, [1, 0], 'waits'],
      [0, [0, 1], 'waits'],
    ],
  ],
  ['callers hold permits of both rows', [1, 1, 0], [[0, [1, 1], 'loop']]],
  ['callers of one row wait for the other', [1, 1, 0], [[1, [1, 0], 'waits']]],
  [
    'a call beside another one could count a permit twice',
    [1, 1, 0],
    [
      [1, [1, 0], 'waits', false],
      [0, [0, 1], 'waits'],
    ],
  ],
]

test('D642: a loop over several rows is noticed by the task that closes it', () => {
  for (const [what, running, arrivals] of CROSS_LOOPS) {
    const shared = SharedPermits.allocate(2, running.length)
    const threads = [0, 1].map(thread => new SharedPermits(shared, 2, thread))
    const task = () => ({ bytes: 1, sinceMs: 1 })
    for (const [row, count] of running.entries()) {
      const limits = { ...LIMITS, core: count, max: count }
      for (let at = 0; at < count; at++) assert.equal(threads[at % 2]!.enter(row, limits, task()), 'runs')
    }
    for (const [at, [row, permits, decision, isAlone = true]] of arrivals.entries()) {
      const limits = { ...LIMITS, core: running[row]!, max: running[row]! }
      const decided = threads[at % 2]!.enter(row, limits, task(), { permits, isAlone })
      assert.equal(decided, decision, `${what}, task ${at + 1}`)
    }
  }
})

test('D642: tasks that leave the queue, or whose thread dies, close no loop over several rows', () => {
  const shared = SharedPermits.allocate(2, 2)
  const [own, other] = [0, 1].map(thread => new SharedPermits(shared, 2, thread)) as [SharedPermits, SharedPermits]
  const task = () => ({ bytes: 1, sinceMs: 1 })
  const limits = { ...LIMITS, core: 1, max: 1 }
  for (const row of [0, 1]) assert.equal(own.enter(row, limits, task()), 'runs')
  const waiting = task()
  const secondToFirst = { permits: [0, 1], isAlone: true }
  assert.equal(other.enter(1, limits, waiting, { permits: [1, 0], isAlone: true }), 'waits')
  assert.equal(own.enter(0, limits, task(), secondToFirst), 'loop')
  assert.equal(other.leave(1, waiting), true)
  const first = task()
  assert.equal(own.enter(0, limits, first, secondToFirst), 'waits')
  assert.equal(own.leave(0, first), true)
  assert.equal(other.enter(1, limits, waiting, { permits: [1, 0], isAlone: true }), 'waits')
  SharedPermits.clear(shared, 2, 1)
  assert.equal(own.enter(0, limits, task(), secondToFirst), 'waits')
})

/** Cells of the lock in the header of the permits. */
const LOCK = 0
const TENURES = 1

test('while the lock is not free a task is refused as busy, and what has changed meanwhile is told later', () => {
  const shared = SharedPermits.allocate(2, 1)
  const [own, other] = [0, 1].map(thread => new SharedPermits(shared, 2, thread)) as [SharedPermits, SharedPermits]
  const task = () => ({ bytes: 1, sinceMs: 1 })
  const limits = { ...LIMITS, core: 1, max: 1 }
  const running = () => SharedPermits.counts(shared, 2, 0).running
  assert.equal(own.enter(0, limits, task()), 'runs')
  const waiting = task()
  assert.equal(other.enter(0, limits, waiting), 'waits')
  const lock = new OwnerLock(new Int32Array(shared, 0, 4), LOCK, TENURES, 9)
  assert.equal(lock.acquire(), true)
  assert.equal(own.enter(0, limits, task()), 'busy')
  assert.equal(own.release(0, limits), false)
  assert.deepEqual([own.isStale(0), running()], [true, 1])
  assert.equal(other.takeWaiting(0, limits, true), null)
  lock.release()
  // The permit is on offer to the other thread.
  assert.equal(own.republish(0, limits), false)
  assert.deepEqual([own.isStale(0), running()], [false, 0])
  assert.equal(other.takeWaiting(0, limits, false), waiting)
  assert.equal(running(), 1)
})

/** Permits of two threads in one row, and tasks by name. `core` of 1. */
function twoThreads() {
  const shared = SharedPermits.allocate(2, 1)
  const threads = [0, 1].map(thread => new SharedPermits(shared, 2, thread)) as [SharedPermits, SharedPermits]
  const counts = () => SharedPermits.counts(shared, 2, 0)
  return { threads, counts }
}

const SINGLE: PermitLimits = { core: 1, max: 1, queueLength: 1, queueBytes: 1000 }
const task = (sinceMs: number) => ({ bytes: 1, sinceMs })

test('D805: a suspended task leaves its permit to others, and goes on before a later one begins', () => {
  const { threads, counts } = twoThreads()
  const [first, second] = threads
  const [old, next, last] = [task(1), task(2), task(3)]
  assert.equal(first.enter(0, SINGLE, old), 'runs')
  assert.equal(first.suspend(0, SINGLE), false)
  assert.deepEqual([counts().running, counts().suspended], [0, 1])
  assert.equal(second.enter(0, SINGLE, next), 'runs')
  assert.equal(second.enter(0, SINGLE, last), 'waits')
  // The queue is full, which refuses no task that has begun.
  assert.equal(first.resume(0, SINGLE, old), 'waits')
  assert.deepEqual([counts().running, counts().waiting, counts().suspended], [1, 2, 0])
  assert.equal(second.release(0, SINGLE), false)
  assert.equal(second.takeWaiting(0, SINGLE, false), null)
  assert.equal(first.takeWaiting(0, SINGLE, false), old)
  assert.equal(first.release(0, SINGLE), false)
  assert.equal(second.takeWaiting(0, SINGLE, false), last)
  assert.deepEqual([counts().running, counts().waiting, counts().highest], [1, 0, 1])
})

test('D805: on one thread, too, a task that goes on comes first', () => {
  const { threads } = twoThreads()
  const [old, next, last] = [task(1), task(2), task(3)]
  const [permits] = threads
  const limits = { ...SINGLE, queueLength: -1 }
  assert.equal(permits.enter(0, limits, old), 'runs')
  permits.suspend(0, limits)
  assert.equal(permits.enter(0, limits, next), 'runs')
  assert.equal(permits.enter(0, limits, last), 'waits')
  assert.equal(permits.resume(0, limits, old), 'waits')
  assert.equal(permits.release(0, limits), true)
  assert.equal(permits.takeWaiting(0, limits, false), old)
})

test('D805: tasks that go on and tasks that begin take turns, so that neither waits for ever', () => {
  const { threads } = twoThreads()
  const [permits] = threads
  const limits = { ...SINGLE, queueLength: -1 }
  const returning = [task(1), task(2), task(3)]
  for (const each of returning) {
    assert.equal(permits.enter(0, limits, each), 'runs')
    permits.suspend(0, limits)
  }
  const beginning = [task(4), task(5), task(6), task(7)]
  assert.equal(permits.enter(0, limits, task(0)), 'runs')
  for (const each of beginning) assert.equal(permits.enter(0, limits, each), 'waits')
  for (const each of returning) assert.equal(permits.resume(0, limits, each), 'waits')
  const taken: unknown[] = []
  for (let at = 0; at < 7; at++) {
    assert.equal(permits.release(0, limits), true)
    taken.push(permits.takeWaiting(0, limits, false))
  }
  const [r, b] = [returning, beginning]
  assert.deepEqual(taken, [r[0], b[0], r[1], b[1], r[2], b[2], b[3]])
})

test('D805: tasks that wait to go on fill no bounded queue', () => {
  const { threads, counts } = twoThreads()
  const [first, second] = threads
  const old = task(1)
  assert.equal(first.enter(0, SINGLE, old), 'runs')
  first.suspend(0, SINGLE)
  assert.equal(second.enter(0, SINGLE, task(2)), 'runs')
  assert.equal(first.resume(0, SINGLE, old), 'waits')
  assert.equal(second.enter(0, SINGLE, task(3)), 'waits')
  assert.equal(first.enter(0, SINGLE, task(4)), 'queue-full')
  assert.equal(counts().waiting, 2)
})

test('D806: a task that is to end waits for no turn, and is interrupted no longer', () => {
  const { threads } = twoThreads()
  const [permits] = threads
  const limits = { ...SINGLE, queueLength: -1 }
  const [goesOn, ends, begins] = [task(1), task(2), task(3)]
  for (const each of [goesOn, ends]) {
    assert.equal(permits.enter(0, limits, each), 'runs')
    permits.suspend(0, limits)
  }
  assert.equal(permits.enter(0, limits, task(0)), 'runs')
  assert.equal(permits.enter(0, limits, begins), 'waits')
  assert.equal(permits.resume(0, limits, goesOn), 'waits')
  assert.equal(permits.interrupted(0), 2)
  assert.equal(permits.resume(0, limits, ends, undefined, 'end'), 'waits')
  assert.equal(permits.interrupted(0), 1)
  for (const each of [ends, goesOn, begins]) {
    assert.equal(permits.release(0, limits), true)
    assert.equal(permits.takeWaiting(0, limits, false), each)
  }
})

/** [permits that callers of the task hold, decision of its return]. */
for (const [held, decision] of [
  [0, 'waits'],
  [1, 'loop'],
] as const) {
  test(`D805: a task that would go on while its callers hold ${held} of 1 permit: ${decision}`, () => {
    const { threads, counts } = twoThreads()
    const [first, second] = threads
    const old = task(1)
    assert.equal(first.enter(0, SINGLE, old), 'runs')
    first.suspend(0, SINGLE)
    assert.equal(second.enter(0, SINGLE, task(2)), 'runs')
    assert.equal(first.resume(0, SINGLE, old, { permits: [held], isAlone: true }), decision)
    assert.equal(counts().suspended, decision === 'loop' ? 1 : 0)
  })
}

test('D805: suspended tasks that end, and those of a dead thread, are counted no more', () => {
  const shared = SharedPermits.allocate(2, 1)
  const permits = new SharedPermits(shared, 2, 0)
  const limits = { ...SINGLE, core: 2, max: 2 }
  for (let at = 0; at < 2; at++) {
    assert.equal(permits.enter(0, limits, task(at)), 'runs')
    permits.suspend(0, limits)
  }
  permits.endSuspended(0, limits)
  assert.equal(SharedPermits.counts(shared, 2, 0).suspended, 1)
  SharedPermits.clear(shared, 2, 0)
  assert.equal(SharedPermits.counts(shared, 2, 0).suspended, 0)
})
