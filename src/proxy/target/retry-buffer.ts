/**
 * Keeps a request in memory while its connection is being opened, and until a response begins where the request may be
 * sent once more. One head and one read of its body are the limit.
 */
import { encodeBody, LAST_CHUNK } from '../../http1/body.ts'
import { CHUNKED } from '../../http1/framing.ts'
import { putBytes } from '../../http1/arena-copy.ts'
import { arena } from '../../http1/llhttp.ts'
import { putTrailers } from '../../http1/trailers.ts'
import { putText } from '../../http1/writer.ts'
import type { Chunk } from '../../runtime/arena.ts'
import type { BodyPart } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Composer } from '../exchange/write-buffer.ts'

/** A chunk and its used length. */
interface Piece {
  readonly chunk: Chunk
  readonly length: number
}

export class RetryBuffer {
  /** The head; null while the buffer is empty. */
  #head: Chunk | null = null
  #headLength = 0
  /** Pieces of the body, in order. */
  readonly #body: Piece[] = []
  /** The buffer holds the whole request. */
  isComplete = false
  /** The buffer holds bytes of the body. */
  hasBody = false
  /** Leading bytes that depend on the endpoint: start line, Host, Proxy-Authorization. */
  #prefixLength = 0

  /** A copy of the composed head, without the body if one follows. Null without memory. */
  static ofHead(composer: Composer, length: number, prefixLength: number, isComplete: boolean): RetryBuffer | null {
    const buffer = new RetryBuffer()
    return buffer.fill(composer.chunk.offset, length, prefixLength, isComplete) ? buffer : null
  }

  /** Keeps a copy of the head at `at` in a buffer that is empty; false without memory. */
  fill(at: number, length: number, prefixLength: number, isComplete: boolean): boolean {
    const chunk = arena.acquire(length)
    if (chunk === undefined) return false
    putBytes(arena.bytes, chunk.offset, at, at + length)
    this.#head = chunk
    this.#headLength = length
    this.#prefixLength = prefixLength
    this.isComplete = isComplete
    this.hasBody = false
    return true
  }

  /** Adds body bytes that came before the connection was open. False without memory for them. */
  add(composer: Composer, part: BodyPart, framing: number): boolean {
    const { bytes } = arena
    const { spans } = part
    const hasBytes = encodeBody(bytes, spans, part.count, framing, part.floor)
    if (hasBytes && !this.#append(spans.at, spans.length)) return false
    if (hasBytes) this.hasBody = true
    if (!part.last) return true
    this.isComplete = true
    if (framing !== CHUNKED) return true
    const { offset } = composer.chunk
    const end = part.trailers.count > 0 ? putTrailers(bytes, offset, part.trailers) : putText(bytes, offset, LAST_CHUNK)
    return this.#append(offset, end - offset)
  }

  #append(at: number, length: number): boolean {
    const piece = copied(at, length)
    if (piece !== null) this.#body.push(piece)
    return piece !== null
  }

  /** Another buffer with a complete request without body; null without memory. */
  copy(): RetryBuffer | null {
    const buffer = new RetryBuffer()
    return buffer.fill(this.#head!.offset, this.#headLength, this.#prefixLength, true) ? buffer : null
  }

  /** Replaces the prefix by the first bytes of the composer, for another endpoint; false without memory. */
  replacePrefix(composer: Composer, prefixLength: number): boolean {
    const old = this.#head!
    const rest = this.#headLength - this.#prefixLength
    const chunk = arena.acquire(prefixLength + rest)
    if (chunk === undefined) return false
    const { bytes } = arena
    bytes.copyWithin(chunk.offset, composer.chunk.offset, composer.chunk.offset + prefixLength)
    bytes.copyWithin(chunk.offset + prefixLength, old.offset + this.#prefixLength, old.offset + this.#headLength)
    arena.release(old)
    this.#head = chunk
    this.#headLength = prefixLength + rest
    this.#prefixLength = prefixLength
    return true
  }

  /** The pieces in order; the caller owns them. */
  take(): readonly Piece[] {
    const head = { chunk: this.#head!, length: this.#headLength }
    this.#head = null
    return [head, ...this.#body.splice(0)]
  }

  /** Empties the buffer, which may be filled again. */
  release(): void {
    if (this.#head !== null) arena.release(this.#head)
    this.#head = null
    if (this.#body.length > 0) for (const { chunk } of this.#body.splice(0)) arena.release(chunk)
  }
}

function copied(at: number, length: number): Piece | null {
  const chunk = arena.acquire(length)
  if (chunk === undefined) return null
  arena.bytes.copyWithin(chunk.offset, at, at + length)
  return { chunk, length }
}

const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PROPFIND', 'REPORT', 'SEARCH', 'QUERY'])

/** True if a request may be sent twice: an idempotent method (RFC 9110 9.2.2), and no body that could be lost. */
export function isRetryable(exchange: Exchange): boolean {
  return exchange.requestFraming === 0 && IDEMPOTENT.has(exchange.sentMethod)
}
