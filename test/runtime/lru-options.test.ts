/** Caches that allocate as they fill are limited like others. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LRUCache } from 'lru-cache'
import { growingTo } from '../../src/runtime/lru-options.ts'

test('a full cache evicts the least recently used entry', () => {
  const cache = new LRUCache<number, string>({ ...growingTo(3), ttl: 1000 })
  for (const key of [1, 2, 3]) cache.set(key, 'first')
  cache.get(1)
  cache.set(2, 'second')
  cache.set(4, 'first')
  assert.deepEqual([...cache.keys()].sort(), [1, 2, 4])
  assert.equal(cache.max, 0)
})
