/** Tokens that nobody has seen before, one after the other: what each costs before it is verified, and what stays. */
import { LRUCache } from 'lru-cache'
import { compare } from './rounds.ts'
import { bytes, clearSlab, TOKEN_AT, TokenStore } from './token-memory.ts'
import { ByHashInSlab, ByText, type Connection, compareInWasm, RememberedByHash } from './verdicts.ts'

const NEGATIVE_BYTES = 2 << 20
const NEGATIVE_MS = 10_000
/** Bytes that an entry takes besides the characters of its token. */
const ENTRY_BYTES = 150

const SLOT_BYTES = 2048

/** Tokens that were refused, found by their text; bounded in bytes, oldest out first. */
class Refused {
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
    this.#cache.set(token, nowMs + NEGATIVE_MS)
  }

  get size(): number {
    return this.#cache.size
  }
}

/** A token like another but for its signature, which is always a new one. */
class Forged {
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
  const byText = new ByText(tokens)
  const byHash = new ByHashInSlab(tokens)
  const remembered = new RememberedByHash(byHash)
  const connection: Connection = { entry: null }
  tokens.arrive(0)
  const forged = new Forged(length)
  const step = (name: string, run: () => unknown) => ({
    name,
    run: () => {
      forged.arrive()
      return run()
    },
  })
  const text = () => bytes.latin1Slice(TOKEN_AT, TOKEN_AT + length)
  const small = new Refused(NEGATIVE_BYTES)
  const large = new Refused(16 * NEGATIVE_BYTES)
  const apart = new ByHashInSlab(null, compareInWasm, NEGATIVE_BYTES / SLOT_BYTES)
  const through = (refused: Pick<Refused, 'has' | 'add'>) => () => {
    if (remembered.find(connection, length) !== null) return true
    const token = text()
    if (refused.has(token, 0)) return true
    refused.add(token, 0)
    return false
  }
  compare(`A flood of new tokens of ${length} bytes, 1,000 good ones kept`, [
    step('the token arrives in the read buffer', () => 0),
    step('not found: by text', () => byText.find(connection, length)),
    step('not found: by hash', () => byHash.find(connection, length)),
    step('by hash, refused kept in lru-cache of 2 MiB', through(small)),
    step('by hash, refused kept in lru-cache of 32 MiB', through(large)),
    step('by hash, refused kept in 1,024 slots by hash as well', () => {
      if (remembered.find(connection, length) !== null) return true
      return apart.find(connection, length) ?? apart.add(length)
    }),
    step('the same, and a text made for who verifies it', () => {
      if (remembered.find(connection, length) !== null) return true
      const refused = apart.find(connection, length) ?? apart.add(length)
      return refused.length === length && text()
    }),
  ])
  console.log(`  lru-cache of 2 MiB holds ${small.size} refused tokens, of 32 MiB ${large.size}`)
}
