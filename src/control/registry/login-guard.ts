/**
 * Limits password guesses. Wrong passwords lock an account name for their address; five times as many lock the name for
 * all addresses from which it never logged in. Unknown names behave alike.
 *
 * An address is that of one client: IPv6 addresses of one network of 64 bits count as one.
 *
 * A locked address adds no further failures, so one address cannot lock the name for others, and many addresses cannot
 * lock out the owner at a familiar one. State is in memory, per node: argon2 bounds how fast entries can be displaced.
 * Attempts on one name are serialised, or concurrent ones would all pass before the lock.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { RegistryUnavailable } from './registry-errors.ts'
import { networkOf } from '../../runtime/ip-address.ts'
import { growingTo } from '../../runtime/lru-options.ts'

export interface LockoutSettings {
  /** Wrong passwords per address before the lock; 0 for no lock. */
  readonly failuresMax: number
  /** Duration of a lock, and how long failures count, from the last one on. */
  readonly lockMs: number
}

interface LoginGuardOptions {
  /** Called when a name is locked. `address`: '' for all addresses that are not familiar. */
  readonly locked?: (name: string, address: string) => void
  /** Monotonic clock, milliseconds. */
  readonly nowMs?: () => number
}

const KEYS_MAX = 65_536
/** Limit of attempts that wait for one name. */
const WAITING_MAX = 32
/** Failures from all unfamiliar addresses together may be this many times those of one address. */
const ADDRESSES_FACTOR = 5

/** Counts of wrong passwords, per key. */
class Failures {
  readonly #counts = new LRUCache<string, { readonly count: number; readonly untilMs: number }>(growingTo(KEYS_MAX))

  count(at: string, nowMs: number): number {
    const known = this.#counts.get(at)
    return known === undefined || known.untilMs <= nowMs ? 0 : known.count
  }

  /** Returns the new count. */
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
  /** Replaced by a reload. */
  settings: LockoutSettings
  readonly #locked: (name: string, address: string) => void
  readonly #nowMs: () => number
  /** By address and name. */
  readonly #byAddress = new Failures()
  /** By name: failures from addresses that are not familiar. */
  readonly #unfamiliar = new Failures()
  /** Addresses from which a name logged in, by address and name. */
  readonly #familiarAddresses = new LRUCache<string, true>(growingTo(KEYS_MAX))
  readonly #queues = new Map<string, { last: Promise<unknown>; length: number }>()

  constructor(settings: LockoutSettings, options: LoginGuardOptions = {}) {
    this.settings = settings
    this.#locked = options.locked ?? (() => {})
    this.#nowMs = options.nowMs ?? (() => performance.now())
  }

  /**
   * Resolves with the result of `verify` (null: wrong password), or with 'locked' without calling it. `address`: '' for
   * an unknown address, which is never familiar. Rejects as `verify`, or with RegistryUnavailable where too many
   * attempts wait.
   */
  async attempt<T>(name: string, verify: () => Promise<T | null>, address = ''): Promise<T | 'locked' | null> {
    const key = accountDigest(name)
    const local = keyAt(key, address)
    // Locked attempts do not enter the queue.
    if (this.#isLocked(key, local)) return 'locked'
    return this.#serialise(this.#familiarAddresses.has(local) ? local : key, async () => {
      if (this.#isLocked(key, local)) return 'locked'
      const result = await verify()
      if (result === null) this.#failed(name, address)
      else this.#succeeded(key, local, address !== '' && result !== 'locked')
      return result
    })
  }

  /** Unlocks a name after an administrator set another password. */
  forget(name: string): void {
    const key = accountDigest(name)
    const ending = keyAt(key, '')
    this.#unfamiliar.forget(key)
    this.#byAddress.forgetEnding(ending)
    for (const address of [...this.#familiarAddresses.keys()])
      if (address.endsWith(ending)) this.#familiarAddresses.delete(address)
  }

  async #serialise<T>(queueKey: string, attempt: () => Promise<T>): Promise<T> {
    const queue = this.#queues.get(queueKey) ?? { last: Promise.resolve(), length: 0 }
    if (queue.length >= WAITING_MAX) throw new RegistryUnavailable(`${WAITING_MAX} attempts wait for one name`)
    const own = queue.last.then(attempt)
    queue.length++
    queue.last = own.catch(() => {})
    this.#queues.set(queueKey, queue)
    try {
      return await own
    } finally {
      queue.length--
      if (queue.length === 0) this.#queues.delete(queueKey)
    }
  }

  #isLocked(key: string, local: string): boolean {
    const { failuresMax } = this.settings
    if (failuresMax === 0) return false
    const nowMs = this.#nowMs()
    if (this.#byAddress.count(local, nowMs) >= failuresMax) return true
    return !this.#familiarAddresses.has(local) && this.#unfamiliar.count(key, nowMs) >= failuresMax * ADDRESSES_FACTOR
  }

  #failed(name: string, address: string): void {
    const { failuresMax, lockMs } = this.settings
    if (failuresMax === 0) return
    const key = accountDigest(name)
    const local = keyAt(key, address)
    const nowMs = this.#nowMs()
    if (address !== '' && this.#byAddress.add(local, nowMs, lockMs) === failuresMax) this.#locked(name, address)
    if (this.#familiarAddresses.has(local)) return
    if (this.#unfamiliar.add(key, nowMs, lockMs) === failuresMax * ADDRESSES_FACTOR) this.#locked(name, '')
  }

  #succeeded(key: string, local: string, isFamiliarNow: boolean): void {
    this.#byAddress.forget(local)
    if (!this.#familiarAddresses.has(local)) this.#unfamiliar.forget(key)
    if (isFamiliarNow) this.#familiarAddresses.set(local, true)
  }
}

/** A digest, because clients choose how long a name is. */
function accountDigest(name: string): string {
  return hash('sha256', name, 'base64url')
}

/** Key of a name and the network of a client, which holds no NUL: an IPv6 client may vary the rest of its address. */
function keyAt(key: string, address: string): string {
  return `${networkOf(address)}\0${key}`
}
