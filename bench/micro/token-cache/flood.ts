/** A flood of unknown tokens: cost of each before its verification, and of remembering the refused ones. */
import { LRUCache } from 'lru-cache'
import { measuredNote } from '../../measured-table.ts'
import { compare } from '../timing.ts'
import { bytes, clearSlab, TOKEN_AT, TokenStore } from './token-memory.ts'
import { ByHashInSlab, ByTokenText, type Connection, compareInWasm, PerConnectionByHash } from './caches.ts'

const REFUSED_BYTES = 2 << 20
const REFUSED_MS = 10_000
/** Bytes of an entry without the characters of its token. */
const ENTRY_BYTES = 150

const SLOT_BYTES = 2048

/** Refused tokens by text; bounded in bytes, the oldest are evicted first. */
class RefusedTokens {
  readonly #cache: LRUCache<string, number>

  constructor(bound: number) {
    this.#cache = new LRUCache({
      max: Math.ceil(bound / ENTRY_BYTES),
      maxSize: bound,
      sizeCalculation: (_until, token) => token.length + ENTRY_BYTES,
    })
  }

  has(token: string, nowMs: number): boolean {
    const until = this.#cache.peek(token)
    return until !== undefined && nowMs < until
  }

  add(token: string, nowMs: number): void {
    this.#cache.set(token, nowMs + REFUSED_MS)
  }

  get size(): number {
    return this.#cache.size
  }
}

/** A token whose signature changes at each arrival. */
class ForgedToken {
  readonly #length: number
  #count = 0

  constructor(length: number) {
    this.#length = length
  }

  arrive(): void {
    this.#count++
    const at = TOKEN_AT + this.#length - 40
    for (let i = 0, rest = this.#count; i < 8; i++, rest >>>= 4) bytes[at + 4 * i] = 65 + (rest & 15)
  }
}

export function flood(length: number): void {
  clearSlab()
  const tokens = new TokenStore(1000, length)
  const byText = new ByTokenText(tokens)
  const byHash = new ByHashInSlab(tokens)
  const perConnection = new PerConnectionByHash(byHash)
  const connection: Connection = { entry: null }
  tokens.arrive(0)
  const forged = new ForgedToken(length)
  const step = (name: string, run: () => unknown) => ({
    name,
    run: () => {
      forged.arrive()
      return run()
    },
  })
  const text = () => bytes.latin1Slice(TOKEN_AT, TOKEN_AT + length)
  const small = new RefusedTokens(REFUSED_BYTES)
  const large = new RefusedTokens(16 * REFUSED_BYTES)
  const refusedInSlab = new ByHashInSlab(null, compareInWasm, REFUSED_BYTES / SLOT_BYTES)
  const viaText = (refused: Pick<RefusedTokens, 'has' | 'add'>) => () => {
    if (perConnection.find(connection, length) !== null) return true
    const token = text()
    if (refused.has(token, 0)) return true
    refused.add(token, 0)
    return false
  }
  compare(`A flood of unknown tokens of ${length} bytes, 1,000 valid ones in the cache`, [
    step('the token arrives in the read buffer', () => 0),
    step('miss, LRU by text', () => byText.find(connection, length)),
    step('miss, LRU by hash', () => byHash.find(connection, length)),
    step('miss by hash, refused tokens in an LRU of 2 MiB by text', viaText(small)),
    step('miss by hash, refused tokens in an LRU of 32 MiB by text', viaText(large)),
    step('miss by hash, refused tokens in 1,024 slots by hash', () => {
      if (perConnection.find(connection, length) !== null) return true
      return refusedInSlab.find(connection, length) ?? refusedInSlab.add(length)
    }),
    step('the same, with a string for the verifier', () => {
      if (perConnection.find(connection, length) !== null) return true
      const refused = refusedInSlab.find(connection, length) ?? refusedInSlab.add(length)
      return refused.length === length && text()
    }),
  ])
  measuredNote(
    `Tokens of ${length} bytes: an LRU of 2 MiB has ${small.size} refused ones, one of 32 MiB ${large.size}.`,
  )
}
