/** What introspection found out, for as long as `[apim.cache.km_token]` says: bounded, emptied by any revocation. */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'

const ENTRIES_MAX = 10_000
const CHARS_MAX = 8 << 20
/** As in a gateway: what is good after all is refused for no longer. */
const INACTIVE_MS = 10_000

type Answer = Readonly<Record<string, unknown>>

/** Names of its own under which a token is remembered: no token stands in memory for longer than its request. */
export function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url')
}

export class TokenMemory {
  readonly #answers: LRUCache<string, { readonly answer: Answer; readonly untilMs: number }>
  readonly #now: () => number
  /** Another number whenever something was revoked. */
  #epoch = 0

  constructor(now: () => number) {
    this.#now = now
    this.#answers = new LRUCache({
      max: ENTRIES_MAX,
      maxSize: CHARS_MAX,
      sizeCalculation: ({ answer }, name) => JSON.stringify(answer).length + name.length,
    })
  }

  get(name: string): Answer | undefined {
    const known = this.#answers.get(name)
    if (known === undefined || known.untilMs > this.#now()) return known?.answer
    this.#answers.delete(name)
    return undefined
  }

  get epoch(): number {
    return this.#epoch
  }

  /** `epoch`: as it was before the answer was looked for; one from before a revocation is not kept. */
  keep(name: string, answer: Answer, lastsMs: number, epoch: number): void {
    if (epoch !== this.#epoch) return
    const keptMs = answer.active === true ? lastsMs : Math.min(lastsMs, INACTIVE_MS)
    this.#answers.set(name, { answer, untilMs: this.#now() + keptMs })
  }

  /** Something was revoked, here or by whoever else uses the registry. */
  clear(): void {
    this.#epoch++
    this.#answers.clear()
  }
}
