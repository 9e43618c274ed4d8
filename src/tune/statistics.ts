/** Random order from a seed, medians, quantiles and bootstrap intervals. */

/** Bounds of the middle 95 % of bootstrap samples. */
export interface Interval {
  readonly low: number
  readonly high: number
}

const RESAMPLES = 1000
const TAIL = 0.025

/** Mulberry32: the same numbers for the same seed. */
export class SeededRandom {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** At least 0, less than 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number of at least 0, less than `below`. */
  below(below: number): number {
    return Math.floor(this.next() * below)
  }

  shuffled<Item>(items: readonly Item[]): Item[] {
    const order = [...items]
    for (let at = order.length - 1; at > 0; at--) {
      const other = this.below(at + 1)
      const moved = order[at]!
      order[at] = order[other]!
      order[other] = moved
    }
    return order
  }
}

/** NaN without values. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** Linear between neighbours; NaN without values. */
export function quantile(values: readonly number[], share: number): number {
  // Sorts without a comparison function, which a bootstrap would call millions of times; NaN comes last.
  const sorted = new Float64Array(values).sort()
  let { length } = sorted
  while (Number.isNaN(sorted[length - 1])) length--
  if (length === 0) return Number.NaN
  const at = share * (length - 1)
  const [low, high] = [sorted[Math.floor(at)]!, sorted[Math.ceil(at)]!]
  return low === high ? low : low + (high - low) * (at - Math.floor(at))
}

/**
 * Calculates `statistic` for samples that are drawn with replacement from the indexes 0 to `count` - 1. The array of
 * indexes is the same for all samples.
 */
export function bootstrap(
  count: number,
  random: SeededRandom,
  statistic: (indexes: readonly number[]) => number,
): Interval {
  const indexes = new Array<number>(count).fill(0)
  const found: number[] = []
  while (found.length < RESAMPLES) {
    for (let at = 0; at < count; at++) indexes[at] = random.below(count)
    found.push(statistic(indexes))
  }
  return { low: quantile(found, TAIL), high: quantile(found, 1 - TAIL) }
}

/** Median of the ratios of two rows that were measured in the same repeats, with its interval. */
export function pairedRatio(
  values: readonly number[],
  base: readonly number[],
  random: SeededRandom,
): { readonly ratio: number } & Interval {
  const ratios = values.map((value, repeat) => value / Math.max(base[repeat]!, Number.MIN_VALUE))
  const interval = bootstrap(ratios.length, random, indexes => median(indexes.map(at => ratios[at]!)))
  return { ratio: median(ratios), ...interval }
}

/** 97.5 % quantiles of Student's t, by degrees of freedom from 1. */
const STUDENT = [12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23]

/**
 * Geometric mean of the ratios of two rows that were measured in the same repeats, with its 95 % interval by Student's
 * t: the bootstrap of three repeats has bounds that three of four intervals keep (D615).
 */
export function meanRatio(values: readonly number[], base: readonly number[]): { readonly ratio: number } & Interval {
  const logs = values.map((value, repeat) => Math.log(Math.max(value, TINY) / Math.max(base[repeat]!, TINY)))
  const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length
  const freedom = logs.length - 1
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / Math.max(1, freedom)
  const reach = (STUDENT[freedom - 1] ?? 1.96 + 2.7 / Math.max(1, freedom)) * Math.sqrt(variance / logs.length)
  return { ratio: Math.exp(mean), low: Math.exp(mean - reach), high: Math.exp(mean + reach) }
}

/** In place of no throughput. */
const TINY = 1e-9
