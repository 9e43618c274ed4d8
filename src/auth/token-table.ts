/**
 * Cache of validated tokens. An entry is found by a seeded hash of the token's length and last bytes and then compared
 * in full with the bytes in the arena: a lookup makes no string and no object. Measured against other ways in
 * bench/README.md, "What a known token costs".
 */
import { randomInt } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { arena } from '../http1/llhttp.ts'
import { isEqual } from '../http1/constant-time-equal.ts'
import type { Chunk } from '../runtime/arena.ts'
import type { Denial, Grant } from './grants.ts'
import type { TokenResult, TokenValidation } from './token-result.ts'
import type { VerificationKey } from './verification-key.ts'

/** APIs for which an entry keeps a grant; beyond them all but the first are dropped and computed again. */
const GRANTS_MAX = 64
/** Shared options object: without one the cache allocates an object for each lookup. */
const NO_OPTIONS: LRUCache.GetOptions<number, never, unknown> = {}
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
  /** Milliseconds of the monotonic clock: from then on the token is validated again, whatever the wall clock says. */
  readonly cachedUntilMs: number
  /** Milliseconds since 1970, with the clock skew: the time in which the token is valid, judged at each hit. */
  readonly validFromMs: number
  readonly validUntilMs: number
  /** `AuthState.version` for which the entry holds. */
  version: number
  readonly length: number
  /** Bytes of the token; null while the entry is in no table. */
  chunk: Chunk | null = null
  hash = 0
  /** First API of the token, with its grant; further ones are in `#others`. */
  #api: object | null = null
  #grant: Grant | Denial | undefined
  #others: Map<object, Grant | Denial> | null = null

  /** `skewMs`: accepted difference of clocks. */
  constructor(
    { result, key }: Pick<TokenValidation, 'result' | 'key'>,
    skewMs: number,
    cachedUntilMs: number,
    version: number,
    length: number,
  ) {
    const { notBeforeMs, expiresMs } = result.kind === 'accepted' ? result : TIMELESS
    this.result = result
    this.key = key
    this.cachedUntilMs = cachedUntilMs
    this.validFromMs = notBeforeMs === 0 ? 0 : notBeforeMs - skewMs
    this.validUntilMs = expiresMs === 0 ? Number.POSITIVE_INFINITY : expiresMs + skewMs
    this.version = version
    this.length = length
  }

  /** `api`: any object that stands for the API. */
  grantFor(api: object): Grant | Denial | undefined {
    return this.#api === api ? this.#grant : this.#others?.get(api)
  }

  keepGrant(api: object, grant: Grant | Denial): void {
    if (this.#api === null || this.#api === api) {
      this.#api = api
      this.#grant = grant
      return
    }
    this.#others ??= new Map()
    if (this.#others.size >= GRANTS_MAX) this.#others.clear()
    this.#others.set(api, grant)
  }

  /** The result holds for the new version of the state; the grants may not, and are dropped. */
  moveTo(version: number): void {
    this.version = version
    this.#api = null
    this.#grant = undefined
    this.#others = null
  }
}

export class TokenTable {
  readonly #cache: LRUCache<number, TokenEntry>
  readonly #entriesMax: number

  /** `bytesMax`: bytes of the arena. */
  constructor(entriesMax: number, bytesMax: number) {
    this.#entriesMax = entriesMax
    // With `max` the cache would allocate everything at once.
    this.#cache = new LRUCache({
      maxSize: bytesMax,
      sizeCalculation: ({ chunk }) => chunk!.size,
      dispose: discard,
    })
  }

  /** Looks up a token whose bytes are in the arena. `hash`: as `hashOf` returns it. */
  find(hash: number, at: number, length: number): TokenEntry | null {
    const entry = this.#cache.get(hash, NO_OPTIONS)
    if (entry === undefined || entry.length !== length) return null
    return isEqual(at, entry.chunk!.offset, length) ? entry : null
  }

  has(token: string): boolean {
    const chunk = arena.acquire(token.length)
    if (chunk === undefined) return false
    bytes.latin1Write(token, chunk.offset)
    const isKnown = this.find(hashOf(chunk.offset, token.length), chunk.offset, token.length) !== null
    zeroAndRelease(chunk, token.length)
    return isKnown
  }

  /** Replaces an entry with the same hash. */
  add(token: string, entry: TokenEntry): void {
    const chunk = arena.acquire(entry.length)
    // With the arena used up the token is not cached: each request costs a validation.
    if (chunk === undefined) return
    bytes.latin1Write(token, chunk.offset)
    entry.chunk = chunk
    entry.hash = hashOf(chunk.offset, entry.length)
    if (this.#cache.size >= this.#entriesMax && !this.#cache.has(entry.hash)) this.#cache.pop()
    this.#cache.set(entry.hash, entry)
    // The cache does not take an entry that is larger than its limit.
    if (this.#cache.peek(entry.hash) !== entry) discard(entry)
  }

  remove(entry: TokenEntry): void {
    if (entry.chunk !== null) this.#cache.delete(entry.hash)
  }

  clear(): void {
    this.#cache.clear()
  }
}

function discard(entry: TokenEntry): void {
  const { chunk } = entry
  if (chunk === null) return
  entry.chunk = null
  zeroAndRelease(chunk, entry.length)
}

/** Zeroes the bytes, because they are a credential and the chunk goes to another connection next. */
function zeroAndRelease(chunk: Chunk, length: number): void {
  bytes.fill(0, chunk.offset, chunk.offset + length)
  arena.release(chunk)
}
