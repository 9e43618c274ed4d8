/** Shared gauge: limits over threads, and the column of a dead thread. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { SharedGauge } from '../../src/runtime/shared-gauge.ts'

function gauges(threads: number, rows: number): readonly SharedGauge[] {
  const shared = SharedGauge.allocate(threads, rows)
  return Array.from({ length: threads }, (_, thread) => new SharedGauge(shared, threads, thread))
}

test('a limit holds over all threads', () => {
  const [a, b] = gauges(2, 3)
  for (let i = 0; i < 3; i++) assert.ok(a!.acquire(1, 5))
  assert.ok(b!.acquire(1, 5))
  assert.ok(b!.acquire(1, 5))
  assert.ok(!a!.acquire(1, 5))
  assert.ok(!b!.acquire(1, 5))
  assert.equal(a!.sum(1), 5, 'a refused acquire leaves the sum unchanged')
  b!.release(1)
  assert.ok(a!.acquire(1, 5))
})

test('rows are independent of each other', () => {
  const [a] = gauges(1, 3)
  assert.ok(a!.acquire(0, 1))
  assert.ok(a!.acquire(2, 1))
  assert.equal(a!.sum(1), 0)
  assert.ok(!a!.acquire(0, 1))
})

test('acquire counts without a limit (-1)', () => {
  const [a, b] = gauges(2, 1)
  for (let i = 0; i < 1000; i++) assert.ok(a!.acquire(0, -1))
  assert.equal(b!.sum(0), 1000)
})

test('clearing the column of a dead thread frees its count', () => {
  const shared = SharedGauge.allocate(2, 2)
  const [alive, dead] = [new SharedGauge(shared, 2, 0), new SharedGauge(shared, 2, 1)]
  alive.acquire(0, 4)
  for (let i = 0; i < 3; i++) dead.acquire(0, 4)
  assert.ok(!alive.acquire(0, 4))
  SharedGauge.clear(shared, 2, 1)
  assert.equal(alive.sum(0), 1)
  assert.ok(alive.acquire(0, 4))
})

test('the highest sum over all threads stays, and a refused acquire does not raise it', () => {
  const shared = SharedGauge.allocate(2, 2)
  const [one, other] = [new SharedGauge(shared, 2, 0), new SharedGauge(shared, 2, 1)]
  for (let i = 0; i < 2; i++) assert.ok(one.acquire(1, 3))
  assert.ok(other.acquire(1, 3))
  assert.ok(!other.acquire(1, 3))
  SharedGauge.clear(shared, 2, 0)
  other.release(1)
  assert.deepEqual([one.sum(1), one.highest(1), other.highest(1), one.highest(0)], [0, 3, 3, 0])
})

/** Acquires until many refusals in a row; posts the number of successes. */
const ACQUIRER = `
  const { parentPort, workerData } = require('node:worker_threads')
  import(workerData.module).then(({ SharedGauge }) => {
    const gauge = new SharedGauge(workerData.shared, workerData.threads, workerData.thread)
    let acquired = 0
    for (let refused = 0; refused < 20_000; ) {
      if (gauge.acquire(0, workerData.limit)) acquired++
      else refused++
    }
    parentPort.postMessage(acquired)
  })`

test('concurrent threads acquire exactly the limit together', async () => {
  const threads = 3
  const limit = 5000
  const shared = SharedGauge.allocate(threads, 1)
  const module = import.meta.resolve('../../src/runtime/shared-gauge.ts')
  const counts = await Promise.all(
    Array.from({ length: threads }, async (_, thread) => {
      const worker = new Worker(ACQUIRER, { eval: true, workerData: { module, shared, threads, thread, limit } })
      const [acquired] = await once(worker, 'message')
      return acquired as number
    }),
  )
  assert.equal(
    counts.reduce((sum, acquired) => sum + acquired),
    limit,
  )
  assert.equal(new SharedGauge(shared, threads, 0).sum(0), limit)
})
