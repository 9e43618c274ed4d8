/** Transitions between lifecycle states, against a grid written by hand, and the names of the actions. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LifecycleState } from '../../src/apis/api-definition.ts'
import {
  ACTIONS,
  actionsFrom,
  LIFECYCLE_STATES,
  allowsTransition,
  targetState,
} from '../../src/apis/lifecycle-states.ts'

const STATES = ['CREATED', 'PROTOTYPED', 'PUBLISHED', 'BLOCKED', 'DEPRECATED', 'RETIRED'] as const

/** One column for each target state, in the order above; x: allowed. */
const GRID: readonly (readonly [from: LifecycleState, to: string])[] = [
  ['CREATED', '. x x . . .'],
  ['PROTOTYPED', 'x . x . . .'],
  ['PUBLISHED', 'x x x x x .'],
  ['BLOCKED', '. . x . x .'],
  ['DEPRECATED', '. . . . . x'],
  ['RETIRED', '. . . . . .'],
]

test('the grid covers all states', () => {
  assert.deepEqual([...LIFECYCLE_STATES], [...STATES])
  assert.deepEqual(
    GRID.map(([from]) => from),
    [...STATES],
  )
})

for (const [from, row] of GRID) {
  for (const [column, cell] of row.split(' ').entries()) {
    const to = STATES[column]!
    test(`${from} -> ${to} is ${cell === 'x' ? 'allowed' : 'not allowed'}`, () => {
      assert.equal(allowsTransition(from, to), cell === 'x')
      assert.equal(
        actionsFrom(from).some(action => targetState(action) === to),
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
  test(`"${word}" means ${target ?? 'nothing'}`, () => assert.equal(targetState(word), target))
}

test('the actions are those of the reference platform', () => {
  const known = ['Publish', 'Deploy as a Prototype', 'Demote to Created', 'Block', 'Deprecate', 'Re-Publish', 'Retire']
  assert.deepEqual([...ACTIONS].sort(), known.sort())
})
