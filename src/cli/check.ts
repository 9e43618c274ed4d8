/** `check`: everything that is wrong with a configuration and its APIs, in one run, without starting anything. */
import { loadApiDefinitions } from '../config/api-definitions.ts'
import { describe, type Fault } from '../config/fault.ts'
import type { Findings } from '../config/findings.ts'
import { examine } from '../config/load.ts'
import { sendable } from '../config/websocket-senders.ts'
import { forwardProxies } from '../forward-proxies.ts'
import { Planning } from '../planning.ts'
import { type CliArguments, usage } from './arguments.ts'
import { paint, type Terminal } from './terminal.ts'

const EXIT_USAGE = 2
const EXIT_CONFIGURATION = 78

export async function check(args: CliArguments, output: Terminal = process.stdout): Promise<number> {
  if (args.rest.length > 0) {
    output.write(usage('check'))
    return EXIT_USAGE
  }
  const configured = examine(args.home, args.sets, args.dataDir)
  const { apis: defined, faults: apiFaults, warnings: apiWarnings } = loadApiDefinitions(args.home)
  const { apis, faults: senderFaults } = sendable(defined, configured.configuration)
  const proxies = await forwardProxies(configured.configuration, configured.keys)
  const tls = await examineSecured(
    new Planning({ ...configured, apis, proxies, dataDir: args.dataDir, level: 'streams' }),
    args.home,
  )
  // At start an unknown key is only a warning: the file may be meant for a newer release. Here it was asked for.
  const faults = [
    ...configured.faults,
    ...configured.unknown,
    ...proxies.faults,
    ...tls.faults,
    ...apiFaults,
    ...senderFaults,
  ]
  const warnings = [...configured.warnings, ...proxies.warnings, ...tls.warnings, ...apiWarnings]
  if (args.json)
    output.write(`${JSON.stringify({ valid: faults.length === 0, faults, warnings, apis: apis.length })}\n`)
  else report(output, faults, warnings, apis.length)
  return faults.length === 0 ? 0 : EXIT_CONFIGURATION
}

/** Key stores and profiles are opened where a start would open them; loaded only then. */
async function examineSecured(planning: Planning, home: string): Promise<Pick<Findings, 'faults' | 'warnings'>> {
  if (!planning.usesTls) return { faults: [], warnings: [] }
  const { examineTls } = await import('../tls/tls-material.ts')
  return examineTls(planning.tlsSources, home)
}

function report(output: Terminal, faults: readonly Fault[], warnings: readonly Fault[], apiCount: number): void {
  for (const fault of faults) output.write(`${paint(output, 'red', 'fault')}    ${describe(fault)}\n`)
  for (const warning of warnings) output.write(`${paint(output, 'yellow', 'warning')}  ${describe(warning)}\n`)
  const verdict = faults.length === 0 ? paint(output, 'green', 'valid') : paint(output, 'red', 'not valid')
  const counts = [counted(faults.length, 'fault'), counted(warnings.length, 'warning'), counted(apiCount, 'API')]
  output.write(`${verdict}: ${counts.join(', ')}\n`)
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
