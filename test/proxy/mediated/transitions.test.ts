/** Every cell of the transition table of mediated exchanges, from a grid written by hand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  MediatedMachine,
  type MediatedEvent,
  type MediatedState,
  TRANSITIONS,
} from '../../../src/proxy/mediated/transitions.ts'

const EVENTS: readonly MediatedEvent[] = [
  ...(['EXPECT', 'COLLECT', 'MEDIATE', 'SEND', 'FORWARD', 'SENT', 'PASS', 'RESPOND', 'FAULT', 'END'] as const),
]
/** By state: a path to it, and the next state by event, in the order of EVENTS; `-` for none. */
const GRID: Readonly<Record<MediatedState, readonly [path: string, cells: string]>> = {
  NEW: ['', 'EXPECTED COLLECTING_REQUEST REQUEST_AT_WORKER - AWAITING_RESPONSE - - - FAULT_AT_WORKER ENDED'],
  EXPECTED: ['EXPECT', '- COLLECTING_REQUEST - - - - - - FAULT_AT_WORKER ENDED'],
  COLLECTING_REQUEST: ['COLLECT', '- - REQUEST_AT_WORKER - - - - - FAULT_AT_WORKER ENDED'],
  REQUEST_AT_WORKER: ['MEDIATE', '- - RESPONSE_AT_WORKER SENDING - - - RESPONDING FAULT_AT_WORKER ENDED'],
  SENDING: ['MEDIATE SEND', '- COLLECTING_EARLY - - - AWAITING_RESPONSE PASSING_EARLY - FAULT_AT_WORKER ENDED'],
  AWAITING_RESPONSE: ['FORWARD', '- COLLECTING_RESPONSE - - - - PASSING - FAULT_AT_WORKER ENDED'],
  PASSING_EARLY: ['MEDIATE SEND PASS', '- - - - - PASSING - - FAULT_AT_WORKER ENDED'],
  PASSING: ['FORWARD PASS', '- - - - - - - - FAULT_AT_WORKER ENDED'],
  COLLECTING_EARLY: [
    'MEDIATE SEND COLLECT',
    '- - RESPONSE_AT_WORKER - - COLLECTING_RESPONSE - - FAULT_AT_WORKER ENDED',
  ],
  COLLECTING_RESPONSE: ['FORWARD COLLECT', '- - RESPONSE_AT_WORKER - - - - - FAULT_AT_WORKER ENDED'],
  RESPONSE_AT_WORKER: ['FORWARD COLLECT MEDIATE', '- - - - - - - RESPONDING FAULT_AT_WORKER ENDED'],
  RESPONDING: ['MEDIATE RESPOND', '- - - - - - - - - ENDED'],
  FAULT_AT_WORKER: ['FAULT', '- - - - - - - RESPONDING FAULT_AT_WORKER ENDED'],
  ENDED: ['END', '- - - - - - - - - ENDED'],
}

for (const [state, [path, cells]] of Object.entries(GRID)) {
  test(`${state}: each event leads where the grid says, and others throw`, () => {
    cells.split(' ').forEach((next, index) => {
      const machine = new MediatedMachine()
      for (const event of path.split(' ')) if (event !== '') machine.advance(event as MediatedEvent)
      assert.equal(machine.state, state)
      const event = EVENTS[index]!
      if (next === '-') assert.throws(() => machine.advance(event), { name: 'IllegalTransition' }, event)
      else assert.equal(machine.advance(event), next, event)
    })
  })
}

test('the grid has every state of the table', () => {
  assert.deepEqual(Object.keys(TRANSITIONS).sort(), Object.keys(GRID).sort())
})
