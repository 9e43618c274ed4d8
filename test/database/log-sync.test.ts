/** Commits that are made durable beside the thread. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { LogSync } from '../../src/database/log-sync.ts'

function logOf(t: TestContext): { readonly file: string; readonly sync: LogSync } {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-sync-'))
  const file = join(folder, 'a.db')
  const database = new DatabaseSync(file)
  database.exec('pragma journal_mode = wal; create table a (b)')
  t.after(() => {
    database.close()
    rmSync(folder, { recursive: true })
  })
  return { file, sync: new LogSync(file) }
}

test('callers share one wait for the disk, but none that has begun before they asked', async t => {
  const { sync } = logOf(t)
  const first = sync.sync()
  assert.equal(sync.sync(), first)
  // The wait of the first callers begins in a microtask.
  await Promise.resolve()
  await Promise.resolve()
  const second = sync.sync()
  assert.notEqual(second, first)
  assert.equal(sync.sync(), second)
  await Promise.all([first, second])
})

test('a log that cannot be opened fails those who wait, and nobody later', async t => {
  const { file, sync } = logOf(t)
  await sync.sync()
  renameSync(`${file}-wal`, `${file}-gone`)
  // One is running, and one waits behind it.
  const first = sync.sync()
  await Promise.resolve()
  await Promise.resolve()
  const second = sync.sync()
  assert.notEqual(second, first)
  await Promise.all([assert.rejects(first, { code: 'ENOENT' }), assert.rejects(second, { code: 'ENOENT' })])
  renameSync(`${file}-gone`, `${file}-wal`)
  await sync.sync()
})

test('after a failure of the disk no commit is durable any more', async t => {
  const { file, sync } = logOf(t)
  await sync.sync()
  renameSync(`${file}-wal`, `${file}-gone`)
  // Nothing can sync a pipe.
  execFileSync('mkfifo', [`${file}-wal`])
  await assert.rejects(sync.sync(), { code: 'EINVAL' })
  rmSync(`${file}-wal`)
  renameSync(`${file}-gone`, `${file}-wal`)
  await assert.rejects(sync.sync(), { code: 'EINVAL' })
  await assert.rejects(sync.sync(), { code: 'EINVAL' })
})
