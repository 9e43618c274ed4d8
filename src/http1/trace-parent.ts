/**
 * `traceparent` of W3C Trace Context: version, trace id, parent id and flags, in lower-case hexadecimal digits. Reads
 * levels 1 and 2, and of later versions the part that is common to all of them.
 */

/** Offsets in a value: `00-<trace id>-<parent id>-<flags>`. */
const TRACE_ID_AT = 3
const PARENT_ID_AT = 36
const FLAGS_AT = 53
const LENGTH = 55

export const TRACE_ID_DIGITS = 32
export const SPAN_ID_DIGITS = 16
/** Flags: the sender records the trace; the trace id is random in its last 56 bits. */
export const SAMPLED = 1
export const RANDOM = 2

const HYPHEN = 45
const ZERO = 48
const NO_DIGIT = 16

/** Value of a lower-case digit; NO_DIGIT for anything else. */
function digitAt(bytes: Uint8Array, at: number): number {
  const byte = bytes[at]!
  if (byte >= 48 && byte <= 57) return byte - 48
  return byte >= 97 && byte <= 102 ? byte - 87 : NO_DIGIT
}

/** Value of two digits; -1 where one of them is none. */
function octetAt(bytes: Uint8Array, at: number): number {
  const high = digitAt(bytes, at)
  const low = digitAt(bytes, at + 1)
  return high === NO_DIGIT || low === NO_DIGIT ? -1 : high * 16 + low
}

/** True if there are `length` digits, not all of them 0. */
function isId(bytes: Uint8Array, at: number, length: number): boolean {
  let isZero = true
  for (let i = at; i < at + length; i++) {
    if (digitAt(bytes, i) === NO_DIGIT) return false
    if (bytes[i] !== ZERO) isZero = false
  }
  return !isZero
}

/**
 * Flags of the value at `at`, of those that level 2 knows; -1: the value is invalid. Copies trace id and parent id to
 * these positions of two arrays.
 */
export function readTraceParent(
  bytes: Uint8Array,
  at: number,
  length: number,
  traceId: Uint8Array,
  traceIdAt: number,
  parentId: Uint8Array,
): number {
  if (length < LENGTH) return -1
  const version = octetAt(bytes, at)
  // ff is forbidden; only later versions may have more behind the flags.
  if (version < 0 || version === 255 || (version === 0 && length !== LENGTH)) return -1
  if (length > LENGTH && bytes[at + LENGTH] !== HYPHEN) return -1
  const areParted =
    bytes[at + TRACE_ID_AT - 1] === HYPHEN &&
    bytes[at + PARENT_ID_AT - 1] === HYPHEN &&
    bytes[at + FLAGS_AT - 1] === HYPHEN
  if (!areParted) return -1
  if (!isId(bytes, at + TRACE_ID_AT, TRACE_ID_DIGITS) || !isId(bytes, at + PARENT_ID_AT, SPAN_ID_DIGITS)) return -1
  const flags = octetAt(bytes, at + FLAGS_AT)
  if (flags < 0) return -1
  for (let i = 0; i < TRACE_ID_DIGITS; i++) traceId[traceIdAt + i] = bytes[at + TRACE_ID_AT + i]!
  for (let i = 0; i < SPAN_ID_DIGITS; i++) parentId[i] = bytes[at + PARENT_ID_AT + i]!
  return flags & (SAMPLED | RANDOM)
}

const HEX = '0123456789abcdef'
const DIGITS = Uint8Array.from(Buffer.from(HEX))

/**
 * Random 32-bit numbers without an allocation: xorshift128 (Marsaglia). Ids are no secrets.
 */
export class IdSource {
  readonly #state = new Int32Array(4)

  constructor() {
    for (let i = 0; i < 4; i++) this.#state[i] = Math.floor(Math.random() * 2 ** 32) | 1
  }

  /** Writes eight random digits; returns their number. */
  put(bytes: Uint8Array, at: number): number {
    const state = this.#state
    let mixed = state[3]!
    const first = state[0]!
    state[3] = state[2]!
    state[2] = state[1]!
    state[1] = first
    mixed ^= mixed << 11
    mixed ^= mixed >>> 8
    const word = mixed ^ first ^ (first >>> 19)
    state[0] = word
    for (let i = 0, shift = 28; i < WORD_DIGITS; i++, shift -= 4) bytes[at + i] = DIGITS[(word >>> shift) & 15]!
    return word
  }
}

/** Digits of a number of `IdSource`. */
export const WORD_DIGITS = 8

/** A random id as text. */
export function randomSpanId(): string {
  let id = ''
  for (let i = 0; i < SPAN_ID_DIGITS; i++) id += HEX[Math.floor(Math.random() * 16)]!
  return /^0+$/.test(id) ? randomSpanId() : id
}

/** Writes flags as two digits. */
export function putFlags(bytes: Uint8Array, at: number, flags: number): void {
  bytes[at] = DIGITS[flags >> 4]!
  bytes[at + 1] = DIGITS[flags & 15]!
}

/** Bits that decide whether a trace is sampled: the first ones of those that level 2 wants to be random. */
export const SAMPLED_BITS = 24
/** Digits behind them in a trace id. */
const BEHIND_SAMPLED = 8

/** The bits of a trace id that decide. */
export function randomBitsOf(traceId: Uint8Array, at: number): number {
  let bits = 0
  const end = at + TRACE_ID_DIGITS - BEHIND_SAMPLED
  for (let i = end - SAMPLED_BITS / 4; i < end; i++) bits = (bits << 4) | digitAt(traceId, i)
  return bits
}

/** Most bytes and members of `tracestate` that are passed on; the specification asks for no more. */
const STATE_CHARS_MAX = 512
const MEMBERS_MAX = 32
const LONG_MEMBER_CHARS = 128

/**
 * A `tracestate` within the limits: of a longer one, members of more than 128 characters go first, then those at the
 * end, and never a part of one. More than 32 members are none.
 */
export function boundedTraceState(given: string): string {
  if (given.length <= STATE_CHARS_MAX && !given.includes(',')) return given
  const members = given
    .split(',', MEMBERS_MAX * 4)
    .map(member => member.trim())
    .filter(member => member !== '')
  if (members.length > MEMBERS_MAX) return ''
  if (given.length <= STATE_CHARS_MAX) return given
  let excess = members.join(',').length - STATE_CHARS_MAX
  const kept: string[] = []
  for (const member of members) {
    if (excess > 0 && member.length > LONG_MEMBER_CHARS) excess -= member.length + 1
    else kept.push(member)
  }
  while (kept.join(',').length > STATE_CHARS_MAX) kept.pop()
  return kept.join(',')
}
