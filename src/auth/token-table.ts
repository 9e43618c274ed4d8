/**
 * Cache of validated tokens. A seeded hash of the token's length and last bytes finds an entry, which is then compared
 * in full with the bytes in the arena. A lookup makes no string and no object. Measured against other ways in
 * bench/README.md, "What a known token costs".
 *
 * With many tokens in turn each of them is out of the caches of the processor, and every object that a lookup reads
 * waits for memory. So whatever decides about a token is in one row of numbers, which has the size of a cache line.
 */
import { randomInt } from 'node:crypto'
import { arena } from '../http1/llhttp.ts'
import { isEqual } from '../http1/constant-time-equal.ts'
import type { Chunk } from '../runtime/arena.ts'
import type { CacheUsage } from '../runtime/cache-usage.ts'
import type { TokenGrant } from './grants.ts'
import type { TokenResult, TokenValidation } from './token-result.ts'
import type { VerificationKey } from './verification-key.ts'

/** APIs for which an entry keeps a grant; beyond them all but the first are dropped and computed again. */
const GRANTS_MAX = 64
/** Bytes at the end of a token that its hash covers: part of a signature, which an attacker cannot choose. */
const TAIL_BYTES = 32

const { bytes } = arena
const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
const SEED = randomInt(2 ** 31)

/** Hash of a token in the arena: 31 bits, so that it is a small integer of V8. */
export function hashOf(at: number, length: number): number {
  let hash = SEED ^ length
  const from = length > TAIL_BYTES ? at + length - TAIL_BYTES : at
  const to = at + length - 3
  for (let i = from; i < to; i += 4) {
    hash = Math.imul(hash ^ view.getInt32(i, true), 0x5bd1e995)
    hash ^= hash >>> 15
  }
  return hash & 0x7fffffff
}

/** A refusal that is cached holds at any time. */
const TIMELESS = { notBeforeMs: 0, expiresMs: 0 }

/** A validated token with its grants, which are dropped as soon as the state that they rest on changes. */
export class TokenEntry {
  readonly result: TokenResult
  /** The key that has verified the token; null where no withdrawn key could end it. */
  readonly key: VerificationKey | null
  readonly length: number
  /** Row of the table; NO_ROW while the entry is in no table. */
  row = NO_ROW
  /** Bytes of the token; null while the entry is in no table. */
  chunk: Chunk | null = null
  /** Grant for the first API of the token; those for further ones are in `#others`, by API. */
  #first: TokenGrant | undefined
  #others: Map<object, TokenGrant> | null = null

  constructor({ result, key }: Pick<TokenValidation, 'result' | 'key'>, length: number) {
    this.result = result
    this.key = key
    this.length = length
  }

  /** An accepted access token that any client may use: without a certificate. */
  get isBearer(): boolean {
    const { result } = this
    return result.kind === 'accepted' && result.apiKey === null && result.confirmation === ''
  }

  /** `api`: the object that stands for the API in its grants. */
  grantFor(api: object): TokenGrant | undefined {
    return this.#first?.api === api ? this.#first : this.#others?.get(api)
  }

  keepGrant(grant: TokenGrant): void {
    if (this.#first === undefined || this.#first.api === grant.api) {
      this.#first = grant
      return
    }
    this.#others ??= new Map()
    if (this.#others.size >= GRANTS_MAX) this.#others.clear()
    this.#others.set(grant.api, grant)
  }

  dropGrants(): void {
    this.#first = undefined
    this.#others = null
  }
}

/** When a cached result holds. */
interface TokenLifetime {
  /** Milliseconds of the monotonic clock: from then on the token is validated again, whatever the wall clock says. */
  readonly cachedUntilMs: number
  /** Accepted difference of wall clocks, in milliseconds. */
  readonly skewMs: number
  /** `AuthState.version` for which the result and its grants hold. */
  readonly version: number
}

const NO_ROW = -1
/** A row has eight numbers of 64 bits or sixteen of 32 bits, one cache line. First those of 64 bits: */
const CACHED_UNTIL = 0
/** Milliseconds since 1970, with the clock skew: the time in which the token is valid, judged at each hit. */
const VALID_FROM = 1
const VALID_UNTIL = 2
/** Numbers of 32 bits stand behind those three. */
const HASH = 6
const LENGTH = 7
/** Where the bytes of the token are in the arena. */
const BYTES_AT = 8
const VERSION = 9
/** 1: the entry was used since the hand has passed it. */
const USED = 10
const LONGS_SHIFT = 3
const INTS_SHIFT = 4
/** A multiple of the golden ratio, which spreads hashes over the index (Knuth, TAOCP 6.4). */
const SPREAD = 0x9e3779b1
const INDEX_BITS_MIN = 6
/** Places of the index hold a row + 1. */
const ROWS_MAX = 0xffff

/** A table with open addressing. Whatever was not used since the hand has passed it leaves first (CLOCK). */
export class TokenTable {
  readonly #longs: Float64Array
  readonly #ints: Int32Array
  /** Row + 1 by hash; 0: none. Rows with the same place follow each other. Small, so that it stays in the caches. */
  #index = new Uint16Array(1 << INDEX_BITS_MIN)
  #indexShift = 32 - INDEX_BITS_MIN
  /** By row. */
  readonly #entries: (TokenEntry | null)[] = []
  /** By row: the grant of a bearer token for the API that was asked for last. */
  readonly #grants: (TokenGrant | null)[] = []
  readonly #freeRows: number[] = []
  readonly #entriesMax: number
  readonly #bytesMax: number
  #bytes = 0
  #hand = 0
  #evictions = 0
  /** Public, so that the reading of `#fetchGrant` has an effect that no compiler leaves out. */
  fetched = 0

  /** `bytesMax`: bytes of the arena. Memory that no token has used is address space alone. */
  constructor(entriesMax: number, bytesMax: number) {
    if (entriesMax > ROWS_MAX) throw new RangeError(`a table has at most ${ROWS_MAX} tokens`)
    this.#entriesMax = entriesMax
    this.#bytesMax = bytesMax
    const rows = new ArrayBuffer(entriesMax << (LONGS_SHIFT + 3))
    this.#longs = new Float64Array(rows)
    this.#ints = new Int32Array(rows)
  }

  get size(): number {
    return this.#entries.length - this.#freeRows.length
  }

  usage(): CacheUsage {
    return { entries: this.size, bytes: this.#bytes, evictions: this.#evictions }
  }

  /** Grant of a bearer token for the API that was asked for last, if that is `api`; null: the entry may have it. */
  grantAt(row: number, api: object): TokenGrant | null {
    const grant = this.#grants[row]!
    return grant !== null && grant.api === api ? grant : null
  }

  /** Replaces the grant in the row of a bearer token; without effect for other tokens, and without a row. */
  putGrant(entry: TokenEntry, grant: TokenGrant): void {
    if (entry.row >= 0 && entry.isBearer) this.#grants[entry.row] = grant
  }

  /** Row of a token whose bytes are in the arena; negative without one. `hash`: as `hashOf` returns it. */
  find(hash: number, at: number, length: number): number {
    const row = this.#index[this.#placeOf(hash)]! - 1
    if (row < 0) return NO_ROW
    const ints = this.#ints
    const from = row << INTS_SHIFT
    this.#fetchGrant(row)
    if (ints[from + LENGTH] !== length || !isEqual(at, ints[from + BYTES_AT]!, length)) return NO_ROW
    return row
  }

  /**
   * Reads the grant of a row before the bytes of the token are compared. With many tokens in turn both are out of the
   * caches of the processor, which then waits for them at the same time: 160 of 800 ns less in the filters.
   */
  #fetchGrant(row: number): void {
    const grant = this.#grants[row]!
    this.fetched = grant === null ? 0 : grant.callerKind
  }

  entryAt(row: number): TokenEntry {
    return this.#entries[row]!
  }

  /** Keeps a row that `find` has returned from leaving next. */
  use(row: number): void {
    this.#ints[(row << INTS_SHIFT) + USED] = 1
  }

  versionAt(row: number): number {
    return this.#ints[(row << INTS_SHIFT) + VERSION]!
  }

  /** Returns whether the lifetime of the cache still allows the result. */
  isKept(row: number, tickMs: number): boolean {
    return tickMs < this.#longs[(row << LONGS_SHIFT) + CACHED_UNTIL]!
  }

  /** Returns whether the token is valid at a time in milliseconds since 1970. */
  hasBegun(row: number, nowMs: number): boolean {
    return nowMs >= this.#longs[(row << LONGS_SHIFT) + VALID_FROM]!
  }

  hasEnded(row: number, nowMs: number): boolean {
    return nowMs >= this.#longs[(row << LONGS_SHIFT) + VALID_UNTIL]!
  }

  /** The result holds for the new version of the state; the grants may not, and are dropped. */
  moveTo(row: number, version: number): void {
    this.#ints[(row << INTS_SHIFT) + VERSION] = version
    this.#entries[row]!.dropGrants()
    this.#grants[row] = null
  }

  has(token: string): boolean {
    const chunk = arena.acquire(token.length)
    if (chunk === undefined) return false
    bytes.latin1Write(token, chunk.offset)
    const isKnown = this.find(hashOf(chunk.offset, token.length), chunk.offset, token.length) >= 0
    zeroAndRelease(chunk, token.length)
    return isKnown
  }

  /** Replaces an entry with the same hash: of many tokens with the same end each would lengthen the search. */
  add(token: string, entry: TokenEntry, { cachedUntilMs, skewMs, version }: TokenLifetime): void {
    const chunk = arena.acquire(entry.length)
    // With the arena used up the token is not cached: each request costs a validation.
    if (chunk === undefined) return
    bytes.latin1Write(token, chunk.offset)
    const hash = hashOf(chunk.offset, entry.length)
    const same = this.#index[this.#placeOf(hash)]!
    if (same !== 0) this.remove(this.#entries[same - 1]!)
    this.#bytes += chunk.size
    while (this.#bytes > this.#bytesMax && this.#evict()) {}
    if (this.#freeRows.length === 0 && this.#entries.length >= this.#entriesMax) this.#evict()
    const row = this.#freeRows.pop() ?? this.#entries.length
    const { notBeforeMs, expiresMs } = entry.result.kind === 'accepted' ? entry.result : TIMELESS
    const [longs, ints] = [row << LONGS_SHIFT, row << INTS_SHIFT]
    this.#longs[longs + CACHED_UNTIL] = cachedUntilMs
    this.#longs[longs + VALID_FROM] = notBeforeMs === 0 ? 0 : notBeforeMs - skewMs
    this.#longs[longs + VALID_UNTIL] = expiresMs === 0 ? Number.POSITIVE_INFINITY : expiresMs + skewMs
    this.#ints[ints + HASH] = hash
    this.#ints[ints + LENGTH] = entry.length
    this.#ints[ints + BYTES_AT] = chunk.offset
    this.#ints[ints + VERSION] = version
    this.#ints[ints + USED] = 0
    this.#entries[row] = entry
    this.#grants[row] = null
    entry.row = row
    entry.chunk = chunk
    if ((this.#entries.length - this.#freeRows.length) * 2 > this.#index.length) this.#growIndex()
    this.#index[this.#placeOf(hash)] = row + 1
  }

  /** Doubles the index: at most half of it is filled. */
  #growIndex(): void {
    const rows = this.#index.filter(row => row !== 0)
    this.#index = new Uint16Array(this.#index.length * 2)
    this.#indexShift--
    for (const row of rows) this.#index[this.#placeOf(this.#ints[((row - 1) << INTS_SHIFT) + HASH]!)] = row
  }

  remove(entry: TokenEntry): void {
    const { row, chunk } = entry
    if (chunk === null) return
    this.#clearPlace(this.#placeOf(this.#ints[(row << INTS_SHIFT) + HASH]!))
    this.#entries[row] = null
    this.#grants[row] = null
    this.#freeRows.push(row)
    this.#bytes -= chunk.size
    entry.row = NO_ROW
    entry.chunk = null
    zeroAndRelease(chunk, entry.length)
  }

  clear(): void {
    for (const entry of this.#entries) if (entry !== null) this.remove(entry)
  }

  /** Place of the row with the hash; without one, the empty place for it. */
  #placeOf(hash: number): number {
    const index = this.#index
    const mask = index.length - 1
    let place = this.#firstPlace(hash)
    for (let row = index[place]! - 1; row >= 0; row = index[place]! - 1) {
      if (this.#ints[(row << INTS_SHIFT) + HASH] === hash) return place
      place = (place + 1) & mask
    }
    return place
  }

  #firstPlace(hash: number): number {
    return Math.imul(hash, SPREAD) >>> this.#indexShift
  }

  /** Empties a place, and moves up the rows behind it that it would hide (Knuth, TAOCP 6.4, algorithm R). */
  #clearPlace(place: number): void {
    const index = this.#index
    const mask = index.length - 1
    let empty = place
    for (let next = (place + 1) & mask; index[next] !== 0; next = (next + 1) & mask) {
      const first = this.#firstPlace(this.#ints[((index[next]! - 1) << INTS_SHIFT) + HASH]!)
      if (((next - first) & mask) < ((next - empty) & mask)) continue
      index[empty] = index[next]!
      empty = next
    }
    index[empty] = 0
  }

  /** False where there is nothing to evict. */
  #evict(): boolean {
    const rows = this.#entries.length
    if (rows === this.#freeRows.length) return false
    for (;;) {
      const row = this.#hand
      this.#hand = row + 1 >= rows ? 0 : row + 1
      const entry = this.#entries[row]!
      if (entry === null) continue
      const used = (row << INTS_SHIFT) + USED
      if (this.#ints[used] === 0) {
        this.remove(entry)
        this.#evictions++
        return true
      }
      this.#ints[used] = 0
    }
  }
}

/** Zeroes the bytes, because they are a credential and the chunk goes to another connection next. */
function zeroAndRelease(chunk: Chunk, length: number): void {
  bytes.fill(0, chunk.offset, chunk.offset + length)
  arena.release(chunk)
}
