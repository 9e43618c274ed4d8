/** Counts of pools of threads and of connections, as threads of a process count them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PoolCounts, renderPoolCounts } from '../../src/observe/pool-counts.ts'

test('pools of several threads count together, and the high-water mark is that of one', () => {
  const shared = new SharedArrayBuffer(1024)
  const [one, other] = [new PoolCounts('script', shared), new PoolCounts('script', shared)]
  one.setLimit(4)
  for (const used of [1, 3, 2]) one.used(used)
  other.used(2)
  other.waits()
  one.waits()
  one.waited(1.5)
  other.waited(2)
  other.failed('queue-full')
  new PoolCounts('database', shared).failed('died')
  const samples = Object.fromEntries(
    Array.from(renderPoolCounts(shared).matchAll(/^sluice_(\S+) (\S+)$/gm), ([, key, value]) => [key, Number(value)]),
  )
  assert.deepEqual(Object.fromEntries(Object.entries(samples).filter(([, value]) => value !== 0)), {
    'thread_pool_highest{pool="script"}': 3,
    'thread_pool_limit{pool="script"}': 4,
    'thread_pool_waits_total{pool="script"}': 2,
    'thread_pool_wait_seconds_total{pool="script"}': 0.0035,
    'thread_pool_failures_total{pool="script",reason="queue_full"}': 1,
    mounted_database_failures_total: 1,
  })
})
