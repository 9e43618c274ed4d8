/**
 * `start`, first part: examines the configuration and creates the threads, which load their modules while `serve.ts`
 * and its imports load here. Everything else belongs to `serve.ts`.
 */
import { examine } from '../config/load.ts'
import { shareWriteTurns } from '../database/write-turns.ts'
import { planListeners } from '../plan/listener-planning.ts'
import { nodeComponents } from '../plan/node-components.ts'
import { reactorCount } from '../plan/reactor-planning.ts'
import { ControlThread } from '../primary/control-thread.ts'
import { ReactorPool } from '../primary/reactor-pool.ts'
import { shareDeliveryCounts } from '../observe/delivery-counts.ts'
import { sharePoolCounts } from '../observe/pool-counts.ts'
import { nameProcess } from '../runtime/process-name.ts'
import type { CliArguments, CommandOptions } from './arguments.ts'
import { catchStrayOutput } from './service-log.ts'

/** Resolves with the exit code. */
export async function start(args: CliArguments, options: CommandOptions, compileCache: string): Promise<number> {
  // A terminal that closes, or a reader that ends, ends no gateway.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {})
  if (!process.stderr.isTTY) catchStrayOutput()
  const examined = examine(args.home, args.sets, args.dataDir)
  const { configuration, errors } = examined
  const { runsGateway, runsKeyManager, runsTrafficManager } = nodeComponents(configuration)
  nameProcess(args.dataDir)
  shareDeliveryCounts()
  sharePoolCounts()
  shareWriteTurns()
  const reactors = new ReactorPool(compileCache)
  const control = new ControlThread(compileCache, runsKeyManager)
  if (errors.length === 0) {
    if (runsGateway) reactors.preload(reactorCount(configuration, planListeners(configuration)))
    if (runsGateway || runsKeyManager || runsTrafficManager) control.preload()
  }
  const { serve } = await import('./serve.ts')
  return serve(args, options, examined, { reactors, control })
}
