/** The clock that is read once per event. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventClock } from '../../src/runtime/event-clock.ts'

test('within an event the first reading holds, from one event to the next and outside of them none does', t => {
  let reads = 0
  t.mock.method(performance, 'now', () => ++reads)
  const clock = new EventClock()
  assert.deepEqual([clock.now(), clock.now()], [1, 2])
  clock.during({ receive: () => {} }, 0)
  assert.equal(reads, 2, 'an event that asks for no time reads no clock')
  const readTwice = { receive: (length: number) => [length, clock.now(), clock.now()] }
  assert.deepEqual(clock.during(readTwice, 7), [7, 3, 3])
  assert.deepEqual(clock.during(readTwice, 8), [8, 4, 4])
  const failing = () => {
    clock.now()
    throw new Error('in an event')
  }
  assert.throws(() => clock.during({ receive: failing }, 0), /in an event/)
  assert.deepEqual([clock.now(), clock.now()], [6, 7])
})
