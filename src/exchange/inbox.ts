/**
 * Where the bytes that a connection reads stand in the arena. Most of the time they stand in the one read buffer that
 * all connections of a thread share, because they are used up before anybody else reads. What must outlive a read (a
 * partial head, pipelined bytes, a trailer section) moves to a chunk of the connection's own, `io_buffer_size` at most;
 * a connection in the midst of a long body borrows a larger one, so that no body byte is copied.
 */
import { type Arena, type Chunk, MARGIN } from '../structure/arena.ts'

/** Bytes of a bulk chunk and of the shared read buffer. */
const BULK_BYTES = 65_536
/** Bulk chunks lent at the same time by one thread; later comers make do with `io_buffer_size`. */
const BULK_CHUNKS_MAX = 256

/** The read memory of a thread. */
export class ReadMemory {
  readonly arena: Arena
  readonly shared: Chunk
  /** Bytes of a connection's own chunk: `io_buffer_size`. */
  readonly ownBytes: number
  readonly #bulk = new Set<Chunk>()

  constructor(arena: Arena, ownBytes: number) {
    const shared = arena.lend(BULK_BYTES)
    if (shared === undefined) throw new Error('the arena is too small for one read buffer')
    this.arena = arena
    this.shared = shared
    this.ownBytes = ownBytes
  }

  lendOwn(): Chunk | undefined {
    return this.arena.lend(this.ownBytes)
  }

  lendBulk(): Chunk | undefined {
    if (this.#bulk.size >= BULK_CHUNKS_MAX) return this.arena.lend(this.ownBytes)
    const chunk = this.arena.lend(BULK_BYTES)
    if (chunk !== undefined) this.#bulk.add(chunk)
    return chunk
  }

  giveBack(chunk: Chunk): void {
    this.forget(chunk)
    this.arena.giveBack(chunk)
  }

  /** Somebody else gives the chunk back. */
  forget(chunk: Chunk): void {
    this.#bulk.delete(chunk)
  }
}

export class Inbox {
  /** First byte that is still needed. */
  from: number
  /** Just past the last byte read; where the next read lands. */
  to: number
  readonly #memory: ReadMemory
  /** The connection's own chunk, or null while it reads into the shared buffer. */
  #own: Chunk | null = null
  /** Where the view that the socket was given last starts. */
  #viewAt: number
  /** Whether `settle` has answered the last read; only then may anything but the socket change the view. */
  #isSettled = true

  constructor(memory: ReadMemory) {
    this.#memory = memory
    this.from = memory.shared.offset
    this.to = this.from
    this.#viewAt = this.from
  }

  get firstView(): Uint8Array {
    return this.#memory.shared.view
  }

  /** `length` bytes were read. Until `settle`, the connection may use them up and `surrender` their chunk. */
  begin(length: number): void {
    this.to += length
    this.#isSettled = false
  }

  /**
   * Gives away the chunk in which the bytes stand, because a write of some of them waits; null when they stand in the
   * shared buffer, or when the socket would still read into the chunk: then the writer must copy. What is still needed
   * is moved by `settle`.
   */
  surrender(): Chunk | null {
    if (this.#isSettled) return null
    const own = this.#own
    this.#own = null
    if (own !== null) this.#memory.forget(own)
    return own
  }

  get canSurrender(): boolean {
    return !this.#isSettled && this.#own !== null
  }

  /** Bytes read and still needed. */
  get length(): number {
    return this.to - this.from
  }

  /** How much it may read before it must use up or drop something; `settle` makes room of what was freed. */
  get room(): number {
    return (this.#own?.size ?? this.#memory.ownBytes) - this.length
  }

  /** By how much `settle` moved the bytes, or the end of those used up, the last time. */
  moved = 0

  /**
   * After a read was dealt with: moves what is still needed to where it may stay, and answers the view for the next
   * read; undefined keeps the one in force. Answers null when there is no memory for it: the connection must be given
   * up. `bulk`: a long body is under way.
   */
  settle(bulk: boolean): Uint8Array | undefined | null {
    this.moved = 0
    this.#isSettled = true
    if (this.from < this.to) return this.#keep()
    const own = this.#own
    if (bulk) {
      if (own === null || own.size < BULK_BYTES) this.#adopt(this.#memory.lendBulk() ?? null)
    } else if (own !== null) this.#adopt(null)
    const chunk = this.#own ?? this.#memory.shared
    this.moved = chunk.offset - this.to
    this.from = chunk.offset
    this.to = chunk.offset
    return this.#show(chunk.offset, chunk.view)
  }

  /** The connection is gone: its memory is free. */
  dispose(): void {
    this.#adopt(null)
    this.from = this.#memory.shared.offset
    this.to = this.from
  }

  #keep(): Uint8Array | undefined | null {
    const { bytes } = this.#memory.arena
    const length = this.to - this.from
    let own = this.#own
    if (own === null) {
      own = this.#memory.lendOwn() ?? null
      // One read of the shared buffer can be longer than a chunk of one's own (pipelined requests). It is here, so it
      // must be kept, whatever others have borrowed.
      if (own !== null && length >= own.size) {
        this.#memory.giveBack(own)
        own = this.#memory.arena.lend(length) ?? null
      }
      if (own === null) return null
      this.#move(bytes, own.offset)
      this.#own = own
    } else if (this.from > own.offset) this.#move(bytes, own.offset)
    // A full chunk still has its margin: the next read, once something was used up, lands there and is moved.
    const room = own.offset + own.size - this.to || MARGIN / 2
    return this.#show(this.to, bytes.subarray(this.to, this.to + room))
  }

  #move(bytes: Buffer, to: number): void {
    bytes.copyWithin(to, this.from, this.to)
    this.moved = to - this.from
    this.to += this.moved
    this.from = to
  }

  #adopt(chunk: Chunk | null): void {
    if (this.#own !== null) this.#memory.giveBack(this.#own)
    this.#own = chunk
  }

  #show(at: number, view: Uint8Array): Uint8Array | undefined {
    if (at === this.#viewAt) return undefined
    this.#viewAt = at
    return view
  }
}
