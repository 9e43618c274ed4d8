/**
 * What a measurement can say. Owns the catalogue of metrics: how each is titled, rounded and judged. Tables, charts and
 * the comparison of two runs read this catalogue; a metric that is not here cannot be recorded.
 */

interface Metric {
  readonly title: string
  readonly digits: number
  /** Which direction is an improvement; `neither` for what only describes the run. */
  readonly better: 'less' | 'more' | 'neither'
  /** What is shown of several rounds where it is not the median: a bad round must not vanish behind good ones. */
  readonly rounds?: 'sum' | 'greatest'
}

export const METRIC = {
  requestsPerSecond: { title: 'req/s', digits: 0, better: 'more' },
  cpuMicrosPerRequest: { title: 'CPU µs/req', digits: 1, better: 'less' },
  userMicrosPerRequest: { title: 'user', digits: 1, better: 'less' },
  systemMicrosPerRequest: { title: 'system', digits: 1, better: 'less' },
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
  warmErrors: { title: 'warm errors', digits: 0, better: 'less', rounds: 'sum' },
  maxMs: { title: 'max ms', digits: 1, better: 'less' },
  rssMiB: { title: 'RSS MiB', digits: 1, better: 'less' },
  pssMiB: { title: 'PSS MiB', digits: 1, better: 'less' },
  heldConnections: { title: 'held', digits: 0, better: 'more' },
  kibPerConnection: { title: 'KiB/connection', digits: 2, better: 'less' },
  firstReadyMs: { title: 'first start ms', digits: 0, better: 'less' },
  readyMs: { title: 'ready ms, 10 APIs', digits: 0, better: 'less' },
  readyThousandMs: { title: 'ready ms, 1,000 APIs', digits: 0, better: 'less' },
  readyExportedMs: { title: 'with 10 operations each', digits: 0, better: 'less' },
  readyDocumentedMs: { title: 'and OpenAPI documents', digits: 0, better: 'less' },
  deployedReadyMs: { title: 'ready ms', digits: 0, better: 'less' },
  kibPerApi: { title: 'KiB/API', digits: 1, better: 'less' },
  reloadMs: { title: 'reload ms', digits: 0, better: 'less' },
  othersPercent: { title: 'others %', digits: 0, better: 'neither' },
  errors: { title: 'errors', digits: 0, better: 'less', rounds: 'sum' },
  askedCount: { title: 'requests', digits: 0, better: 'neither', rounds: 'sum' },
  answeredCount: { title: '2xx', digits: 0, better: 'neither', rounds: 'sum' },
  refusedCount: { title: 'answered with an error', digits: 0, better: 'less', rounds: 'sum' },
  unansweredCount: { title: 'unanswered', digits: 0, better: 'less', rounds: 'sum' },
  slowestMs: { title: 'slowest ms', digits: 0, better: 'less', rounds: 'greatest' },
  takenOverMs: { title: 'taken over after ms', digits: 0, better: 'less' },
  usedAgainMs: { title: 'used again after ms', digits: 0, better: 'less' },
} as const satisfies Record<string, Metric>

export type MetricName = keyof typeof METRIC
export const METRIC_NAMES = Object.keys(METRIC) as readonly MetricName[]

/** Of what a scenario counts: `message` makes of `CPU µs/req` the cost of a message. */
export function metricTitle(name: MetricName, unit: string | undefined): string {
  const { title } = METRIC[name]
  return unit === undefined ? title : title.replace('req/s', `${unit}s/s`).replace('/req', `/${unit}`)
}

/** One figure out of those of several rounds. */
export function summaryRule(name: MetricName): Metric['rounds'] {
  const metric: Metric = METRIC[name]
  return metric.rounds
}

/** The figures of one peer in one round. */
export type Sample = { readonly [name in MetricName]?: number }

export function formatMetric(name: MetricName, value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return '–'
  const { digits } = METRIC[name]
  const rounded = Number(value.toFixed(digits)) + 0 // Adding 0 takes the sign off a negative zero.
  return rounded.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
