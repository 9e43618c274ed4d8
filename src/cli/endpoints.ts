/** `endpoints`: the back ends of the running gateway, their states, and switching one off or on. */
import type { EndpointRow, EndpointsAnswer } from '../primary/control-commands.ts'
import { type CliArguments, usage } from './arguments.ts'
import { askAndTell } from './ask.ts'
import { EXIT_USAGE } from './exit-codes.ts'
import { table } from './table.ts'
import type { Terminal } from './terminal.ts'

export async function endpoints(
  args: CliArguments,
  output: Terminal = process.stdout,
  complaints: Terminal = process.stderr,
): Promise<number> {
  const [turn = '', name = '', ...more] = args.rest
  const isSwitch = turn === 'on' || turn === 'off'
  if (more.length > 0 || (turn !== '' && !isSwitch) || isSwitch !== (name !== '')) {
    complaints.write(usage('endpoints'))
    return EXIT_USAGE
  }
  return askAndTell<EndpointsAnswer>(args.dataDir, { command: 'endpoints', turn, name }, complaints, answer => {
    if (args.json) output.write(`${JSON.stringify(answer.endpoints, null, 2)}\n`)
    else if (answer.endpoints.length === 0) output.write('no endpoint\n')
    else output.write(table(output, HEADING, answer.endpoints.map(cellsOf)))
    return 0
  })
}

const HEADING = ['endpoint', 'API', 'state', 'retry in', 'failures', 'last error', 'URL']

function cellsOf({ name, api, state, retryInMs, failures, lastError, url }: EndpointRow): readonly string[] {
  const retry = retryInMs < 0 ? '' : `${(retryInMs / 1000).toFixed(1)} s`
  return [name, api, state, retry, shown(failures), shown(lastError), url]
}

function shown(count: number): string {
  return count === 0 ? '' : String(count)
}
