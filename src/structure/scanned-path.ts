/**
 * A path, read once: whether it is canonical (canonical-path.ts), where its segments end, and their hashes, by which
 * APIs and resources are found. One per thread, filled anew for each request; no string is made.
 */
import { canonicalEscapeEnd, isDotSegment, PATH_BYTE, PATH_BYTES } from './canonical-path.ts'

/** What lies deeper has no hash: nothing that is looked for has so many segments. */
export const SEGMENTS_MAX = 256

// Names of this file: what is imported would be looked up for every byte.
const KINDS = PATH_BYTES
const { PLAIN, SLASH: SEPARATOR, PERCENT: ESCAPE, QUERY } = PATH_BYTE
/** FNV-1a. With its sign: beyond 31 bits every hash would be kept as a fraction, at twice the cost. */
const SEED = 0x811c9dc5 | 0
const PRIME = 0x01000193
const SLASH = 0x2f
const DOT = 0x2e
const PLUS = 0x2b

export class ScannedPath {
  /** What it was read from, until something else is put there. */
  bytes: Buffer = Buffer.alloc(0)
  from = 0
  /** Behind the path: its query, or the end of the target. */
  end = 0
  /** Segments; an empty one at the end does not count. */
  count = 0
  /** Of each segment: where it ends, its hash, and that of all up to it. */
  readonly ends = new Int32Array(SEGMENTS_MAX)
  readonly hashes = new Int32Array(SEGMENTS_MAX)
  readonly prefixes = new Int32Array(SEGMENTS_MAX)

  /**
   * Reads the path that begins at `from`, in a target that ends at `end`. False where it is not canonical. The odd
   * shape, a tight loop per segment and all in local names, takes a third of the time (`bench/micro/routing.ts`).
   */
  read(bytes: Buffer, from: number, end: number): boolean {
    const { ends, hashes, prefixes } = this
    let count = 0
    let prefix = SEED
    let at = from
    let kind: number = bytes[from] === SLASH ? SEPARATOR : QUERY
    while (at < end && kind === SEPARATOR) {
      const start = ++at
      let hash = SEED
      while (at < end) {
        const byte = bytes[at]!
        kind = KINDS[byte]!
        if (kind === PLAIN) {
          hash = Math.imul(hash ^ byte, PRIME)
          at++
        } else if (kind === ESCAPE) {
          const next = canonicalEscapeEnd(bytes, at, end)
          if (next < 0) return false
          hash = hashEscapes(hash, bytes, at, next)
          at = next
        } else break
      }
      if (at === start) {
        // "//"; what ends so has no last segment.
        if (at < end && kind === SEPARATOR) return false
        break
      }
      if (bytes[start] === DOT && isDotSegment(bytes, start, end)) return false
      if (count < SEGMENTS_MAX) {
        prefix = Math.imul(prefix ^ hash, PRIME)
        ends[count] = at
        hashes[count] = hash
        prefixes[count] = prefix
      }
      count++
    }
    this.bytes = bytes
    this.from = from
    this.end = at
    this.count = count
    return at >= end || kind === QUERY
  }

  /** Where the segment begins, behind its slash. */
  startOf(segment: number): number {
    return (segment === 0 ? this.from : this.ends[segment - 1]!) + 1
  }

  get endsInSlash(): boolean {
    return this.end > this.from && this.bytes[this.end - 1] === SLASH
  }

  /** Whether `text` stands from `at` to `to`; it holds no escaped "+". */
  holds(text: Uint8Array, at: number, to: number): boolean {
    const { bytes } = this
    if (text.length !== to - at) return to - at > text.length && this.#holdsEscapedPlus(text, at, to)
    for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text[i]) return false
    return true
  }

  #holdsEscapedPlus(text: Uint8Array, from: number, to: number): boolean {
    let at = from
    for (const byte of text) {
      if (this.bytes[at] === byte) at++
      else if (byte === PLUS && isEscapedPlus(this.bytes, at)) at += 3
      else return false
    }
    return at === to
  }

  /** From `at` to `to`, each "+" as it is. */
  text(at: number, to: number): string {
    return this.bytes.latin1Slice(at, to).replaceAll('%2B', '+')
  }
}

function isEscapedPlus(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === 0x25 && bytes[at + 1] === 0x32 && bytes[at + 2] === 0x42
}

function hashEscapes(hash: number, bytes: Uint8Array, from: number, end: number): number {
  if (isEscapedPlus(bytes, from)) return Math.imul(hash ^ PLUS, PRIME)
  let result = hash
  for (let at = from; at < end; at++) result = Math.imul(result ^ bytes[at]!, PRIME)
  return result
}

const declared = new ScannedPath()

/** A path that is declared: its bytes, and the hashes of its last segment and of all. */
export function hashesOf(path: string): {
  readonly text: Buffer
  readonly segments: number
  readonly last: number
  readonly all: number
} {
  const text = Buffer.from(path, 'latin1')
  if (!declared.read(text, 0, text.length) || declared.count === 0) throw new Error(`${path} is not canonical`)
  const last = declared.count - 1
  return { text, segments: declared.count, last: declared.hashes[last]!, all: declared.prefixes[last]! }
}
