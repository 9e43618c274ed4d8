/**
 * One form for every path, so that what is matched, what is authorised and what a backend finds are the same resource.
 * A canonical path begins with "/", has no empty segment (but the last), no dot segment and no path parameter, and each
 * character in it stands for itself or in escapes: unreserved characters, sub-delims, ":" and "@" as they are,
 * everything else as `%XX` in capitals, which are valid UTF-8 (RFC 3986 2.3, 3.3, 5.2.4, 6.2.2). "+" may stand both
 * ways, because there are backends that read it as a space; matching takes both for the same.
 *
 * What backends are known to read in two ways is refused, because no form of it is safe: escaped slashes, backslashes,
 * control characters, path parameters, escapes of escapes, bytes that are no UTF-8.
 */

/** What a byte of a path is. */
export const PATH_BYTE = { PLAIN: 0, SLASH: 1, QUERY: 2, PERCENT: 3, TO_ESCAPE: 4, REFUSED: 5 } as const

const PLAIN_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,=:@"
/** They are in no URI, and some clients send them all the same. */
const BARE_CHARACTERS = '"<>^`{|}[]'
const SLASH = 0x2f
const DOT = 0x2e
const PERCENT = 0x25
const BACKSLASH = 0x5c
const SEMICOLON = 0x3b
const DELETE = 0x7f

export const PATH_BYTES = new Uint8Array(256).fill(PATH_BYTE.REFUSED)
for (const byte of Buffer.from(PLAIN_CHARACTERS)) PATH_BYTES[byte] = PATH_BYTE.PLAIN
for (const byte of Buffer.from(BARE_CHARACTERS)) PATH_BYTES[byte] = PATH_BYTE.TO_ESCAPE
PATH_BYTES.fill(PATH_BYTE.TO_ESCAPE, 0x80)
PATH_BYTES[SLASH] = PATH_BYTE.SLASH
PATH_BYTES[0x3f] = PATH_BYTE.QUERY
PATH_BYTES[PERCENT] = PATH_BYTE.PERCENT

const NOT_PLAIN = /[^A-Za-z0-9\-._~!$&'()*+,=:@]/

/** What becomes of an escape, by the byte that it stands for. */
const DECODED = 0
const KEPT = 1
const FAULTY = 2
const UTF8 = 3
const ESCAPED_BYTES = new Uint8Array(256).fill(KEPT)
for (const byte of Buffer.from(PLAIN_CHARACTERS)) ESCAPED_BYTES[byte] = DECODED
ESCAPED_BYTES[0x2b] = KEPT
ESCAPED_BYTES.fill(FAULTY, 0, 0x20)
for (const byte of [SLASH, SEMICOLON, BACKSLASH, DELETE]) ESCAPED_BYTES[byte] = FAULTY
ESCAPED_BYTES.fill(UTF8, 0x80)

const HEX = new Int8Array(256).fill(-1)
for (const digit of '0123456789ABCDEFabcdef') HEX[digit.charCodeAt(0)] = Number.parseInt(digit, 16)
const HEX_DIGITS = Buffer.from('0123456789ABCDEF')

const SMALL_LETTERS = 0x61
/** Of an escape. */
const CHARS = 3

/** Why a path is refused; holds none of its bytes. */
export interface PathFault {
  readonly rule: string
}

const FAULT = {
  escape: { rule: 'path holds "%" without two hexadecimal digits (RFC 3986 2.1)' },
  slash: { rule: 'path holds an escaped slash, which backends read in different ways' },
  backslash: { rule: 'path holds a backslash, which some backends take for a slash' },
  parameter: { rule: 'path holds ";", behind which some backends take the rest of a segment for parameters' },
  control: { rule: 'path holds a control character' },
  character: { rule: 'path holds a character that no path has (RFC 3986 3.3)' },
  twice: { rule: 'path holds an escape of an escape, which some backends decode twice' },
  utf8: { rule: 'path holds bytes that are not UTF-8 (RFC 3629)' },
  root: { rule: 'path leads above its root (RFC 3986 5.2.4)' },
} as const satisfies Record<string, PathFault>

/** The byte that the escape at `at` stands for, or -1 where two hexadecimal digits are not behind it. */
function escapedByte(bytes: Uint8Array, at: number, end: number): number {
  if (at + CHARS > end) return -1
  const high = HEX[bytes[at + 1]!]!
  const low = HEX[bytes[at + 2]!]!
  return high < 0 || low < 0 ? -1 : high * 16 + low
}

/** How many bytes follow this first one of a character (RFC 3629 4); -1: none begins so. */
function following(first: number): number {
  if (first < 0x80) return 0
  if (first < 0xc2 || first > 0xf4) return -1
  return first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3
}

/** Whether `second` may follow `first`: neither overlong, nor a surrogate, nor beyond U+10FFFF. */
function mayFollow(first: number, second: number): boolean {
  if (first === 0xe0) return second >= 0xa0 && second < 0xc0
  if (first === 0xed) return second >= 0x80 && second < 0xa0
  if (first === 0xf0) return second >= 0x90 && second < 0xc0
  if (first === 0xf4) return second >= 0x80 && second < 0x90
  return isContinuation(second)
}

function isContinuation(byte: number): boolean {
  return byte >= 0x80 && byte < 0xc0
}

/** Behind the character whose canonical escapes begin at `at`; -1: it is not written so, or is none. */
export function canonicalEscapeEnd(bytes: Uint8Array, at: number, end: number): number {
  const first = canonicalByte(bytes, at, end)
  if (first < 0) return -1
  const kind = ESCAPED_BYTES[first]!
  let next = at + CHARS
  if (kind === KEPT) return first === PERCENT && escapedByte(bytes, next - 1, end) >= 0 ? -1 : next
  if (kind !== UTF8) return -1
  for (let left = following(first); left !== 0; left--) {
    if (left < 0 || bytes[next] !== PERCENT) return -1
    const byte = canonicalByte(bytes, next, end)
    if (!(next === at + CHARS ? mayFollow(first, byte) : isContinuation(byte))) return -1
    next += CHARS
  }
  return next
}

/** As `escapedByte`; small letters are no digits. */
function canonicalByte(bytes: Uint8Array, at: number, end: number): number {
  const byte = escapedByte(bytes, at, end)
  return byte < 0 || bytes[at + 1]! >= SMALL_LETTERS || bytes[at + 2]! >= SMALL_LETTERS ? -1 : byte
}

/** Whether "." or ".." is all that stands from `at` to the end of a segment. */
export function isDotSegment(bytes: Uint8Array, at: number, end: number): boolean {
  if (bytes[at] !== DOT) return false
  const behind = at + 1 < end && bytes[at + 1] === DOT ? at + 2 : at + 1
  if (behind >= end) return true
  const kind = PATH_BYTES[bytes[behind]!]
  return kind === PATH_BYTE.SLASH || kind === PATH_BYTE.QUERY
}

/** Room that the canonical form of so many bytes takes at most. */
export function canonicalRoom(length: number): number {
  return length * CHARS + 1
}

/**
 * Puts the canonical form of the path that stands from `from` to `end`, without its query, at the beginning of `out`;
 * answers its length, or the fault where it has none. Takes time linear in its length.
 */
export function putCanonicalPath(out: Uint8Array, bytes: Uint8Array, from: number, end: number): number | PathFault {
  let length = 0
  let endsInSlash = true
  reading.at = from
  while (reading.at < end) {
    if (bytes[reading.at] === SLASH) {
      reading.at++
      endsInSlash = true
      continue
    }
    out[length] = SLASH
    const segment = length + 1
    const segmentEnd = putSegment(out, segment, bytes, end)
    if (typeof segmentEnd !== 'number') return segmentEnd
    endsInSlash = isDotSegment(out, segment, segmentEnd)
    if (!endsInSlash) length = segmentEnd
    else if (segmentEnd - segment === 2) {
      if (length === 0) return FAULT.root
      do length--
      while (out[length] !== SLASH)
    }
  }
  if (endsInSlash) out[length++] = SLASH
  return length
}

/** The canonical form of a text without slashes: of a literal in a template. */
export function canonicalText(text: string): string | PathFault {
  if (!NOT_PLAIN.test(text)) return text
  const bytes = Buffer.from(text)
  const out = Buffer.alloc(canonicalRoom(bytes.length))
  reading.at = 0
  const length = putSegment(out, 0, bytes, bytes.length)
  return typeof length === 'number' ? out.latin1Slice(0, length) : length
}

/** Where is read, and the byte read last. */
const reading = { at: 0, byte: 0 }

/** Puts what stands up to the next slash at `start`; answers where it ends. */
function putSegment(out: Uint8Array, start: number, bytes: Uint8Array, end: number): number | PathFault {
  let length = start
  while (reading.at < end) {
    const byte = bytes[reading.at]!
    if (byte === SLASH) break
    if (PATH_BYTES[byte] === PATH_BYTE.PLAIN) {
      out[length++] = byte
      reading.at++
      continue
    }
    const next = putCharacter(out, length, bytes, end)
    if (typeof next !== 'number') return next
    length = next
  }
  for (let at = start; at < length; at++) {
    const isPercent = out[at] === PERCENT && out[at + 1] === 0x32 && out[at + 2] === 0x35
    if (isPercent && escapedByte(out, at + 2, length) >= 0) return FAULT.twice
  }
  return length
}

/** A character that is escaped, or ought to be. */
function putCharacter(out: Uint8Array, at: number, bytes: Uint8Array, end: number): number | PathFault {
  const faulty = readByte(bytes, end)
  if (faulty !== undefined) return faulty
  const first = reading.byte
  if (ESCAPED_BYTES[first] === DECODED) {
    out[at] = first
    return at + 1
  }
  let length = putEscape(out, at, first)
  for (let left = following(first); left !== 0; left--) {
    if (left < 0 || reading.at >= end) return FAULT.utf8
    const more = readByte(bytes, end)
    if (more !== undefined) return more
    const isRight = length === at + CHARS ? mayFollow(first, reading.byte) : isContinuation(reading.byte)
    if (!isRight) return FAULT.utf8
    length = putEscape(out, length, reading.byte)
  }
  return length
}

/** One byte, as it is or escaped. */
function readByte(bytes: Uint8Array, end: number): PathFault | undefined {
  const { at } = reading
  const isEscaped = bytes[at] === PERCENT
  const byte = isEscaped ? escapedByte(bytes, at, end) : bytes[at]!
  if (byte < 0) return FAULT.escape
  reading.byte = byte
  reading.at = isEscaped ? at + CHARS : at + 1
  const isFaulty = isEscaped ? ESCAPED_BYTES[byte] === FAULTY : PATH_BYTES[byte] === PATH_BYTE.REFUSED
  return isFaulty ? faultOfByte(byte) : undefined
}

function faultOfByte(byte: number): PathFault {
  if (byte === SLASH) return FAULT.slash
  if (byte === BACKSLASH) return FAULT.backslash
  if (byte === SEMICOLON) return FAULT.parameter
  return byte < 0x20 || byte === DELETE ? FAULT.control : FAULT.character
}

function putEscape(out: Uint8Array, at: number, byte: number): number {
  out[at] = PERCENT
  out[at + 1] = HEX_DIGITS[byte >> 4]!
  out[at + 2] = HEX_DIGITS[byte & 15]!
  return at + CHARS
}
