/**
 * `npm run sequences`: parses the default sequences and writes their plans to `parsed-sequences.json`, so that a start
 * need not parse them. Run it after a change of a sequence or of a mediator's `parse`; a test compares the file.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Diagnostics, formatDiagnostic } from '../src/config/diagnostics.ts'
import type { ParsedSequences } from '../src/mediation/sequence-files.ts'
import { parseSequence } from '../src/mediation/sequence-parser.ts'

const FOLDER = join(import.meta.dirname, '..', 'conf', 'synapse-configs', 'default')
const EXTENSION = '.xml'

const diagnostics = new Diagnostics()
const parsed: Record<string, ParsedSequences[string]> = {}
for (const file of readdirSync(join(FOLDER, 'sequences'))
  .filter(name => name.endsWith(EXTENSION))
  .sort()) {
  const name = file.slice(0, -EXTENSION.length)
  const text = readFileSync(join(FOLDER, 'sequences', file), 'utf8')
  const plan = await parseSequence(name, file, text, diagnostics)
  if (plan !== undefined) parsed[name] = { text, plan }
}
for (const error of diagnostics.errors) console.error(formatDiagnostic(error))
if (diagnostics.errors.length > 0) process.exitCode = 1
else writeFileSync(join(FOLDER, 'parsed-sequences.json'), `${JSON.stringify(parsed)}\n`)
