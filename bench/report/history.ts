/**
 * The history of published runs: for each scenario what the gateway costs relative to other proxies of the same run.
 * Ratios of one run compare with those of another; figures of different days and machines do not.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { METRIC, type MetricName } from '../metric.ts'
import type { Results, ScenarioResult } from '../results.ts'
import { SCENARIOS } from '../scenarios.ts'
import { COLOUR, escapeXml, svgDocument, svgText } from './svg.ts'

/** A point of the history. */
interface HistoryPoint {
  readonly scenario: string
  readonly candidate: string
  readonly reference: string
  readonly metric: MetricName
  /** Cost of the candidate divided by that of the reference; below 1 the gateway is cheaper. */
  readonly ratio: number
  readonly commit: string
  readonly startedAt: string
}

const REFERENCES = ['nginx', 'haproxy', 'ceiling'] as const
/** In tables without these, the first other metric that both peers have is compared. */
const PREFERRED: readonly MetricName[] = ['cpuMicrosPerRequest', 'besideP99Ms']

/** The points of a run: one per scenario, variant of the gateway and reference. */
export function historyPoints({ scenarios }: Results): readonly HistoryPoint[] {
  return Object.entries(scenarios).flatMap(([scenario, result]) => pointsOf(scenario, result))
}

function pointsOf(scenario: string, { peers, startedAt, environment: { commit } }: ScenarioResult): HistoryPoint[] {
  const columns: readonly MetricName[] = SCENARIOS[scenario]?.columns ?? []
  const metrics = [...PREFERRED, ...columns].filter(name => columns.includes(name) && METRIC[name].better !== 'neither')
  // A record has null where a round had no figure.
  const figure = (peer: string, metric: MetricName): number => peers[peer]?.median[metric] ?? Number.NaN
  const candidates = Object.keys(peers).filter(name => name === 'sluice' || name.startsWith('sluice-'))
  return candidates.flatMap(candidate =>
    REFERENCES.flatMap((reference): HistoryPoint[] => {
      const metric = metrics.find(name => figure(candidate, name) > 0 && figure(reference, name) > 0)
      if (metric === undefined) return []
      const [own, other] = [figure(candidate, metric), figure(reference, metric)]
      const ratio = METRIC[metric].better === 'less' ? own / other : other / own
      return [{ scenario, candidate, reference, metric, ratio: Number(ratio.toFixed(3)), commit, startedAt }]
    }),
  )
}

/** Adds points to a file, in the order of time; a run that is published again replaces itself. */
export function addHistory(file: string, fresh: readonly HistoryPoint[]): readonly HistoryPoint[] {
  const known = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as readonly HistoryPoint[]) : []
  const name = ({ scenario, candidate, reference, startedAt }: HistoryPoint): string =>
    [scenario, candidate, reference, startedAt].join(' ')
  const figures = [...known, ...fresh].filter(({ ratio }) => Number.isFinite(ratio))
  const all = [...new Map(figures.map(point => [name(point), point])).values()]
  all.sort((one, other) => one.startedAt.localeCompare(other.startedAt))
  writeFileSync(file, `[\n${all.map(point => `  ${JSON.stringify(point)}`).join(',\n')}\n]\n`)
  return all
}

const COLUMNS = 3
const WIDTH = 320
const HEIGHT = 120
const MARGIN = 24
/** Above the lines: title and metric. */
const TITLE = 48
/** Below the lines: days. */
const DAYS = 26
const HEADER = 74
/** Left of the lines: figures of the axis. */
const LEFT = 30
/** Right of the lines: the last ratios. */
const RIGHT = 92
const DOT = 3.5
const LABEL_HEIGHT = 14
const STROKES: Readonly<Record<string, string>> = { nginx: COLOUR.highlighted, haproxy: '#b45309', ceiling: '#475569' }
/** Ratios that the axis names where there is room; the first ones first. */
const TICKS = [1, 0.5, 2, 0.1, 10, 0.2, 5, 0.01, 0.05, 0.02, 20, 50, 0.75, 1.5, 1.25]
/** Least range of an axis: a small change stays small. */
const RANGE_LOW = 0.7
const RANGE_HIGH = 1.4
/** A line above the greatest and below the least ratio. */
const PADDING = 1.08
const TICK_DISTANCE = 16

/** A panel per scenario: the ratio of each run, a line per reference. Undefined without a scenario of two runs. */
export function historyChart(points: readonly HistoryPoint[]): string | undefined {
  const panels = panelsOf(points).filter(([, own]) => new Set(own.map(({ startedAt }) => startedAt)).size > 1)
  if (panels.length === 0) return undefined
  const columns = Math.min(COLUMNS, panels.length)
  const panelHeight = TITLE + HEIGHT + DAYS + MARGIN
  const drawn = panels.map(([title, own], index) => {
    const x = MARGIN + (index % columns) * (WIDTH + MARGIN)
    const y = HEADER + Math.floor(index / columns) * panelHeight
    return `<g transform="translate(${x} ${y})">${drawPanel(title, own)}</g>`
  })
  const width = MARGIN + columns * (WIDTH + MARGIN)
  const height = HEADER + Math.ceil(panels.length / columns) * panelHeight
  const heading = 'Cost relative to other proxies, run by run'
  const told = 'below 1: the gateway costs less; oldest run on the left; scenarios of two published runs or more'
  return svgDocument(width, height, heading, [svgText(MARGIN, 56, 12, COLOUR.faint, told), ...drawn])
}

/** The points of each scenario and variant of the gateway. */
function panelsOf(points: readonly HistoryPoint[]): [string, HistoryPoint[]][] {
  return [...Map.groupBy(points, ({ scenario, candidate }) => `${scenario}: ${candidate}`)]
}

/** Height of a ratio in a panel: logarithmic, so that twice and half are equally far from 1. */
function scaleOf(ratios: readonly number[]): (ratio: number) => number {
  const low = Math.log(Math.min(RANGE_LOW, ...ratios.map(ratio => ratio / PADDING)))
  const high = Math.log(Math.max(RANGE_HIGH, ...ratios.map(ratio => ratio * PADDING)))
  return ratio => TITLE + ((high - Math.log(ratio)) / (high - low)) * HEIGHT
}

function drawPanel(title: string, points: readonly HistoryPoint[]): string {
  const times = [...new Set(points.map(({ startedAt }) => startedAt))]
  const right = WIDTH - RIGHT
  const yOf = scaleOf(points.map(({ ratio }) => ratio))
  const step = (right - LEFT) / Math.max(1, times.length - 1)
  const xOf = (startedAt: string): number => LEFT + times.indexOf(startedAt) * step
  const byReference = [...Map.groupBy(points, ({ reference }) => reference)]
  const labels = labelPlaces(byReference.map(([, own]) => yOf(own.at(-1)!.ratio)))
  const lines = byReference.map(([reference, own], line) => drawLine(reference, own, labels[line]!, xOf, yOf))
  const days = [times[0]!, times.at(-1)!].map(startedAt => startedAt.slice(0, 10))
  const below = TITLE + HEIGHT + 18
  return [
    svgText(0, 16, 14, COLOUR.ink, title, 'font-weight="600"'),
    svgText(0, 33, 12, COLOUR.faint, METRIC[points[0]!.metric].title),
    ...ticks(yOf, right),
    svgText(LEFT, below, 11, COLOUR.faint, days[0]!),
    ...(days[0] === days[1] ? [] : [svgText(right, below, 11, COLOUR.faint, days[1]!, 'text-anchor="end"')]),
    ...lines,
  ].join('\n')
}

function drawLine(
  reference: string,
  points: readonly HistoryPoint[],
  labelY: number,
  xOf: (startedAt: string) => number,
  yOf: (ratio: number) => number,
): string {
  const stroke = STROKES[reference] ?? COLOUR.other
  const places = points.map(({ startedAt, ratio }) => [xOf(startedAt), yOf(ratio)] as const)
  const path = places.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ')
  const dots = points.map(({ commit, startedAt, ratio }, index) => {
    const [x, y] = places[index]!
    const told = escapeXml(`${startedAt.slice(0, 10)} ${commit}: ${ratio.toFixed(2)} × ${reference}`)
    const place = `cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${DOT}"`
    return `<circle ${place} fill="${stroke}"><title>${told}</title></circle>`
  })
  const label = `${points.at(-1)!.ratio.toFixed(2)} × ${reference}`
  const named = svgText(WIDTH - RIGHT + 9, labelY + 4, 12, stroke, label)
  return [`<polyline points="${path}" fill="none" stroke="${stroke}" stroke-width="2"/>`, ...dots, named].join('')
}

/** Lines of the axis; that of 1, where both cost the same, stands out. */
function ticks(yOf: (ratio: number) => number, right: number): readonly string[] {
  const shown: number[] = []
  for (const tick of TICKS) {
    const isInside = yOf(tick) >= TITLE && yOf(tick) <= TITLE + HEIGHT
    if (isInside && shown.every(other => Math.abs(yOf(tick) - yOf(other)) >= TICK_DISTANCE)) shown.push(tick)
  }
  return shown.flatMap(tick => {
    const y = yOf(tick).toFixed(1)
    const look = tick === 1 ? `stroke="${COLOUR.faint}" stroke-dasharray="5 3"` : `stroke="${COLOUR.rule}"`
    const figure = svgText(LEFT - 6, Number(y) + 4, 11, COLOUR.faint, String(tick), 'text-anchor="end"')
    return [`<line x1="${LEFT}" x2="${right}" y1="${y}" y2="${y}" ${look}/>`, figure]
  })
}

/** Heights of labels near these heights, in their order, that do not overlap. */
function labelPlaces(heights: readonly number[]): readonly number[] {
  const places = new Array<number>(heights.length).fill(0)
  let least = Number.NEGATIVE_INFINITY
  for (const [index, height] of [...heights.entries()].sort(([, one], [, other]) => one - other)) {
    least = Math.max(height, least + LABEL_HEIGHT)
    places[index] = least
  }
  return places
}

/** Every ratio of the history as a page: a row per scenario, variant of the gateway and reference. */
export function historyText(points: readonly HistoryPoint[]): string {
  const rows = panelsOf(points).flatMap(([, own]) => {
    return [...Map.groupBy(own, ({ reference }) => reference)].map(([reference, runs]) => {
      const { scenario, candidate, metric } = runs[0]!
      const ratios = runs.map(
        ({ ratio, startedAt, commit }) => `${ratio.toFixed(2)} (${startedAt.slice(0, 10)} ${commit})`,
      )
      return `| ${[scenario, `${candidate} / ${reference}`, METRIC[metric].title, ratios.join(', ')].join(' | ')} |`
    })
  })
  const parts = [
    '# Cost relative to other proxies, run by run',
    'Written by `npm run bench:all`. Ratios of the same run, oldest first; below 1 the gateway costs less.',
    ['| Scenario | Ratio | Metric | Runs |', '|---|---|---|---|', ...rows].join('\n'),
  ]
  return `${parts.join('\n\n')}\n`
}
