/**
 * Chooses the load generator: wrk where it is installed and suits, the own one for everything else. wrk is the
 * cheaper one for small messages. It reads 8 KiB at a time, though, so that with large bodies it would be the limit,
 * and it has no constant rate.
 */
import { fileURLToPath } from 'node:url'
import { findExecutable, finished, LOAD_CORE, pinned } from '../program.ts'
import type { LoadOutcome, LoadPlan, TunnelPlan } from './load-plan.ts'
import { driveWrk } from './wrk.ts'

const GENERATOR = fileURLToPath(new URL('generator.ts', import.meta.url))
const TUNNEL_GENERATOR = fileURLToPath(new URL('tunnel-generator.ts', import.meta.url))

const WRK_BODY_BYTES_MAX = 16_384

function chooseWrk(plan: LoadPlan): string | undefined {
  const bodyBytes = plan.ask === undefined ? plan.uploadBytes : 0
  const suits = plan.ratePerSecond === 0 && bodyBytes === 0 && plan.downloadBytes <= WRK_BODY_BYTES_MAX
  return suits ? findExecutable('wrk') : undefined
}

export function generatorName(plan: LoadPlan): string {
  return chooseWrk(plan) === undefined ? 'own generator' : 'wrk'
}

export function drive(plan: LoadPlan, folder: string): Promise<LoadOutcome> {
  const wrk = chooseWrk(plan)
  if (wrk !== undefined) return driveWrk(wrk, plan, folder)
  if (plan.ask !== undefined) throw new Error('wrk is not installed: apt-get install wrk')
  return driveOwn(plan)
}

/** One thread, rare collections: helper threads would only compete for the same core. */
const RUNTIME_FLAGS = ['--single-threaded', '--min-semi-space-size=64', '--max-semi-space-size=64']

/** A generator that never sleeps must yield to the backend beside it at once; one that waits for answers need not. */
export function driveOwn(plan: LoadPlan, priority: readonly string[] = []): Promise<LoadOutcome> {
  return run(GENERATOR, plan, priority)
}

export function driveTunnels(plan: TunnelPlan): Promise<LoadOutcome> {
  return run(TUNNEL_GENERATOR, plan, [])
}

async function run(program: string, plan: LoadPlan | TunnelPlan, priority: readonly string[]): Promise<LoadOutcome> {
  const command = [...priority, process.execPath, ...RUNTIME_FLAGS, program, JSON.stringify(plan)]
  return JSON.parse(await finished('the load generator', pinned(LOAD_CORE, command))) as LoadOutcome
}
