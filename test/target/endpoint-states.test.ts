/** All 48 cells of the table of endpoint states, from a grid written by hand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ENDPOINT_EVENT, ENDPOINT_STATE, nextState } from '../../src/target/endpoint-states.ts'

/** Letters of the states; "." is an event that changes nothing. */
const LETTERS = { A: 'ACTIVE', T: 'TIMEOUT', S: 'SUSPENDED', R: 'TRIED', U: 'UNHEALTHY', O: 'OFF' } as const

const EVENTS = [
  ...(['SUCCEEDED', 'TIMED_OUT', 'FAILED', 'TRIED', 'SWITCHED_OFF', 'SWITCHED_ON'] as const),
  ...(['CHECK_FAILED', 'CHECK_PASSED'] as const),
]

/** Columns in the order of EVENTS. */
const GRID = {
  ACTIVE: /*   */ '. T S . O . U .',
  TIMEOUT: /*  */ 'A T S . O A U A',
  SUSPENDED: /**/ 'A . . R O A U A',
  TRIED: /*    */ 'A S S R O A U A',
  UNHEALTHY: /**/ '. . . . O A . A',
  OFF: /*      */ '. . . . . A . .',
} as const

for (const [state, row] of Object.entries(GRID)) {
  row.split(' ').forEach((letter, column) => {
    const event = EVENTS[column]!
    const next = letter === '.' ? undefined : LETTERS[letter as keyof typeof LETTERS]
    test(`${state} + ${event}: ${next ?? 'nothing changes'}`, () => {
      const expected = next === undefined ? undefined : ENDPOINT_STATE[next]
      assert.equal(nextState(ENDPOINT_STATE[state as keyof typeof GRID], ENDPOINT_EVENT[event]), expected)
    })
  })
}

test('the grid has every state and every event', () => {
  assert.deepEqual(Object.keys(GRID), Object.keys(ENDPOINT_STATE))
  assert.deepEqual(EVENTS, Object.keys(ENDPOINT_EVENT))
})
