/**
 * Rate limits and lockout, counted per key in one-minute windows (rates) or lock periods (failures). Memory is bounded:
 * the least recently used key is dropped first.
 */
import { hash } from 'node:crypto'
import type { Context } from 'hono'
import { LRUCache } from 'lru-cache'
import { networkOf } from '../../runtime/ip-address.ts'
import { growingTo } from '../../runtime/lru-options.ts'
import type { KeyManager } from './key-manager.ts'
import { tooManyRequests } from './oauth-error.ts'

/** Stored as digests: clients choose how long a key is. */
const KEYS_MAX = 16_384
const WINDOW_MS = 60_000

interface Window {
  count: number
  /** Milliseconds since 1970. */
  readonly fromMs: number
  readonly forMs: number
}

/** Counts requests per key, such as a client or an address. */
export class RateLimiter {
  readonly #windows = new LRUCache<string, Window>(growingTo(KEYS_MAX))
  readonly #nowMs: () => number

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Throws OAuthError (429) where the limit is reached; counts nothing. `perMinute`: -1 for no limit. */
  check(key: string, perMinute: number): void {
    const window = this.#windows.get(digestOf(key))
    if (perMinute === -1 || window === undefined || window.count < perMinute) return
    const leftMs = remainingMs(window, this.#nowMs())
    if (leftMs > 0) throw tooManyRequests('too many requests', leftMs)
  }

  /** Counts one request. Throws OAuthError (429) beyond `perMinute`; -1 for no limit. */
  count(key: string, perMinute: number): void {
    if (perMinute === -1) return
    const nowMs = this.#nowMs()
    const window = this.#windows.get(digestOf(key))
    if (window === undefined || remainingMs(window, nowMs) === 0) {
      this.#windows.set(digestOf(key), { count: 1, fromMs: nowMs, forMs: WINDOW_MS })
      return
    }
    window.count++
    if (window.count > perMinute) throw tooManyRequests('too many requests', remainingMs(window, nowMs))
  }
}

/**
 * Locks clients out after wrong credentials, per client and network; a locked client is refused without checking its
 * secret. The registry's login guard counts failures of users.
 */
export class Lockout {
  readonly #failures = new LRUCache<string, Window>(growingTo(KEYS_MAX))
  readonly #nowMs: () => number

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Throws OAuthError (429) while the key is locked. `max`: failures before the lock; -1 for no lock. */
  check(key: string, max: number): void {
    const window = this.#failures.get(digestOf(key))
    if (max === -1 || window === undefined || window.count < max) return
    const leftMs = remainingMs(window, this.#nowMs())
    if (leftMs > 0) throw tooManyRequests('too many failures', leftMs)
    this.#failures.delete(digestOf(key))
  }

  /**
   * Counts a failure; `forMs`: how long failures count, from the last one on. True where this failure locks the key.
   */
  failed(key: string, max: number, forMs: number): boolean {
    const nowMs = this.#nowMs()
    const window = this.#failures.get(digestOf(key))
    const count = window === undefined || remainingMs(window, nowMs) === 0 ? 1 : window.count + 1
    this.#failures.set(digestOf(key), { count, fromMs: nowMs, forMs })
    return count === max
  }

  succeeded(key: string): void {
    this.#failures.delete(digestOf(key))
  }
}

/** Counts a request against the limit of its client's network. Returns the address. Throws OAuthError (429). */
export function countRequest(manager: KeyManager, context: Context): string {
  const address = clientAddressOf(context)
  manager.rateLimiter.count(`address ${networkOf(address)}`, manager.settings.limits.perAddress)
  return address
}

/** Address of the client, as the management listener determined it. */
export function clientAddressOf({ env }: Context): string {
  const { clientAddress } = env as { readonly clientAddress: string }
  return clientAddress
}

/** Milliseconds until a window ends; 0 where the clock was set back, so that a lock never grows. */
function remainingMs({ fromMs, forMs }: Window, nowMs: number): number {
  return nowMs < fromMs ? 0 : Math.max(0, fromMs + forMs - nowMs)
}

function digestOf(key: string): string {
  return hash('sha256', key, 'base64url')
}
