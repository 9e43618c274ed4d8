/** What introspection found out, for as long as `[apim.cache.km_token]` says: bounded, emptied by any revocation. */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'

const ENTRIES_MAX = 10_000

type Answer = Readonly<Record<string, unknown>>

/** Names of its own under which a token is remembered: no token stands in memory for longer than its request. */
export function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url')
}

export class TokenMemory {
  readonly #answers: LRUCache<string, { readonly answer: Answer; readonly untilMs: number }>
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
    this.#answers = new LRUCache({ max: ENTRIES_MAX })
  }

  get(name: string): Answer | undefined {
    const known = this.#answers.get(name)
    if (known === undefined || known.untilMs > this.#now()) return known?.answer
    this.#answers.delete(name)
    return undefined
  }

  keep(name: string, answer: Answer, untilMs: number): void {
    this.#answers.set(name, { answer, untilMs })
  }

  /** Something was revoked, here or by whoever else uses the registry. */
  clear(): void {
    this.#answers.clear()
  }
}
