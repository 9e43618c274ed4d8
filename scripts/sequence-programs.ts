/**
 * Reads the default sequences to the programs that a start takes in their place: `npm run sequences`, whenever one of
 * them is edited or what mediators read changes. A test holds the file to them.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe } from '../src/config/fault.ts'
import { Findings } from '../src/config/findings.ts'
import { readSequence } from '../src/mediation/read-sequence.ts'
import type { CompiledSequences } from '../src/primary/sequence-files.ts'

const FOLDER = join(import.meta.dirname, '..', 'conf', 'synapse-configs', 'default')
const EXTENSION = '.xml'

const findings = new Findings()
const compiled: Record<string, CompiledSequences[string]> = {}
for (const file of readdirSync(join(FOLDER, 'sequences'))
  .filter(name => name.endsWith(EXTENSION))
  .sort()) {
  const name = file.slice(0, -EXTENSION.length)
  const text = readFileSync(join(FOLDER, 'sequences', file), 'utf8')
  const program = await readSequence(name, file, text, findings)
  if (program !== undefined) compiled[name] = { text, program }
}
for (const fault of findings.faults) console.error(describe(fault))
if (findings.faults.length > 0) process.exitCode = 1
else writeFileSync(join(FOLDER, 'programs.json'), `${JSON.stringify(compiled)}\n`)
