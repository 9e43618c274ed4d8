/** `tune --apply`: keeps the old deployment.toml, writes the changes, and reloads the gateway that runs. */
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatDiagnostic } from '../config/diagnostics.ts'
import { examine } from '../config/load.ts'
import type { Proposal } from '../tune/proposals.ts'
import { setInToml } from '../tune/toml-edit.ts'
import { type CliArguments, EXIT_CONFIGURATION } from './arguments.ts'
import { ControlClient, ControlError } from './control-client.ts'
import { reload } from './reload.ts'
import type { Terminal } from './terminal.ts'

/** Returns the exit code. Where the changed file has errors, or the gateway refuses it, the old one is put back. */
export async function applyProposals(
  args: CliArguments,
  proposals: readonly Proposal[],
  errorOutput: Terminal,
): Promise<number> {
  if (proposals.length === 0) return 0
  const folders = [args.home, join(args.home, 'repository', 'conf')]
  const file = folders.map(folder => join(folder, 'deployment.toml')).find(existsSync)!
  const old = `${file}.${new Date().toISOString().replaceAll(/[:.]/g, '-')}`
  copyFileSync(file, old)
  const restore = (): void => {
    copyFileSync(old, file)
    rmSync(old)
    errorOutput.write(`${file} has its old content again\n`)
  }
  writeFileSync(file, proposals.reduce(setInToml, readFileSync(file, 'utf8')))
  const { errors } = examine(args.home, args.sets, args.dataDir)
  if (errors.length > 0) {
    for (const error of errors) errorOutput.write(`${formatDiagnostic(error)}\n`)
    restore()
    return EXIT_CONFIGURATION
  }
  errorOutput.write(`${file} is changed; the old one is ${old}\n`)
  try {
    const control = await ControlClient.connect(args.dataDir)
    control.close()
  } catch (error) {
    if (!(error instanceof ControlError)) throw error
    errorOutput.write(`${error.message}; the changes apply at the next start\n`)
    return 0
  }
  const code = await reload({ ...args, rest: [], json: false }, errorOutput, errorOutput)
  if (code === EXIT_CONFIGURATION) restore()
  return code
}
