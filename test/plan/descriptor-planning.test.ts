/** Connection limits that follow from the open files of the process. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectionLimits, openFileLimit, reservedConnections } from '../../src/plan/descriptor-planning.ts'

/** [open files, reactors, clients and backends, management, health]. */
const LIMITS: readonly (readonly [openFiles: number, reactors: number, each: number, ...reserved: number[]])[] = [
  [0, 2, -1, 256, 64],
  [128, 2, 8, 12, 6],
  [256, 2, 64, 16, 8],
  [1024, 2, 352, 64, 32],
  [4096, 4, 1492, 256, 64],
  [524_288, 8, 261_564, 256, 64],
]

for (const [openFiles, reactors, each, management, health] of LIMITS) {
  test(`ulimit -n ${openFiles} with ${reactors} reactors allows ${each} clients`, () => {
    assert.deepEqual(connectionLimits(openFiles, reactors), { clients: each, backends: each })
    assert.deepEqual(reservedConnections(openFiles), { management, health })
  })
}

test('clients, backends and the connections of the gateway itself fit into the limit', () => {
  for (let openFiles = 256; openFiles < 100_000; openFiles += 97) {
    const { clients, backends } = connectionLimits(openFiles, 4)
    const { management, health } = reservedConnections(openFiles)
    assert.ok(clients + backends + management + health + 4 * 12 + 40 < openFiles, `${openFiles}`)
  }
})

test('the limit of open files of this process is known on Linux', { skip: process.platform !== 'linux' }, () => {
  assert.ok(openFileLimit() > 0)
})
