/** The output of `sluice tune` for people: curve over the clients, sizes, latencies, proposed changes. */
import { caveatsOf } from '../tune/caveats.ts'
import { plural } from '../tune/plural.ts'
import { diffText, NO_PROPOSAL, percent, type Proposal, valueText, verdictText } from '../tune/proposals.ts'
import { throughputAt } from '../tune/scalability.ts'
import type { TuneResult } from '../tune/search.ts'
import { median } from '../tune/statistics.ts'
import type { KnobResult } from '../tune/verdict.ts'
import { paint, table, type Terminal } from './terminal.ts'

const BAR = 40
const NO_PEAK = 'no number of clients'

export function printResult(output: Terminal, result: TuneResult, proposals: readonly Proposal[]): void {
  const { seed, repeats, clients, ceiling, generator, knobs } = result
  output.write(`seed ${seed}, ${repeats} repeats in random order, ${plural(clients, 'client')}\n`)
  const busy = `the load generator does ${rate(ceiling)} without the gateway, and was ${percent(generator.busy)} busy`
  output.write(`${busy}${generator.isBottleneck ? '' : ': it was not the limit'}\n`)
  for (const caveat of caveatsOf(result)) output.write(`${paint(output, 'yellow', caveat)}\n`)
  printScaling(output, result)
  for (const knob of knobs) printKnob(output, knob, repeats)
  printLatencies(output, result)
  title(output, 'Proposed changes')
  output.write(proposals.length === 0 ? `${NO_PROPOSAL}\n` : diffText(proposals))
}

function title(output: Terminal, text: string): void {
  output.write(`\n${paint(output, 'bold', text)}\n`)
}

function printScaling(output: Terminal, { scaling: { points, fit }, repeats }: TuneResult): void {
  title(output, 'Throughput by clients')
  const most = Math.max(...points.map(({ throughputs }) => median(throughputs)))
  for (const { clients: count, throughputs, disturbed } of points) {
    const value = median(throughputs)
    const fitted = fit === null ? '' : `  law ${rate(throughputAt(fit, count))}`
    const line = `${rate(value)}${fitted}${disturbedText(disturbed, repeats)}`
    output.write(`${String(count).padStart(8)}  ${bar(value / most)} ${line}\n`)
  }
  if (fit === null) return
  const { contention, crosstalk, peakClients, explained, intervals } = fit
  const of = ({ low, high }: { low: number; high: number }, digits: number) =>
    `95 %: ${low.toFixed(digits)} to ${high.toFixed(digits)}`
  output.write(`contention ${contention.toFixed(4)} (${of(intervals.contention, 4)}), `)
  output.write(`crosstalk ${crosstalk.toFixed(6)} (${of(intervals.crosstalk, 6)}), `)
  output.write(`highest at ${Number.isFinite(peakClients) ? plural(Math.round(peakClients), 'client') : NO_PEAK}, `)
  output.write(`${percent(explained)} explained\n`)
}

function printKnob(output: Terminal, knob: KnobResult, repeats: number): void {
  title(output, `${knob.key}, ${knob.unit}`)
  const { points, current, optimum, verdict } = knob
  const best = Math.max(...points.map(({ throughput }) => throughput))
  for (const { value, throughput, p99Ms, failed, disturbed } of points) {
    const isBest = value === optimum && verdict !== 'same'
    const marks = [value === current ? 'current' : '', isBest ? 'best' : ''].filter(Boolean)
    const failing = percent(failed) === '0 %' ? '' : `  ${percent(failed)} fail`
    const figures = `${rate(throughput)}  p99 ${milliseconds(p99Ms)}${failing}  ${marks.join(', ')}`
    const line = `${figures.trimEnd()}${disturbedText(disturbed, repeats)}`
    output.write(`${valueText(value).padStart(8)}  ${bar(throughput / best)} ${line}\n`)
  }
  output.write(`${verdictText(knob)}\n`)
}

function printLatencies(output: Terminal, { open, peak, p99TargetMs, knee, repeats }: TuneResult): void {
  title(output, 'Latency from the intended send time, open loop')
  const rows = open.map(point => [
    percent(point.share),
    rate(point.rate),
    ...[point.p50Ms, point.p99Ms, point.p999Ms].map(milliseconds),
    percent(point.failed),
    point.disturbed === 0 ? '' : `${point.disturbed} of ${repeats}`,
  ])
  const heads = ['of peak', 'rate', 'p50', 'p99', 'p99.9', 'failed', 'disturbed']
  output.write(`peak ${rate(peak)}\n${table(output, heads, rows)}`)
  if (p99TargetMs === 0) return
  const found = knee === null ? 'no rate keeps' : `${rate(knee.rate)} (${percent(knee.share)} of the peak) keeps`
  output.write(`${found} a 99th percentile of ${p99TargetMs} ms with at most 1 % of the requests failing\n`)
}

function disturbedText(disturbed: number, repeats: number): string {
  return disturbed === 0 ? '' : `  ${disturbed} of ${repeats} disturbed`
}

function bar(share: number): string {
  const length = Number.isFinite(share) ? Math.round(share * BAR) : 0
  return `${'█'.repeat(length)}${' '.repeat(BAR - length)}`
}

function rate(value: number): string {
  return `${Math.round(value).toLocaleString('en')}/s`
}

function milliseconds(value: number): string {
  return Number.isNaN(value) ? 'none' : `${Number(value.toPrecision(3))} ms`
}
