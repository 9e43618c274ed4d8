/**
 * Guesses at passwords: after a number of wrong ones a name is locked for a while, whether or not there is such a user.
 * Kept in memory and per node: to forget a name by filling the memory takes more guesses than argon2 lets through while
 * it is locked. Of one name one attempt is judged at a time, or many at once would all still be free. A place where a
 * name has come with its password is counted by itself, or whoever guesses elsewhere would lock its owner out.
 */
import { LRUCache } from 'lru-cache'
import { RegistryUnavailable } from './registry.ts'
import { growingTo } from '../structure/growing-cache.ts'

interface GuardTerms {
  /** Wrong passwords in a row; 0: no name is ever locked. */
  readonly failuresMax: number
  readonly lockMs: number
}

interface Account {
  failures: number
  /** Of the monotonic clock. */
  lockedUntilMs: number
}

const NAMES_MAX = 65_536
/** Attempts under one name that wait for those before them. */
const WAITING_MAX = 32

export class LoginGuard {
  readonly #terms: GuardTerms
  readonly #nowMs: () => number
  readonly #accounts = new LRUCache<string, Account>(growingTo(NAMES_MAX))
  /** Of a name, where it has come with its password. */
  readonly #places = new LRUCache<string, true>(growingTo(NAMES_MAX))
  readonly #queues = new Map<string, { last: Promise<unknown>; length: number }>()

  constructor(terms: GuardTerms, nowMs = () => performance.now()) {
    this.#terms = terms
    this.#nowMs = nowMs
  }

  /**
   * `judge` answers null for a wrong password; `place`: an address, '' where it is not known. Throws what `judge` throws,
   * or RegistryUnavailable where too many wait.
   */
  async attempt<T>(name: string, judge: () => Promise<T | null>, place = ''): Promise<T | 'locked' | null> {
    const here = placed(name, place)
    const verdict = await this.#inTurn(this.#places.has(here) ? here : name, judge)
    if (place !== '' && verdict !== null && verdict !== 'locked') this.#places.set(here, true)
    return verdict
  }

  /** An administrator has set another password. */
  forget(name: string): void {
    this.#accounts.delete(name)
    for (const place of [...this.#places.keys()]) if (place.endsWith(placed(name, ''))) this.#places.delete(place)
  }

  async #inTurn<T>(name: string, judge: () => Promise<T | null>): Promise<T | 'locked' | null> {
    const queue = this.#queues.get(name) ?? { last: Promise.resolve(), length: 0 }
    if (queue.length >= WAITING_MAX) throw new RegistryUnavailable(`${WAITING_MAX} attempts wait under one name`)
    const own = queue.last.then(() => this.#judged(name, judge))
    queue.length++
    queue.last = own.catch(() => {})
    this.#queues.set(name, queue)
    try {
      return await own
    } finally {
      queue.length--
      if (queue.length === 0) this.#queues.delete(name)
    }
  }

  async #judged<T>(name: string, judge: () => Promise<T | null>): Promise<T | 'locked' | null> {
    const known = this.#accounts.get(name)
    if (known !== undefined && known.lockedUntilMs > this.#nowMs()) return 'locked'
    const verdict = await judge()
    if (verdict === null) this.#count(name, known)
    else this.#accounts.delete(name)
    return verdict
  }

  #count(name: string, known: Account | undefined): void {
    const { failuresMax, lockMs } = this.#terms
    if (failuresMax === 0) return
    const failures = (known?.failures ?? 0) + 1
    if (failures < failuresMax) this.#accounts.set(name, { failures, lockedUntilMs: 0 })
    else this.#accounts.set(name, { failures: 0, lockedUntilMs: this.#nowMs() + lockMs })
  }
}

/** Names may hold anything; addresses hold no NUL, and tenants, with which names begin, neither. */
function placed(name: string, place: string): string {
  return `${place}\0${name}`
}
