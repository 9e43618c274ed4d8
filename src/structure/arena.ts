/**
 * Chunks of one big ArrayBuffer, lent and given back. Owns who holds which bytes; knows nothing of what they mean.
 * Chunks come in power-of-two classes and are lent last-in first-out, so that a quiet process keeps touching the same
 * few pages. Nothing is ever zeroed: a holder reads only what it wrote. A chunk given back twice throws.
 */

/** A lent piece of the arena. `offset` and `size` are in bytes. */
export class Chunk {
  readonly offset: number
  readonly size: number
  readonly view: Uint8Array
  /** Views of the first n bytes, made once each: a socket write needs an object, and 54 ns are 54 ns. */
  readonly #prefixes: (Uint8Array | undefined)[] = []
  /** Kept by the arena alone: whether somebody holds this chunk. */
  lent = false

  constructor(buffer: ArrayBufferLike, offset: number, size: number) {
    this.offset = offset
    this.size = size
    this.view = new Uint8Array(buffer, offset, size)
  }

  prefix(length: number): Uint8Array {
    if (length > PREFIXES_MAX) return this.view.subarray(0, length)
    let prefix = this.#prefixes[length]
    if (prefix === undefined) {
      prefix = this.view.subarray(0, length)
      this.#prefixes[length] = prefix
    }
    return prefix
  }
}

/**
 * Address space of a thread's arena, in bytes. Reserved at once, because memory that grows detaches every view of it;
 * pages that are never touched cost nothing. When it is used up, connections are refused, not served badly.
 */
export const ARENA_BYTES = 512 * 1024 * 1024

/** Bytes in front of every chunk and behind it that its holder may use as well, to put something around the content. */
export const MARGIN = 32

const SMALLEST_SHIFT = 11
const LARGEST_SHIFT = 17
/** Longest prefix whose view is kept; only the few output chunks of a thread ever use them. */
const PREFIXES_MAX = 4096

/** The largest piece an arena lends, in bytes. */
export const CHUNK_MAX = 1 << LARGEST_SHIFT

export class Arena {
  readonly bytes: Buffer
  readonly #free: Chunk[][] = []
  readonly #end: number
  #next: number
  /** Chunks that somebody holds: a thread at rest holds the few it began with. */
  lentChunks = 0

  /** Lends from `start` up to `end` of the buffer. */
  constructor(buffer: ArrayBufferLike, start: number, end: number) {
    this.bytes = Buffer.from(buffer as ArrayBuffer)
    this.#next = (start + 63) & ~63
    this.#end = end
    for (let shift = 0; shift <= LARGEST_SHIFT; shift++) this.#free.push([])
  }

  /** A chunk of at least `size` bytes, or undefined when the arena is exhausted: the caller must refuse work then. */
  lend(size: number): Chunk | undefined {
    const shift = size <= 1 << SMALLEST_SHIFT ? SMALLEST_SHIFT : 32 - Math.clz32(size - 1)
    if (shift > LARGEST_SHIFT) throw new RangeError(`a chunk of ${size} bytes is larger than ${CHUNK_MAX}`)
    const chunk = this.#free[shift]!.pop() ?? this.#cut(1 << shift)
    if (chunk === undefined) return undefined
    chunk.lent = true
    this.lentChunks++
    return chunk
  }

  giveBack(chunk: Chunk): void {
    if (!chunk.lent) throw new Error(`chunk at ${chunk.offset} was given back twice`)
    chunk.lent = false
    this.lentChunks--
    this.#free[31 - Math.clz32(chunk.size)]!.push(chunk)
  }

  /** `size` bytes for good, eight-byte aligned, or -1 when the arena is exhausted. */
  carve(size: number): number {
    const offset = this.#next
    if (offset + size > this.#end) return -1
    this.#next = (offset + size + 7) & ~7
    return offset
  }

  /** Bytes not cut yet. */
  get uncut(): number {
    return this.#end - this.#next
  }

  #cut(size: number): Chunk | undefined {
    const offset = this.carve(size + 2 * MARGIN)
    return offset < 0 ? undefined : new Chunk(this.bytes.buffer, offset + MARGIN, size)
  }
}
