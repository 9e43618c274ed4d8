/**
 * Paired scenarios, as data: variants of the gateway are compared to within a few per cent. Peers take turns in
 * alternating order and are restarted several times (see `paired-rounds.ts`).
 */
import type { RequestSpec } from '../load/load-plan.ts'
import type { MetricName } from '../metric.ts'

/** A comparison of costs: that of `candidate` divided by that of `baseline`, unless `per` names a unit. */
interface PlannedComparison {
  /** Left out: CPU per request. */
  readonly metric?: 'userMicrosPerRequest'
  readonly candidate: string
  readonly baseline: string
  /** The cost of `candidate` less that of `baseline`, in costs of this peer. */
  readonly per?: string
  /** Target: the greatest ratio that is acceptable. */
  readonly limit?: number
}

/** A client at a low rate, beside the main load and without it: GET of a path that no flow touches. */
export interface BesideClient extends WarmClient {
  readonly path: string
}

/** The body of a request as peers transform it, seen where the backend sends it back. */
interface Transformation {
  readonly peers: readonly string[]
  readonly path: string
  /** Parsed JSON; the order of members does not matter. */
  readonly expected: unknown
}

/** A client at a low rate whose token is in the cache, beside the main load. */
export interface WarmClient {
  readonly connections: number
  readonly ratePerSecond: number
}

export interface PairedScenario {
  readonly kind: 'paired'
  readonly title: string
  readonly columns: readonly MetricName[]
  readonly unit?: string
  readonly capability:
    | ('chain' | 'apis' | 'secured' | 'hot-path' | 'limits' | 'limit-keys' | 'refused')
    | ('mediation' | 'mediation-delay' | 'mediation-headers')
  /** Names of peers in the order of the table; those that are not available are left out. */
  readonly peers: readonly string[]
  /** Ratios in the table are relative to this peer. */
  readonly reference: string
  readonly comparisons: readonly PlannedComparison[]
  /** Peers that must refuse a forged token. */
  readonly tokenCheckingPeers?: readonly string[]
  readonly connections: number
  /** All peers are restarted after this many rounds. */
  readonly roundsPerStart: number
  readonly request: RequestSpec
  readonly warmClient?: WarmClient
  readonly beside?: BesideClient
  readonly transformation?: Transformation
  /** Number of client addresses by peer: each is sent in X-Forwarded-For, in turn, before the first round. */
  readonly addresses?: Readonly<Record<string, number>>
  /** The first request passes a limit of one; all others are refused. */
  readonly exhaustsLimit?: true
}

export const COST_COLUMNS: readonly MetricName[] = [
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
export const GET: RequestSpec = {
  method: 'GET',
  fields: { Origin: null },
  paths: ['/chain/1.0.0/orders/4711'],
  uploadBytes: 0,
  expectedStatuses: [200],
  downloadBytes: BODY_BYTES,
}
const PREFLIGHT_FIELDS = {
  Authorization: null,
  'Access-Control-Request-Method': 'POST',
  'Access-Control-Request-Headers': 'authorization,content-type',
}

/** More paths than any cache of the gateway holds. */
const SPREAD_PATHS = 10_000

/** First the target for a filter chain without security; last the noise between two peers that are the same. */
const CHAIN_COMPARISONS: readonly PlannedComparison[] = [
  { candidate: 'sluice', baseline: 'sluice-core', limit: 1.03 },
  { candidate: 'sluice', baseline: 'sluice-before' },
  { candidate: 'sluice-again', baseline: 'sluice' },
]

function chain(title: string, request: Partial<RequestSpec>, peers: readonly string[]): PairedScenario {
  return {
    kind: 'paired',
    title: `Full filter chain: ${title}`,
    columns: COST_COLUMNS,
    capability: 'chain',
    peers,
    reference: peers.includes('sluice-core') ? 'sluice-core' : 'nginx',
    comparisons: peers.includes('sluice-core') ? CHAIN_COMPARISONS : [],
    connections: 64,
    roundsPerStart: 4,
    request: { ...GET, ...request },
  }
}

function errorResponse(status: number, method: string, path: string): PairedScenario {
  const request = { method, paths: [path], expectedStatuses: [status], downloadBytes: null }
  return chain(`${method} with response ${status}`, request, ['sluice', 'nginx'])
}

const FORWARDING_PEERS = ['sluice', 'sluice-again', 'sluice-core', 'sluice-before', 'nginx']

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

/** Paths spread over the APIs: as many and of the same lengths for any number of APIs, in a scattered order. */
export function spreadPaths(apis: number): string[] {
  return Array.from({ length: SPREAD_PATHS }, (_, position) => {
    const index = (position * 7919) % SPREAD_PATHS
    const template = TEMPLATES[(index + Math.floor(index / apis)) % TEMPLATES.length]!
    return `${contextOf(index % apis)}/1.0.0${template(String(index).padStart(5, '0'))}`
  })
}

function apis(title: string, request: Partial<RequestSpec>): PairedScenario {
  const [first, ...others] = Object.keys(API_COUNTS)
  return {
    kind: 'paired',
    title,
    columns: API_COLUMNS,
    capability: 'apis',
    peers: Object.keys(API_COUNTS),
    reference: first!,
    comparisons: others.map(candidate => ({ candidate, baseline: first! })),
    connections: 64,
    roundsPerStart: 4,
    request: { ...GET, ...request },
  }
}

const API_COLUMNS: readonly MetricName[] = [
  ...COST_COLUMNS.filter(name => name !== 'rssMiB'),
  'pssMiB',
  'kibPerApi',
  'deployedReadyMs',
  'reloadMs',
]

/** The first is what the lookup of a known token adds to a request. */
const SECURED_COMPARISONS: readonly PlannedComparison[] = [
  { candidate: 'sluice-secured', baseline: 'sluice-open' },
  { candidate: 'sluice-secured-log', baseline: 'sluice-open' },
  { candidate: 'sluice-secured-log', baseline: 'nginx' },
  { candidate: 'sluice-secured-log', baseline: 'haproxy' },
]

/** More tokens than the cache of the gateway holds: sent in turn, each is a miss. */
const UNCACHED_TOKENS = 20_000

function secured(title: string, tokens: number): PairedScenario {
  return {
    kind: 'paired',
    title: `Secured: ${title}`,
    columns: COST_COLUMNS,
    capability: 'secured',
    peers: ['sluice-open', 'sluice-secured', 'sluice-secured-log', 'nginx', 'haproxy'],
    reference: 'nginx',
    comparisons: SECURED_COMPARISONS,
    tokenCheckingPeers: ['sluice-secured', 'sluice-secured-log', 'haproxy'],
    connections: 64,
    roundsPerStart: 4,
    request: { ...GET, tokens },
  }
}

/** The ceiling is a bare proxy on the same sockets and parser: what remains is the work of the gateway. */
const HOT_PATH_COMPARISONS: readonly PlannedComparison[] = [
  { candidate: 'sluice-plain', baseline: 'ceiling', metric: 'userMicrosPerRequest', limit: 1.35 },
  { candidate: 'sluice-plain', baseline: 'nginx', limit: 0.85 },
  { candidate: 'sluice-plain', baseline: 'haproxy', limit: 1.15 },
  { candidate: 'sluice-jwt-log', baseline: 'nginx', limit: 1.1 },
  { candidate: 'sluice-jwt', baseline: 'sluice-plain', per: 'ceiling', metric: 'userMicrosPerRequest', limit: 0.1 },
  { candidate: 'sluice-log', baseline: 'sluice-plain', per: 'ceiling', metric: 'userMicrosPerRequest', limit: 0.3 },
]

const HOT_PATH: PairedScenario = {
  kind: 'paired',
  title: 'Hot path: GET of 1 KiB on 64 keep-alive connections',
  columns: [
    'leastUserMicros',
    'userMicrosPerRequest',
    'leastSystemMicros',
    'systemMicrosPerRequest',
    'leastCpuMicros',
    'cpuMicrosPerRequest',
    'requestsPerSecond',
    'busyPercent',
    'p99Ms',
    'rssMiB',
  ],
  capability: 'hot-path',
  peers: ['ceiling', 'sluice-plain', 'sluice-log', 'sluice-jwt', 'sluice-jwt-log', 'nginx', 'haproxy'],
  reference: 'ceiling',
  comparisons: HOT_PATH_COMPARISONS,
  tokenCheckingPeers: ['sluice-jwt', 'sluice-jwt-log'],
  connections: 64,
  roundsPerStart: 4,
  request: { ...GET, paths: ['/bench/1k'], tokens: 1 },
}

/** The cost of a known token where the same one seldom comes twice in a row. */
const HOT_PATH_TOKENS: PairedScenario = {
  ...HOT_PATH,
  title: 'Hot path: the same with 1,000 tokens in turn',
  peers: ['ceiling', 'sluice-plain', 'sluice-jwt'],
  comparisons: [
    { candidate: 'sluice-jwt', baseline: 'sluice-plain', per: 'ceiling', metric: 'userMicrosPerRequest', limit: 0.2 },
  ],
  tokenCheckingPeers: ['sluice-jwt'],
  request: { ...GET, paths: ['/bench/1k'], tokens: 1000 },
}

export const PAIRED_SCENARIOS: Readonly<Record<string, PairedScenario>> = {
  'chain-get': chain('GET on a resource with a path parameter, no Origin', {}, FORWARDING_PEERS),
  'chain-origin': chain('the same GET with an Origin', { fields: {} }, FORWARDING_PEERS),
  'chain-ids': chain(
    'GET on 10,000 different paths of five resources',
    { paths: spreadPaths(1).map(path => path.replace(contextOf(0), '/chain')) },
    FORWARDING_PEERS,
  ),
  'chain-post': chain(
    'POST of 1 KiB',
    { method: 'POST', uploadBytes: BODY_BYTES, paths: ['/chain/1.0.0/orders'] },
    FORWARDING_PEERS,
  ),
  'chain-preflight': chain(
    'CORS preflight, answered by the proxy',
    {
      method: 'OPTIONS',
      fields: PREFLIGHT_FIELDS,
      paths: ['/chain/1.0.0/customers/4711'],
      expectedStatuses: [200, 204],
      downloadBytes: null,
    },
    ['sluice', 'nginx'],
  ),
  'chain-404': errorResponse(404, 'GET', '/nowhere/1.0.0/orders/4711'),
  'chain-403': errorResponse(403, 'GET', '/chain/1.0.0/nothing/4711'),
  'chain-405': errorResponse(405, 'DELETE', '/chain/1.0.0/customers/4711'),
  'secured-one': secured('RS256, one token', 1),
  'secured-1000': secured('RS256, 1,000 tokens in turn', 1000),
  'secured-cold': {
    ...secured('RS256, every token a cache miss', UNCACHED_TOKENS),
    columns: [...COST_COLUMNS, 'warmP50Ms', 'warmP99Ms', 'warmP999Ms', 'warmErrors'],
    warmClient: { connections: 8, ratePerSecond: 200 },
  },
  'hot-path-network': HOT_PATH,
  'hot-path-tokens': HOT_PATH_TOKENS,
  'apis-same': apis('1, 100, 10,000 APIs: requests for one path', { paths: [`${contextOf(0)}/1.0.0/orders/00000`] }),
  'apis-spread': apis('1, 100, 10,000 APIs: requests for 10,000 different paths', { paths: [] }),
}

/** The requests for one peer: without paths of their own they are spread over the APIs of the peer. */
export function requestFor({ request, addresses }: PairedScenario, peer: string): RequestSpec {
  if (addresses?.[peer] !== undefined) return { ...request, addresses: addresses[peer] }
  return request.paths.length > 0 ? request : { ...request, paths: spreadPaths(API_COUNTS[peer] ?? 1) }
}
