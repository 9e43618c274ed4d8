/**
 * Keys that a traffic manager has throttled, until the end of their windows. Bounded: beyond the limit the key whose
 * decision is oldest is forgotten, and the traffic manager repeats a decision that still holds.
 */

/** A decision of a traffic manager on one key. */
export interface ThrottleDecision {
  readonly key: string
  readonly isThrottled: boolean
  /** Milliseconds since 1970. */
  readonly untilMs: number
}

const KEYS_MAX = 100_000

export class Decisions {
  /** Changes with every decision: what was looked up holds for one version. */
  version = 1
  readonly #untilMs = new Map<string, number>()
  readonly #keysMax: number

  constructor(keysMax = KEYS_MAX) {
    this.#keysMax = keysMax
  }

  get size(): number {
    return this.#untilMs.size
  }

  apply(decisions: readonly ThrottleDecision[], nowMs: number): void {
    for (const { key, isThrottled, untilMs } of decisions) {
      this.#untilMs.delete(key)
      if (!isThrottled || untilMs <= nowMs) continue
      if (this.#untilMs.size >= this.#keysMax) this.#makeRoom(nowMs)
      this.#untilMs.set(key, untilMs)
    }
    this.version++
  }

  /** Milliseconds since 1970 until which the key is throttled; 0: it is not. */
  untilMs(key: string): number {
    return this.#untilMs.get(key) ?? 0
  }

  isThrottled(key: string, nowMs: number): boolean {
    return this.untilMs(key) > nowMs
  }

  entries(nowMs: number): readonly ThrottleDecision[] {
    const all: ThrottleDecision[] = []
    for (const [key, untilMs] of this.#untilMs) if (untilMs > nowMs) all.push({ key, isThrottled: true, untilMs })
    return all
  }

  #makeRoom(nowMs: number): void {
    for (const [key, untilMs] of this.#untilMs) if (untilMs <= nowMs) this.#untilMs.delete(key)
    if (this.#untilMs.size >= this.#keysMax) this.#untilMs.delete(this.#untilMs.keys().next().value!)
  }
}
