/** The choice within groups of groups: which endpoint gets a request next. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Nesting, nestedChoice } from '../../../src/proxy/target/nested-choice.ts'

const part = (size: number, isInOrder = true, failsOver = true) => ({ size, isInOrder, failsOver })
/** Endpoints that a request gets one after the other, as each of them fails; `down`: those that are not ready. */
function attempts(choose: ReturnType<typeof nestedChoice>, down: ReadonlySet<number>): readonly number[] {
  const tried: number[] = []
  for (;;) {
    const index = choose(
      tried.reduce((bits, each) => bits | (1 << each), 0),
      false,
    )
    if (index < 0) return tried
    assert.equal(down.has(index), false)
    tried.push(index)
  }
}

/** What each of several requests tries, all of which fail. */
const ROWS: readonly (readonly [what: string, nesting: Nesting, down: readonly number[], tried: number[][]])[] = [
  [
    'failover inside loadbalance',
    { parts: [part(2), part(2)], isInOrder: false, failsOver: true },
    [],
    [
      [0, 1, 2, 3],
      [0, 1, 2, 3],
    ],
  ],
  [
    'failover inside a loadbalance that does not fail over',
    { parts: [part(2), part(2)], isInOrder: false, failsOver: false },
    [],
    [
      [0, 1],
      [2, 3],
      [0, 1],
    ],
  ],
  [
    'loadbalance inside failover',
    { parts: [part(2, false), part(1)], isInOrder: true, failsOver: true },
    [],
    [
      [0, 1, 2],
      [0, 1, 2],
    ],
  ],
  [
    'loadbalance without failover inside failover',
    { parts: [part(2, false, false), part(1)], isInOrder: true, failsOver: true },
    [],
    [
      [0, 2],
      [1, 2],
      [0, 2],
    ],
  ],
  ['a part that is down', { parts: [part(2), part(1)], isInOrder: false, failsOver: true }, [0, 1], [[2], [2]]],
]

for (const [what, nesting, down, expected] of ROWS) {
  test(`${what}: each request tries its endpoints in this order`, () => {
    const unready = new Set(down)
    const choose = nestedChoice(nesting, (index, tried) => (tried & (1 << index)) === 0 && !unready.has(index))
    assert.deepEqual(
      expected.map(() => attempts(choose, unready)),
      expected,
    )
  })
}
