/** `reference`: what is derived from the catalogue, printed or written to files. */
import { basename } from 'node:path'
import { writeFileSync } from 'node:fs'
import { readDocument } from '../config/document.ts'
import { referenceJson, referencePage } from '../config/publish.ts'
import { schemaPage } from '../config/publish-schema.ts'
import { tomlPage } from '../config/publish-toml.ts'
import { labelOf, readSource } from '../config/source-file.ts'
import { type CliArguments, usage } from './arguments.ts'
import { EXIT_FAILED, EXIT_USAGE } from './exit-codes.ts'
import type { Terminal } from './terminal.ts'

/** End of a file's name -> what is written to it. */
const PAGES: Readonly<Record<string, () => string>> = {
  '.md': referencePage,
  '.schema.json': schemaPage,
  '.toml': tomlPage,
}

export async function reference(
  args: CliArguments,
  output: Terminal = process.stdout,
  complaints: Terminal = process.stderr,
): Promise<number> {
  const files = args.rest.map(path => ({ path, page: pageFor(path) }))
  if (files.some(({ page }) => page === undefined) || (args.json && files.length > 0)) {
    complaints.write(usage('reference'))
    return EXIT_USAGE
  }
  if (files.length === 0) {
    output.write(args.json ? referenceJson() : referencePage())
    return 0
  }
  const precious = files.filter(({ path }) => setsKeys(path))
  for (const { path } of precious) {
    complaints.write(`${labelOf(path)} sets keys and is left as it is; move it away, or name another file\n`)
  }
  for (const { path, page } of files) if (!setsKeys(path)) writeFileSync(path, page!())
  return precious.length === 0 ? 0 : EXIT_FAILED
}

function pageFor(path: string): (() => string) | undefined {
  return Object.entries(PAGES).find(([end]) => basename(path).endsWith(end))?.[1]
}

/** A configuration that an operator has written is not the gateway's to overwrite; one with a mistake in it neither. */
function setsKeys(path: string): boolean {
  if (!path.endsWith('.toml')) return false
  const source = readSource(path)
  if (source === undefined) return false
  const { entries, rows, faults } = readDocument(labelOf(path), source.text)
  return source.fault !== undefined || entries.length + rows.length + faults.length > 0
}
