/**
 * Keys that a traffic manager has throttled, until the end of their windows. Bounded: beyond the limit the key that is
 * unused for longest is forgotten, and the traffic manager repeats a decision that still holds.
 */
import { LRUCache } from 'lru-cache'
import { growingTo } from '../runtime/lru-options.ts'

/** A decision of a traffic manager on one key. */
export interface ThrottleDecision {
  readonly key: string
  readonly isThrottled: boolean
  /** Milliseconds since 1970. */
  readonly untilMs: number
}

const KEYS_MAX = 100_000
/** Least time between two searches for decisions that are over. */
const SWEEP_MS = 1000

export class Decisions {
  /** Changes with every decision: what was looked up holds for one version. */
  version = 1
  readonly #untilMs: LRUCache<string, number>
  readonly #keysMax: number
  #sweptMs = Number.NEGATIVE_INFINITY

  constructor(keysMax = KEYS_MAX) {
    this.#keysMax = keysMax
    this.#untilMs = new LRUCache(growingTo(keysMax))
  }

  get size(): number {
    return this.#untilMs.size
  }

  apply(decisions: readonly ThrottleDecision[], nowMs: number): void {
    for (const { key, isThrottled, untilMs } of decisions) {
      this.#untilMs.delete(key)
      if (!isThrottled || untilMs <= nowMs) continue
      if (this.#untilMs.size >= this.#keysMax && nowMs - this.#sweptMs >= SWEEP_MS) this.#sweep(nowMs)
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
    for (const key of this.#untilMs.rkeys()) {
      const untilMs = this.#untilMs.peek(key) ?? 0
      if (untilMs > nowMs) all.push({ key, isThrottled: true, untilMs })
    }
    return all
  }

  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs
    for (const [key, untilMs] of [...this.#untilMs]) if (untilMs <= nowMs) this.#untilMs.delete(key)
  }
}
