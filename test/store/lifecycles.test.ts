/** Records of what became of APIs: when they hold, when the project has the newer word, and how long they stay. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LifecycleState } from '../../src/config/api-definition.ts'
import { changed, type LifecycleRecords, type LivingApi, NO_RECORDS, settle } from '../../src/store/lifecycles.ts'

const DAY_MS = 86_400_000
const NOW_MS = 1_800_000_000_000
const TERMS = { nowMs: NOW_MS, sunsetAfterMs: 180 * DAY_MS }

function api(
  name: string,
  declared: LifecycleState = 'PUBLISHED',
  address = `/${name.toLowerCase()}/1.0.0`,
): LivingApi {
  return { address, name, version: '1.0.0', declared }
}

const ORDERS = api('Orders')
const BLOCKED = changed(NO_RECORDS, ORDERS, 'BLOCKED', { nowMs: NOW_MS - DAY_MS, sunsetMs: 0 })

/** `address state` of each, `(absent)` behind those of which there is no API. */
function told(records: LifecycleRecords): readonly string[] {
  return [...records.values()].map(
    ({ address, state, absentSinceMs }) => `${address} ${state}${absentSinceMs === 0 ? '' : ' (absent)'}`,
  )
}

const MOVED = '/sales/1.0.0'
const SETTLED: readonly (readonly [what: string, apis: readonly LivingApi[], records: readonly string[]])[] = [
  ['as it was', [ORDERS], ['/orders/1.0.0 BLOCKED']],
  ['beside others', [api('Menu'), ORDERS], ['/orders/1.0.0 BLOCKED']],
  ['with another name', [{ ...ORDERS, name: 'Bestellungen' }], ['/orders/1.0.0 BLOCKED']],
  ['with another context', [{ ...ORDERS, address: MOVED }], ['/sales/1.0.0 BLOCKED']],
  ['under a host', [{ ...ORDERS, address: 'a.example/orders/1.0.0' }], ['a.example/orders/1.0.0 BLOCKED']],
  [
    'under two hosts, one API each',
    ['a.example', 'b.example'].map(host => ({ ...ORDERS, address: `${host}/orders/1.0.0` })),
    ['a.example/orders/1.0.0 BLOCKED', 'b.example/orders/1.0.0 BLOCKED'],
  ],
  ['gone', [], ['/orders/1.0.0 BLOCKED (absent)']],
  [
    'with another context, and another API at its own',
    [
      { ...ORDERS, name: 'X' },
      { ...ORDERS, address: MOVED },
    ],
    ['/orders/1.0.0 BLOCKED'],
  ],
  ['another version', [{ ...ORDERS, address: '/orders/2', version: '2' }], ['/orders/1.0.0 BLOCKED (absent)']],
  ['declared otherwise', [api('Orders', 'CREATED')], []],
  ['declared blocked', [api('Orders', 'BLOCKED')], []],
  ['declared otherwise under another context', [api('Orders', 'CREATED', MOVED)], []],
]

for (const [what, apis, records] of SETTLED) {
  test(`a blocked API, found ${what}`, () => assert.deepEqual(told(settle(BLOCKED, apis, TERMS).records), records))
}

test('where nothing is different the records are the same, and need not be written', () => {
  assert.equal(settle(BLOCKED, [ORDERS], TERMS).records, BLOCKED)
  assert.equal(settle(NO_RECORDS, [ORDERS], TERMS).records, NO_RECORDS)
  const absent = settle(BLOCKED, [], TERMS).records
  assert.equal(settle(absent, [], { ...TERMS, nowMs: NOW_MS + DAY_MS }).records, absent)
})

test('the newer word of the project is told, and stays once it is written', () => {
  const { records, overruled } = settle(BLOCKED, [api('Orders', 'CREATED')], TERMS)
  assert.deepEqual(overruled, [...BLOCKED.values()])
  assert.equal(settle(records, [ORDERS], TERMS).records.size, 0)
})

test('an API that comes back is as it was left', () => {
  const gone = settle(BLOCKED, [], TERMS).records
  assert.deepEqual(told(settle(gone, [ORDERS], TERMS).records), ['/orders/1.0.0 BLOCKED'])
})

test('an API that is declared deprecated is so since it was first seen, whatever comes later', () => {
  const { records } = settle(NO_RECORDS, [api('Orders', 'DEPRECATED')], TERMS)
  const [record] = [...records.values()]
  assert.deepEqual([record!.sinceMs, record!.sunsetMs], [NOW_MS, NOW_MS + 180 * DAY_MS])
  const later = { nowMs: NOW_MS + DAY_MS, sunsetAfterMs: 0 }
  assert.equal(settle(records, [api('Orders', 'DEPRECATED')], later).records, records)
  const without = settle(NO_RECORDS, [api('Orders', 'DEPRECATED')], later).records
  assert.equal([...without.values()][0]!.sunsetMs, 0)
})

test('records of APIs that are gone are forgotten after a year', () => {
  const gone = settle(BLOCKED, [], TERMS).records
  const after = (days: number) => settle(gone, [], { ...TERMS, nowMs: NOW_MS + days * DAY_MS })
  assert.deepEqual([after(364).records.size, after(364).forgotten.length], [1, 0])
  assert.deepEqual([after(365).records.size, after(365).forgotten.length], [0, 1])
})

test('records of APIs that are gone are 10,000 at most: those that went first are forgotten', () => {
  const many = Array.from({ length: 10_001 }, (_, i) => api(`Many${i}`))
  const blocked = many.reduce((map, it) => map.set(it.address, recordOf(it)), new Map())
  const first = settle(blocked, many.slice(1), TERMS).records
  assert.equal(first.size, 10_001)
  const { records, forgotten } = settle(first, [], { ...TERMS, nowMs: NOW_MS + 1 })
  assert.equal(records.size, 10_000)
  assert.deepEqual(
    forgotten.map(({ name }) => name),
    ['Many0'],
  )
  assert.equal(settle(blocked, many, TERMS).records.size, 10_001)
})

function recordOf(living: LivingApi) {
  return [...changed(NO_RECORDS, living, 'BLOCKED', { nowMs: NOW_MS, sunsetMs: 0 }).values()][0]!
}
