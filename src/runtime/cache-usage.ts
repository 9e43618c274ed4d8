/** Content of a cache now, and its counts since it was made. Its thread reads it for the metrics. */
export interface CacheUsage {
  readonly entries: number
  /** Entries that a full cache has dropped for others; left out where an entry leaves by its age alone. */
  readonly evictions?: number
  /** Left out where the cache limits the number of its entries alone. */
  readonly bytes?: number
  /** Left out where lookups are counted as they happen, or would cost every request. */
  readonly hits?: number
  readonly misses?: number
}

/** The usage of several caches as one; a figure that none of them has is left out. */
export function sumOfUsages(caches: Iterable<CacheUsage>): CacheUsage {
  const sum: { -readonly [Figure in keyof CacheUsage]: CacheUsage[Figure] } = { entries: 0 }
  for (const cache of caches) {
    for (const [figure, value] of Object.entries(cache) as [keyof CacheUsage, number][]) {
      sum[figure] = (sum[figure] ?? 0) + value
    }
  }
  return sum
}
