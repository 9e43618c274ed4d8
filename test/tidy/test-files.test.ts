/** The paths that `npm test` takes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filesBelow, nearestTo } from '../harness/test-files.ts'

test('a room, a folder and a file may be named with and without test/', () => {
  for (const path of ['runtime/arena.test.ts', 'test/runtime/arena.test.ts'])
    assert.deepEqual(filesBelow(path), ['test/runtime/arena.test.ts'])
  assert.ok(filesBelow('runtime').includes('test/runtime/arena.test.ts'))
  assert.deepEqual(filesBelow('test/runtime/'), filesBelow('runtime'))
})

for (const [wrong, nearest] of [
  ['runtme', 'runtime'],
  ['runtime/arenas.test.ts', 'runtime/arena.test.ts'],
  ['arena.test.ts', 'runtime/arena.test.ts'],
  ['test/http1/arena.test.ts', 'runtime/arena.test.ts'],
  ['nothing-like-it', ''],
] as const) {
  test(`${wrong} has no tests; the nearest path that has is ${nearest || 'none'}`, () => {
    assert.deepEqual(filesBelow(wrong), [])
    assert.equal(nearestTo(wrong), nearest)
  })
}
