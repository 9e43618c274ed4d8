/**
 * Reads the messages of one connection in order, however the bytes are split. Owns the parser, its position, and the
 * heads that must outlive a read.
 */
import { type BadMessage, bad } from './bad-message.ts'
import type { FieldKinds } from './field-kinds.ts'
import type { Head, HeadPool } from './head.ts'
import { arena, PARSE_RESULT, type Parser } from './llhttp.ts'
import { isRequestLineEnd } from './head-rules.ts'
import { type ExpectedSection, PAUSE_MAX, type RepeatedSection, type RepeatedSections } from './repeated-sections.ts'

/** Limits in bytes; shared by the readers of one side, and changed in place by a reload. */
export interface ReaderLimits {
  readonly headBytesMax: number
  /** Requests only; responses have no target. */
  readonly targetBytesMax: number
  readonly extensionBytesMax: number
  readonly trailerBytesMax: number
}

const BAD = {
  target: bad(414, 'request target is longer than the limit (RFC 9110 15.5.15)'),
  head: bad(431, 'head is longer than the limit (RFC 6585 5)'),
  count: bad(431, 'head has more fields than the limit (RFC 6585 5)'),
  extensions: bad(400, 'chunk extensions are longer than the limit (RFC 9112 7.1.1)'),
  trailers: bad(431, 'trailer section is longer than the limit (RFC 9112 7.1.2)'),
  method: bad(501, 'method is not known (RFC 9110 9.1)'),
  version: bad(505, 'HTTP version is not supported (RFC 9110 15.6.6)'),
}
/** CRLF behind the previous chunk and CRLF of the size line. */
const LINE_ENDS = 4
/** Most bytes around a chunk without extension: a size can have 16 digits. */
const CHUNK_OVERHEAD_MAX = LINE_ENDS + 16
/** Some servers pad sizes to eight digits; chunks of this size and more may do that for free. */
const PADDED_FROM = 256
const PADDED_DIGITS = 8

/** Hexadecimal digits that the size of a chunk may take without counting as extension. */
function sizeDigits(chunkBytes: number): number {
  return chunkBytes >= PADDED_FROM ? PADDED_DIGITS : (35 - Math.clz32(chunkBytes)) >> 2
}

const METHOD_BYTES_MAX = 32
const LF = 10
/** The shortest request line: "GET / HTTP/1.1" and CRLF. */
const LINE_BYTES_MIN = 16
/** llhttp message for a well-formed version that it does not know. */
const UNKNOWN_VERSION = 'Invalid HTTP version'

const syntaxErrors = new Map<string, BadMessage>()

/** Row of an llhttp message; the messages are few, so each row is made once. */
function syntaxError(reason: string): BadMessage {
  let row = syntaxErrors.get(reason)
  if (row === undefined) {
    row = bad(400, `${reason} (RFC 9112)`)
    syntaxErrors.set(reason, row)
  }
  return row
}

/** `Decoded`: what a repeated section decides. */
export class MessageReader<Decoded = never> {
  readonly #parser: Parser
  readonly #kinds: FieldKinds
  readonly #heads: HeadPool
  readonly #trailerHeads: HeadPool
  readonly #limits: ReaderLimits
  #pinnedHead: Head | null = null
  #pinnedTrailers: Head | null = null
  /** First byte that the parser has not seen. */
  #parsedTo = 0
  /** Bytes since the last body byte. */
  #sinceBody = 0
  /** Bytes around chunks beyond those that chunks need. */
  #extensionBytes = 0
  /** Chunk under way: bytes in front of its data, and data bytes so far. Counted when the next chunk begins. */
  #chunkGap = 0
  #chunkBytes = 0
  readonly #sections: RepeatedSections<Decoded> | null
  /** The section that came last on this connection, if it is kept. */
  #section: RepeatedSection<Decoded> | null
  /** Head that the peer's connections begin with; null from the first head on that could be kept. */
  #expected: ExpectedSection<Decoded> | null
  /** The section that the head under way repeats; null: the head was parsed as a whole. */
  repeated: RepeatedSection<Decoded> | null = null
  /** Heads until the next attempt to keep a section, and from then on: sections that always differ cost nothing. */
  #pause = 2
  #nextPause = 1
  /** The rule that the message breaks; null as long as it breaks none. */
  error: BadMessage | null = null

  /** `sections`: where repeated sections are kept; null: they are not. `expected`: of the peer. */
  constructor(
    parser: Parser,
    kinds: FieldKinds,
    heads: HeadPool,
    trailers: HeadPool,
    limits: ReaderLimits,
    sections: RepeatedSections<Decoded> | null = null,
    expected: ExpectedSection<Decoded> | null = null,
  ) {
    this.#parser = parser
    this.#kinds = kinds
    this.#heads = heads
    this.#trailerHeads = trailers
    this.#limits = limits
    this.#sections = sections
    this.#expected = expected
    this.#section = expected === null ? null : expected.section
  }

  /** The head of the message under way. */
  get head(): Head {
    return this.repeated !== null ? this.repeated.head : (this.#pinnedHead ?? this.#heads.scratch)
  }

  get trailers(): Head {
    return this.#pinnedTrailers ?? this.#trailerHeads.scratch
  }

  get method(): number {
    return this.#parser.method
  }

  /** The last read completed the message. */
  get isComplete(): boolean {
    return this.#parser.isMessageComplete
  }

  /** Number of body spans of the last read; their offsets are in `BodySpans`. */
  get spanCount(): number {
    return this.#parser.spanCount
  }

  /** First byte that is not parsed; behind a complete message it belongs to the next one. */
  get parsedTo(): number {
    return this.#parsedTo
  }

  /** Starts a message whose first byte is at `at`. */
  begin(at: number): void {
    this.#parser.next()
    this.repeated = null
    this.#parsedTo = at
    this.#sinceBody = 0
    this.#extensionBytes = 0
    this.#chunkGap = 0
    this.#chunkBytes = 0
    this.error = null
  }

  /**
   * Continues a head that began at `from`, up to `to`. Returns true when the head is complete and classified; then
   * `isComplete` says whether the message is. False: more bytes are needed, or `error` is set.
   */
  readHead(from: number, to: number, withoutBody: boolean): boolean {
    const { head } = this
    // Other connections have used the scratch head since; a head under way is pinned.
    if (this.#pinnedHead === null) head.clear()
    const parser = this.#parser
    const result = parser.execute(this.#parsedTo, to, head, this.#cleanTrailers(), withoutBody)
    this.#parsedTo = parser.end
    if (!parser.isHeadComplete) {
      const { headBytesMax, targetBytesMax } = this.#limits
      // Limits come first, so that the answer does not depend on how much of the bad message was read.
      if (head.targetLength > targetBytesMax) this.error = BAD.target
      else if (parser.end - from > headBytesMax) this.error = BAD.head
      else if (result === PARSE_RESULT.MORE) this.#pinnedHead ??= this.#heads.pin()
      else if (result === PARSE_RESULT.INVALID_METHOD && this.#tokenEnd(from, to) === to) this.#restart(from)
      else this.error = this.#explain(result, head, from, to)
      return false
    }
    head.end = this.#headEnd(head, from, to)
    head.fieldsAt = head.count > 0 ? head.spans[0]! : head.end - 2
    if (head.end - from > this.#limits.headBytesMax) {
      this.error = head.targetLength > this.#limits.targetBytesMax ? BAD.target : BAD.head
      return false
    }
    this.#kinds.classify(arena.bytes, head)
    if (result !== PARSE_RESULT.MORE && result !== PARSE_RESULT.PAUSED)
      this.error = this.#explain(result, head, from, to)
    else if (parser.body.count > 0 || !parser.isMessageComplete) this.#measure(head.end)
    return this.error === null
  }

  /**
   * True if the bytes are one request line and the fields that came last. The parser reads the line; the fields would
   * take it through the same states as before.
   */
  repeatsFields(from: number, to: number): boolean {
    const section = this.#section
    if (section === null || !this.#canRepeat(from, to - from)) return false
    const fieldsAt = to - section.length
    if (fieldsAt - from < LINE_BYTES_MIN || arena.bytes[fieldsAt - 1] !== LF || !section.isAt(fieldsAt)) return false
    const parser = this.#parser
    const { scratch } = this.#heads
    scratch.clear()
    const expectsFields = parser.executeLine(from, fieldsAt, scratch)
    if (!expectsFields || !isRequestLineEnd(arena.bytes, scratch.targetAt + scratch.targetLength, fieldsAt)) {
      parser.next()
      return false
    }
    this.#repeat(section, fieldsAt, to, 0)
    section.head.targetAt = scratch.targetAt
    section.head.targetLength = scratch.targetLength
    return true
  }

  /** True if the bytes begin with the head of a response that came last, and with all of its body. */
  repeatsHead(from: number, to: number): boolean {
    const section = this.#section
    if (section === null || !this.#canRepeat(from, section.length)) return false
    const end = from + section.length + section.bodyBytes
    if (to < end || !section.isAt(from)) return false
    this.#repeat(section, from, end, section.bodyBytes)
    return true
  }

  /** True if a message begins at `from`, and its head of `length` bytes is within the limit. */
  #canRepeat(from: number, length: number): boolean {
    return this.#parsedTo === from && this.#pinnedHead === null && length <= this.#limits.headBytesMax
  }

  /** The message ends at `to`, with `bodyBytes`. */
  #repeat(section: RepeatedSection<Decoded>, at: number, to: number, bodyBytes: number): void {
    this.#parser.complete(to, bodyBytes)
    this.#parsedTo = to
    this.#nextPause = 1
    if (this.#expected !== null) {
      this.#expected.recognised()
      this.#expected = null
    }
    this.repeated = section
    section.moveTo(at)
  }

  /** Keeps the section that begins at `at` of the valid head under way, whose message has a body of `bodyBytes`. */
  keepSection(at: number, bodyBytes: number, decoded: Decoded): void {
    this.#pause = this.#nextPause
    this.#nextPause = Math.min(this.#nextPause * 2, PAUSE_MAX)
    this.#section = this.#sections!.keep(this.head, at, bodyBytes, decoded)
    if (this.#expected === null) return
    this.#expected.kept(this.#section)
    this.#expected = null
  }

  /** Counts a head; returns whether its section is to be kept now. */
  countHead(): boolean {
    if (this.#sections === null || this.repeated !== null) return false
    if (this.#expected !== null) {
      if (this.#expected.missed()) return true
      this.#expected = null
    }
    return --this.#pause <= 0
  }

  /** Continues a body up to `to`. Returns false when `error` is set. */
  readBody(to: number): boolean {
    const from = this.#parsedTo
    const result = this.#parser.execute(from, to, null, this.#cleanTrailers(), false)
    this.#parsedTo = this.#parser.end
    if (result !== PARSE_RESULT.MORE && result !== PARSE_RESULT.PAUSED)
      this.error = this.#explain(result, this.trailers, from, to)
    else this.#measure(from)
    return this.error === null
  }

  /**
   * The connection ended and with it a body without trailers: clears the scratch head of other connections' trailers.
   */
  endWithConnection(): void {
    this.#cleanTrailers()
  }

  /** First byte that must stay while the message goes on: start of a split head or trailer section, else `parsedTo`. */
  retainFrom(from: number): number {
    if (this.#pinnedHead !== null) return from
    if (this.#pinnedTrailers !== null) return this.#pinnedTrailers.nameAt(0)
    return this.#parsedTo
  }

  /** Follows retained bytes that were moved by `delta`. */
  moveBy(delta: number): void {
    if (delta === 0) return
    this.#parsedTo += delta
    this.#pinnedHead?.moveBy(delta)
    this.#pinnedTrailers?.moveBy(delta)
  }

  /** Keeps the complete head valid beyond this read, until `unpinHead`. */
  pinHead(): Head {
    const { repeated } = this
    this.#pinnedHead ??= this.#heads.pin()
    if (repeated !== null) {
      // Other connections use the kept head meanwhile.
      this.#pinnedHead.copy(repeated.head)
      this.repeated = null
    }
    return this.#pinnedHead
  }

  /** Returns the head to the pool; the body may go on. */
  unpinHead(): void {
    if (this.#pinnedHead === null) return
    this.#heads.unpin(this.#pinnedHead)
    this.#pinnedHead = null
  }

  /** Ends the message. */
  finish(): void {
    this.unpinHead()
    if (this.#pinnedTrailers === null) return
    this.#trailerHeads.unpin(this.#pinnedTrailers)
    this.#pinnedTrailers = null
  }

  /** The connection is closed: releases the parser. */
  dispose(): void {
    this.finish()
    this.#parser.release()
  }

  #cleanTrailers(): Head {
    const { trailers } = this
    if (this.#pinnedTrailers === null) trailers.clear()
    return trailers
  }

  /** First byte behind the empty line. A parser stops there in a request, but not in a response. */
  #headEnd(head: Head, from: number, to: number): number {
    if (head.targetLength > 0) return this.#parser.end
    const { bytes } = arena
    let at = head.count > 0 ? head.valueAt(head.count - 1) + head.valueLength(head.count - 1) : from
    while (at < to && (bytes[at] !== 13 || bytes[at + 2] !== 13)) at++
    return at + 4
  }

  /** Enforces the limits of chunk extensions and of the trailer section. */
  #measure(from: number): void {
    const { extensionBytesMax, trailerBytesMax } = this.#limits
    const parser = this.#parser
    const { offsets, count } = parser.body
    let at = from
    for (let i = 0; i < 2 * count; i += 2) {
      const gap = this.#sinceBody + offsets[i]! - at
      // A read can split a chunk; its data then goes on without a gap.
      if (gap > 0) this.#beginChunk(gap)
      this.#chunkBytes += offsets[i + 1]!
      this.#sinceBody = 0
      at = offsets[i]! + offsets[i + 1]!
    }
    this.#sinceBody += parser.end - at
    const { trailers } = this
    const sure = this.#extensionBytes + Math.max(0, this.#chunkGap - CHUNK_OVERHEAD_MAX)
    if (sure > extensionBytesMax) this.error = BAD.extensions
    else if (trailers.overflowed) this.error = BAD.count
    else if (trailers.count > 0) {
      if (parser.end - trailers.nameAt(0) > trailerBytesMax) this.error = BAD.trailers
      else if (parser.isMessageComplete) this.#kinds.classify(arena.bytes, trailers)
      else if (this.#pinnedTrailers === null) this.#pinnedTrailers = this.#trailerHeads.pin()
    } else if (sure + this.#sinceBody > extensionBytesMax + CHUNK_OVERHEAD_MAX) this.error = BAD.extensions
  }

  /** Counts the previous chunk: bytes in front of its data beyond line ends and size were extension, or zeros. */
  #beginChunk(gap: number): void {
    this.#extensionBytes += Math.max(0, this.#chunkGap - LINE_ENDS - sizeDigits(this.#chunkBytes))
    this.#chunkGap = gap
    this.#chunkBytes = 0
  }

  #explain(result: number, section: Head, from: number, to: number): BadMessage {
    if (section.overflowed) return BAD.count
    const { reason } = this.#parser
    if (result === PARSE_RESULT.INVALID_METHOD) {
      // A token and a space is an unknown method; anything else is a syntax error.
      const end = this.#tokenEnd(from, to)
      return end > from && end < to && arena.bytes[end] === 32 ? BAD.method : syntaxError(reason)
    }
    if (result === PARSE_RESULT.PRI_UPGRADE) return BAD.version
    return result === PARSE_RESULT.INVALID_VERSION && reason === UNKNOWN_VERSION ? BAD.version : syntaxError(reason)
  }

  /** llhttp refuses a method at its first odd letter; at the end of the word the reader knows if it is a token. */
  #restart(at: number): void {
    this.#parser.next()
    this.#parsedTo = at
    this.#pinnedHead ??= this.#heads.pin()
  }

  /** End of the word of letters that begins at `from`. */
  #tokenEnd(from: number, to: number): number {
    const { bytes } = arena
    const end = Math.min(to, from + METHOD_BYTES_MAX)
    let at = from
    while (at < end && (((bytes[at]! | 32) >= 97 && (bytes[at]! | 32) <= 122) || bytes[at] === 45)) at++
    return at
  }
}
