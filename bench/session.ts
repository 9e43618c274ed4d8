/**
 * Runs scenarios: starts the peers of each, lets them take turns round by round, and summarizes. The peers are
 * restarted for every scenario, so that memory is that scenario's own. One peer that fails is reported and left out;
 * the others go on.
 */
import { mkdirSync } from 'node:fs'
import type { Backend } from './backend.ts'
import { generatorName } from './load/drive.ts'
import type { Sample } from './metric.ts'
import type { Options } from './options.ts'
import type { Peer } from './peers/peer.ts'
import { type Program, startSpinner } from './program.ts'
import type { SpeedProbe } from './probe.ts'
import type { Progress } from './progress.ts'
import { median, type PeerResult, type ScenarioResult, type Surroundings, summarize } from './results.ts'
import { closedPlan, closedRound, idleRound, openRound, peakOf, plainPlan, type RunningPeer } from './rounds.ts'
import { hasLargeBodies, type IdleConnections, type OpenLoad, type Scenario, SCENARIOS } from './scenarios.ts'
import { StartupSites } from './startup.ts'
import { verify } from './verify.ts'

/** Peers listen from here on above the base port, two ports each. */
const PEER_PORTS = 10
/** One would do if the machine were quiet; the rates of the open loop hang on it. */
const PEAK_ROUNDS = 3

export class Session {
  readonly #options: Options
  readonly #folder: string
  readonly #backend: Backend
  readonly #peers: readonly Peer[]
  readonly #probe: SpeedProbe
  readonly #progress: Progress
  readonly #surroundings: Surroundings
  /** Requests per second by peer: what the open loop takes its shares of. */
  readonly #peaks = new Map<string, number>()

  constructor(
    options: Options,
    folder: string,
    backend: Backend,
    peers: readonly Peer[],
    probe: SpeedProbe,
    progress: Progress,
    surroundings: Surroundings,
  ) {
    this.#options = options
    this.#folder = folder
    this.#backend = backend
    this.#peers = peers
    this.#probe = probe
    this.#progress = progress
    this.#surroundings = surroundings
  }

  async run(name: string): Promise<ScenarioResult> {
    const scenario = SCENARIOS[name]!
    const turns = new Turns()
    const startedAt = new Date().toISOString()
    if (scenario.kind === 'startup') await this.#startup(name, turns)
    else if (scenario.kind === 'idle') await this.#idle(name, scenario, turns)
    else await this.#load(name, scenario, turns)
    this.#progress.clear()
    return {
      title: scenario.title,
      command: this.#command(name),
      startedAt,
      secondsPerRound: this.#options.seconds,
      loadGenerator: loadGenerator(scenario),
      backend: this.#backend.name,
      surroundings: this.#surroundings,
      probeMs: turns.probeMs,
      peers: turns.summaries(),
      skipped: turns.skipped,
    }
  }

  #command(name: string): string {
    const { rounds, seconds, peers, ratePerSecond } = this.#options
    const chosen = peers === undefined ? '' : ` --peer ${peers.join(',')}`
    const rate = ratePerSecond > 0 ? ` --rate ${ratePerSecond}` : ''
    return `npm run bench -- --scenario ${name} --rounds ${rounds} --seconds ${seconds}${chosen}${rate}`
  }

  #peersFor(scenario: Scenario): Peer[] {
    const named = this.#options.peers !== undefined
    return this.#peers.filter(peer => named || peer.forBodiesOnly !== true || hasLargeBodies(scenario))
  }

  async #start(peer: Peer, scenario: Exclude<Scenario, { kind: 'startup' }>): Promise<RunningPeer> {
    const why = peer.missing()
    if (why !== undefined) throw new Error(why)
    const port = this.#options.basePort + PEER_PORTS + 2 * this.#peers.indexOf(peer)
    const folder = `${this.#folder}/${peer.name}-${performance.now().toFixed(0)}`
    mkdirSync(folder, { recursive: true })
    const { downloadPort, uploadPort } = this.#backend
    const program = await peer.start({ port, downloadPort, uploadPort, folder })
    try {
      await verify(scenario.kind === 'closed' ? closedPlan(scenario, port, 0) : plainPlan(scenario, port, 0))
    } catch (error) {
      await program.stop()
      throw error
    }
    return { name: peer.name, program, port }
  }

  async #load(name: string, scenario: Exclude<Scenario, { kind: 'startup' | 'idle' }>, turns: Turns): Promise<void> {
    const { rounds, seconds } = this.#options
    const peers = this.#peersFor(scenario)
    this.#progress.begin(peers.length * (rounds + (scenario.kind === 'open' ? PEAK_ROUNDS : 0)))
    const running: RunningPeer[] = []
    for (const peer of peers) {
      await turns.attempt(peer.name, async () => void running.push(await this.#start(peer, scenario)))
    }
    const spinners: Program[] = scenario.kind === 'open' ? [startSpinner()] : []
    try {
      if (scenario.kind === 'open') await this.#findPeaks(name, running, scenario, turns)
      for (let round = 1; round <= rounds; round++) {
        for (const peer of running) {
          this.#progress.step(name, `round ${round} of ${rounds}, ${peer.name}`)
          await turns.measure(peer.name, () =>
            scenario.kind === 'open'
              ? openRound(peer, scenario, this.#rateFor(peer, scenario), seconds)
              : closedRound(peer, scenario, seconds, this.#folder),
          )
        }
        turns.probeMs.push(await this.#probe.measure())
      }
    } finally {
      await Promise.all([...spinners, ...running.map(peer => peer.program)].map(program => program.stop()))
    }
  }

  async #findPeaks(name: string, running: readonly RunningPeer[], scenario: OpenLoad, turns: Turns): Promise<void> {
    if (this.#options.ratePerSecond > 0) return
    const wanted = running.filter(peer => !this.#peaks.has(peer.name))
    const found = new Map<string, number[]>(wanted.map(peer => [peer.name, []]))
    for (let round = 1; round <= PEAK_ROUNDS; round++) {
      for (const peer of wanted) {
        this.#progress.step(name, `looking for the peak, round ${round} of ${PEAK_ROUNDS}, ${peer.name}`)
        await turns.attempt(peer.name, async () => {
          found.get(peer.name)!.push(await peakOf(peer, scenario, this.#options.seconds))
        })
      }
    }
    for (const [peer, peaks] of found) this.#peaks.set(peer, median(peaks))
  }

  #rateFor(peer: RunningPeer, scenario: OpenLoad): number {
    if (this.#options.ratePerSecond > 0) return this.#options.ratePerSecond
    return Math.round((this.#peaks.get(peer.name) ?? Number.NaN) * scenario.shareOfPeak)
  }

  async #idle(name: string, scenario: IdleConnections, turns: Turns): Promise<void> {
    const rounds = Math.min(3, this.#options.rounds)
    const peers = this.#peersFor(scenario)
    this.#progress.begin(peers.length * rounds)
    for (let round = 1; round <= rounds; round++) {
      for (const peer of peers) {
        this.#progress.step(name, `round ${round} of ${rounds}, ${peer.name}`)
        await turns.measure(peer.name, async () => {
          const running = await this.#start(peer, scenario)
          try {
            return await idleRound(running, scenario, this.#folder)
          } finally {
            await running.program.stop()
          }
        })
      }
      turns.probeMs.push(await this.#probe.measure())
    }
  }

  async #startup(name: string, turns: Turns): Promise<void> {
    const peer = this.#peers.find(candidate => candidate.name === 'sluice')
    if (peer === undefined) return
    const { rounds, basePort } = this.#options
    const sites = new StartupSites(`${this.#folder}/startup`, basePort + PEER_PORTS, this.#backend.downloadPort)
    this.#progress.begin(rounds + 1)
    this.#progress.step(name, 'first start')
    await turns.attempt(peer.name, () => sites.prepare())
    for (let round = 1; round <= rounds; round++) {
      this.#progress.step(name, `round ${round} of ${rounds}`)
      await turns.measure(peer.name, () => sites.round())
      turns.probeMs.push(await this.#probe.measure())
    }
  }
}

function loadGenerator(scenario: Scenario): string {
  if (scenario.kind === 'closed') return generatorName(closedPlan(scenario, 0, 1))
  return scenario.kind === 'startup' ? 'none' : 'own generator'
}

/** What the rounds of a scenario brought, and who dropped out. */
class Turns {
  readonly probeMs: number[] = []
  readonly skipped: Record<string, string> = {}
  readonly #samples = new Map<string, Sample[]>()

  async attempt(peer: string, action: () => Promise<void>): Promise<void> {
    if (this.skipped[peer] !== undefined) return
    try {
      await action()
    } catch (error) {
      this.skipped[peer] = error instanceof Error ? error.message : String(error)
    }
  }

  measure(peer: string, action: () => Promise<Sample>): Promise<void> {
    return this.attempt(peer, async () => {
      const sample = await action()
      const samples = this.#samples.get(peer) ?? []
      samples.push(sample)
      this.#samples.set(peer, samples)
    })
  }

  /** A peer that failed in a later round has no result: its earlier rounds were those of a program about to fail. */
  summaries(): Record<string, PeerResult> {
    const whole = [...this.#samples].filter(([peer]) => this.skipped[peer] === undefined)
    return Object.fromEntries(whole.map(([peer, samples]) => [peer, summarize(samples)]))
  }
}
