/**
 * The targets of the gateway, as data, and their verdicts from published records. Limits of paired comparisons are
 * targets, too; their verdicts come from confidence intervals.
 */
import { formatMetric, METRIC, type MetricName } from './metric.ts'
import { formatCell } from './measured-table.ts'
import { missedRows } from './healthcare.ts'
import { verdictOf } from './paired/paired-ratio.ts'
import { type ProgramRecords, recordedFigure } from './program-records.ts'
import { isDisturbed, type Results, type ScenarioResult } from './results.ts'
import { SCENARIOS } from './scenarios.ts'

export interface Published {
  readonly results: Results
  readonly programs: ProgramRecords
}

interface Judgement {
  readonly result: string
  readonly verdict: string
}

interface Target {
  readonly what: string
  /** Scenario or program whose record decides. */
  readonly source: string
  /** Undefined where the record lacks a figure. */
  judge(published: Published): Judgement | undefined
}

/** The peers that a ratio is relative to; of several the worst ratio counts. */
type References = readonly string[]

interface RatioTarget {
  readonly metric: MetricName
  readonly candidate?: string
  readonly references: References
  readonly atMost?: number
  readonly atLeast?: number
}

function ratio(source: string, target: RatioTarget): Target {
  const { metric, candidate = 'sluice', references, atMost, atLeast } = target
  const limit = atMost === undefined ? `at least ${atLeast}` : `at most ${atMost}`
  const names = references.join(', ')
  return {
    what: `${METRIC[metric].title} of ${candidate} ${limit} × ${names}`,
    source,
    judge({ results }) {
      const peers: ScenarioResult['peers'] = results.scenarios[source]?.peers ?? {}
      const own = peers[candidate]?.median[metric]
      const ratios = references.map(name => (own ?? Number.NaN) / (peers[name]?.median[metric] ?? Number.NaN))
      if (ratios.some(value => !Number.isFinite(value))) return undefined
      const isMet = atMost === undefined ? Math.min(...ratios) >= atLeast! : Math.max(...ratios) <= atMost
      const result = ratios.map((value, at) => `${value.toFixed(3)} × ${references[at]}`).join(', ')
      return { result, verdict: isMet ? 'met' : 'missed' }
    },
  }
}

/** `metrics`: their sum counts. */
function figure(source: string, metrics: readonly MetricName[], atMost: number, candidate = 'sluice'): Target {
  const titles = metrics.map(metric => METRIC[metric].title).join(', ')
  return {
    what: `${titles} of ${candidate} at most ${atMost}`,
    source,
    judge({ results }) {
      const sample = results.scenarios[source]?.peers[candidate]?.median ?? {}
      const values = metrics.map(metric => sample[metric] ?? Number.NaN)
      const sum = values.reduce((all, value) => all + value, 0)
      if (!Number.isFinite(sum)) return undefined
      return { result: formatMetric(metrics[0]!, sum), verdict: sum <= atMost ? 'met' : 'missed' }
    },
  }
}

interface Place {
  readonly table: string
  readonly row: string
  readonly column: string
  readonly digits: number
}

function programFigure(source: string, what: string, { table, row, column, digits }: Place, atMost: number): Target {
  return {
    what: `${what}: at most ${atMost}`,
    source,
    judge({ programs }) {
      const record = programs.programs[source]
      const value = record === undefined ? undefined : recordedFigure(record, table, row, column)
      if (value === undefined) return undefined
      return { result: formatCell(value, digits), verdict: value <= atMost ? 'met' : 'missed' }
    },
  }
}

/** The limits of paired comparisons. */
function compared(): readonly Target[] {
  return Object.entries(SCENARIOS).flatMap(([source, scenario]) => {
    if (scenario.kind !== 'paired') return []
    return scenario.comparisons.flatMap(({ candidate, baseline, per, metric, limit }): Target[] => {
      if (limit === undefined) return []
      const what = metric === undefined ? 'CPU per request' : METRIC[metric].title
      const terms = per === undefined ? `${candidate} / ${baseline}` : `(${candidate} - ${baseline}) / ${per}`
      const judge = ({ results }: Published): Judgement | undefined => {
        const known = results.scenarios[source]?.comparisons ?? []
        const found = known.find(
          it => it.candidate === candidate && it.baseline === baseline && it.metric === metric && it.per === per,
        )
        if (found === undefined) return undefined
        const [middle, low, high] = [found.ratio, found.low, found.high].map(value => value.toFixed(3))
        return { result: `${middle} (95 %: ${low} to ${high})`, verdict: verdictOf(found, limit) }
      }
      return [{ what: `${what}, ${terms} at most ${limit}`, source, judge }]
    })
  })
}

const CPU = 'cpuMicrosPerRequest'
const GIGABYTE = 'cpuSecondsPerGigabyte'
const BOTH = ['nginx', 'haproxy']
const NPM = ['http-proxy', 'fast-proxy', 'reply-from']
const NO_FAILURES: readonly MetricName[] = ['refusedCount', 'unansweredCount']
/** Resident MiB by reactors: 100, 115 and 260 MB. */
const RESIDENT_MIB = { 1: 95.4, 2: 109.7, 16: 248 } as const
/** 450 with a reading of the clock, which takes 45. */
const FIVE_COUNTERS_NS = 405
const ACCESS_LINE_US = 3
/** 2.5 KB. */
const IDLE_CONNECTION_KIB = 2.44
/** 25 KB. */
const IDLE_TLS_CONNECTION_KIB = 24.4

export const TARGETS: readonly Target[] = [
  ratio('bare', { metric: CPU, references: ['haproxy'], atMost: 1 }),
  ratio('bare', { metric: 'requestsPerSecond', references: ['nginx'], atLeast: 1.1 }),
  ratio('bare-512', { metric: CPU, references: ['nginx'], atMost: 0.9 }),
  ratio('bare-512', { metric: CPU, references: NPM, atMost: 0.167 }),
  ratio('down-1m', { metric: GIGABYTE, references: BOTH, atMost: 1 }),
  ratio('up-1m', { metric: GIGABYTE, references: BOTH, atMost: 1 }),
  ratio('connection-per-request', { metric: CPU, references: ['nginx'], atMost: 1.15 }),
  ratio('connection-per-request', { metric: 'p99Ms', references: ['nginx'], atMost: 2 }),
  ratio('tls', { metric: CPU, references: ['nginx'], atMost: 1.02 }),
  figure('idle-10k', ['kibPerConnection'], IDLE_CONNECTION_KIB),
  figure('idle-tls-2k', ['kibPerConnection'], IDLE_TLS_CONNECTION_KIB),
  ...['dies', 'hangs', 'flaps'].map(failure => figure(`fail-over-${failure}`, NO_FAILURES, 0)),
  figure('start', ['readyMs'], 300, 'sluice-package'),
  figure('start', ['readyThousandMs'], 600, 'sluice-package'),
  ...Object.entries(RESIDENT_MIB).map(([reactors, mib]) => {
    const place = { table: 'Resident MiB, as a package', row: `${reactors} reactors`, column: 'sum', digits: 1 }
    return programFigure('memory-at-rest', `resident MiB as a package, ${reactors} reactors`, place, mib)
  }),
  ...compared(),
  ratio('secured-one', secured({ metric: 'requestsPerSecond', references: ['nginx'], atLeast: 0.95 })),
  ratio('secured-1000', secured({ metric: 'requestsPerSecond', references: ['nginx'], atLeast: 0.95 })),
  ratio('secured-one', secured({ metric: CPU, references: ['haproxy'], atMost: 0.286 })),
  ratio('secured-1000', secured({ metric: CPU, references: ['haproxy'], atMost: 0.286 })),
  figure('mediation-delay', ['loopP99Ms'], 2, 'sluice-mediated'),
  programFigure('throttle', 'ns of five counters beyond the clock', countersPlace('five counters'), FIVE_COUNTERS_NS),
  programFigure('access-log', 'µs to format a JSON line', accessLinePlace('json, no query'), ACCESS_LINE_US),
  {
    what: 'every row with a target reaches it, scaled by what bare nginx passes',
    source: 'healthcare',
    judge({ results }) {
      const missed = missedRows(results.scenarios.healthcare?.peers ?? {})
      if (missed === undefined) return undefined
      return { result: `${missed.length} rows missed`, verdict: missed.length === 0 ? 'met' : 'missed' }
    },
  },
]

function secured(target: Omit<RatioTarget, 'candidate'>): RatioTarget {
  return { ...target, candidate: 'sluice-secured-log' }
}

function countersPlace(row: string): Place {
  return { table: 'admit, ns of processor time beyond the clock', row, column: 'ns', digits: 0 }
}

function accessLinePlace(row: string): Place {
  return { table: 'Formatting of one line', row, column: 'µs', digits: 2 }
}

/** The run of a scenario or program, for a reader who wants to repeat it. */
export function runOf(source: string, { results, programs }: Published): string | undefined {
  const result = results.scenarios[source] ?? programs.programs[source]
  if (result === undefined) return undefined
  return `${result.startedAt.slice(0, 10)}, ${result.environment.commit}${marksOf(results.scenarios[source])}`
}

function marksOf(result: ScenarioResult | undefined): string {
  return result !== undefined && isDisturbed(result) ? ' ‡' : ''
}
