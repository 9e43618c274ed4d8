/**
 * Tokens that are not good any more, by their revocation keys. What expires within the same minute is forgotten
 * together, so that forgetting costs nothing but what is forgotten, and memory is bounded by what is still valid.
 */
import type { RevocationKey, RevokedFacts } from './facts.ts'

/** For so long after its end a token may be accepted somewhere: `oauth.timestamp_skew` is at most a day. */
export const SKEW_MAX_MS = 86_400_000
const BUCKET_MS = 60_000

export class RevokedSet {
  /** Milliseconds for which a token may be accepted after its expiry. */
  skewMs: number
  readonly #expiries = new Map<RevocationKey, number>()
  /** Keys by the minute in which they expire. */
  readonly #buckets = new Map<number, RevocationKey[]>()
  #sweptMs = 0

  constructor(skewMs = 0) {
    this.skewMs = skewMs
  }

  get size(): number {
    return this.#expiries.size
  }

  has(key: RevocationKey): boolean {
    return this.#expiries.has(key)
  }

  /** Answers whether any of them was not known, or is over later than was known. */
  add(tokens: readonly RevokedFacts[], nowMs: number): boolean {
    let isNew = false
    for (const { key, expiresMs } of tokens) {
      const known = this.#expiries.get(key)
      if (expiresMs + this.skewMs <= nowMs || (known !== undefined && known >= expiresMs)) continue
      this.#expiries.set(key, expiresMs)
      const bucket = Math.floor(expiresMs / BUCKET_MS)
      const keys = this.#buckets.get(bucket)
      if (keys === undefined) this.#buckets.set(bucket, [key])
      else keys.push(key)
      isNew = true
    }
    this.#sweep(nowMs)
    return isNew
  }

  /** Those that still matter. */
  entries(nowMs: number): readonly RevokedFacts[] {
    const all: RevokedFacts[] = []
    for (const [key, expiresMs] of this.#expiries) if (expiresMs + this.skewMs > nowMs) all.push({ key, expiresMs })
    return all
  }

  #sweep(nowMs: number): void {
    if (nowMs - this.#sweptMs < BUCKET_MS) return
    this.#sweptMs = nowMs
    for (const [bucket, keys] of this.#buckets) {
      const endsMs = (bucket + 1) * BUCKET_MS
      if (endsMs + this.skewMs > nowMs) continue
      this.#buckets.delete(bucket)
      // One that was revoked again for longer stands in a later bucket, too.
      for (const key of keys) if (this.#expiries.get(key)! < endsMs) this.#expiries.delete(key)
    }
  }
}
