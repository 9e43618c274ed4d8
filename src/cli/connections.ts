/** `connections`: what the running gateway has open, by side and state, and each connection by itself. */
import type { ConnectionsAnswer } from '../primary/control-commands.ts'
import type { ConnectionRow } from '../observe/connection-row.ts'
import { STATE_NAMES } from '../protocol/states.ts'
import { type CliArguments, type CommandOptions, UsageError, usage } from './arguments.ts'
import { askAndTell } from './ask.ts'
import { EXIT_FAILED, EXIT_USAGE } from './exit-codes.ts'
import { table } from './table.ts'
import { paint, type Terminal } from './terminal.ts'

export async function connections(
  args: CliArguments,
  options: CommandOptions,
  output: Terminal = process.stdout,
  complaints: Terminal = process.stderr,
): Promise<number> {
  if (args.rest.length > 0) {
    complaints.write(usage('connections'))
    return EXIT_USAGE
  }
  const request = { command: 'connections', ...queryOf(options) }
  return askAndTell<ConnectionsAnswer>(args.dataDir, request, complaints, answer => {
    if (args.json) output.write(`${JSON.stringify(answer, null, 2)}\n`)
    else show(output, answer)
    for (const reactor of answer.silent) complaints.write(`reactor ${reactor} did not answer: it is busy, or hangs\n`)
    return answer.silent.length === 0 ? 0 : EXIT_FAILED
  })
}

function queryOf({ side, state, limit }: CommandOptions): Readonly<Record<string, unknown>> {
  if (side !== '' && side !== 'source' && side !== 'target') throw new UsageError('--side is source or target')
  const wanted = state.toUpperCase()
  if (state !== '' && !STATE_NAMES.some(name => name === wanted))
    throw new UsageError(`--state is one of ${STATE_NAMES.join(', ')}`)
  if (limit !== '' && !/^\d{1,5}$/.test(limit)) throw new UsageError('--limit is a whole number, 0 to 99999')
  return { side, state: wanted, ...(limit === '' ? {} : { limit: Number(limit) }) }
}

const SIDES = [
  ['source', 'client connections'],
  ['target', 'back end connections'],
] as const

function show(output: Terminal, { reactors }: ConnectionsAnswer): void {
  for (const [side, title] of SIDES) {
    const counts = new Map<string, number>()
    for (const reactor of reactors) {
      for (const [state, count] of Object.entries(reactor.counts[side]))
        counts.set(state, (counts.get(state) ?? 0) + count)
    }
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
    // In order of the protocol.
    const listed = STATE_NAMES.filter(name => counts.has(name)).map(name => `${name} ${counts.get(name)}`)
    const states = listed.length === 0 ? '' : `  ${listed.join(' · ')}`
    output.write(`${paint(output, 'bold', `${String(total).padStart(6)} ${title}`)}${paint(output, 'dim', states)}\n`)
  }
  const rows = reactors.flatMap(({ reactor, rows: own }) => own.map(row => ({ reactor, row })))
  const left = reactors.reduce((sum, reactor) => sum + reactor.left, 0)
  if (rows.length > 0) output.write(`\n${table(output, HEADING, rows.map(cellsOf))}`)
  if (left > 0) output.write(`and ${left} more: --limit N shows them\n`)
}

const HEADING = ['connection', 'reactor', 'state', 'for', 'peer', 'scheme', 'carries', 'with']

function cellsOf({ reactor, row }: { reactor: number; row: ConnectionRow }): readonly string[] {
  const carried = row.method === '' ? '' : `${row.method} ${row.path}${row.api === '' ? '' : ` (${row.api})`}`
  const { id, state, ageMs, peer, scheme, backend, side, partner } = row
  // A back end without a name is its address.
  const address = peer === '' || backend.startsWith(peer) ? '' : ` (${peer})`
  const at = side === 'target' ? backend + address : peer
  return [id, String(reactor), state, duration(ageMs), at, scheme, carried, partner]
}

/** Short, as a table has room for: 850 ms, 12.3 s, 5 min, 3 h. */
function duration(ms: number): string {
  if (ms < 0) return ''
  if (ms < 1000) return `${ms} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  return ms < 3_600_000 ? `${Math.floor(ms / 60_000)} min` : `${Math.floor(ms / 3_600_000)} h`
}
