/**
 * Body bytes of one read, joined in place and framed for the receiver. Chunk boundaries and extensions end at this hop
 * (RFC 9112 7.1.1): a chunked body leaves in chunks of the gateway's own, so that no second parser can read an
 * extension differently (D5). The size line is written in front of the data, over the old size line or into the margin
 * of a chunk of the arena.
 */
import { CHUNKED } from './framing.ts'

/** Most body spans of one read: a chunk takes at least six bytes, and one read brings at most 128 KiB. */
const SPANS_MAX = 24_576

/**
 * Body bytes of the last read of a thread, as offsets into the arena. One per reactor, shared by all its parsers: a
 * parser fills it in `execute`, and its connection uses it before any parser runs again. `Parser.spanCount` throws when
 * another parser has run in between.
 */
export class BodySpans {
  /** Pairs of offset and length. */
  readonly offsets = new Int32Array(2 * SPANS_MAX)
  /** Pairs that the last `execute` found. */
  count = 0
  /** The parser that ran last. */
  filledBy: object | null = null
  /** First byte and length of the encoded bytes; set by `encodeBody`. */
  at = 0
  length = 0
}

/** Sum of the first `count` spans in bytes. */
export function spanBytes({ offsets }: BodySpans, count: number): number {
  let bytes = 0
  for (let i = 0; i < count; i++) bytes += offsets[2 * i + 1]!
  return bytes
}

const HEX = '0123456789abcdef'

/** Number of hexadecimal digits of a value from 1 to 2^32. */
function hexDigits(value: number): number {
  return (35 - Math.clz32(value)) >> 2
}

/** Writes the size line in front of `end`; returns where it starts. */
function putSizeLine(bytes: Buffer, end: number, size: number): number {
  bytes[end - 1] = 10
  bytes[end - 2] = 13
  const digits = hexDigits(size)
  const at = end - 2 - digits
  for (let i = digits - 1, rest = size; i >= 0; i--, rest >>>= 4) bytes[at + i] = HEX.charCodeAt(rest & 15)
  return at
}

/** Moves the spans together behind the first one; returns where they end. */
function compact(bytes: Buffer, offsets: Int32Array, count: number): number {
  let end = offsets[0]!
  for (let i = 0; i < count; i++) {
    const from = offsets[2 * i]!
    const length = offsets[2 * i + 1]!
    if (from !== end) bytes.copyWithin(end, from, from + length)
    end += length
  }
  return end
}

/**
 * Joins the first `count` spans to one stretch in the given framing; `body.at` and `body.length` say where it is.
 * `floor` is the first byte that may be overwritten: the start of the margin, or the end of the head in the same read.
 * Returns false when there is nothing to write.
 */
export function encodeBody(bytes: Buffer, body: BodySpans, count: number, framing: number, floor: number): boolean {
  if (count === 0) return false
  if (framing === CHUNKED) encodeChunk(bytes, body, count, floor)
  else {
    body.at = body.offsets[0]!
    body.length = compact(bytes, body.offsets, count) - body.at
  }
  return true
}

/** One chunk of all spans: compacted behind one size line. */
function encodeChunk(bytes: Buffer, body: BodySpans, count: number, floor: number): void {
  const { offsets } = body
  const total = spanBytes(body, count)
  // The data begins behind room for the size line; usually the old size line is that room.
  const first = Math.max(offsets[0]!, floor + hexDigits(total) + 2)
  let end = compact(bytes, offsets, count)
  if (first > offsets[0]!) {
    // Rare: the first chunk had a shorter size line than the joined chunk needs, so the data moves up.
    bytes.copyWithin(first, end - total, end)
    end = first + total
  }
  bytes[end] = 13
  bytes[end + 1] = 10
  body.at = putSizeLine(bytes, first, total)
  body.length = end + 2 - body.at
}

/** The last chunk with an empty trailer section. */
export const LAST_CHUNK = '0\r\n\r\n'
