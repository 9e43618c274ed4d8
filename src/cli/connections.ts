/** `connections`: counts the connections of the running gateway by side and state, and lists them. */
import type { ConnectionRow } from '../observe/connection-list.ts'
import type { ConnectionsReport } from '../primary/socket-commands.ts'
import { STATE_NAMES } from '../protocol/states.ts'
import { type CliArguments, type CommandOptions, EXIT_FAILED, EXIT_USAGE, UsageError } from './arguments.ts'
import { sendAndReport } from './control-client.ts'
import { usage } from './help.ts'
import { paint, table, type Terminal } from './terminal.ts'

export async function connections(
  args: CliArguments,
  options: CommandOptions,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
  if (args.rest.length > 0) {
    errorOutput.write(usage('connections'))
    return EXIT_USAGE
  }
  const request = { command: 'connections', ...filterOf(options) }
  return sendAndReport<ConnectionsReport>(args.dataDir, request, errorOutput, report => {
    if (args.json) output.write(`${JSON.stringify(report, null, 2)}\n`)
    else print(output, report)
    for (const reactor of report.silent) errorOutput.write(`reactor ${reactor} did not answer: it is busy, or hangs\n`)
    return report.silent.length === 0 ? 0 : EXIT_FAILED
  })
}

function filterOf({ side, state, limit }: CommandOptions): Readonly<Record<string, unknown>> {
  if (side !== '' && side !== 'source' && side !== 'target') throw new UsageError('--side is source or target')
  const stateName = state.toUpperCase()
  if (state !== '' && !STATE_NAMES.some(name => name === stateName))
    throw new UsageError(`--state is one of ${STATE_NAMES.join(', ')}`)
  if (limit !== '' && !/^\d{1,5}$/.test(limit)) throw new UsageError('--limit is a whole number, 0 to 99999')
  return { side, state: stateName, ...(limit === '' ? {} : { limit: Number(limit) }) }
}

const SIDES = [
  ['source', 'client connections'],
  ['target', 'backend connections'],
] as const

function print(output: Terminal, { reactors }: ConnectionsReport): void {
  for (const [side, title] of SIDES) {
    const counts = new Map<string, number>()
    for (const reactor of reactors) {
      for (const [state, count] of Object.entries(reactor.counts[side]))
        counts.set(state, (counts.get(state) ?? 0) + count)
    }
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
    // In the order of the protocol.
    const listed = STATE_NAMES.filter(name => counts.has(name)).map(name => `${name} ${counts.get(name)}`)
    const states = listed.length === 0 ? '' : `  ${listed.join(' · ')}`
    output.write(`${paint(output, 'bold', `${String(total).padStart(6)} ${title}`)}${paint(output, 'dim', states)}\n`)
  }
  const cells = reactors.flatMap(({ reactor, rows }) => rows.map(row => cellsOf(reactor, row)))
  const omitted = reactors.reduce((sum, reactor) => sum + reactor.omitted, 0)
  if (cells.length > 0) output.write(`\n${table(output, HEADING, cells)}`)
  if (omitted > 0) output.write(`and ${omitted} more: --limit N shows them\n`)
}

const HEADING = ['connection', 'reactor', 'state', 'for', 'peer', 'scheme', 'request', 'partner']

function cellsOf(reactor: number, row: ConnectionRow): readonly string[] {
  const { id, state, ageMs, peer, scheme, backend, side, partner, method, path, api } = row
  const request = method === '' ? '' : `${method} ${path}${api === '' ? '' : ` (${api})`}`
  // Without a name the backend is its address.
  const address = peer === '' || backend.startsWith(peer) ? '' : ` (${peer})`
  const peerText = side === 'target' ? backend + address : peer
  return [id, String(reactor), state, duration(ageMs), peerText, scheme, request, partner]
}

/** Short, for a table: 850 ms, 12.3 s, 5 min, 3 h. */
function duration(ms: number): string {
  if (ms < 0) return ''
  if (ms < 1000) return `${ms} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  return ms < 3_600_000 ? `${Math.floor(ms / 60_000)} min` : `${Math.floor(ms / 3_600_000)} h`
}
