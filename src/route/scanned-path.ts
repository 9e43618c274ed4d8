/**
 * A path, scanned once: whether it is canonical (canonical-path.ts), where its segments end, and their hashes, by which
 * the router finds APIs and resources. A router has one and fills it anew for each request; no string is made.
 */
import { canonicalEscapeEnd, isDotSegment, PATH_BYTE, PATH_BYTES } from './canonical-path.ts'

/** Segments that get hashes. No template has more. */
export const SEGMENTS_MAX = 256

// Local names: an imported binding would be looked up for every byte.
const KINDS = PATH_BYTES
const { PLAIN, SLASH: SEPARATOR, PERCENT: ESCAPE, QUERY } = PATH_BYTE
/** FNV-1a over signed 32-bit integers: V8 stores numbers beyond 31 bits as doubles, at twice the cost. */
const SEED = 0x811c9dc5 | 0
const PRIME = 0x01000193
const SLASH = 0x2f
const DOT = 0x2e
const PLUS = 0x2b

export class ScannedPath {
  /** Bytes that the path was scanned from; the path is valid until they change. */
  bytes: Buffer = Buffer.alloc(0)
  from = 0
  /** End of the path: its query, or the end of the target. */
  end = 0
  /** Number of segments. An empty last segment does not count. */
  segmentCount = 0
  /** Number of segments of the API's path, once ApiTable has found an API. */
  apiSegments = 0
  /** By segment: its end, its hash, and the hash of the path up to its end. */
  readonly segmentEnds = new Int32Array(SEGMENTS_MAX)
  readonly segmentHashes = new Int32Array(SEGMENTS_MAX)
  readonly prefixHashes = new Int32Array(SEGMENTS_MAX)

  /**
   * Scans the path that begins at `from` in a target that ends at `end`. Returns false where it is not canonical.
   * `keepsSlashes`: a segment may hold escaped slashes. One tight loop per segment over local variables takes a third
   * of the time of plainer code (`bench/micro/routing.ts`).
   */
  read(bytes: Buffer, from: number, end: number, keepsSlashes = false): boolean {
    const { segmentEnds, segmentHashes, prefixHashes } = this
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
          const next = canonicalEscapeEnd(bytes, at, end, keepsSlashes)
          if (next < 0) return false
          hash = hashEscapes(hash, bytes, at, next)
          at = next
        } else break
      }
      if (at === start) {
        // An empty segment: "//", or the end of a path that ends in a slash.
        if (at < end && kind === SEPARATOR) return false
        break
      }
      if (bytes[start] === DOT && isDotSegment(bytes, start, end)) return false
      if (count < SEGMENTS_MAX) {
        prefix = Math.imul(prefix ^ hash, PRIME)
        segmentEnds[count] = at
        segmentHashes[count] = hash
        prefixHashes[count] = prefix
      }
      count++
    }
    this.bytes = bytes
    this.from = from
    this.end = at
    this.segmentCount = count
    return at >= end || kind === QUERY
  }

  /** Start of the segment, after its slash. */
  segmentStart(segment: number): number {
    return (segment === 0 ? this.from : this.segmentEnds[segment - 1]!) + 1
  }

  get endsInSlash(): boolean {
    return this.end > this.from && this.bytes[this.end - 1] === SLASH
  }

  /** True if the bytes from `at` to `to` equal `text`, in which "+" is never escaped. */
  matches(text: Uint8Array, at: number, to: number): boolean {
    const { bytes } = this
    if (text.length !== to - at) return to - at > text.length && this.#matchesEscapedPlus(text, at, to)
    for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text[i]) return false
    return true
  }

  #matchesEscapedPlus(text: Uint8Array, from: number, to: number): boolean {
    let at = from
    for (const byte of text) {
      if (this.bytes[at] === byte) at++
      else if (byte === PLUS && isEscapedPlus(this.bytes, at)) at += 3
      else return false
    }
    return at === to
  }

  /** The text from `at` to `to`, with "+" instead of its escape. */
  textOf(at: number, to: number): string {
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

/** Scratch space of `hashPath`, which copies everything out before it returns. */
const scratch = new ScannedPath()

/** Hashes a canonical path of the configuration. Throws where it is not canonical. */
export function hashPath(path: string): {
  readonly bytes: Buffer
  readonly segments: number
  /** Hash of the last segment. */
  readonly last: number
  /** Hash of the path. */
  readonly all: number
} {
  const bytes = Buffer.from(path, 'latin1')
  if (!scratch.read(bytes, 0, bytes.length) || scratch.segmentCount === 0) throw new Error(`${path} is not canonical`)
  const last = scratch.segmentCount - 1
  return {
    bytes,
    segments: scratch.segmentCount,
    last: scratch.segmentHashes[last]!,
    all: scratch.prefixHashes[last]!,
  }
}
