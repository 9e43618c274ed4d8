/**
 * Arena: allocates chunks from one large ArrayBuffer. Chunks have power-of-two sizes and are reused last-in first-out,
 * so that an idle process touches few pages. Memory is never zeroed: an owner reads only what it wrote. Releasing a
 * chunk twice throws.
 */

/** A piece of the arena. `offset` and `size` are in bytes. */
export class Chunk {
  readonly offset: number
  readonly size: number
  readonly view: Uint8Array
  /** Views of the first n bytes, created once each: a socket write needs an object, and a new one costs 54 ns. */
  readonly #prefixes: (Uint8Array | undefined)[] = []
  /** Set by the arena only. */
  isAcquired = false

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
 * Address space of a thread's arena, in bytes. Reserved at once, because growing memory detaches every view of it;
 * untouched pages cost nothing. When the arena is exhausted, the reactor refuses connections.
 */
export const ARENA_BYTES = 512 * 1024 * 1024

/** Bytes before and after every chunk that its owner may write too, for framing around the content. */
export const MARGIN = 32

const SMALLEST_SHIFT = 11
const LARGEST_SHIFT = 17
/** Longest prefix whose view is kept. Only the few output chunks of a thread use prefixes. */
const PREFIXES_MAX = 4096

/** Largest chunk, in bytes. */
export const CHUNK_MAX = 1 << LARGEST_SHIFT

/** Size of the chunk that holds `size` bytes. */
export function chunkSize(size: number): number {
  return 1 << shiftFor(size)
}

function shiftFor(size: number): number {
  return size <= 1 << SMALLEST_SHIFT ? SMALLEST_SHIFT : 32 - Math.clz32(size - 1)
}

export class Arena {
  readonly bytes: Buffer
  readonly #free: Chunk[][] = []
  readonly #end: number
  #next: number
  /** Chunks that are in use. */
  acquiredChunks = 0

  /** Allocates from `start` up to `end` of the buffer. */
  constructor(buffer: ArrayBufferLike, start: number, end: number) {
    this.bytes = Buffer.from(buffer as ArrayBuffer)
    this.#next = (start + 63) & ~63
    this.#end = end
    for (let shift = 0; shift <= LARGEST_SHIFT; shift++) this.#free.push([])
  }

  /** Returns a chunk of at least `size` bytes; undefined when the arena is exhausted: the caller then refuses work. */
  acquire(size: number): Chunk | undefined {
    const shift = shiftFor(size)
    if (shift > LARGEST_SHIFT) throw new RangeError(`a chunk of ${size} bytes is larger than ${CHUNK_MAX}`)
    const chunk = this.#free[shift]!.pop() ?? this.#newChunk(1 << shift)
    if (chunk === undefined) return undefined
    chunk.isAcquired = true
    this.acquiredChunks++
    return chunk
  }

  release(chunk: Chunk): void {
    if (!chunk.isAcquired) throw new Error(`chunk at ${chunk.offset} was released twice`)
    chunk.isAcquired = false
    this.acquiredChunks--
    this.#free[31 - Math.clz32(chunk.size)]!.push(chunk)
  }

  /** Reserves `size` bytes for good and returns their offset, eight-byte aligned; -1 when the arena is exhausted. */
  reserve(size: number): number {
    const offset = this.#next
    if (offset + size > this.#end) return -1
    this.#next = (offset + size + 7) & ~7
    return offset
  }

  /** Bytes that no chunk and no reservation has used yet. */
  get unreservedBytes(): number {
    return this.#end - this.#next
  }

  #newChunk(size: number): Chunk | undefined {
    const offset = this.reserve(size + 2 * MARGIN)
    return offset < 0 ? undefined : new Chunk(this.bytes.buffer, offset + MARGIN, size)
  }
}
