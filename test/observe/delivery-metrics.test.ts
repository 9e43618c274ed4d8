/** Metrics of deliveries: their lines, and threads that count in the same memory. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { DeliveryCounts } from '../../src/observe/delivery-counts.ts'
import { renderDeliveryMetrics } from '../../src/observe/delivery-metrics.ts'

const MODULE = new URL('../../src/observe/delivery-counts.ts', import.meta.url).href

function linesOf(counts: DeliveryCounts, pattern: RegExp): readonly string[] {
  return renderDeliveryMetrics(counts)
    .split('\n')
    .filter(line => pattern.test(line))
}

test('each family has its heading without any delivery, and channels have labels of a fixed set', () => {
  const counts = new DeliveryCounts()
  assert.deepEqual(
    linesOf(counts, /^# TYPE/).map(line => line.slice('# TYPE sluice_'.length)),
    [
      'delivery_events_total counter',
      'delivery_refusals_total counter',
      'deliveries gauge',
      'delivery_attempt_duration_seconds histogram',
      'delivery_duration_seconds histogram',
    ],
  )
  const channels = linesOf(counts, /^sluice/).map(line => /channel="(\w+)"/.exec(line)?.[1])
  assert.deepEqual([...new Set(channels)], ['sms', 'email', 'platform'])
  counts.count('fax', 'accepted', 2)
  counts.count('pager', 'accepted', 3)
  assert.deepEqual(linesOf(counts, /other.*accepted/), [
    'sluice_delivery_events_total{channel="other",event="accepted"} 5',
  ])
})

test('events, refusals, states and durations have their lines', () => {
  const counts = new DeliveryCounts()
  counts.count('sms', 'recovered', 3)
  counts.countRefused('email', 'tenant-waiting', 2)
  const stored = new Map([['sms', { waiting: 7, delivered: 8, dead: 9 }]])
  counts.setStored(['sms', 'email', 'other'], stored)
  for (const seconds of [0.005, 0.006, 31]) counts.countDuration('sms', 'attempt', seconds)
  for (const line of [
    'sluice_delivery_events_total{channel="sms",event="recovered"} 3',
    'sluice_delivery_refusals_total{channel="email",reason="tenant_waiting"} 2',
    'sluice_deliveries{channel="sms",state="dead"} 9',
    'sluice_delivery_attempt_duration_seconds_bucket{channel="sms",le="0.005"} 1',
    'sluice_delivery_attempt_duration_seconds_bucket{channel="sms",le="0.01"} 2',
    'sluice_delivery_attempt_duration_seconds_bucket{channel="sms",le="30"} 2',
    'sluice_delivery_attempt_duration_seconds_bucket{channel="sms",le="+Inf"} 3',
    'sluice_delivery_attempt_duration_seconds_sum{channel="sms"} 31.011',
    'sluice_delivery_attempt_duration_seconds_count{channel="sms"} 3',
  ]) {
    assert.deepEqual(linesOf(counts, new RegExp(`^${RegExp.escape(line)}$`)), [line])
  }
  counts.setStored(['sms'], new Map())
  assert.deepEqual(linesOf(counts, /sms.*dead/).at(-1), 'sluice_deliveries{channel="sms",state="dead"} 0')
})

/** Counts on the main thread, on a thread, and on a thread of that thread; the first one prints the sum. */
const PROGRAM = `
  import { DeliveryCounts, shareDeliveryCounts } from '${MODULE}'
  import { once } from 'node:events'
  import { isMainThread, Worker, workerData } from 'node:worker_threads'
  if (isMainThread) shareDeliveryCounts()
  const { depth = 0 } = workerData ?? {}
  const next = depth < 2 ? new Worker(new URL(import.meta.url), { workerData: { depth: depth + 1 } }) : null
  const counts = DeliveryCounts.ofProcess()
  for (let i = 0; i < 20_000; i++) counts.count('sms', 'delivered', 1)
  if (next !== null) await once(next, 'exit')
  if (isMainThread) console.log(counts.sample('sms').events.delivered)
`

test('threads of a process count in one memory, and lose nothing', () => {
  const url = `data:text/javascript,${encodeURIComponent(PROGRAM)}`
  const words = ['--input-type=module', '--eval', `await import(${JSON.stringify(url)})`]
  assert.equal(execFileSync(process.execPath, words, { encoding: 'utf8' }), '60000\n')
})
