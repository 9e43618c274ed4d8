/**
 * Canonical paths: one form per path, so that matching, authorisation and the backend see the same resource (D68). A
 * canonical path begins with "/" and has no empty segment except the last, no dot segment and no path parameter.
 * Unreserved characters, sub-delims, ":" and "@" stand as they are, other characters as `%XX` in capitals, which are
 * valid UTF-8 (RFC 3986 2.3, 3.3, 5.2.4, 6.2.2). "+" may stand both ways, because some backends read it as a space;
 * matching treats both the same.
 *
 * Paths that backends read in different ways have no canonical form and are refused. They have backslashes, control
 * characters, path parameters, escapes of escapes, bytes that are not UTF-8, and escaped slashes unless the API allows
 * them (D158).
 */

/** Classes of raw bytes in a path. */
export const PATH_BYTE = { PLAIN: 0, SLASH: 1, QUERY: 2, PERCENT: 3, TO_ESCAPE: 4, REFUSED: 5 } as const

const PLAIN_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,=:@"
/** Characters that no URI may hold unescaped, and that some clients send all the same. */
const CHARACTERS_TO_ESCAPE = '"<>^`{|}[]'
const SLASH = 0x2f
const DOT = 0x2e
const PERCENT = 0x25
const BACKSLASH = 0x5c
const SEMICOLON = 0x3b
const DELETE = 0x7f

export const PATH_BYTES = new Uint8Array(256).fill(PATH_BYTE.REFUSED)
for (const byte of Buffer.from(PLAIN_CHARACTERS)) PATH_BYTES[byte] = PATH_BYTE.PLAIN
for (const byte of Buffer.from(CHARACTERS_TO_ESCAPE)) PATH_BYTES[byte] = PATH_BYTE.TO_ESCAPE
PATH_BYTES.fill(PATH_BYTE.TO_ESCAPE, 0x80)
PATH_BYTES[SLASH] = PATH_BYTE.SLASH
PATH_BYTES[0x3f] = PATH_BYTE.QUERY
PATH_BYTES[PERCENT] = PATH_BYTE.PERCENT

const NOT_PLAIN = /[^A-Za-z0-9\-._~!$&'()*+,=:@]/

/** Treatment of an escape, by the byte that it encodes: decoded, kept, refused, or part of a UTF-8 sequence. */
const DECODED = 0
const KEPT = 1
const REFUSED = 2
const UTF8 = 3
const ESCAPED_BYTES = new Uint8Array(256).fill(KEPT)
for (const byte of Buffer.from(PLAIN_CHARACTERS)) ESCAPED_BYTES[byte] = DECODED
ESCAPED_BYTES[0x2b] = KEPT
ESCAPED_BYTES.fill(REFUSED, 0, 0x20)
for (const byte of [SLASH, SEMICOLON, BACKSLASH, DELETE]) ESCAPED_BYTES[byte] = REFUSED
ESCAPED_BYTES.fill(UTF8, 0x80)

const HEX = new Int8Array(256).fill(-1)
for (const digit of '0123456789ABCDEFabcdef') HEX[digit.charCodeAt(0)] = Number.parseInt(digit, 16)
const HEX_DIGITS = Buffer.from('0123456789ABCDEF')

const SMALL_LETTERS = 0x61
const ESCAPE_CHARS = 3

/** Reason for the refusal of a path. `rule` quotes no byte of the path, because clients see it. */
export interface PathError {
  readonly rule: string
}

const ERROR = {
  escape: { rule: 'path holds "%" without two hexadecimal digits (RFC 3986 2.1)' },
  slash: { rule: 'path holds an escaped slash, which backends read in different ways' },
  backslash: { rule: 'path holds a backslash, which some backends read as a slash' },
  parameter: { rule: 'path holds ";", after which some backends read the rest of a segment as parameters' },
  control: { rule: 'path holds a control character' },
  character: { rule: 'path holds a character that is not allowed in paths (RFC 3986 3.3)' },
  twice: { rule: 'path holds an escape of an escape, which some backends decode twice' },
  utf8: { rule: 'path holds bytes that are not UTF-8 (RFC 3629)' },
  root: { rule: 'path leads above its root (RFC 3986 5.2.4)' },
} as const satisfies Record<string, PathError>

/** The only violation that an API may allow. */
export const ESCAPED_SLASH: PathError = ERROR.slash

/** Decodes the escape at `at`; -1 where no two hexadecimal digits follow. */
function escapedByte(bytes: Uint8Array, at: number, end: number): number {
  if (at + ESCAPE_CHARS > end) return -1
  const high = HEX[bytes[at + 1]!]!
  const low = HEX[bytes[at + 2]!]!
  return high < 0 || low < 0 ? -1 : high * 16 + low
}

/** Number of bytes that follow the first byte of a character (RFC 3629 4); -1 where no character begins so. */
function continuationBytes(first: number): number {
  if (first < 0x80) return 0
  if (first < 0xc2 || first > 0xf4) return -1
  return first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3
}

/** True if `second` may follow `first`: refuses overlong forms, surrogates and code points above U+10FFFF. */
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

/**
 * Returns the end of the character whose escapes begin at `at`; -1 where they are not canonical. `keepsSlashes`: an
 * escaped slash is canonical.
 */
export function canonicalEscapeEnd(bytes: Uint8Array, at: number, end: number, keepsSlashes: boolean): number {
  const first = canonicalByte(bytes, at, end)
  if (first < 0) return -1
  const kind = ESCAPED_BYTES[first]!
  let next = at + ESCAPE_CHARS
  if (kind === KEPT) return first === PERCENT && escapedByte(bytes, next - 1, end) >= 0 ? -1 : next
  if (kind !== UTF8) return keepsSlashes && first === SLASH ? next : -1
  for (let left = continuationBytes(first); left !== 0; left--) {
    if (left < 0 || bytes[next] !== PERCENT) return -1
    const byte = canonicalByte(bytes, next, end)
    if (!(next === at + ESCAPE_CHARS ? mayFollow(first, byte) : isContinuation(byte))) return -1
    next += ESCAPE_CHARS
  }
  return next
}

/** Decodes like `escapedByte`, but takes capital hexadecimal letters only. */
function canonicalByte(bytes: Uint8Array, at: number, end: number): number {
  const byte = escapedByte(bytes, at, end)
  return byte < 0 || bytes[at + 1]! >= SMALL_LETTERS || bytes[at + 2]! >= SMALL_LETTERS ? -1 : byte
}

/** True if the rest of the segment at `at` is "." or "..". */
export function isDotSegment(bytes: Uint8Array, at: number, end: number): boolean {
  if (bytes[at] !== DOT) return false
  const next = at + 1 < end && bytes[at + 1] === DOT ? at + 2 : at + 1
  if (next >= end) return true
  const kind = PATH_BYTES[bytes[next]!]
  return kind === PATH_BYTE.SLASH || kind === PATH_BYTE.QUERY
}

/**
 * Writes canonical forms into a buffer of its own. One per owner, for example one per router; the form is valid until
 * the next call. Takes time linear in the length of the path.
 */
export class PathCanonicalizer {
  /** Canonical form of the last path. */
  out: Buffer = Buffer.alloc(0)
  /** True if the last path had a segment "." or "..". */
  hadDotSegments = false
  /** Position in the input. */
  #at = 0
  #keepsSlashes = false
  /** Byte read last, decoded. */
  #byte = 0

  /**
   * Canonicalises the path from `from` to `end`, without its query. Returns the length of the form, or an error.
   * `keepsSlashes`: an escaped slash is no error and stays as `%2F`.
   */
  path(bytes: Uint8Array, from: number, end: number, keepsSlashes = false): number | PathError {
    const out = this.#reserve(end - from)
    this.hadDotSegments = false
    this.#keepsSlashes = keepsSlashes
    let length = 0
    let endsInSlash = true
    this.#at = from
    while (this.#at < end) {
      if (bytes[this.#at] === SLASH) {
        this.#at++
        endsInSlash = true
        continue
      }
      out[length] = SLASH
      const segment = length + 1
      const segmentEnd = this.#segment(segment, bytes, end)
      if (typeof segmentEnd !== 'number') return segmentEnd
      endsInSlash = isDotSegment(out, segment, segmentEnd)
      if (!endsInSlash) {
        length = segmentEnd
        continue
      }
      this.hadDotSegments = true
      if (segmentEnd - segment === 2) {
        if (length === 0) return ERROR.root
        do length--
        while (out[length] !== SLASH)
      }
    }
    if (endsInSlash) out[length++] = SLASH
    return length
  }

  /** Canonicalises a literal of a template, which holds no slash. */
  literal(text: string): string | PathError {
    if (!NOT_PLAIN.test(text)) return text
    const bytes = Buffer.from(text)
    const out = this.#reserve(bytes.length)
    this.#at = 0
    this.#keepsSlashes = false
    const length = this.#segment(0, bytes, bytes.length)
    return typeof length === 'number' ? out.latin1Slice(0, length) : length
  }

  /** At most each byte becomes an escape, and a slash may follow. */
  #reserve(length: number): Buffer {
    const size = length * ESCAPE_CHARS + 1
    if (this.out.length < size) this.out = Buffer.alloc(size)
    return this.out
  }

  /** Writes the input up to the next slash to `start`. Returns the end of the output, or an error. */
  #segment(start: number, bytes: Uint8Array, end: number): number | PathError {
    const out = this.out
    let length = start
    while (this.#at < end) {
      const byte = bytes[this.#at]!
      if (byte === SLASH) break
      if (PATH_BYTES[byte] === PATH_BYTE.PLAIN) {
        out[length++] = byte
        this.#at++
        continue
      }
      const next = this.#character(length, bytes, end)
      if (typeof next !== 'number') return next
      length = next
    }
    for (let at = start; at < length; at++) {
      const isPercent = out[at] === PERCENT && out[at + 1] === 0x32 && out[at + 2] === 0x35
      if (isPercent && escapedByte(out, at + 2, length) >= 0) return ERROR.twice
    }
    return length
  }

  /** Writes a character that is escaped or needs an escape. */
  #character(at: number, bytes: Uint8Array, end: number): number | PathError {
    const out = this.out
    const error = this.#read(bytes, end)
    if (error !== undefined) return error
    const first = this.#byte
    if (ESCAPED_BYTES[first] === DECODED) {
      out[at] = first
      return at + 1
    }
    let length = putEscape(out, at, first)
    for (let left = continuationBytes(first); left !== 0; left--) {
      if (left < 0 || this.#at >= end) return ERROR.utf8
      const more = this.#read(bytes, end)
      if (more !== undefined) return more
      const isValid = length === at + ESCAPE_CHARS ? mayFollow(first, this.#byte) : isContinuation(this.#byte)
      if (!isValid) return ERROR.utf8
      length = putEscape(out, length, this.#byte)
    }
    return length
  }

  /** Reads one byte, raw or escaped, into `#byte`. */
  #read(bytes: Uint8Array, end: number): PathError | undefined {
    const at = this.#at
    const isEscaped = bytes[at] === PERCENT
    const byte = isEscaped ? escapedByte(bytes, at, end) : bytes[at]!
    if (byte < 0) return ERROR.escape
    this.#byte = byte
    this.#at = isEscaped ? at + ESCAPE_CHARS : at + 1
    const isRefused = isEscaped ? ESCAPED_BYTES[byte] === REFUSED : PATH_BYTES[byte] === PATH_BYTE.REFUSED
    const isKept = isEscaped && byte === SLASH && this.#keepsSlashes
    return isRefused && !isKept ? errorOfByte(byte) : undefined
  }
}

function errorOfByte(byte: number): PathError {
  if (byte === SLASH) return ERROR.slash
  if (byte === BACKSLASH) return ERROR.backslash
  if (byte === SEMICOLON) return ERROR.parameter
  return byte < 0x20 || byte === DELETE ? ERROR.control : ERROR.character
}

function putEscape(out: Uint8Array, at: number, byte: number): number {
  out[at] = PERCENT
  out[at + 1] = HEX_DIGITS[byte >> 4]!
  out[at + 2] = HEX_DIGITS[byte & 15]!
  return at + ESCAPE_CHARS
}
