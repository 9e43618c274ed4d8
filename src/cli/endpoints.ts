/** `endpoints`: lists the endpoints of the running gateway with their states, and switches one off or on. */
import type { EndpointsReport, ListedEndpoint } from '../primary/socket-commands.ts'
import { type CliArguments, EXIT_USAGE } from './arguments.ts'
import { sendAndReport } from './control-client.ts'
import { usage } from './help.ts'
import { retryText, table, type Terminal } from './terminal.ts'

export async function endpoints(
  args: CliArguments,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
  const [turn = '', name = '', ...more] = args.rest
  const isSwitch = turn === 'on' || turn === 'off'
  if (more.length > 0 || (turn !== '' && !isSwitch) || isSwitch !== (name !== '')) {
    errorOutput.write(usage('endpoints'))
    return EXIT_USAGE
  }
  return sendAndReport<EndpointsReport>(args.dataDir, { command: 'endpoints', turn, name }, errorOutput, report => {
    if (args.json) output.write(`${JSON.stringify(report.endpoints, null, 2)}\n`)
    else if (report.endpoints.length === 0) output.write('no endpoint\n')
    else output.write(table(output, HEADING, report.endpoints.map(cellsOf)))
    return 0
  })
}

const HEADING = ['endpoint', 'API', 'state', 'retry in', 'failures', 'last error', 'URL']

function cellsOf({ name, api, state, retryInMs, failures, lastError, url }: ListedEndpoint): readonly string[] {
  return [name, api, state, retryText(retryInMs), orEmpty(failures), orEmpty(lastError), url]
}

function orEmpty(count: number): string {
  return count === 0 ? '' : String(count)
}
