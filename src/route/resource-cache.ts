/**
 * What was found in the trees of resources, by the bytes of the path. A tree in which a path takes one way costs less
 * than this would; those with dead ends, or with literal parts of segments, cost up to four times as much
 * (`bench/micro/routing.ts`), and only they are asked through it.
 *
 * Bounded in entries and in bytes of each; a path is taken in when it comes for the second time in a row, so that paths
 * of which each comes once turn nothing out and cost a comparison. Emptied when APIs are deployed.
 */
import type { ResourcePath, ResourceTable } from '../exchange/resource.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import { SEGMENTS_MAX, type ScannedPath } from '../structure/scanned-path.ts'
import type { ResourceTree } from './resource-tree.ts'

const ROWS = 4096
/** Longest path that is remembered. */
const TEXT_MAX = 128
/** Nodes that may have to be visited for one path. */
const CHEAP_EFFORT = 8

export class ResourceCache {
  readonly #metrics: MetricsColumn
  readonly #now: () => number
  #lastsMs = 0
  /** Per row: hash of the path in it, what it is for, and until when that holds. */
  readonly #hashes = new Int32Array(ROWS)
  readonly #tables: (ResourceTable | null)[] = new Array<ResourceTable | null>(ROWS).fill(null)
  readonly #places: (ResourcePath | null)[] = new Array<ResourcePath | null>(ROWS).fill(null)
  readonly #due = new Float64Array(ROWS)
  readonly #lengths = new Uint8Array(ROWS)
  /** Pages that no path has come to are not there. */
  readonly #texts = Buffer.alloc(ROWS * TEXT_MAX)
  /** Hash of the path that was looked for in vain last. */
  readonly #missed = new Int32Array(ROWS)

  /** `now`: a clock that need not be exact, in milliseconds. */
  constructor(metrics: MetricsColumn, now: () => number) {
    this.#metrics = metrics
    this.#now = now
  }

  /** How long something is remembered, from now on; 0: nothing is. */
  keepFor(ms: number): void {
    if (ms !== this.#lastsMs) this.clear()
    this.#lastsMs = ms
  }

  clear(): void {
    this.#tables.fill(null)
    this.#places.fill(null)
  }

  /** The tree, asked through this where that wins something. */
  before(tree: ResourceTree): ResourceTable {
    return { find: (path, segments) => this.#find(tree, path, segments) }
  }

  #find(tree: ResourceTree, path: ScannedPath, segments: number): ResourcePath | null {
    if (tree.effort <= CHEAP_EFFORT) return tree.find(path, segments)
    const length = path.end - path.from
    if (this.#lastsMs === 0 || length > TEXT_MAX || path.count > SEGMENTS_MAX) return tree.find(path, segments)
    // A slash at the end may make a difference.
    const hash = path.prefixes[path.count - 1]! ^ (path.endsInSlash ? 1 : 0)
    const row = hash & (ROWS - 1)
    if (this.#hashes[row] === hash && this.#tables[row] === tree && this.#holds(row, path, length)) {
      this.#metrics.add(METRIC.resourceCacheHits, 1)
      return this.#places[row]!
    }
    this.#metrics.add(METRIC.resourceCacheMisses, 1)
    const place = tree.find(path, segments)
    if (this.#missed[row] === hash) this.#put(row, hash, tree, path, place)
    else this.#missed[row] = hash
    return place
  }

  #holds(row: number, path: ScannedPath, length: number): boolean {
    if (this.#lengths[row] !== length || this.#now() >= this.#due[row]!) return false
    const texts = this.#texts
    const { bytes, from } = path
    const at = row * TEXT_MAX
    for (let i = 0; i < length; i++) if (texts[at + i] !== bytes[from + i]) return false
    return true
  }

  #put(row: number, hash: number, tree: ResourceTree, path: ScannedPath, place: ResourcePath | null): void {
    this.#hashes[row] = hash
    this.#tables[row] = tree
    this.#places[row] = place
    this.#due[row] = this.#now() + this.#lastsMs
    this.#lengths[row] = path.end - path.from
    path.bytes.copy(this.#texts, row * TEXT_MAX, path.from, path.end)
  }
}
