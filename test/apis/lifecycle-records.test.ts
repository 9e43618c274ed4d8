/** Lifecycle records: which API a record belongs to, when the project is newer, and how long records are kept. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LifecycleState } from '../../src/apis/api-definition.ts'
import {
  withState,
  type LifecycleRecords,
  type DeclaredState,
  NO_RECORDS,
  reconcile,
} from '../../src/apis/lifecycle-records.ts'

const DAY_MS = 86_400_000
const NOW_MS = 1_800_000_000_000
const CLOCK = { nowMs: NOW_MS, sunsetAfterMs: 180 * DAY_MS }

function api(
  name: string,
  declared: LifecycleState = 'PUBLISHED',
  address = `/${name.toLowerCase()}/1.0.0`,
): DeclaredState {
  return { address, name, version: '1.0.0', declared }
}

const ORDERS = api('Orders')
const BLOCKED = withState(NO_RECORDS, ORDERS, 'BLOCKED', { nowMs: NOW_MS - DAY_MS, sunsetMs: 0 })

/** `address state` of each record, with `(absent)` if there is no such API. */
function textsOf(records: LifecycleRecords): readonly string[] {
  return [...records.values()].map(
    ({ address, state, absentSinceMs }) => `${address} ${state}${absentSinceMs === 0 ? '' : ' (absent)'}`,
  )
}

const MOVED = '/sales/1.0.0'
const RECONCILED: readonly (readonly [what: string, apis: readonly DeclaredState[], records: readonly string[]])[] = [
  ['unchanged', [ORDERS], ['/orders/1.0.0 BLOCKED']],
  ['beside others', [api('Menu'), ORDERS], ['/orders/1.0.0 BLOCKED']],
  ['with another name', [{ ...ORDERS, name: 'Bestellungen' }], ['/orders/1.0.0 BLOCKED']],
  ['with another context', [{ ...ORDERS, address: MOVED }], ['/sales/1.0.0 BLOCKED']],
  ['under a host', [{ ...ORDERS, address: 'a.example/orders/1.0.0' }], ['a.example/orders/1.0.0 BLOCKED']],
  [
    'under two hosts, one API each',
    ['a.example', 'b.example'].map(host => ({ ...ORDERS, address: `${host}/orders/1.0.0` })),
    ['a.example/orders/1.0.0 BLOCKED', 'b.example/orders/1.0.0 BLOCKED'],
  ],
  ['missing', [], ['/orders/1.0.0 BLOCKED (absent)']],
  [
    'with another context, and another API at its own',
    [
      { ...ORDERS, name: 'X' },
      { ...ORDERS, address: MOVED },
    ],
    ['/orders/1.0.0 BLOCKED'],
  ],
  ['another version', [{ ...ORDERS, address: '/orders/2', version: '2' }], ['/orders/1.0.0 BLOCKED (absent)']],
  ['declared in another state', [api('Orders', 'CREATED')], []],
  ['declared blocked', [api('Orders', 'BLOCKED')], []],
  ['declared in another state under another context', [api('Orders', 'CREATED', MOVED)], []],
]

for (const [what, apis, records] of RECONCILED) {
  test(`a blocked API, found ${what}`, () =>
    assert.deepEqual(textsOf(reconcile(BLOCKED, apis, CLOCK).records), records))
}

test('without changes the records are the same object', () => {
  assert.equal(reconcile(BLOCKED, [ORDERS], CLOCK).records, BLOCKED)
  assert.equal(reconcile(NO_RECORDS, [ORDERS], CLOCK).records, NO_RECORDS)
  const absent = reconcile(BLOCKED, [], CLOCK).records
  assert.equal(reconcile(absent, [], { ...CLOCK, nowMs: NOW_MS + DAY_MS }).records, absent)
})

test('a newly declared state supersedes the record for good', () => {
  const { records, superseded } = reconcile(BLOCKED, [api('Orders', 'CREATED')], CLOCK)
  assert.deepEqual(superseded, [...BLOCKED.values()])
  assert.equal(reconcile(records, [ORDERS], CLOCK).records.size, 0)
})

test('an API that comes back has the state of its record', () => {
  const gone = reconcile(BLOCKED, [], CLOCK).records
  assert.deepEqual(textsOf(reconcile(gone, [ORDERS], CLOCK).records), ['/orders/1.0.0 BLOCKED'])
})

test('an API that is declared deprecated is so since it was first seen, whatever changes later', () => {
  const { records } = reconcile(NO_RECORDS, [api('Orders', 'DEPRECATED')], CLOCK)
  const [record] = [...records.values()]
  assert.deepEqual([record!.sinceMs, record!.sunsetMs], [NOW_MS, NOW_MS + 180 * DAY_MS])
  const later = { nowMs: NOW_MS + DAY_MS, sunsetAfterMs: 0 }
  assert.equal(reconcile(records, [api('Orders', 'DEPRECATED')], later).records, records)
  const without = reconcile(NO_RECORDS, [api('Orders', 'DEPRECATED')], later).records
  assert.equal([...without.values()][0]!.sunsetMs, 0)
})

test('records of absent APIs expire after a year', () => {
  const gone = reconcile(BLOCKED, [], CLOCK).records
  const after = (days: number) => reconcile(gone, [], { ...CLOCK, nowMs: NOW_MS + days * DAY_MS })
  assert.deepEqual([after(364).records.size, after(364).expired.length], [1, 0])
  assert.deepEqual([after(365).records.size, after(365).expired.length], [0, 1])
})

test('at most 10,000 records of absent APIs are kept, the longest absent ones expire', () => {
  const many = Array.from({ length: 10_001 }, (_, i) => api(`Many${i}`))
  const blocked = many.reduce((map, it) => map.set(it.address, recordOf(it)), new Map())
  const first = reconcile(blocked, many.slice(1), CLOCK).records
  assert.equal(first.size, 10_001)
  const { records, expired } = reconcile(first, [], { ...CLOCK, nowMs: NOW_MS + 1 })
  assert.equal(records.size, 10_000)
  assert.deepEqual(
    expired.map(({ name }) => name),
    ['Many0'],
  )
  assert.equal(reconcile(blocked, many, CLOCK).records.size, 10_001)
})

function recordOf(declared: DeclaredState) {
  return [...withState(NO_RECORDS, declared, 'BLOCKED', { nowMs: NOW_MS, sunsetMs: 0 }).values()][0]!
}
