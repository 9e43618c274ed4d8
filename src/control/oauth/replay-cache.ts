/**
 * Digests of assertions that were used, kept until each expires: an assertion is valid once. A full cache accepts no
 * further assertion, because a dropped one could be replayed.
 */
import { hash } from 'node:crypto'
import type { CacheUsage } from '../../runtime/cache-usage.ts'

/** 218 assertions a second with a life of five minutes; 10 MB. */
const ENTRIES_MAX = 65_536

export class ReplayCache {
  readonly #max: number
  /** Expiry by digest, in milliseconds since 1970. */
  readonly #expiries = new Map<string, number>()
  /** The earliest expiry: before it no entry can be removed. */
  #firstExpiryMs = Infinity

  /** `max`: for tests. */
  constructor(max = ENTRIES_MAX) {
    this.#max = max
  }

  /** A full cache drops nothing. */
  usage(): CacheUsage {
    return { entries: this.#expiries.size }
  }

  /** Adds a JWT that is valid until `untilMs` (milliseconds since 1970). */
  add(assertion: string, untilMs: number, nowMs: number): 'added' | 'replayed' | 'full' {
    // Header and payload only: one signature can be encoded in several ways.
    const digest = hash('sha256', assertion.slice(0, assertion.lastIndexOf('.')), 'base64url')
    if (this.#expiries.has(digest)) return 'replayed'
    if (this.#expiries.size >= this.#max && this.#firstExpiryMs <= nowMs) this.#removeExpired(nowMs)
    if (this.#expiries.size >= this.#max) return 'full'
    this.#expiries.set(digest, untilMs)
    this.#firstExpiryMs = Math.min(this.#firstExpiryMs, untilMs)
    return 'added'
  }

  #removeExpired(nowMs: number): void {
    this.#firstExpiryMs = Infinity
    for (const [digest, untilMs] of this.#expiries) {
      if (untilMs <= nowMs) this.#expiries.delete(digest)
      else this.#firstExpiryMs = Math.min(this.#firstExpiryMs, untilMs)
    }
  }
}
