/**
 * Runs a paired scenario: all peers are started, take turns for some rounds in alternating order, and are restarted.
 * The cost of a round is compared with that of the other peers in the same round.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { sendCommand } from '../../src/cli/control-client.ts'
import type { ReloadReport } from '../../src/primary/reload-report.ts'
import { drive, driveRecorded } from '../load/drive.ts'
import { LatencyHistogram } from '../load/latency-histogram.ts'
import type { LoadPlan, RecordingOutcome, RecordingPlan } from '../load/load-plan.ts'
import type { Sample } from '../metric.ts'
import type { Peer } from '../peers/peer.ts'
import { memory } from '../process-tree.ts'
import { type Comparison, median, type PeerResult, type RoundRecorder } from '../results.ts'
import { type Address, measureLoad, type RunningPeer, SETTLE_MS, WARM_UP_SECONDS } from '../rounds.ts'
import { tokenIssuer } from '../token-issuer.ts'
import { pairedRatio } from './paired-ratio.ts'
import { delayRound } from './delay-round.ts'
import { API_COUNTS, type PairedScenario, requestFor, type WarmClient } from './paired-scenarios.ts'

/** Load after each start, until the code of a gateway is compiled. */
const COMPILE_SECONDS = 3
/** Length of a visit that sends every address, as a share of what the rate of the last one promises. */
const FILL_SHARE = 1.25
const FILL_VISITS_MAX = 3

export function pairedPlan(scenario: PairedScenario, peer: string, address: Address, seconds: number): LoadPlan {
  const request = requestFor(scenario, peer)
  return {
    ...address,
    request,
    path: request.paths[0]!,
    connections: scenario.connections,
    seconds,
    uploadBytes: request.uploadBytes,
    downloadBytes: request.downloadBytes ?? 0,
    connectionPerRequest: false,
    ratePerSecond: 0,
    warmUpSeconds: 0,
  }
}

interface PairedRun {
  readonly rounds: number
  readonly seconds: number
  /** For files of the load generator. */
  readonly folder: string
  start(peer: Peer): Promise<RunningPeer>
  reportProgress(round: number, peer: string): void
  probe(): Promise<void>
}

/** A running peer with the metrics that were measured at its start. */
interface StartedPeer extends RunningPeer {
  readonly startMetrics: Sample
}

export async function pairedRounds(
  scenario: PairedScenario,
  peers: readonly Peer[],
  recorder: RoundRecorder,
  run: PairedRun,
): Promise<void> {
  const { roundsPerStart } = scenario
  const inOrder = scenario.peers.flatMap(name => peers.find(peer => peer.name === name) ?? [])
  for (let first = 1; first <= run.rounds; first += roundsPerStart) {
    const started: StartedPeer[] = []
    try {
      for (const peer of inOrder) {
        await recorder.attempt(peer.name, async () => {
          started.push(await startPeer(scenario, peer, started[0], run))
        })
      }
      const last = Math.min(run.rounds, first + roundsPerStart - 1)
      for (let round = first; round <= last; round++) {
        // Alternating order, so that no peer always follows the same other one.
        for (const peer of round % 2 === 1 ? started : started.toReversed()) {
          run.reportProgress(round, peer.name)
          await recorder.measure(peer.name, () => pairedRound(scenario, peer, run))
        }
        await run.probe()
      }
    } finally {
      await Promise.all(started.map(({ program }) => program.stop()))
    }
  }
}

async function startPeer(
  scenario: PairedScenario,
  peer: Peer,
  first: StartedPeer | undefined,
  run: PairedRun,
): Promise<StartedPeer> {
  const running = await run.start(peer)
  const deployedReadyMs = performance.now() - running.program.startedMs
  try {
    const startMetrics = scenario.capability === 'apis' ? await apiMetrics(running, first, deployedReadyMs) : {}
    await warmUp(scenario, running, run.folder)
    return { ...running, startMetrics }
  } catch (error) {
    await running.program.stop()
    throw error
  }
}

/** Load until the code is compiled, and until every address has been seen. */
async function warmUp(scenario: PairedScenario, { name, address }: RunningPeer, folder: string): Promise<void> {
  const load = (seconds: number) => drive(pairedPlan(scenario, name, address, seconds), folder)
  const addresses = scenario.addresses?.[name] ?? 0
  let { requests, seconds } = await load(COMPILE_SECONDS)
  // A single visit sends every address: another visit would begin with another one.
  for (let visit = 0; requests < addresses; visit++) {
    if (visit === FILL_VISITS_MAX) throw new Error(`has seen ${requests} of ${addresses} addresses in one visit`)
    const length = Math.ceil((FILL_SHARE * addresses * seconds) / requests)
    ;({ requests, seconds } = await load(length))
  }
}

/** With fewer APIs their memory is less than the difference between two starts. */
const MEASURED_APIS_MIN = 1000

/** Memory, start and reload times; memory per API relative to `first`, the peer with one API. */
async function apiMetrics(peer: RunningPeer, first: StartedPeer | undefined, deployedReadyMs: number): Promise<Sample> {
  await sleep(SETTLE_MS)
  const { pssMiB } = memory(peer.program.pid)
  const metrics = { pssMiB, deployedReadyMs, reloadMs: await reloadMs(peer.folder) }
  const moreApis = (API_COUNTS[peer.name] ?? 1) - 1
  const baseMiB = first?.startMetrics.pssMiB
  if (baseMiB === undefined || moreApis < MEASURED_APIS_MIN) return metrics
  return { ...metrics, kibPerApi: ((pssMiB - baseMiB) * 1024) / moreApis }
}

const RELOADED_PROJECT = 'Api00000'
/** An even number, so that the last reload restores the API. */
const RELOADS = 4
/** Both paths are served by the same backend. */
const ENDPOINT = /^( +url: http:\/\/[^/\n]+)(\/chain)?$/m

/** The definition of an API with its other endpoint; applied twice, the definition itself. */
export function withOtherEndpoint(definition: string): string {
  return definition.replace(ENDPOINT, (_, url: string, path?: string) => (path === undefined ? `${url}/chain` : url))
}

/** Median time from a reload command to its report, with one API changed. `folder` contains home and data. */
async function reloadMs(folder: string): Promise<number> {
  const file = `${folder}/home/apis/${RELOADED_PROJECT}/api.yaml`
  const times: number[] = []
  for (let reload = 0; reload < RELOADS; reload++) {
    writeFileSync(file, withOtherEndpoint(readFileSync(file, 'utf8')))
    const startMs = performance.now()
    const { apis, failures } = await sendCommand<ReloadReport>(`${folder}/data`, { command: 'reload' })
    times.push(performance.now() - startMs)
    if (apis.changed.length !== 1 || failures.length > 0)
      throw new Error(`a reload of one API changed ${apis.changed.length}: ${failures.join(', ')}`)
  }
  return median(times)
}

async function pairedRound(scenario: PairedScenario, peer: StartedPeer, run: PairedRun): Promise<Sample> {
  const { seconds, folder } = run
  await drive(pairedPlan(scenario, peer.name, peer.address, WARM_UP_SECONDS), folder)
  const plan = pairedPlan(scenario, peer.name, peer.address, seconds)
  const { warmClient, beside } = scenario
  if (beside !== undefined) return delayRound(peer, beside, plan, folder)
  if (warmClient === undefined) return { ...(await measureLoad(peer, () => drive(plan, folder))), ...peer.startMetrics }
  let warm: Sample = {}
  const sample = await measureLoad(peer, async () => {
    const warmPlan = warmClientPlan(warmClient, plan.port, plan.path, seconds)
    const [recorded, load] = await driveRecorded(warmPlan, () => drive(plan, folder))
    warm = warmClientSample(recorded)
    // The CPU time of the peer is that of both loads.
    return { ...load, requests: load.requests + warmClient.ratePerSecond * seconds }
  })
  return { ...sample, ...warm, ...peer.startMetrics }
}

export function warmClientPlan(client: WarmClient, port: number, path: string, seconds: number): RecordingPlan {
  return { ...client, port, path, seconds, fields: { Authorization: `Bearer ${tokenIssuer().tokens(1)[0]}` } }
}

/** A request without a response, or with a status other than 200, is an error and has no latency. */
export function warmClientSample({ due, records }: RecordingOutcome): Sample {
  const latencies = new LatencyHistogram()
  const successes = records.filter(({ status }) => status === 200)
  for (const { intendedMs, answeredMs } of successes) latencies.record(answeredMs - intendedMs)
  return {
    warmP50Ms: latencies.percentileMs(0.5),
    warmP99Ms: latencies.percentileMs(0.99),
    warmP999Ms: latencies.percentileMs(0.999),
    warmErrors: due - successes.length,
  }
}

/** The comparisons of a scenario between peers that have results. */
export function comparisonsOf(
  scenario: PairedScenario,
  peers: Readonly<Record<string, PeerResult>>,
): readonly Comparison[] {
  return scenario.comparisons.flatMap(planned => {
    const candidate = peers[planned.candidate]?.rounds
    const baseline = peers[planned.baseline]?.rounds
    if (candidate === undefined || baseline === undefined) return []
    const costs = (rounds: readonly Sample[]) =>
      rounds.map(round => round[planned.metric ?? 'cpuMicrosPerRequest'] ?? Number.NaN)
    const [cost, base] = [costs(candidate), costs(baseline)]
    const unit = planned.per === undefined ? undefined : peers[planned.per]?.rounds
    if (planned.per !== undefined && unit === undefined) return []
    const ratios =
      unit === undefined
        ? ratiosByStart(cost, base, scenario.roundsPerStart)
        : ratiosByStart(differences(cost, base), costs(unit), scenario.roundsPerStart)
    return [{ ...planned, ...pairedRatio(ratios) }]
  })
}

function differences(candidate: readonly number[], baseline: readonly number[]): number[] {
  return candidate.map((cost, round) => cost - (baseline[round] ?? Number.NaN))
}

/** Ratios of the costs of the same rounds, grouped by start. */
export function ratiosByStart(
  candidate: readonly number[],
  baseline: readonly number[],
  roundsPerStart: number,
): number[][] {
  const starts: number[][] = []
  for (let round = 0; round < Math.min(candidate.length, baseline.length); round++) {
    const start = Math.floor(round / roundsPerStart)
    starts[start] ??= []
    starts[start].push(candidate[round]! / baseline[round]!)
  }
  return starts
}
