/** Assertions are good once, and the memory of them is bounded: what that comes to where it is full. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ShownAssertions } from '../../src/keymanager/shown-assertions.ts'

test('RFC 7523 3: a full memory forgets no assertion that could be shown again, and takes no other', () => {
  const shown = new ShownAssertions(2)
  assert.deepEqual([shown.take('a.a.s', 1000, 0), shown.take('b.b.s', 2000, 0)], ['first', 'first'])
  assert.deepEqual([shown.take('c.c.s', 3000, 0), shown.take('a.a.s', 1000, 0)], ['full', 'again'])
  assert.equal(shown.take('b.b.other', 2000, 999), 'again', 'another signature is the same assertion')
  // The first is over, and gives its place.
  assert.deepEqual([shown.take('c.c.s', 3000, 1000), shown.take('d.d.s', 4000, 1000)], ['first', 'full'])
  assert.deepEqual([shown.take('b.b.s', 2000, 1999), shown.take('d.d.s', 4000, 3000)], ['again', 'first'])
})
