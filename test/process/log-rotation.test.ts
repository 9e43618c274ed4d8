/** Rotation of the access log by time: at the borders of the interval, over restarts, with the files that stay. */
import assert from 'node:assert/strict'
import { appendFileSync, existsSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { LogRotation } from '../../src/primary/log-rotation.ts'
import { makeTemporaryFolder } from '../harness/temporary-folder.ts'

const HOUR_MS = 3_600_000
const START_MS = Date.UTC(2026, 10, 23, 10, 59, 0)

function rotation(t: TestContext, keep = 2) {
  const folder = makeTemporaryFolder()
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'access.log')
  const clock = { ms: START_MS }
  let reopened = 0
  const failures: string[] = []
  const plan = { path, bytes: 0, intervalMs: HOUR_MS, keep }
  const start = () => {
    const made = new LogRotation(plan, {
      reopen: () => {
        reopened++
        writeFileSync(path, '')
      },
      isReplaced: () => false,
      onFailed: ({ message }) => failures.push(message),
      onRecovered: () => failures.push('recovered'),
      nowMs: () => clock.ms,
    })
    t.after(() => made.stop())
    return made
  }
  const write = () => {
    appendFileSync(path, 'line\n')
    utimesSync(path, clock.ms / 1000, clock.ms / 1000)
  }
  const earlier = () =>
    readdirSync(folder)
      .filter(name => name !== 'access.log')
      .sort()
  return { clock, start, write, earlier, path, failures, reopened: () => reopened }
}

test('a file is renamed at the first look behind the border of the interval, and not before', async t => {
  const { clock, start, write, earlier, reopened } = rotation(t)
  const rotates = start()
  write()
  for (const seconds of [0, 30, 59]) {
    clock.ms = START_MS + seconds * 1000
    await rotates.look()
  }
  assert.deepEqual([earlier(), reopened()], [[], 0])
  clock.ms = START_MS + 60_000
  await rotates.look()
  assert.deepEqual([earlier(), reopened()], [['access.log.20261123T110000Z'], 1])
  await rotates.look()
  clock.ms += HOUR_MS
  await rotates.look()
  assert.deepEqual(earlier(), ['access.log.20261123T110000Z'], 'an empty file is not rotated')
})

test('a file of an earlier interval is renamed at the start, and of old files the newest ones stay', async t => {
  const { clock, start, write, earlier, path, failures } = rotation(t)
  for (let hour = 0; hour < 4; hour++) {
    write()
    clock.ms = START_MS + hour * HOUR_MS + 120_000
    await start().look()
  }
  assert.deepEqual(earlier(), ['access.log.20261123T130100Z', 'access.log.20261123T140100Z'])
  assert.ok(existsSync(path))
  assert.deepEqual(failures, [])
})
