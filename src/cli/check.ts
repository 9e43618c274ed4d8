/** `check`: lists every error of a configuration and its APIs in one run. Starts nothing and writes nothing. */
import { type LoadedApis, ApiProjects } from '../apis/api-projects.ts'
import { mediationSummaries } from '../apis/project-mediation.ts'
import { type Diagnostic, formatDiagnostic, formatValue } from '../config/diagnostics.ts'
import { BUILT_ROLES } from '../config/key.ts'
import { byFileOrder } from '../config/load.ts'
import { extensionSummaries } from '../plan/mediation-planning.ts'
import { nodeComponents } from '../plan/node-components.ts'
import { type LoadedHome, loadHome } from '../primary/home-loading.ts'
import { type CliArguments, EXIT_CONFIGURATION, EXIT_USAGE } from './arguments.ts'
import { usage } from './help.ts'
import { counted, paint, type Terminal } from './terminal.ts'

export async function check(args: CliArguments, output: Terminal = process.stdout): Promise<number> {
  if (args.rest.length > 0) {
    output.write(usage('check'))
    return EXIT_USAGE
  }
  const { apis, sequences, tls, ...loaded } = await loadHome(args, new ApiProjects(args.home, true))
  // Unknown keys are errors here. A start only warns of them, because the file may be for a newer release.
  const errors = [...loaded.errors, ...loaded.unknown, ...apis.errors, ...sequences.errors].sort(byFileOrder)
  const warnings = [
    ...loaded.warnings,
    ...roleWarnings(loaded),
    ...(tls?.diagnostics.warnings ?? []),
    ...apis.warnings,
    ...sequences.warnings,
  ].sort(byFileOrder)
  const { skipped } = apis
  const flows = [...extensionSummaries(apis.apis, sequences), ...mediationSummaries(apis.apis)]
  const valid = errors.length === 0
  if (args.json)
    output.write(`${JSON.stringify({ valid, errors, warnings, skipped, flows, apis: apis.apis.length })}\n`)
  else report(output, errors, warnings, { ...apis, flows })
  return valid ? 0 : EXIT_CONFIGURATION
}

/** A role of which no part is built; a start logs that. */
function roleWarnings({ configuration, keys, errors }: Omit<LoadedHome, 'apis' | 'sequences' | 'tls'>): Diagnostic[] {
  const { role, missing } = nodeComponents(configuration)
  if (errors.length > 0 || BUILT_ROLES.includes(role)) return []
  const { path, where } = keys.find(key => key.path === 'server.server_role')!
  const expected = `starts nothing yet, and the node never becomes ready: the ${missing.join(', ')} is not built yet`
  const hint = `choose ${BUILT_ROLES.slice(0, -1).join(', ')} or ${BUILT_ROLES.at(-1)}`
  return [{ where, key: path, given: formatValue(role), expected, hint }]
}

function report(
  output: Terminal,
  errors: readonly Diagnostic[],
  warnings: readonly Diagnostic[],
  { apis, skipped, flows }: Pick<LoadedApis, 'apis' | 'skipped'> & { readonly flows: readonly Diagnostic[] },
): void {
  for (const error of errors) output.write(`${paint(output, 'red', 'error')}    ${formatDiagnostic(error)}\n`)
  for (const warning of warnings) output.write(`${paint(output, 'yellow', 'warning')}  ${formatDiagnostic(warning)}\n`)
  for (const diagnostic of skipped) output.write(`skipped  ${formatDiagnostic(diagnostic)}\n`)
  for (const flow of flows) output.write(`flows    ${formatDiagnostic(flow)}\n`)
  const verdict = errors.length === 0 ? paint(output, 'green', 'valid') : paint(output, 'red', 'not valid')
  const counts = [counted(errors.length, 'error'), counted(warnings.length, 'warning'), counted(apis.length, 'API')]
  output.write(`${verdict}: ${counts.join(', ')}\n`)
}
