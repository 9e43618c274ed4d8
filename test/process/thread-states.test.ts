/** Every cell of the table of thread states, the missing ones included. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextThreadState, type ThreadEvent, type ThreadState } from '../../src/primary/thread-states.ts'

const EVENTS = ['planned', 'started', 'died', 'resumed', 'ended'] as const satisfies readonly ThreadEvent[]

/** State -> the state that follows each of the events above; '-': the event cannot come. */
const GRID: Readonly<Record<ThreadState, string>> = {
  waiting: 'starting - waiting - ending',
  starting: '- serving ending - ending',
  serving: '- - pausing - ending',
  pausing: '- - - replacing ending',
  replacing: '- serving pausing - ending',
  ending: '- ending ending - ending',
}

for (const [state, row] of Object.entries(GRID) as [ThreadState, string][]) {
  test(`${state}: each event leads to the state of the table, and no other event can come`, () => {
    const expected = row.split(' ')
    assert.equal(expected.length, EVENTS.length)
    for (const [column, event] of EVENTS.entries()) {
      const next = expected[column]
      if (next === '-') assert.throws(() => nextThreadState(state, event), /cannot be/, event)
      else assert.equal(nextThreadState(state, event), next, event)
    }
  })
}
