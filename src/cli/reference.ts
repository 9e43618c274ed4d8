/** `reference`: prints the reference of all keys, or writes the documents that are derived from the catalogue. */
import { basename } from 'node:path'
import { writeFileSync } from 'node:fs'
import { readDocument } from '../config/document.ts'
import { referenceJson, referencePage } from '../config/reference-page.ts'
import { schemaPage } from '../config/reference-schema.ts'
import { tomlPage } from '../config/reference-toml.ts'
import { labelOf, readSource } from '../config/source-file.ts'
import { type CliArguments, EXIT_FAILED, EXIT_USAGE } from './arguments.ts'
import { usage } from './help.ts'
import type { Terminal } from './terminal.ts'

/** Suffix of the file name -> the document. */
const DOCUMENTS: Readonly<Record<string, () => string>> = {
  '.md': referencePage,
  '.schema.json': schemaPage,
  '.toml': tomlPage,
}

export async function reference(
  args: CliArguments,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
  const files = args.rest.map(path => ({ path, write: documentFor(path) }))
  if (files.some(({ write }) => write === undefined) || (args.json && files.length > 0)) {
    errorOutput.write(usage('reference'))
    return EXIT_USAGE
  }
  if (files.length === 0) {
    output.write(args.json ? referenceJson() : referencePage())
    return 0
  }
  const edited = files.filter(({ path }) => setsKeys(path))
  for (const { path } of edited) {
    errorOutput.write(`${labelOf(path)} sets keys and is not overwritten; move it away, or name another file\n`)
  }
  for (const { path, write } of files) if (!setsKeys(path)) writeFileSync(path, write!())
  return edited.length === 0 ? 0 : EXIT_FAILED
}

function documentFor(path: string): (() => string) | undefined {
  return Object.entries(DOCUMENTS).find(([suffix]) => basename(path).endsWith(suffix))?.[1]
}

/** True for a configuration that an operator has edited, also for one with errors: it is never overwritten. */
function setsKeys(path: string): boolean {
  if (!path.endsWith('.toml')) return false
  const source = readSource(path)
  if (source === undefined) return false
  const { entries, rows, errors } = readDocument(labelOf(path), source.text)
  return source.error !== undefined || entries.length + rows.length + errors.length > 0
}
