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
  const sorted = values.filter(value => !Number.isNaN(value)).toSorted((one, other) => one - other)
  if (sorted.length === 0) return Number.NaN
  const at = share * (sorted.length - 1)
  const [low, high] = [sorted[Math.floor(at)]!, sorted[Math.ceil(at)]!]
  return low === high ? low : low + (high - low) * (at - Math.floor(at))
}

/** Calculates `statistic` for samples that are drawn with replacement from the indexes 0 to `count` - 1. */
export function bootstrap(
  count: number,
  random: SeededRandom,
  statistic: (indexes: readonly number[]) => number,
): Interval {
  const found = Array.from({ length: RESAMPLES }, () =>
    statistic(Array.from({ length: count }, () => random.below(count))),
  )
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
