/**
 * Selects and runs load generators. wrk drives small messages, because it needs the least CPU. Large bodies and
 * constant rates need the generator of the bench: wrk reads 8 KiB at a time and knows no rate.
 */
import { fileURLToPath } from 'node:url'
import { findExecutable, LOAD_CORE, Program, pinned, runToEnd } from '../program.ts'
import type { LoadOutcome, LoadPlan, RecordingOutcome, RecordingPlan, TunnelPlan } from './load-plan.ts'
import { driveWrk } from './wrk.ts'

const LOAD_GENERATOR = fileURLToPath(new URL('load-generator.ts', import.meta.url))
const TUNNEL_GENERATOR = fileURLToPath(new URL('tunnel-generator.ts', import.meta.url))
const RECORDING_GENERATOR = fileURLToPath(new URL('recording-generator.ts', import.meta.url))

const WRK_BODY_BYTES_MAX = 16_384

/** Path of wrk if it is installed and can drive the plan. */
function wrkFor(plan: LoadPlan): string | undefined {
  const bodyBytes = plan.request === undefined ? plan.uploadBytes : 0
  const isSuitable = plan.ratePerSecond === 0 && bodyBytes === 0 && plan.downloadBytes <= WRK_BODY_BYTES_MAX
  return isSuitable ? findExecutable('wrk') : undefined
}

export function generatorName(plan: LoadPlan): string {
  return wrkFor(plan) === undefined ? 'own generator' : 'wrk'
}

export function drive(plan: LoadPlan, folder: string): Promise<LoadOutcome> {
  const wrk = wrkFor(plan)
  if (wrk !== undefined) return driveWrk(wrk, plan, folder)
  if (plan.request !== undefined) throw new Error('wrk is not installed: apt-get install wrk')
  return driveOwnGenerator(plan)
}

/** Flags of the generator's Node: helper threads of V8 would compete for the same core. */
const RUNTIME_FLAGS = ['--single-threaded', '--min-semi-space-size=64', '--max-semi-space-size=64']

/** `priority`: command that lowers the priority of a busy generator, so that the backend on its core goes first. */
export function driveOwnGenerator(plan: LoadPlan, priority: readonly string[] = []): Promise<LoadOutcome> {
  return run(LOAD_GENERATOR, plan, priority)
}

export function driveTunnels(plan: TunnelPlan): Promise<LoadOutcome> {
  return run(TUNNEL_GENERATOR, plan, [])
}

async function run(program: string, plan: LoadPlan | TunnelPlan, priority: readonly string[]): Promise<LoadOutcome> {
  const command = [...priority, process.execPath, ...RUNTIME_FLAGS, program, JSON.stringify(plan)]
  return JSON.parse(await runToEnd('the load generator', pinned(LOAD_CORE, command))) as LoadOutcome
}

/** Starts the recording generator, then `meanwhile`; resolves with what both of them return. */
export async function driveRecorded<Result>(
  plan: RecordingPlan,
  meanwhile: () => Promise<Result>,
): Promise<readonly [RecordingOutcome, Result]> {
  const command = [process.execPath, RECORDING_GENERATOR, JSON.stringify(plan)]
  const generator = new Program('the recording generator', pinned(LOAD_CORE, command))
  try {
    await generator.waitForLine(/^started$/)
    const printed = generator.waitForLine(/^\{/)
    const [{ line }, result] = await Promise.all([printed, meanwhile()])
    return [JSON.parse(line) as RecordingOutcome, result]
  } finally {
    await generator.stop()
  }
}
