/**
 * A latency histogram like HdrHistogram: bucket widths grow with the value, so microseconds and minutes have the same
 * relative error (below 1 %). Takes a fixed 32 KiB for any number of values.
 */

/** Buckets of the first, linear range; each further doubling has half as many, for an error of at most 1/128. */
const SUB_BUCKET_BITS = 8
const SUB_BUCKETS = 1 << SUB_BUCKET_BITS
const HALF = SUB_BUCKETS >> 1
/** Doublings above the linear range: up to 2^31 µs, more than half an hour. */
const DOUBLINGS = 31 - SUB_BUCKET_BITS

function bucketOf(micros: number): number {
  const doublings = Math.max(0, 32 - Math.clz32(micros) - SUB_BUCKET_BITS)
  return doublings * HALF + (micros >>> doublings)
}

/** The largest value of a bucket. */
function topOf(bucket: number): number {
  const doublings = bucket < SUB_BUCKETS ? 0 : Math.floor(bucket / HALF) - 1
  const position = bucket - doublings * HALF
  return (position + 1) * 2 ** doublings - 1
}

export class LatencyHistogram {
  readonly #counts = new Float64Array(SUB_BUCKETS + DOUBLINGS * HALF)
  #total = 0
  #maxMicros = 0

  get total(): number {
    return this.#total
  }

  get maxMs(): number {
    return this.#maxMicros / 1000
  }

  record(milliseconds: number): void {
    const micros = Math.min(Math.max(0, Math.round(milliseconds * 1000)), 2 ** 31 - 1)
    this.#counts[bucketOf(micros)]! += 1
    this.#total++
    if (micros > this.#maxMicros) this.#maxMicros = micros
  }

  /** The smallest value that `share` of all values do not exceed, to within its bucket; NaN without values. */
  percentileMs(share: number): number {
    const wanted = Math.max(1, Math.ceil(share * this.#total))
    let seen = 0
    for (let bucket = 0; bucket < this.#counts.length; bucket++) {
      seen += this.#counts[bucket]!
      if (seen >= wanted) return Math.min(topOf(bucket), this.#maxMicros) / 1000
    }
    return Number.NaN
  }
}
