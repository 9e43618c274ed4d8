/**
 * Paired scenarios of throttling: what limits that never refuse add to a request, what a refusal costs, and whether the
 * cost grows with the number of keys (see `paired-scenarios.ts`).
 */
import { COST_COLUMNS, GET, type PairedScenario } from './paired-scenarios.ts'

/** Gateways by the number of levels that limit their requests; the limits are never reached. */
export const LEVEL_COUNTS: Readonly<Record<string, number>> = {
  'sluice-no-level': 0,
  'sluice-one-level': 1,
  'sluice-five-levels': 5,
}

/** Gateways by the number of addresses that their clients have, each of which has a counter. */
export const KEY_COUNTS: Readonly<Record<string, number>> = {
  'sluice-10-keys': 10,
  'sluice-100k-keys': 100_000,
  'sluice-1m-keys': 1_000_000,
}

const USER = 'userMicrosPerRequest'
/** Target: what five levels add at most, in user time of the ceiling. */
const FIVE_LEVELS_MAX = 0.15

const COMMON = { kind: 'paired', connections: 64, roundsPerStart: 4 } as const
const SMALL_GET = { ...GET, paths: ['/bench/1k'] }
const LEAST_COLUMNS = [
  'leastUserMicros',
  USER,
  'leastSystemMicros',
  'systemMicrosPerRequest',
  'leastCpuMicros',
] as const

const LEVELS: PairedScenario = {
  ...COMMON,
  title: 'Limits: GET of 1 KiB with a token, by the number of levels that limit it',
  columns: [...LEAST_COLUMNS, 'cpuMicrosPerRequest', 'requestsPerSecond', 'busyPercent', 'p99Ms', 'rssMiB'],
  capability: 'limits',
  peers: ['ceiling', ...Object.keys(LEVEL_COUNTS)],
  reference: 'ceiling',
  comparisons: [
    { candidate: 'sluice-one-level', baseline: 'sluice-no-level', per: 'ceiling', metric: USER },
    {
      candidate: 'sluice-five-levels',
      baseline: 'sluice-no-level',
      per: 'ceiling',
      metric: USER,
      limit: FIVE_LEVELS_MAX,
    },
    { candidate: 'sluice-five-levels', baseline: 'sluice-no-level' },
  ],
  tokenCheckingPeers: Object.keys(LEVEL_COUNTS),
  request: { ...SMALL_GET, tokens: 1 },
}

const KEYS: PairedScenario = {
  ...COMMON,
  title: 'Limits: GET of 1 KiB from 10, 100,000 and 1,000,000 addresses, each with its own counter',
  columns: [...COST_COLUMNS, 'pssMiB'],
  capability: 'limit-keys',
  peers: Object.keys(KEY_COUNTS),
  reference: 'sluice-10-keys',
  comparisons: ['sluice-100k-keys', 'sluice-1m-keys'].flatMap(candidate => [
    { candidate, baseline: 'sluice-10-keys' },
    { candidate, baseline: 'sluice-10-keys', metric: USER } as const,
  ]),
  addresses: KEY_COUNTS,
  request: { ...SMALL_GET, fields: { Origin: null, Authorization: null } },
}

const REFUSED: PairedScenario = {
  ...COMMON,
  title: 'Refused: a flood of requests beyond an exhausted limit, answered with 429',
  columns: [...LEAST_COLUMNS, 'cpuMicrosPerRequest', 'requestsPerSecond', 'busyPercent', 'p99Ms', 'rssMiB'],
  capability: 'refused',
  peers: ['sluice-refused', 'sluice-refused-jwt', 'nginx', 'node-floor'],
  reference: 'nginx',
  comparisons: [
    { candidate: 'sluice-refused', baseline: 'nginx', limit: 1 },
    { candidate: 'sluice-refused', baseline: 'nginx', metric: USER },
    { candidate: 'sluice-refused', baseline: 'node-floor' },
    { candidate: 'sluice-refused', baseline: 'node-floor', metric: USER },
    { candidate: 'sluice-refused-jwt', baseline: 'nginx' },
  ],
  exhaustsLimit: true,
  request: { ...SMALL_GET, tokens: 1, expectedStatuses: [429], downloadBytes: null },
}

export const LIMIT_SCENARIOS: Readonly<Record<string, PairedScenario>> = {
  'limits-levels': LEVELS,
  'limits-keys': KEYS,
  refused: REFUSED,
}
