/**
 * Revoked tokens by their revocation keys. Tokens that expire within the same minute are forgotten together: memory is
 * bounded by the tokens that would still be valid, and a sweep touches only what it removes.
 */
import type { RevocationRecord } from './records.ts'

/** A clock that is ahead by no more forgets no revocation of a token that is valid once the clock is right. */
const CLOCK_ERROR_MS = 3_600_000
/** Largest `oauth.timestamp_skew`: the longest time after its end for which any reactor may accept a token. */
export const SKEW_MAX_MS = 86_400_000
const BUCKET_MS = 60_000

export class RevokedTokens {
  /** Milliseconds for which a revocation is kept after the expiry of its token. */
  #keptMs = CLOCK_ERROR_MS
  readonly #expiries = new Map<string, number>()
  /** Keys by the minute in which they expire. */
  readonly #buckets = new Map<number, string[]>()
  #sweptMs = 0

  /** `skewMs`: milliseconds for which a token may be accepted after its expiry. */
  constructor(skewMs = 0) {
    this.skewMs = skewMs
  }

  set skewMs(skewMs: number) {
    this.#keptMs = Math.max(skewMs, CLOCK_ERROR_MS)
  }

  get size(): number {
    return this.#expiries.size
  }

  has(key: string): boolean {
    return this.#expiries.has(key)
  }

  /** Returns whether any of the tokens was unknown, or known with an earlier expiry. */
  add(tokens: readonly RevocationRecord[], nowMs: number): boolean {
    let isNew = false
    for (const { key, expiresMs } of tokens) {
      const known = this.#expiries.get(key)
      if (expiresMs + this.#keptMs <= nowMs || (known !== undefined && known >= expiresMs)) continue
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

  /** Records of the tokens that could still be accepted somewhere. */
  entries(nowMs: number): readonly RevocationRecord[] {
    const all: RevocationRecord[] = []
    for (const [key, expiresMs] of this.#expiries) if (expiresMs + this.#keptMs > nowMs) all.push({ key, expiresMs })
    return all
  }

  #sweep(nowMs: number): void {
    if (nowMs - this.#sweptMs < BUCKET_MS) return
    this.#sweptMs = nowMs
    for (const [bucket, keys] of this.#buckets) {
      const endsMs = (bucket + 1) * BUCKET_MS
      if (endsMs + this.#keptMs > nowMs) continue
      this.#buckets.delete(bucket)
      // A key that was revoked again with a later expiry is also in a later bucket.
      for (const key of keys) if (this.#expiries.get(key)! < endsMs) this.#expiries.delete(key)
    }
  }
}
