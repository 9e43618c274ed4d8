/** The paths that `npm test` takes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filesBelow, filesOfLevel, LEVELS, nearestTo, processesOf } from '../harness/test-files.ts'

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

test('the handles level runs every test file', () => {
  assert.deepEqual(filesOfLevel('handles'), filesBelow('test/').toSorted())
})

for (const level of LEVELS) {
  test(`every file of the ${level} level runs in one process`, () => {
    const files = filesOfLevel(level)
    assert.deepEqual(processesOf(files).flat().toSorted(), files.toSorted())
  })
}

test('a file that is named alone runs alone', () => {
  assert.deepEqual(processesOf(['test/proxy/routing.test.ts']), [['test/proxy/routing.test.ts']])
})
