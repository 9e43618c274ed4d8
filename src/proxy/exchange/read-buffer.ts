/**
 * Read buffer of a connection in the arena. Most reads use the one buffer that all connections of a thread share,
 * because their bytes are used up before another connection reads. Bytes that must outlive a read (a partial head,
 * pipelined bytes, a trailer section) move to a chunk of the connection's own of `io_buffer_size`. A long body is read
 * into a larger chunk, so that no body byte is copied.
 */
import { arena } from '../../http1/llhttp.ts'
import { type Chunk, MARGIN } from '../../runtime/arena.ts'

/** Bytes of a bulk chunk and of the shared read buffer. */
const BULK_BYTES = 65_536
/** Most bulk chunks of a thread at a time; further connections get `io_buffer_size`. */
const BULK_CHUNKS_MAX = 256

/** Read memory of a thread, for the connections of one transport. */
export class ReadMemory {
  readonly shared: Chunk
  /** Bytes of a connection's own chunk: `io_buffer_size`. */
  readonly ownBytes: number
  readonly #bulk: Set<Chunk>

  /** `other`: read memory of the same thread, which shares its buffers. Throws when the arena is exhausted. */
  constructor(ownBytes: number, other?: ReadMemory) {
    const shared = other?.shared ?? arena.acquire(BULK_BYTES)
    if (shared === undefined) throw new Error('the arena is too small for one read buffer')
    this.shared = shared
    this.ownBytes = ownBytes
    this.#bulk = other === undefined ? new Set() : other.#bulk
  }

  acquireOwn(): Chunk | undefined {
    return arena.acquire(this.ownBytes)
  }

  acquireBulk(): Chunk | undefined {
    if (this.#bulk.size >= BULK_CHUNKS_MAX) return arena.acquire(this.ownBytes)
    const chunk = arena.acquire(BULK_BYTES)
    if (chunk !== undefined) this.#bulk.add(chunk)
    return chunk
  }

  release(chunk: Chunk): void {
    this.forget(chunk)
    arena.release(chunk)
  }

  /** Another owner releases the chunk. */
  forget(chunk: Chunk): void {
    this.#bulk.delete(chunk)
  }
}

export class ReadBuffer {
  /** First byte in use. */
  from: number
  /** Position behind the last byte read, where the next read lands. */
  to: number
  readonly #memory: ReadMemory
  /** The connection's own chunk; null while it reads into the shared buffer. */
  #own: Chunk | null = null
  /** Start of the view that the socket has. */
  #viewAt: number
  /** `settle` has followed the last read: the socket may read into the view. */
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

  /** `length` bytes were read. Until `settle`, the connection may use them and `surrender` their chunk. */
  begin(length: number): void {
    this.to += length
    this.#isSettled = false
  }

  /**
   * Gives the chunk of the bytes to a write that waits. Null when they are in the shared buffer, or when the socket
   * would still read into the chunk: then the writer must copy. `settle` moves the bytes that are still in use.
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

  /** Bytes read and still in use. */
  get length(): number {
    return this.to - this.from
  }

  /** Bytes that it can read before it must use up or drop some; `settle` reclaims freed bytes. */
  get room(): number {
    return (this.#own?.size ?? this.#memory.ownBytes) - this.length
  }

  /** Distance by which the last `settle` moved the bytes. */
  moved = 0

  /**
   * Ends a read: moves bytes that are still in use to memory where they may stay. Returns the view for the next read;
   * undefined keeps the current one. Null: no memory is left, so the connection must be closed. `bulk`: a long body is
   * under way.
   */
  settle(bulk: boolean): Uint8Array | undefined | null {
    this.moved = 0
    this.#isSettled = true
    if (this.from < this.to) return this.#keep()
    const own = this.#own
    if (bulk) {
      if (own === null || own.size < BULK_BYTES) this.#adopt(this.#memory.acquireBulk() ?? null)
    } else if (own !== null) this.#adopt(null)
    const chunk = this.#own ?? this.#memory.shared
    this.moved = chunk.offset - this.to
    this.from = chunk.offset
    this.to = chunk.offset
    return this.#show(chunk.offset, chunk.view)
  }

  /** Releases the memory of a closed connection. */
  dispose(): void {
    this.#adopt(null)
    this.from = this.#memory.shared.offset
    this.to = this.from
  }

  #keep(): Uint8Array | undefined | null {
    const { bytes } = arena
    const length = this.to - this.from
    let own = this.#own
    if (own === null) {
      own = this.#memory.acquireOwn() ?? null
      // One read of the shared buffer can be longer than an own chunk (pipelined requests). The bytes were read, so
      // they are kept whatever other connections hold.
      if (own !== null && length >= own.size) {
        this.#memory.release(own)
        own = arena.acquire(length) ?? null
      }
      if (own === null) return null
      this.#move(bytes, own.offset)
      this.#own = own
    } else if (this.from > own.offset) this.#move(bytes, own.offset)
    // A full chunk still has its margin: the next read lands there and is moved once bytes were used.
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
    if (this.#own !== null) this.#memory.release(this.#own)
    this.#own = chunk
  }

  #show(at: number, view: Uint8Array): Uint8Array | undefined {
    if (at === this.#viewAt) return undefined
    this.#viewAt = at
    return view
  }
}
