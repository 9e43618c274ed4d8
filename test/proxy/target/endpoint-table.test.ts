/** The endpoint table: how long each state lasts, and that concurrent threads lose no update. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { DEFAULT_ENDPOINT_SETTINGS, type EndpointSettings } from '../../../src/apis/api-definition.ts'
import { EndpointTable } from '../../../src/proxy/target/endpoint-table.ts'

const CLOSED = 101505
const REFUSED = 101503

/** One endpoint with a clock that the test sets, in milliseconds. */
class Fixture {
  nowMs = 1_000_000
  readonly table: EndpointTable
  readonly settings: EndpointSettings

  constructor(settings: Partial<EndpointSettings> = {}) {
    this.settings = { ...DEFAULT_ENDPOINT_SETTINGS, ...settings }
    this.table = new EndpointTable(EndpointTable.allocate(1, 1), 0, () => this.nowMs)
  }

  refuse(): void {
    this.table.failed(0, this.settings, false, REFUSED, 0)
  }

  timeOut(): void {
    this.table.failed(0, this.settings, true, CLOSED, 3)
  }

  /** Whether a request is admitted. */
  get admits(): boolean {
    return this.table.admit(0, this.settings)
  }

  get state(): string {
    return this.table.read(0).state
  }

  /** Fails each probe; returns the lengths of the suspensions in seconds. */
  suspensions(count: number): readonly number[] {
    return Array.from({ length: count }, () => {
      this.refuse()
      const from = this.nowMs
      while (!this.admits) this.nowMs += 100
      return Math.round((this.nowMs - from) / 1000)
    })
  }
}

test('a new endpoint is active', () => {
  const { table, admits, state } = new Fixture()
  assert.deepEqual([table.isActive(0), admits, state, table.waitMs(0)], [true, true, 'ACTIVE', 0])
})

test('a suspended endpoint gets one probe after the suspension, and is ACTIVE after its first success', () => {
  const endpoint = new Fixture()
  endpoint.refuse()
  assert.equal(endpoint.state, 'SUSPENDED')
  assert.equal(endpoint.admits, false)
  endpoint.nowMs += 29_900
  assert.equal(endpoint.admits, false)
  endpoint.nowMs += 200
  assert.equal(endpoint.table.isReady(0), true)
  assert.equal(endpoint.admits, true)
  assert.equal(endpoint.state, 'SUSPENDED')
  endpoint.table.succeeded(0, endpoint.settings)
  assert.deepEqual([endpoint.state, endpoint.admits], ['ACTIVE', true])
})

test('while a probe is pending, one further request a second is admitted', () => {
  const endpoint = new Fixture()
  endpoint.refuse()
  endpoint.nowMs += 30_200
  assert.deepEqual([endpoint.admits, endpoint.admits, endpoint.admits], [true, false, false])
  endpoint.nowMs += 1200
  assert.deepEqual([endpoint.admits, endpoint.admits], [true, false])
})

test('with no retries before suspension the first time-out suspends', () => {
  const endpoint = new Fixture()
  endpoint.timeOut()
  assert.deepEqual([endpoint.state, endpoint.admits], ['SUSPENDED', false])
})

test('each retry is a TIMEOUT, and the time-out after the last one suspends', () => {
  const endpoint = new Fixture({ retriesBeforeSuspension: 2 })
  const states = [1, 2, 3].map(() => {
    endpoint.timeOut()
    return [endpoint.state, endpoint.admits]
  })
  assert.deepEqual(states, [
    ['TIMEOUT', true],
    ['TIMEOUT', true],
    ['SUSPENDED', false],
  ])
})

test('a success restores all retries', () => {
  const endpoint = new Fixture({ retriesBeforeSuspension: 1 })
  endpoint.timeOut()
  endpoint.table.succeeded(0, endpoint.settings)
  endpoint.timeOut()
  assert.equal(endpoint.state, 'TIMEOUT')
})

test('an endpoint in TIMEOUT gets every request after the retry delay', () => {
  const endpoint = new Fixture({ retriesBeforeSuspension: 1, retryDelayMs: 5000 })
  endpoint.timeOut()
  endpoint.nowMs += 4900
  assert.equal(endpoint.admits, false)
  endpoint.nowMs += 200
  assert.deepEqual([endpoint.admits, endpoint.admits], [true, true])
})

test('time-outs of concurrent requests count once', () => {
  const endpoint = new Fixture({ retriesBeforeSuspension: 1, retryDelayMs: 5000 })
  for (let i = 0; i < 10; i++) endpoint.timeOut()
  assert.equal(endpoint.state, 'TIMEOUT')
  assert.deepEqual([endpoint.table.read(0).timeouts, endpoint.table.read(0).failures], [1, 10])
})

test('a suspending failure suspends from TIMEOUT too', () => {
  const endpoint = new Fixture({ retriesBeforeSuspension: 5, retryDelayMs: 5000 })
  endpoint.timeOut()
  endpoint.refuse()
  assert.equal(endpoint.state, 'SUSPENDED')
})

test('failures of requests that were pending at a suspension do not lengthen it', () => {
  const endpoint = new Fixture({ suspensionFactor: 10 })
  for (let i = 0; i < 10; i++) endpoint.refuse()
  assert.ok(endpoint.table.waitMs(0) <= 30_100)
  assert.equal(endpoint.table.read(0).suspensions, 1)
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
    const endpoint = new Fixture({
      suspensionMs: initial * 1000,
      suspensionFactor: factor,
      suspensionMaxMs: Math.min(maximum * 1000, 2 ** 53 - 1),
    })
    const seen = endpoint.suspensions(expected.length)
    for (const [i, seconds] of seen.entries()) assert.ok(Math.abs(seconds - expected[i]!) <= 1, `${seen} s`)
  })
}

test('after a success the next suspension has the initial duration', () => {
  const endpoint = new Fixture({ suspensionMs: 1000, suspensionFactor: 10 })
  endpoint.suspensions(3)
  endpoint.table.succeeded(0, endpoint.settings)
  assert.deepEqual(endpoint.suspensions(1), [1])
})

test('every suspension ends, whatever the factor', () => {
  const endpoint = new Fixture({ suspensionMs: 1000, suspensionFactor: 1_000_000 })
  for (let i = 0; i < 200; i++) {
    endpoint.refuse()
    endpoint.nowMs += 365 * 86_400_000 + 1000
    assert.ok(endpoint.admits, `after ${i + 1} suspensions`)
  }
})

const NEVER: readonly (readonly [string, Partial<EndpointSettings>])[] = [
  ['initial duration 0', { suspensionMs: 0 }],
  ['maximum duration 0', { suspensionMaxMs: 0 }],
]

for (const [what, settings] of NEVER) {
  test(`${what}: the endpoint is never suspended`, () => {
    const endpoint = new Fixture(settings)
    for (let i = 0; i < 5; i++) {
      endpoint.refuse()
      endpoint.timeOut()
    }
    assert.deepEqual([endpoint.state, endpoint.admits, endpoint.table.read(0).failures], ['ACTIVE', true, 10])
  })

  test(`${what}: time-outs with retries delay requests and never suspend`, () => {
    const endpoint = new Fixture({ ...settings, retriesBeforeSuspension: 1, retryDelayMs: 1000 })
    for (let i = 0; i < 5; i++) {
      endpoint.timeOut()
      assert.deepEqual([endpoint.state, endpoint.admits], ['TIMEOUT', false])
      endpoint.nowMs += 1200
      assert.equal(endpoint.admits, true)
    }
  })
}

test('only an operator switches an endpoint off and on', () => {
  const endpoint = new Fixture()
  endpoint.table.switchTo(0, endpoint.settings, false)
  endpoint.table.succeeded(0, endpoint.settings)
  endpoint.refuse()
  endpoint.nowMs += 86_400_000
  assert.deepEqual([endpoint.state, endpoint.admits, endpoint.table.waitMs(0)], ['OFF', false, -1])
  endpoint.table.switchTo(0, endpoint.settings, true)
  assert.deepEqual([endpoint.state, endpoint.admits], ['ACTIVE', true])
  assert.equal(endpoint.table.read(0).recoveries, 0, 'it did not recover by itself')
})

test('an endpoint with failed health checks gets no requests', () => {
  const endpoint = new Fixture()
  endpoint.table.healthChanged(0, endpoint.settings, false)
  endpoint.nowMs += 86_400_000
  endpoint.table.succeeded(0, endpoint.settings)
  assert.deepEqual([endpoint.state, endpoint.admits, endpoint.table.waitMs(0)], ['SUSPENDED', false, -1])
  endpoint.table.healthChanged(0, endpoint.settings, true)
  assert.deepEqual([endpoint.state, endpoint.admits], ['ACTIVE', true])
})

test('a suspension survives the wrap of the clock', () => {
  const endpoint = new Fixture()
  endpoint.nowMs = 2 ** 31 * 100 - 10_000
  endpoint.refuse()
  assert.equal(endpoint.admits, false)
  endpoint.nowMs += 29_000
  assert.equal(endpoint.admits, false)
  endpoint.nowMs += 1200
  assert.equal(endpoint.admits, true)
})

test('pending requests count over all reactors, without those of a reactor that died', () => {
  const shared = EndpointTable.allocate(40, 3)
  const tables = [0, 1, 2].map(reactor => new EndpointTable(shared, reactor, () => 0))
  const exchanges = tables.flatMap(table => [table, table]).map(table => ({ table, exchange: { pendingSlot: -1 } }))
  for (const { table, exchange } of exchanges) table.requestStarted(39, exchange)
  assert.equal(tables[0]!.pending(39), 6)
  tables[0]!.requestStarted(7, exchanges[0]!.exchange)
  assert.deepEqual([tables[2]!.pending(39), tables[2]!.pending(7)], [5, 1])
  tables[0]!.requestEnded(exchanges[0]!.exchange)
  tables[0]!.requestEnded(exchanges[0]!.exchange)
  assert.deepEqual([tables[2]!.pending(39), tables[2]!.pending(7)], [5, 0])
  EndpointTable.clear(shared, 1)
  assert.equal(tables[0]!.pending(39), 3)
})

test('slots are independent of each other', () => {
  const table = new EndpointTable(EndpointTable.allocate(3, 1), 0, () => 0)
  table.failed(1, DEFAULT_ENDPOINT_SETTINGS, false, REFUSED, 0)
  const { state, lastBase, lastState } = table.read(1)
  assert.deepEqual([state, lastBase, lastState], ['SUSPENDED', REFUSED, 0])
  for (const slot of [0, 2]) assert.deepEqual([table.read(slot).state, table.read(slot).failures], ['ACTIVE', 0])
})

const THREADS = 4
const ROUNDS = 20_000

/** Suspends and recovers as fast as it can; posts how many of these changes were its own. */
const SUSPENDER = `
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

test('concurrent threads never count one suspension twice, and lose none', async () => {
  const shared = EndpointTable.allocate(1, THREADS)
  const table = new URL('../../../src/proxy/target/endpoint-table.ts', import.meta.url).href
  const found = await Promise.all(
    Array.from({ length: THREADS }, async (_, thread) => {
      const workerData = { shared, thread, table, settings: DEFAULT_ENDPOINT_SETTINGS, rounds: ROUNDS }
      const worker = new Worker(SUSPENDER, { eval: true, workerData })
      const [counts] = (await once(worker, 'message')) as [{ suspended: number; recovered: number }]
      return counts
    }),
  )
  const sum = (key: 'suspended' | 'recovered'): number => found.reduce((all, counts) => all + counts[key], 0)
  const { failures, suspensions, recoveries, state } = new EndpointTable(shared, 0, () => 0).read(0)
  assert.equal(failures, THREADS * ROUNDS)
  assert.deepEqual([suspensions, recoveries], [sum('suspended'), sum('recovered')])
  assert.equal(suspensions - recoveries, state === 'SUSPENDED' ? 1 : 0)
})

/** Waits for the other thread before each probe, when the suspension is over for both; posts its admitted probes. */
const PROBER = `
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

test('concurrent threads never both probe a suspended endpoint', async () => {
  const rounds = 20_000
  const shared = EndpointTable.allocate(1, 2)
  const meeting = new SharedArrayBuffer(4)
  const table = new URL('../../../src/proxy/target/endpoint-table.ts', import.meta.url).href
  new EndpointTable(shared, 0, () => 0).failed(0, DEFAULT_ENDPOINT_SETTINGS, false, REFUSED, 0)
  const admitted = await Promise.all(
    [0, 1].map(async thread => {
      const workerData = { shared, meeting, thread, table, settings: DEFAULT_ENDPOINT_SETTINGS, rounds }
      const [count] = (await once(new Worker(PROBER, { eval: true, workerData }), 'message')) as [number]
      return count
    }),
  )
  assert.equal(admitted[0]! + admitted[1]!, rounds)
})

const LIMITS = { suspendFailures: 3, suspendClients: 2, suspendWindowMs: 1000 }

/** The endpoint fails an exchange of each client in turn; the state behind the last one. */
function failExchanges(endpoint: Fixture, clients: readonly string[], limits = LIMITS): string {
  for (const client of clients) endpoint.table.exchangeFailed(0, endpoint.settings, limits, client, CLOSED, 3)
  return endpoint.state
}

/** [case, clients of the failures, the state that follows]. */
const ROWS: readonly (readonly [what: string, clients: readonly string[], state: string])[] = [
  ['too few', ['10.0.0.1', '10.0.0.2'], 'ACTIVE'],
  ['enough of two clients', ['10.0.0.1', '10.0.0.2', '10.0.0.1'], 'SUSPENDED'],
  ['many of one client', new Array<string>(300).fill('10.0.0.1'), 'ACTIVE'],
  ['many of one client, then one of another', [...new Array<string>(300).fill('10.0.0.1'), '10.0.0.2'], 'SUSPENDED'],
  ['of one /64 of IPv6', ['2001:db8::1', '2001:db8::2', '2001:db8:0:0:ffff::3', '2001:db8::f:0:0:4'], 'ACTIVE'],
  ['of two networks of IPv6', ['2001:db8::1', '2001:db8:0:1::1', '2001:db8::1'], 'SUSPENDED'],
  ['of one client, as IPv4 and mapped', ['10.0.0.1', '::ffff:10.0.0.1', '10.0.0.1'], 'ACTIVE'],
]

for (const [what, clients, state] of ROWS) {
  test(`failures in a row, ${what}: ${state}`, () => {
    const endpoint = new Fixture()
    assert.equal(failExchanges(endpoint, clients), state)
    assert.equal(endpoint.table.read(0).failures, clients.length)
  })
}

test('failures in a row end with a success, and leave nothing behind', () => {
  const endpoint = new Fixture()
  failExchanges(endpoint, ['10.0.0.1', '10.0.0.2'])
  assert.equal(endpoint.table.succeeded(0, endpoint.settings), null, 'no state changes')
  assert.equal(failExchanges(endpoint, ['10.0.0.1', '10.0.0.2']), 'ACTIVE')
  assert.equal(endpoint.table.read(0).recoveries, 0)
})

test('failures in a row that take longer than the window begin again', () => {
  const endpoint = new Fixture()
  failExchanges(endpoint, ['10.0.0.1', '10.0.0.2'])
  endpoint.nowMs += 1200
  assert.equal(failExchanges(endpoint, ['10.0.0.1', '10.0.0.2']), 'ACTIVE')
  assert.equal(failExchanges(endpoint, ['10.0.0.1']), 'SUSPENDED')
})

test('the first suspension behind failures in a row has the initial duration', () => {
  const endpoint = new Fixture({ suspensionMs: 1000, suspensionFactor: 10 })
  failExchanges(endpoint, ['10.0.0.1', '10.0.0.2', '10.0.0.3'])
  assert.ok(endpoint.table.waitMs(0) <= 1100)
})

test('failures in a row survive the wrap of the clock', () => {
  const endpoint = new Fixture()
  endpoint.nowMs = 2 ** 31 * 100 - 500
  failExchanges(endpoint, ['10.0.0.1', '10.0.0.2'])
  endpoint.nowMs += 900
  assert.equal(failExchanges(endpoint, ['10.0.0.1']), 'SUSPENDED')
})

test('a failed health check and a switch forget failures in a row', () => {
  const endpoint = new Fixture({ suspensionMs: 1000, suspensionFactor: 10 })
  failExchanges(endpoint, ['10.0.0.1', '10.0.0.2'])
  endpoint.table.switchTo(0, endpoint.settings, false)
  endpoint.table.switchTo(0, endpoint.settings, true)
  assert.equal(failExchanges(endpoint, ['10.0.0.1', '10.0.0.2']), 'ACTIVE')
  endpoint.refuse()
  assert.ok(endpoint.table.waitMs(0) <= 1100, 'the suspension is the first one')
})

test('an exchange that fails while an endpoint is suspended changes nothing', () => {
  const endpoint = new Fixture()
  endpoint.refuse()
  const waitMs = endpoint.table.waitMs(0)
  failExchanges(endpoint, ['10.0.0.1', '10.0.0.2', '10.0.0.3'])
  assert.deepEqual([endpoint.state, endpoint.table.waitMs(0)], ['SUSPENDED', waitMs])
})
