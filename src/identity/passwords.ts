/**
 * Users who send name and password with each request. The key manager takes long over a password on purpose, so what
 * it has confirmed holds for a short while, under a keyed hash: nothing here could be read back, or tried elsewhere.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { METRIC } from '../observe/metrics.ts'
import { SharedAnswers } from '../structure/shared-answers.ts'
import type { InquiryResults, KnownUser } from './feed.ts'
import type { Grant } from './grants.ts'

const ENTRIES_MAX = 1024
/** For so long a changed password, or a role that was taken away, makes no difference. */
const HOLDS_MS = 30_000

/** A user whose password was right, and what that comes to at each API, by whom it is kept for. */
export interface ConfirmedUser {
  readonly user: KnownUser
  readonly untilMs: number
  readonly grants: WeakMap<object, Grant>
}

type Ask = (inquiry: {
  readonly kind: 'password'
  readonly user: string
  readonly password: string
}) => Promise<InquiryResults['password']>

interface PasswordSurroundings {
  readonly ask: Ask
  readonly metrics: { add(cell: number, by: number): void }
  /** Of any clock that only goes forward. */
  readonly nowMs: () => number
}

export class Passwords {
  readonly #key = randomBytes(32)
  readonly #ask: Ask
  readonly #metrics: PasswordSurroundings['metrics']
  readonly #nowMs: () => number
  readonly #confirmed = new LRUCache<string, ConfirmedUser>({ max: ENTRIES_MAX })
  /** One question at a time about the same credentials, however many send them. */
  readonly #asked = new SharedAnswers<ConfirmedUser | null>()

  constructor({ ask, metrics, nowMs }: PasswordSurroundings) {
    this.#ask = ask
    this.#metrics = metrics
    this.#nowMs = nowMs
  }

  /** Null: they are wrong, which nobody remembers. Rejects where that could not be found out. */
  check(user: string, password: string): ConfirmedUser | Promise<ConfirmedUser | null> {
    const hash = createHmac('sha256', this.#key)
      .update(JSON.stringify([user, password]))
      .digest('base64')
    const known = this.#confirmed.get(hash)
    const isHit = known !== undefined && known.untilMs > this.#nowMs()
    this.#metrics.add(isHit ? METRIC.passwordHits : METRIC.passwordMisses, 1)
    if (isHit) return known
    return this.#asked.ask(hash, () => this.#confirm(hash, user, password))
  }

  async #confirm(hash: string, name: string, password: string): Promise<ConfirmedUser | null> {
    const user = await this.#ask({ kind: 'password', user: name, password })
    if (user === null) return null
    const confirmed = { user, untilMs: this.#nowMs() + HOLDS_MS, grants: new WeakMap<object, Grant>() }
    this.#confirmed.set(hash, confirmed)
    return confirmed
  }
}
