/** Caches that take memory as entries come are bounded as others are. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LRUCache } from 'lru-cache'
import { growingTo } from '../../src/structure/growing-cache.ts'

test('beyond its entries the one that was used least lately goes', () => {
  const cache = new LRUCache<number, string>({ ...growingTo(3), ttl: 1000 })
  for (const key of [1, 2, 3]) cache.set(key, 'kept')
  cache.get(1)
  cache.set(2, 'again')
  cache.set(4, 'kept')
  assert.deepEqual([...cache.keys()].sort(), [1, 2, 4])
  assert.equal(cache.max, 0)
})
