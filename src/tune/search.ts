/**
 * The search of `sluice tune`: measures a system with one size changed at a time, repeats in random order, and proposes
 * only what the repeats decide. The system is a gateway under load, or a simulated one.
 */
import { fitScaling, type ScalingFit, type ScalingPoint } from './scalability.ts'
import { plural } from './plural.ts'
import { type Disturbance, type MeasuredPoint, Series, type SeriesOptions } from './series.ts'
import { type Interval, median, quantile, SeededRandom } from './statistics.ts'
import type { Measured, Sizes, System } from './system.ts'
import { decide, failedShare, type Knob, type KnobResult } from './verdict.ts'

export interface SearchOptions extends SeriesOptions {
  readonly seed: number
  readonly clients: number
  /** Longest 99th percentile in milliseconds; 0: none is wanted. */
  readonly p99Ms: number
}

interface ScalingResult extends ScalingPoint {
  readonly failed: number
  readonly failures: Readonly<Record<string, number>>
  readonly disturbed: number
}

/** The same sizes had another throughput in a later part. */
interface Drift {
  readonly from: string
  readonly to: string
  readonly ratio: number
}

interface OpenPoint {
  /** Part of the peak. */
  readonly share: number
  readonly rate: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  /** Lowest and highest of the repeats. */
  readonly p99Interval: Interval
  readonly errors: number
  /** Share of the requests that failed. */
  readonly failed: number
  readonly disturbed: number
}

export interface TuneResult {
  readonly seed: number
  readonly clients: number
  readonly repeats: number
  readonly p99TargetMs: number
  readonly ceiling: number
  /** Highest busy share of the generator in a closed loop, and whether it may have been the limit. */
  readonly generator: { readonly busy: number; readonly isBottleneck: boolean }
  readonly others: Disturbance
  /** Null: the same sizes had the same throughput from beginning to end. */
  readonly drift: Drift | null
  readonly scaling: { readonly points: readonly ScalingResult[]; readonly fit: ScalingFit | null }
  readonly knobs: readonly KnobResult[]
  /** Throughput with the proposed sizes. */
  readonly peak: number
  readonly open: readonly OpenPoint[]
  /** Highest rate that keeps the target at all lower rates too; null: none does, or there is no target. */
  readonly knee: OpenPoint | null
}

const SHARES = [0.3, 0.5, 0.7, 0.8, 0.9, 0.95]
/** Nearer to the ceiling, or busier, the generator may be what limits. */
const CEILING_SHARE = 0.8
const BUSY_MAX = 0.9

/** The same sizes have a throughput that differs by more than this: something changed meanwhile. */
const DRIFT = 1.25
/** With a larger share of failed requests no rate keeps a target. */
const FAILED_MAX = 0.01

export async function tune(system: System, knobs: readonly Knob[], options: SearchOptions): Promise<TuneResult> {
  const search = new Search(system, knobs, options)
  return search.run()
}

/** Measurements of the same sizes with the same clients, in the order of time. */
interface Reference {
  readonly during: string
  readonly throughput: number
}

class Search {
  readonly #system: System
  readonly #knobs: readonly Knob[]
  readonly #options: SearchOptions
  readonly #random: SeededRandom
  readonly #levels: readonly number[]
  readonly #series: Series
  readonly #sizes: Record<string, number> = {}
  readonly #drifts: Drift[] = []
  #reference: Reference | null = null

  constructor(system: System, knobs: readonly Knob[], options: SearchOptions) {
    this.#system = system
    this.#knobs = knobs
    this.#options = options
    this.#random = new SeededRandom(options.seed)
    this.#levels = levelsTo(options.clients)
    const values = knobs.reduce((sum, knob) => sum + knob.values.length, 0)
    const planned = 1 + options.repeats * (this.#levels.length + values + 1 + SHARES.length)
    this.#series = new Series(system, this.#random, planned, options)
  }

  async run(): Promise<TuneResult> {
    const { seed, clients, repeats, p99Ms } = this.#options
    for (const knob of this.#knobs) Object.assign(this.#sizes, sizesOf(knob, knob.current))
    await this.#system.configure(this.#sizes)
    const stub = { doing: 'ceiling of the load generator', measure: () => this.#system.ceiling(clients) }
    const ceiling = await this.#series.once(stub, this.#sizes)
    // The ceiling run has no gateway to limit it: its generator is meant to be busy.
    this.#series.takeHighest()
    const scaling = await this.#scaling()
    const knobs: KnobResult[] = []
    for (const knob of this.#knobs) knobs.push(await this.#vary(knob))
    await this.#system.configure(this.#sizes)
    const [peaks] = await this.#series.run([this.#closed('peak', clients)], this.#sizes)
    const peak = throughputOf(peaks!)
    this.#compare('peak', peak)
    const { busy, throughput } = this.#series.takeHighest()
    const isBottleneck = busy > BUSY_MAX || throughput > ceiling.throughput * CEILING_SHARE
    const open = await this.#latencies(peak)
    const fit = fitScaling(scaling, this.#random)
    const missed = open.findIndex(point => !(point.p99Ms <= p99Ms && point.failed <= FAILED_MAX))
    const knee = p99Ms === 0 ? null : (open[missed === -1 ? open.length - 1 : missed - 1] ?? null)
    return {
      ...{ seed, clients, repeats, p99TargetMs: p99Ms, ceiling: ceiling.throughput },
      ...{ generator: { busy, isBottleneck }, others: this.#series.disturbance, drift: this.#drift },
      ...{ scaling: { points: scaling, fit }, knobs, peak, open, knee },
    }
  }

  #closed(doing: string, clients: number) {
    return { doing, measure: () => this.#system.closed(clients) }
  }

  async #scaling(): Promise<readonly ScalingResult[]> {
    const points = this.#levels.map(level => this.#closed(plural(level, 'client'), level))
    const series = await this.#series.run(points, this.#sizes)
    this.#compare('throughput by clients', throughputOf(series.at(-1)!))
    return series.map(({ measured, disturbed }, at) => ({
      ...{ clients: this.#levels[at]!, throughputs: measured.map(({ throughput }) => throughput) },
      ...{ failed: failedShare(measured), failures: failuresOf(measured), disturbed },
    }))
  }

  async #vary(knob: Knob): Promise<KnobResult> {
    const points = knob.values.map(value => ({
      doing: `${knob.key} = ${value}`,
      measure: async () => {
        await this.#system.configure({ ...this.#sizes, ...sizesOf(knob, value) })
        return this.#system.closed(this.#options.clients)
      },
    }))
    const series = await this.#series.run(points, this.#sizes)
    const result = decide(knob, series, this.#options.p99Ms, this.#random)
    const throughputWith = (wanted: number): number => result.points.find(({ value }) => value === wanted)!.throughput
    this.#compare(knob.key, throughputWith(knob.current))
    if (result.verdict !== 'change') return result
    Object.assign(this.#sizes, sizesOf(knob, result.optimum))
    this.#reference = { during: knob.key, throughput: throughputWith(result.optimum) }
    return result
  }

  async #latencies(peak: number): Promise<readonly OpenPoint[]> {
    const { clients } = this.#options
    const points = SHARES.map(share => ({
      doing: `open loop at ${Math.round(share * 100)} %`,
      measure: () => this.#system.open(Math.max(1, peak * share), clients),
    }))
    const series = await this.#series.run(points, this.#sizes)
    return series.map(({ measured, disturbed }, at) => {
      const p99s = measured.map(({ p99Ms }) => p99Ms)
      return {
        share: SHARES[at]!,
        rate: peak * SHARES[at]!,
        p50Ms: median(measured.map(({ p50Ms }) => p50Ms)),
        p99Ms: median(p99s),
        p999Ms: median(measured.map(({ p999Ms }) => p999Ms)),
        p99Interval: { low: quantile(p99s, 0), high: quantile(p99s, 1) },
        errors: measured.reduce((sum, { errors }) => sum + errors, 0),
        failed: failedShare(measured),
        disturbed,
      }
    })
  }

  /** Compares with the last measurements of the same sizes. */
  #compare(during: string, throughput: number): void {
    const before = this.#reference
    if (before !== null) {
      const ratio = throughput / Math.max(before.throughput, Number.MIN_VALUE)
      this.#drifts.push({ from: before.during, to: during, ratio })
    }
    this.#reference = { during, throughput }
  }

  get #drift(): Drift | null {
    const size = ({ ratio }: Drift): number => Math.abs(Math.log(Math.max(ratio, Number.MIN_VALUE)))
    const [largest] = this.#drifts.toSorted((one, other) => size(other) - size(one))
    return largest !== undefined && size(largest) > Math.log(DRIFT) ? largest : null
  }
}

function throughputOf({ measured }: MeasuredPoint): number {
  return median(measured.map(({ throughput }) => throughput))
}

function failuresOf(measured: readonly Measured[]): Readonly<Record<string, number>> {
  const sums: Record<string, number> = {}
  for (const { failures } of measured)
    for (const [kind, count] of Object.entries(failures)) sums[kind] = (sums[kind] ?? 0) + count
  return sums
}

/** Powers of two up to `clients`, and `clients` itself. */
function levelsTo(clients: number): readonly number[] {
  const levels: number[] = []
  for (let level = 1; level < clients; level *= 2) levels.push(level)
  return [...levels, clients]
}

function sizesOf({ key, others, current }: Pick<Knob, 'key' | 'others' | 'current'>, value: number): Sizes {
  const rest = others.map(other => [other.key, value === current ? other.current : value] as const)
  return Object.fromEntries([[key, value], ...rest])
}
