/** All 54 cells of the table of endpoint states, from a grid written by hand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ENDPOINT_EVENT, ENDPOINT_STATE, nextState } from '../../../src/proxy/target/endpoint-states.ts'

/** Letters of the states; "." is an event that changes nothing. */
const LETTERS = { A: 'ACTIVE', T: 'TIMEOUT', S: 'SUSPENDED', P: 'PROBING', U: 'UNHEALTHY', O: 'OFF' } as const

const EVENTS = [
  ...(['SUCCEEDED', 'TIMED_OUT', 'FAILED', 'PROBED', 'SWITCHED_OFF', 'SWITCHED_ON'] as const),
  ...(['CHECK_FAILED', 'CHECK_PASSED', 'EXCHANGE_FAILED'] as const),
]

/** Columns in the order of EVENTS. */
const GRID = {
  ACTIVE: /*   */ 'A T S . O . U . A',
  TIMEOUT: /*  */ 'A T S . O A U A .',
  SUSPENDED: /**/ 'A . . P O A U A .',
  PROBING: /*  */ 'A S S P O A U A P',
  UNHEALTHY: /**/ '. . . . O A . A .',
  OFF: /*      */ '. . . . . A . . .',
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
