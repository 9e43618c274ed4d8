/**
 * What a connection writes. Owns the memory of writes that wait for the peer: it is held until they have left, and the
 * side that produces the bytes stops reading meanwhile, so at most one read is ever held.
 */
import { type ByteSocket, WRITE, type Written } from '../socket/byte-socket.ts'
import { putText } from '../http1/writer.ts'
import { type Arena, type Chunk, CHUNK_MAX } from '../structure/arena.ts'
import type { Inbox } from './inbox.ts'

/** The chunk in which a thread composes heads and small messages, one at a time. */
export class Composer {
  readonly arena: Arena
  readonly #size: number
  #chunk: Chunk
  /** The next one, kept ready: a write that waits must never find that there is none. */
  #spare: Chunk | undefined

  /** `size`: bytes of the longest head with what is added to it. */
  constructor(arena: Arena, size: number) {
    const chunk = arena.lend(size)
    if (chunk === undefined) throw new Error('the arena is too small for one output buffer')
    this.arena = arena
    this.#size = size
    this.#chunk = chunk
    this.#spare = arena.lend(size)
  }

  get chunk(): Chunk {
    return this.#chunk
  }

  /** Whether there is another chunk to go on with. */
  get canPart(): boolean {
    this.#spare ??= this.arena.lend(this.#size)
    return this.#spare !== undefined
  }

  /** Gives the chunk away, because its bytes must stay. Only where it `canPart`. */
  part(): Chunk {
    const given = this.#chunk
    this.#chunk = this.#spare!
    this.#spare = undefined
    return given
  }
}

/** Where bytes are counted that a socket has taken. */
export interface ByteCounter {
  add(cell: number, by: number): void
}

export class Outbox {
  readonly #composer: Composer
  readonly #counter: ByteCounter
  readonly #cell: number
  #held: Chunk[] | null = null
  #socket: ByteSocket | null = null

  constructor(composer: Composer, counter: ByteCounter, cell: number) {
    this.#composer = composer
    this.#counter = counter
    this.#cell = cell
  }

  open(socket: ByteSocket): void {
    this.#socket = socket
  }

  /** Whether bytes wait for the peer; the other side should not be read. */
  get isBlocked(): boolean {
    return this.#held !== null
  }

  /** Writes the first `length` bytes of the composer's chunk. */
  writeComposed(length: number): Written {
    const { chunk } = this.#composer
    // What comes behind bytes that wait will wait too: in a chunk of its own size, not in the composer's.
    if (this.#held !== null) return this.#writeCopy(chunk.offset, length)
    // Without memory to go on with, the connection is the one to give up, before anything of this is on its way.
    if (!this.#composer.canPart) return WRITE.FAILED
    const written = this.#send(chunk.prefix(length))
    if (written === WRITE.PENDING) this.#hold(this.#composer.part())
    return written
  }

  #writeCopy(at: number, length: number): Written {
    const { arena } = this.#composer
    const copy = arena.lend(length)
    if (copy === undefined) return WRITE.FAILED
    arena.bytes.copyWithin(copy.offset, at, at + length)
    return this.writeChunk(copy, length)
  }

  /** Writes bytes that `inbox` read: from its own chunk without a copy, from the shared buffer through one. */
  write(at: number, length: number, inbox: Inbox): Written {
    const { arena, chunk } = this.#composer
    if (inbox.canSurrender) {
      const written = this.#send(arena.bytes.subarray(at, at + length))
      if (written === WRITE.PENDING) this.#hold(inbox.surrender()!)
      return written
    }
    if (length <= chunk.size) {
      arena.bytes.copyWithin(chunk.offset, at, at + length)
      return this.writeComposed(length)
    }
    return this.#writeCopy(at, length)
  }

  /** Writes a chunk that the caller lent; it is given back here. */
  writeChunk(chunk: Chunk, length: number): Written {
    const written = this.#send(chunk.view.subarray(0, length))
    if (written === WRITE.PENDING) this.#hold(chunk)
    else this.#composer.arena.giveBack(chunk)
    return written
  }

  /** Writes chunks that the caller lent, in order; all are given back here. */
  writeChunks(pieces: readonly { readonly chunk: Chunk; readonly length: number }[]): Written {
    let written: Written = WRITE.DONE
    for (const { chunk, length } of pieces) {
      const next: Written = written === WRITE.FAILED ? WRITE.FAILED : this.writeChunk(chunk, length)
      if (written === WRITE.FAILED) this.#composer.arena.giveBack(chunk)
      if (next !== WRITE.DONE) written = next
    }
    return written
  }

  /** Writes text of latin1 bytes. */
  writeText(text: string): Written {
    const { arena, chunk } = this.#composer
    // What stands behind the composer's chunk belongs to others: an answer that a sequence made may be longer.
    if (text.length > chunk.size) return this.#writeLong(text)
    return this.writeComposed(putText(arena.bytes, chunk.offset, text) - chunk.offset)
  }

  #writeLong(text: string): Written {
    const { arena } = this.#composer
    const pieces: { readonly chunk: Chunk; readonly length: number }[] = []
    for (let at = 0; at < text.length; at += CHUNK_MAX) {
      const piece = text.slice(at, at + CHUNK_MAX)
      const chunk = arena.lend(piece.length)
      if (chunk === undefined) {
        for (const lent of pieces) arena.giveBack(lent.chunk)
        return WRITE.FAILED
      }
      putText(arena.bytes, chunk.offset, piece)
      pieces.push({ chunk, length: piece.length })
    }
    return this.writeChunks(pieces)
  }

  /** Everything has left, or the connection is gone: the memory is free. */
  release(): void {
    const held = this.#held
    this.#held = null
    if (held !== null) for (const chunk of held) this.#composer.arena.giveBack(chunk)
  }

  #send(bytes: Uint8Array): Written {
    const written = this.#socket!.write(bytes)
    if (written !== WRITE.FAILED) this.#counter.add(this.#cell, bytes.length)
    return written
  }

  #hold(chunk: Chunk): void {
    this.#held ??= []
    this.#held.push(chunk)
  }
}
