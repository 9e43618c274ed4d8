/** Replay cache of assertions: each is accepted once, and the cache is bounded. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReplayCache } from '../../../src/control/oauth/replay-cache.ts'

test('RFC 7523 3: a full replay cache drops no assertion that could be replayed, and accepts no other', () => {
  const cache = new ReplayCache(2)
  assert.deepEqual([cache.add('a.a.s', 1000, 0), cache.add('b.b.s', 2000, 0)], ['added', 'added'])
  assert.deepEqual([cache.add('c.c.s', 3000, 0), cache.add('a.a.s', 1000, 0)], ['full', 'replayed'])
  assert.equal(cache.add('b.b.other', 2000, 999), 'replayed', 'the same assertion with another signature is a replay')
  // The first entry has expired and is replaced.
  assert.deepEqual([cache.add('c.c.s', 3000, 1000), cache.add('d.d.s', 4000, 1000)], ['added', 'full'])
  assert.deepEqual([cache.add('b.b.s', 2000, 1999), cache.add('d.d.s', 4000, 3000)], ['replayed', 'added'])
})
