/** Real threads on the same counters: exactly the limit, over windows, beside threads that are killed. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as after } from 'node:timers/promises'
import { CounterTable } from '../../src/throttle/counter-table.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import { DAY_MS, quotaOf, specOf, startThread, listing } from './counting.ts'

/** Admits by random pairs of counters until each pair is refused many times in a row; posts how often each passed. */
const PAIRS = `
  const table = new CounterTable(memory, () => given.nowMs, owner)
  const counters = given.specs.map(spec => table.counter(spec))
  const lists = given.lists.map(list => list.map(at => counters[at]))
  const passed = lists.map(() => 0)
  let refused = 0
  for (let step = owner; refused < 20_000; step++) {
    const at = step % lists.length
    if (table.admit(lists[at]) < 0) { passed[at]++; refused = 0 } else refused++
  }
  parentPort.postMessage(passed)`

for (const threads of [1, 2, 3, 4, 8]) {
  test(`${threads} threads on the same counters admit exactly what the limits allow (seed ${SEED})`, async () => {
    const random = new Random(SEED + threads)
    const limits = Array.from({ length: 4 }, () => random.between(1000, 20_000))
    const specs = limits.map((limit, at) => specOf(`key${at}`, quotaOf(limit)))
    const lists = [[0, 1], [1, 2], [2, 3], [3, 0, 1], [0, 1, 2, 3], [2]]
    const memory = CounterTable.allocate(64)
    const results = await Promise.all(
      Array.from({ length: threads }, async (_, at) => {
        const worker = startThread(PAIRS, memory, at + 1, { nowMs: DAY_MS, specs, lists })
        const [passed] = await once(worker, 'message')
        return passed as number[]
      }),
    )
    const table = new CounterTable(memory, () => DAY_MS, 99)
    const counters = specs.map(spec => table.counter(spec))
    const used = limits.map(() => 0)
    for (const passed of results) {
      for (const [list, count] of passed.entries()) for (const at of lists[list]!) used[at]! += count
    }
    counters.forEach((counter, at) => {
      assert.equal(limits[at]! - table.remaining(counter), used[at], `counted and admitted by key${at}`)
      assert.ok(used[at]! <= limits[at]!)
    })
    for (const list of lists) assert.ok(table.admit(list.map(at => counters[at]!)) >= 0, `${list} has nothing left`)
  })
}

/**
 * Admits by one counter with windows of a second until a time; posts the admitted requests of each window. A thread
 * that is refused takes no processor from other tests until shortly before the next window, where threads compete.
 */
const WINDOWS = `
  const still = new Int32Array(new SharedArrayBuffer(4))
  const table = new CounterTable(memory, Date.now, owner)
  const counter = table.counter(given.spec)
  const list = [counter]
  const passed = {}
  for (;;) {
    if (table.admit(list) < 0) {
      const window = Math.floor(table.admittedMs / 1000)
      passed[window] = (passed[window] ?? 0) + 1
    } else {
      const restMs = 900 - (table.admittedMs % 1000)
      if (restMs > 0) Atomics.wait(still, 0, 0, restMs)
    }
    if (table.admittedMs >= given.untilMs) break
  }
  parentPort.postMessage(passed)`

test('threads admit exactly N in each window of the real clock', async () => {
  const threads = 3
  const limit = 2000
  const memory = CounterTable.allocate(64)
  const spec = specOf('key', quotaOf(limit, { unit: 'sec' }))
  const firstWindow = Math.floor(Date.now() / 1000) + 2
  const windows = IS_LONG ? 30 : 3
  const given = { spec, untilMs: (firstWindow + windows) * 1000 }
  const results = await Promise.all(
    Array.from({ length: threads }, async (_, at) => {
      const [passed] = await once(startThread(WINDOWS, memory, at + 1, given), 'message')
      return passed as Record<number, number>
    }),
  )
  const sums: number[] = []
  for (let window = firstWindow; window < firstWindow + windows; window++) {
    sums.push(results.reduce((sum, passed) => sum + (passed[window] ?? 0), 0))
  }
  assert.deepEqual(sums, Array(windows).fill(limit))
})

/** Inserts keys without end in a table that is too small for them; windows of a second expire meanwhile. */
const INSERTING = `
  const table = new CounterTable(memory, Date.now, owner)
  for (let step = 0; ; step++) {
    const spec = { ...given.spec, key: 'key' + owner + ' ' + (step % 5000) }
    table.admit([table.counter(spec)])
    if (step === 100) parentPort.postMessage('inserting')
  }`

test(`threads that are killed while they insert leave neither lock nor damage (seed ${SEED})`, async () => {
  const random = new Random(SEED)
  const memory = CounterTable.allocate(2000)
  const primary = new CounterTable(memory, Date.now, 99)
  const spec = specOf('key', quotaOf(3, { unit: 'sec' }))
  const steady = primary.counter(specOf('steady', quotaOf(1_000_000, { unit: 'month' })))
  for (let kill = 0; kill < (IS_LONG ? 500 : 25); kill++) {
    const worker = startThread(INSERTING, memory, 1, { spec })
    await once(worker, 'message')
    await after(random.below(5))
    assert.equal(primary.admit([steady]), -1)
    await worker.terminate()
    primary.release(1)
    const probe = primary.counter(specOf(`probe${kill}`, quotaOf(1, { unit: 'month' }), { failMode: 'open' }))
    assert.equal(listing(primary).occupancy.busy, 0, 'the lock is free after the release')
    if (probe.slot >= 0) assert.deepEqual([primary.admit([probe]), primary.admit([probe])], [-1, 0])
  }
  assert.equal(1_000_000 - primary.remaining(steady), IS_LONG ? 500 : 25)
  const labels = new Set<string>()
  let visited = 0
  listing(primary).entries(({ label }) => {
    visited++
    labels.add(label)
  })
  assert.equal(labels.size, visited, 'no key has two slots')
  assert.equal(listing(primary).occupancy.live, visited)
})
