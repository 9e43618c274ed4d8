/**
 * Write buffer of a connection. Owns the memory of writes that wait for the peer until they have left; the side that
 * produces the bytes stops reading meanwhile, so at most one read waits.
 */
import { type ByteSocket, WRITE, type Written } from '../../socket/byte-socket.ts'
import { arena } from '../../http1/llhttp.ts'
import { putText } from '../../http1/writer.ts'
import { type Chunk, CHUNK_MAX } from '../../runtime/arena.ts'
import type { ReadBuffer } from './read-buffer.ts'

/** Chunk in which a thread composes heads and small messages, one at a time. */
export class Composer {
  readonly #size: number
  #chunk: Chunk
  /** The next chunk, acquired in advance: a write that waits must find one. */
  #spare: Chunk | undefined

  /** `size`: bytes of the longest head with the gateway's own fields. Throws when the arena is exhausted. */
  constructor(size: number) {
    const chunk = arena.acquire(size)
    if (chunk === undefined) throw new Error('the arena is too small for one output buffer')
    this.#size = size
    this.#chunk = chunk
    this.#spare = arena.acquire(size)
  }

  get chunk(): Chunk {
    return this.#chunk
  }

  /** True if another chunk is available to go on with. */
  get canSurrender(): boolean {
    this.#spare ??= arena.acquire(this.#size)
    return this.#spare !== undefined
  }

  /** Gives the chunk to the caller, because its bytes must stay. Only after `canSurrender`. */
  surrender(): Chunk {
    const given = this.#chunk
    this.#chunk = this.#spare!
    this.#spare = undefined
    return given
  }
}

/** Counts the bytes that a socket has taken. */
export interface ByteCounter {
  add(cell: number, by: number): void
}

export class WriteBuffer {
  readonly #composer: Composer
  readonly #counter: ByteCounter
  readonly #cell: number
  #held: Chunk[] | null = null
  /** All bytes that were written, those that wait included. */
  sentBytes = 0
  #socket: ByteSocket | null = null

  constructor(composer: Composer, counter: ByteCounter, cell: number) {
    this.#composer = composer
    this.#counter = counter
    this.#cell = cell
  }

  open(socket: ByteSocket): void {
    this.#socket = socket
  }

  /** Bytes wait for the peer, so the other side should not be read. */
  get isBlocked(): boolean {
    return this.#held !== null
  }

  /** The socket holds bytes that wait, in memory of its own. */
  block(): void {
    this.#held ??= []
  }

  /** Writes the first `length` bytes of the composer's chunk. `gathers`: as for `ByteSocket.write`. */
  writeComposed(length: number, gathers = false): Written {
    const { chunk } = this.#composer
    // Bytes behind waiting bytes wait too: in a chunk of their own size, not in the composer's.
    if (this.#held !== null) return this.#writeCopy(chunk.offset, length)
    // Without memory to go on with, the connection fails before any of these bytes is sent.
    if (!this.#composer.canSurrender) return WRITE.FAILED
    const written = this.#send(chunk.prefix(length), gathers)
    if (written === WRITE.PENDING) this.#hold(this.#composer.surrender())
    return written
  }

  #writeCopy(at: number, length: number): Written {
    const copy = arena.acquire(length)
    if (copy === undefined) return WRITE.FAILED
    arena.bytes.copyWithin(copy.offset, at, at + length)
    return this.writeChunk(copy, length)
  }

  /** Writes bytes that `from` has read: from its own chunk in place, from the shared buffer through a copy. */
  write(at: number, length: number, from: ReadBuffer): Written {
    const { chunk } = this.#composer
    if (from.canSurrender) {
      const written = this.#send(arena.bytes.subarray(at, at + length))
      if (written === WRITE.PENDING) this.#hold(from.surrender()!)
      return written
    }
    if (length <= chunk.size) {
      arena.bytes.copyWithin(chunk.offset, at, at + length)
      return this.writeComposed(length)
    }
    return this.#writeCopy(at, length)
  }

  /** Writes an acquired chunk and releases it once its bytes have left. */
  writeChunk(chunk: Chunk, length: number): Written {
    const written = this.#send(chunk.view.subarray(0, length))
    if (written === WRITE.PENDING) this.#hold(chunk)
    else arena.release(chunk)
    return written
  }

  /** Writes acquired chunks in order, and releases all of them. */
  writeChunks(pieces: readonly { readonly chunk: Chunk; readonly length: number }[]): Written {
    let written: Written = WRITE.DONE
    for (const { chunk, length } of pieces) {
      const next: Written = written === WRITE.FAILED ? WRITE.FAILED : this.writeChunk(chunk, length)
      if (written === WRITE.FAILED) arena.release(chunk)
      if (next !== WRITE.DONE) written = next
    }
    return written
  }

  /** Writes text of latin1 bytes. */
  writeText(text: string): Written {
    const { chunk } = this.#composer
    // A response that a sequence made may be longer than the composer's chunk.
    if (text.length > chunk.size) return this.#writeLong(text)
    return this.writeComposed(putText(arena.bytes, chunk.offset, text) - chunk.offset)
  }

  #writeLong(text: string): Written {
    const pieces: { readonly chunk: Chunk; readonly length: number }[] = []
    for (let at = 0; at < text.length; at += CHUNK_MAX) {
      const part = text.slice(at, at + CHUNK_MAX)
      const chunk = arena.acquire(part.length)
      if (chunk === undefined) {
        for (const piece of pieces) arena.release(piece.chunk)
        return WRITE.FAILED
      }
      putText(arena.bytes, chunk.offset, part)
      pieces.push({ chunk, length: part.length })
    }
    return this.writeChunks(pieces)
  }

  /** Releases the memory: all bytes have left, or the connection is closed. */
  release(): void {
    const held = this.#held
    this.#held = null
    if (held !== null) for (const chunk of held) arena.release(chunk)
  }

  #send(bytes: Uint8Array, gathers = false): Written {
    const written = this.#socket!.write(bytes, gathers)
    if (written === WRITE.FAILED) return written
    this.sentBytes += bytes.length
    this.#counter.add(this.#cell, bytes.length)
    return written
  }

  #hold(chunk: Chunk): void {
    this.#held ??= []
    this.#held.push(chunk)
  }
}
