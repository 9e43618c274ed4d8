/**
 * Results as an SVG chart: one panel per scenario, one bar per peer, by the scenario's first metric.
 */
import { formatMetric, METRIC, type MetricName, metricTitle } from '../metric.ts'
import type { Results, ScenarioResult } from '../results.ts'
import { type Scenario, SCENARIOS } from '../scenarios.ts'
import { orderedScenarios } from './markdown.ts'
import { COLOUR, svgDocument, svgText } from './svg.ts'

const COLUMNS = 2
const PANEL_WIDTH = 500
const MARGIN = 24
const LABEL_WIDTH = 92
const VALUE_WIDTH = 84
const BAR_HEIGHT = 18
const BAR_GAP = 7
const TITLE_HEIGHT = 50
const HEADER_HEIGHT = 58

const HIGHLIGHTED = 'sluice'

interface Bar {
  readonly peer: string
  readonly value: number
}

interface Panel {
  readonly title: string
  readonly metric: MetricName
  readonly unit: string | undefined
  readonly bars: readonly Bar[]
}

function panelOf(name: string, result: ScenarioResult): Panel | undefined {
  const { columns: [metric] = [], unit } = SCENARIOS[name] ?? {}
  if (metric === undefined) return undefined
  const bars = Object.entries(result.peers).flatMap(([peer, { median }]) => {
    const value = median[metric]
    return value === undefined || !Number.isFinite(value) ? [] : [{ peer, value }]
  })
  return bars.length < 2 ? undefined : { title: result.title, metric, unit, bars }
}

function panelHeight(panel: Panel): number {
  return TITLE_HEIGHT + panel.bars.length * (BAR_HEIGHT + BAR_GAP) + MARGIN
}

function drawBar(bar: Bar, metric: MetricName, scale: number, y: number): string {
  const isHighlighted = bar.peer === HIGHLIGHTED
  const width = Math.max(1, bar.value * scale).toFixed(1)
  const fill = isHighlighted ? COLOUR.highlighted : COLOUR.other
  const middle = y + BAR_HEIGHT - 5
  const weight = isHighlighted ? 'font-weight="600"' : ''
  return [
    svgText(LABEL_WIDTH - 8, middle, 13, COLOUR.ink, bar.peer, `text-anchor="end" ${weight}`),
    `<rect x="${LABEL_WIDTH}" y="${y}" width="${width}" height="${BAR_HEIGHT}" rx="2" fill="${fill}"/>`,
    svgText(LABEL_WIDTH + Number(width) + 6, middle, 13, COLOUR.ink, formatMetric(metric, bar.value), weight),
  ].join('')
}

function drawPanel(panel: Panel, x: number, y: number): string {
  const { better } = METRIC[panel.metric]
  const title = metricTitle(panel.metric, panel.unit)
  const room = PANEL_WIDTH - LABEL_WIDTH - VALUE_WIDTH
  // Linear and from zero, so that lengths compare like values.
  const scale = room / Math.max(...panel.bars.map(bar => bar.value), Number.MIN_VALUE)
  const bars = panel.bars.map((bar, index) =>
    drawBar(bar, panel.metric, scale, TITLE_HEIGHT + index * (BAR_HEIGHT + BAR_GAP)),
  )
  const foot = TITLE_HEIGHT + panel.bars.length * (BAR_HEIGHT + BAR_GAP) - BAR_GAP + 4
  return [
    `<g transform="translate(${x} ${y})">`,
    svgText(0, 16, 14, COLOUR.ink, panel.title, 'font-weight="600"'),
    svgText(0, 35, 12, COLOUR.faint, `${title}, ${better === 'more' ? 'more is better' : 'less is better'}`),
    `<line x1="${LABEL_WIDTH}" x2="${LABEL_WIDTH}" y1="${TITLE_HEIGHT - 4}" y2="${foot}" stroke="${COLOUR.rule}"/>`,
    ...bars,
    '</g>',
  ].join('\n')
}

/** Undefined if no scenario of these kinds has two peers to compare. */
export function chart(results: Results, kinds: readonly Scenario['kind'][], heading: string): string | undefined {
  const panels = orderedScenarios(results).flatMap(([name, result]) => {
    return kinds.includes(SCENARIOS[name]!.kind) ? (panelOf(name, result) ?? []) : []
  })
  if (panels.length === 0) return undefined
  const columns = Math.min(COLUMNS, panels.length)
  const bottoms = new Array<number>(columns).fill(HEADER_HEIGHT)
  const drawn = panels.map(panel => {
    const column = bottoms.indexOf(Math.min(...bottoms))
    const y = bottoms[column]!
    bottoms[column] = y + panelHeight(panel)
    return drawPanel(panel, MARGIN + column * (PANEL_WIDTH + MARGIN), y)
  })
  const width = MARGIN + columns * (PANEL_WIDTH + MARGIN)
  const height = Math.max(...bottoms)
  return svgDocument(width, height, heading, drawn)
}
