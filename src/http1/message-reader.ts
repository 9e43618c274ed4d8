/**
 * Reads the messages of one connection, one after the other, however they are split. Owns the parser, how far it got,
 * and the heads that must survive a read; says what came by its return value, `found` and `bodySpans`.
 */
import type { Arena } from '../structure/arena.ts'
import { type BadMessage, bad } from './bad-message.ts'
import type { FieldKinds } from './field-kinds.ts'
import type { Head } from './head.ts'
import { bodySpans, found, OUTCOME, type Parser } from './llhttp.ts'

/** Heads that are lent for messages that come in pieces. */
export interface HeadSource {
  readonly scratch: Head
  pin(): Head
  unpin(head: Head): void
}

/** Shared by the readers of one kind of connection. */
export interface ReaderLimits {
  readonly headBytesMax: number
  /** Of a request; responses have no target. */
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
/** The CRLF behind the chunk before, and that of the size line. */
const LINE_ENDS = 4
/** As much as any chunk without extension needs, whatever its size will turn out to be: 16 digits. */
const CHUNK_OVERHEAD_MAX = LINE_ENDS + 16
/** Some servers write sizes with eight digits always; where chunks are this large, that costs next to nothing. */
const PADDED_FROM = 256
const PADDED_DIGITS = 8

/** Hexadecimal digits that the size of a chunk may take. */
function sizeDigits(chunkBytes: number): number {
  return chunkBytes >= PADDED_FROM ? PADDED_DIGITS : (35 - Math.clz32(chunkBytes)) >> 2
}

const malformed = new Map<string, BadMessage>()

/** llhttp's own words are few, so their rows are made once each. */
function syntax(reason: string): BadMessage {
  let row = malformed.get(reason)
  if (row === undefined) {
    row = bad(400, `${reason} (RFC 9112)`)
    malformed.set(reason, row)
  }
  return row
}

export class MessageReader {
  readonly #parser: Parser
  readonly #arena: Arena
  readonly #kinds: FieldKinds
  readonly #heads: HeadSource
  readonly #trailerHeads: HeadSource
  readonly #limits: ReaderLimits
  #pinnedHead: Head | null = null
  #pinnedTrailers: Head | null = null
  /** Bytes up to here went through the parser. */
  #parsedTo = 0
  /** Bytes since the last body byte, and those of them that are more than chunks need. */
  #idleRun = 0
  #extensionBytes = 0
  /** Of the chunk under way: what lay in front of its data, and its data so far. Settled when its size is known. */
  #chunkGap = 0
  #chunkBytes = 0
  /** What broke, when a read answered 'bad'. */
  broken: BadMessage | null = null

  constructor(
    parser: Parser,
    arena: Arena,
    kinds: FieldKinds,
    heads: HeadSource,
    trailers: HeadSource,
    limits: ReaderLimits,
  ) {
    this.#parser = parser
    this.#arena = arena
    this.#kinds = kinds
    this.#heads = heads
    this.#trailerHeads = trailers
    this.#limits = limits
  }

  /** The head of the message under way. */
  get head(): Head {
    return this.#pinnedHead ?? this.#heads.scratch
  }

  get trailers(): Head {
    return this.#pinnedTrailers ?? this.#trailerHeads.scratch
  }

  get method(): number {
    return this.#parser.method
  }

  /** Bytes up to here are parsed; what follows belongs to the next message. */
  get parsedTo(): number {
    return this.#parsedTo
  }

  /** A message begins at `at`. */
  begin(at: number): void {
    this.#parser.next()
    this.#parsedTo = at
    this.#idleRun = 0
    this.#extensionBytes = 0
    this.#chunkGap = 0
    this.#chunkBytes = 0
    this.broken = null
  }

  /**
   * Reads on in a head that began at `from`, up to `to`. Answers true when it is complete and classified; then
   * `found.message` says whether the message is. False: more is needed, or `broken` is set.
   */
  readHead(from: number, to: number, withoutBody: boolean): boolean {
    const { head } = this
    // The scratch heads were used by other connections since; what continues is pinned.
    if (this.#pinnedHead === null) head.clear()
    const outcome = this.#parser.execute(this.#parsedTo, to, head, this.#cleanTrailers(), withoutBody)
    this.#parsedTo = found.end
    if (!found.head) {
      const { headBytesMax, targetBytesMax } = this.#limits
      // The limits come first, so that it makes no difference how much of what breaks the rules behind them is here.
      if (head.targetLength > targetBytesMax) this.broken = BAD.target
      else if (found.end - from > headBytesMax) this.broken = BAD.head
      else if (outcome === OUTCOME.MORE) this.#pinnedHead ??= this.#heads.pin()
      else if (outcome === OUTCOME.INVALID_METHOD && this.#tokenEnd(from, to) === to) this.#startOver(from)
      else this.broken = this.#explain(outcome, head, from, to)
      return false
    }
    head.end = this.#headEnd(head, from, to)
    head.fieldsAt = head.count > 0 ? head.spans[0]! : head.end - 2
    if (head.end - from > this.#limits.headBytesMax) {
      this.broken = head.targetLength > this.#limits.targetBytesMax ? BAD.target : BAD.head
      return false
    }
    this.#kinds.classify(this.#arena.bytes, head)
    if (outcome !== OUTCOME.MORE && outcome !== OUTCOME.PAUSED) this.broken = this.#explain(outcome, head, from, to)
    else if (found.body > 0 || !found.message) this.#measure(head.end)
    return this.broken === null
  }

  /** Reads on in a body up to `to`. Answers false when it is `broken`. */
  readBody(to: number): boolean {
    const from = this.#parsedTo
    const outcome = this.#parser.execute(from, to, null, this.#cleanTrailers(), false)
    this.#parsedTo = found.end
    if (outcome !== OUTCOME.MORE && outcome !== OUTCOME.PAUSED)
      this.broken = this.#explain(outcome, this.trailers, from, to)
    else this.#measure(from)
    return this.broken === null
  }

  /** The connection ended, and with it a body that has no trailers: those of somebody else's must not be found. */
  endWithConnection(): void {
    this.#cleanTrailers()
  }

  /** First byte that must be kept while the message goes on: the head or the trailer section, where they are split. */
  keptFrom(from: number): number {
    if (this.#pinnedHead !== null) return from
    if (this.#pinnedTrailers !== null) return this.#pinnedTrailers.nameAt(0)
    return this.#parsedTo
  }

  /** The kept bytes were moved. */
  moveBy(delta: number): void {
    if (delta === 0) return
    this.#parsedTo += delta
    this.#pinnedHead?.moveBy(delta)
    this.#pinnedTrailers?.moveBy(delta)
  }

  /** Keeps the complete head valid beyond this read; `unpinHead` ends that. */
  pinHead(): Head {
    this.#pinnedHead ??= this.#heads.pin()
    return this.#pinnedHead
  }

  /** The head is used up; the body may go on. */
  unpinHead(): void {
    if (this.#pinnedHead === null) return
    this.#heads.unpin(this.#pinnedHead)
    this.#pinnedHead = null
  }

  /** The message is over. */
  finish(): void {
    this.unpinHead()
    if (this.#pinnedTrailers === null) return
    this.#trailerHeads.unpin(this.#pinnedTrailers)
    this.#pinnedTrailers = null
  }

  /** The connection is gone. */
  dispose(): void {
    this.finish()
    this.#parser.release()
  }

  #cleanTrailers(): Head {
    const { trailers } = this
    if (this.#pinnedTrailers === null) trailers.clear()
    return trailers
  }

  /** Behind the empty line. Parsing stops there in a request, but not in a response. */
  #headEnd(head: Head, from: number, to: number): number {
    if (head.targetLength > 0) return found.end
    const { bytes } = this.#arena
    let at = head.count > 0 ? head.valueAt(head.count - 1) + head.valueLength(head.count - 1) : from
    while (at < to && (bytes[at] !== 13 || bytes[at + 2] !== 13)) at++
    return at + 4
  }

  /** Bounds what lies between the body bytes of chunks, and the trailer section. */
  #measure(from: number): void {
    const { extensionBytesMax, trailerBytesMax } = this.#limits
    let at = from
    for (let i = 0; i < found.body; i++) {
      const gap = this.#idleRun + bodySpans[2 * i]! - at
      // Data goes on without a gap where a read split the chunk.
      if (gap > 0) this.#beginChunk(gap)
      this.#chunkBytes += bodySpans[2 * i + 1]!
      this.#idleRun = 0
      at = bodySpans[2 * i]! + bodySpans[2 * i + 1]!
    }
    this.#idleRun += found.end - at
    const { trailers } = this
    const sure = this.#extensionBytes + Math.max(0, this.#chunkGap - CHUNK_OVERHEAD_MAX)
    if (sure > extensionBytesMax) this.broken = BAD.extensions
    else if (trailers.overflowed) this.broken = BAD.count
    else if (trailers.count > 0) {
      if (found.end - trailers.nameAt(0) > trailerBytesMax) this.broken = BAD.trailers
      else if (found.message) this.#kinds.classify(this.#arena.bytes, trailers)
      else if (this.#pinnedTrailers === null) this.#pinnedTrailers = this.#trailerHeads.pin()
    } else if (sure + this.#idleRun > extensionBytesMax + CHUNK_OVERHEAD_MAX) this.broken = BAD.extensions
  }

  /** Settles the chunk before: what it had in front beyond line ends and size was extension, or zeros. */
  #beginChunk(gap: number): void {
    this.#extensionBytes += Math.max(0, this.#chunkGap - LINE_ENDS - sizeDigits(this.#chunkBytes))
    this.#chunkGap = gap
    this.#chunkBytes = 0
  }

  #explain(outcome: number, section: Head, from: number, to: number): BadMessage {
    if (section.overflowed) return BAD.count
    const { reason } = this.#parser
    if (outcome === OUTCOME.INVALID_METHOD) {
      // A token and a space: an unknown method, not garbage.
      const end = this.#tokenEnd(from, to)
      return end > from && end < to && this.#arena.bytes[end] === 32 ? BAD.method : syntax(reason)
    }
    if (outcome === OUTCOME.PRI_UPGRADE) return BAD.version
    return outcome === OUTCOME.INVALID_VERSION && reason === UNKNOWN_VERSION ? BAD.version : syntax(reason)
  }

  /** llhttp gives up at the first odd letter; whether the word is a method is known at its end. */
  #startOver(at: number): void {
    this.#parser.next()
    this.#parsedTo = at
    this.#pinnedHead ??= this.#heads.pin()
  }

  /** Where the word of letters that begins at `from` ends. */
  #tokenEnd(from: number, to: number): number {
    const { bytes } = this.#arena
    const end = Math.min(to, from + METHOD_BYTES_MAX)
    let at = from
    while (at < end && (((bytes[at]! | 32) >= 97 && (bytes[at]! | 32) <= 122) || bytes[at] === 45)) at++
    return at
  }
}
const METHOD_BYTES_MAX = 32
/** llhttp's words for a version that is spelled well; of others it says what is missing. */
const UNKNOWN_VERSION = 'Invalid HTTP version'
