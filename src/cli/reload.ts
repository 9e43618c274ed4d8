/** `reload`: makes the running gateway read its configuration and its APIs again, and prints the report. */
import { formatDiagnostic } from '../config/diagnostics.ts'
import type { KeyChange } from '../primary/configuration-diff.ts'
import { changeText, type ReloadReport } from '../primary/reload-report.ts'
import { type CliArguments, EXIT_CONFIGURATION, EXIT_FAILED, EXIT_USAGE } from './arguments.ts'
import { sendAndReport } from './control-client.ts'
import { usage } from './help.ts'
import { paint, type Terminal } from './terminal.ts'

export async function reload(
  args: CliArguments,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
  if (args.rest.length > 0) {
    errorOutput.write(usage('reload'))
    return EXIT_USAGE
  }
  return sendAndReport<ReloadReport>(args.dataDir, { command: 'reload' }, errorOutput, report => {
    if (args.json) output.write(`${JSON.stringify(report, null, 2)}\n`)
    else print(report, output)
    return exitCode(report)
  })
}

/** EXIT_CONFIGURATION means that nothing has changed. */
function exitCode({ outcome, errors, failures }: ReloadReport): number {
  if (outcome === 'refused') return EXIT_CONFIGURATION
  return errors.length + failures.length > 0 ? EXIT_FAILED : 0
}

const WIDTH = 9

function print(
  { outcome, apis, sequences, keys, restart, errors, warnings, failures }: ReloadReport,
  output: Terminal,
): void {
  const line = (style: 'red' | 'yellow' | 'dim', word: string, text: string): void => {
    output.write(`${paint(output, style, word.padEnd(WIDTH))}${text}\n`)
  }
  for (const error of errors) line('red', 'error', formatDiagnostic(error))
  for (const warning of warnings) line('yellow', 'warning', formatDiagnostic(warning))
  for (const failure of failures) line('red', 'failed', failure.split('\n')[0]!)
  for (const change of keys) line('dim', 'changed', keyChangeText(change))
  for (const change of restart) line('yellow', 'restart', `${keyChangeText(change)}: needs a restart`)
  for (const name of apis.added) line('dim', 'added', name)
  for (const name of apis.changed) line('dim', 'changed', name)
  for (const name of apis.removed) line('dim', 'removed', name)
  for (const name of apis.kept)
    line('yellow', 'kept', `${name}: the deployed version stays, because of the errors above`)
  for (const name of sequences.changed) line('dim', 'changed', `${name}.xml`)
  for (const name of sequences.kept) line('yellow', 'kept', `${name}.xml: it has errors, the active sequence stays`)
  if (outcome === 'refused') output.write(`${paint(output, 'red', 'refused')}: nothing has changed\n`)
  else output.write(`${paint(output, 'green', 'applied')}${restartText(restart.length)}\n`)
}

function keyChangeText(change: KeyChange): string {
  const { running, wanted } = changeText(change)
  return `${change.key}: ${running} -> ${wanted}${change.where === '' ? '' : ` (${change.where})`}`
}

function restartText(keys: number): string {
  if (keys === 0) return ''
  return keys === 1 ? ', except for one key that needs a restart' : `, except for ${keys} keys that need a restart`
}
