/** Counters against a model: limits, windows, levels, sliding windows, late charges, and clocks that jump. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { REFUSED } from '../../src/throttle/counter-memory.ts'
import type { CounterEntry } from '../../src/throttle/counter-listing.ts'
import type { Counter, CounterSpec, CounterTable } from '../../src/throttle/counter-table.ts'
import { CounterTable as Table } from '../../src/throttle/counter-table.ts'
import { windowAt, windowStartMs } from '../../src/throttle/window.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import { admitted, Clock, DAY_MS, quotaOf, specOf, tables, listing } from './counting.ts'

const MINUTE_MS = 60_000

test('a message that was taken back is not counted', () => {
  const clock = new Clock()
  const [table] = tables(1, 100, clock.read) as [CounterTable]
  const counter = table.counter(specOf('socket', quotaOf(3, { type: 'events' })))
  for (let i = 0; i < 3; i++) assert.equal(table.charge(counter, 1), true)
  table.takeBackMessage(counter)
  assert.deepEqual([table.charge(counter, 1), table.charge(counter, 1)], [true, false])
})

// ---- model ----------------------------------------------------------------------------------------------------------

/** Counts one key per window, by the definition of its quota. */
class ModelCounter {
  readonly spec: CounterSpec
  readonly #used = new Map<number, number>()

  constructor(spec: CounterSpec) {
    this.spec = spec
  }

  used(number: number): number {
    return this.#used.get(number) ?? 0
  }

  fits(ms: number, amount: number): boolean {
    const { unit, units, limit, window } = this.spec.quota
    const number = windowAt(ms, unit, units)
    let used = this.used(number)
    // The window before is known until the window after has been charged, which a clock that steps back may show.
    if (window === 'sliding' && !this.#used.has(number + 1)) {
      const [start, end] = [windowStartMs(number, unit, units), windowStartMs(number + 1, unit, units)]
      used += this.used(number - 1) * ((end - ms) / (end - start))
    }
    return this.spec.overruns || used + amount <= limit
  }

  charge(ms: number, amount: number): void {
    const number = windowAt(ms, this.spec.quota.unit, this.spec.quota.units)
    this.#used.set(number, this.used(number) + amount)
  }
}

function randomSpec(random: Random, key: string): CounterSpec {
  const type = random.pick(['requests', 'requests', 'requests', 'bandwidth', 'events'] as const)
  const unit = random.pick(['sec', 'min', 'hour'] as const)
  const limit = random.pick([1, 2, 5, 50])
  const window = random.once(3) ? 'sliding' : 'tumbling'
  return specOf(key, quotaOf(limit, { type, unit, units: random.between(1, 3), window }), { overruns: random.once(8) })
}

function pickSome(random: Random, count: number): readonly number[] {
  return [...new Set(Array.from({ length: random.between(1, 6) }, () => random.below(count)))]
}

function admitByModel(models: readonly ModelCounter[], ms: number): number {
  const refusedBy = models.findIndex(model => !model.fits(ms, 1))
  if (refusedBy < 0) for (const model of models) if (model.spec.quota.type === 'requests') model.charge(ms, 1)
  return refusedBy
}

function chargeByModel(model: ModelCounter, ms: number, amount: number): boolean {
  const isLate = model.spec.quota.type === 'bandwidth'
  if (!isLate && !model.fits(ms, amount)) return false
  model.charge(ms, amount)
  return !isLate || model.fits(ms, 1)
}

for (let run = 0; run < (IS_LONG ? 400 : 40); run++) {
  const seed = SEED + run
  test(`random requests are decided as the model decides (seed ${seed})`, () => {
    const random = new Random(seed)
    const clock = new Clock()
    const threads = tables(3, 64, clock.read)
    const specs = Array.from({ length: 8 }, (_, at) => randomSpec(random, `key${at}`))
    const models = specs.map(spec => new ModelCounter(spec))
    const handles = threads.map(table => specs.map(spec => table.counter(spec)))
    let latest = clock.nowMs
    for (let step = 0; step < 3000; step++) {
      if (random.once(10)) latest += random.pick([1, 100, 1000, 2000, 61_000, 3_600_000])
      // A clock that is set back by less than the shortest window loses nothing.
      clock.nowMs = latest - (random.once(20) ? random.below(999) : 0)
      const thread = random.below(threads.length)
      const table = threads[thread]!
      const counters = handles[thread]!
      if (random.once(4)) {
        const at = random.below(specs.length)
        const amount = random.between(1, 3)
        const expected = chargeByModel(models[at]!, clock.nowMs, amount)
        assert.equal(table.charge(counters[at]!, amount), expected, `step ${step}: charge of ${at}`)
        continue
      }
      const chosen = pickSome(random, specs.length)
      const expected = admitByModel(
        chosen.map(at => models[at]!),
        clock.nowMs,
      )
      const list = chosen.map(at => counters[at]!)
      assert.equal(table.admit(list), expected, `step ${step}: admit by ${chosen.join()}`)
      if (expected >= 0 || !random.once(8)) continue
      // Redis, which shares the request, refuses it.
      table.refund(list, table.admittedMs)
      for (const at of chosen) if (specs[at]!.quota.type === 'requests') models[at]!.charge(clock.nowMs, -1)
    }
  })
}

// ---- clauses --------------------------------------------------------------------------------------------------------

function one(limit: number, given: Parameters<typeof quotaOf>[1] = {}): [Clock, CounterTable, Counter] {
  const clock = new Clock()
  const [table] = tables(1, 16, clock.read)
  return [clock, table!, table!.counter(specOf('a', quotaOf(limit, given)))]
}

test('a limit of N admits N requests in a window, and N in the next', () => {
  const [clock, table, counter] = one(3)
  assert.equal(admitted(table, counter, 10), 3)
  assert.equal(table.remaining(counter), 0)
  assert.equal(table.endsMs(counter), DAY_MS + MINUTE_MS)
  clock.nowMs += MINUTE_MS - 1
  assert.equal(admitted(table, counter, 10), 0)
  clock.nowMs += 1
  assert.equal(table.remaining(counter), 3)
  assert.equal(admitted(table, counter, 10), 3)
})

test('a request that one counter refuses is counted by none', () => {
  const clock = new Clock()
  const [table] = tables(1, 16, clock.read)
  const wide = table!.counter(specOf('wide', quotaOf(10)))
  const narrow = table!.counter(specOf('narrow', quotaOf(1)))
  assert.equal(table!.admit([wide, narrow]), -1)
  for (let i = 0; i < 5; i++) assert.equal(table!.admit([wide, narrow]), 1)
  assert.equal(table!.admit([narrow, wide]), 0)
  assert.equal(table!.remaining(wide), 9)
  const refused: Record<string, number> = {}
  listing(table!).entries(entry => {
    refused[entry.label] = entry.refused
  })
  assert.deepEqual(refused, { wide: 0, narrow: 6 })
})

test('counters without limit on requests count beyond it and say so', () => {
  const clock = new Clock()
  const [table] = tables(1, 16, clock.read)
  const counter = table!.counter(specOf('a', quotaOf(2), { overruns: true }))
  assert.equal(admitted(table!, counter, 2), 2)
  assert.ok(!table!.isOverrun(counter))
  assert.equal(admitted(table!, counter, 1), 1)
  assert.ok(table!.isOverrun(counter))
  assert.equal(table!.remaining(counter), 0)
})

test('bytes are charged after they have passed, and the next request is refused', () => {
  const [, table, counter] = one(1000, { type: 'bandwidth' })
  assert.equal(table.admit([counter]), -1)
  assert.ok(table.charge(counter, 999))
  assert.equal(table.admit([counter]), -1)
  assert.ok(!table.charge(counter, 500))
  assert.equal(table.admit([counter]), 0)
  assert.equal(table.remaining(counter), 0)
})

test('a quota of 1 TiB counts units of bytes, and no byte is lost', () => {
  const tebibyte = 2 ** 40
  const [, table, counter] = one(tebibyte, { type: 'bandwidth', unit: 'month' })
  for (let i = 0; i < 1000; i++) table.charge(counter, 777)
  const used = tebibyte - table.remaining(counter)
  assert.ok(Math.abs(used - 777_000) < 32, `${used}`)
  assert.ok(!table.charge(counter, tebibyte))
})

test('key, type and length of window make the same counter on every thread; another limit keeps it', () => {
  const clock = new Clock()
  const [a, b] = tables(2, 16, clock.read)
  const spec = specOf('key', quotaOf(3))
  assert.equal(a!.admit([a!.counter(spec)]), -1)
  assert.equal(b!.remaining(b!.counter(spec)), 2)
  assert.equal(b!.remaining(b!.counter(specOf('key', quotaOf(10)))), 9)
  assert.equal(b!.remaining(b!.counter(specOf('key', quotaOf(3, { unit: 'hour' })))), 3)
})

test('a counter that another policy takes over names that policy; refusals stay with theirs', () => {
  const clock = new Clock()
  const [a, b] = tables(2, 16, clock.read)
  const before = a!.counter(specOf('key', quotaOf(1)))
  assert.equal(admitted(a!, before, 5), 1)
  const after = b!.counter(specOf('key', quotaOf(3, { window: 'sliding' }), { policy: 'subscription:Silver' }))
  assert.equal(admitted(b!, after, 4), 2)
  const rows: unknown[] = []
  listing(b!).entries(({ policy, quota, used, refused }) =>
    rows.push([policy, quota.limit, quota.window, used, refused]),
  )
  assert.deepEqual(rows, [['subscription:Silver', 3, 'sliding', 3, 2]])
  assert.deepEqual([...listing(a!).refusals()].toSorted(), [
    ['subscription:Gold', 4],
    ['subscription:Silver', 2],
  ])
  assert.equal(admitted(a!, before, 5), 0)
})

test('control characters of a key are escaped in its label, which resets it too', () => {
  const [table] = tables(1, 16, new Clock().read)
  const key = 'application:1:\u001b[2Jeve\n'
  const counter = table!.counter(specOf(key, quotaOf(1)))
  const labels: string[] = []
  listing(table!).entries(({ label }) => labels.push(label))
  assert.deepEqual(labels, ['application:1:\\x1b[2Jeve\\x0a'])
  for (const text of [key, labels[0]!]) {
    assert.equal(table!.admit([counter]), -1)
    assert.ok(listing(table!).reset(text))
    assert.equal(table!.remaining(counter), 1)
  }
})

test('a label that cuts a character of several bytes resets its key', () => {
  const [table] = tables(1, 16, new Clock().read)
  const counter = table!.counter(specOf(`a${'é'.repeat(100)}`, quotaOf(1)))
  assert.equal(table!.admit([counter]), -1)
  const labels: string[] = []
  listing(table!).entries(({ label }) => labels.push(label))
  assert.ok(listing(table!).reset(labels[0]!))
  assert.equal(table!.remaining(counter), 1)
})

test('refusals of a policy are counted beyond 2^31', () => {
  const memory = Table.allocate(16)
  const table = new Table(memory, () => DAY_MS, 1)
  const counter = table.counter(specOf('key', quotaOf(1)))
  const cells = new Int32Array(memory)
  for (let round = 0; round < 3; round++) {
    cells[counter.cell + REFUSED] = 2 ** 30 - 1
    admitted(table, counter, 3)
  }
  assert.ok(listing(table).refusals().get('subscription:Gold')! > 3 * 2 ** 30)
})

test('bytes that two quotas count in different units are different counters', () => {
  const clock = new Clock()
  const [table] = tables(1, 16, clock.read)
  const bytes = (limit: number) => table!.counter(specOf('key', quotaOf(limit, { type: 'bandwidth' })))
  const small = bytes(2 ** 30)
  const large = bytes(2 ** 40)
  table!.charge(small, 2 ** 29)
  assert.equal(table!.remaining(large), 2 ** 40)
  table!.charge(large, 2 ** 20)
  assert.equal(table!.remaining(small), 2 ** 29)
})

const JUMPS: readonly (readonly [string, number, number])[] = [
  ['forward by a year', 365 * 86_400_000, 2],
  ['back by less than a window', -MINUTE_MS / 2, 1],
  ['back by a day', -86_400_000, 2],
  ['back to 1970', -DAY_MS, 2],
]
for (const [name, jumpMs, more] of JUMPS) {
  test(`a clock that jumps ${name} neither blocks a counter nor lets more than N pass afterwards`, () => {
    const [clock, table, counter] = one(2)
    clock.nowMs += MINUTE_MS / 4
    assert.equal(admitted(table, counter, 1), 1)
    clock.nowMs += jumpMs
    const window = jumpMs === -MINUTE_MS / 2 ? 2 : more
    assert.equal(admitted(table, counter, 10), window)
    assert.equal(admitted(table, counter, 10), 0)
    clock.nowMs += MINUTE_MS
    assert.ok(admitted(table, counter, 10) >= 1)
    assert.equal(admitted(table, counter, 10), 0)
  })
}

test('after steps of the clock of one window back and forth both windows keep their counts', () => {
  const [clock, table, counter] = one(3)
  assert.equal(admitted(table, counter, 2), 2)
  clock.nowMs += MINUTE_MS
  assert.equal(admitted(table, counter, 1), 1)
  clock.nowMs -= MINUTE_MS
  assert.equal(admitted(table, counter, 9), 1)
  clock.nowMs += MINUTE_MS
  assert.equal(admitted(table, counter, 9), 2)
})

test('a sliding window takes over the part of the window before that is within its length', () => {
  const [clock, table, counter] = one(10, { window: 'sliding' })
  clock.nowMs += MINUTE_MS / 2
  assert.equal(admitted(table, counter, 20), 10)
  clock.nowMs += MINUTE_MS
  assert.equal(admitted(table, counter, 20), 5)
  clock.nowMs += 3 * MINUTE_MS
  assert.equal(admitted(table, counter, 20), 10)
})

test('reset sets a key to 0 by its text or its label; another key keeps its count', () => {
  const clock = new Clock()
  const [table] = tables(1, 16, clock.read)
  const long = `subscription:${'x'.repeat(200)}é`
  const [counter, other] = [long, 'other'].map(key => table!.counter(specOf(key, quotaOf(1))))
  for (const each of [counter!, other!]) assert.equal(table!.admit([each]), -1)
  assert.ok(!listing(table!).reset('unknown'))
  assert.ok(listing(table!).reset(long))
  assert.equal(table!.remaining(counter!), 1)
  assert.equal(table!.remaining(other!), 0)
  assert.equal(table!.admit([counter!]), -1)
  const labels: string[] = []
  listing(table!).entries(({ label }) => labels.push(label))
  assert.match(labels[0]!, /^subscription:x+…x+é$/)
  assert.ok(listing(table!).reset(labels[0]!))
  assert.equal(table!.remaining(counter!), 1)
})

test('counters are restored in their windows, and not afterwards', () => {
  const clock = new Clock()
  const [table] = tables(1, 16, clock.read)
  const specs = [
    specOf('short', quotaOf(5)),
    specOf('long', quotaOf(5, { unit: 'day' })),
    specOf('sliding', quotaOf(5, { window: 'sliding' })),
    specOf('bytes', quotaOf(2 ** 40, { type: 'bandwidth', unit: 'month' })),
  ]
  for (const spec of specs) table!.admit([table!.counter(spec)])
  table!.charge(table!.counter(specs[3]!), 6400)
  const entries: CounterEntry[] = []
  listing(table!).entries(entry => entries.push(structuredClone(entry)))
  clock.nowMs += MINUTE_MS
  const again = new Table(Table.allocate(16, listing(table!).seed), clock.read, 1)
  assert.deepEqual(
    entries.map(entry => listing(again).restore(entry)),
    [false, true, true, true],
  )
  const left = specs.map(spec => again.remaining(again.counter(spec)))
  assert.deepEqual(left, [5, 4, 4, 2 ** 40 - 6400])
})
