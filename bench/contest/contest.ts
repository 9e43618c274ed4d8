/**
 * How a contest goes: everybody is started, takes turns for some rounds, forward and backward, and is started anew.
 * What each round cost is set against what it cost the neighbour.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { drive } from '../load/drive.ts'
import type { LoadPlan } from '../load/load-plan.ts'
import type { Sample } from '../metric.ts'
import type { Peer } from '../peers/peer.ts'
import { memory } from '../process-tree.ts'
import type { Compared, PeerResult } from '../results.ts'
import { type Address, charged, type RunningPeer, SETTLE_MS, WARM_UP_SECONDS } from '../rounds.ts'
import { API_COUNTS, askOf, type Contest } from './contests.ts'
import { pairedRatio } from './paired-ratio.ts'
import { reloadMs } from './reload.ts'
import { besideWarm, warmPlan } from './warm-client.ts'

/** Of a gateway just started: until its code is compiled. */
const FIRST_SECONDS = 3

export function contestPlan(contest: Contest, contestant: string, address: Address, seconds: number): LoadPlan {
  const ask = askOf(contest, contestant)
  return {
    ...address,
    ask,
    path: ask.paths[0]!,
    connections: contest.connections,
    seconds,
    uploadBytes: ask.uploadBytes,
    downloadBytes: ask.downloadBytes ?? 0,
    connectionPerRequest: false,
    ratePerSecond: 0,
    warmUpSeconds: 0,
  }
}

interface ContestRun {
  readonly rounds: number
  readonly seconds: number
  /** For the load generator. */
  readonly folder: string
  start(peer: Peer): Promise<RunningPeer>
  step(round: number, peer: string): void
  probe(): Promise<void>
}

interface Turns {
  attempt(peer: string, action: () => Promise<void>): Promise<void>
  measure(peer: string, action: () => Promise<Sample>): Promise<void>
}

/** A contestant, and what its start has shown already. */
interface Entrant extends RunningPeer {
  readonly shown: Sample
}

export async function contestRounds(
  contest: Contest,
  peers: readonly Peer[],
  turns: Turns,
  run: ContestRun,
): Promise<void> {
  const { roundsPerStart } = contest
  for (let first = 1; first <= run.rounds; first += roundsPerStart) {
    const entrants: Entrant[] = []
    try {
      for (const peer of inOrder(contest, peers)) {
        await turns.attempt(peer.name, async () => void entrants.push(await entrant(contest, peer, entrants[0], run)))
      }
      const last = Math.min(run.rounds, first + roundsPerStart - 1)
      for (let round = first; round <= last; round++) {
        // First to last, then last to first: nobody is always the one behind another.
        for (const peer of round % 2 === 1 ? entrants : entrants.toReversed()) {
          run.step(round, peer.name)
          await turns.measure(peer.name, () => contestRound(contest, peer, run))
        }
        await run.probe()
      }
    } finally {
      await Promise.all(entrants.map(({ program }) => program.stop()))
    }
  }
}

function inOrder({ contestants }: Contest, peers: readonly Peer[]): readonly Peer[] {
  return contestants.flatMap(name => peers.find(peer => peer.name === name) ?? [])
}

async function entrant(contest: Contest, peer: Peer, first: Entrant | undefined, run: ContestRun): Promise<Entrant> {
  const running = await run.start(peer)
  const deployedReadyMs = performance.now() - running.program.startedMs
  try {
    const shown = contest.ability === 'apis' ? await apisShown(running, first, deployedReadyMs) : {}
    await drive(contestPlan(contest, peer.name, running.address, FIRST_SECONDS), run.folder)
    return { ...running, shown }
  } catch (error) {
    await running.program.stop()
    throw error
  }
}

/** Of fewer the memory of all is less than what two starts differ by. */
const WEIGHED_APIS = 1000

/** What APIs take, seen against the contestant that has one of them. */
async function apisShown(peer: RunningPeer, first: Entrant | undefined, deployedReadyMs: number): Promise<Sample> {
  await sleep(SETTLE_MS)
  const { pssMiB } = memory(peer.program.pid)
  const reloaded = { deployedReadyMs, reloadMs: await reloadMs(peer.folder) }
  const more = (API_COUNTS[peer.name] ?? 1) - 1
  const least = first?.shown.pssMiB
  if (least === undefined || more < WEIGHED_APIS) return { pssMiB, ...reloaded }
  return { pssMiB, ...reloaded, kibPerApi: ((pssMiB - least) * 1024) / more }
}

async function contestRound(contest: Contest, peer: Entrant, { seconds, folder }: ContestRun): Promise<Sample> {
  await drive(contestPlan(contest, peer.name, peer.address, WARM_UP_SECONDS), folder)
  const plan = contestPlan(contest, peer.name, peer.address, seconds)
  const { warmClient } = contest
  if (warmClient === undefined) return { ...(await charged(peer, () => drive(plan, folder))), ...peer.shown }
  let warm: Sample = {}
  const sample = await charged(peer, async () => {
    const steady = warmPlan(warmClient, plan.port, plan.path, seconds)
    const [flood, beside] = await besideWarm(steady, () => drive(plan, folder))
    warm = beside
    // The gateway is charged for both.
    return { ...flood, requests: flood.requests + warmClient.ratePerSecond * seconds }
  })
  return { ...sample, ...warm, ...peer.shown }
}

/** The answers to the questions of a contest, as far as those asked about took part. */
export function compared(contest: Contest, peers: Readonly<Record<string, PeerResult>>): readonly Compared[] {
  return contest.questions.flatMap(question => {
    const [of, to] = [peers[question.of]?.rounds, peers[question.to]?.rounds]
    if (of === undefined || to === undefined) return []
    return [{ ...question, ...pairedRatio(ratiosByStart(costsOf(of), costsOf(to), contest.roundsPerStart)) }]
  })
}

function costsOf(rounds: readonly Sample[]): readonly number[] {
  return rounds.map(({ cpuMicrosPerRequest = Number.NaN }) => cpuMicrosPerRequest)
}

export function ratiosByStart(of: readonly number[], to: readonly number[], roundsPerStart: number): number[][] {
  const starts: number[][] = []
  for (let round = 0; round < Math.min(of.length, to.length); round++) {
    const start = Math.floor(round / roundsPerStart)
    starts[start] ??= []
    starts[start].push(of[round]! / to[round]!)
  }
  return starts
}
