/** `reference`: the page of all keys, derived from the catalogue. */
import { writeFileSync } from 'node:fs'
import { referenceJson, referencePage } from '../config/publish.ts'
import { type CliArguments, usage } from './arguments.ts'
import type { Terminal } from './terminal.ts'

const EXIT_USAGE = 2

export async function reference(args: CliArguments, output: Terminal = process.stdout): Promise<number> {
  const [file, ...more] = args.rest
  if (more.length > 0) {
    output.write(usage('reference'))
    return EXIT_USAGE
  }
  const page = args.json ? referenceJson() : referencePage()
  if (file === undefined) output.write(page)
  else writeFileSync(file, page)
  return 0
}
