/**
 * Finds the API of a request: the API whose path (context and version) is the longest prefix of the request path,
 * segment by segment (D69). A path may hold variables: segment by segment, a literal comes before a variable (D290).
 * APIs of the request's host and APIs of every host are searched together; of two paths with the same length that of
 * the host wins. An API at "/" serves what no other path leads to. A lookup takes the same time for any number of APIs
 * without variables and makes no string. Tables change between requests only.
 */
import type { Api } from '../proxy/exchange/api.ts'
import { hostName } from '../http1/host-name.ts'
import { hashPath, type ScannedPath } from './scanned-path.ts'

/** An API at one of its paths. */
export interface ApiEntry {
  readonly api: Api
  /** Canonical but for segments `{name}`, without a slash at its end; "/" for every path. */
  readonly path: string
  /** Hosts that serve the API; empty for every host. */
  readonly hosts: readonly string[]
}

export class ApiTable {
  readonly #everyHost = new PathTable()
  readonly #byHost = new Map<string, PathTable>()
  /** Authority of the last lookup and its table, because the next request usually has the same one. */
  #lastAuthority = ''
  #lastTable: PathTable | null = null

  add({ api, path, hosts }: ApiEntry): void {
    this.#forgetLast()
    if (hosts.length === 0) this.#everyHost.add(path, api)
    for (const host of hosts) {
      const name = hostName(host)
      const table = this.#byHost.get(name) ?? new PathTable()
      this.#byHost.set(name, table)
      table.add(path, api)
    }
  }

  remove({ api, path, hosts }: ApiEntry): void {
    this.#forgetLast()
    if (hosts.length === 0) this.#everyHost.remove(path, api)
    for (const host of hosts) {
      const name = hostName(host)
      const table = this.#byHost.get(name)
      table?.remove(path, api)
      if (table?.isEmpty) this.#byHost.delete(name)
    }
  }

  /** Returns the API, or null, and sets `path.apiSegments`. `authority`: host of the request, with or without port. */
  find(path: ScannedPath, authority: string): Api | null {
    const everyHost = this.#everyHost
    const own = this.#byHost.size === 0 ? null : this.#tableOf(authority)
    const most = own === null ? everyHost.segmentsMax : Math.max(own.segmentsMax, everyHost.segmentsMax)
    for (let segments = Math.min(path.segmentCount, most); segments > 0; segments--) {
      const api = own?.find(path, segments) ?? everyHost.find(path, segments)
      if (api === undefined) continue
      path.apiSegments = segments
      return api
    }
    path.apiSegments = 0
    return own?.root ?? everyHost.root
  }

  #tableOf(authority: string): PathTable | null {
    if (authority !== this.#lastAuthority) {
      this.#lastTable = this.#byHost.get(hostName(authority)) ?? null
      this.#lastAuthority = authority
    }
    return this.#lastTable
  }

  #forgetLast(): void {
    this.#lastAuthority = ''
    this.#lastTable = null
  }
}

interface PathEntry {
  readonly api: Api
  readonly bytes: Buffer
  readonly segments: number
}

/** A path with variables. */
interface TemplateEntry {
  readonly api: Api
  readonly path: string
  /** By segment: its bytes; null for a variable. */
  readonly literals: readonly (Buffer | null)[]
}

const VARIABLE = /^\{.*\}$/
const SLOTS_MIN = 4
const ROOT = '/'

/** APIs by path: a hash table with open addressing. Hashes have an array of their own: a lookup reads little memory. */
class PathTable {
  #hashes = new Int32Array(SLOTS_MIN)
  #entries: (PathEntry | undefined)[] = new Array<PathEntry | undefined>(SLOTS_MIN).fill(undefined)
  #size = 0
  /** Number of paths by number of segments, less one. */
  readonly #bySegments: number[] = []
  /** Paths with variables by number of segments, less one, in the order in which they are tried. */
  readonly #templates: TemplateEntry[][] = []
  /** The API at "/". */
  root: Api | null = null

  get isEmpty(): boolean {
    return this.segmentsMax === 0 && this.root === null
  }

  /** Segments of the longest path; 0 for an empty table. */
  get segmentsMax(): number {
    return Math.max(this.#bySegments.length, this.#templates.length)
  }

  add(path: string, api: Api): void {
    if (path === ROOT) {
      this.root = api
      return
    }
    if (path.includes('{')) {
      this.#addTemplate(path, api)
      return
    }
    const { bytes, segments, all } = hashPath(path)
    if (++this.#size * 2 > this.#entries.length) this.#grow()
    this.#put(all, { api, bytes, segments })
    while (this.#bySegments.length < segments) this.#bySegments.push(0)
    this.#bySegments[segments - 1]!++
  }

  remove(path: string, api: Api): void {
    if (path === ROOT) {
      if (this.root === api) this.root = null
      return
    }
    if (path.includes('{')) {
      this.#removeTemplate(path, api)
      return
    }
    const { segments, all } = hashPath(path)
    const mask = this.#entries.length - 1
    let slot = all & mask
    for (; ; slot = (slot + 1) & mask) {
      const entry = this.#entries[slot]
      if (entry === undefined) return
      if (entry.api === api && entry.bytes.latin1Slice(0, entry.bytes.length) === path) break
    }
    this.#empty(slot, mask)
    this.#size--
    this.#bySegments[segments - 1]!--
    while (this.#bySegments.at(-1) === 0) this.#bySegments.pop()
  }

  /** The API whose path is the first `segments` segments of `path`. */
  find(path: ScannedPath, segments: number): Api | undefined {
    const literal = this.#findLiteral(path, segments)
    if (literal !== undefined || segments > this.#templates.length) return literal
    return this.#templates[segments - 1]!.find(({ literals }) => matchesTemplate(path, literals))?.api
  }

  #findLiteral(path: ScannedPath, segments: number): Api | undefined {
    if (segments > this.#bySegments.length || this.#bySegments[segments - 1] === 0) return undefined
    const hash = path.prefixHashes[segments - 1]!
    const mask = this.#hashes.length - 1
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const entry = this.#entries[slot]
      if (entry === undefined) return undefined
      if (this.#hashes[slot] !== hash || entry.segments !== segments) continue
      if (path.matches(entry.bytes, path.from, path.segmentEnds[segments - 1]!)) return entry.api
    }
  }

  #addTemplate(path: string, api: Api): void {
    const literals = path
      .slice(1)
      .split('/')
      .map(segment => (VARIABLE.test(segment) ? null : hashPath(`/${segment}`).bytes.subarray(1)))
    while (this.#templates.length < literals.length) this.#templates.push([])
    const ofLength = this.#templates[literals.length - 1]!
    ofLength.push({ api, path, literals })
    ofLength.sort((one, other) => compareTemplates(one.literals, other.literals))
  }

  #removeTemplate(path: string, api: Api): void {
    for (const ofLength of this.#templates) {
      const at = ofLength.findIndex(entry => entry.api === api && entry.path === path)
      if (at >= 0) ofLength.splice(at, 1)
    }
    while (this.#templates.at(-1)?.length === 0) this.#templates.pop()
  }

  #put(hash: number, entry: PathEntry): void {
    const mask = this.#entries.length - 1
    let slot = hash & mask
    while (this.#entries[slot] !== undefined) slot = (slot + 1) & mask
    this.#hashes[slot] = hash
    this.#entries[slot] = entry
  }

  #grow(): void {
    const [hashes, entries] = [this.#hashes, this.#entries]
    this.#hashes = new Int32Array(hashes.length * 2)
    this.#entries = new Array<PathEntry | undefined>(entries.length * 2).fill(undefined)
    for (const [slot, entry] of entries.entries()) if (entry !== undefined) this.#put(hashes[slot]!, entry)
  }

  /** Empties a slot. Entries after it that probing displaced move up, or lookups would no longer find them. */
  #empty(slot: number, mask: number): void {
    let hole = slot
    for (let at = (slot + 1) & mask; this.#entries[at] !== undefined; at = (at + 1) & mask) {
      const home = this.#hashes[at]! & mask
      if (((at - home) & mask) < ((at - hole) & mask)) continue
      this.#entries[hole] = this.#entries[at]
      this.#hashes[hole] = this.#hashes[at]!
      hole = at
    }
    this.#entries[hole] = undefined
  }
}

function matchesTemplate(path: ScannedPath, literals: TemplateEntry['literals']): boolean {
  for (const [segment, text] of literals.entries()) {
    if (text === null) continue
    if (!path.matches(text, path.segmentStart(segment), path.segmentEnds[segment]!)) return false
  }
  return true
}

/** Segment by segment, a literal comes before a variable. */
function compareTemplates(one: TemplateEntry['literals'], other: TemplateEntry['literals']): number {
  for (const [segment, text] of one.entries()) {
    const difference = Number(text === null) - Number(other[segment] === null)
    if (difference !== 0) return difference
  }
  return 0
}
