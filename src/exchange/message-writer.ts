/**
 * A message on its way out, the same on both sides: a composed head, then body parts in the framing of the receiver,
 * the head and the first bytes in one write. Knows no state machine; the connection calls in the right order.
 */
import { encodeBody, encoded, LAST_CHUNK } from '../http1/body.ts'
import { CHUNKED } from '../http1/framing.ts'
import { putTrailers } from '../http1/trailers.ts'
import { putBytes, putText } from '../http1/writer.ts'
import { type ByteSocket, WRITE, type Written } from '../socket/byte-socket.ts'
import type { BodyPart } from './contract.ts'
import { type ByteCounter, type Composer, Outbox } from './outbox.ts'

export class MessageWriter {
  readonly outbox: Outbox
  readonly #composer: Composer
  /** Bytes of the head that is composed and not written yet. */
  #composed = 0
  /** How the body leaves: a length, CHUNKED, or UNTIL_CLOSE. */
  #framing = 0

  /** What leaves is counted in `cell`. */
  constructor(composer: Composer, counter: ByteCounter, cell: number) {
    this.#composer = composer
    this.outbox = new Outbox(composer, counter, cell)
  }

  open(socket: ByteSocket): void {
    this.outbox.open(socket)
  }

  /** A head of so many bytes stands in the composer; it leaves with the next part. */
  compose(length: number, framing: number): void {
    this.#composed = length
    this.#framing = framing
  }

  /** Drops a composed head. */
  discard(): void {
    this.#composed = 0
  }

  /** Body bytes, or the end of the body; with the head, when that has not left yet. */
  part(part: BodyPart): Written {
    const { bytes } = this.#composer.arena
    const any = encodeBody(bytes, part.spans, this.#framing, part.floor)
    const ends = this.#framing === CHUNKED && part.last
    if (ends && part.trailers.count > 0) return this.#withTrailers(part, any)
    // Behind the last data byte stands the last chunk as it was received: at least as long as ours.
    if (ends && any) encoded.length = putText(bytes, encoded.at + encoded.length, LAST_CHUNK) - encoded.at
    if (this.#composed > 0) return this.#withHead(part, any, ends && !any)
    if (any) return this.outbox.write(encoded.at, encoded.length, part.inbox)
    return ends ? this.outbox.writeText(LAST_CHUNK) : WRITE.DONE
  }

  #withHead(part: BodyPart, any: boolean, onlyEnd: boolean): Written {
    const { bytes } = this.#composer.arena
    const { offset, size } = this.#composer.chunk
    let length = this.#composed
    this.#composed = 0
    if (onlyEnd) length = putText(bytes, offset + length, LAST_CHUNK) - offset
    if (any && length + encoded.length <= size) {
      length = putBytes(bytes, offset + length, encoded.at, encoded.at + encoded.length) - offset
      return this.outbox.writeComposed(length)
    }
    const written = this.outbox.writeComposed(length)
    if (!any || written === WRITE.FAILED) return written
    return later(written, this.outbox.write(encoded.at, encoded.length, part.inbox))
  }

  /** The rare end of a body with trailers: data, last chunk and fields in separate writes. */
  #withTrailers(part: BodyPart, any: boolean): Written {
    const { bytes } = this.#composer.arena
    let written: Written = WRITE.DONE
    if (this.#composed > 0) written = this.#withHead(part, any, false)
    else if (any) written = this.outbox.write(encoded.at, encoded.length, part.inbox)
    if (written === WRITE.FAILED) return written
    const start = this.#composer.chunk.offset
    return later(written, this.outbox.writeComposed(putTrailers(bytes, start, part.trailers) - start))
  }
}

/** Two writes in a row wait when either does, and fail when the second does. */
function later(first: Written, second: Written): Written {
  return second === WRITE.DONE ? first : second
}
