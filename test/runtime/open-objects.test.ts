/** Open objects: members by place. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OpenObjects } from '../../src/runtime/open-objects.ts'
import { Random, SEED } from '../harness/random.ts'

test(`members that come and go at random are those of a set (SLUICE_SEED=${SEED})`, () => {
  const random = new Random(SEED)
  const open = new OpenObjects<{ place: number }>()
  const expected = new Set<{ place: number }>()
  const known = Array.from({ length: 40 }, () => ({ place: -1 }))
  for (let i = 0; i < 5000; i++) {
    const member = random.pick(known)
    if (expected.has(member)) assert.ok(open.delete(member) && expected.delete(member))
    else {
      assert.equal(open.delete(member), false)
      open.add(member)
      expected.add(member)
    }
    assert.equal(open.size, expected.size)
    assert.deepEqual(new Set(open), expected)
  }
})
