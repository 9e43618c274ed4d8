/** `throttle`: lists and resets counters of the running gateway; what it does with policies are management commands. */
import type { CountersReport, ListedCounter } from '../primary/throttle-service.ts'
import { type CliArguments, type CommandOptions, EXIT_USAGE } from './arguments.ts'
import { sendAndReport } from './control-client.ts'
import { usage } from './help.ts'
import { table, type Terminal } from './terminal.ts'

export async function throttle(
  args: CliArguments,
  options: CommandOptions,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
  const [word = '', key = '', ...more] = args.rest
  if (word === 'top' && key === '') return top(args, options, output, errorOutput)
  if (word === 'reset' && key !== '' && more.length === 0) return reset(args, key, output, errorOutput)
  if (word === 'policy' || word === 'deny') {
    const { manage } = await import('./management.ts')
    return manage('throttle', args, options, output, errorOutput)
  }
  errorOutput.write(usage('throttle'))
  return EXIT_USAGE
}

function top(
  { dataDir, json }: CliArguments,
  { by, limit }: CommandOptions,
  output: Terminal,
  errorOutput: Terminal,
): Promise<number> {
  const request = { command: 'counters', ...(by !== '' && { by }), ...(limit !== '' && { limit: Number(limit) }) }
  return sendAndReport<CountersReport>(dataDir, request, errorOutput, report => {
    if (json) output.write(`${JSON.stringify(report, null, 2)}\n`)
    else if (report.counters.length === 0) output.write('no counter is in use\n')
    else output.write(table(output, HEADING, report.counters.map(cellsOf)))
    return 0
  })
}

const HEADING = ['key', 'policy', 'used', 'of', 'per s', 'refused', 'resets at']

function cellsOf({ key, policy, counts, used, limit, rate, refused, resetsAtMs }: ListedCounter): readonly string[] {
  const unit = counts === 'bandwidth' ? ' B' : ''
  const resetsAt = new Date(resetsAtMs).toISOString().replace('.000Z', 'Z')
  return [key, policy, `${used}${unit}`, `${limit}${unit}`, String(rate), String(refused), resetsAt]
}

function reset({ dataDir }: CliArguments, key: string, output: Terminal, errorOutput: Terminal): Promise<number> {
  return sendAndReport<object>(dataDir, { command: 'reset-counter', key }, errorOutput, () => {
    output.write(`${key} begins anew\n`)
    return 0
  })
}
