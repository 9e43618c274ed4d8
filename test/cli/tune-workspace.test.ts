/** The copy of the home that `tune` works on. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readdirSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { Workspace } from '../../src/cli/tune-workspace.ts'
import { TuneFailed } from '../../src/tune/system.ts'
import { argumentsFor, temporaryHome } from '../config/temporary-home.ts'

test('sockets and the data folder are left out; the copy is removed with its folder', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '', 'apis/A/api.yaml': 'x', 'data/gateway.db': 'x' })
  const server = createServer().listen(join(home, 'old.sock'))
  t.after(() => server.close())
  await once(server, 'listening')
  symlinkSync('/nowhere', join(home, 'dangling'))
  const workspace = Workspace.make(argumentsFor(home))
  assert.deepEqual(readdirSync(workspace.home).toSorted(), ['apis', 'dangling', 'deployment.toml'])
  await workspace.remove()
  assert.equal(existsSync(workspace.home), false)
})

test('a home that cannot be copied is an error with its reason, and leaves no folder', t => {
  const { TMPDIR } = process.env
  t.after(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
  })
  const folder = temporaryHome(t, { 'kept/x': '' })
  process.env.TMPDIR = folder
  assert.throws(() => Workspace.make(argumentsFor('/nowhere')), TuneFailed)
  assert.deepEqual(readdirSync(folder), ['kept'])
})
