/** Threads that interleave between two instructions, threads that die there, and a table without free slots. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CounterTable } from '../../src/throttle/counter-table.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import { admitted, Clock, diesAt, quotaOf, specOf, tables, withAtomicWrites, listing } from './counting.ts'

const MINUTE_MS = 60_000

/** Runs `rival` once, before atomic write number `write` of `body`. */
function interleaved(write: number, body: () => void, rival: () => void): void {
  let depth = 0
  withAtomicWrites(at => {
    if (at !== write || depth > 0) return
    depth++
    rival()
  }, body)
}

test('of two rivals for the last request one is admitted, and the other is counted by no counter', () => {
  for (let write = 0; write < 6; write++) {
    const clock = new Clock()
    const [a, b] = tables(2, 16, clock.read)
    const specs = ['first', 'second', 'third'].map(key => specOf(key, quotaOf(key === 'third' ? 1 : 9)))
    const mine = specs.map(spec => a!.counter(spec))
    const theirs = b!.counter(specs[2]!)
    let verdict = -1
    let rival = -1
    let hasRun = false
    interleaved(
      write,
      () => {
        verdict = a!.admit(mine)
      },
      () => {
        hasRun = true
        rival = b!.admit([theirs])
      },
    )
    const passed = (verdict < 0 ? 1 : 0) + (hasRun && rival < 0 ? 1 : 0)
    assert.equal(passed, 1, `write ${write}`)
    assert.equal(a!.remaining(mine[0]!), verdict < 0 ? 8 : 9, `write ${write}`)
    assert.equal(a!.remaining(mine[2]!), 0, `write ${write}`)
  }
})

test('a slot that is evicted and given to another key between check and charge is charged for neither', () => {
  const clock = new Clock()
  // One slot: the second key can only have that of the first.
  const [a, b] = tables(2, 1, clock.read)
  const old = a!.counter(specOf('old', quotaOf(5)))
  clock.nowMs += 3 * MINUTE_MS
  const fresh = specOf('fresh', quotaOf(3))
  let verdict = -1
  interleaved(
    0,
    () => {
      verdict = a!.admit([old])
    },
    () => assert.equal(b!.admit([b!.counter(fresh)]), -1),
  )
  assert.equal(verdict, 0, 'the table is full, and the counter fails closed')
  assert.equal(b!.remaining(b!.counter(fresh)), 2)
  clock.nowMs += 3 * MINUTE_MS
  assert.equal(admitted(a!, old, 9), 5, 'the old key finds a slot again')
})

test('a key that is charged while it is evicted stays, with its count', () => {
  for (let write = 0; write < 12; write++) {
    const clock = new Clock()
    const [a, b] = tables(2, 1, clock.read)
    const old = a!.counter(specOf('old', quotaOf(5)))
    clock.nowMs += 3 * MINUTE_MS
    let charged = 0
    let isBusy = false
    interleaved(
      write,
      () => b!.counter(specOf('fresh', quotaOf(3))),
      () => {
        charged = admitted(a!, old, 1)
        isBusy = listing(a!).occupancy.busy > 0
      },
    )
    const kept = a!.counter(specOf('old', quotaOf(5)))
    if (charged === 1 && kept.slot >= 0) assert.equal(a!.remaining(kept), 4, `write ${write}`)
    if (charged === 0) assert.ok(isBusy || listing(a!).occupancy.full > 0, `write ${write}`)
  }
})

// ---- dead threads ---------------------------------------------------------------------------------------------------

/** Fills a table of four with keys that expire, and inserts one more, which evicts. */
function insertingTable(): { clock: Clock; memory: SharedArrayBuffer; table: CounterTable } {
  const clock = new Clock()
  const memory = CounterTable.allocate(4)
  const table = new CounterTable(memory, clock.read, 1)
  for (const key of ['a', 'b', 'c']) table.admit([table.counter(specOf(key, quotaOf(2)))])
  table.admit([table.counter(specOf('kept', quotaOf(2, { unit: 'day' })))])
  clock.nowMs += 3 * MINUTE_MS
  return { clock, memory, table }
}

for (const heir of ['the thread that takes its place', 'the primary']) {
  test(`a thread that dies at any atomic write of an insertion leaves a table that ${heir} repairs`, () => {
    let deaths = 0
    for (let write = 0; ; write++) {
      const { clock, memory, table } = insertingTable()
      if (!diesAt(write, () => table.counter(specOf('new', quotaOf(2))))) break
      deaths++
      const primary = new CounterTable(memory, clock.read, 9)
      if (heir === 'the primary') primary.release(1)
      const after = heir === 'the primary' ? primary : new CounterTable(memory, clock.read, 1)
      assert.equal(after.remaining(after.counter(specOf('kept', quotaOf(2, { unit: 'day' })))), 1, `write ${write}`)
      for (const key of ['new', 'x', 'y']) {
        const counter = after.counter(specOf(key, quotaOf(2)))
        assert.ok(counter.slot >= 0, `write ${write}: ${key} has a slot`)
        assert.equal(admitted(after, counter, 5), 2, `write ${write}: ${key}`)
      }
      assert.equal(after.counter(specOf('z', quotaOf(2))).slot, -1, `write ${write}: four keys fill the table`)
      assert.equal(listing(after).occupancy.live, 4)
    }
    assert.ok(deaths > 10, `${deaths} deaths`)
  })
}

test('while a dead thread holds the lock, known keys are counted and new ones fail as their policy says', () => {
  const { clock, memory, table } = insertingTable()
  const known = table.counter(specOf('kept', quotaOf(2, { unit: 'day' })))
  // Write 1 follows the exchange that takes the lock.
  assert.ok(diesAt(1, () => table.counter(specOf('new', quotaOf(2)))))
  const other = new CounterTable(memory, clock.read, 2)
  assert.equal(admitted(other, other.counter(known.spec), 5), 1)
  assert.equal(other.admit([other.counter(specOf('closed', quotaOf(2), { failMode: 'closed' }))]), 0)
  assert.equal(other.admit([other.counter(specOf('open', quotaOf(2), { failMode: 'open' }))]), -1)
  assert.ok(listing(other).occupancy.busy > 0)
  assert.ok(other.release(1))
  assert.ok(!other.release(1), 'the lock is released once')
  assert.ok(other.counter(specOf('closed', quotaOf(2))).slot >= 0)
})

test(`a thread that dies at a random moment of random work never lets a limit be exceeded (seed ${SEED})`, () => {
  const random = new Random(SEED)
  for (let run = 0; run < (IS_LONG ? 5000 : 300); run++) {
    const clock = new Clock()
    const memory = CounterTable.allocate(6)
    let table = new CounterTable(memory, clock.read, 1)
    for (let life = 0; life < 4; life++) {
      const passed = new Map<string, number>()
      const work = (): void => {
        for (let step = 0; step < 20; step++) {
          const key = `key${random.below(8)}`
          if (table.admit([table.counter(specOf(key, quotaOf(2)))]) < 0) passed.set(key, (passed.get(key) ?? 0) + 1)
        }
      }
      diesAt(random.below(120), work)
      table = new CounterTable(memory, clock.read, 1)
      work()
      for (const [key, count] of passed) assert.ok(count <= 2, `run ${run}: ${count} of ${key}`)
      assert.ok(listing(table).occupancy.live <= 6)
      clock.nowMs += 2 * MINUTE_MS
    }
  }
})

// ---- full -----------------------------------------------------------------------------------------------------------

test('a full table evicts expired keys first, and keeps those whose window is not over', () => {
  const clock = new Clock()
  const [table] = tables(1, 8, clock.read)
  const days = [0, 1, 2, 3].map(at => table!.counter(specOf(`day${at}`, quotaOf(2, { unit: 'day' }))))
  for (const counter of days) assert.equal(table!.admit([counter]), -1)
  for (let round = 0; round < 20; round++) {
    for (let at = 0; at < 4; at++) {
      const counter = table!.counter(specOf(`round${round} ${at}`, quotaOf(2)))
      assert.equal(admitted(table!, counter, 5), 2, `round ${round}`)
    }
    assert.equal(table!.counter(specOf('more', quotaOf(2))).slot, -1)
    clock.nowMs += MINUTE_MS
  }
  for (const counter of days) assert.equal(table!.remaining(counter), 1)
  assert.equal(listing(table!).occupancy.full, 20)
  assert.equal(listing(table!).occupancy.evicted, 76)
})

test('a flood of new keys at a large full table takes the lock once in 5 ms, and finds what expires', () => {
  const clock = new Clock()
  const capacity = 10_000
  const [table] = tables(1, capacity, clock.read)
  for (let at = 0; at < capacity; at++) table!.counter(specOf(`key${at}`, quotaOf(2)))
  let writes = 0
  const flood = () => {
    for (let at = 0; at < 50; at++) assert.equal(table!.counter(specOf(`new${at}`, quotaOf(2))).slot, -1)
  }
  withAtomicWrites(() => void writes++, flood)
  // Each refusal is counted, which is one write.
  assert.ok(writes < 60, `${writes} writes`)
  clock.nowMs += MINUTE_MS
  for (let at = 0; at < 50; at++) assert.ok(table!.counter(specOf(`new${at}`, quotaOf(2))).slot >= 0)
})

for (const failMode of ['open', 'local', 'closed'] as const) {
  const effect = failMode === 'closed' ? 'refuses' : 'lets pass'
  test(`without a free slot a policy with fail mode ${failMode} ${effect}`, () => {
    const clock = new Clock()
    const [table] = tables(1, 1, clock.read)
    const placed = table!.counter(specOf('placed', quotaOf(9)))
    const other = table!.counter(specOf('other', quotaOf(1), { failMode }))
    for (let i = 0; i < 3; i++) assert.equal(table!.admit([placed, other]), failMode === 'closed' ? 1 : -1)
    assert.equal(table!.remaining(placed), failMode === 'closed' ? 9 : 6)
    assert.ok(listing(table!).occupancy.full >= 3)
    clock.nowMs += 2 * MINUTE_MS
    assert.equal(admitted(table!, other, 5), 1, 'a slot has expired')
  })
}

test('a table that a clock from the future has filled has room again when the clock is set back', () => {
  const clock = new Clock()
  const [table] = tables(1, 4, clock.read)
  clock.nowMs += 365 * 24 * 60 * MINUTE_MS
  for (let at = 0; at < 5; at++) table!.counter(specOf(`future${at}`, quotaOf(2)))
  clock.nowMs -= 365 * 24 * 60 * MINUTE_MS
  for (let at = 0; at < 4; at++) assert.ok(table!.counter(specOf(`now${at}`, quotaOf(2))).slot >= 0)
})
