/**
 * Contests, as data: scenarios in which gateways are compared with each other, to a few per cent. Who takes part is
 * started several times, and takes turns in changing order (`paired-ratio.ts`).
 */
import type { MetricName } from '../metric.ts'
import type { Ask } from './ask.ts'
import type { WarmClient } from './warm-client.ts'

/** The cost of one contestant as a ratio to that of another. */
interface Question {
  readonly of: string
  readonly to: string
  /** What the ratio may be at most, where there is such a target. */
  readonly limit?: number
}

export interface Contest {
  readonly kind: 'contest'
  readonly title: string
  readonly shows: readonly MetricName[]
  readonly unit?: string
  readonly ability: 'chain' | 'apis' | 'secured'
  /** In the order of the table. Those that are not there take no part. */
  readonly contestants: readonly string[]
  /** Ratios of the table are to this one. */
  readonly reference: string
  readonly questions: readonly Question[]
  /** Those that refuse a token that is forged. */
  readonly checking?: readonly string[]
  readonly connections: number
  /** After so many rounds everybody is started anew. */
  readonly roundsPerStart: number
  readonly ask: Ask
  /** Who is asked beside it all the time, with a token that is remembered. */
  readonly warmClient?: WarmClient
}

const COST: readonly MetricName[] = [
  'cpuMicrosPerRequest',
  'userMicrosPerRequest',
  'systemMicrosPerRequest',
  'requestsPerSecond',
  'busyPercent',
  'p50Ms',
  'p99Ms',
  'rssMiB',
]
const BODY_BYTES = 1024
const GET: Ask = {
  method: 'GET',
  fields: { Origin: null },
  paths: ['/chain/1.0.0/orders/4711'],
  uploadBytes: 0,
  statuses: [200],
  downloadBytes: BODY_BYTES,
}
const PREFLIGHT_FIELDS = {
  Authorization: null,
  'Access-Control-Request-Method': 'POST',
  'Access-Control-Request-Headers': 'authorization,content-type',
}

/** So many paths that no cache of the gateway holds them all. */
const SPREAD_PATHS = 10_000

/** The first is what a chain without security may cost at most; the last what differs between two that are the same. */
const CHAIN_QUESTIONS: readonly Question[] = [
  { of: 'sluice', to: 'sluice-core', limit: 1.03 },
  { of: 'sluice', to: 'sluice-before' },
  { of: 'sluice-again', to: 'sluice' },
]

function chain(title: string, ask: Partial<Ask>, contestants: readonly string[]): Contest {
  return {
    kind: 'contest',
    title: `Full chain: ${title}`,
    shows: COST,
    ability: 'chain',
    contestants,
    reference: contestants.includes('sluice-core') ? 'sluice-core' : 'nginx',
    questions: contestants.includes('sluice-core') ? CHAIN_QUESTIONS : [],
    connections: 64,
    roundsPerStart: 4,
    ask: { ...GET, ...ask },
  }
}

function refused(status: number, method: string, path: string): Contest {
  const ask = { method, paths: [path], statuses: [status], downloadBytes: null }
  return chain(`${method} that is answered ${status}`, ask, ['sluice', 'nginx'])
}

const PASSING = ['sluice', 'sluice-again', 'sluice-core', 'sluice-before', 'nginx']

export const API_COUNTS: Readonly<Record<string, number>> = {
  'sluice-1-api': 1,
  'sluice-100-apis': 100,
  'sluice-10k-apis': 10_000,
}

export function contextOf(api: number): string {
  return `/apis/${String(api).padStart(5, '0')}`
}

const TEMPLATES: readonly ((id: string) => string)[] = [
  id => `/orders/${id}`,
  id => `/orders/${id}/items`,
  id => `/orders/${id}/items/7`,
  id => `/customers/${id}`,
  id => `/menu/${id}`,
]

/** As many different paths whatever the number of APIs, each as long as its like, in an order that follows no table. */
export function spreadPaths(apis: number): string[] {
  return Array.from({ length: SPREAD_PATHS }, (_, place) => {
    const index = (place * 7919) % SPREAD_PATHS
    const template = TEMPLATES[(index + Math.floor(index / apis)) % TEMPLATES.length]!
    return `${contextOf(index % apis)}/1.0.0${template(String(index).padStart(5, '0'))}`
  })
}

function apis(title: string, shows: readonly MetricName[], ask: Partial<Ask>): Contest {
  const [first, ...others] = Object.keys(API_COUNTS)
  return {
    kind: 'contest',
    title,
    shows,
    ability: 'apis',
    contestants: Object.keys(API_COUNTS),
    reference: first!,
    questions: others.map(of => ({ of, to: first! })),
    connections: 64,
    roundsPerStart: 4,
    ask: { ...GET, ...ask },
  }
}

const API_COST: readonly MetricName[] = [
  ...COST.filter(name => name !== 'rssMiB'),
  'pssMiB',
  'kibPerApi',
  'deployedReadyMs',
  'reloadMs',
]

/** The first is what a token, looked up, may add to a request (`performance.md`, section 5). */
const SECURED_QUESTIONS: readonly Question[] = [
  { of: 'sluice-secured', to: 'sluice-open' },
  { of: 'sluice-secured-log', to: 'sluice-open' },
  { of: 'sluice-secured-log', to: 'nginx' },
  { of: 'sluice-secured-log', to: 'haproxy' },
]

/** More than the gateway remembers, in turn: each of them is new again when it comes. */
const COLD_TOKENS = 20_000

function secured(title: string, tokens: number): Contest {
  return {
    kind: 'contest',
    title: `Secured: ${title}`,
    shows: COST,
    ability: 'secured',
    contestants: ['sluice-open', 'sluice-secured', 'sluice-secured-log', 'nginx', 'haproxy'],
    reference: 'nginx',
    questions: SECURED_QUESTIONS,
    checking: ['sluice-secured', 'sluice-secured-log', 'haproxy'],
    connections: 64,
    roundsPerStart: 4,
    ask: { ...GET, tokens },
  }
}

export const CONTESTS: Readonly<Record<string, Contest>> = {
  'chain-get': chain('GET on a resource with a variable, no Origin', {}, PASSING),
  'chain-origin': chain('the same with an Origin', { fields: {} }, PASSING),
  'chain-ids': chain(
    '10,000 different paths of five resources',
    { paths: spreadPaths(1).map(path => path.replace(contextOf(0), '/chain')) },
    PASSING,
  ),
  'chain-post': chain('POST of 1 KiB', { method: 'POST', uploadBytes: BODY_BYTES, paths: ['/chain/1.0.0/orders'] }, [
    ...PASSING,
  ]),
  'chain-preflight': chain(
    'CORS preflight, answered by the proxy',
    {
      method: 'OPTIONS',
      fields: PREFLIGHT_FIELDS,
      paths: ['/chain/1.0.0/customers/4711'],
      statuses: [200, 204],
      downloadBytes: null,
    },
    ['sluice', 'nginx'],
  ),
  'chain-404': refused(404, 'GET', '/nowhere/1.0.0/orders/4711'),
  'chain-403': refused(403, 'GET', '/chain/1.0.0/nothing/4711'),
  'chain-405': refused(405, 'DELETE', '/chain/1.0.0/customers/4711'),
  'secured-one': secured('RS256, one token', 1),
  'secured-1000': secured('RS256, 1,000 tokens in turn', 1000),
  'secured-cold': {
    ...secured('RS256, a token that nobody remembers each time', COLD_TOKENS),
    shows: [...COST, 'warmP50Ms', 'warmP99Ms', 'warmP999Ms', 'warmErrors'],
    warmClient: { connections: 8, ratePerSecond: 200 },
  },
  'apis-same': apis('1, 100, 10,000 APIs: one path asked', API_COST, { paths: [`${contextOf(0)}/1.0.0/orders/00000`] }),
  'apis-spread': apis('1, 100, 10,000 APIs: 10,000 different paths asked', API_COST, { paths: [] }),
}

/** What one contestant is asked: spread over the APIs that it has. */
export function askOf(contest: Contest, contestant: string): Ask {
  const { ask } = contest
  return ask.paths.length > 0 ? ask : { ...ask, paths: spreadPaths(API_COUNTS[contestant] ?? 1) }
}
