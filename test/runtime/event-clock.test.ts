/** The clock that is read once per event. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventClock, loopTurn } from '../../src/runtime/event-clock.ts'

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

test('eight events of a watched turn of the event loop share a reading, and no turn uses that of another', t => {
  let reads = 0
  t.mock.method(performance, 'now', () => ++reads)
  const clock = new EventClock()
  const event = () => clock.during({ receive: () => clock.now() }, 0)
  const events = (count: number) => Array.from({ length: count }, event)
  assert.deepEqual(events(2), [1, 2], 'nobody knows the end of the turn')
  loopTurn.watch()
  assert.deepEqual(events(10), [3, 3, 3, 3, 3, 3, 3, 3, 4, 4], 'a reading from before the watch does not count')
  assert.equal(clock.now(), 5, 'outside of events each reading is new')
  assert.equal(event(), 5, 'time does not run backwards')
  loopTurn.end()
  assert.deepEqual(events(2), [6, 7])
  loopTurn.watch()
  assert.deepEqual(events(2), [8, 8])
  loopTurn.end()
  loopTurn.watch()
  assert.deepEqual(events(2), [9, 9])
  loopTurn.end()
})
