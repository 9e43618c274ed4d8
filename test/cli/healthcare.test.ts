/** `healthcare`: loads newline-delimited services, tells the lines with faults, and makes samples. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { healthcare } from '../../src/cli/healthcare.ts'
import { argumentsFor, temporaryHome, Transcript } from '../config/temporary-home.ts'

function homeOf(t: TestContext): string {
  return temporaryHome(t, { 'deployment.toml': '' })
}

async function run(home: string, rest: readonly string[], json = false) {
  const [out, err] = [new Transcript(), new Transcript()]
  const code = await healthcare({ ...argumentsFor(home, { rest: [...rest] }), json }, out, err)
  return { code, out: out.text, err: err.text }
}

test('sample services are printed, and load prints how many it has stored', async t => {
  const home = homeOf(t)
  const sample = await run(home, ['sample', '450'])
  assert.equal(sample.out.split('\n').length, 451)
  assert.equal((await run(home, ['sample', '450'])).out, sample.out)
  const file = join(home, 'services.ndjson')
  writeFileSync(file, sample.out)
  const { code, out, err } = await run(home, ['load', file])
  assert.deepEqual([code, out], [0, 'loaded 450 services, refused 0 lines\n'])
  // Where a load takes long, it tells how far it has come.
  assert.match(err, /^(?:\d+ services loaded\n)*$/)
  const again = await run(home, ['load', file], true)
  assert.deepEqual(JSON.parse(again.out), { loaded: 450, refused: 0, faults: [] })
})

test('lines with faults are left out, told with their number, and make the exit code 1', async t => {
  const home = homeOf(t)
  const file = join(home, 'services.ndjson')
  const lines = ['{"resourceType":"HealthcareService"}', '{"a":', '', '{"resourceType":"HealthcareService","nam":1}']
  writeFileSync(file, lines.join('\r\n'))
  const { code, out, err } = await run(home, ['load', file])
  assert.deepEqual([code, out], [1, 'loaded 1 service, refused 2 lines\n'])
  assert.match(err, /^line 2: .* at line 1, column \d+\nline 4: HealthcareService\.nam: .*\n$/)
  const { faults } = JSON.parse((await run(home, ['load', file], true)).out) as { faults: { line: number }[] }
  assert.deepEqual(
    faults.map(({ line }) => line),
    [2, 4],
  )
})

test('a file that is not there, a wrong configuration and wrong words have exit codes of their own', async t => {
  const home = homeOf(t)
  assert.equal((await run(home, ['load', join(home, 'none')])).code, 1)
  for (const words of [[], ['load'], ['sample', 'x'], ['load', 'a', 'b', 'c']]) {
    assert.equal((await run(home, words)).code, 2)
  }
  writeFileSync(join(home, 'deployment.toml'), 'x = ')
  assert.equal((await run(home, ['load', 'none'])).code, 78)
})
