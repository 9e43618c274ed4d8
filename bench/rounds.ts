/** One round with one peer: the load, and what it cost the peer's process tree. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { drive, driveOwn } from './load/drive.ts'
import type { LoadOutcome, LoadPlan } from './load/load-plan.ts'
import type { Sample } from './metric.ts'
import { memory, processorTime, secondsElsewhere } from './process-tree.ts'
import { LOAD_CORE, lowestPriority, Program, pinned } from './program.ts'
import { BODY_BYTES, type ClosedLoad, type IdleConnections, type OpenLoad } from './scenarios.ts'

const WARM_UP_SECONDS = 1
/** Long enough for garbage collectors and allocators to come to rest. */
const SETTLE_MS = 2000
const HOLD_PATIENCE_MS = 60_000

const IDLE_HOLDER = fileURLToPath(new URL('load/idle-holder.ts', import.meta.url))

export interface RunningPeer {
  readonly name: string
  readonly program: Program
  readonly port: number
}

const UNPACED = { ratePerSecond: 0, warmUpSeconds: 0 } as const

export function closedPlan(scenario: ClosedLoad, port: number, seconds: number): LoadPlan {
  const { path, connections, uploadBytes, downloadBytes, connectionPerRequest } = scenario
  return { port, path, connections, seconds, uploadBytes, downloadBytes, connectionPerRequest, ...UNPACED }
}

export function plainPlan(scenario: OpenLoad | IdleConnections, port: number, seconds: number): LoadPlan {
  const { path, connections } = scenario
  const message = { uploadBytes: 0, downloadBytes: BODY_BYTES['1k'], connectionPerRequest: false }
  return { port, path, connections, seconds, ...message, ...UNPACED }
}

/** Drives one load and divides the processor time of the whole tree by the requests answered. */
async function charged(peer: RunningPeer, load: () => Promise<LoadOutcome>): Promise<Sample> {
  const startMs = performance.now()
  const othersBefore = secondsElsewhere()
  const before = processorTime(peer.program.pid)
  const outcome = await load()
  const after = processorTime(peer.program.pid)
  const othersPercent = ((secondsElsewhere() - othersBefore) / (performance.now() - startMs)) * 1e5
  if (peer.program.ended) throw new Error(`${peer.name} ended during the round: ${peer.program.output.trim()}`)
  if (outcome.requests === 0) throw new Error(`${peer.name} answered nothing`)
  const userSeconds = after.userSeconds - before.userSeconds
  const systemSeconds = after.systemSeconds - before.systemSeconds
  const perRequest = 1e6 / outcome.requests
  return {
    requestsPerSecond: outcome.requests / outcome.seconds,
    cpuMicrosPerRequest: (userSeconds + systemSeconds) * perRequest,
    userMicrosPerRequest: userSeconds * perRequest,
    systemMicrosPerRequest: systemSeconds * perRequest,
    busyPercent: ((userSeconds + systemSeconds) / outcome.seconds) * 100,
    p50Ms: outcome.p50Ms,
    p99Ms: outcome.p99Ms,
    p999Ms: outcome.p999Ms,
    maxMs: outcome.maxMs,
    errors: outcome.errors,
    othersPercent,
    ...memory(peer.program.pid),
  }
}

export async function closedRound(
  peer: RunningPeer,
  scenario: ClosedLoad,
  seconds: number,
  folder: string,
): Promise<Sample> {
  await drive(closedPlan(scenario, peer.port, WARM_UP_SECONDS), folder)
  const sample = await charged(peer, () => drive(closedPlan(scenario, peer.port, seconds), folder))
  const { cpuMicrosPerRequest = Number.NaN, requestsPerSecond = Number.NaN } = sample
  const bodyBytes = scenario.uploadBytes + scenario.downloadBytes
  return {
    ...sample,
    cpuSecondsPerGigabyte: (cpuMicrosPerRequest * 1000) / bodyBytes,
    megabytesPerSecond: (requestsPerSecond * bodyBytes) / 1e6,
  }
}

/**
 * The requests per second that the own generator gets through the peer when it waits for each answer, at the priority
 * it has in the open loop. Not wrk's figure: wrk gets more through, so that a share of it could be more than can be
 * offered.
 */
export async function peakOf(peer: RunningPeer, scenario: OpenLoad, seconds: number): Promise<number> {
  await driveOwn(plainPlan(scenario, peer.port, WARM_UP_SECONDS))
  const outcome = await driveOwn(plainPlan(scenario, peer.port, seconds), lowestPriority())
  return outcome.requests / outcome.seconds
}

/** Proxy and generator warm up in the measured run itself, at the measured rate; only its latencies are left out. */
export async function openRound(peer: RunningPeer, scenario: OpenLoad, rate: number, seconds: number): Promise<Sample> {
  const plan = { ...plainPlan(scenario, peer.port, seconds), ratePerSecond: rate, warmUpSeconds: WARM_UP_SECONDS }
  return { ...(await charged(peer, () => driveOwn(plan, lowestPriority()))), offeredPerSecond: rate }
}

/** The peer must be fresh: memory that an earlier round left behind would be filled instead of newly taken. */
export async function idleRound(peer: RunningPeer, scenario: IdleConnections, folder: string): Promise<Sample> {
  await drive({ ...plainPlan(scenario, peer.port, WARM_UP_SECONDS), connections: 64 }, folder)
  await sleep(SETTLE_MS)
  const before = memory(peer.program.pid)
  const words = [String(peer.port), scenario.path, String(scenario.connections)]
  const holder = new Program('the idle holder', pinned(LOAD_CORE, [process.execPath, IDLE_HOLDER, ...words]))
  try {
    await holder.line(/^held /, HOLD_PATIENCE_MS)
    await sleep(SETTLE_MS)
    const after = memory(peer.program.pid)
    const answer = holder.line(/^alive /)
    holder.child.stdin?.write('\n')
    const held = Number((await answer).line.slice(6))
    const kibPerConnection = ((after.pssMiB - before.pssMiB) * 1024) / held
    return { kibPerConnection, heldConnections: held, errors: scenario.connections - held, ...after }
  } finally {
    await holder.stop()
  }
}
