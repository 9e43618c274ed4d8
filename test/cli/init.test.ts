/** `init`: makes a home. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { check } from '../../src/cli/check.ts'
import { init } from '../../src/cli/init.ts'
import { argumentsFor, Transcript, temporaryHome } from '../config/temporary-home.ts'

test('init makes a home that check finds valid, and that names the command as it is installed', async t => {
  const home = join(temporaryHome(t, {}), 'new', 'home')
  const [out, err] = [new Transcript(), new Transcript()]
  assert.equal(await init(argumentsFor(home), out, err), 0)
  assert.match(out.text, /home has a deployment\.toml and the sample API\n$/)
  const report = new Transcript()
  assert.equal(await check(argumentsFor(home), report), 0)
  assert.equal(report.text, 'valid: 0 errors, 0 warnings, 1 API\n')
  const deployment = readFileSync(join(home, 'deployment.toml'), 'utf8')
  assert.match(deployment, /^# {3}sluice check {2,}checks this file/m)
  assert.doesNotMatch(deployment, /npm run/)
  assert.ok(existsSync(join(home, 'deployment.schema.json')))
})

test('init leaves a home that exists as it is', async t => {
  const home = temporaryHome(t, { 'deployment.toml': 'a = 1\n' })
  const [out, err] = [new Transcript(), new Transcript()]
  assert.equal(await init(argumentsFor(home), out, err), 1)
  assert.match(err.text, /deployment\.toml exists, and stays as it is\n$/)
  assert.equal(readFileSync(join(home, 'deployment.toml'), 'utf8'), 'a = 1\n')
  assert.ok(!existsSync(join(home, 'apis')))
})

test('init says why a folder cannot be written', async t => {
  const file = join(temporaryHome(t, {}), 'file')
  writeFileSync(file, '')
  const [out, err] = [new Transcript(), new Transcript()]
  assert.equal(await init(argumentsFor(join(file, 'home')), out, err), 1)
  assert.match(err.text, /^no home is made: ENOTDIR/)
})

test('init takes no words', async () => {
  const [out, err] = [new Transcript(), new Transcript()]
  assert.equal(await init(argumentsFor('/nowhere', { rest: ['x'] }), out, err), 2)
  assert.match(err.text, /sluice init/)
})
