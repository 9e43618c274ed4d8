/**
 * Runs scenarios: starts the peers of a scenario, lets them take turns round by round, and summarizes. Peers are
 * restarted for every scenario, because memory is measured per scenario. A peer that fails is reported and left out.
 */
import { mkdirSync } from 'node:fs'
import type { Backends } from './backends/backends.ts'
import type { Certificate } from './certificate.ts'
import { FAIL_OVER_SECONDS, failOverRound, Replicas } from './fail-over.ts'
import { DELIVERY_ROWS, deliveryRounds } from './deliveries.ts'
import { HEALTHCARE_ROWS, healthcareRounds } from './healthcare.ts'
import { REPLAY_ROWS, replayComparisons, replayRounds } from './hot-path.ts'
import { generatorName } from './load/drive.ts'
import type { Sample } from './metric.ts'
import type { Options } from './options.ts'
import { comparisonsOf, pairedPlan, pairedRounds } from './paired/paired-rounds.ts'
import type { PairedScenario } from './paired/paired-scenarios.ts'
import type { Peer } from './peers/peer.ts'
import { ROOT } from './peers/sluice.ts'
import { type Program, startSpinner } from './program.ts'
import type { SpeedProbe } from './probe.ts'
import { Progress } from './progress.ts'
import { type Environment, median, RoundRecorder, type ScenarioResult } from './results.ts'
import {
  type Address,
  closedPlan,
  closedRound,
  handshakeCheckPlan,
  handshakeRound,
  idleRound,
  openRound,
  peakRate,
  type RunningPeer,
  smallGetPlan,
  tunnelRound,
} from './rounds.ts'
import {
  capabilityFor,
  type ClosedLoad,
  type FailOverLoad,
  hasLargeBodies,
  type IdleConnections,
  type OpenLoad,
  type Scenario,
  SCENARIOS,
} from './scenarios.ts'
import { STARTUP_FORMS, StartupInstallations } from './startup.ts'
import { exhaustLimit, verify, verifyTokenCheck, verifyTransformation, verifyWebSocket } from './verify.ts'

/** Offset of the first peer's port from the base port. */
const PEER_PORTS = 10
/** The second is the gateway's health port. */
const PORTS_PER_PEER = 2
/** More than one, because the rates of the open loop depend on the peak. */
const PEAK_ROUNDS = 3
const RESTARTED_ROUNDS_MAX = 3
/** Every backend serves this path; those of other paired scenarios are of nginx. */
const SMALL_PATH = '/bench/1k'
/** Exchanges of a replay in place of a second of load: a number, so that every visit does the same. */
const REPLAYED_PER_SECOND = 300_000
const QUICK_REPLAYED_PER_SECOND = 30_000

const HEALTHCARE_SERVICES = 100_000
const QUICK_SERVICES = 2000
const QUICK_ADDRESSES_MAX = 20_000
const QUICK_CONNECTIONS_MAX = 1000

type PeerScenario = Exclude<Scenario, { kind: 'startup' | 'replay' | 'healthcare' | 'deliveries' }>
/** Scenarios whose peers run from the first round to the last. */
type LoadScenario = Exclude<PeerScenario, IdleConnections | FailOverLoad | PairedScenario>

interface SessionOptions {
  readonly options: Options
  readonly folder: string
  readonly backends: Backends
  readonly peers: readonly Peer[]
  readonly probe: SpeedProbe
  readonly environment: Environment
  readonly certificate: Certificate | undefined
}

export class Session {
  readonly #options: Options
  readonly #folder: string
  readonly #backends: Backends
  readonly #peers: readonly Peer[]
  readonly #probe: SpeedProbe
  readonly #environment: Environment
  readonly #certificate: Certificate | undefined
  readonly #progress = new Progress()
  /** Peak requests per second by peer; the rates of the open loop are shares of it. */
  readonly #peaks = new Map<string, number>()

  constructor({ options, folder, backends, peers, probe, environment, certificate }: SessionOptions) {
    this.#options = options
    this.#folder = folder
    this.#backends = backends
    this.#peers = peers
    this.#probe = probe
    this.#environment = environment
    this.#certificate = certificate
  }

  async run(name: string): Promise<ScenarioResult> {
    const scenario = this.#options.isQuick ? withLittleData(SCENARIOS[name]!) : SCENARIOS[name]!
    const recorder = new RoundRecorder()
    const startedAt = new Date().toISOString()
    let notes: readonly string[] = []
    if (scenario.kind === 'startup') await this.#measureStartup(name, recorder)
    else if (scenario.kind === 'replay') await this.#measureReplay(name, recorder)
    else if (scenario.kind === 'healthcare') notes = await this.#measureHealthcare(name, recorder)
    else if (scenario.kind === 'deliveries') notes = await this.#measureDeliveries(name, recorder)
    else if (scenario.kind === 'idle' || scenario.kind === 'fail-over')
      await this.#measureRestarted(name, scenario, recorder)
    else if (scenario.kind === 'paired') await this.#measurePaired(name, scenario, recorder)
    else await this.#measureLoad(name, scenario, recorder)
    this.#progress.clear()
    const peers = recorder.summaries()
    return {
      title: scenario.title,
      command: this.#command(name),
      startedAt,
      secondsPerRound: scenario.kind === 'fail-over' ? FAIL_OVER_SECONDS : this.#options.seconds,
      loadGenerator: loadGeneratorFor(scenario),
      backend: this.#backends.name,
      environment: this.#environment,
      probeMs: recorder.probeMs,
      peers,
      ...(scenario.kind === 'paired' ? { comparisons: comparisonsOf(scenario, peers) } : {}),
      ...(scenario.kind === 'replay' ? { comparisons: replayComparisons(peers) } : {}),
      ...(notes.length === 0 ? {} : { notes }),
      skipped: recorder.skipped,
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
    const areNamed = this.#options.peers !== undefined
    const capability = capabilityFor(scenario)
    const isByDefault = (peer: Peer): boolean =>
      (peer.onlyWhenNamed !== true || ['hot-path', 'limits', 'mediation-headers'].includes(capability ?? '')) &&
      (peer.largeBodiesOnly !== true || hasLargeBodies(scenario))
    return this.#peers
      .filter(peer => capability === undefined || peer.capabilities.includes(capability))
      .filter(peer => scenario.kind !== 'paired' || scenario.peers.includes(peer.name))
      .filter(peer => areNamed || isByDefault(peer))
  }

  async #start(peer: Peer, scenario: PeerScenario): Promise<RunningPeer> {
    const capability = capabilityFor(scenario) ?? 'requests'
    const reason = peer.missing(capability)
    if (reason !== undefined) throw new Error(reason)
    const port = this.#options.basePort + PEER_PORTS + PORTS_PER_PEER * this.#peers.indexOf(peer)
    const folder = `${this.#folder}/${peer.name}-${performance.now().toFixed(0)}`
    mkdirSync(folder, { recursive: true })
    const certificate = this.#certificateFor(capability === 'tls' || capability === 'handshakes')
    const backendCertificate = this.#certificateFor(capability === 'tls-backend')
    const program = await peer.start({
      port,
      ...this.#backendPorts(backendCertificate !== undefined),
      capability,
      certificate,
      backendCertificate,
      sharedFolder: this.#folder,
      folder,
    })
    try {
      await verifyPeer(scenario, peer.name, { port, certificate })
    } catch (error) {
      await program.stop()
      throw error
    }
    return { name: peer.name, program, address: { port, certificate }, folder }
  }

  #backendPorts(withTls: boolean): Pick<Backends, 'downloadPort' | 'uploadPort' | 'echoPort' | 'replicaPorts'> {
    const { downloadPort, tlsDownloadPort, uploadPort, echoPort, replicaPorts } = this.#backends
    if (!withTls) return { downloadPort, uploadPort, echoPort, replicaPorts }
    if (tlsDownloadPort === undefined) throw new Error('the TLS backend needs nginx: apt-get install nginx')
    return { downloadPort: tlsDownloadPort, uploadPort, echoPort, replicaPorts }
  }

  #certificateFor(isNeeded: boolean): Certificate | undefined {
    if (!isNeeded) return undefined
    if (this.#certificate === undefined) throw new Error('openssl is not installed: apt-get install openssl')
    return this.#certificate
  }

  async #measureLoad(name: string, scenario: LoadScenario, recorder: RoundRecorder): Promise<void> {
    const { rounds } = this.#options
    const peers = this.#peersFor(scenario)
    this.#progress.begin(peers.length * (rounds + (scenario.kind === 'open' ? PEAK_ROUNDS : 0)))
    const running: RunningPeer[] = []
    for (const peer of peers) {
      await recorder.attempt(peer.name, async () => void running.push(await this.#start(peer, scenario)))
    }
    const spinners: Program[] = scenario.kind === 'open' ? [startSpinner()] : []
    try {
      if (scenario.kind === 'open') await this.#findPeaks(name, running, scenario, recorder)
      for (let round = 1; round <= rounds; round++) {
        for (const peer of running) {
          this.#progress.step(name, `round ${round} of ${rounds}, ${peer.name}`)
          await recorder.measure(peer.name, () => this.#measureRound(peer, scenario))
        }
        recorder.probeMs.push(await this.#probe.measure())
      }
    } finally {
      await Promise.all([...spinners, ...running.map(peer => peer.program)].map(program => program.stop()))
    }
  }

  #measureRound(peer: RunningPeer, scenario: LoadScenario): Promise<Sample> {
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

  async #findPeaks(
    name: string,
    running: readonly RunningPeer[],
    scenario: OpenLoad,
    recorder: RoundRecorder,
  ): Promise<void> {
    if (this.#options.ratePerSecond > 0) return
    const unknown = running.filter(peer => !this.#peaks.has(peer.name))
    const found = new Map<string, number[]>(unknown.map(peer => [peer.name, []]))
    for (let round = 1; round <= PEAK_ROUNDS; round++) {
      for (const peer of unknown) {
        this.#progress.step(name, `finding the peak, round ${round} of ${PEAK_ROUNDS}, ${peer.name}`)
        await recorder.attempt(peer.name, async () => {
          found.get(peer.name)!.push(await peakRate(peer, scenario, this.#options.seconds))
        })
      }
    }
    for (const [peer, peaks] of found) this.#peaks.set(peer, median(peaks))
  }

  #rateFor(peer: RunningPeer, scenario: OpenLoad): number {
    if (this.#options.ratePerSecond > 0) return this.#options.ratePerSecond
    return Math.round((this.#peaks.get(peer.name) ?? Number.NaN) * scenario.shareOfPeak)
  }

  /** Restarts the peer for every round, because a round changes its memory or its view of the backends. */
  async #measureRestarted(
    name: string,
    scenario: IdleConnections | FailOverLoad,
    recorder: RoundRecorder,
  ): Promise<void> {
    const rounds = Math.min(RESTARTED_ROUNDS_MAX, this.#options.rounds)
    const peers = this.#peersFor(scenario)
    this.#progress.begin(peers.length * rounds)
    for (let round = 1; round <= rounds; round++) {
      for (const peer of peers) {
        this.#progress.step(name, `round ${round} of ${rounds}, ${peer.name}`)
        await recorder.measure(peer.name, () =>
          scenario.kind === 'idle' ? this.#measureIdle(peer, scenario) : this.#measureFailOver(peer, scenario),
        )
      }
      recorder.probeMs.push(await this.#probe.measure())
    }
  }

  async #measureIdle(peer: Peer, scenario: IdleConnections): Promise<Sample> {
    const running = await this.#start(peer, scenario)
    try {
      return await idleRound(running, scenario, this.#folder)
    } finally {
      await running.program.stop()
    }
  }

  async #measureFailOver(peer: Peer, scenario: FailOverLoad): Promise<Sample> {
    const replicas = new Replicas(this.#backends.replicaPorts)
    try {
      await replicas.start()
      const { address, program } = await this.#start(peer, scenario)
      try {
        return await failOverRound(address.port, scenario, replicas)
      } finally {
        await program.stop()
      }
    } finally {
      await replicas.stop()
    }
  }

  async #measurePaired(name: string, scenario: PairedScenario, recorder: RoundRecorder): Promise<void> {
    const { rounds, seconds } = this.#options
    const peers = this.#peersFor(scenario)
    const { paths, body } = scenario.request
    const needsNginx = paths[0] !== SMALL_PATH && body === undefined
    if (needsNginx && !this.#backends.name.startsWith('nginx'))
      throw new Error('paired scenarios need nginx as the backend')
    this.#progress.begin(peers.length * rounds)
    await pairedRounds(scenario, peers, recorder, {
      rounds,
      seconds,
      folder: this.#folder,
      start: peer => this.#start(peer, scenario),
      reportProgress: (round, peer) => this.#progress.step(name, `round ${round} of ${rounds}, ${peer}`),
      probe: async () => void recorder.probeMs.push(await this.#probe.measure()),
    })
  }

  async #measureReplay(name: string, recorder: RoundRecorder): Promise<void> {
    if (!this.#peers.some(peer => peer.name === 'sluice')) return
    const { rounds, seconds, beforeFolder, isQuick } = this.#options
    const visits = Object.keys(REPLAY_ROWS).length * (beforeFolder === undefined ? 1 : 2)
    this.#progress.begin(visits * rounds)
    await replayRounds(recorder, {
      rounds,
      exchanges: seconds * (isQuick ? QUICK_REPLAYED_PER_SECOND : REPLAYED_PER_SECOND),
      root: ROOT,
      beforeRoot: beforeFolder,
      reportProgress: (round, row) => this.#progress.step(name, `round ${round} of ${rounds}, ${row}`),
      probe: async () => void recorder.probeMs.push(await this.#probe.measure()),
    })
  }

  async #measureHealthcare(name: string, recorder: RoundRecorder): Promise<readonly string[]> {
    const { rounds, seconds, basePort, isQuick } = this.#options
    const folder = `${this.#folder}/healthcare`
    mkdirSync(folder)
    this.#progress.begin((Object.keys(HEALTHCARE_ROWS).length + 1) * rounds)
    const nginx = this.#peers.find(peer => peer.name === 'nginx' && peer.missing() === undefined)
    return healthcareRounds(recorder, {
      rounds,
      seconds,
      folder,
      services: isQuick ? QUICK_SERVICES : HEALTHCARE_SERVICES,
      // Behind the ports of peers, which nginx has one of.
      port: basePort + PEER_PORTS + PORTS_PER_PEER * this.#peers.length,
      startNginx: async () => (nginx === undefined ? undefined : this.#start(nginx, SCENARIOS.bare as ClosedLoad)),
      reportProgress: (round, row) => this.#progress.step(name, `round ${round} of ${rounds}, ${row}`),
      probe: async () => void recorder.probeMs.push(await this.#probe.measure()),
    })
  }

  async #measureDeliveries(name: string, recorder: RoundRecorder): Promise<readonly string[]> {
    const { rounds, seconds, basePort } = this.#options
    const folder = `${this.#folder}/deliveries`
    mkdirSync(folder)
    this.#progress.begin(Object.keys(DELIVERY_ROWS).length * rounds)
    return deliveryRounds(recorder, {
      ...{ rounds, seconds, folder, port: basePort + PEER_PORTS, backendPort: this.#backends.downloadPort },
      reportProgress: (round, row) => this.#progress.step(name, `round ${round} of ${rounds}, ${row}`),
      probe: async () => void recorder.probeMs.push(await this.#probe.measure()),
    })
  }

  async #measureStartup(name: string, recorder: RoundRecorder): Promise<void> {
    const peer = this.#peers.find(candidate => candidate.name === 'sluice')
    if (peer === undefined) return
    const { rounds, basePort } = this.#options
    const forms = Object.entries(STARTUP_FORMS)
    this.#progress.begin(forms.length * (rounds + 1))
    const installed = new Map<string, StartupInstallations>()
    for (const [form, launcher] of forms) {
      this.#progress.step(name, `first start of ${form}`)
      await recorder.attempt(form, async () => {
        const folder = `${this.#folder}/startup/${form}`
        const [port, backendPort] = [basePort + PEER_PORTS, this.#backends.downloadPort]
        const installations = new StartupInstallations(folder, port, backendPort, launcher())
        await installations.prepare()
        installed.set(form, installations)
      })
    }
    for (let round = 1; round <= rounds; round++) {
      for (const [form, installations] of installed) {
        this.#progress.step(name, `round ${round} of ${rounds}, ${form}`)
        await recorder.measure(form, () => installations.round())
      }
      recorder.probeMs.push(await this.#probe.measure())
    }
  }
}

/** The same scenario with fewer idle connections, or fewer addresses, all of which send a request before a round. */
function withLittleData(scenario: Scenario): Scenario {
  if (scenario.kind === 'idle')
    return { ...scenario, connections: Math.min(scenario.connections, QUICK_CONNECTIONS_MAX) }
  if (scenario.kind !== 'paired' || scenario.addresses === undefined) return scenario
  const few = Object.entries(scenario.addresses).map(([peer, count]) => [peer, Math.min(count, QUICK_ADDRESSES_MAX)])
  return { ...scenario, addresses: Object.fromEntries(few) }
}

/** Sends one request of the kind that the scenario measures; throws where the response is wrong. */
async function verifyPeer(scenario: PeerScenario, name: string, address: Address): Promise<void> {
  if (capabilityFor(scenario) === 'tunnels') return verifyWebSocket(address.port)
  switch (scenario.kind) {
    case 'paired': {
      const plan = pairedPlan(scenario, name, address, 0)
      if (scenario.exhaustsLimit === true) await exhaustLimit(plan)
      await verify(plan)
      if (scenario.tokenCheckingPeers?.includes(name)) await verifyTokenCheck(plan)
      const { peers, path, expected } = scenario.transformation ?? { peers: [], path: '', expected: null }
      if (peers.includes(name)) await verifyTransformation(plan, path, expected)
      return
    }
    case 'closed':
      return verify(closedPlan(scenario, address, 0))
    case 'handshakes':
      return verify(handshakeCheckPlan(scenario, address))
    case 'tunnels':
      return verifyWebSocket(address.port)
    default:
      return verify(smallGetPlan(scenario, address, 0))
  }
}

function loadGeneratorFor(scenario: Scenario): string {
  if (scenario.kind === 'closed') return generatorName(closedPlan(scenario, { port: 0, certificate: undefined }, 1))
  if (scenario.kind === 'handshakes') return 'openssl s_time'
  if (scenario.kind === 'paired' || scenario.kind === 'healthcare') return 'wrk'
  return scenario.kind === 'startup' || scenario.kind === 'replay' ? 'none' : 'own generator'
}
