/**
 * `start`: the gateway itself. Here is only what has to be known before threads can begin: they load their modules
 * while this one loads the others and reads APIs.
 */
import { examine } from '../config/load.ts'
import { AuthorityKeeper } from '../primary/authority-keeper.ts'
import { planListeners } from '../primary/listener-plans.ts'
import { partsOf } from '../primary/node-parts.ts'
import { reactorsOf } from '../primary/planning.ts'
import { ReactorThreads } from '../primary/reactor-threads.ts'
import type { CliArguments, CommandOptions } from './arguments.ts'

/** Resolves with the exit code. */
export async function start(place: CliArguments, options: CommandOptions, compileCache: string): Promise<number> {
  const examined = examine(place.home, place.sets, place.dataDir)
  const { configuration, faults } = examined
  const threads = new ReactorThreads(compileCache)
  const authority = new AuthorityKeeper(compileCache)
  const { runsGateway, runsKeyManager } = partsOf(configuration)
  if (faults.length === 0) {
    if (runsGateway) threads.begin(reactorsOf(configuration, planListeners(configuration)))
    if (runsGateway || runsKeyManager) authority.begin(runsKeyManager)
  }
  const { serve } = await import('./serve.ts')
  return serve(place, options, examined, { threads, authority })
}
