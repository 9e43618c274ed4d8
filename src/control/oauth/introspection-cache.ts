/** Caches introspection responses for `[apim.cache.km_token]`. Bounded; every revocation empties it. */
import { LRUCache } from 'lru-cache'
import type { CacheUsage } from '../../runtime/cache-usage.ts'
import { Evictions } from '../../runtime/lru-options.ts'

const ENTRIES_MAX = 10_000
const CHARS_MAX = 8 << 20
/** Counted for a short entry: it limits their number, and the cache allocates as it fills. */
const ENTRY_CHARS_MIN = Math.ceil(CHARS_MAX / ENTRIES_MAX)
/** Milliseconds for inactive tokens, as in a gateway: a token that becomes valid is refused no longer than this. */
const INACTIVE_MS = 10_000

/** RFC 7662 2.2. */
export type IntrospectionResponse = Readonly<Record<string, unknown>>

interface CachedIntrospection {
  readonly response: IntrospectionResponse
  readonly untilMs: number
}

export class IntrospectionCache {
  readonly #entries: LRUCache<string, CachedIntrospection>
  readonly #nowMs: () => number
  readonly #evictions = new Evictions()
  #version = 0

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
    this.#entries = new LRUCache<string, CachedIntrospection>({
      maxSize: CHARS_MAX,
      sizeCalculation: ({ response }, key) => Math.max(JSON.stringify(response).length + key.length, ENTRY_CHARS_MIN),
      dispose: this.#evictions.dispose,
    })
  }

  usage(): CacheUsage {
    const { size, calculatedSize } = this.#entries
    return { entries: size, bytes: calculatedSize, evictions: this.#evictions.count }
  }

  get(key: string): IntrospectionResponse | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.untilMs > this.#nowMs()) return entry?.response
    this.#entries.delete(key)
    return undefined
  }

  /** Changes with every revocation. */
  get version(): number {
    return this.#version
  }

  /** `version`: read before the registry was; a response from before a revocation is not cached. */
  set(key: string, response: IntrospectionResponse, lifeMs: number, version: number): void {
    if (version !== this.#version) return
    const keptMs = response.active === true ? lifeMs : Math.min(lifeMs, INACTIVE_MS)
    this.#entries.set(key, { response, untilMs: this.#nowMs() + keptMs })
  }

  /** Called after a revocation, by this node or another user of the registry. */
  clear(): void {
    this.#version++
    this.#entries.clear()
  }
}
