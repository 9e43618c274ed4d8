/** `pools`: lists the pools of worker threads of the running gateway, and its connections. */
import type { ListedPool, PoolHistory, PoolsReport } from '../primary/pool-service.ts'
import { type CliArguments, EXIT_USAGE } from './arguments.ts'
import { sendAndReport } from './control-client.ts'
import { usage } from './help.ts'
import { counted, table, type Terminal } from './terminal.ts'

export async function pools(
  args: CliArguments,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
  if (args.rest.length > 0) {
    errorOutput.write(usage('pools'))
    return EXIT_USAGE
  }
  return sendAndReport<PoolsReport>(args.dataDir, { command: 'pools' }, errorOutput, report => {
    if (args.json) output.write(`${JSON.stringify(report, null, 2)}\n`)
    else print(output, report)
    return 0
  })
}

const NOW = ['pool', 'running', 'core', 'max', 'highest', 'waiting', 'queue', 'bytes waiting', 'of', 'suspended']
const SINCE = [
  'pool',
  'messages',
  'waited',
  'mean wait',
  'queue full',
  'no memory',
  'loop',
  'busy',
  'late',
  'left',
  'died',
  'failed',
]

function print(output: Terminal, { pools, history, threads, deaths, diversions, connections }: PoolsReport): void {
  output.write(table(output, NOW, pools.map(cellsOf)))
  output.write(`\n${counted(threads, 'worker thread')}, ${deaths} died, ${counted(diversions, 'diversion')}\n\n`)
  output.write(table(output, SINCE, history.map(historyCells)))
  const cells = connections.map(({ side, open, limit }) => [
    side,
    String(open),
    limit < 0 ? 'unlimited' : String(limit),
  ])
  output.write(`\n${table(output, ['connections', 'open', 'limit'], cells)}`)
}

function cellsOf(pool: ListedPool): readonly string[] {
  const { name, running, core, max, highest, waiting, queueLength, waitingBytes, queueBytes, suspended } = pool
  const queue = queueLength < 0 ? 'unbounded' : String(queueLength)
  const last = [waitingBytes, queueBytes, suspended].map(String)
  return [name, ...[running, core, max, highest, waiting].map(String), queue, ...last]
}

function historyCells(history: PoolHistory): readonly string[] {
  const { name, tasks, waited, waitSeconds, queueFull, memory, loop, busy, late, left, died, failed } = history
  const mean = waited === 0 ? '' : `${Math.round((waitSeconds / waited) * 1000)} ms`
  return [
    name,
    String(tasks),
    String(waited),
    mean,
    ...[queueFull, memory, loop, busy, late, left, died, failed].map(String),
  ]
}
