/** `reload`: the running gateway reads its configuration and its APIs again. */
import { describe } from '../config/fault.ts'
import type { KeyChange } from '../primary/reload-comparison.ts'
import { changeSaid, type ReloadAnswer } from '../primary/reload-report.ts'
import { type CliArguments, usage } from './arguments.ts'
import { askAndTell } from './ask.ts'
import { EXIT_CONFIGURATION, EXIT_FAILED, EXIT_USAGE } from './exit-codes.ts'
import { paint, type Terminal } from './terminal.ts'

export async function reload(
  args: CliArguments,
  output: Terminal = process.stdout,
  complaints: Terminal = process.stderr,
): Promise<number> {
  if (args.rest.length > 0) {
    complaints.write(usage('reload'))
    return EXIT_USAGE
  }
  return askAndTell<ReloadAnswer>(args.dataDir, { command: 'reload' }, complaints, answer => {
    if (args.json) output.write(`${JSON.stringify(answer, null, 2)}\n`)
    else show(answer, output)
    return exitOf(answer)
  })
}

/** Whoever reads 78 knows that nothing has changed. */
function exitOf({ outcome, faults, failures }: ReloadAnswer): number {
  if (outcome === 'refused') return EXIT_CONFIGURATION
  return faults.length + failures.length > 0 ? EXIT_FAILED : 0
}

const WIDTH = 9

function show(
  { outcome, apis, sequences, keys, restart, faults, warnings, failures }: ReloadAnswer,
  output: Terminal,
): void {
  const line = (style: 'red' | 'yellow' | 'dim', word: string, text: string): void => {
    output.write(`${paint(output, style, word.padEnd(WIDTH))}${text}\n`)
  }
  for (const fault of faults) line('red', 'fault', describe(fault))
  for (const warning of warnings) line('yellow', 'warning', describe(warning))
  for (const failure of failures) line('red', 'failed', failure.split('\n')[0]!)
  for (const change of keys) line('dim', 'changed', valuesOf(change))
  for (const change of restart) line('yellow', 'restart', `${valuesOf(change)}: takes a restart`)
  for (const name of apis.added) line('dim', 'added', name)
  for (const name of apis.changed) line('dim', 'changed', name)
  for (const name of apis.removed) line('dim', 'removed', name)
  for (const name of apis.kept) line('yellow', 'kept', `${name}: as it was, because its project is faulty`)
  for (const name of sequences.changed) line('dim', 'changed', `${name}.xml`)
  for (const name of sequences.kept) line('yellow', 'kept', `${name}: not as in its file, because that is faulty`)
  if (outcome === 'refused') output.write(`${paint(output, 'red', 'refused')}: everything stays as it was\n`)
  else output.write(`${paint(output, 'green', 'in force')}${waiting(restart.length)}\n`)
}

function valuesOf(change: KeyChange): string {
  const { running, wanted } = changeSaid(change)
  return `${change.key}: ${running} -> ${wanted}${change.where === '' ? '' : ` (${change.where})`}`
}

function waiting(keys: number): string {
  if (keys === 0) return ''
  return keys === 1 ? ', but for one key that takes a restart' : `, but for ${keys} keys that take a restart`
}
