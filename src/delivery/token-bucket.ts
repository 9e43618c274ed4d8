/** Rate of a sender: a token bucket without a timer, as the time at which the next token is there. */
export class TokenBucket {
  readonly #everyMs: number
  readonly #burstMs: number
  /** When the bucket would be full less one token: theoretical arrival time of GCRA. */
  #nextMs: number

  /** `perSecond`: null for no limit. Holds the tokens of a tenth of a second, one at least. */
  constructor(perSecond: number | null, nowMs: number) {
    this.#everyMs = perSecond === null ? 0 : 1000 / perSecond
    this.#burstMs = Math.max(0, 100 - this.#everyMs)
    this.#nextMs = nowMs
  }

  /** Milliseconds until a token is there; 0: it is taken now. */
  take(nowMs: number): number {
    if (this.#everyMs === 0) return 0
    const waitMs = this.#nextMs - this.#burstMs - nowMs
    if (waitMs > 0) return waitMs
    this.#nextMs = Math.max(this.#nextMs, nowMs) + this.#everyMs
    return 0
  }

  /** Milliseconds until the bucket has spent nothing; for its successor on another thread. */
  debtMs(nowMs: number): number {
    return Math.max(0, this.#nextMs - nowMs)
  }
}
