/**
 * Assertions that were shown: each is good once. Only digests are kept, until the assertion is over: one that is
 * forgotten before could be shown again, so a full memory takes no other.
 */
import { digestOf } from './token-memory.ts'

/** 218 a second of those that last for five minutes; 10 MB. */
const SHOWN_MAX = 65_536

export class ShownAssertions {
  readonly #max: number
  /** When each of them is over, in milliseconds since 1970. */
  readonly #shown = new Map<string, number>()
  /** When the first of them is: before that there is no use in looking. */
  #firstOverMs = Infinity

  /** `max`: for tests. */
  constructor(max = SHOWN_MAX) {
    this.#max = max
  }

  /** Whether it is shown for the first time. `assertion`: a JWT that is good until `untilMs`. */
  take(assertion: string, untilMs: number, nowMs: number): 'first' | 'again' | 'full' {
    // Of header and payload: a signature may have several spellings.
    const name = digestOf(assertion.slice(0, assertion.lastIndexOf('.')))
    if (this.#shown.has(name)) return 'again'
    if (this.#shown.size >= this.#max && this.#firstOverMs <= nowMs) this.#forgetOver(nowMs)
    if (this.#shown.size >= this.#max) return 'full'
    this.#shown.set(name, untilMs)
    this.#firstOverMs = Math.min(this.#firstOverMs, untilMs)
    return 'first'
  }

  #forgetOver(nowMs: number): void {
    this.#firstOverMs = Infinity
    for (const [name, untilMs] of this.#shown) {
      if (untilMs <= nowMs) this.#shown.delete(name)
      else this.#firstOverMs = Math.min(this.#firstOverMs, untilMs)
    }
  }
}
