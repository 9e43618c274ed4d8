/**
 * Writes a message: a composed head, then body parts in the framing of the receiver; head and first bytes leave in one
 * write. Serves both sides. Knows no state machine, so the connection calls in the right order.
 */
import { encodeBody, LAST_CHUNK } from '../../http1/body.ts'
import { CHUNKED } from '../../http1/framing.ts'
import { arena } from '../../http1/llhttp.ts'
import { putTrailers } from '../../http1/trailers.ts'
import { putBytes } from '../../http1/arena-copy.ts'
import { putText } from '../../http1/writer.ts'
import { type ByteSocket, WRITE, type Written } from '../../socket/byte-socket.ts'
import type { BodyPart } from './contract.ts'
import { type ByteCounter, type Composer, WriteBuffer } from './write-buffer.ts'

export class MessageWriter {
  readonly writeBuffer: WriteBuffer
  readonly #composer: Composer
  /** Bytes of the composed head that is not written yet. */
  #composed = 0
  /** Framing of the body: a length, CHUNKED, or UNTIL_CLOSE. */
  #framing = 0

  /** `cell`: metric of the bytes that leave. */
  constructor(composer: Composer, counter: ByteCounter, cell: number) {
    this.#composer = composer
    this.writeBuffer = new WriteBuffer(composer, counter, cell)
  }

  open(socket: ByteSocket): void {
    this.writeBuffer.open(socket)
  }

  /** A head of `length` bytes is in the composer; it leaves with the next part. */
  compose(length: number, framing: number): void {
    this.#composed = length
    this.#framing = framing
  }

  /** Drops a composed head. */
  discard(): void {
    this.#composed = 0
  }

  /**
   * Writes body bytes, or the end of the body; and the head, when it has not left yet. `gathers`: head and bytes may
   * wait together until this turn of the event loop ends.
   */
  part(part: BodyPart, gathers: boolean): Written {
    const { bytes } = arena
    const { spans } = part
    const hasBytes = encodeBody(bytes, spans, part.count, this.#framing, part.floor)
    const ends = this.#framing === CHUNKED && part.last
    if (ends && part.trailers.count > 0) return this.#withTrailers(part, hasBytes)
    // The received last chunk is behind the data and is at least as long as ours.
    if (ends && hasBytes) spans.length = putText(bytes, spans.at + spans.length, LAST_CHUNK) - spans.at
    if (this.#composed > 0) return this.#withHead(part, hasBytes, ends && !hasBytes, gathers)
    if (hasBytes) return this.writeBuffer.write(spans.at, spans.length, part.buffer)
    return ends ? this.writeBuffer.writeText(LAST_CHUNK) : WRITE.DONE
  }

  #withHead({ spans, buffer }: BodyPart, hasBytes: boolean, onlyEnd: boolean, gathers: boolean): Written {
    const { bytes } = arena
    const { offset, size } = this.#composer.chunk
    let length = this.#composed
    this.#composed = 0
    if (onlyEnd) length = putText(bytes, offset + length, LAST_CHUNK) - offset
    if (hasBytes && length + spans.length <= size) {
      length = putBytes(bytes, offset + length, spans.at, spans.at + spans.length) - offset
      return this.writeBuffer.writeComposed(length, gathers)
    }
    const written = this.writeBuffer.writeComposed(length, gathers && !hasBytes)
    if (!hasBytes || written === WRITE.FAILED) return written
    return combined(written, this.writeBuffer.write(spans.at, spans.length, buffer))
  }

  /** A body that ends with trailers (rare): data, last chunk and fields in separate writes. */
  #withTrailers(part: BodyPart, hasBytes: boolean): Written {
    const { spans } = part
    let written: Written = WRITE.DONE
    if (this.#composed > 0) written = this.#withHead(part, hasBytes, false, false)
    else if (hasBytes) written = this.writeBuffer.write(spans.at, spans.length, part.buffer)
    if (written === WRITE.FAILED) return written
    const start = this.#composer.chunk.offset
    return combined(written, this.writeBuffer.writeComposed(putTrailers(arena.bytes, start, part.trailers) - start))
  }
}

/** Result of two writes in a row: pending when either is, failed when the second one is. */
function combined(first: Written, second: Written): Written {
  return second === WRITE.DONE ? first : second
}
