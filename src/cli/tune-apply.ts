/** `tune --apply`: keeps the old deployment.toml, writes the changes, and reloads the gateway that runs. */
import { accessSync, constants, copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { formatDiagnostic } from '../config/diagnostics.ts'
import { examine } from '../config/load.ts'
import type { Proposal } from '../tune/proposals.ts'
import { type CliArguments, EXIT_CONFIGURATION, EXIT_FAILED, UsageError } from './arguments.ts'
import { ControlClient, ControlError } from './control-client.ts'
import { reload } from './reload.ts'
import type { Terminal } from './terminal.ts'
import { EditError, setInToml } from './tune-edit.ts'

/** `deployment.toml` as it was when the measurement began. */
export interface Deployment {
  readonly file: string
  readonly text: string
}

/** Throws UsageError where the file, or its folder, which gets the old one, cannot be written. */
export function deploymentOf({ home }: CliArguments): Deployment {
  const folders = [home, join(home, 'repository', 'conf')]
  const file = folders.map(folder => join(folder, 'deployment.toml')).find(existsSync)!
  try {
    for (const path of [file, dirname(file)]) accessSync(path, constants.W_OK)
    return { file, text: readFileSync(file, 'utf8') }
  } catch (error) {
    throw new UsageError(`--apply: ${(error as NodeJS.ErrnoException).path} cannot be written (${codeOf(error)})`)
  }
}

/** Returns the exit code. Where the changed file has errors, or the gateway refuses it, the old one is put back. */
export async function applyProposals(
  args: CliArguments,
  proposals: readonly Proposal[],
  { file, text }: Deployment,
  errorOutput: Terminal,
): Promise<number> {
  if (proposals.length === 0) return 0
  const old = `${file}.${new Date().toISOString().replaceAll(/[:.]/g, '-')}`
  const restore = (): void => {
    try {
      writeFileSync(file, text)
      rmSync(old)
      errorOutput.write(`${file} has its old content again\n`)
    } catch (error) {
      errorOutput.write(`${file} cannot be written (${codeOf(error)}): its old content is ${old}\n`)
    }
  }
  if (!write(text, proposals, { file, old, restore }, errorOutput)) return EXIT_FAILED
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

interface Write {
  readonly file: string
  /** Where the old content is kept. */
  readonly old: string
  readonly restore: () => void
}

/** In place, so that links, owner and mode stay. False: the reason is printed, and the file is as before. */
function write(
  text: string,
  proposals: readonly Proposal[],
  { file, old, restore }: Write,
  errorOutput: Terminal,
): boolean {
  let isKept = false
  try {
    const changed = proposals.reduce(setInToml, text)
    if (readFileSync(file, 'utf8') !== text) {
      errorOutput.write(`${file} has changed since the measurement began: it is left as it is\n`)
      return false
    }
    copyFileSync(file, old)
    isKept = true
    writeFileSync(file, changed)
    return true
  } catch (error) {
    const reason = error instanceof EditError ? error.message : `it cannot be written (${codeOf(error)})`
    errorOutput.write(`${file} is not changed: ${reason}\n`)
    if (isKept) restore()
    else rmSync(old, { force: true })
    return false
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? (error as Error).message
}
