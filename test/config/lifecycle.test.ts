/** The ways of an API from one state to another, from a grid written by hand, and the words for them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LifecycleState } from '../../src/config/api-definition.ts'
import { ACTIONS, actionsFrom, LIFECYCLE_STATES, leadsTo, targetOf } from '../../src/config/lifecycle.ts'

const STATES = ['CREATED', 'PROTOTYPED', 'PUBLISHED', 'BLOCKED', 'DEPRECATED', 'RETIRED'] as const

/** A column for each state, in the order above: can it be gone to? */
const GRID: readonly (readonly [from: LifecycleState, to: string])[] = [
  ['CREATED', '. x x . . .'],
  ['PROTOTYPED', 'x . x . . .'],
  ['PUBLISHED', 'x x x x x .'],
  ['BLOCKED', '. . x . x .'],
  ['DEPRECATED', '. . . . . x'],
  ['RETIRED', '. . . . . .'],
]

test('the grid has all states', () => {
  assert.deepEqual([...LIFECYCLE_STATES], [...STATES])
  assert.deepEqual(
    GRID.map(([from]) => from),
    [...STATES],
  )
})

for (const [from, row] of GRID) {
  for (const [column, cell] of row.split(' ').entries()) {
    const to = STATES[column]!
    test(`${from} -> ${to}: ${cell === 'x' ? 'yes' : 'no'}`, () => {
      assert.equal(leadsTo(from, to), cell === 'x')
      assert.equal(
        actionsFrom(from).some(action => targetOf(action) === to),
        cell === 'x',
      )
    })
  }
}

const WORDS: readonly (readonly [word: string, target: LifecycleState | undefined])[] = [
  ['Publish', 'PUBLISHED'],
  ['publish', 'PUBLISHED'],
  ['Re-Publish', 'PUBLISHED'],
  ['republish', 'PUBLISHED'],
  ['Deploy as a Prototype', 'PROTOTYPED'],
  ['deploy-as-a-prototype', 'PROTOTYPED'],
  ['DEPLOY_AS_A_PROTOTYPE', 'PROTOTYPED'],
  ['prototype', 'PROTOTYPED'],
  ['Block', 'BLOCKED'],
  ['Deprecate', 'DEPRECATED'],
  ['Retire', 'RETIRED'],
  ['Demote to Created', 'CREATED'],
  ['demote', 'CREATED'],
  ...STATES.flatMap(state => [[state, state] as const, [state.toLowerCase(), state] as const]),
  ['', undefined],
  ['unblock', undefined],
  ['constructor', undefined],
  ['blockk', undefined],
]

for (const [word, target] of WORDS) {
  test(`"${word}" means ${target ?? 'nothing'}`, () => assert.equal(targetOf(word), target))
}

test('the actions are those that users know', () => {
  const known = ['Publish', 'Deploy as a Prototype', 'Demote to Created', 'Block', 'Deprecate', 'Re-Publish', 'Retire']
  assert.deepEqual([...ACTIONS].sort(), known.sort())
})
