/**
 * Tokens that were seen, and what became of them. Found by a seeded hash of length and end, then compared in full with
 * the bytes that are kept in the arena: finding makes no string and no object. Measured against other ways in
 * bench/README.md, "What a warm token costs".
 */
import { randomInt } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { arena } from '../http1/llhttp.ts'
import { isSame } from '../http1/same-bytes.ts'
import type { Chunk } from '../structure/arena.ts'
import type { TokenEntry, TokenVerdict } from './token-verdict.ts'
import type { VerificationKey } from './verification-key.ts'

/** APIs that one token is kept ready for: beyond them it is found out anew. */
const GRANTS_MAX = 64
/** The cache makes an object for each look where it is given none, and writes to the one that it is given. */
const AS_EVER: LRUCache.GetOptions<number, never, unknown> = {}
/** Bytes at the end of a token that its hash is made of: of a signature, which nobody can choose. */
const TAIL_BYTES = 32

const { bytes } = arena
const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
const SEED = randomInt(2 ** 31)

/** Of 31 bits, so that it is a small integer. */
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

export class KnownToken<G> implements TokenEntry<G> {
  readonly verdict: TokenVerdict
  /** What has proved it; null where nothing could be withdrawn. */
  readonly key: VerificationKey | null
  /** Milliseconds since 1970: from then on it is to be found out anew. */
  readonly untilMs: number
  /** As of which it holds. */
  epoch: number
  readonly length: number
  /** Null: not kept. */
  chunk: Chunk | null = null
  hash = 0
  #api: object | null = null
  #grant: G | undefined
  /** Of all APIs but the first. */
  #grants: Map<object, G> | null = null

  constructor(verdict: TokenVerdict, key: VerificationKey | null, untilMs: number, epoch: number, length: number) {
    this.verdict = verdict
    this.key = key
    this.untilMs = untilMs
    this.epoch = epoch
    this.length = length
  }

  grantFor(api: object): G | undefined {
    return this.#api === api ? this.#grant : this.#grants?.get(api)
  }

  keepGrant(api: object, grant: G): void {
    if (this.#api === null || this.#api === api) {
      this.#api = api
      this.#grant = grant
      return
    }
    this.#grants ??= new Map()
    if (this.#grants.size >= GRANTS_MAX) this.#grants.clear()
    this.#grants.set(api, grant)
  }

  /** It still holds, though something has changed since: what was made of it may not. */
  holdsAt(epoch: number): void {
    this.epoch = epoch
    this.#api = null
    this.#grant = undefined
    this.#grants = null
  }
}

export class TokenTable<G> {
  readonly #cache: LRUCache<number, KnownToken<G>>

  /** `bytesMax`: of the arena. */
  constructor(entriesMax: number, bytesMax: number) {
    this.#cache = new LRUCache({
      max: entriesMax,
      maxSize: bytesMax,
      sizeCalculation: ({ chunk }) => chunk!.size,
      dispose: forget,
    })
  }

  /** Bytes in the arena, whose hash it is. */
  find(hash: number, at: number, length: number): KnownToken<G> | null {
    const entry = this.#cache.get(hash, AS_EVER)
    if (entry === undefined || entry.length !== length) return null
    return isSame(at, entry.chunk!.offset, length) ? entry : null
  }

  /** The same for a text. */
  has(token: string): boolean {
    const chunk = arena.lend(token.length)
    if (chunk === undefined) return false
    bytes.latin1Write(token, chunk.offset)
    const isKnown = this.find(hashOf(chunk.offset, token.length), chunk.offset, token.length) !== null
    giveBack(chunk, token.length)
    return isKnown
  }

  /** Of two tokens with the same hash the later one stays; of one token the later verdict. */
  add(token: string, entry: KnownToken<G>): void {
    const chunk = arena.lend(entry.length)
    // Remembering nothing costs a verification each time, and no more.
    if (chunk === undefined) return
    bytes.latin1Write(token, chunk.offset)
    entry.chunk = chunk
    entry.hash = hashOf(chunk.offset, entry.length)
    this.#cache.set(entry.hash, entry)
    // Too large for the table: it was not taken.
    if (this.#cache.peek(entry.hash) !== entry) forget(entry)
  }

  remove(entry: KnownToken<G>): void {
    if (entry.chunk !== null) this.#cache.delete(entry.hash)
  }

  clear(): void {
    this.#cache.clear()
  }
}

function forget<G>(entry: KnownToken<G>): void {
  const { chunk } = entry
  if (chunk === null) return
  entry.chunk = null
  giveBack(chunk, entry.length)
}

/** Its bytes are a credential: they are not left for whoever gets the chunk next. */
function giveBack(chunk: Chunk, length: number): void {
  bytes.fill(0, chunk.offset, chunk.offset + length)
  arena.giveBack(chunk)
}
