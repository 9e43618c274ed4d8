/** Temporary files of bodies: those of a killed process are deleted by the next one, and no others. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { deleteFilesOfThread, deleteStaleFiles, temporaryPath } from '../../src/runtime/temporary-files.ts'
import { makeTemporaryFolder } from '../harness/temporary-folder.ts'

const UUID = 'ec9a8f4e-0d3c-4c3e-9a43-5a0a6a0ed001'
const LONG_AGO = new Date(1_000_000)

test('files of processes that are gone, and old ones of the own id, are deleted; all others stay', async () => {
  const folder = makeTemporaryFolder()
  const gone = spawnSync(process.execPath, ['--version']).pid
  const old = [`sluice-body-${gone}-${UUID}`, `sluice-body-${process.pid}-${UUID}`]
  const others = [`sluice-body-${process.ppid}-${UUID}`, `sluice-body-${gone}-${UUID}.txt`, 'sluice-body-x', 'other']
  for (const name of [...old, ...others]) {
    writeFileSync(join(folder, name), 'body')
    utimesSync(join(folder, name), LONG_AGO, LONG_AGO)
  }
  const own = temporaryPath(folder)
  writeFileSync(own, 'body')
  assert.equal(await deleteStaleFiles(folder), 2)
  assert.deepEqual(readdirSync(folder).sort(), [...others, own.slice(folder.length + 1)].sort())
})

test('files of a thread that has died are deleted; those of other threads and processes stay', async () => {
  const folder = makeTemporaryFolder()
  const others = [
    `sluice-body-${process.pid}-70-${UUID}`,
    `sluice-body-1-7-${UUID}`,
    `sluice-body-${process.pid}-${UUID}`,
  ]
  for (const name of [...others, `sluice-body-${process.pid}-7-${UUID}`]) writeFileSync(join(folder, name), 'body')
  await deleteFilesOfThread(7, folder)
  assert.deepEqual(readdirSync(folder).sort(), [...others].sort())
})

test('a folder that cannot be read has no stale files', async () => {
  assert.equal(await deleteStaleFiles(join(makeTemporaryFolder(), 'missing')), 0)
})
