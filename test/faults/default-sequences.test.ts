/** Default fault sequences of the package, and the parsed form that ships beside them. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Diagnostics, formatDiagnostic } from '../../src/config/diagnostics.ts'
import { parseSequence } from '../../src/mediation/sequence-parser.ts'
import type { ParsedSequences } from '../../src/mediation/sequence-files.ts'
import spec from './spec-errors.json' with { type: 'json' }

const FOLDER = join(import.meta.dirname, '..', '..', 'conf', 'synapse-configs', 'default')
/** Files besides those of the specification's table. */
const MORE = ['guardrail_fault.xml', '_ai_error_response_.xml']
const LINES_MAX = 45

const compiled = JSON.parse(readFileSync(join(FOLDER, 'parsed-sequences.json'), 'utf8')) as ParsedSequences
const files = readdirSync(join(FOLDER, 'sequences'))

test('the package holds the sequences of the specification and two more', () => {
  assert.deepEqual(files.sort(), [...spec.sequences.map(({ file }) => file), ...MORE].sort())
  assert.deepEqual(Object.keys(compiled).sort(), files.map(file => file.slice(0, -'.xml'.length)).sort())
})

for (const file of files) {
  test(`${file} matches its plan in parsed-sequences.json (npm run sequences)`, async () => {
    const text = readFileSync(join(FOLDER, 'sequences', file), 'utf8')
    const name = file.slice(0, -'.xml'.length)
    const findings = new Diagnostics()
    const plan = await parseSequence(name, file, text, findings)
    assert.deepEqual([...findings.errors, ...findings.warnings].map(formatDiagnostic), [])
    assert.equal(compiled[name]?.text, text)
    assert.deepEqual(JSON.parse(JSON.stringify(plan)), compiled[name]?.plan)
    for (const called of plan?.calls ?? []) assert.ok(files.includes(`${called}.xml`), called)
    assert.ok(text.split('\n').length <= LINES_MAX, 'it is to be read and edited')
  })
}
