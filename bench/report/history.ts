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
/** In records without it, another metric of the table is compared. */
const PREFERRED: MetricName = 'cpuMicrosPerRequest'

/** The points of a run: one per scenario, variant of the gateway and reference. */
export function historyPoints({ scenarios }: Results): readonly HistoryPoint[] {
  return Object.entries(scenarios).flatMap(([scenario, result]) => pointsOf(scenario, result))
}

function pointsOf(scenario: string, { peers, startedAt, environment: { commit } }: ScenarioResult): HistoryPoint[] {
  const columns: readonly MetricName[] = SCENARIOS[scenario]?.columns ?? []
  const metric = [PREFERRED, ...columns].find(name => columns.includes(name) && METRIC[name].better !== 'neither')
  if (metric === undefined) return []
  const figure = (peer: string): number | undefined => peers[peer]?.median[metric]
  const candidates = Object.keys(peers).filter(name => name === 'sluice' || name.startsWith('sluice-'))
  return candidates.flatMap(candidate =>
    REFERENCES.flatMap((reference): HistoryPoint[] => {
      const [own, other] = [figure(candidate), figure(reference)]
      if (own === undefined || other === undefined || own <= 0 || other <= 0) return []
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
  const all = [...new Map([...known, ...fresh].map(point => [name(point), point])).values()]
  all.sort((one, other) => one.startedAt.localeCompare(other.startedAt))
  writeFileSync(file, `[\n${all.map(point => `  ${JSON.stringify(point)}`).join(',\n')}\n]\n`)
  return all
}

const COLUMNS = 3
const WIDTH = 320
const HEIGHT = 120
const MARGIN = 24
const TITLE = 44
const HEADER = 70
const RIGHT = 92
const DOT = 3
const LABEL_HEIGHT = 14
const STROKES: Readonly<Record<string, string>> = { nginx: COLOUR.highlighted, haproxy: '#b45309', ceiling: '#64748b' }

/** A panel per scenario: the ratio of each run, a line per reference. Undefined without a scenario of two runs. */
export function historyChart(points: readonly HistoryPoint[]): string | undefined {
  const panels = [...Map.groupBy(points, ({ scenario, candidate }) => `${scenario} ${candidate}`)].filter(
    ([, own]) => new Set(own.map(({ startedAt }) => startedAt)).size > 1,
  )
  if (panels.length === 0) return undefined
  const columns = Math.min(COLUMNS, panels.length)
  const drawn = panels.map(([title, own], index) => {
    const x = MARGIN + (index % columns) * (WIDTH + MARGIN)
    const y = HEADER + Math.floor(index / columns) * (TITLE + HEIGHT + MARGIN)
    return `<g transform="translate(${x} ${y})">${drawPanel(title, own)}</g>`
  })
  const width = MARGIN + columns * (WIDTH + MARGIN)
  const height = HEADER + Math.ceil(panels.length / columns) * (TITLE + HEIGHT + MARGIN)
  const heading = 'Cost relative to other proxies, run by run'
  const legend = svgText(MARGIN, 54, 12, COLOUR.faint, 'below 1: the gateway costs less; oldest run on the left')
  return svgDocument(width, height, heading, [legend, ...drawn])
}

function drawPanel(title: string, points: readonly HistoryPoint[]): string {
  const times = [...new Set(points.map(({ startedAt }) => startedAt))]
  const most = Math.max(1.1, ...points.map(({ ratio }) => ratio))
  const room = WIDTH - RIGHT
  const xOf = (startedAt: string): number => (times.indexOf(startedAt) * room) / Math.max(1, times.length - 1)
  const yOf = (ratio: number): number => TITLE + HEIGHT - (ratio / most) * HEIGHT
  const one = yOf(1).toFixed(1)
  const byReference = [...Map.groupBy(points, ({ reference }) => reference)]
  const labels = labelPlaces(byReference.map(([, own]) => yOf(own.at(-1)!.ratio)))
  const lines = byReference.map(([reference, own], line) => {
    const stroke = STROKES[reference] ?? COLOUR.other
    const places = own.map(({ startedAt, ratio }) => [xOf(startedAt), yOf(ratio)] as const)
    const path = places.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ')
    const dots = own.map(({ commit, startedAt, ratio }, index) => {
      const [x, y] = places[index]!
      const told = escapeXml(`${startedAt.slice(0, 10)} ${commit}: ${ratio.toFixed(2)} × ${reference}`)
      const place = `cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${DOT}"`
      return `<circle ${place} fill="${stroke}"><title>${told}</title></circle>`
    })
    const [x] = places.at(-1)!
    const label = svgText(x + 8, labels[line]! + 4, 12, stroke, `${own.at(-1)!.ratio.toFixed(2)} × ${reference}`)
    return [`<polyline points="${path}" fill="none" stroke="${stroke}" stroke-width="1.5"/>`, ...dots, label].join('')
  })
  return [
    svgText(0, 16, 14, COLOUR.ink, title, 'font-weight="600"'),
    svgText(0, 33, 12, COLOUR.faint, METRIC[points[0]!.metric].title),
    `<line x1="0" x2="${room}" y1="${one}" y2="${one}" stroke="${COLOUR.rule}" stroke-dasharray="4 3"/>`,
    ...lines,
  ].join('\n')
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
