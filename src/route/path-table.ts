/**
 * APIs by their paths: an open hash table, whose rows are a hash beside its API, so that a look-up touches little
 * memory however many there are. Changed between requests only.
 */
import type { Api } from '../exchange/api.ts'
import { hashesOf, type ScannedPath } from '../structure/scanned-path.ts'

interface Entry {
  readonly api: Api
  readonly text: Buffer
  readonly segments: number
}

const ROWS_MIN = 4

export class PathTable {
  #hashes = new Int32Array(ROWS_MIN)
  #entries: (Entry | undefined)[] = new Array<Entry | undefined>(ROWS_MIN).fill(undefined)
  #size = 0
  /** How many paths have so many segments, less one. */
  readonly #bySegments: number[] = []

  /** Of the path with the most; 0: there is no path. */
  get segmentsMax(): number {
    return this.#bySegments.length
  }

  add(path: string, api: Api): void {
    const { text, segments, all } = hashesOf(path)
    if (++this.#size * 2 > this.#entries.length) this.#grow()
    this.#put(all, { api, text, segments })
    while (this.#bySegments.length < segments) this.#bySegments.push(0)
    this.#bySegments[segments - 1]!++
  }

  remove(path: string, api: Api): void {
    const { segments, all } = hashesOf(path)
    const mask = this.#entries.length - 1
    let row = all & mask
    for (; ; row = (row + 1) & mask) {
      const entry = this.#entries[row]
      if (entry === undefined) return
      if (entry.api === api && entry.text.latin1Slice(0, entry.text.length) === path) break
    }
    this.#close(row, mask)
    this.#size--
    this.#bySegments[segments - 1]!--
    while (this.#bySegments.at(-1) === 0) this.#bySegments.pop()
  }

  /** The API whose path is the first `segments` segments. */
  find(path: ScannedPath, segments: number): Api | undefined {
    if (segments > this.#bySegments.length || this.#bySegments[segments - 1] === 0) return undefined
    const hash = path.prefixes[segments - 1]!
    const mask = this.#hashes.length - 1
    for (let row = hash & mask; ; row = (row + 1) & mask) {
      const entry = this.#entries[row]
      if (entry === undefined) return undefined
      if (this.#hashes[row] !== hash || entry.segments !== segments) continue
      if (path.holds(entry.text, path.from, path.ends[segments - 1]!)) return entry.api
    }
  }

  #put(hash: number, entry: Entry): void {
    const mask = this.#entries.length - 1
    let row = hash & mask
    while (this.#entries[row] !== undefined) row = (row + 1) & mask
    this.#hashes[row] = hash
    this.#entries[row] = entry
  }

  #grow(): void {
    const [hashes, entries] = [this.#hashes, this.#entries]
    this.#hashes = new Int32Array(hashes.length * 2)
    this.#entries = new Array<Entry | undefined>(entries.length * 2).fill(undefined)
    for (const [row, entry] of entries.entries()) if (entry !== undefined) this.#put(hashes[row]!, entry)
  }

  /** Empties a row; those behind it that had to give way to it move up, or they would not be found any more. */
  #close(row: number, mask: number): void {
    let hole = row
    for (let at = (row + 1) & mask; this.#entries[at] !== undefined; at = (at + 1) & mask) {
      const home = this.#hashes[at]! & mask
      if (((at - home) & mask) < ((at - hole) & mask)) continue
      this.#entries[hole] = this.#entries[at]
      this.#hashes[hole] = this.#hashes[at]!
      hole = at
    }
    this.#entries[hole] = undefined
  }
}
