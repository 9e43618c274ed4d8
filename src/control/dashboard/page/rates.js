/** Rates, quantiles and their history, from the counters of successive rounds. */

/** Points of a chart: five minutes. */
export const POINTS = 300

/** Difference per second of two samples; null where the counter was reset or time stood still. */
export function perSecond(now, before, seconds) {
  return seconds > 0 && now >= before ? (now - before) / seconds : null
}

/**
 * The value below which a share of the samples lies, from counts per bucket. `bounds`: upper bounds; the last bucket
 * has none. Within a bucket samples are taken as evenly spread. Null without a sample.
 */
export function quantile(share, counts, bounds) {
  const total = counts.reduce((sum, one) => sum + one, 0)
  if (total === 0) return null
  let left = share * total
  for (let at = 0; at < counts.length; at++) {
    if (left <= counts[at] && counts[at] > 0) {
      const from = at === 0 ? 0 : bounds[at - 1]
      const to = at < bounds.length ? bounds[at] : bounds.at(-1)
      return from + (to - from) * (left / counts[at])
    }
    left -= counts[at]
  }
  return bounds.at(-1)
}

/** Columns of equal length, the first one of times in seconds; old points fall out. */
export class History {
  #columns

  constructor(series) {
    this.#columns = Array.from({ length: series + 1 }, () => [])
  }

  add(timeS, values) {
    this.#columns[0].push(timeS)
    for (const [at, value] of values.entries()) this.#columns[at + 1].push(value)
    for (const column of this.#columns) if (column.length > POINTS) column.shift()
  }

  get columns() {
    return this.#columns
  }

  last(series) {
    return this.#columns[series + 1].at(-1) ?? null
  }

  /** Null without a value. */
  highest(series) {
    return this.#columns[series + 1].reduce((most, one) => (one !== null && one > (most ?? -1) ? one : most), null)
  }
}
