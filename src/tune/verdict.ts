/** Decides about one size from the repeats of its values: which is the optimum, and whether to propose it. */
import type { MeasuredPoint } from './series.ts'
import { bootstrap, type Interval, meanRatio, median, pairedRatio, type SeededRandom } from './statistics.ts'
import type { Measured } from './system.ts'

/** A key that gets each value with another one, except the current value, where it has its own. */
interface OtherKey {
  readonly key: string
  readonly current: number
}

export interface Knob {
  /** `section.key` */
  readonly key: string
  readonly others: readonly OtherKey[]
  /** The unit of the values. */
  readonly unit: string
  /** Ascending. */
  readonly values: readonly number[]
  readonly current: number
}

interface KnobPoint extends MeasuredPoint {
  readonly value: number
  readonly throughput: number
  /** Interval of the throughput. */
  readonly interval: Interval
  readonly p99Ms: number
  /** Share of the requests that failed. */
  readonly failed: number
  /** Throughput by that of the best value. */
  readonly ofBest: Ratio
}

type Ratio = { readonly ratio: number } & Interval

export interface KnobResult {
  readonly key: string
  readonly others: readonly OtherKey[]
  readonly unit: string
  readonly current: number
  readonly points: readonly KnobPoint[]
  /** The smallest value that is as good as the best. */
  readonly optimum: number
  /** Throughput with the optimum, by that with the current value. */
  readonly gain: Ratio
  /** `same`: no difference between the values is seen. */
  readonly verdict: 'change' | 'keep' | 'undecided' | 'same'
  /** A value meets the target for the 99th percentile; true without a target. */
  readonly meetsTarget: boolean
}

/** A value whose throughput is within this share of the best is as good. */
const AS_GOOD = 0.97
/** A single repeat that stalled is no reason to call less than this share as good. */
const AS_GOOD_MIN = 0.7
/** A smaller gain is no reason to change a configuration. */
const GAIN_MIN = 1.03
/** More requests that fail, as a share of all, are a difference. */
const FAILED_MORE = 0.01

/** Values that miss the target for the 99th percentile count only where all do. `p99Ms`: 0 for no target. */
export function decide(
  { key, others, unit, current, values }: Knob,
  series: readonly MeasuredPoint[],
  p99Ms: number,
  random: SeededRandom,
): KnobResult {
  const medians = series.map(({ measured, disturbed }, at) => ({
    ...{ value: values[at]!, measured, disturbed },
    ...intervalOf(measured, random),
    p99Ms: median(measured.map(one => one.p99Ms)),
    failed: failedShare(measured),
  }))
  const within = medians.filter(point => p99Ms === 0 || point.p99Ms <= p99Ms)
  const judged = within.length === 0 ? medians : within
  const best = judged.reduce((most, point) => (point.throughput > most.throughput ? point : most))
  const points = medians.map(point => ({ ...point, ofBest: ratioOf(point, best, random) }))
  const now = points.find(({ value }) => value === current)!
  const isLate = judged === within && !within.some(({ value }) => value === current)
  const result = { key, others, unit, current, points, meetsTarget: within.length > 0 }
  const good = points.filter(
    point => judged.some(({ value }) => value === point.value) && isAsGood(point, best.throughput),
  )
  const fewest = Math.min(...good.map(({ failed }) => failed))
  const optimum = good.find(({ failed }) => failed <= fewest + FAILED_MORE)!
  const gain = meanRatio(throughputsOf(optimum), throughputsOf(now))
  const decided = { ...result, optimum: optimum.value, gain }
  if (judged.length === points.length && !isDifferenceSeen(points)) return { ...decided, verdict: 'same' }
  if (optimum === now) return { ...decided, verdict: 'keep' }
  const isBetter = gain.low >= GAIN_MIN || (isLate && gain.low >= AS_GOOD)
  if (isBetter && (isApart(optimum, now) || !isDisturbed(optimum, now))) return { ...decided, verdict: 'change' }
  return { ...decided, verdict: gain.high < GAIN_MIN ? 'keep' : 'undecided' }
}

export function failedShare(measured: readonly Measured[]): number {
  const requests = measured.reduce((sum, one) => sum + one.requests, 0)
  return requests === 0 ? 0 : measured.reduce((sum, { errors }) => sum + errors, 0) / requests
}

function intervalOf(
  measured: readonly Measured[],
  random: SeededRandom,
): { readonly throughput: number; readonly interval: Interval } {
  const throughputs = measured.map(({ throughput }) => throughput)
  const drawn = (indexes: readonly number[]): number => median(indexes.map(at => throughputs[at]!))
  return { throughput: median(throughputs), interval: bootstrap(throughputs.length, random, drawn) }
}

type Row = Pick<KnobPoint, 'measured'>

function ratioOf(point: Row, base: Row, random: SeededRandom): Ratio {
  return pairedRatio(throughputsOf(point), throughputsOf(base), random)
}

function throughputsOf({ measured }: Row): readonly number[] {
  return measured.map(({ throughput }) => throughput)
}

/** Other programs have disturbed most repeats of one of them. */
function isDisturbed(...points: readonly KnobPoint[]): boolean {
  return points.some(({ measured, disturbed }) => disturbed * 2 > measured.length)
}

/** No repeat of one reaches the other. */
function isApart(better: Row, worse: Row): boolean {
  return Math.min(...throughputsOf(better)) > Math.max(...throughputsOf(worse))
}

/** The interval of a value lies below the best, or more of its requests fail. */
function isDifferenceSeen(points: readonly KnobPoint[]): boolean {
  const failed = points.map(point => point.failed)
  return points.some(({ ofBest }) => ofBest.high < AS_GOOD) || Math.max(...failed) > Math.min(...failed) + FAILED_MORE
}

/** The highest of several medians is partly luck: what the repeats do not tell from the best is as good (D570). */
function isAsGood({ throughput, ofBest: { ratio, high } }: KnobPoint, best: number): boolean {
  return throughput >= best * AS_GOOD || (high >= 1 && ratio >= AS_GOOD_MIN)
}
