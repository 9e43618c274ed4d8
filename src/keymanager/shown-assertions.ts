/** Assertions that were shown: each is good once. Only digests are kept, and the oldest go first. */
import { LRUCache } from 'lru-cache'
import { digestOf } from './token-memory.ts'
import { growingTo } from '../structure/growing-cache.ts'

const SHOWN_MAX = 16_384

export class ShownAssertions {
  readonly #shown = new LRUCache<string, true>(growingTo(SHOWN_MAX))

  /** Whether it is shown for the first time. `assertion`: a JWT. */
  take(assertion: string): boolean {
    // Of header and payload: a signature may have several spellings.
    const name = digestOf(assertion.slice(0, assertion.lastIndexOf('.')))
    if (this.#shown.has(name)) return false
    this.#shown.set(name, true)
    return true
  }
}
