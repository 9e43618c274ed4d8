/** Caches in the metrics: levels are set, counts go on, and each cache counts what it drops. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IntrospectionCache } from '../../src/control/oauth/introspection-cache.ts'
import { ReplayCache } from '../../src/control/oauth/replay-cache.ts'
import { CacheWatch } from '../../src/observe/cache-metrics.ts'
import { allocateMetrics, METRIC, MetricsColumn } from '../../src/observe/metrics.ts'
import { type CacheUsage, sumOfUsages } from '../../src/runtime/cache-usage.ts'
import { DnsCache } from '../../src/socket/dns-cache.ts'

test('entries are as they are now, counts add up over a cache that a reload replaces', () => {
  const column = new MetricsColumn(allocateMetrics(1), 0)
  let usage: CacheUsage | null = { entries: 5, evictions: 3, hits: 10, misses: 5 }
  const watch = new CacheWatch(column, { dns: () => usage })
  const read = () =>
    [METRIC.dnsEntries, METRIC.dnsEvictions, METRIC.dnsHits, METRIC.dnsMisses].map(cell => column.read(cell))
  watch.tick(1000)
  assert.deepEqual(read(), [5, 3, 10, 5])
  usage = { entries: 4, evictions: 4, hits: 12, misses: 5 }
  watch.tick(1500)
  assert.deepEqual(read(), [5, 3, 10, 5], 'once a second')
  watch.tick(2000)
  assert.deepEqual(read(), [4, 4, 12, 5])
  usage = { entries: 0, evictions: 0, hits: 0, misses: 0 }
  watch.tick(3000)
  usage = { entries: 1, evictions: 0, hits: 2, misses: 1 }
  watch.tick(4000)
  assert.deepEqual(read(), [1, 4, 14, 6])
  usage = null
  watch.tick(5000)
  assert.deepEqual(read(), [1, 4, 14, 6])
})

test('of several caches each figure is the sum, and what none has is absent', () => {
  assert.deepEqual(sumOfUsages([{ entries: 1, bytes: 7 }, { entries: 2 }]), { entries: 3, bytes: 7 })
  assert.deepEqual(sumOfUsages([]), { entries: 0 })
})

test('the cache of addresses counts hits, misses and what it drops; numeric addresses are no lookups', () => {
  const dns = new DnsCache(60, (host, _, callback) => {
    if (host.startsWith('no')) callback(Object.assign(new Error(host), { code: 'ENOTFOUND' }), [])
    else callback(null, [{ address: '192.0.2.1' }])
  })
  const resolve = (host: string) => dns.resolve(host, () => undefined)
  for (const host of ['a', 'a', 'no-name', 'no-name', '192.0.2.7', '[::1]']) resolve(host)
  assert.deepEqual(dns.usage(), { entries: 2, evictions: 0, hits: 2, misses: 2 })
  for (let at = 0; at < 1001; at++) resolve(`host-${at}`)
  assert.deepEqual(dns.usage(), { entries: 1001, evictions: 2, hits: 2, misses: 1003 })
})

test('the cache of introspections counts entries and bytes, and a revocation is no eviction', () => {
  const cache = new IntrospectionCache(() => 0)
  for (const key of ['a', 'b']) cache.set(key, { active: true }, 1000, cache.version)
  const { entries, bytes, evictions } = cache.usage()
  assert.deepEqual([entries, evictions], [2, 0])
  assert.ok(bytes! > 0)
  for (let at = 0; at < 20_000; at++) cache.set(`${at}`, { active: true }, 1000, cache.version)
  assert.ok(cache.usage().evictions! >= 10_000)
  const before = cache.usage().evictions
  cache.clear()
  assert.deepEqual([cache.usage().entries, cache.usage().bytes, cache.usage().evictions], [0, 0, before])
})

test('the cache of used assertions counts its entries', () => {
  const cache = new ReplayCache()
  cache.add('h.p.s', 1000, 0)
  assert.deepEqual(cache.usage(), { entries: 1 })
})
