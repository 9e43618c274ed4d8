/**
 * Body bytes on their way through, encoded in place. Chunk boundaries and extensions end at this hop (RFC 9112 7.1.1):
 * what leaves is in our own chunks, so that no second parser can read an extension differently (D5). The chunk header
 * is written into the bytes in front of the data: the old chunk header, or the margin that chunks of the arena have.
 */
import { bodySpans } from './llhttp.ts'
import { CHUNKED } from './framing.ts'

/** The bytes to write, as `encodeBody` left them. */
export const encoded = { at: 0, length: 0 }

const HEX = '0123456789abcdef'

/** Hexadecimal digits of a number from 1 to 2^32. */
function hexDigits(value: number): number {
  return (35 - Math.clz32(value)) >> 2
}

/** Size line in front of `end`; answers where it starts. */
function putSizeLine(bytes: Buffer, end: number, size: number): number {
  bytes[end - 1] = 10
  bytes[end - 2] = 13
  const digits = hexDigits(size)
  const at = end - 2 - digits
  for (let i = digits - 1, rest = size; i >= 0; i--, rest >>>= 4) bytes[at + i] = HEX.charCodeAt(rest & 15)
  return at
}

/**
 * Makes one stretch of the `count` spans that were found last. `floor` is the first byte that may be overwritten: the
 * beginning of the headroom, or the end of the head in the same read. Answers false when there is nothing to write.
 */
export function encodeBody(bytes: Buffer, count: number, framing: number, floor: number): boolean {
  if (count === 0) return false
  if (framing === CHUNKED) return encodeChunks(bytes, count, floor)
  const at = bodySpans[0]!
  let end = at
  for (let i = 0; i < count; i++) {
    const from = bodySpans[2 * i]!
    const length = bodySpans[2 * i + 1]!
    if (from !== end) bytes.copyWithin(end, from, from + length)
    end += length
  }
  encoded.at = at
  encoded.length = end - at
  return true
}

/** One chunk out of all the spans: compacted behind one size line. */
function encodeChunks(bytes: Buffer, count: number, floor: number): boolean {
  let total = 0
  for (let i = 0; i < count; i++) total += bodySpans[2 * i + 1]!
  // Where the data may begin: behind room for the size line. The old size line usually is that room.
  const first = Math.max(bodySpans[0]!, floor + hexDigits(total) + 2)
  let end = first
  if (first > bodySpans[0]!) end = shiftUp(bytes, count, first)
  else {
    for (let i = 0; i < count; i++) {
      const from = bodySpans[2 * i]!
      const length = bodySpans[2 * i + 1]!
      if (from !== end) bytes.copyWithin(end, from, from + length)
      end += length
    }
  }
  bytes[end] = 13
  bytes[end + 1] = 10
  encoded.at = putSizeLine(bytes, first, total)
  encoded.length = end + 2 - encoded.at
  return true
}

/** The rare case: a first chunk whose size line is shorter than ours must be. Moves everything, last span first. */
function shiftUp(bytes: Buffer, count: number, first: number): number {
  let total = 0
  for (let i = 0; i < count; i++) total += bodySpans[2 * i + 1]!
  // Compact downwards first, then move the whole up once.
  let end = bodySpans[0]!
  for (let i = 0; i < count; i++) {
    const from = bodySpans[2 * i]!
    const length = bodySpans[2 * i + 1]!
    if (from !== end) bytes.copyWithin(end, from, from + length)
    end += length
  }
  bytes.copyWithin(first, end - total, end)
  return first + total
}

/** The last chunk and the empty trailer section. */
export const LAST_CHUNK = '0\r\n\r\n'
