/** The file of counters: what survives a process, what does not, and files that are damaged. */
import assert from 'node:assert/strict'
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { CounterFile, readCounterFile } from '../../src/throttle/counter-file.ts'
import { CounterTable } from '../../src/throttle/counter-table.ts'
import { Random, SEED } from '../harness/random.ts'
import { admitted, Clock, quotaOf, specOf, listing } from './counting.ts'

const MINUTE_MS = 60_000
const CAPACITY = 20_000

function pathFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'counters-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'throttle-counters')
}

/** The table of the next process, with what its file has. */
function restart(path: string, clock: Clock): CounterTable {
  const saved = readCounterFile(path)
  const table = new CounterTable(CounterTable.allocate(CAPACITY, saved.seed), clock.read, 1)
  for (const entry of saved.entries) listing(table).restore(entry)
  return table
}

async function save(path: string, table: CounterTable): Promise<void> {
  const file = new CounterFile(path, listing(table), cause => assert.fail(cause))
  file.open()
  await file.close()
}

function newTable(clock: Clock): CounterTable {
  return new CounterTable(CounterTable.allocate(CAPACITY), clock.read, 1)
}

const WINDOWS = [
  ['a minute', quotaOf(10, { unit: 'min' }), 4],
  ['60 seconds', quotaOf(10, { unit: 'sec', units: 60 }), 4],
  ['a sliding hour', quotaOf(10, { unit: 'hour', window: 'sliding' }), 4],
  ['a month', quotaOf(10, { unit: 'month' }), 4],
  ['a second', quotaOf(10, { unit: 'sec' }), 10],
  ['59 seconds', quotaOf(10, { unit: 'sec', units: 59 }), 10],
] as const

for (const [name, quota, left] of WINDOWS) {
  test(`after a restart a window of ${name} has ${left} of 10 left`, async t => {
    const path = pathFor(t)
    const clock = new Clock()
    const table = newTable(clock)
    assert.equal(admitted(table, table.counter(specOf('key', quota)), 6), 6)
    await save(path, table)
    const next = restart(path, clock)
    assert.equal(admitted(next, next.counter(specOf('key', quota)), 20), left)
  })
}

test('a window that has ended meanwhile begins anew; bytes and refusals survive', async t => {
  const path = pathFor(t)
  const clock = new Clock()
  const table = newTable(clock)
  const bytes = specOf('bytes', quotaOf(1e12, { type: 'bandwidth', unit: 'day' }))
  table.charge(table.counter(bytes), 4e11)
  const hour = specOf('hour', quotaOf(5, { unit: 'hour' }))
  assert.equal(admitted(table, table.counter(hour), 9), 5)
  admitted(table, table.counter(specOf('minute', quotaOf(5))), 5)
  await save(path, table)
  clock.nowMs += MINUTE_MS
  const next = restart(path, clock)
  const minute = next.counter(specOf('minute', quotaOf(5)))
  assert.equal(admitted(next, minute, 9), 5)
  assert.ok(Math.abs(next.remaining(next.counter(bytes)) - 6e11) < 64)
  assert.equal(admitted(next, next.counter(hour), 1), 0)
  assert.deepEqual([...listing(next).refusals()], [['subscription:Gold', 9]])
})

test('what is charged later is appended, and survives without an orderly end', async t => {
  const path = pathFor(t)
  const clock = new Clock()
  const table = newTable(clock)
  const counter = table.counter(specOf('key', quotaOf(100)))
  const file = new CounterFile(path, listing(table), cause => assert.fail(cause))
  t.after(() => file.close())
  file.open()
  for (const count of [3, 4]) {
    admitted(table, counter, count)
    const expected = 100 - table.remaining(counter)
    while (readCounterFile(path).entries[0]?.used !== expected) await new Promise(done => setTimeout(done, 20))
  }
  const next = restart(path, clock)
  assert.equal(next.remaining(next.counter(specOf('key', quotaOf(100)))), 93)
})

test('random counters are the same after any number of restarts', async t => {
  const random = new Random(SEED)
  const path = pathFor(t)
  const clock = new Clock()
  let table = newTable(clock)
  const specs = Array.from({ length: 300 }, (_, at) => {
    const unit = random.pick(['min', 'hour', 'day', 'month'] as const)
    const window = random.once(2) ? 'sliding' : 'tumbling'
    return specOf(`key ${at} ${'x'.repeat(random.below(200))}`, quotaOf(50, { unit, window }))
  })
  for (let round = 0; round < 5; round++) {
    for (const spec of specs) admitted(table, table.counter(spec), random.below(20))
    clock.nowMs += random.below(3 * MINUTE_MS)
    await save(path, table)
    const next = restart(path, clock)
    const left = (from: CounterTable) => specs.map(spec => from.remaining(from.counter(spec)))
    assert.deepEqual(left(next), left(table), `seed ${SEED}, round ${round}`)
    table = next
  }
})

const DAMAGES: readonly (readonly [string, (path: string) => void, RegExp, number])[] = [
  ['an incomplete last batch', path => appendFileSync(path, Buffer.from([90, 0, 0, 0, 1, 2])), /last 6 bytes/, 1],
  ['a byte that has changed', path => flip(path, -3), /bytes are incomplete/, 0],
  ['a cut', path => truncateSync(path, statSync(path).size - 5), /bytes are incomplete/, 0],
  ['another kind of file', path => writeFileSync(path, 'something else, of enough bytes for a head'), /begin/, 0],
  ['an empty file', path => truncateSync(path), /begin/, 0],
]

function flip(path: string, at: number): void {
  const bytes = readFileSync(path)
  bytes[bytes.length + at]! ^= 1
  writeFileSync(path, bytes)
}

for (const [name, damage, told, entries] of DAMAGES) {
  test(`of a file with ${name} the whole batches in front count, and the damage is reported`, async t => {
    const path = pathFor(t)
    const table = newTable(new Clock())
    admitted(table, table.counter(specOf('key', quotaOf(10))), 3)
    await save(path, table)
    damage(path)
    const saved = readCounterFile(path)
    assert.match(saved.damage, told)
    assert.equal(saved.entries.length, entries)
  })
}

test('a device in the place of the file is reported and not read', t => {
  const path = pathFor(t)
  symlinkSync('/dev/zero', path)
  assert.deepEqual(readCounterFile(path), { seed: undefined, entries: [], damage: 'it is no file' })
})

test('without a file there is nothing to restore, and nothing is reported', t => {
  assert.deepEqual(readCounterFile(pathFor(t)), { seed: undefined, entries: [], damage: '' })
})

test('a folder that cannot be written is reported once, and once more when it can be', async t => {
  const path = pathFor(t)
  const clock = new Clock()
  const table = newTable(clock)
  const told: string[] = []
  const file = new CounterFile(join(path, 'sub', 'counters'), listing(table), cause => told.push(cause))
  t.after(() => file.close())
  file.open()
  while (told.length === 0) await new Promise(done => setTimeout(done, 20))
  await new Promise(done => setTimeout(done, 1100))
  assert.deepEqual(told, ['ENOENT'])
  assert.equal(existsSync(path), false)
})
