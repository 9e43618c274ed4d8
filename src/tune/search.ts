/**
 * The search of `sluice tune`: measures a system with one size changed at a time, repeats in random order, and proposes
 * only what the repeats decide. The system is a gateway under load, or a simulated one.
 */
import { fitScaling, type ScalingFit, type ScalingPoint } from './scalability.ts'
import { type Interval, median, pairedRatio, quantile, SeededRandom } from './statistics.ts'

export interface Measured {
  /** Responses of class 2xx per second. */
  readonly throughput: number
  /** Of all responses; from the intended send time in an open loop. */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  /** Other responses, lost connections, and requests without a response. */
  readonly errors: number
  readonly requests: number
  /** Busy share of the load generator's thread, 0 to 1. */
  readonly generatorBusy: number
}

/** `section.key` -> value. */
export type Sizes = Readonly<Record<string, number>>

export interface System {
  /** The gateway runs with these sizes from now on. */
  configure(sizes: Sizes): Promise<void>
  /** Each client sends its next request after the response to the last one. */
  closed(clients: number): Promise<Measured>
  /** Requests are due at a constant rate. */
  open(ratePerSecond: number, clients: number): Promise<Measured>
  /** As `closed`, without the gateway: the load generator and a stub. */
  ceiling(clients: number): Promise<Measured>
}

export interface Knob {
  /** `section.key`; others get the same value with it. */
  readonly key: string
  readonly others: readonly string[]
  /** Ascending. */
  readonly values: readonly number[]
  readonly current: number
}

export interface SearchOptions {
  readonly seed: number
  readonly clients: number
  readonly repeats: number
  /** Longest 99th percentile in milliseconds; 0: none is wanted. */
  readonly p99Ms: number
  readonly progress: (done: number, total: number, doing: string) => void
}

interface KnobPoint {
  readonly value: number
  /** In the order of the repeats. */
  readonly measured: readonly Measured[]
  readonly throughput: number
  readonly p99Ms: number
}

export interface KnobResult {
  readonly key: string
  readonly others: readonly string[]
  readonly current: number
  readonly points: readonly KnobPoint[]
  /** The smallest value that is as good as the best. */
  readonly optimum: number
  /** Throughput with the optimum, by that with the current value. */
  readonly gain: { readonly ratio: number } & Interval
  readonly verdict: 'change' | 'keep' | 'undecided'
}

interface OpenPoint {
  /** Of the peak. */
  readonly share: number
  readonly rate: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  readonly p99Interval: Interval
  readonly errors: number
}

export interface TuneResult {
  readonly seed: number
  readonly clients: number
  readonly repeats: number
  readonly p99TargetMs: number
  readonly ceiling: number
  /** Highest busy share of the generator in a closed loop, and whether it may have been the limit. */
  readonly generator: { readonly busy: number; readonly isBottleneck: boolean }
  readonly scaling: { readonly points: readonly ScalingPoint[]; readonly fit: ScalingFit | null }
  readonly knobs: readonly KnobResult[]
  /** Throughput with the proposed sizes. */
  readonly peak: number
  readonly open: readonly OpenPoint[]
  /** Highest rate that keeps the target at all lower rates too; null: none does, or there is no target. */
  readonly knee: OpenPoint | null
}

const SHARES = [0.3, 0.5, 0.7, 0.8, 0.9, 0.95]
/** A value whose throughput is within this share of the best is as good. */
const AS_GOOD = 0.97
/** A single repeat that stalled is no reason to call less than this share as good. */
const AS_GOOD_MIN = 0.7
/** A smaller gain is no reason to change a configuration. */
const GAIN_MIN = 1.03
/** Nearer to the ceiling, or busier, the generator may be what limits. */
const CEILING_SHARE = 0.8
const BUSY_MAX = 0.9

export async function tune(system: System, knobs: readonly Knob[], options: SearchOptions): Promise<TuneResult> {
  const search = new Search(system, knobs, options)
  return search.run()
}

class Search {
  readonly #system: System
  readonly #knobs: readonly Knob[]
  readonly #options: SearchOptions
  readonly #random: SeededRandom
  readonly #levels: readonly number[]
  readonly #total: number
  #done = 0
  #busy = 0
  #highest = 0

  constructor(system: System, knobs: readonly Knob[], options: SearchOptions) {
    this.#system = system
    this.#knobs = knobs
    this.#options = options
    this.#random = new SeededRandom(options.seed)
    this.#levels = levelsTo(options.clients)
    const values = knobs.reduce((sum, knob) => sum + knob.values.length, 0)
    this.#total = 1 + options.repeats * (this.#levels.length + values + 1 + SHARES.length)
  }

  async run(): Promise<TuneResult> {
    const { seed, clients, repeats, p99Ms } = this.#options
    const sizes: Record<string, number> = {}
    for (const knob of this.#knobs) Object.assign(sizes, sizesOf(knob, knob.current))
    await this.#system.configure(sizes)
    const ceiling = await this.#measure('ceiling of the load generator', () => this.#system.ceiling(clients))
    // The ceiling run has no gateway to limit it: its generator is meant to be busy.
    this.#busy = 0
    this.#highest = 0
    const points = await this.#scaling()
    const results: KnobResult[] = []
    for (const knob of this.#knobs) {
      const result = await this.#vary(knob, sizes)
      results.push(result)
      if (result.verdict === 'change') Object.assign(sizes, sizesOf(knob, result.optimum))
    }
    await this.#system.configure(sizes)
    const peaks: number[] = []
    for (let repeat = 0; repeat < repeats; repeat++) {
      peaks.push((await this.#measure('peak', () => this.#system.closed(clients))).throughput)
    }
    const peak = median(peaks)
    const generator = {
      busy: this.#busy,
      isBottleneck: this.#busy > BUSY_MAX || this.#highest > ceiling.throughput * CEILING_SHARE,
    }
    const open = await this.#latencies(peak)
    const fit = fitScaling(points, this.#random)
    const kept = open.findIndex(point => point.p99Ms > p99Ms)
    const knee = p99Ms === 0 ? null : (open[kept === -1 ? open.length - 1 : kept - 1] ?? null)
    return {
      ...{ seed, clients, repeats, p99TargetMs: p99Ms, ceiling: ceiling.throughput, generator },
      ...{ scaling: { points, fit }, knobs: results, peak, open, knee },
    }
  }

  async #measure(doing: string, run: () => Promise<Measured>): Promise<Measured> {
    this.#options.progress(this.#done++, this.#total, doing)
    const measured = await run()
    this.#busy = Math.max(this.#busy, measured.generatorBusy)
    this.#highest = Math.max(this.#highest, measured.throughput)
    return measured
  }

  async #scaling(): Promise<readonly ScalingPoint[]> {
    const found = new Map<number, number[]>(this.#levels.map(level => [level, []]))
    for (let repeat = 0; repeat < this.#options.repeats; repeat++) {
      for (const level of this.#random.shuffled(this.#levels)) {
        const { throughput } = await this.#measure(`${level} clients`, () => this.#system.closed(level))
        found.get(level)!.push(throughput)
      }
    }
    return [...found].map(([clients, throughputs]) => ({ clients, throughputs }))
  }

  async #vary(knob: Knob, sizes: Sizes): Promise<KnobResult> {
    const { repeats, clients } = this.#options
    const found = new Map<number, Measured[]>(knob.values.map(value => [value, []]))
    for (let repeat = 0; repeat < repeats; repeat++) {
      for (const value of this.#random.shuffled(knob.values)) {
        await this.#system.configure({ ...sizes, ...sizesOf(knob, value) })
        const doing = `${knob.key} = ${value}`
        found.get(value)!.push(await this.#measure(doing, () => this.#system.closed(clients)))
      }
    }
    const points = [...found].map(([value, measured]) => ({
      ...{ value, measured },
      throughput: median(measured.map(({ throughput }) => throughput)),
      p99Ms: median(measured.map(({ p99Ms }) => p99Ms)),
    }))
    return decide(knob, points, this.#options.p99Ms, this.#random)
  }

  /** Restricted to the rates of the peak, all repeats of all rates in random order. */
  async #latencies(peak: number): Promise<readonly OpenPoint[]> {
    const { repeats, clients } = this.#options
    const found = new Map<number, Measured[]>(SHARES.map(share => [share, []]))
    const runs = this.#random.shuffled(SHARES.flatMap(share => Array.from({ length: repeats }, () => share)))
    for (const share of runs) {
      const rate = Math.max(1, peak * share)
      const doing = `open loop at ${Math.round(share * 100)} %`
      found.get(share)!.push(await this.#measure(doing, () => this.#system.open(rate, clients)))
    }
    return [...found].map(([share, measured]) => {
      const p99s = measured.map(({ p99Ms }) => p99Ms)
      return {
        share,
        rate: peak * share,
        p50Ms: median(measured.map(({ p50Ms }) => p50Ms)),
        p99Ms: median(p99s),
        p999Ms: median(measured.map(({ p999Ms }) => p999Ms)),
        p99Interval: { low: quantile(p99s, 0), high: quantile(p99s, 1) },
        errors: measured.reduce((sum, { errors }) => sum + errors, 0),
      }
    })
  }
}

/** Powers of two up to `clients`, and `clients` itself. */
function levelsTo(clients: number): readonly number[] {
  const levels: number[] = []
  for (let level = 1; level < clients; level *= 2) levels.push(level)
  return [...levels, clients]
}

function sizesOf({ key, others }: Knob, value: number): Sizes {
  return Object.fromEntries([key, ...others].map(name => [name, value]))
}

/** The highest of several medians is partly luck: what the repeats do not tell from the best is as good (D570). */
function isAsGood(point: KnobPoint, best: KnobPoint, { ratio, high }: KnobResult['gain']): boolean {
  return point.throughput >= best.throughput * AS_GOOD || (high >= 1 && ratio >= AS_GOOD_MIN)
}

/** Values that miss the target for the 99th percentile count only where all do. */
function decide(
  { key, others, current }: Omit<KnobResult, 'points' | 'optimum' | 'gain' | 'verdict'>,
  points: readonly KnobPoint[],
  p99Ms: number,
  random: SeededRandom,
): KnobResult {
  const within = points.filter(point => p99Ms === 0 || point.p99Ms <= p99Ms)
  const judged = within.length === 0 ? points : within
  const values = ({ measured }: KnobPoint): readonly number[] => measured.map(({ throughput }) => throughput)
  const best = judged.reduce((most, point) => (point.throughput > most.throughput ? point : most))
  const optimum = judged.find(point => isAsGood(point, best, pairedRatio(values(point), values(best), random)))!
  const now = points.find(({ value }) => value === current)!
  const gain = pairedRatio(values(optimum), values(now), random)
  const isLate = judged === within && !within.includes(now)
  const result = { key, others, current, points, optimum: optimum.value, gain }
  if (optimum === now) return { ...result, verdict: 'keep' }
  if (gain.low >= GAIN_MIN || (isLate && gain.low >= AS_GOOD)) return { ...result, verdict: 'change' }
  return { ...result, verdict: gain.high < GAIN_MIN ? 'keep' : 'undecided' }
}
