/**
 * The parts of `npm run bench:all`, as data: every scenario, and every program that measures without scenarios. Each
 * part is a process of its own with a record of its own.
 */
import { fileURLToPath } from 'node:url'
import { browserPath } from '../test/harness/browser.ts'
import { WITHOUT_REDIS } from '../test/harness/redis-server.ts'
import { HEALTHCARE_ROWS } from './healthcare.ts'
import { REPLAY_ROWS } from './hot-path.ts'
import { canConnect, findExecutable } from './program.ts'
import { SCENARIOS, type Scenario } from './scenarios.ts'

export interface Part {
  readonly name: string
  readonly kind: 'scenario' | 'program'
  readonly title: string
  /** Arguments of node. */
  readonly words: readonly string[]
  /** The command line that repeats the part. */
  readonly command: string
  /** Without these the part cannot run at all. */
  readonly needs: readonly Tool[]
  /** Estimate; what the run has taken so far corrects it. */
  readonly seconds: number
  /** The program prints lines `what: figure` and writes no rows. */
  readonly printsLines: boolean
}

type Tool = 'nginx' | 'wrk' | 'openssl' | 'chromium' | 'redis-server' | 'rabbitmq-server'

const BROKER_PORT = 5672

/** Why a tool cannot be used; undefined where it can. */
export async function lacking(tool: Tool): Promise<string | undefined> {
  if (tool === 'chromium') return browserPath() === '' ? installation(tool) : undefined
  if (tool === 'redis-server') return WITHOUT_REDIS === '' ? undefined : installation(tool)
  if (tool !== 'rabbitmq-server') return findExecutable(tool) === undefined ? installation(tool) : undefined
  if (findExecutable('rabbitmqctl') === undefined) return installation(tool)
  return (await canConnect(BROKER_PORT)) ? undefined : `RabbitMQ does not accept connections on port ${BROKER_PORT}`
}

function installation(tool: string): string {
  return `${tool} is not installed: apt-get install ${tool}`
}

/** Rounds and seconds of scenarios by the beginning of their names; the first that fits. */
const ROUNDS: readonly (readonly [prefix: string, rounds: number, seconds: number])[] = [
  ['chain-', 24, 2],
  ['apis-', 24, 2],
  ['secured-', 24, 2],
  ['hot-path-', 16, 2],
  ['limits-', 24, 1],
  ['refused', 24, 1],
  ['mediation-', 24, 2],
  ['healthcare', 3, 2],
  ['deliveries', 3, 3],
  ['', 5, 3],
]
const QUICK_ROUNDS = 1
const QUICK_SECONDS = 1
const RUN = 'bench/run.ts'
const ROOT = fileURLToPath(new URL('../', import.meta.url))

/** A program with its arguments, those of a quick run, and estimates of both in seconds. */
interface Program {
  readonly title: string
  readonly script: string
  readonly words?: readonly string[]
  readonly quickWords?: readonly string[]
  readonly seconds: number
  readonly quickSeconds?: number
  readonly needs?: readonly Tool[]
  readonly options?: readonly string[]
  readonly printsLines?: true
}

const PROGRAMS: Readonly<Record<string, Program>> = {
  machine: { title: 'Protocol state machines', script: 'micro/machine.ts', seconds: 4 },
  codec: { title: 'HTTP codec', script: 'micro/codec.ts', seconds: 7 },
  'filter-chain': {
    title: 'Parts of the filter chain',
    script: 'micro/filter-chain.ts',
    quickWords: ['1', '50000'],
    seconds: 400,
    quickSeconds: 15,
  },
  routing: { title: 'Routing by the number of APIs and resources', script: 'micro/routing.ts', seconds: 18 },
  'reload-delay': {
    title: 'How long a reload blocks the primary',
    script: 'micro/reload-delay.ts',
    quickWords: ['200'],
    seconds: 36,
    quickSeconds: 15,
  },
  sequences: { title: 'Fault sequences', script: 'micro/sequences.ts', seconds: 6 },
  'access-log': { title: 'Lines of the access log', script: 'micro/access-log.ts', seconds: 20 },
  'token-validation': {
    title: 'Known, refused and new tokens',
    script: 'micro/token-validation.ts',
    seconds: 16,
  },
  'token-verification': {
    title: 'Methods to verify a signature',
    script: 'micro/token-verification.ts',
    seconds: 22,
  },
  'token-cache': {
    title: 'Designs of the token cache',
    script: 'micro/token-cache.ts',
    quickWords: ['steps', 'decision'],
    seconds: 150,
    quickSeconds: 40,
  },
  throttle: {
    title: 'Counters of limits, and a million keys',
    script: 'micro/throttle.ts',
    options: ['--expose-gc'],
    seconds: 16,
  },
  'shared-counters': {
    title: 'Limits that gateways share, on a Redis of its own',
    script: 'micro/shared-counters.ts',
    needs: ['redis-server'],
    seconds: 20,
  },
  delivery: { title: 'The outbox, without the gateway', script: 'micro/delivery.ts', seconds: 15 },
  'healthcare-storage': {
    title: 'Storage and search of healthcare services, without the gateway',
    script: 'micro/healthcare-storage.ts',
    quickWords: ['2000'],
    seconds: 100,
    quickSeconds: 50,
  },
  'memory-at-rest': {
    title: 'Resident memory without traffic',
    script: 'micro/memory-at-rest.ts',
    quickWords: ['1'],
    seconds: 130,
    quickSeconds: 40,
  },
  'healthcare-soak': {
    title: 'Hostile requests to the healthcare API, then a mix, with the memory',
    script: 'healthcare-soak.ts',
    words: ['8'],
    quickWords: ['0.2', '2000'],
    seconds: 620,
    quickSeconds: 30,
  },
  'hostile-bodies': {
    title: 'Other clients beside hostile bodies that flows read',
    script: 'hostile-bodies.ts',
    quickWords: ['1', '8'],
    seconds: 110,
    quickSeconds: 30,
  },
  'throttle-overshoot': {
    title: 'Requests beyond a limit that a traffic manager decides',
    script: 'throttle-overshoot.ts',
    quickWords: ['1', '4000', '10'],
    needs: ['rabbitmq-server'],
    seconds: 200,
    quickSeconds: 15,
  },
  dashboard: {
    title: 'One viewer of the dashboard',
    script: 'dashboard.ts',
    words: ['10000', '1000', '4'],
    quickWords: ['200', '100', '1'],
    needs: ['chromium'],
    seconds: 120,
    quickSeconds: 35,
    printsLines: true,
  },
}

export const PROGRAM_NAMES: readonly string[] = Object.keys(PROGRAMS)

/** Every part in the order in which it runs. `basePort`: first port of scenarios. */
export function partsOf(isQuick: boolean, basePort?: string): readonly Part[] {
  // The open loop needs the peaks of a closed one, which one process measures.
  const names = Object.keys(SCENARIOS).filter(name => SCENARIOS[name]!.kind !== 'open')
  const ports = basePort === undefined ? [] : ['--base-port', basePort]
  return [
    ...Object.entries(PROGRAMS).map(([name, program]) => programPart(name, program, isQuick)),
    ...names.map(name => scenarioPart(name, [], isQuick, ports)),
    scenarioPart('open-loop', ['--open-loop'], isQuick, ports),
  ]
}

function programPart(name: string, program: Program, isQuick: boolean): Part {
  const { title, script, options = [], needs = [], seconds, quickSeconds = seconds } = program
  const words = (isQuick ? program.quickWords : undefined) ?? program.words ?? []
  const own = [...options, `bench/${script}`, ...words]
  return {
    ...{ name, kind: 'program', title, needs, printsLines: program.printsLines === true },
    words: own.map(word => (word.startsWith('bench/') ? `${ROOT}${word}` : word)),
    command: `npx node ${own.join(' ')}`,
    seconds: isQuick ? quickSeconds : seconds,
  }
}

function scenarioPart(name: string, more: readonly string[], isQuick: boolean, ports: readonly string[]): Part {
  const [, fullRounds, fullSeconds] = ROUNDS.find(([prefix]) => name.startsWith(prefix))!
  const [rounds, seconds] = isQuick ? [QUICK_ROUNDS, QUICK_SECONDS] : [fullRounds, fullSeconds]
  const scenario = SCENARIOS[name] ?? SCENARIOS['open-50']!
  const selection = more.length === 0 ? name : 'open-50,open-80'
  const chosen = ['--scenario', selection, '--rounds', String(rounds), '--seconds', String(seconds)]
  const quick = isQuick ? ['--quick'] : []
  return {
    ...{ name, kind: 'scenario', title: scenario.title, printsLines: false },
    needs: neededBy(scenario),
    words: [`${ROOT}${RUN}`, ...chosen, ...quick, ...ports],
    command: `npm run bench -- ${[...chosen, ...quick].join(' ')}`,
    seconds: expectedSeconds(scenario, rounds, seconds),
  }
}

function neededBy({ kind }: Scenario): readonly Tool[] {
  if (kind === 'handshakes') return ['openssl']
  return kind === 'healthcare' ? ['wrk'] : []
}

/** Peers of scenarios that do not name them. */
const PEERS = { closed: 6, handshakes: 3, tunnels: 4, idle: 5, 'fail-over': 3, open: 6 } as const
/** From the start of a peer to its first round, and back to the next peer. */
const START_SECONDS = 1
/** Warm-up of a round. */
const WARM_UP_SECONDS = 1.3
const PEAK_ROUNDS = 3
const RESTARTED_ROUNDS_MAX = 3
const RESTARTED_SECONDS = 12

function expectedSeconds(scenario: Scenario, rounds: number, seconds: number): number {
  const visit = seconds + WARM_UP_SECONDS
  switch (scenario.kind) {
    case 'startup':
      return 18 * (rounds + 1)
    case 'replay':
      return Object.keys(REPLAY_ROWS).length * rounds * (1 + seconds)
    case 'healthcare':
      return 60 + Object.keys(HEALTHCARE_ROWS).length * (1 + rounds * 2 * seconds)
    case 'deliveries':
      return 40 + 3 * rounds * (seconds + 8)
    case 'idle':
    case 'fail-over':
      return PEERS[scenario.kind] * Math.min(RESTARTED_ROUNDS_MAX, rounds) * RESTARTED_SECONDS
    case 'open':
      return 2 * PEERS.open * (START_SECONDS + (PEAK_ROUNDS + rounds) * visit)
    case 'paired': {
      const { peers, roundsPerStart, capability } = scenario
      const halves = capability === 'mediation-delay' ? 2 : 1
      const starts = Math.ceil(rounds / roundsPerStart) * (isLongStart(capability) ? 20 : 5)
      return peers.length * (starts + rounds * halves * visit)
    }
    default:
      return PEERS[scenario.kind] * (START_SECONDS + rounds * visit)
  }
}

/** Peers with 10,000 APIs, or with a million addresses. */
function isLongStart(capability: string): boolean {
  return capability === 'apis' || capability === 'limit-keys'
}
