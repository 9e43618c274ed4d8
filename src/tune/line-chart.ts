/**
 * A line chart: inline SVG with legend and axis around it as text of the page, which stays readable on narrow screens.
 * Colours are CSS variables of the page, so that the chart follows dark and light.
 */
import type { Interval } from './statistics.ts'

interface Series {
  readonly name: string
  /** Number of a colour of the page, from 1. */
  readonly colour: number
  /** In the order of the columns; NaN for none. */
  readonly values: readonly number[]
  /** All measured values of a column, drawn as dots. */
  readonly dots?: readonly (readonly number[])[]
  /** Drawn as a bar on each column. */
  readonly intervals?: readonly Interval[]
  /** Drawn as an area from column to column. */
  readonly band?: readonly Interval[]
  readonly isDashed?: boolean
}

interface Chart {
  readonly title: string
  readonly unit: string
  /** Labels of the x axis. */
  readonly columns: readonly string[]
  readonly axis: string
  readonly series: readonly Series[]
  /** Column -> words below its label, and the line of each from 1: one for each word, so that neighbours fit. */
  readonly marks?: ReadonlyMap<number, readonly (readonly [word: string, line: number])[]>
  /** The meanings of dots, bars and areas. */
  readonly about: string
  readonly isLogarithmic?: boolean
  /** A horizontal line with a word. */
  readonly level?: { readonly value: number; readonly name: string }
}

const [WIDTH, HEIGHT] = [720, 250]
const [LEFT, RIGHT, TOP] = [72, 20, 20]
/** Room for a line of text below the chart. */
const LINE = 20
const TICKS = 5
/** Half the width of the ends of an interval. */
const CAP = 4
/** Widths of a character, on wide and on narrow screens, where the text is larger than its chart. */
const [CHARACTER, NARROW_CHARACTER] = [7.5, 13]
/** With more columns not each has a label, so marks name theirs. */
const COLUMNS_MAX = 7

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

export function lineChart(chart: Chart): string {
  const { title, unit, columns, axis, series, marks, level, about } = chart
  const scale = scaleOf(chart)
  const step = (WIDTH - LEFT - RIGHT) / Math.max(1, columns.length)
  const x = (column: number): number => LEFT + step * (column + 0.5)
  const grid = scale.ticks.map(tick => {
    const at = scale.y(tick).toFixed(1)
    const label = textAt(LEFT - 8, Number(at) + 4, short(tick), 'faint', 'end')
    return `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at}" y2="${at}"/>${label}`
  })
  const [wide, narrow] = [CHARACTER, NARROW_CHARACTER].map(width => fitting(columns, x, width))
  const labels = columns.map((column, at) => {
    const below = (marks?.get(at) ?? []).map(([word, line]) => {
      const mark = columns.length > COLUMNS_MAX ? `${word}: ${column}` : word
      return labelAt(x(at), HEIGHT + LINE * (line + 1) - 3, mark, 'mark')
    })
    const kind = narrow!.has(at) ? 'faint' : 'faint second'
    return (wide!.has(at) ? labelAt(x(at), HEIGHT + LINE - 3, column, kind) : '') + below.join('')
  })
  const limit =
    level === undefined
      ? ''
      : `<path class="level" d="M${LEFT} ${scale.y(level.value)}H${WIDTH - RIGHT}"/>` +
        textAt(LEFT + 4, scale.y(level.value) + (scale.y(level.value) < 2 * TOP ? 20 : -5), level.name, 'mark', 'start')
  const lines = 1 + Math.max(0, ...(marks?.values().flatMap(own => own.map(([, line]) => line)) ?? []))
  const size = `0 0 ${WIDTH} ${HEIGHT + LINE * lines}`
  return [
    `<div class="legend"><span class="faint">${escapeHtml(unit)}</span>${legend(series)}</div>`,
    `<svg viewBox="${size}" role="img" aria-label="${escapeHtml(title)}">`,
    ...grid,
    ...labels,
    ...series.map(one => drawn(one, x, scale.y)),
    limit,
    '</svg>',
    `<p class="axis">${escapeHtml(axis)}</p>`,
    `<p class="about">${escapeHtml(about)}</p>`,
  ].join('\n')
}

/** Columns whose labels fit beside each other. */
function fitting(columns: readonly string[], x: (column: number) => number, character: number): ReadonlySet<number> {
  const fit = new Set<number>()
  let end = 0
  for (const [at, column] of columns.entries()) {
    const width = column.length * character
    const start = Math.min(x(at) - width / 2, WIDTH - width)
    if (start < end) continue
    fit.add(at)
    end = start + width
  }
  return fit
}

/** Centred, and within the chart on narrow screens too. */
function labelAt(x: number, y: number, text: string, kind: string): string {
  const isCut = x + (text.length * NARROW_CHARACTER) / 2 > WIDTH
  return isCut ? textAt(WIDTH, y, text, kind, 'end') : textAt(x, y, text, kind, 'middle')
}

function legend(series: readonly Series[]): string {
  return series.map(({ name, colour }) => `<span class="key key${colour}">${escapeHtml(name)}</span>`).join('')
}

function drawn(
  { values, dots, intervals, band, colour, isDashed }: Series,
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
  const bars = (intervals ?? []).flatMap(({ low, high }, at) => {
    if (!Number.isFinite(low + high)) return []
    const [left, right] = [x(at) - CAP, x(at) + CAP].map(end => end.toFixed(1))
    const [bottom, top] = [y(low), y(high)].map(end => end.toFixed(1))
    const ends = `M${left} ${bottom}H${right}M${left} ${top}H${right}`
    return [`<path class="line${colour}" d="${ends}M${x(at).toFixed(1)} ${bottom}V${top}"/>`]
  })
  return [areaOf(band ?? [], colour, x, y), line, ...bars, ...circles].join('')
}

function areaOf(
  band: readonly Interval[],
  colour: number,
  x: (at: number) => number,
  y: (v: number) => number,
): string {
  if (band.length === 0) return ''
  const corner = (value: number, at: number): string => `${x(at).toFixed(1)},${y(value).toFixed(1)}`
  const upper = band.map(({ high }, at) => corner(high, at))
  const lower = band.map(({ low }, at) => corner(low, at)).toReversed()
  return `<polygon class="fill${colour} band" points="${[...upper, ...lower].join(' ')}"/>`
}

function scaleOf({ series, isLogarithmic, level }: Chart): { y: (value: number) => number; ticks: readonly number[] } {
  const all = series.flatMap(({ values, dots, intervals, band }) => [
    ...values,
    ...(dots ?? []).flat(),
    ...[...(intervals ?? []), ...(band ?? [])].flatMap(({ low, high }) => [low, high]),
  ])
  const known = [...all, level?.value ?? Number.NaN].filter(value => Number.isFinite(value) && value > 0)
  const most = Math.max(...known, Number.MIN_VALUE)
  const span = HEIGHT - TOP
  if (isLogarithmic === true && known.length > 0) {
    const low = Math.floor(Math.log10(Math.min(...known)))
    const high = Math.max(low + 1, Math.ceil(Math.log10(most)))
    const y = (value: number): number => HEIGHT - ((Math.log10(Math.max(value, 10 ** low)) - low) / (high - low)) * span
    return { y, ticks: Array.from({ length: high - low + 1 }, (_, at) => 10 ** (low + at)) }
  }
  const step = niceStep(most / TICKS)
  const top = Math.ceil(most / step) * step
  return {
    y: value => HEIGHT - (value / top) * span,
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
