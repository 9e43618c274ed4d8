/** Output of a command that is larger than the 64 KiB of a pipe is not lost when the command ends. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { allKeys } from '../../src/config/catalogue.ts'
import { LAUNCHER } from '../harness/program.ts'

const ROOT = resolve(import.meta.dirname, '../..')

test('a slow reader gets all of the output', () => {
  const command = `"${process.execPath}" "${LAUNCHER}" reference --json | (sleep 0.3; cat)`
  const { status, stdout } = spawnSync('sh', ['-c', command], { encoding: 'utf8', cwd: ROOT, maxBuffer: 2 ** 26 })
  assert.equal(status, 0)
  assert.equal(JSON.parse(stdout).keys.length, allKeys().length)
})

test('a reader that leaves early causes no stack trace', () => {
  const command = `"${process.execPath}" "${LAUNCHER}" explain --json | head -c 10`
  const { stdout, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8', cwd: ROOT })
  assert.equal(stdout.length, 10)
  assert.equal(stderr, '')
})

test('a full disk makes an export fail, and says so', { skip: !existsSync('/dev/full') }, () => {
  const command = `"${process.execPath}" "${LAUNCHER}" explain --json > /dev/full`
  const { status, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8', cwd: ROOT })
  assert.equal(status, 1)
  assert.match(stderr, /^the output is incomplete: ENOSPC/)
})
