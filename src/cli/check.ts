/** `check`: everything that is wrong with a configuration and its APIs, in one run, without starting anything. */
import { type ApiDefinitions, ApiProjects } from '../config/api-definitions.ts'
import { describe, type Fault } from '../config/fault.ts'
import { inOrderOfTheFile } from '../config/load.ts'
import { prepare } from '../primary/preparation.ts'
import { type CliArguments, usage } from './arguments.ts'
import { EXIT_CONFIGURATION, EXIT_USAGE } from './exit-codes.ts'
import { paint, type Terminal } from './terminal.ts'

export async function check(args: CliArguments, output: Terminal = process.stdout): Promise<number> {
  if (args.rest.length > 0) {
    output.write(usage('check'))
    return EXIT_USAGE
  }
  const { apis, sequences, tls, ...prepared } = await prepare(args, new ApiProjects(args.home, true))
  // At start an unknown key is only a warning: the file may be meant for a newer release. Here it was asked for.
  const faults = [...prepared.faults, ...prepared.unknown, ...apis.faults, ...sequences.faults].sort(inOrderOfTheFile)
  const ofFiles = [...apis.warnings, ...sequences.warnings]
  const told = [...prepared.warnings, ...(tls?.findings.warnings ?? []), ...ofFiles]
  const warnings = told.sort(inOrderOfTheFile)
  const { leftOut } = apis
  const valid = faults.length === 0
  if (args.json) output.write(`${JSON.stringify({ valid, faults, warnings, leftOut, apis: apis.apis.length })}\n`)
  else report(output, faults, warnings, apis)
  return faults.length === 0 ? 0 : EXIT_CONFIGURATION
}

function report(
  output: Terminal,
  faults: readonly Fault[],
  warnings: readonly Fault[],
  { apis, leftOut }: Pick<ApiDefinitions, 'apis' | 'leftOut'>,
): void {
  for (const fault of faults) output.write(`${paint(output, 'red', 'fault')}    ${describe(fault)}\n`)
  for (const warning of warnings) output.write(`${paint(output, 'yellow', 'warning')}  ${describe(warning)}\n`)
  for (const one of leftOut) output.write(`left out  ${describe(one)}\n`)
  const verdict = faults.length === 0 ? paint(output, 'green', 'valid') : paint(output, 'red', 'not valid')
  const counts = [counted(faults.length, 'fault'), counted(warnings.length, 'warning'), counted(apis.length, 'API')]
  output.write(`${verdict}: ${counts.join(', ')}\n`)
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
