/**
 * Which API a request is for: the longest path of context and version that begins its path, segment by segment, as it
 * comes (D15). One pass over the characters, whatever the number of APIs; no string is made. The table is replaced as a
 * whole, never edited in place.
 */
import type { Api } from '../exchange/api.ts'

interface Entry {
  readonly api: Api
  readonly path: string
}

const SLASH = 47
const QUERY = 63
const SEED = 0x811c9dc5
const PRIME = 0x01000193

/** What `find` found, valid until it is called again. */
export const match = { api: null as Api | null, end: 0 }

export class ApiTable {
  /** Entries by the FNV-1a hash of their path; those that share one stand in a list. */
  readonly #byHash = new Map<number, Entry[]>()
  #segmentsMax = 0

  /** `paths` of one API: context with version, and context alone for a default version. */
  constructor(entries: readonly Entry[]) {
    for (const entry of entries) {
      const hash = hashOf(entry.path)
      const same = this.#byHash.get(hash)
      if (same === undefined) this.#byHash.set(hash, [entry])
      else same.push(entry)
      this.#segmentsMax = Math.max(this.#segmentsMax, segmentsOf(entry.path))
    }
  }

  /** Fills `match` for the path that stands in `target` from `from`; its `end` is an index in `target`. */
  find(target: string, from: number): boolean {
    match.api = null
    let hash = SEED
    let segments = 0
    for (let at = from; at < target.length; at++) {
      const code = target.charCodeAt(at)
      if (code === QUERY) {
        this.#take(hash, target, from, at)
        return match.api !== null
      }
      if (code === SLASH && at > from) {
        this.#take(hash, target, from, at)
        if (++segments >= this.#segmentsMax) return match.api !== null
      }
      hash = Math.imul(hash ^ code, PRIME)
    }
    this.#take(hash, target, from, target.length)
    return match.api !== null
  }

  /** A path that ends here is longer than any found before. */
  #take(hash: number, target: string, from: number, end: number): void {
    const entries = this.#byHash.get(hash)
    if (entries === undefined) return
    for (const { path, api } of entries) {
      if (path.length !== end - from || !target.startsWith(path, from)) continue
      match.api = api
      match.end = end
    }
  }
}

function segmentsOf(path: string): number {
  let slashes = 0
  for (let i = 0; i < path.length; i++) if (path.charCodeAt(i) === SLASH) slashes++
  return slashes
}

function hashOf(path: string): number {
  let hash = SEED
  for (let i = 0; i < path.length; i++) hash = Math.imul(hash ^ path.charCodeAt(i), PRIME)
  return hash
}
