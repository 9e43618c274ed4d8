/** Results as Markdown: one table per scenario, with the command that repeats it. */
import { formatMetric, METRIC, type MetricName, metricTitle, type Sample } from '../metric.ts'
import { verdictOf } from '../paired/paired-ratio.ts'
import { type Comparison, mostUsedByOthers, outlierIndexes, type Results, type ScenarioResult } from '../results.ts'
import { SCENARIOS } from '../scenarios.ts'

/** Ratios are relative to this peer, except in paired scenarios, which name their own. */
const REFERENCE = 'nginx'
/** The metrics with ratios; more of them would make the table unreadable. */
const RATIO_METRICS: readonly MetricName[] = [
  'requestsPerSecond',
  'cpuMicrosPerRequest',
  'leastCpuMicros',
  'leastUserMicros',
  'cpuSecondsPerGigabyte',
  'p99Ms',
]
/** A beginning of the reason is enough here; the record contains all of it. */
const REASON_CHARS_MAX = 300

function cell(name: MetricName, sample: Sample, reference: Sample | undefined): string {
  const value = sample[name]
  const base = reference?.[name]
  const figure = formatMetric(name, value)
  if (value === undefined || base === undefined || base === 0 || !RATIO_METRICS.includes(name)) return figure
  return `${figure} (${(value / base).toFixed(2)}×)`
}

function notes(result: ScenarioResult): string[] {
  const lines: string[] = []
  for (const [peer, { outliers, rounds }] of Object.entries(result.peers)) {
    if (outliers.length === 0) continue
    const numbers = outliers.join(', ')
    lines.push(`† ${peer}: round ${numbers} of ${rounds.length} differs from the median by more than a quarter.`)
  }
  const drifted = outlierIndexes(result.probeMs)
  if (drifted.length > 0) {
    const rounds = drifted.map(index => index + 1).join(', ')
    lines.push(`‡ The speed of the machine changed by more than a quarter in round ${rounds}: repeat the run.`)
  }
  const most = mostUsedByOthers(result)
  if (most !== undefined) {
    lines.push(`‡ Other programs used up to ${most.toFixed(0)} % of a processor during the run: repeat it.`)
  }
  lines.push(...(result.comparisons ?? []).map(comparisonText), ...(result.notes ?? []))
  for (const [peer, reason] of Object.entries(result.skipped))
    lines.push(`${peer} was not measured: ${reason.replace(/\s+/g, ' ').slice(0, REASON_CHARS_MAX)}`)
  return lines
}

function comparisonText(comparison: Comparison): string {
  const { candidate, baseline, ratio, low, high, pairs, starts, limit, metric, per } = comparison
  const [middle, least, most] = [ratio, low, high].map(value => value.toFixed(3))
  const what = metric === undefined ? 'CPU per request' : METRIC[metric].title
  const compared = per === undefined ? `${candidate} / ${baseline}` : `(${candidate} - ${baseline}) / ${per}`
  const figures = `${compared}, ${what}: **${middle}** (95 %: ${least} to ${most})`
  const verdict = limit === undefined ? '' : ` Target at most ${limit}: ${verdictOf(comparison, limit)}.`
  return `${figures}, median of ${pairs} pairs of rounds, ${starts} starts.${verdict}`
}

function conditions(result: ScenarioResult): string {
  const rounds = Math.max(0, ...Object.values(result.peers).map(peer => peer.rounds.length))
  const probe = result.probeMs.length === 0 ? [0] : result.probeMs
  const span = `${Math.min(...probe).toFixed(0)}–${Math.max(...probe).toFixed(0)} ms`
  const load = result.loadGenerator === 'none' ? '' : `, load from ${result.loadGenerator}, backend ${result.backend}`
  const when = `${result.startedAt.slice(0, 16)}Z, commit ${result.environment.commit}`
  return `${rounds} rounds of ${result.secondsPerRound} s${load}, speed probe ${span}, ${when}.`
}

export function scenarioTable(name: string, result: ScenarioResult): string {
  const peers = Object.entries(result.peers)
  const scenario = SCENARIOS[name]
  const hasErrors = peers.some(([, { median }]) => (median.errors ?? 0) > 0)
  const columns: MetricName[] = [...(scenario?.columns ?? []), ...(hasErrors ? (['errors'] as const) : [])]
  const reference = result.peers[scenario?.kind === 'paired' ? scenario.reference : REFERENCE]?.median
  const rows = peers.map(([peer, { median, outliers }]) => {
    const cells = columns.map(column => cell(column, median, reference))
    return `| ${peer}${outliers.length > 0 ? ' †' : ''} | ${cells.join(' | ')} |`
  })
  const table = [
    `| | ${columns.map(column => metricTitle(column, scenario?.unit)).join(' | ')} |`,
    `|---|${columns.map(() => '---:').join('|')}|`,
    ...rows,
  ]
  const parts = [`### ${result.title}`, `    ${result.command}`]
  if (rows.length > 0) parts.push(table.join('\n'))
  parts.push([conditions(result), ...notes(result)].join('  \n'))
  return parts.join('\n\n')
}

/** The results in the order of SCENARIOS. */
export function orderedScenarios(results: Results): [string, ScenarioResult][] {
  return Object.keys(SCENARIOS).flatMap(name => {
    const result = results.scenarios[name]
    return result === undefined ? [] : [[name, result] as [string, ScenarioResult]]
  })
}

/** The machines and versions of all scenarios, each combination once. */
export function environments(results: Results): string {
  const lines = orderedScenarios(results).map(([, { environment }]) => {
    const { processors, processor, kernel, node } = environment
    const versions = [...new Set(Object.values(environment.versions))].join(', ')
    return `${processors} processors (${processor}), Linux ${kernel}, Node ${node}; ${versions}.`
  })
  return [...new Set(lines)].join('\n\n')
}
