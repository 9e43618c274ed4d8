/**
 * Guesses at passwords: after a number of wrong ones a name is locked for a while in the place that they came from, and
 * after more of them in all places where it has never come with its password, whether or not there is such a user. A
 * place alone can never make them so many: it is locked before, and for as long as they are remembered. So nobody locks
 * others out from one address, nor by many the owner of the name where this one has been.
 * Kept in memory and per node: to forget a name by filling the memory takes more guesses than argon2 lets through while
 * it is locked. Of one name one attempt is judged at a time, or many at once would all still be free.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { RegistryUnavailable } from './registry.ts'
import { growingTo } from '../structure/growing-cache.ts'

export interface GuardTerms {
  /** Wrong passwords from one place; 0: no name is ever locked. */
  readonly failuresMax: number
  /** How long a lock lasts and failures are remembered, from the last one on. */
  readonly lockMs: number
}

interface GuardSurroundings {
  /** A name is locked from now on. `place`: '' stands for all where it has never come with its password. */
  readonly locked?: (name: string, place: string) => void
  /** Of the monotonic clock. */
  readonly nowMs?: () => number
}

const NAMES_MAX = 65_536
/** Attempts under one name that wait for those before them. */
const WAITING_MAX = 32
/** Of all places together that many times the failures of one. */
const PLACES = 5

/** Wrong passwords by where they are counted. */
class Failures {
  readonly #counts = new LRUCache<string, { readonly count: number; readonly untilMs: number }>(growingTo(NAMES_MAX))

  count(at: string, nowMs: number): number {
    const known = this.#counts.get(at)
    return known === undefined || known.untilMs <= nowMs ? 0 : known.count
  }

  /** Answers how many there are now. */
  add(at: string, nowMs: number, lastsMs: number): number {
    const count = this.count(at, nowMs) + 1
    this.#counts.set(at, { count, untilMs: nowMs + lastsMs })
    return count
  }

  forget(at: string): void {
    this.#counts.delete(at)
  }

  forgetEnding(end: string): void {
    for (const at of [...this.#counts.keys()]) if (at.endsWith(end)) this.#counts.delete(at)
  }
}

export class LoginGuard {
  /** A reload may replace them. */
  terms: GuardTerms
  readonly #locked: (name: string, place: string) => void
  readonly #nowMs: () => number
  /** By name and place. */
  readonly #inPlace = new Failures()
  /** By name, from places where it has never come with its password. */
  readonly #anywhere = new Failures()
  /** Of a name, where it has come with its password. */
  readonly #familiar = new LRUCache<string, true>(growingTo(NAMES_MAX))
  readonly #queues = new Map<string, { last: Promise<unknown>; length: number }>()

  constructor(terms: GuardTerms, around: GuardSurroundings = {}) {
    this.terms = terms
    this.#locked = around.locked ?? (() => {})
    this.#nowMs = around.nowMs ?? (() => performance.now())
  }

  /**
   * What `judge` says, null for a wrong password; 'locked', and it is not asked. `place`: an address, '' where it is
   * not known, which is nobody's own. Rejects as `judge` does, or with RegistryUnavailable where too many wait.
   */
  async attempt<T>(name: string, judge: () => Promise<T | null>, place = ''): Promise<T | 'locked' | null> {
    const key = keyOf(name)
    const here = placed(key, place)
    // Those that are locked anyway must not fill the queue of the others.
    if (this.#isLocked(key, here)) return 'locked'
    return this.#inTurn(this.#familiar.has(here) ? here : key, async () => {
      if (this.#isLocked(key, here)) return 'locked'
      const verdict = await judge()
      if (verdict === null) this.#failed(name, place)
      else this.#succeeded(key, here, place !== '' && verdict !== 'locked')
      return verdict
    })
  }

  /** An administrator has set another password. */
  forget(name: string): void {
    const key = keyOf(name)
    const ending = placed(key, '')
    this.#anywhere.forget(key)
    this.#inPlace.forgetEnding(ending)
    for (const place of [...this.#familiar.keys()]) if (place.endsWith(ending)) this.#familiar.delete(place)
  }

  async #inTurn<T>(queued: string, attempt: () => Promise<T>): Promise<T> {
    const queue = this.#queues.get(queued) ?? { last: Promise.resolve(), length: 0 }
    if (queue.length >= WAITING_MAX) throw new RegistryUnavailable(`${WAITING_MAX} attempts wait under one name`)
    const own = queue.last.then(attempt)
    queue.length++
    queue.last = own.catch(() => {})
    this.#queues.set(queued, queue)
    try {
      return await own
    } finally {
      queue.length--
      if (queue.length === 0) this.#queues.delete(queued)
    }
  }

  #isLocked(key: string, here: string): boolean {
    const { failuresMax } = this.terms
    if (failuresMax === 0) return false
    const nowMs = this.#nowMs()
    if (this.#inPlace.count(here, nowMs) >= failuresMax) return true
    return !this.#familiar.has(here) && this.#anywhere.count(key, nowMs) >= failuresMax * PLACES
  }

  #failed(name: string, place: string): void {
    const { failuresMax, lockMs } = this.terms
    if (failuresMax === 0) return
    const key = keyOf(name)
    const here = placed(key, place)
    const nowMs = this.#nowMs()
    if (place !== '' && this.#inPlace.add(here, nowMs, lockMs) === failuresMax) this.#locked(name, place)
    if (this.#familiar.has(here)) return
    if (this.#anywhere.add(key, nowMs, lockMs) === failuresMax * PLACES) this.#locked(name, '')
  }

  #succeeded(key: string, here: string, becomesFamiliar: boolean): void {
    this.#inPlace.forget(here)
    if (!this.#familiar.has(here)) this.#anywhere.forget(key)
    if (becomesFamiliar) this.#familiar.set(here, true)
  }
}

/** Strangers choose how long names are. */
function keyOf(name: string): string {
  return hash('sha256', name, 'base64url')
}

/** Addresses hold no NUL. */
function placed(key: string, place: string): string {
  return `${place}\0${key}`
}
