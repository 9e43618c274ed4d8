/**
 * Which API a request is for: the longest path of context and version that begins its path, segment by segment. Where
 * APIs are reached under host names of their own, those of the request's host are looked for beside the others; of two
 * paths of one length that of the host is taken. Costs the same whatever the number of APIs; no string is made. Changed
 * between requests only.
 */
import type { Api } from '../exchange/api.ts'
import { hostName } from '../structure/host-name.ts'
import type { ScannedPath } from '../structure/scanned-path.ts'
import { PathTable } from './path-table.ts'

/** Where an API is reached. */
export interface ApiEntry {
  readonly api: Api
  /** Canonical, without a slash at its end. */
  readonly path: string
  /** Host names under which alone; none: every one. */
  readonly hosts: readonly string[]
}

/** What `find` found, valid until it is called again; `segments`: how many of the path are that of the API. */
export const match = { api: null as Api | null, segments: 0 }

export class ApiTable {
  readonly #everywhere = new PathTable()
  /** By host name. */
  readonly #hosts = new Map<string, PathTable>()
  /** Authority asked for last, and what its host has of its own: nearly always those of the next request. */
  #lastAuthority = ''
  #lastOwn: PathTable | null = null

  add({ api, path, hosts }: ApiEntry): void {
    this.#forget()
    if (hosts.length === 0) this.#everywhere.add(path, api)
    for (const host of hosts) {
      const name = hostName(host)
      const table = this.#hosts.get(name) ?? new PathTable()
      this.#hosts.set(name, table)
      table.add(path, api)
    }
  }

  remove({ api, path, hosts }: ApiEntry): void {
    this.#forget()
    if (hosts.length === 0) this.#everywhere.remove(path, api)
    for (const host of hosts) {
      const name = hostName(host)
      const table = this.#hosts.get(name)
      table?.remove(path, api)
      if (table?.segmentsMax === 0) this.#hosts.delete(name)
    }
  }

  /** Fills `match`. `authority`: what the client asked for, with its port or without. */
  find(path: ScannedPath, authority: string): boolean {
    const everywhere = this.#everywhere
    const own = this.#hosts.size === 0 ? null : this.#ownOf(authority)
    const most = own === null ? everywhere.segmentsMax : Math.max(own.segmentsMax, everywhere.segmentsMax)
    for (let segments = Math.min(path.count, most); segments > 0; segments--) {
      const api = own?.find(path, segments) ?? everywhere.find(path, segments)
      if (api === undefined) continue
      match.api = api
      match.segments = segments
      return true
    }
    match.api = null
    return false
  }

  #ownOf(authority: string): PathTable | null {
    if (authority !== this.#lastAuthority) {
      this.#lastOwn = this.#hosts.get(hostName(authority)) ?? null
      this.#lastAuthority = authority
    }
    return this.#lastOwn
  }

  #forget(): void {
    this.#lastAuthority = ''
    this.#lastOwn = null
  }
}
