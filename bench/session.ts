/**
 * Runs scenarios: starts the peers of each, lets them take turns round by round, and summarizes. The peers are
 * restarted for every scenario, so that memory is that scenario's own. One peer that fails is reported and left out;
 * the others go on.
 */
import { mkdirSync } from 'node:fs'
import type { Backend } from './backend.ts'
import type { Certificate } from './certificate.ts'
import { compared, contestPlan, contestRounds } from './contest/contest.ts'
import type { Contest } from './contest/contests.ts'
import { FAIL_OVER_SECONDS, failOverRound, Twins } from './fail-over.ts'
import { generatorName } from './load/drive.ts'
import type { Sample } from './metric.ts'
import type { Options } from './options.ts'
import type { Peer } from './peers/peer.ts'
import { type Program, startSpinner } from './program.ts'
import type { SpeedProbe } from './probe.ts'
import type { Progress } from './progress.ts'
import { median, type PeerResult, type ScenarioResult, type Surroundings, summarize } from './results.ts'
import {
  type Address,
  closedPlan,
  closedRound,
  handshakeProof,
  handshakeRound,
  idleRound,
  openRound,
  peakOf,
  plainPlan,
  type RunningPeer,
  tunnelRound,
} from './rounds.ts'
import {
  abilityFor,
  type FailOver,
  hasLargeBodies,
  type IdleConnections,
  type OpenLoad,
  type Scenario,
  SCENARIOS,
} from './scenarios.ts'
import { StartupSites } from './startup.ts'
import { verify, verifyRefusal, verifyTunnel } from './verify.ts'

/** Peers listen from here on above the base port. */
const PEER_PORTS = 10
/** The second is the gateway's health port. */
const PORTS_PER_PEER = 2
/** One would do if the machine were quiet; the rates of the open loop hang on it. */
const PEAK_ROUNDS = 3
const FRESH_ROUNDS_MAX = 3

type Measured = Exclude<Scenario, { kind: 'startup' }>
/** Those whose peers run from the first round to the last. */
type Lasting = Exclude<Measured, IdleConnections | FailOver | Contest>

export class Session {
  readonly #options: Options
  readonly #folder: string
  readonly #backend: Backend
  readonly #peers: readonly Peer[]
  readonly #probe: SpeedProbe
  readonly #progress: Progress
  readonly #surroundings: Surroundings
  readonly #certificate: Certificate | undefined
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
    certificate: Certificate | undefined,
  ) {
    this.#options = options
    this.#folder = folder
    this.#backend = backend
    this.#peers = peers
    this.#probe = probe
    this.#progress = progress
    this.#surroundings = surroundings
    this.#certificate = certificate
  }

  async run(name: string): Promise<ScenarioResult> {
    const scenario = SCENARIOS[name]!
    const turns = new Turns()
    const startedAt = new Date().toISOString()
    if (scenario.kind === 'startup') await this.#startup(name, turns)
    else if (scenario.kind === 'idle' || scenario.kind === 'fail-over') await this.#fresh(name, scenario, turns)
    else if (scenario.kind === 'contest') await this.#contest(name, scenario, turns)
    else await this.#load(name, scenario, turns)
    this.#progress.clear()
    const peers = turns.summaries()
    return {
      title: scenario.title,
      command: this.#command(name),
      startedAt,
      secondsPerRound: scenario.kind === 'fail-over' ? FAIL_OVER_SECONDS : this.#options.seconds,
      loadGenerator: loadGenerator(scenario),
      backend: this.#backend.name,
      surroundings: this.#surroundings,
      probeMs: turns.probeMs,
      peers,
      ...(scenario.kind === 'contest' ? { compared: compared(scenario, peers) } : {}),
      skipped: turns.skipped,
    }
  }

  #command(name: string): string {
    const { rounds, seconds, peers, ratePerSecond, beforeFolder } = this.#options
    const chosen = peers === undefined ? '' : ` --peer ${peers.join(',')}`
    const rate = ratePerSecond > 0 ? ` --rate ${ratePerSecond}` : ''
    const before = beforeFolder === undefined ? '' : ' --before DIR'
    return `npm run bench -- --scenario ${name} --rounds ${rounds} --seconds ${seconds}${chosen}${rate}${before}`
  }

  #peersFor(scenario: Scenario): Peer[] {
    const named = this.#options.peers !== undefined
    const ability = abilityFor(scenario)
    return this.#peers
      .filter(peer => ability === undefined || peer.abilities.includes(ability))
      .filter(peer => scenario.kind !== 'contest' || scenario.contestants.includes(peer.name))
      .filter(
        peer => named || (peer.onlyWhenNamed !== true && (peer.forBodiesOnly !== true || hasLargeBodies(scenario))),
      )
  }

  async #start(peer: Peer, scenario: Measured): Promise<RunningPeer> {
    const why = peer.missing()
    if (why !== undefined) throw new Error(why)
    const ability = abilityFor(scenario) ?? 'requests'
    const port = this.#options.basePort + PEER_PORTS + PORTS_PER_PEER * this.#peers.indexOf(peer)
    const folder = `${this.#folder}/${peer.name}-${performance.now().toFixed(0)}`
    mkdirSync(folder, { recursive: true })
    const certificate = this.#certificateFor(ability === 'tls' || ability === 'handshakes')
    const backendCertificate = this.#certificateFor(ability === 'tls-backend')
    const backends = this.#backendPorts(backendCertificate !== undefined)
    const shared = this.#folder
    const program = await peer.start({ port, ...backends, ability, certificate, backendCertificate, shared, folder })
    try {
      await proved(scenario, peer.name, { port, certificate })
    } catch (error) {
      await program.stop()
      throw error
    }
    return { name: peer.name, program, address: { port, certificate }, folder }
  }

  #backendPorts(secured: boolean): Pick<Backend, 'downloadPort' | 'uploadPort' | 'echoPort' | 'twinPorts'> {
    const { downloadPort, secureDownloadPort, uploadPort, echoPort, twinPorts } = this.#backend
    if (!secured) return { downloadPort, uploadPort, echoPort, twinPorts }
    if (secureDownloadPort === undefined) throw new Error('the TLS backend needs nginx: apt-get install nginx')
    return { downloadPort: secureDownloadPort, uploadPort, echoPort, twinPorts }
  }

  #certificateFor(isNeeded: boolean): Certificate | undefined {
    if (!isNeeded) return undefined
    if (this.#certificate === undefined) throw new Error('openssl is not installed: apt-get install openssl')
    return this.#certificate
  }

  async #load(name: string, scenario: Lasting, turns: Turns): Promise<void> {
    const { rounds } = this.#options
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
          await turns.measure(peer.name, () => this.#round(peer, scenario))
        }
        turns.probeMs.push(await this.#probe.measure())
      }
    } finally {
      await Promise.all([...spinners, ...running.map(peer => peer.program)].map(program => program.stop()))
    }
  }

  #round(peer: RunningPeer, scenario: Lasting): Promise<Sample> {
    const { seconds } = this.#options
    switch (scenario.kind) {
      case 'closed':
        return closedRound(peer, scenario, seconds, this.#folder)
      case 'open':
        return openRound(peer, scenario, this.#rateFor(peer, scenario), seconds)
      case 'handshakes':
        return handshakeRound(peer, scenario, seconds)
      case 'tunnels':
        return tunnelRound(peer, scenario, seconds)
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

  /** Every round with a peer of its own: what an earlier one did to memory or to its view of the backends is gone. */
  async #fresh(name: string, scenario: IdleConnections | FailOver, turns: Turns): Promise<void> {
    const rounds = Math.min(FRESH_ROUNDS_MAX, this.#options.rounds)
    const peers = this.#peersFor(scenario)
    this.#progress.begin(peers.length * rounds)
    for (let round = 1; round <= rounds; round++) {
      for (const peer of peers) {
        this.#progress.step(name, `round ${round} of ${rounds}, ${peer.name}`)
        await turns.measure(peer.name, () =>
          scenario.kind === 'idle' ? this.#idle(peer, scenario) : this.#failOver(peer, scenario),
        )
      }
      turns.probeMs.push(await this.#probe.measure())
    }
  }

  async #idle(peer: Peer, scenario: IdleConnections): Promise<Sample> {
    const running = await this.#start(peer, scenario)
    try {
      return await idleRound(running, scenario, this.#folder)
    } finally {
      await running.program.stop()
    }
  }

  async #failOver(peer: Peer, scenario: FailOver): Promise<Sample> {
    const twins = new Twins(this.#backend.twinPorts)
    try {
      await twins.start()
      const { address, program } = await this.#start(peer, scenario)
      try {
        return await failOverRound(address.port, scenario, twins)
      } finally {
        await program.stop()
      }
    } finally {
      await twins.stop()
    }
  }

  async #contest(name: string, scenario: Contest, turns: Turns): Promise<void> {
    const { rounds, seconds } = this.#options
    const peers = this.#peersFor(scenario)
    if (!this.#backend.name.startsWith('nginx')) throw new Error('contests need a backend that is nginx')
    this.#progress.begin(peers.length * rounds)
    await contestRounds(scenario, peers, turns, {
      rounds,
      seconds,
      folder: this.#folder,
      start: peer => this.#start(peer, scenario),
      step: (round, peer) => this.#progress.step(name, `round ${round} of ${rounds}, ${peer}`),
      probe: async () => void turns.probeMs.push(await this.#probe.measure()),
    })
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

/** Asks once for what the scenario is about to ask many times. */
function proved(scenario: Measured, name: string, address: Address): Promise<void> {
  const tunnels = abilityFor(scenario) === 'tunnels'
  if (tunnels || scenario.kind === 'tunnels') return verifyTunnel(address.port)
  if (scenario.kind === 'contest') return provedContest(scenario, name, address)
  if (scenario.kind === 'closed') return verify(closedPlan(scenario, address, 0))
  if (scenario.kind === 'handshakes') return verify(handshakeProof(scenario, address))
  return verify(plainPlan(scenario, address, 0))
}

/** Whoever is measured with tokens that it checks does refuse a forged one. */
async function provedContest(contest: Contest, name: string, address: Address): Promise<void> {
  const plan = contestPlan(contest, name, address, 0)
  await verify(plan)
  if (contest.checking?.includes(name)) await verifyRefusal(plan)
}

function loadGenerator(scenario: Scenario): string {
  if (scenario.kind === 'closed') return generatorName(closedPlan(scenario, { port: 0, certificate: undefined }, 1))
  if (scenario.kind === 'handshakes') return 'openssl s_time'
  if (scenario.kind === 'contest') return 'wrk'
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
