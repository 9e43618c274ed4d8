/**
 * A request kept in memory: while its connection is being opened, or so that it can be sent once more when a pooled
 * connection turns out to be dead. Bounded by one head and one read of its body.
 */
import type { BodyPart } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Composer } from '../exchange/outbox.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import { encodeBody, encoded, LAST_CHUNK } from '../http1/body.ts'
import { CHUNKED } from '../http1/framing.ts'
import { putTrailers } from '../http1/trailers.ts'
import { putText } from '../http1/writer.ts'
import type { Arena, Chunk } from '../structure/arena.ts'

/** A chunk and how much of it counts. */
interface Piece {
  readonly chunk: Chunk
  readonly length: number
}

export class SavedRequest {
  readonly #arena: Arena
  #pieces: Piece[]
  /** The whole request is here. */
  isComplete = false
  /** Some of its body is here. */
  hasBody = false

  /** Bytes in front that another endpoint would have otherwise: start line, Host and what belongs to the route. */
  #prefix: number

  private constructor(arena: Arena, pieces: Piece[], prefix: number) {
    this.#arena = arena
    this.#pieces = pieces
    this.#prefix = prefix
  }

  /** A copy of the composed head; null when there is no memory: the request is then sent once only. */
  static copyOf(composer: Composer, length: number, prefix: number): SavedRequest | null {
    const chunk = composer.arena.lend(length)
    if (chunk === undefined) return null
    composer.arena.bytes.copyWithin(chunk.offset, composer.chunk.offset, composer.chunk.offset + length)
    const saved = new SavedRequest(composer.arena, [{ chunk, length }], prefix)
    saved.isComplete = true
    return saved
  }

  /** The composed head itself; body parts are added. Null when there is no memory to go on with. */
  static of(composer: Composer, length: number, prefix: number): SavedRequest | null {
    const saved = SavedRequest.copyOf(composer, length, prefix)
    if (saved !== null) saved.isComplete = false
    return saved
  }

  /** Body bytes that came before the connection did. Without memory for them the request stays incomplete. */
  add(around: Surroundings, part: BodyPart, framing: number): boolean {
    const { bytes } = around.arena
    const any = encodeBody(bytes, part.spans, framing, part.floor)
    if (any && !this.#keep(around.arena, encoded.at, encoded.length)) return false
    if (any) this.hasBody = true
    if (!part.last) return true
    this.isComplete = true
    if (framing !== CHUNKED) return true
    const { chunk } = around.composer
    const end =
      part.trailers.count > 0
        ? putTrailers(bytes, chunk.offset, part.trailers)
        : putText(bytes, chunk.offset, LAST_CHUNK)
    return this.#keep(around.arena, chunk.offset, end - chunk.offset)
  }

  #keep(arena: Arena, at: number, length: number): boolean {
    const chunk = arena.lend(length)
    if (chunk === undefined) return false
    arena.bytes.copyWithin(chunk.offset, at, at + length)
    this.#pieces.push({ chunk, length })
    return true
  }

  /** A second one like it, of a request that is complete and has no body; null when there is no memory. */
  copy(): SavedRequest | null {
    const [{ chunk: from, length }] = this.#pieces as [Piece]
    const chunk = this.#arena.lend(length)
    if (chunk === undefined) return null
    this.#arena.bytes.copyWithin(chunk.offset, from.offset, from.offset + length)
    const copy = new SavedRequest(this.#arena, [{ chunk, length }], this.#prefix)
    copy.isComplete = true
    return copy
  }

  /** Puts the composer's first `prefix` bytes in place of the prefix; false when there is no memory for it. */
  address(composer: Composer, prefix: number): boolean {
    const [{ chunk: old, length }, ...others] = this.#pieces as [Piece, ...Piece[]]
    const rest = length - this.#prefix
    const chunk = this.#arena.lend(prefix + rest)
    if (chunk === undefined) return false
    const { bytes } = this.#arena
    bytes.copyWithin(chunk.offset, composer.chunk.offset, composer.chunk.offset + prefix)
    bytes.copyWithin(chunk.offset + prefix, old.offset + this.#prefix, old.offset + length)
    this.#arena.giveBack(old)
    this.#pieces = [{ chunk, length: prefix + rest }, ...others]
    this.#prefix = prefix
    return true
  }

  /** The pieces in order; they are the caller's now. */
  take(): readonly Piece[] {
    const pieces = this.#pieces
    this.#pieces = []
    return pieces
  }

  release(): void {
    for (const { chunk } of this.#pieces) this.#arena.giveBack(chunk)
    this.#pieces = []
  }
}

const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PROPFIND', 'REPORT', 'SEARCH', 'QUERY'])

/** RFC 9110 9.2.2: idempotent, and nothing of a body that could be lost. */
export function mayResend(exchange: Exchange): boolean {
  return exchange.requestFraming === 0 && IDEMPOTENT.has(exchange.method)
}
