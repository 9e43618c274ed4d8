import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ProcessStat, parseStat, processTree } from '../../bench/process-tree.ts'

const FIELDS = 'S 7 4242 31 0 -1 4194560 12 0 0 0 150 50 30 20 20 0 11 0 99 1000 200'

for (const name of ['node', 'a b', 'odd) S 1 (name', '(']) {
  test(`fields of /proc/PID/stat count from the last parenthesis: (${name})`, () => {
    assert.deepEqual(parseStat(`4242 (${name}) ${FIELDS}`), {
      pid: 4242,
      parent: 7,
      session: 31,
      isZombie: false,
      userSeconds: 1.5,
      systemSeconds: 0.5,
      endedChildrenSeconds: 0.5,
    })
  })
}

function process(pid: number, parent: number): ProcessStat {
  return { pid, parent, session: 1, isZombie: false, userSeconds: 0, systemSeconds: 0, endedChildrenSeconds: 0 }
}

test('a tree contains children and grandchildren in any order of the list, and no other process', () => {
  const all = [process(40, 30), process(30, 20), process(20, 10), process(21, 10), process(10, 1), process(50, 1)]
  const members = processTree(10, all).map(({ pid }) => pid)
  assert.deepEqual(
    members.sort((a, b) => a - b),
    [10, 20, 21, 30, 40],
  )
})
