/**
 * Which API a request is for: the longest path of context and version that begins its path, segment by segment. The
 * table is replaced as a whole, never edited in place.
 */
import type { Api } from '../exchange/api.ts'

interface Entry {
  readonly api: Api
  readonly path: string
}

/** What `find` found, valid until it is called again. */
export const match = { api: null as Api | null, end: 0 }

export class ApiTable {
  readonly #byPath = new Map<string, Api>()
  #segmentsMax = 0
  /** Lengths that some path has: most candidates are dismissed without making a string of them. */
  readonly #lengths = new Set<number>()

  /** `paths` of one API: context with version, and context alone for a default version. */
  constructor(entries: readonly Entry[]) {
    for (const { path, api } of entries) {
      this.#byPath.set(path, api)
      this.#lengths.add(path.length)
      this.#segmentsMax = Math.max(this.#segmentsMax, path.split('/').length - 1)
    }
  }

  /** Fills `match` for the path that stands in `target` from `from`; its `end` is an index in `target`. */
  find(target: string, from: number): boolean {
    const query = target.indexOf('?', from)
    const pathEnd = query < 0 ? target.length : query
    let end = from
    // Ends of the first segments, as many as the longest context has; then back from the longest.
    for (let segment = 0; segment < this.#segmentsMax && end < pathEnd; segment++) {
      const slash = target.indexOf('/', end + 1)
      end = slash < 0 || slash > pathEnd ? pathEnd : slash
    }
    while (end > from) {
      const api = this.#lengths.has(end - from) ? this.#byPath.get(target.slice(from, end)) : undefined
      if (api !== undefined) {
        match.api = api
        match.end = end
        return true
      }
      end = target.lastIndexOf('/', end - 1)
    }
    return false
  }
}
