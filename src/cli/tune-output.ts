/** The output of `sluice tune` for people: curve over the clients, sizes, latencies, proposed changes. */
import { throughputAt } from '../tune/scalability.ts'
import { plural } from '../tune/plural.ts'
import { diffText, type Proposal, verdictText } from '../tune/proposals.ts'
import type { TuneResult } from '../tune/search.ts'
import { median } from '../tune/statistics.ts'
import { paint, table, type Terminal } from './terminal.ts'

const BAR = 40
const NO_PEAK = 'no number of clients'

export function printResult(output: Terminal, result: TuneResult, proposals: readonly Proposal[]): void {
  const { seed, repeats, clients, ceiling, generator, knobs, peak, scaling } = result
  const title = (text: string): unknown => output.write(`\n${paint(output, 'bold', text)}\n`)
  output.write(`seed ${seed}, ${repeats} repeats in random order, ${plural(clients, 'client')}\n`)
  const share = `${Math.round(generator.busy * 100)} % busy`
  const busy = `the load generator does ${rate(ceiling)} without the gateway, and was ${share}`
  if (!generator.isBottleneck) output.write(`${busy}: it was not the limit\n`)
  else output.write(`${paint(output, 'yellow', `${busy}: it may have been the limit, so the gateway may do more`)}\n`)

  title('Throughput by clients')
  const most = Math.max(...scaling.points.map(({ throughputs }) => median(throughputs)))
  for (const { clients: count, throughputs } of scaling.points) {
    const value = median(throughputs)
    const fitted = scaling.fit === null ? '' : `  law ${rate(throughputAt(scaling.fit, count))}`
    output.write(`${String(count).padStart(6)}  ${bar(value / most)} ${rate(value)}${fitted}\n`)
  }
  if (scaling.fit !== null) {
    const { contention, crosstalk, peakClients, explained, intervals } = scaling.fit
    const of = ({ low, high }: { low: number; high: number }, digits: number) =>
      `95 %: ${low.toFixed(digits)} to ${high.toFixed(digits)}`
    output.write(`contention ${contention.toFixed(4)} (${of(intervals.contention, 4)}), `)
    output.write(`crosstalk ${crosstalk.toFixed(6)} (${of(intervals.crosstalk, 6)}), `)
    output.write(`highest at ${Number.isFinite(peakClients) ? plural(Math.round(peakClients), 'client') : NO_PEAK}, `)
    output.write(`${Math.round(explained * 100)} % explained\n`)
  }

  for (const knob of knobs) {
    title(knob.key)
    const best = Math.max(...knob.points.map(({ throughput }) => throughput))
    for (const { value, throughput, p99Ms } of knob.points) {
      const marks = [value === knob.current ? 'current' : '', value === knob.optimum ? 'best' : ''].filter(Boolean)
      const figures = `${rate(throughput)}  p99 ${milliseconds(p99Ms)}  ${marks.join(', ')}`
      output.write(`${String(value).padStart(6)}  ${bar(throughput / best)} ${figures.trimEnd()}\n`)
    }
    output.write(`${verdictText(knob)}\n`)
  }

  title('Latency from the intended send time, open loop')
  const rows = result.open.map(point => [
    `${Math.round(point.share * 100)} %`,
    rate(point.rate),
    ...[point.p50Ms, point.p99Ms, point.p999Ms].map(milliseconds),
    String(point.errors),
  ])
  output.write(`peak ${rate(peak)}\n${table(output, ['of peak', 'rate', 'p50', 'p99', 'p99.9', 'errors'], rows)}`)
  if (result.p99TargetMs > 0) {
    const { knee, p99TargetMs } = result
    const found =
      knee === null ? 'no rate keeps' : `${rate(knee.rate)} (${Math.round(knee.share * 100)} % of the peak) keeps`
    output.write(`${found} a 99th percentile of ${p99TargetMs} ms\n`)
  }

  title('Proposed changes')
  output.write(proposals.length === 0 ? 'none: no other size is better by more than 3 %\n' : diffText(proposals))
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
