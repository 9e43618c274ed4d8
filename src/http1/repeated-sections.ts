/**
 * Cache of head sections that peers repeat: the fields of requests, and whole heads of responses. On a connection that
 * persists, most requests differ in the request line alone, and many responses in nothing. A section that was parsed,
 * checked and classified is kept for all connections; the same bytes again need a comparison, not a parser (D180).
 */
import { LRUCache } from 'lru-cache'
import type { CacheUsage } from '../runtime/cache-usage.ts'
import { isEqual } from './constant-time-equal.ts'
import { Head } from './head.ts'
import { arena } from './llhttp.ts'

/** A longer section is not kept. */
const SECTION_BYTES_MAX = 2048
const SECTIONS_MAX = 256
const GONE = 0
/** Most heads of a connection, or connections of a peer, between two attempts to keep a section. */
export const PAUSE_MAX = 256

/** `Decoded`: what the section alone decides. */
export class RepeatedSection<Decoded> {
  /** The head at the place of its last use. */
  readonly head: Head
  readonly length: number
  /** Bytes of the body behind a response head; 0 for the fields of a request, which announce none. */
  readonly bodyBytes: number
  readonly decoded: Decoded
  /** Where the section of `head` begins. */
  #at: number
  /** Kinds as they were classified; filters change those of the head. */
  readonly #kinds: Uint8Array
  /** Where the bytes of the section are kept; GONE after `drop`. */
  #keptAt: number

  constructor(head: Head, at: number, bodyBytes: number, keptAt: number, decoded: Decoded) {
    this.head = new Head(head.count)
    this.head.copy(head)
    this.length = head.end - at
    this.bodyBytes = bodyBytes
    this.decoded = decoded
    this.#at = at
    this.#kinds = this.head.kinds.slice()
    this.#keptAt = keptAt
    arena.bytes.copyWithin(keptAt, at, head.end)
  }

  /** True if the section is kept, and the bytes at `at` are the same. */
  isAt(at: number): boolean {
    return this.#keptAt !== GONE && isEqual(at, this.#keptAt, this.length)
  }

  /** Moves the head to a message whose section begins at `at`, and undoes what filters have changed. */
  moveTo(at: number): void {
    const { head } = this
    if (at !== this.#at) head.moveBy(at - this.#at)
    this.#at = at
    const { kinds, count } = head
    for (let field = 0; field < count; field++) kinds[field] = this.#kinds[field]!
  }

  /** Drops the section for all connections. Zeroes its bytes, which may hold credentials; returns where they were. */
  drop(): number {
    const keptAt = this.#keptAt
    this.#keptAt = GONE
    arena.bytes.fill(0, keptAt, keptAt + this.length)
    return keptAt
  }
}

/**
 * The section that the next connection of a peer is expected to begin with: the one that was kept last. Clients that
 * open a connection for each request repeat their fields as well. One per client address on a listener, and per
 * backend.
 */
export class ExpectedSection<Decoded> {
  #section: RepeatedSection<Decoded> | null = null
  /** First heads until the next attempt to keep one, and from then on. */
  #pause = 2
  #nextPause = 1

  get section(): RepeatedSection<Decoded> | null {
    return this.#section
  }

  /** A connection has begun with the section. */
  recognised(): void {
    this.#nextPause = 1
  }

  /** A connection has begun with another section. Returns whether that is to be kept. */
  missed(): boolean {
    return --this.#pause <= 0
  }

  kept(section: RepeatedSection<Decoded> | null): void {
    this.#section = section
    this.#pause = this.#nextPause
    this.#nextPause = Math.min(this.#nextPause * 2, PAUSE_MAX)
  }
}

/** The kept sections of a transport, in one direction. Their memory is reserved as they come, and used again. */
export class RepeatedSections<Decoded> {
  readonly #free: number[] = []
  #reserved = 0
  #evictions = 0
  readonly #sections = new LRUCache<string, RepeatedSection<Decoded>>({
    max: SECTIONS_MAX,
    dispose: (section, _text, reason) => {
      if (reason === 'evict') this.#evictions++
      this.#free.push(section.drop())
    },
  })

  /** Bytes: memory that is reserved, for kept sections and for those to come. */
  usage(): CacheUsage {
    const bytes = this.#reserved * SECTION_BYTES_MAX
    return { entries: this.#sections.size, bytes, evictions: this.#evictions }
  }

  /** Keeps the section from `at` to the end of a head; null if it is too long, or without memory. */
  keep(head: Head, at: number, bodyBytes: number, decoded: Decoded): RepeatedSection<Decoded> | null {
    const length = head.end - at
    if (length > SECTION_BYTES_MAX) return null
    const text = arena.bytes.latin1Slice(at, head.end)
    const known = this.#sections.get(text)
    if (known !== undefined) return known
    const keptAt = this.#free.pop() ?? this.#reserve()
    if (keptAt < 0) return null
    const section = new RepeatedSection(head, at, bodyBytes, keptAt, decoded)
    this.#sections.set(text, section)
    return section
  }

  /** Memory for another section; -1 without any. */
  #reserve(): number {
    // The cache drops the oldest section only after it has taken the new one.
    if (this.#reserved > SECTIONS_MAX) return -1
    const at = arena.reserve(SECTION_BYTES_MAX)
    if (at >= 0) this.#reserved++
    return at
  }

  /** Forgets all sections: fields are classified in another way from now on. */
  clear(): void {
    this.#sections.clear()
  }
}
