/** What moves the authority from one state to another: every cell of the table, and those that are none. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AuthorityEvent, type AuthorityState, nextAuthorityState } from '../../src/primary/authority-states.ts'

const EVENTS = ['planned', 'begun', 'died', 'resumed', 'ended'] as const satisfies readonly AuthorityEvent[]

/** State -> what follows each of the events above; '-': it cannot come. */
const GRID: Readonly<Record<AuthorityState, string>> = {
  waiting: 'starting - waiting - ending',
  starting: '- serving ending - ending',
  serving: '- - pausing - ending',
  pausing: '- - - replacing ending',
  replacing: '- serving pausing - ending',
  ending: '- ending ending - ending',
}

for (const [state, row] of Object.entries(GRID) as [AuthorityState, string][]) {
  test(`${state}: an event leads where the table says, and none but those can come`, () => {
    const expected = row.split(' ')
    assert.equal(expected.length, EVENTS.length)
    for (const [column, event] of EVENTS.entries()) {
      const next = expected[column]
      if (next === '-') assert.throws(() => nextAuthorityState(state, event), /cannot be/, event)
      else assert.equal(nextAuthorityState(state, event), next, event)
    }
  })
}
