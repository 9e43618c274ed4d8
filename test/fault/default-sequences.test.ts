/** The default sequences of the package, and the programs that are derived of them. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { describe } from '../../src/config/fault.ts'
import { Findings } from '../../src/config/findings.ts'
import { readSequence } from '../../src/mediation/read-sequence.ts'
import type { CompiledSequences } from '../../src/primary/sequence-files.ts'
import spec from './spec-errors.json' with { type: 'json' }

const FOLDER = join(import.meta.dirname, '..', '..', 'conf', 'synapse-configs', 'default')
/** Beside those of the specification's table. */
const MORE = ['guardrail_fault.xml', '_ai_error_response_.xml']
const LINES_MAX = 45

const compiled = JSON.parse(readFileSync(join(FOLDER, 'programs.json'), 'utf8')) as CompiledSequences
const files = readdirSync(join(FOLDER, 'sequences'))

test('those of the specification by their names, and two more', () => {
  assert.deepEqual(files.sort(), [...spec.sequences.map(({ file }) => file), ...MORE].sort())
  assert.deepEqual(Object.keys(compiled).sort(), files.map(file => file.slice(0, -'.xml'.length)).sort())
})

for (const file of files) {
  test(`${file} is what its program was read from: npm run sequences`, async () => {
    const text = readFileSync(join(FOLDER, 'sequences', file), 'utf8')
    const name = file.slice(0, -'.xml'.length)
    const findings = new Findings()
    const program = await readSequence(name, file, text, findings)
    assert.deepEqual([...findings.faults, ...findings.warnings].map(describe), [])
    assert.equal(compiled[name]?.text, text)
    assert.deepEqual(JSON.parse(JSON.stringify(program)), compiled[name]?.program)
    for (const called of program?.calls ?? []) assert.ok(files.includes(`${called}.xml`), called)
    assert.ok(text.split('\n').length <= LINES_MAX, 'it is to be read and edited')
  })
}
