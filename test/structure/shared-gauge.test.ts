import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { SharedGauge } from '../../src/structure/shared-gauge.ts'

function gauges(threads: number, rows: number): readonly SharedGauge[] {
  const shared = SharedGauge.allocate(threads, rows)
  return Array.from({ length: threads }, (_, thread) => new SharedGauge(shared, threads, thread))
}

test('a limit holds over all threads', () => {
  const [a, b] = gauges(2, 3)
  for (let i = 0; i < 3; i++) assert.ok(a!.take(1, 5))
  assert.ok(b!.take(1, 5))
  assert.ok(b!.take(1, 5))
  assert.ok(!a!.take(1, 5))
  assert.ok(!b!.take(1, 5))
  assert.equal(a!.sum(1), 5, 'a refusal takes nothing')
  b!.give(1)
  assert.ok(a!.take(1, 5))
})

test('rows do not know each other', () => {
  const [a] = gauges(1, 3)
  assert.ok(a!.take(0, 1))
  assert.ok(a!.take(2, 1))
  assert.equal(a!.sum(1), 0)
  assert.ok(!a!.take(0, 1))
})

test('-1 is no limit, and counts all the same', () => {
  const [a, b] = gauges(2, 1)
  for (let i = 0; i < 1000; i++) assert.ok(a!.take(0, -1))
  assert.equal(b!.sum(0), 1000)
})

test('what a dead thread held is free', () => {
  const shared = SharedGauge.allocate(2, 2)
  const [alive, dead] = [new SharedGauge(shared, 2, 0), new SharedGauge(shared, 2, 1)]
  alive.take(0, 4)
  for (let i = 0; i < 3; i++) dead.take(0, 4)
  assert.ok(!alive.take(0, 4))
  SharedGauge.clear(shared, 2, 1)
  assert.equal(alive.sum(0), 1)
  assert.ok(alive.take(0, 4))
})

/** Takes until it is refused many times in a row; answers how many it got. */
const TAKER = `
  const { parentPort, workerData } = require('node:worker_threads')
  import(workerData.module).then(({ SharedGauge }) => {
    const gauge = new SharedGauge(workerData.shared, workerData.threads, workerData.thread)
    let taken = 0
    for (let refused = 0; refused < 20_000; ) {
      if (gauge.take(0, workerData.limit)) taken++
      else refused++
    }
    parentPort.postMessage(taken)
  })`

test('threads that take at the same time never get more than the limit together, and in the end no less', async () => {
  const threads = 3
  const limit = 5000
  const shared = SharedGauge.allocate(threads, 1)
  const module = import.meta.resolve('../../src/structure/shared-gauge.ts')
  const counts = await Promise.all(
    Array.from({ length: threads }, async (_, thread) => {
      const worker = new Worker(TAKER, { eval: true, workerData: { module, shared, threads, thread, limit } })
      const [taken] = await once(worker, 'message')
      return taken as number
    }),
  )
  assert.equal(
    counts.reduce((sum, taken) => sum + taken),
    limit,
  )
  assert.equal(new SharedGauge(shared, threads, 0).sum(0), limit)
})
