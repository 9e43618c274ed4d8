/**
 * Sends a body in parts of at most 64 KiB to one side of an exchange, while that side takes them. A part is in the
 * arena during its call alone: a side that cannot write it at once keeps a copy, as of every read.
 */
import { arena } from '../../http1/llhttp.ts'
import { MARGIN } from '../../runtime/arena.ts'
import { WRITE, type Written } from '../../socket/byte-socket.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import type { BodyPart } from '../exchange/contract.ts'
import { ReadBuffer } from '../exchange/read-buffer.ts'
import type { BodySource, SourceReader } from './body-source.ts'

/** The side that gets the body. */
export interface FeedSink {
  /** It takes no bytes now: `BodyFeed.resume` follows. */
  readonly isBlocked: boolean
  take(part: BodyPart): Written
  /** The next part is the last one. */
  feedEnds(): void
  /** No further part comes. `cause`: without any text of a client. */
  feedFailed(cause: string): void
  /** Code of the gateway threw while a part was sent. */
  feedThrew(error: unknown): void
}

const PART_BYTES_MAX = 65_536
/** Parts that leave in one turn of the event loop: other connections are served in between. */
const PARTS_PER_TURN = 8

/**
 * `waiting`: for the source, the sink, or the next turn. `sending`: a part is being handed over. `ended`: every part
 * was handed over, or the feed was given up.
 */
type FeedState = 'waiting' | 'sending' | 'ended'

export class BodyFeed implements SourceReader {
  readonly #source: BodySource
  readonly #sink: FeedSink
  readonly #context: ConnectionContext
  readonly #buffer: ReadBuffer
  #state: FeedState = 'waiting'

  constructor(source: BodySource, sink: FeedSink, context: ConnectionContext) {
    this.#source = source
    this.#sink = sink
    this.#context = context
    this.#buffer = new ReadBuffer(context.memory)
  }

  /** Hands the first part over, if only with the head that was composed before: no other head may come between. */
  begin(): void {
    this.#source.open(this)
    this.#state = 'sending'
    const bytes = this.#source.isAtEnd ? EMPTY : (this.#source.take(PART_BYTES_MAX) ?? EMPTY)
    if (this.#hand(bytes) === WRITE.DONE) this.#send(1)
    this.#settle()
  }

  /** The sink takes parts again. */
  resume(): void {
    if (this.#state !== 'waiting' || this.#sink.isBlocked) return
    this.#state = 'sending'
    this.#send(0)
    this.#settle()
  }

  sourceReady(): void {
    try {
      this.resume()
    } catch (error) {
      this.#sink.feedThrew(error)
    }
  }

  sourceFailed(cause: string): void {
    if (this.#state === 'ended') return
    this.cancel()
    this.#sink.feedFailed(cause)
  }

  /** Gives the rest up. A second call changes nothing. */
  cancel(): void {
    this.#state = 'ended'
    this.#source.close()
  }

  #settle(): void {
    if (this.#state === 'sending') this.#state = 'waiting'
  }

  /** `sent`: parts of this turn so far. */
  #send(sent: number): void {
    for (let parts = sent; this.#isSending; parts++) {
      if (this.#sink.isBlocked) return
      if (parts === PARTS_PER_TURN) {
        setImmediate(() => this.sourceReady())
        return
      }
      const bytes = this.#source.isAtEnd ? EMPTY : this.#source.take(PART_BYTES_MAX)
      if (bytes === null || this.#hand(bytes) !== WRITE.DONE) return
    }
  }

  /** The sink may end the feed during a part. */
  get #isSending(): boolean {
    return this.#state === 'sending'
  }

  #hand(bytes: Uint8Array): Written {
    const { part } = this.#context
    const chunk = bytes.length === 0 ? undefined : arena.acquire(bytes.length)
    if (chunk === undefined && bytes.length > 0) {
      this.sourceFailed('no memory for a part of a body')
      return WRITE.FAILED
    }
    const at = chunk === undefined ? 0 : chunk.offset
    if (chunk !== undefined) arena.bytes.set(bytes, at)
    const last = this.#source.isAtEnd
    if (last) {
      this.cancel()
      this.#sink.feedEnds()
    }
    part.spans.offsets[0] = at
    part.spans.offsets[1] = bytes.length
    part.count = chunk === undefined ? 0 : 1
    part.floor = at - MARGIN
    part.last = last
    part.trailers = this.#context.trailerHeads.scratch
    part.trailers.clear()
    part.buffer = this.#buffer
    try {
      return this.#sink.take(part)
    } finally {
      if (chunk !== undefined) arena.release(chunk)
    }
  }
}

const EMPTY: Uint8Array = new Uint8Array()
