/** `init`: makes a home with everything commented out at its default, and the sample API. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { schemaPage } from '../config/reference-schema.ts'
import { tomlPage } from '../config/reference-toml.ts'
import { labelOf } from '../config/source-file.ts'
import { type CliArguments, EXIT_FAILED, EXIT_USAGE } from './arguments.ts'
import { usage } from './help.ts'
import type { Terminal } from './terminal.ts'

const SAMPLE = join('apis', 'Sample', 'api.yaml')
const SHIPPED_HOME = resolve(import.meta.dirname, '../../conf')

export async function init(
  { home, rest }: CliArguments,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
  if (rest.length > 0) {
    errorOutput.write(usage('init'))
    return EXIT_USAGE
  }
  try {
    mkdirSync(home, { recursive: true })
    // First, and never over an existing file: a home that is in use stays as it is.
    writeFileSync(join(home, 'deployment.toml'), tomlPage('sluice'), { flag: 'wx' })
    writeFileSync(join(home, 'deployment.schema.json'), schemaPage())
    mkdirSync(join(home, 'apis', 'Sample'), { recursive: true })
    copyFileSync(join(SHIPPED_HOME, SAMPLE), join(home, SAMPLE))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const label = labelOf(join(home, 'deployment.toml'))
    errorOutput.write(code === 'EEXIST' ? `${label} exists, and stays as it is\n` : `no home is made: ${message}\n`)
    return EXIT_FAILED
  }
  output.write(`${labelOf(home)} has a deployment.toml and the sample API\n`)
  return 0
}
