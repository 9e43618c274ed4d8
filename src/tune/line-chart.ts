/** A line chart as inline SVG. Its colours are CSS variables of the page, so that it follows dark and light. */
import type { Interval } from './statistics.ts'

interface Series {
  readonly name: string
  /** Number of a colour of the page, from 1. */
  readonly colour: number
  /** In the order of the columns; NaN for none. */
  readonly values: readonly number[]
  /** All measured values of a column, drawn as dots. */
  readonly dots?: readonly (readonly number[])[]
  readonly intervals?: readonly Interval[]
  readonly isDashed?: boolean
}

interface Chart {
  readonly title: string
  readonly unit: string
  /** Labels of the x axis. */
  readonly columns: readonly string[]
  readonly axis: string
  readonly series: readonly Series[]
  /** Column -> word below its label. */
  readonly marks?: ReadonlyMap<number, string>
  readonly isLogarithmic?: boolean
  /** A horizontal line with a word. */
  readonly level?: { readonly value: number; readonly name: string }
}

const [WIDTH, HEIGHT] = [720, 300]
const [LEFT, RIGHT, TOP, BOTTOM] = [72, 20, 40, 58]
const TICKS = 5
/** Average width. */
const CHARACTER = 6.6

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

export function lineChart(chart: Chart): string {
  const { title, unit, columns, axis, series, marks, level } = chart
  const scale = scaleOf(chart)
  const step = (WIDTH - LEFT - RIGHT) / Math.max(1, columns.length)
  const x = (column: number): number => LEFT + step * (column + 0.5)
  const grid = scale.ticks.map(tick => {
    const at = scale.y(tick).toFixed(1)
    const label = textAt(LEFT - 8, Number(at) + 4, short(tick), 'faint', 'end')
    return `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at}" y2="${at}"/>${label}`
  })
  const labels = columns.map((column, at) => {
    const mark = marks?.get(at)
    const below = mark === undefined ? '' : textAt(x(at), HEIGHT - BOTTOM + 32, mark, 'mark', 'middle')
    return textAt(x(at), HEIGHT - BOTTOM + 17, column, 'faint', 'middle') + below
  })
  const limit =
    level === undefined
      ? ''
      : `<path class="level" d="M${LEFT} ${scale.y(level.value)}H${WIDTH - RIGHT}"/>` +
        textAt(LEFT + 4, scale.y(level.value) - 5, level.name, 'mark', 'start')
  return [
    `<div class="chart"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(title)}">`,
    textAt(LEFT, 16, unit, 'faint', 'start'),
    legend(series),
    ...grid,
    ...labels,
    textAt((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, axis, 'faint', 'middle'),
    limit,
    ...series.map(one => drawn(one, x, scale.y)),
    '</svg></div>',
  ].join('\n')
}

function legend(series: readonly Series[]): string {
  let at = WIDTH - RIGHT
  return series
    .toReversed()
    .map(({ name, colour }) => {
      at -= name.length * CHARACTER
      const text = textAt(at, 16, name, 'ink', 'start')
      const swatch = `<rect class="fill${colour}" x="${(at - 13).toFixed(1)}" y="7" width="9" height="9" rx="2"/>`
      at -= 30
      return text + swatch
    })
    .join('')
}

function drawn(
  { values, dots, intervals, colour, isDashed }: Series,
  x: (at: number) => number,
  y: (v: number) => number,
) {
  const points = values.flatMap((value, at) =>
    Number.isFinite(value) ? [`${x(at).toFixed(1)},${y(value).toFixed(1)}`] : [],
  )
  const dash = isDashed === true ? ' stroke-dasharray="6 4"' : ''
  const line = `<polyline class="line${colour}"${dash} points="${points.join(' ')}"/>`
  const circles = (dots ?? []).flatMap((own, at) =>
    own.map(
      value => `<circle class="fill${colour} dot" cx="${x(at).toFixed(1)}" cy="${y(value).toFixed(1)}" r="2.5"/>`,
    ),
  )
  const bars = (intervals ?? []).map(({ low, high }, at) => {
    const column = x(at).toFixed(1)
    return `<path class="line${colour}" d="M${column} ${y(low).toFixed(1)}V${y(high).toFixed(1)}"/>`
  })
  return [line, ...bars, ...circles].join('')
}

function scaleOf({ series, isLogarithmic, level }: Chart): { y: (value: number) => number; ticks: readonly number[] } {
  const all = series.flatMap(({ values, dots, intervals }) => [
    ...values,
    ...(dots ?? []).flat(),
    ...(intervals ?? []).flatMap(({ low, high }) => [low, high]),
  ])
  const known = [...all, level?.value ?? Number.NaN].filter(value => Number.isFinite(value) && value > 0)
  const most = Math.max(...known, Number.MIN_VALUE)
  const span = HEIGHT - TOP - BOTTOM
  if (isLogarithmic === true && known.length > 0) {
    const low = Math.floor(Math.log10(Math.min(...known)))
    const high = Math.max(low + 1, Math.ceil(Math.log10(most)))
    const y = (value: number): number =>
      HEIGHT - BOTTOM - ((Math.log10(Math.max(value, 10 ** low)) - low) / (high - low)) * span
    return { y, ticks: Array.from({ length: high - low + 1 }, (_, at) => 10 ** (low + at)) }
  }
  const step = niceStep(most / TICKS)
  const top = Math.ceil(most / step) * step
  return {
    y: value => HEIGHT - BOTTOM - (value / top) * span,
    ticks: Array.from({ length: Math.round(top / step) + 1 }, (_, at) => at * step),
  }
}

/** 1, 2 or 5 times a power of ten. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least))
  return power * (least / power <= 1 ? 1 : least / power <= 2 ? 2 : least / power <= 5 ? 5 : 10)
}

function short(value: number): string {
  if (value >= 1_000_000) return `${Number((value / 1_000_000).toPrecision(3))}M`
  return value >= 10_000 ? `${Number((value / 1000).toPrecision(3))}k` : String(Number(value.toPrecision(3)))
}

function textAt(x: number, y: number, text: string, kind: string, anchor: string): string {
  const place = `x="${x.toFixed(1)}" y="${y.toFixed(1)}"`
  return `<text class="${kind}" ${place} text-anchor="${anchor}">${escapeHtml(text)}</text>`
}
