/**
 * Addresses of backend names, in the order of the resolver, in a bounded cache. A name that resolves is not asked for
 * again within `dns.cache_seconds`, one that does not within a second. Each lookup occupies a thread of libuv's small
 * pool, so requests for one name share a lookup.
 */
import { lookup } from 'node:dns'
import { isIP } from 'node:net'
import { LRUCache } from 'lru-cache'
import type { CacheUsage } from '../runtime/cache-usage.ts'
import { Evictions, growingTo } from '../runtime/lru-options.ts'

const NAMES_MAX = 1000
const FAILURE_MS = 1000

/** Gets an errno name or addresses. */
type Callback = (error: string | null, addresses: readonly string[]) => void
type Resolver = (
  host: string,
  options: { readonly all: true; readonly order: 'verbatim' },
  callback: (error: NodeJS.ErrnoException | null, found: readonly { readonly address: string }[]) => void,
) => void

export class DnsCache {
  /** null: addresses are not kept. */
  #addresses: LRUCache<string, readonly string[]> | null
  #ttlSeconds: number
  /** Error of each name that did not resolve lately. */
  readonly #failures: LRUCache<string, string>
  /** Callbacks of each lookup under way, by name. */
  readonly #lookups = new Map<string, Callback[]>()
  readonly #resolver: Resolver
  readonly #evictions = new Evictions()
  #hits = 0
  #misses = 0

  constructor(ttlSeconds: number, resolver: Resolver = lookup, failureMs = FAILURE_MS) {
    this.#addresses = this.#newCache(ttlSeconds)
    this.#ttlSeconds = ttlSeconds
    this.#failures = new LRUCache<string, string>({
      ...growingTo(NAMES_MAX),
      ttl: failureMs,
      dispose: this.#evictions.dispose,
    })
    this.#resolver = resolver
  }

  /** Names that resolved, and names that did not. Numeric addresses are not looked up. */
  usage(): CacheUsage {
    const entries = (this.#addresses?.size ?? 0) + this.#failures.size
    return { entries, evictions: this.#evictions.count, hits: this.#hits, misses: this.#misses }
  }

  /** Sets how long addresses are kept; a new value empties the cache. */
  setTtl(seconds: number): void {
    if (seconds === this.#ttlSeconds) return
    this.#addresses = this.#newCache(seconds)
    this.#ttlSeconds = seconds
  }

  /** Numeric addresses of a host. A cached result, also a failure, is passed to the callback at once. */
  resolve(host: string, callback: Callback): void {
    const literal = host.startsWith('[') ? host.slice(1, -1) : host
    if (isIP(literal) !== 0) {
      callback(null, [literal])
      return
    }
    const known = this.#addresses?.get(host)
    if (known !== undefined) {
      this.#hits++
      callback(null, known)
      return
    }
    const failure = this.#failures.get(host)
    if (failure !== undefined) {
      this.#hits++
      callback(failure, [])
      return
    }
    this.#misses++
    const waiting = this.#lookups.get(host)
    if (waiting === undefined) this.#lookup(host, callback)
    else waiting.push(callback)
  }

  #lookup(host: string, first: Callback): void {
    const waiting = [first]
    this.#lookups.set(host, waiting)
    this.#resolver(host, { all: true, order: 'verbatim' }, (error, found) => {
      this.#lookups.delete(host)
      const code = error === null ? null : (error.code ?? 'ENOTFOUND')
      const addresses = code === null ? found.map(({ address }) => address) : []
      if (code === null) this.#addresses?.set(host, addresses)
      else this.#failures.set(host, code)
      // Separate ticks: a callback that throws must not keep the result from the others.
      for (const callback of waiting) process.nextTick(callback, code, addresses)
    })
  }

  #newCache(seconds: number): LRUCache<string, readonly string[]> | null {
    const { dispose } = this.#evictions
    if (seconds === 0) return null
    return new LRUCache<string, readonly string[]>({ ...growingTo(NAMES_MAX), ttl: seconds * 1000, dispose })
  }
}
