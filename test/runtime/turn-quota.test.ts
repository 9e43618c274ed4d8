import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, it } from 'node:test'
import { TurnQuota } from '../../src/runtime/turn-quota.ts'

/** Pieces that have run, as [piece, turn]. */
type Ran = (readonly [piece: number, turn: number])[]

async function run(quota: TurnQuota, pieces: readonly number[], ran: Ran, turn: () => number): Promise<void> {
  const each = async (piece: number): Promise<void> => {
    await quota.next()
    ran.push([piece, turn()])
  }
  await Promise.all(pieces.map(each))
}

/** Counts turns of the loop until `end`. */
function countTurns() {
  let turns = 0
  let isCounting = true
  const count = (): void => {
    turns++
    if (isCounting) setImmediate(count)
  }
  setImmediate(count)
  const end = (): void => {
    isCounting = false
  }
  return { turn: () => turns, end }
}

describe('TurnQuota', () => {
  // [pieces per turn, pieces, pieces in each turn]
  const rows = [
    [3, 2, [2]],
    [3, 3, [3]],
    [3, 8, [3, 3, 2]],
    [1, 4, [1, 1, 1, 1]],
  ] as const
  for (const [perTurn, count, expected] of rows) {
    it(`runs ${count} pieces in ${expected.length} turns, ${perTurn} at most in each, in their order`, async () => {
      const ran: Ran = []
      const { turn, end } = countTurns()
      const pieces = Array.from({ length: count }, (_, piece) => piece)
      await run(new TurnQuota(perTurn), pieces, ran, turn)
      end()
      assert.deepEqual(
        ran.map(([piece]) => piece),
        pieces,
      )
      const byTurn = Map.groupBy(ran, ([, turn]) => turn)
      assert.deepEqual(
        [...byTurn.values()].map(({ length }) => length),
        expected,
      )
    })
  }

  it('has its whole quota again in the next turn', async () => {
    const quota = new TurnQuota(2)
    for (let turn = 0; turn < 3; turn++) {
      assert.equal(quota.next(), undefined)
      assert.equal(quota.next(), undefined)
      await nextTurn()
    }
  })

  it('counts pieces that begin beside waiting ones', async () => {
    const quota = new TurnQuota(2)
    quota.next()
    quota.next()
    const waiting = quota.next()
    await waiting
    assert.equal(quota.next(), undefined)
    assert.ok(quota.next() instanceof Promise)
  })
})
