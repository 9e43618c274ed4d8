/**
 * Users who send name and password with each request. The key manager takes long over a password on purpose, so what
 * it has confirmed holds for a short while, under a keyed hash: nothing here could be read back, or tried elsewhere.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { METRIC } from '../observe/metrics.ts'
import { SharedAnswers } from '../structure/shared-answers.ts'
import type { Inquiry, InquiryResults, KnownUser } from './feed.ts'
import type { Grant } from './grants.ts'

const ENTRIES_MAX = 1024
/** Changes are told at once; those of another node may be late where the database that they share was away. */
const HOLDS_MS = 30_000

/** A user whose password was right, and what that comes to at each API, by whom it is kept for. */
export interface ConfirmedUser {
  readonly user: KnownUser
  readonly untilMs: number
  readonly grants: WeakMap<object, Grant>
}

type PasswordInquiry = Extract<Inquiry, { kind: 'password' }>

/** IdentityState is one. */
interface PasswordSources {
  /** Another one whenever what users are remembered by holds no longer. */
  readonly usersEpoch: number
  catchUp(): void
  ask(inquiry: PasswordInquiry): Promise<InquiryResults['password']>
}

interface PasswordSurroundings {
  readonly sources: PasswordSources
  readonly metrics: { add(cell: number, by: number): void }
  /** Of any clock that only goes forward. */
  readonly nowMs: () => number
}

export class Passwords {
  readonly #key = randomBytes(32)
  readonly #sources: PasswordSources
  readonly #metrics: PasswordSurroundings['metrics']
  readonly #nowMs: () => number
  readonly #confirmed = new LRUCache<string, ConfirmedUser>({ max: ENTRIES_MAX })
  /** One question at a time about the same credentials, however many send them. */
  readonly #asked = new SharedAnswers<ConfirmedUser | null>()

  #usersEpoch = 0

  constructor({ sources, metrics, nowMs }: PasswordSurroundings) {
    this.#sources = sources
    this.#metrics = metrics
    this.#nowMs = nowMs
  }

  /**
   * Null: they are wrong, which nobody remembers. Rejects where that could not be found out. `address`: of the client.
   */
  check(user: string, password: string, address: string): ConfirmedUser | Promise<ConfirmedUser | null> {
    this.#catchUp()
    const hash = createHmac('sha256', this.#key)
      .update(JSON.stringify([user, password]))
      .digest('base64')
    const known = this.#confirmed.get(hash)
    const isHit = known !== undefined && known.untilMs > this.#nowMs()
    this.#metrics.add(isHit ? METRIC.passwordHits : METRIC.passwordMisses, 1)
    if (isHit) return known
    return this.#asked.ask(`${hash} ${address}`, () =>
      this.#confirm(hash, { kind: 'password', user, password, address }),
    )
  }

  async #confirm(hash: string, inquiry: PasswordInquiry): Promise<ConfirmedUser | null> {
    const epoch = this.#usersEpoch
    const user = await this.#sources.ask(inquiry)
    if (user === null) return null
    const confirmed = { user, untilMs: this.#nowMs() + HOLDS_MS, grants: new WeakMap<object, Grant>() }
    this.#catchUp()
    // It may have been judged before what was told meanwhile.
    if (epoch === this.#usersEpoch) this.#confirmed.set(hash, confirmed)
    return confirmed
  }

  #catchUp(): void {
    this.#sources.catchUp()
    const { usersEpoch } = this.#sources
    if (usersEpoch === this.#usersEpoch) return
    this.#usersEpoch = usersEpoch
    this.#confirmed.clear()
    this.#asked.forget()
  }
}
