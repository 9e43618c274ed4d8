/** The report of `sluice tune` as one HTML page: no scripts, nothing from elsewhere, dark and light. */
import { caveatsOf } from './caveats.ts'
import { escapeHtml, lineChart } from './line-chart.ts'
import { plural } from './plural.ts'
import { diffText, NO_PROPOSAL, percent, type Proposal, valueText, verdictText } from './proposals.ts'
import { throughputAt } from './scalability.ts'
import type { TuneResult } from './search.ts'
import { type Interval, median } from './statistics.ts'
import type { KnobResult } from './verdict.ts'

interface Subject {
  readonly target: string
  readonly processors: number
}

const STYLE = `
:root { color-scheme: light dark; --paper: #fff; --ink: #1f2933; --faint: #5d6b79; --rule: #e3e8ee; --panel: #f6f8fa;
  --one: #0f766e; --two: #b45309; --three: #7c3aed; --good: #0f766e; --warn: #b45309; }
@media (prefers-color-scheme: dark) { :root { --paper: #12181f; --ink: #e6edf3; --faint: #9aa7b4; --rule: #2b3540;
  --panel: #1a222b; --one: #2dd4bf; --two: #fbbf24; --three: #c4b5fd; --good: #2dd4bf; --warn: #fbbf24; } }
body { margin: 0 auto; max-width: 760px; padding: 24px 20px 64px; background: var(--paper); color: var(--ink);
  font: 15px/1.55 system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; }
h1 { font-size: 24px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 36px 0 6px; }
p { margin: 4px 0 8px; } .faint { color: var(--faint); } .change { color: var(--good); font-weight: 600; }
.warn { color: var(--warn); font-weight: 600; }
svg { width: 100%; height: auto; display: block; }
svg text { font-size: 12px; fill: var(--faint); } svg text.mark { fill: var(--ink); font-weight: 600; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 13px; margin-top: 10px; }
.legend .faint { flex: 1 0 auto; } .key::before { content: ''; display: inline-block; width: 10px; height: 10px;
  border-radius: 2px; margin-right: 5px; background: var(--one); } .key2::before { background: var(--two); }
.key3::before { background: var(--three); }
.axis, .about { color: var(--faint); font-size: 13px; text-align: center; margin: 0; } .about { margin-bottom: 8px; }
.grid { stroke: var(--rule); } .level { fill: none; stroke: var(--warn); stroke-dasharray: 3 3; } .dot { opacity: .45; }
.band { opacity: .15; }
.line1, .line2, .line3 { fill: none; stroke-width: 2; stroke: var(--one); } .line2 { stroke: var(--two); }
.line3 { stroke: var(--three); }
.fill1 { fill: var(--one); } .fill2 { fill: var(--two); } .fill3 { fill: var(--three); }
pre { background: var(--panel); border: 1px solid var(--rule); border-radius: 6px; padding: 12px; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 4px 10px; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { color: var(--faint); font-weight: 500; vertical-align: bottom; }
@media (max-width: 600px) { body { padding: 16px 12px 48px; } svg text { font-size: 22px; } .second { display: none; }
  th, td { padding: 4px 2px; font-size: 11px; } th { white-space: normal; } td:first-child { white-space: normal; } }
`

export function htmlReport(result: TuneResult, proposals: readonly Proposal[], subject: Subject): string {
  const { seed, repeats, clients } = result
  const order = `${repeats} repeats in random order (seed ${seed})`
  const about = `${plural(clients, 'client')}, ${order}, ${plural(subject.processors, 'processor')}`
  const diff = proposals.length === 0 ? `<p>${NO_PROPOSAL}</p>` : `<pre>${escapeHtml(diffText(proposals))}</pre>`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>sluice tune ${escapeHtml(subject.target)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>sluice tune ${escapeHtml(subject.target)}</h1>
<p class="faint">${about}</p>
<p class="faint">${generatorText(result)}</p>
${caveatsOf(result)
  .map(caveat => `<p class="warn">${escapeHtml(sentence(caveat))}</p>`)
  .join('\n')}
<h2>Proposed changes</h2>
${diff}
<h2>Throughput by clients</h2>
${scaling(result)}
${result.knobs.map(knobSection).join('\n')}
<h2>Latency from the intended send time</h2>
${latencies(result)}
</body>
</html>
`
}

function generatorText({ ceiling, generator: { busy, isBottleneck } }: TuneResult): string {
  const text = `The load generator does ${rate(ceiling)} without the gateway, and was ${percent(busy)} busy`
  return isBottleneck ? `${text}.` : `${text}: it was not the limit.`
}

function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`
}

function scaling({ scaling: { points, fit } }: TuneResult): string {
  const measured = {
    name: 'measured',
    colour: 1,
    values: points.map(({ throughputs }) => median(throughputs)),
    dots: points.map(({ throughputs }) => throughputs),
  }
  const law = {
    name: 'scalability law',
    colour: 2,
    isDashed: true,
    values: fit === null ? [] : points.map(({ clients }) => throughputAt(fit, clients)),
    band: fit?.band ?? [],
  }
  const chart = lineChart({
    ...{ title: 'Throughput by clients', unit: 'responses per second', axis: 'clients' },
    columns: points.map(({ clients }) => String(clients)),
    about: `dots: the repeats${fit === null ? '' : '; area: 95 % interval of the law'}`,
    series: fit === null ? [measured] : [measured, law],
  })
  if (fit === null) return chart
  const { intervals } = fit
  const rows = [
    ['throughput of one client', rate(fit.rate), between(intervals.rate, value => rate(value))],
    ['contention', fit.contention.toFixed(4), between(intervals.contention, value => value.toFixed(4))],
    ['crosstalk', fit.crosstalk.toFixed(6), between(intervals.crosstalk, value => value.toFixed(6))],
    ['clients at the highest throughput', peakText(fit.peakClients), between(intervals.peakClients, peakText)],
    ['explained variance', `${Math.round(fit.explained * 100)} %`, ''],
  ]
  return chart + table(['Universal Scalability Law', 'fitted', '95 % interval'], rows)
}

function peakText(value: number): string {
  return Number.isFinite(value) ? String(Math.round(value)) : 'none seen'
}

/** May be broken after a dot or an underscore. */
function breakable(key: string): string {
  return escapeHtml(key).replaceAll(/[._]/g, '$&<wbr>')
}

function between({ low, high }: Interval, format: (value: number) => string): string {
  return `${format(low)} to ${format(high)}`
}

function knobSection(knob: KnobResult): string {
  const { points, current, optimum, key, unit, verdict } = knob
  const marks = new Map(
    points.flatMap(({ value }, at) => {
      const isBest = value === optimum && verdict !== 'same'
      const now = value === current ? [['current', 1] as const] : []
      const best = isBest ? [['best', 2] as const] : []
      return now.length + best.length === 0 ? [] : [[at, [...now, ...best]] as const]
    }),
  )
  const chart = lineChart({
    ...{ title: key, unit: 'responses per second', axis: unit, marks },
    about: 'dots: the repeats; bars: bootstrap interval of their median',
    columns: points.map(({ value }) => valueText(value)),
    series: [
      {
        ...{ name: 'median of the repeats', colour: 1, values: points.map(({ throughput }) => throughput) },
        dots: points.map(({ measured }) => measured.map(({ throughput }) => throughput)),
        intervals: points.map(({ interval }) => interval),
      },
    ],
  })
  const rows = points.map(point => [
    valueText(point.value),
    rounded(point.throughput),
    between(point.ofBest, share => share.toFixed(2)),
    milliseconds(point.p99Ms),
    percent(point.failed),
    disturbedText(point.disturbed),
  ])
  const heads = ['value', 'per second', 'of the best', 'p99 ms', 'failed', 'disturbed']
  const text = `<p class="${verdict}">${escapeHtml(verdictText(knob))}</p>`
  return `<h2>${breakable(key)}</h2>\n${text}\n${chart}${table(heads, rows)}`
}

function latencies({ open, peak, knee, p99TargetMs }: TuneResult): string {
  const found = knee === null ? 'No rate' : `${rate(knee.rate)} (${percent(knee.share)} of the peak)`
  const kept = `${found} keeps a 99th percentile of ${p99TargetMs} ms with at most 1 % of the requests failing.`
  const chart = lineChart({
    ...{ title: 'Latency by rate', unit: 'milliseconds', axis: 'share of the peak throughput', isLogarithmic: true },
    about: 'bars: lowest and highest 99th percentile of the repeats',
    marks: new Map(
      knee === null ? [] : [[open.findIndex(({ share }) => share === knee.share), [['knee', 1]]] as const],
    ),
    columns: open.map(({ share }) => percent(share)),
    series: [
      { name: 'p50', colour: 1, values: open.map(({ p50Ms }) => p50Ms) },
      {
        ...{ name: 'p99', colour: 2, values: open.map(({ p99Ms }) => p99Ms) },
        intervals: open.map(({ p99Interval }) => p99Interval),
      },
      { name: 'p99.9', colour: 3, values: open.map(({ p999Ms }) => p999Ms) },
    ],
    ...(p99TargetMs === 0 ? {} : { level: { value: p99TargetMs, name: `target ${p99TargetMs} ms` } }),
  })
  const rows = open.map(point => [
    percent(point.share),
    rate(point.rate),
    ...[point.p50Ms, point.p99Ms, point.p999Ms].map(milliseconds),
    percent(point.failed),
    disturbedText(point.disturbed),
  ])
  const heads = ['of the peak', 'rate', 'p50 ms', 'p99 ms', 'p99.9 ms', 'failed', 'disturbed']
  const knees = p99TargetMs === 0 ? '' : `<p>${kept}</p>`
  const about = `<p class="faint">Open loop; the peak is ${rate(peak)} with the proposed sizes.</p>`
  return about + knees + chart + table(heads, rows)
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  // A column without any text is left out.
  const isUsed = heads.map((_, at) => rows.some(row => row[at] !== ''))
  const cells = (tag: string, row: readonly string[]) =>
    row.map((cell, at) => (isUsed[at] ? `<${tag}>${escapeHtml(cell)}</${tag}>` : '')).join('')
  const body = rows.map(row => `<tr>${cells('td', row)}</tr>`).join('\n')
  return `<div class="table"><table><tr>${cells('th', heads)}</tr>\n${body}</table></div>`
}

function rounded(value: number): string {
  return Math.round(value).toLocaleString('en')
}

function rate(value: number): string {
  return `${rounded(value)}/s`
}

function milliseconds(value: number): string {
  return Number.isNaN(value) ? 'none' : String(Number(value.toPrecision(3)))
}

/** Repeats that other programs have disturbed. */
function disturbedText(disturbed: number): string {
  return disturbed === 0 ? '' : String(disturbed)
}
