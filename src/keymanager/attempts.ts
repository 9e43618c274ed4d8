/**
 * How often something may be asked for, and how often it may fail: counted in windows of a minute by name, in bounded
 * memory. What is counted longest ago is forgotten first.
 */
import { LRUCache } from 'lru-cache'
import { tooMany } from './oauth-refusal.ts'
import { digestOf } from './token-memory.ts'
import { growingTo } from '../structure/growing-cache.ts'

/** Each as a digest: strangers choose how long names are. */
const NAMES_MAX = 16_384
const WINDOW_MS = 60_000

interface Window {
  count: number
  /** Milliseconds since 1970. */
  readonly fromMs: number
  readonly forMs: number
}

/** Requests by name: of a client, of an address. */
export class RequestRate {
  readonly #windows = new LRUCache<string, Window>(growingTo(NAMES_MAX))
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /** Throws OAuthRefusal (429) where one more would be beyond `perMinute`, and counts nothing. */
  check(name: string, perMinute: number): void {
    const known = this.#windows.get(digestOf(name))
    if (perMinute === -1 || known === undefined || known.count < perMinute) return
    const leftMs = leftOf(known, this.#now())
    if (leftMs > 0) throw tooMany('too many requests', leftMs)
  }

  /** Counts one. Throws OAuthRefusal (429) beyond `perMinute`; -1: there is no limit. */
  count(name: string, perMinute: number): void {
    if (perMinute === -1) return
    const nowMs = this.#now()
    const known = this.#windows.get(digestOf(name))
    if (known === undefined || leftOf(known, nowMs) === 0) {
      this.#windows.set(digestOf(name), { count: 1, fromMs: nowMs, forMs: WINDOW_MS })
      return
    }
    known.count++
    if (known.count > perMinute) throw tooMany('too many requests', leftOf(known, nowMs))
  }
}

/**
 * Wrong credentials of clients by name and address: after too many of them right ones are not looked at either, for a
 * while. Those of users are counted by the registry.
 */
export class Lockout {
  readonly #failures = new LRUCache<string, Window>(growingTo(NAMES_MAX))
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /** Throws OAuthRefusal (429) while it is locked. `max`: failures; -1: never locked. */
  check(name: string, max: number): void {
    const known = this.#failures.get(digestOf(name))
    if (max === -1 || known === undefined || known.count < max) return
    const leftMs = leftOf(known, this.#now())
    if (leftMs > 0) throw tooMany('too many failures', leftMs)
    this.#failures.delete(digestOf(name))
  }

  /** `forMs`: how long failures are remembered, from the last one on. Answers whether this one has locked it. */
  failed(name: string, max: number, forMs: number): boolean {
    const nowMs = this.#now()
    const known = this.#failures.get(digestOf(name))
    const count = known === undefined || leftOf(known, nowMs) === 0 ? 1 : known.count + 1
    this.#failures.set(digestOf(name), { count, fromMs: nowMs, forMs })
    return count === max
  }

  succeeded(name: string): void {
    this.#failures.delete(digestOf(name))
  }
}

/** Milliseconds until a window is over. A clock that was set back must not make hours of it. */
function leftOf({ fromMs, forMs }: Window, nowMs: number): number {
  return nowMs < fromMs ? 0 : Math.max(0, fromMs + forMs - nowMs)
}
