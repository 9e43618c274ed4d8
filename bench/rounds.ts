/** One round with one peer: drives the load, and measures what it cost the peer's process tree. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Certificate } from './certificate.ts'
import { drive, driveOwnGenerator, driveTunnels } from './load/drive.ts'
import type { HandshakePlan, LoadOutcome, LoadPlan, TunnelPlan } from './load/load-plan.ts'
import { driveHandshakes } from './load/tls-handshakes.ts'
import type { Sample } from './metric.ts'
import { memory, otherProgramsSeconds, processorTime } from './process-tree.ts'
import { descriptorLimit, LOAD_CORE, lowestPriority, Program, pinned } from './program.ts'
import {
  BODY_BYTES,
  type ClosedLoad,
  type Handshakes,
  type IdleConnections,
  type OpenLoad,
  type TunnelLoad,
} from './scenarios.ts'

export const WARM_UP_SECONDS = 1
/** Long enough for garbage collectors and allocators to settle. */
export const SETTLE_MS = 2000
/** Open files of a program besides connections. */
const OTHER_DESCRIPTORS = 200
const HOLD_TIMEOUT_MS = 60_000

const IDLE_HOLDER = fileURLToPath(new URL('load/idle-holder.ts', import.meta.url))

export interface RunningPeer {
  readonly name: string
  readonly program: Program
  readonly address: Address
  /** The peer's own folder. */
  readonly folder: string
}

/** Where a peer listens; with a certificate the port is a TLS port. */
export interface Address {
  readonly port: number
  readonly certificate: Certificate | undefined
}

const AS_FAST_AS_POSSIBLE = { ratePerSecond: 0, warmUpSeconds: 0 } as const

export function closedPlan(scenario: ClosedLoad, address: Address, seconds: number): LoadPlan {
  const { path, connections, uploadBytes, downloadBytes, connectionPerRequest } = scenario
  const request = { path, connections, uploadBytes, downloadBytes, connectionPerRequest }
  return { ...address, ...request, seconds, ...AS_FAST_AS_POSSIBLE }
}

const SMALL_GET = { uploadBytes: 0, downloadBytes: BODY_BYTES['1k'], connectionPerRequest: false } as const

/** A GET of 1 KiB on keep-alive connections. */
export function smallGetPlan(
  { path, connections }: { path: string; connections: number },
  address: Address,
  seconds: number,
): LoadPlan {
  return { ...address, path, connections, seconds, ...SMALL_GET, ...AS_FAST_AS_POSSIBLE }
}

/** One request on a connection of its own, to verify a peer before handshakes are measured. */
export function handshakeCheckPlan({ path }: Handshakes, address: Address): LoadPlan {
  return { ...smallGetPlan({ path, connections: 1 }, address, 0), connectionPerRequest: true }
}

function handshakePlan(scenario: Handshakes, address: Address, seconds: number): HandshakePlan {
  const { path, clients, resumed } = scenario
  const environment = address.certificate?.environment ?? {}
  return { port: address.port, path, clients, seconds, resumed, downloadBytes: BODY_BYTES['1k'], environment }
}

function tunnelPlan(scenario: TunnelLoad, { port }: Address, seconds: number): TunnelPlan {
  const { traffic, connections, messageBytes } = scenario
  return { port, traffic, connections, messageBytes, seconds }
}

/** Drives one load and divides the CPU time of the peer's process tree by the requests with a response. */
export async function measureLoad(peer: RunningPeer, load: () => Promise<LoadOutcome>): Promise<Sample> {
  const startMs = performance.now()
  const othersBefore = otherProgramsSeconds()
  const before = processorTime(peer.program.pid)
  const outcome = await load()
  const after = processorTime(peer.program.pid)
  const othersPercent = ((otherProgramsSeconds() - othersBefore) / (performance.now() - startMs)) * 1e5
  if (peer.program.ended) throw new Error(`${peer.name} ended during the round: ${peer.program.output.trim()}`)
  const { requests, seconds, ...rest } = outcome
  if (requests === 0) throw new Error(`${peer.name} sent no response`)
  const userSeconds = after.userSeconds - before.userSeconds
  const systemSeconds = after.systemSeconds - before.systemSeconds
  const perRequest = 1e6 / requests
  return {
    ...rest,
    requestsPerSecond: requests / seconds,
    cpuMicrosPerRequest: (userSeconds + systemSeconds) * perRequest,
    userMicrosPerRequest: userSeconds * perRequest,
    systemMicrosPerRequest: systemSeconds * perRequest,
    busyPercent: ((userSeconds + systemSeconds) / seconds) * 100,
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
  await drive(closedPlan(scenario, peer.address, WARM_UP_SECONDS), folder)
  const sample = await measureLoad(peer, () => drive(closedPlan(scenario, peer.address, seconds), folder))
  return withThroughput(sample, scenario.uploadBytes + scenario.downloadBytes)
}

function withThroughput(sample: Sample, bytesPerRequest: number): Sample {
  const { cpuMicrosPerRequest = Number.NaN, requestsPerSecond = Number.NaN } = sample
  return {
    ...sample,
    cpuSecondsPerGigabyte: (cpuMicrosPerRequest * 1000) / bytesPerRequest,
    megabytesPerSecond: (requestsPerSecond * bytesPerRequest) / 1e6,
  }
}

export async function handshakeRound(peer: RunningPeer, scenario: Handshakes, seconds: number): Promise<Sample> {
  await driveHandshakes(handshakePlan(scenario, peer.address, WARM_UP_SECONDS))
  return measureLoad(peer, () => driveHandshakes(handshakePlan(scenario, peer.address, seconds)))
}

export async function tunnelRound(peer: RunningPeer, scenario: TunnelLoad, seconds: number): Promise<Sample> {
  await driveTunnels(tunnelPlan(scenario, peer.address, WARM_UP_SECONDS))
  const sample = await measureLoad(peer, () => driveTunnels(tunnelPlan(scenario, peer.address, seconds)))
  return withThroughput(sample, scenario.messageBytes)
}

/**
 * The requests per second that the load generator of the bench reaches in a closed loop, at the priority that it has in
 * the open loop. The peak of wrk would be higher, so a share of it could be more than the generator can offer.
 */
export async function peakRate(peer: RunningPeer, scenario: OpenLoad, seconds: number): Promise<number> {
  await driveOwnGenerator(smallGetPlan(scenario, peer.address, WARM_UP_SECONDS))
  const outcome = await driveOwnGenerator(smallGetPlan(scenario, peer.address, seconds), lowestPriority())
  return outcome.requests / outcome.seconds
}

/** Warm-up happens within the measured run, at the measured rate; only its latencies are dropped. */
export async function openRound(peer: RunningPeer, scenario: OpenLoad, rate: number, seconds: number): Promise<Sample> {
  const plan = { ...smallGetPlan(scenario, peer.address, seconds), ratePerSecond: rate, warmUpSeconds: WARM_UP_SECONDS }
  const sample = await measureLoad(peer, () => driveOwnGenerator(plan, lowestPriority()))
  return { ...sample, offeredPerSecond: rate }
}

/** A proxy has two connections for each tunnel. */
function tunnelsMax(): number {
  return Math.floor((descriptorLimit() - OTHER_DESCRIPTORS) / 2)
}

async function warmUp(peer: RunningPeer, scenario: IdleConnections, folder: string): Promise<void> {
  const { port } = peer.address
  const tunnels = { port, traffic: 'echo', connections: 64, messageBytes: 128, seconds: WARM_UP_SECONDS } as const
  if (scenario.upgraded === true) await driveTunnels(tunnels)
  else await drive({ ...smallGetPlan(scenario, peer.address, WARM_UP_SECONDS), connections: 64 }, folder)
}

/** Needs a peer that was just started: new connections would reuse memory that an earlier round left behind. */
export async function idleRound(peer: RunningPeer, scenario: IdleConnections, folder: string): Promise<Sample> {
  await warmUp(peer, scenario, folder)
  await sleep(SETTLE_MS)
  const before = memory(peer.program.pid)
  const upgraded = scenario.upgraded === true
  const count = upgraded ? Math.min(scenario.connections, tunnelsMax()) : scenario.connections
  const { port, certificate } = peer.address
  const kind = upgraded ? ['upgraded'] : certificate === undefined ? [] : [certificate.chainFile]
  const words = [String(port), scenario.path, String(count), ...kind]
  const holder = new Program('the idle holder', pinned(LOAD_CORE, [process.execPath, IDLE_HOLDER, ...words]))
  try {
    await holder.waitForLine(/^held /, HOLD_TIMEOUT_MS)
    await sleep(SETTLE_MS)
    const after = memory(peer.program.pid)
    const answer = holder.waitForLine(/^alive /)
    holder.child.stdin?.write('\n')
    const held = Number((await answer).line.slice(6))
    const kibPerConnection = ((after.pssMiB - before.pssMiB) * 1024) / held
    return { kibPerConnection, heldConnections: held, errors: count - held, ...after }
  } finally {
    await holder.stop()
  }
}
