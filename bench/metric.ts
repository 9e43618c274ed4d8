/**
 * The catalogue of metrics: title, rounding, and which direction is better. Tables, charts and comparisons read it; a
 * metric that is not here cannot be recorded. Names of metrics are part of every record and never change.
 */

interface Metric {
  readonly title: string
  readonly digits: number
  /** The direction of an improvement; `neither` for metrics that only describe the run. */
  readonly better: 'less' | 'more' | 'neither'
  /** How rounds are summarized if not by the median. `sum` and `greatest`: one bad round stays visible. */
  readonly acrossRounds?: 'sum' | 'greatest'
  /** The metric whose least round this is; it is part of summaries only. */
  readonly leastOf?: string
}

export const METRIC = {
  requestsPerSecond: { title: 'req/s', digits: 0, better: 'more' },
  deliveriesPerSecond: { title: 'deliveries/s', digits: 0, better: 'more' },
  cpuMicrosPerDelivery: { title: 'CPU µs/delivery', digits: 0, better: 'less' },
  requestsPerCoreSecond: { title: 'req/s per core', digits: 0, better: 'more', acrossRounds: 'greatest' },
  cpuMicrosPerRequest: { title: 'CPU µs/req', digits: 1, better: 'less' },
  userMicrosPerRequest: { title: 'user', digits: 1, better: 'less' },
  systemMicrosPerRequest: { title: 'system', digits: 1, better: 'less' },
  leastCpuMicros: { title: 'least CPU µs/req', digits: 1, better: 'less', leastOf: 'cpuMicrosPerRequest' },
  leastUserMicros: { title: 'least user', digits: 1, better: 'less', leastOf: 'userMicrosPerRequest' },
  leastSystemMicros: { title: 'least system', digits: 1, better: 'less', leastOf: 'systemMicrosPerRequest' },
  cpuSecondsPerGigabyte: { title: 'CPU s/GB', digits: 3, better: 'less' },
  megabytesPerSecond: { title: 'MB/s', digits: 0, better: 'more' },
  busyPercent: { title: 'core used %', digits: 0, better: 'neither' },
  offeredPerSecond: { title: 'offered req/s', digits: 0, better: 'neither' },
  p50Ms: { title: 'p50 ms', digits: 2, better: 'less' },
  p99Ms: { title: 'p99 ms', digits: 2, better: 'less' },
  p999Ms: { title: 'p99.9 ms', digits: 2, better: 'less' },
  warmP50Ms: { title: 'warm p50 ms', digits: 2, better: 'less' },
  warmP99Ms: { title: 'warm p99 ms', digits: 2, better: 'less' },
  warmP999Ms: { title: 'warm p99.9 ms', digits: 2, better: 'less' },
  warmErrors: { title: 'warm errors', digits: 0, better: 'less', acrossRounds: 'sum' },
  idleLoopP99Ms: { title: 'loop p99 ms, idle', digits: 2, better: 'less' },
  loopP99Ms: { title: 'loop p99 ms', digits: 2, better: 'less' },
  idleBesideP50Ms: { title: 'passing p50 ms, idle', digits: 2, better: 'less' },
  besideP50Ms: { title: 'passing p50 ms', digits: 2, better: 'less' },
  idleBesideP99Ms: { title: 'passing p99 ms, idle', digits: 2, better: 'less' },
  besideP99Ms: { title: 'passing p99 ms', digits: 2, better: 'less' },
  besideErrors: { title: 'passing errors', digits: 0, better: 'less', acrossRounds: 'sum' },
  maxMs: { title: 'max ms', digits: 1, better: 'less' },
  rssMiB: { title: 'RSS MiB', digits: 1, better: 'less' },
  pssMiB: { title: 'PSS MiB', digits: 1, better: 'less' },
  heldConnections: { title: 'open connections', digits: 0, better: 'more' },
  kibPerConnection: { title: 'KiB/connection', digits: 2, better: 'less' },
  firstReadyMs: { title: 'first start ms', digits: 0, better: 'less' },
  readyMs: { title: 'ready ms, 10 APIs', digits: 0, better: 'less' },
  readyThousandMs: { title: 'ready ms, 1,000 APIs', digits: 0, better: 'less' },
  readyExportedMs: { title: 'with 10 operations each', digits: 0, better: 'less' },
  readyDocumentedMs: { title: 'and OpenAPI documents', digits: 0, better: 'less' },
  deployedReadyMs: { title: 'ready ms', digits: 0, better: 'less' },
  kibPerApi: { title: 'KiB/API', digits: 1, better: 'less' },
  reloadMs: { title: 'reload ms', digits: 0, better: 'less' },
  othersPercent: { title: 'other programs %', digits: 0, better: 'neither' },
  errors: { title: 'errors', digits: 0, better: 'less', acrossRounds: 'sum' },
  askedCount: { title: 'requests', digits: 0, better: 'neither', acrossRounds: 'sum' },
  answeredCount: { title: '2xx', digits: 0, better: 'neither', acrossRounds: 'sum' },
  refusedCount: { title: 'error responses', digits: 0, better: 'less', acrossRounds: 'sum' },
  unansweredCount: { title: 'no response', digits: 0, better: 'less', acrossRounds: 'sum' },
  slowestMs: { title: 'slowest ms', digits: 0, better: 'less', acrossRounds: 'greatest' },
  takenOverMs: { title: 'failed over after ms', digits: 0, better: 'less' },
  exchangeNs: { title: 'ns/req', digits: 0, better: 'less' },
  leastExchangeNs: { title: 'least', digits: 0, better: 'less', leastOf: 'exchangeNs' },
  userNs: { title: 'user ns', digits: 0, better: 'less' },
  decodeNs: { title: 'decode', digits: 0, better: 'less' },
  filterNs: { title: 'route, filters', digits: 0, better: 'less' },
  sendNs: { title: 'send', digits: 0, better: 'less' },
  readNs: { title: 'read response', digits: 0, better: 'less' },
  writeNs: { title: 'write response', digits: 0, better: 'less' },
  accountNs: { title: 'account', digits: 0, better: 'less' },
  lineNs: { title: 'access line', digits: 0, better: 'less' },
  allocatedBytes: { title: 'allocated bytes', digits: 0, better: 'less' },
  usedAgainMs: { title: 'used again after ms', digits: 0, better: 'less' },
} as const satisfies Record<string, Metric>

export type MetricName = keyof typeof METRIC
export const METRIC_NAMES = Object.keys(METRIC) as readonly MetricName[]

/** The title for a scenario that counts `unit`s instead of requests: `CPU µs/req` becomes `CPU µs/message`. */
export function metricTitle(name: MetricName, unit: string | undefined): string {
  const { title } = METRIC[name]
  return unit === undefined ? title : title.replace('req/s', `${unit}s/s`).replace('/req', `/${unit}`)
}

export function summaryRule(name: MetricName): Metric['acrossRounds'] {
  const metric: Metric = METRIC[name]
  return metric.acrossRounds
}

/** The metric whose least round `name` is; undefined for others. */
export function leastOf(name: MetricName): MetricName | undefined {
  const metric: Metric = METRIC[name]
  return metric.leastOf as MetricName | undefined
}

/** The figures of one peer in one round. */
export type Sample = { readonly [name in MetricName]?: number }

export function formatMetric(name: MetricName, value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return '–'
  const { digits } = METRIC[name]
  const rounded = Number(value.toFixed(digits)) + 0 // Adding 0 turns negative zero into zero.
  return rounded.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
