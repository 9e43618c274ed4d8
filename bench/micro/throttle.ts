/**
 * Times the counters of the throttling engine: `npx node bench/micro/throttle.ts`. Zero, one and five counters per
 * request, refused requests, ten and a million keys, and the memory of a million keys.
 */
import { type Counter, CounterTable } from '../../src/throttle/counter-table.ts'
import { CounterListing } from '../../src/throttle/counter-listing.ts'
import type { Quota } from '../../src/throttle/policy.ts'
import { MeasuredTable } from '../measured-table.ts'
import { compare } from './timing.ts'

const MILLION = 1_000_000
const UNREACHED = 2 ** 35

function quota(limit: number, window: Quota['window'] = 'tumbling'): Quota {
  return { type: 'requests', limit, unit: 'min', units: 1, window }
}

function counterOf(table: CounterTable, key: string, of: Quota): Counter {
  return table.counter({ key, quota: of, overruns: false, policy: 'subscription:Gold', failMode: 'local' })
}

const table = new CounterTable(CounterTable.allocate(1000), Date.now, 1)
const named = (count: number, of: Quota, prefix: string): readonly Counter[] =>
  Array.from({ length: count }, (_, at) => counterOf(table, `${prefix}${at}`, of))
const none: readonly Counter[] = []
const one = named(1, quota(UNREACHED), 'one')
const five = named(5, quota(UNREACHED), 'five')
const sliding = named(5, quota(UNREACHED, 'sliding'), 'sliding')
const usedUp = named(1, quota(1), 'used')
table.admit(usedUp)
const refusedLast = [...five.slice(0, 4), usedUp[0]!]

compare('admit, ns of processor time beyond the clock', [
  { name: 'Date.now(), the base', run: () => Date.now() },
  { name: 'no counter (reads no clock)', run: () => table.admit(none) },
  { name: 'one counter', run: () => table.admit(one) },
  { name: 'five counters', run: () => table.admit(five) },
  { name: 'five counters with sliding windows', run: () => table.admit(sliding) },
  { name: 'refused by the only counter', run: () => table.admit(usedUp) },
  { name: 'refused by the last of five', run: () => table.admit(refusedLast) },
])

const rssBefore = process.memoryUsage.rss()
const large = new CounterTable(CounterTable.allocate(MILLION), Date.now, 1)
const keys = Array.from({ length: MILLION }, (_, at) => `application:user${at}:application${at}`)
const rssOfKeys = process.memoryUsage.rss()
const insertedAt = process.cpuUsage()
for (const key of keys) counterOf(large, key, quota(UNREACHED))
const inserting = process.cpuUsage(insertedAt)
globalThis.gc?.()
const mib = (bytes: number) => bytes / 2 ** 20
const { live } = new CounterListing(large).occupancy
const memory = new MeasuredTable('A million keys', { '': 2 })
memory.row('counters', live.toLocaleString('en-US'))
memory.row('µs of a new counter', inserting.user / MILLION)
memory.row('resident MiB of the table, with handles that are garbage', mib(process.memoryUsage.rss() - rssOfKeys))
memory.row('resident MiB before, with the texts of the keys', mib(rssOfKeys - rssBefore))

/** As many handles as a reactor may cache; every one of another slot of the million. */
const HANDLES = 4096
const spread = Array.from({ length: HANDLES }, (_, at) => [
  counterOf(large, keys[(at * 7919 * 31) % MILLION]!, quota(UNREACHED)),
])
const ten = Array.from({ length: 10 }, (_, at) => [counterOf(table, `ten${at}`, quota(UNREACHED))])
let next = 0
compare('one counter per admit, by keys', [
  { name: 'ten keys in turn, the base', run: () => table.admit(ten[next++ % 10]!) },
  { name: '4,096 keys in turn, of 10^6 in the table', run: turn => large.admit(spread[turn]!) },
  { name: 'the same of ten keys, of 10^6 in the table', run: turn => large.admit(spread[turn % 10]!) },
])
const spec = { quota: quota(UNREACHED), overruns: false, policy: 'subscription:Gold', failMode: 'local' } as const
compare('handle of a known key, which costs its hash', [
  { name: 'of 10^6 keys', run: turn => large.counter({ ...spec, key: keys[(turn * 7919) % MILLION]! }) },
])
