/** Results as Markdown: one table per scenario, each with the command that repeats it. */
import { formatMetric, type MetricName, metricTitle, type Sample } from '../metric.ts'
import { verdictOf } from '../contest/paired-ratio.ts'
import { type Compared, disagreeing, type Results, type ScenarioResult } from '../results.ts'
import { SCENARIOS } from '../scenarios.ts'

/** Ratios are given to this peer where it was measured, but in contests. */
const REFERENCE = 'nginx'
/** The metrics that carry a ratio; beside every figure they would hide the figures. */
const RATED: readonly MetricName[] = ['requestsPerSecond', 'cpuMicrosPerRequest', 'cpuSecondsPerGigabyte', 'p99Ms']
/** What other programs may use without being mentioned. */
const OTHERS_PERCENT_MAX = 10
/** Enough of a failure to recognise it; the record holds the whole. */
const WHY_CHARS = 300

function cell(name: MetricName, sample: Sample, reference: Sample | undefined): string {
  const value = sample[name]
  const base = reference?.[name]
  const figure = formatMetric(name, value)
  if (value === undefined || base === undefined || base === 0 || !RATED.includes(name)) return figure
  return `${figure} (${(value / base).toFixed(2)}×)`
}

function notes(result: ScenarioResult): string[] {
  const lines: string[] = []
  for (const [peer, { disagreeing: marked, rounds }] of Object.entries(result.peers)) {
    if (marked.length === 0) continue
    lines.push(
      `† ${peer}: round ${marked.join(', ')} of ${rounds.length} differs from its median by more than a quarter.`,
    )
  }
  const drifted = disagreeing(result.probeMs)
  if (drifted.length > 0) {
    const rounds = drifted.map(index => index + 1).join(', ')
    lines.push(`‡ The machine changed speed by more than a quarter at round ${rounds}: repeat the run.`)
  }
  const others = Object.values(result.peers).flatMap(({ rounds }) => rounds.map(round => round.othersPercent ?? 0))
  const most = Math.max(0, ...others)
  if (most > OTHERS_PERCENT_MAX) {
    lines.push(`‡ Other programs used up to ${most.toFixed(0)} % of a processor meanwhile: repeat the run.`)
  }
  lines.push(...(result.compared ?? []).map(comparedText))
  for (const [peer, why] of Object.entries(result.skipped))
    lines.push(`${peer} was not measured: ${why.replace(/\s+/g, ' ').slice(0, WHY_CHARS)}`)
  return lines
}

function comparedText(compared: Compared): string {
  const { of, to, ratio, low, high, pairs, starts, limit } = compared
  const [middle, least, most] = [ratio, low, high].map(value => value.toFixed(3))
  const said = `${of} / ${to}, CPU per request: **${middle}** (95 %: ${least} to ${most})`
  const verdict = limit === undefined ? '' : ` At most ${limit}: ${verdictOf(compared, limit)}.`
  return `${said}, median of ${pairs} pairs of rounds, starts: ${starts}.${verdict}`
}

function conditions(result: ScenarioResult): string {
  const rounds = Math.max(0, ...Object.values(result.peers).map(peer => peer.rounds.length))
  const probe = result.probeMs.length === 0 ? [0] : result.probeMs
  const span = `${Math.min(...probe).toFixed(0)}–${Math.max(...probe).toFixed(0)} ms`
  const load = result.loadGenerator === 'none' ? '' : `, load from ${result.loadGenerator}, backend ${result.backend}`
  const when = `${result.startedAt.slice(0, 16)}Z, commit ${result.surroundings.commit}`
  return `${rounds} rounds of ${result.secondsPerRound} s${load}, speed probe ${span}, ${when}.`
}

export function scenarioTable(name: string, result: ScenarioResult): string {
  const peers = Object.entries(result.peers)
  const scenario = SCENARIOS[name]
  const { shows: shown = [], unit } = scenario ?? {}
  const failed = peers.some(([, { median }]) => (median.errors ?? 0) > 0)
  const columns: MetricName[] = [...shown, ...(failed ? (['errors'] as const) : [])]
  const reference = result.peers[scenario?.kind === 'contest' ? scenario.reference : REFERENCE]?.median
  const rows = peers.map(([peer, { median, disagreeing: marked }]) => {
    const cells = columns.map(column => cell(column, median, reference))
    return `| ${peer}${marked.length > 0 ? ' †' : ''} | ${cells.join(' | ')} |`
  })
  const table = [
    `| | ${columns.map(column => metricTitle(column, unit)).join(' | ')} |`,
    `|---|${columns.map(() => '---:').join('|')}|`,
    ...rows,
  ]
  const parts = [`### ${result.title}`, `    ${result.command}`]
  if (rows.length > 0) parts.push(table.join('\n'))
  parts.push([conditions(result), ...notes(result)].join('  \n'))
  return parts.join('\n\n')
}

/** In the order of the catalogue of scenarios, whatever the order in which they were run. */
export function orderedScenarios(results: Results): [string, ScenarioResult][] {
  return Object.keys(SCENARIOS).flatMap(name => {
    const result = results.scenarios[name]
    return result === undefined ? [] : [[name, result] as [string, ScenarioResult]]
  })
}

/** Where and with what the scenarios were run; those of one machine and one set of versions are said once. */
function surroundings(results: Results): string {
  const lines = orderedScenarios(results).map(([, { surroundings: s }]) => {
    const versions = [...new Set(Object.values(s.versions))].join(', ')
    return `${s.processors} processors (${s.processor}), Linux ${s.kernel}, Node ${s.node}; ${versions}.`
  })
  return [...new Set(lines)].join('\n\n')
}

export function resultsText(results: Results): string {
  const tables = orderedScenarios(results).map(([name, result]) => scenarioTable(name, result))
  return [surroundings(results), ...tables].join('\n\n')
}
