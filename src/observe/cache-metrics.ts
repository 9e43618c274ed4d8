/**
 * Copies what caches count into the metrics of their thread, once a second: a lookup touches no shared memory for it.
 * Lookups that have a metric of their own are counted where they happen.
 */
import type { CacheUsage } from '../runtime/cache-usage.ts'
import { METRIC, type MetricsColumn } from './metrics.ts'

type Cells = { readonly [Figure in keyof CacheUsage]: number }

const CELLS = {
  token: { entries: METRIC.tokenEntries, bytes: METRIC.tokenBytes, evictions: METRIC.tokenEvictions },
  refused_token: {
    entries: METRIC.refusedTokenEntries,
    bytes: METRIC.refusedTokenBytes,
    evictions: METRIC.refusedTokenEvictions,
  },
  password: { entries: METRIC.passwordEntries, evictions: METRIC.passwordEvictions },
  backend_jwt: {
    entries: METRIC.backendJwtEntries,
    bytes: METRIC.backendJwtBytes,
    evictions: METRIC.backendJwtEvictions,
  },
  user_claims: {
    entries: METRIC.userClaimsEntries,
    bytes: METRIC.userClaimsBytes,
    evictions: METRIC.userClaimsEvictions,
  },
  anonymous_caller: { entries: METRIC.anonymousCallerEntries, evictions: METRIC.anonymousCallerEvictions },
  head: { entries: METRIC.headEntries, bytes: METRIC.headBytes, evictions: METRIC.headEvictions },
  resource: { entries: METRIC.resourceCacheEntries, evictions: METRIC.resourceCacheEvictions },
  dns: { entries: METRIC.dnsEntries, evictions: METRIC.dnsEvictions, hits: METRIC.dnsHits, misses: METRIC.dnsMisses },
  tls_session: {
    entries: METRIC.tlsSessionEntries,
    evictions: METRIC.tlsSessionEvictions,
    hits: METRIC.tlsSessionHits,
    misses: METRIC.tlsSessionMisses,
  },
  dynamic_endpoint: {
    entries: METRIC.dynamicEndpointEntries,
    evictions: METRIC.dynamicEndpointEvictions,
    hits: METRIC.dynamicEndpointHits,
    misses: METRIC.dynamicEndpointMisses,
  },
  kept_response: {
    entries: METRIC.keptResponseEntries,
    bytes: METRIC.keptResponseBytes,
    evictions: METRIC.keptResponseEvictions,
    hits: METRIC.keptResponseHits,
    misses: METRIC.keptResponseMisses,
  },
  introspection: {
    entries: METRIC.introspectionEntries,
    bytes: METRIC.introspectionBytes,
    evictions: METRIC.introspectionEvictions,
  },
  verified_secret: { entries: METRIC.verifiedSecretEntries, evictions: METRIC.verifiedSecretEvictions },
  assertion: { entries: METRIC.assertionEntries },
} as const satisfies Record<string, Cells>

type CacheName = keyof typeof CELLS
/** A cache that is not there, or not yet, has no usage. */
type Caches = { readonly [Name in CacheName]?: () => CacheUsage | null }

const INTERVAL_MS = 1000
/** Figures that are set; others are counted on, because the column of a thread outlives it. */
const LEVELS: readonly string[] = ['entries', 'bytes']

export class CacheWatch {
  readonly #column: MetricsColumn
  readonly #caches: readonly (readonly [Cells, () => CacheUsage | null])[]
  /** Last counts, by cell. */
  readonly #counted = new Map<number, number>()
  #dueMs = 0

  constructor(column: MetricsColumn, caches: Caches) {
    this.#column = column
    this.#caches = (Object.keys(caches) as CacheName[]).map(name => [CELLS[name], caches[name]!])
  }

  /** A watch with a timer of its own, which keeps no thread alive. */
  static start(column: MetricsColumn, caches: Caches): NodeJS.Timeout {
    const watch = new CacheWatch(column, caches)
    return setInterval(() => watch.tick(performance.now()), INTERVAL_MS).unref()
  }

  /** `nowMs`: `performance.now()`. */
  tick(nowMs: number): void {
    if (nowMs < this.#dueMs) return
    this.#dueMs = nowMs + INTERVAL_MS
    for (const [cells, usageOf] of this.#caches) {
      const usage = usageOf()
      if (usage === null) continue
      for (const [figure, cell] of Object.entries(cells))
        this.#put(figure, cell, usage[figure as keyof CacheUsage] ?? 0)
    }
  }

  #put(figure: string, cell: number, value: number): void {
    if (LEVELS.includes(figure)) {
      this.#column.set(cell, value)
      return
    }
    // Less than before: a reload has replaced the cache.
    this.#column.add(cell, Math.max(0, value - (this.#counted.get(cell) ?? 0)))
    this.#counted.set(cell, value)
  }
}
