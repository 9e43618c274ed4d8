/** States of endpoints in shared memory: how long each lasts, and that threads which write at once lose nothing. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { DEFAULT_SETTINGS, type EndpointSettings } from '../../src/config/endpoint-settings.ts'
import { EndpointTable } from '../../src/target/endpoint-table.ts'

const CLOSED = 101505
const REFUSED = 101503

/** One endpoint whose clock is set by hand, in milliseconds. */
class Bench {
  nowMs = 1_000_000
  readonly table: EndpointTable
  readonly settings: EndpointSettings

  constructor(settings: Partial<EndpointSettings> = {}) {
    this.settings = { ...DEFAULT_SETTINGS, ...settings }
    this.table = new EndpointTable(EndpointTable.allocate(1, 1), 0, () => this.nowMs)
  }

  refuse(): void {
    this.table.failed(0, this.settings, false, REFUSED, 0)
  }

  timeOut(): void {
    this.table.failed(0, this.settings, true, CLOSED, 3)
  }

  /** A request is let through. */
  get admits(): boolean {
    return this.table.admit(0, this.settings)
  }

  get state(): string {
    return this.table.read(0).state
  }

  /** Fails each time it is tried, and answers how long it is out of service for, in seconds. */
  suspensions(count: number): readonly number[] {
    return Array.from({ length: count }, () => {
      this.refuse()
      const from = this.nowMs
      while (!this.admits) this.nowMs += 100
      return Math.round((this.nowMs - from) / 1000)
    })
  }
}

test('an endpoint that nothing has happened to is active', () => {
  const { table, admits, state } = new Bench()
  assert.deepEqual([table.isActive(0), admits, state, table.waitMs(0)], [true, true, 'ACTIVE', 0])
})

test('ACTIVE -> SUSPENDED until the next try, then one request, then ACTIVE on the first success', () => {
  const bench = new Bench()
  bench.refuse()
  assert.equal(bench.state, 'SUSPENDED')
  assert.equal(bench.admits, false)
  bench.nowMs += 29_900
  assert.equal(bench.admits, false)
  bench.nowMs += 200
  assert.equal(bench.table.isReady(0), true)
  assert.equal(bench.admits, true)
  assert.equal(bench.state, 'SUSPENDED')
  bench.table.succeeded(0, bench.settings)
  assert.deepEqual([bench.state, bench.admits], ['ACTIVE', true])
})

test('while one request tries a suspended endpoint no other is let through, but for one a second', () => {
  const bench = new Bench()
  bench.refuse()
  bench.nowMs += 30_200
  assert.deepEqual([bench.admits, bench.admits, bench.admits], [true, false, false])
  bench.nowMs += 1200
  assert.deepEqual([bench.admits, bench.admits], [true, false])
})

test('retries before suspension 0: the first time-out suspends', () => {
  const bench = new Bench()
  bench.timeOut()
  assert.deepEqual([bench.state, bench.admits], ['SUSPENDED', false])
})

test('ACTIVE -> TIMEOUT for each retry, and SUSPENDED when none is left', () => {
  const bench = new Bench({ retriesBeforeSuspension: 2 })
  const states = [1, 2, 3].map(() => {
    bench.timeOut()
    return [bench.state, bench.admits]
  })
  assert.deepEqual(states, [
    ['TIMEOUT', true],
    ['TIMEOUT', true],
    ['SUSPENDED', false],
  ])
})

test('a success gives all retries back', () => {
  const bench = new Bench({ retriesBeforeSuspension: 1 })
  bench.timeOut()
  bench.table.succeeded(0, bench.settings)
  bench.timeOut()
  assert.equal(bench.state, 'TIMEOUT')
})

test('an endpoint in TIMEOUT is tried again after the retry delay, by every request', () => {
  const bench = new Bench({ retriesBeforeSuspension: 1, retryDelayMs: 5000 })
  bench.timeOut()
  bench.nowMs += 4900
  assert.equal(bench.admits, false)
  bench.nowMs += 200
  assert.deepEqual([bench.admits, bench.admits], [true, true])
})

test('time-outs of requests that were under way together count once', () => {
  const bench = new Bench({ retriesBeforeSuspension: 1, retryDelayMs: 5000 })
  for (let i = 0; i < 10; i++) bench.timeOut()
  assert.equal(bench.state, 'TIMEOUT')
  assert.deepEqual([bench.table.read(0).timeouts, bench.table.read(0).failures], [1, 10])
})

test('a failure that suspends does so from TIMEOUT too', () => {
  const bench = new Bench({ retriesBeforeSuspension: 5, retryDelayMs: 5000 })
  bench.timeOut()
  bench.refuse()
  assert.equal(bench.state, 'SUSPENDED')
})

test('failures of requests that were under way when an endpoint was suspended do not lengthen its suspension', () => {
  const bench = new Bench({ factor: 10 })
  for (let i = 0; i < 10; i++) bench.refuse()
  assert.ok(bench.table.waitMs(0) <= 30_100)
  assert.equal(bench.table.read(0).suspensions, 1)
})

/** [initial, factor, maximum, how long it is suspended each time], in seconds. */
const PROGRESSIONS: readonly (readonly [number, number, number, readonly number[]])[] = [
  [30, 1, Number.POSITIVE_INFINITY, [30, 30, 30]],
  [1, 2, Number.POSITIVE_INFINITY, [1, 2, 4, 8, 16]],
  [1, 2, 5, [1, 2, 4, 5, 5]],
  [2, 1.5, 60, [2, 3, 5, 7]],
  [10, 1, 3, [3, 3]],
]

for (const [initial, factor, maximum, expected] of PROGRESSIONS) {
  test(`next = min(last × ${factor}, ${maximum}) from ${initial} s: ${expected.join(', ')}`, () => {
    const bench = new Bench({ initialMs: initial * 1000, factor, maximumMs: Math.min(maximum * 1000, 2 ** 53 - 1) })
    const seen = bench.suspensions(expected.length)
    for (const [i, seconds] of seen.entries()) assert.ok(Math.abs(seconds - expected[i]!) <= 1, `${seen} s`)
  })
}

test('after a success the first suspension has the initial duration again', () => {
  const bench = new Bench({ initialMs: 1000, factor: 10 })
  bench.suspensions(3)
  bench.table.succeeded(0, bench.settings)
  assert.deepEqual(bench.suspensions(1), [1])
})

test('no factor leads to a suspension that never ends', () => {
  const bench = new Bench({ initialMs: 1000, factor: 1_000_000 })
  for (let i = 0; i < 200; i++) {
    bench.refuse()
    bench.nowMs += 365 * 86_400_000 + 1000
    assert.ok(bench.admits, `after ${i + 1} suspensions`)
  }
})

const NEVER: readonly (readonly [string, Partial<EndpointSettings>])[] = [
  ['initial duration 0', { initialMs: 0 }],
  ['maximum duration 0', { maximumMs: 0 }],
]

for (const [what, settings] of NEVER) {
  test(`${what}: it is never suspended`, () => {
    const bench = new Bench(settings)
    for (let i = 0; i < 5; i++) {
      bench.refuse()
      bench.timeOut()
    }
    assert.deepEqual([bench.state, bench.admits, bench.table.read(0).failures], ['ACTIVE', true, 10])
  })

  test(`${what}: time-outs with retries make it wait, and no more`, () => {
    const bench = new Bench({ ...settings, retriesBeforeSuspension: 1, retryDelayMs: 1000 })
    for (let i = 0; i < 5; i++) {
      bench.timeOut()
      assert.deepEqual([bench.state, bench.admits], ['TIMEOUT', false])
      bench.nowMs += 1200
      assert.equal(bench.admits, true)
    }
  })
}

test('OFF is manual, and so is the way back', () => {
  const bench = new Bench()
  bench.table.switched(0, bench.settings, false)
  bench.table.succeeded(0, bench.settings)
  bench.refuse()
  bench.nowMs += 86_400_000
  assert.deepEqual([bench.state, bench.admits, bench.table.waitMs(0)], ['OFF', false, -1])
  bench.table.switched(0, bench.settings, true)
  assert.deepEqual([bench.state, bench.admits], ['ACTIVE', true])
  assert.equal(bench.table.read(0).recoveries, 0, 'it did not recover by itself')
})

test('an endpoint that its checks have found ill is not tried by requests', () => {
  const bench = new Bench()
  bench.table.checked(0, bench.settings, false)
  bench.nowMs += 86_400_000
  bench.table.succeeded(0, bench.settings)
  assert.deepEqual([bench.state, bench.admits, bench.table.waitMs(0)], ['SUSPENDED', false, -1])
  bench.table.checked(0, bench.settings, true)
  assert.deepEqual([bench.state, bench.admits], ['ACTIVE', true])
})

test('the clock may wrap around while an endpoint is suspended', () => {
  const bench = new Bench()
  bench.nowMs = 2 ** 31 * 100 - 10_000
  bench.refuse()
  assert.equal(bench.admits, false)
  bench.nowMs += 29_000
  assert.equal(bench.admits, false)
  bench.nowMs += 1200
  assert.equal(bench.admits, true)
})

test('pending requests are counted over all reactors, and those of one that died are forgotten', () => {
  const shared = EndpointTable.allocate(40, 3)
  const tables = [0, 1, 2].map(reactor => new EndpointTable(shared, reactor, () => 0))
  const exchanges = tables.flatMap(table => [table, table]).map(table => ({ table, exchange: { pendingRow: -1 } }))
  for (const { table, exchange } of exchanges) table.entered(39, exchange)
  assert.equal(tables[0]!.pending(39), 6)
  tables[0]!.entered(7, exchanges[0]!.exchange)
  assert.deepEqual([tables[2]!.pending(39), tables[2]!.pending(7)], [5, 1])
  tables[0]!.left(exchanges[0]!.exchange)
  tables[0]!.left(exchanges[0]!.exchange)
  assert.deepEqual([tables[2]!.pending(39), tables[2]!.pending(7)], [5, 0])
  EndpointTable.clear(shared, 1)
  assert.equal(tables[0]!.pending(39), 3)
})

test('rows do not touch each other', () => {
  const table = new EndpointTable(EndpointTable.allocate(3, 1), 0, () => 0)
  table.failed(1, DEFAULT_SETTINGS, false, REFUSED, 0)
  const { state, lastBase, lastState } = table.read(1)
  assert.deepEqual([state, lastBase, lastState], ['SUSPENDED', REFUSED, 0])
  for (const row of [0, 2]) assert.deepEqual([table.read(row).state, table.read(row).failures], ['ACTIVE', 0])
})

const THREADS = 4
const ROUNDS = 20_000

/** Suspends and brings back as fast as it can; posts how often it was the one that did. */
const RIVAL = `
  const { parentPort, workerData } = require('node:worker_threads')
  import(workerData.table).then(({ EndpointTable }) => {
    const table = new EndpointTable(workerData.shared, workerData.thread, () => 0)
    let suspended = 0
    let recovered = 0
    for (let i = 0; i < workerData.rounds; i++) {
      if (table.failed(0, workerData.settings, false, 101503, 0) !== null) suspended++
      if (table.succeeded(0, workerData.settings) !== null) recovered++
    }
    parentPort.postMessage({ suspended, recovered })
  })`

test('threads that suspend one endpoint at once never both do it, and none is lost', async () => {
  const shared = EndpointTable.allocate(1, THREADS)
  const table = new URL('../../src/target/endpoint-table.ts', import.meta.url).href
  const found = await Promise.all(
    Array.from({ length: THREADS }, async (_, thread) => {
      const workerData = { shared, thread, table, settings: DEFAULT_SETTINGS, rounds: ROUNDS }
      const worker = new Worker(RIVAL, { eval: true, workerData })
      const [told] = (await once(worker, 'message')) as [{ suspended: number; recovered: number }]
      return told
    }),
  )
  const sum = (key: 'suspended' | 'recovered'): number => found.reduce((all, told) => all + told[key], 0)
  const { failures, suspensions, recoveries, state } = new EndpointTable(shared, 0, () => 0).read(0)
  assert.equal(failures, THREADS * ROUNDS)
  assert.deepEqual([suspensions, recoveries], [sum('suspended'), sum('recovered')])
  assert.equal(suspensions - recoveries, state === 'SUSPENDED' ? 1 : 0)
})

/** Two that meet before each try, when the suspension is over for both; posts how often it was let through. */
const TRIER = `
  const { parentPort, workerData } = require('node:worker_threads')
  import(workerData.table).then(({ EndpointTable }) => {
    const meeting = new Int32Array(workerData.meeting)
    let round = 0
    let admitted = 0
    const table = new EndpointTable(workerData.shared, workerData.thread, () => round * 100000)
    for (round = 1; round <= workerData.rounds; round++) {
      Atomics.add(meeting, 0, 1)
      while (Atomics.load(meeting, 0) < 2 * round);
      if (table.admit(0, workerData.settings)) admitted++
    }
    parentPort.postMessage(admitted)
  })`

test('threads that try one suspended endpoint at once never both do it', async () => {
  const rounds = 20_000
  const shared = EndpointTable.allocate(1, 2)
  const meeting = new SharedArrayBuffer(4)
  const table = new URL('../../src/target/endpoint-table.ts', import.meta.url).href
  new EndpointTable(shared, 0, () => 0).failed(0, DEFAULT_SETTINGS, false, REFUSED, 0)
  const admitted = await Promise.all(
    [0, 1].map(async thread => {
      const workerData = { shared, meeting, thread, table, settings: DEFAULT_SETTINGS, rounds }
      const [count] = (await once(new Worker(TRIER, { eval: true, workerData }), 'message')) as [number]
      return count
    }),
  )
  assert.equal(admitted[0]! + admitted[1]!, rounds)
})
