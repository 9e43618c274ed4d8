/**
 * Cache of resource lookups, by the bytes of the path (D70). Only trees with costly lookups use it: dead ends and
 * partial literals cost up to four times as much as a hit, a plain tree costs less (`bench/micro/routing.ts`). Number
 * and size of entries are bounded. A path enters when it is missed twice in a row, so that one-off paths evict nothing.
 * Deployments clear the cache.
 */
import type { ResourcePath, ResourceTable } from '../proxy/exchange/resource.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import type { CacheUsage } from '../runtime/cache-usage.ts'
import { SEGMENTS_MAX, type ScannedPath } from './scanned-path.ts'
import type { ResourceTree } from './resource-tree.ts'

const SLOTS = 4096
/** Longest path that is cached, in bytes. */
const PATH_BYTES_MAX = 128
/** Trees up to this cost are searched directly. */
const CHEAP_COST = 8

/** By slot: hash of the path, tree, result, expiry and bytes of the path. */
class Slots {
  readonly hashes = new Int32Array(SLOTS)
  readonly trees: (ResourceTree | null)[] = new Array<ResourceTree | null>(SLOTS).fill(null)
  readonly results: (ResourcePath | null)[] = new Array<ResourcePath | null>(SLOTS).fill(null)
  readonly expiresMs = new Float64Array(SLOTS)
  readonly lengths = new Uint8Array(SLOTS)
  /** Untouched pages take no memory. */
  readonly paths = Buffer.alloc(SLOTS * PATH_BYTES_MAX)
  /** By slot: hash of the path that was missed last. */
  readonly missed = new Int32Array(SLOTS)
  entries = 0
  evictions = 0

  clear(): void {
    this.trees.fill(null)
    this.results.fill(null)
    this.entries = 0
  }

  holds(slot: number, path: ScannedPath, length: number, nowMs: number): boolean {
    if (this.lengths[slot] !== length || nowMs >= this.expiresMs[slot]!) return false
    const { paths } = this
    const { bytes, from } = path
    const at = slot * PATH_BYTES_MAX
    for (let i = 0; i < length; i++) if (paths[at + i] !== bytes[from + i]) return false
    return true
  }

  put(slot: number, hash: number, tree: ResourceTree, path: ScannedPath): void {
    if (this.trees[slot] === null) this.entries++
    else if (this.hashes[slot] !== hash) this.evictions++
    this.hashes[slot] = hash
    this.trees[slot] = tree
    this.lengths[slot] = path.end - path.from
    path.bytes.copy(this.paths, slot * PATH_BYTES_MAX, path.from, path.end)
  }
}

export class ResourceCache {
  readonly #metrics: MetricsColumn
  readonly #now: () => number
  #lifetimeMs = 0
  /** Null until the first costly lookup: most nodes have none. */
  #slots: Slots | null = null

  /** `now`: milliseconds of a monotonic clock; it may be coarse. */
  constructor(metrics: MetricsColumn, now: () => number) {
    this.#metrics = metrics
    this.#now = now
  }

  /** Lifetime of entries, in milliseconds; 0 switches the cache off. A change clears the cache. */
  setLifetime(ms: number): void {
    if (ms !== this.#lifetimeMs) this.clear()
    this.#lifetimeMs = ms
  }

  clear(): void {
    this.#slots?.clear()
  }

  /** Entries whose life is over count until another one takes their place. */
  usage(): CacheUsage {
    return { entries: this.#slots?.entries ?? 0, evictions: this.#slots?.evictions ?? 0 }
  }

  /** Returns a table that searches the tree, through this cache where that is faster. */
  wrap(tree: ResourceTree): ResourceTable {
    return { find: (path, segments) => this.#find(tree, path, segments) }
  }

  #find(tree: ResourceTree, path: ScannedPath, segments: number): ResourcePath | null {
    if (tree.cost <= CHEAP_COST) return tree.find(path, segments)
    const length = path.end - path.from
    if (this.#lifetimeMs === 0 || length > PATH_BYTES_MAX || path.segmentCount > SEGMENTS_MAX) {
      return tree.find(path, segments)
    }
    this.#slots ??= new Slots()
    const slots = this.#slots
    // A slash at the end can lead to another resource.
    const hash = path.prefixHashes[path.segmentCount - 1]! ^ (path.endsInSlash ? 1 : 0)
    const slot = hash & (SLOTS - 1)
    if (slots.hashes[slot] === hash && slots.trees[slot] === tree && slots.holds(slot, path, length, this.#now())) {
      this.#metrics.add(METRIC.resourceCacheHits, 1)
      return slots.results[slot]!
    }
    this.#metrics.add(METRIC.resourceCacheMisses, 1)
    const result = tree.find(path, segments)
    if (slots.missed[slot] === hash) {
      slots.put(slot, hash, tree, path)
      slots.results[slot] = result
      slots.expiresMs[slot] = this.#now() + this.#lifetimeMs
    } else slots.missed[slot] = hash
    return result
  }
}
