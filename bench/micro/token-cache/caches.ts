/** Alternative caches for known tokens; all check the token, its expiry and its version. */
import { LRUCache } from 'lru-cache'
import {
  bytes,
  allocate,
  copyOf,
  isSameByWords,
  isSameInWasm,
  tailHash,
  type TokenStore,
  TOKEN_AT,
} from './token-memory.ts'

export interface BenchResource {
  readonly api: object
  readonly key: string
  readonly index: number
  /** Bits of the scopes that are sufficient. */
  readonly scopeMask: number
}

/** The decision for a token and a resource. */
export interface Pair {
  readonly resource: BenchResource
  readonly refusal: object | null
  readonly entry: Entry
}

/** The decision for a token and an API: subscription, application and counters; resources differ by scope bits. */
export interface Grant {
  readonly api: object
  readonly scopeMask: number
  readonly refusal: object | null
}

const NO_COPY = new Int32Array(0)

export class Entry {
  readonly length: number
  readonly copy: Int32Array
  /** Offset of its copy in the slab; 0 for none. */
  slot = 0
  hash = 0
  expiresMs = 1e15
  epoch = 0
  last: Pair | null = null
  readonly pairs = new Map<BenchResource, Pair>()
  grant: Grant | null = null
  readonly grants = new Map<object, Grant>()

  constructor(at: number, length: number, isInSlab = false) {
    this.length = length
    this.copy = isInSlab ? NO_COPY : copyOf(at, length)
  }
}

/** State of a connection: the entry of its last token. */
export interface Connection {
  entry: Entry | null
}

/** The version of all data behind the decisions, and the current time. */
export const currentState = { epoch: 0, nowMs: 1e6 }

export interface TokenCache {
  find(connection: Connection, length: number): Entry | null
}

const ENTRIES = 10_000
const BYTES = 16 << 20
const SEED = 0x2545f491

function isCurrent(entry: Entry): boolean {
  return currentState.nowMs < entry.expiresMs && entry.epoch === currentState.epoch
}

function tokenText(length: number): string {
  return bytes.latin1Slice(TOKEN_AT, TOKEN_AT + length)
}

/** An LRU cache by the text of the token. */
export class ByTokenText implements TokenCache {
  readonly #cache: LRUCache<string, Entry>

  /** `hasCopies`: entries have copies of their tokens, for PerConnection. */
  constructor(tokens: TokenStore, { ttl = false, hasCopies = false } = {}) {
    const bounds = { max: ENTRIES, maxSize: BYTES, sizeCalculation: (entry: Entry) => entry.length * 2 + 200 }
    this.#cache = new LRUCache(ttl ? { ...bounds, ttl: 900_000 } : bounds)
    for (let token = 0; token < tokens.count; token++) {
      tokens.arrive(token)
      this.#cache.set(tokenText(tokens.length), new Entry(TOKEN_AT, tokens.length, !hasCopies))
    }
  }

  find(_connection: Connection, length: number): Entry | null {
    const entry = this.#cache.get(tokenText(length))
    return entry !== undefined && isCurrent(entry) ? entry : null
  }
}

/** An LRU cache by a seeded hash of the token's end; each entry has a copy, of which all bytes are compared. */
export class ByHashWithCopies implements TokenCache {
  readonly #cache: LRUCache<number, Entry>

  constructor(tokens: TokenStore) {
    this.#cache = new LRUCache({
      max: ENTRIES,
      maxSize: BYTES,
      sizeCalculation: (entry: Entry) => entry.length + 400,
    })
    for (let token = 0; token < tokens.count; token++) {
      tokens.arrive(token)
      this.#cache.set(tailHash(TOKEN_AT, tokens.length, SEED), new Entry(TOKEN_AT, tokens.length))
    }
  }

  find(_connection: Connection, length: number): Entry | null {
    const entry = this.#cache.get(tailHash(TOKEN_AT, length, SEED))
    if (entry === undefined || entry.length !== length) return null
    return isSameByWords(TOKEN_AT, length, entry.copy) && isCurrent(entry) ? entry : null
  }
}

const WAYS = 8
/** The greatest length of a token. */
const SLOT_BYTES = 2048

/** A table of sets of eight entries, with copies in one slab; sets cannot grow, whoever chooses the tokens. */
export class SetAssociative implements TokenCache {
  readonly #sets: number
  readonly #tags: Int32Array
  readonly #used: Int32Array
  readonly #entries: (Entry | null)[]
  readonly #slab: number
  #tick = 0

  constructor(tokens: TokenStore, sets = 1024) {
    this.#sets = sets
    this.#slab = allocate(sets * WAYS * SLOT_BYTES)
    this.#tags = new Int32Array(sets * WAYS).fill(-1)
    this.#used = new Int32Array(sets * WAYS)
    this.#entries = new Array(sets * WAYS).fill(null)
    for (let token = 0; token < tokens.count; token++) {
      tokens.arrive(token)
      this.#set(tokens.length)
    }
  }

  #set(length: number): void {
    const tag = tailHash(TOKEN_AT, length, SEED)
    const set = (tag & (this.#sets - 1)) * WAYS
    let way = set
    for (let i = set; i < set + WAYS; i++) if (this.#used[i]! < this.#used[way]!) way = i
    this.#tags[way] = tag
    this.#used[way] = ++this.#tick
    this.#entries[way] = new Entry(TOKEN_AT, length)
    bytes.copyWithin(this.#slab + way * SLOT_BYTES, TOKEN_AT, TOKEN_AT + length)
  }

  find(_connection: Connection, length: number): Entry | null {
    const tag = tailHash(TOKEN_AT, length, SEED)
    const set = (tag & (this.#sets - 1)) * WAYS
    for (let way = set; way < set + WAYS; way++) {
      if (this.#tags[way] !== tag) continue
      const entry = this.#entries[way]!
      if (entry.length !== length || isSameInWasm(TOKEN_AT, this.#slab + way * SLOT_BYTES, length) === 0) continue
      this.#used[way] = ++this.#tick
      return isCurrent(entry) ? entry : null
    }
    return null
  }
}

type Comparison = (a: number, b: number, length: number) => boolean

export const compareInWasm: Comparison = (a, b, length) => isSameInWasm(a, b, length) !== 0
export const compareWithBuffer: Comparison = (a, b, length) => bytes.compare(bytes, b, b + length, a, a + length) === 0

/** An LRU cache by the same hash, with copies in slots of one slab instead of an object each. */
export class ByHashInSlab implements TokenCache {
  readonly #cache: LRUCache<number, Entry>
  readonly #free: number[] = []
  readonly isSame: Comparison

  constructor(tokens: TokenStore | null, isSame = compareInWasm, max = 8192) {
    this.isSame = isSame
    const slab = allocate(max * SLOT_BYTES)
    for (let slot = max; slot-- > 0; ) this.#free.push(slab + slot * SLOT_BYTES)
    const release = (entry: Entry) => {
      this.#free.push(entry.slot)
      // Connections that remember the entry must not find another token there.
      entry.slot = 0
    }
    // The cache holds one entry less than there are slots, because a new entry is added before an old one is evicted.
    this.#cache = new LRUCache({ max: max - 1, dispose: release })
    for (let token = 0; tokens !== null && token < tokens.count; token++) {
      tokens.arrive(token)
      this.add(tokens.length)
    }
  }

  add(length: number): Entry {
    const hash = tailHash(TOKEN_AT, length, SEED)
    const entry = new Entry(TOKEN_AT, length, true)
    entry.hash = hash
    entry.slot = this.#free.pop()!
    bytes.copyWithin(entry.slot, TOKEN_AT, TOKEN_AT + length)
    this.#cache.set(hash, entry)
    return entry
  }

  find(_connection: Connection, length: number): Entry | null {
    return this.findByHash(tailHash(TOKEN_AT, length, SEED), length)
  }

  findByHash(hash: number, length: number): Entry | null {
    const entry = this.#cache.get(hash)
    if (entry === undefined || entry.length !== length) return null
    return this.isSame(TOKEN_AT, entry.slot, length) && isCurrent(entry) ? entry : null
  }
}

/** Compares with the last token of the connection first, then looks in another cache. */
export class PerConnection implements TokenCache {
  readonly #others: TokenCache

  constructor(others: TokenCache) {
    this.#others = others
  }

  find(connection: Connection, length: number): Entry | null {
    const { entry } = connection
    if (entry !== null && entry.length === length && isSameByWords(TOKEN_AT, length, entry.copy) && isCurrent(entry)) {
      return entry
    }
    const found = this.#others.find(connection, length)
    connection.entry = found
    return found
  }
}

/** The same, but compares only if hash and length are equal. */
export class PerConnectionByHash implements TokenCache {
  readonly #others: ByHashInSlab

  constructor(others: ByHashInSlab) {
    this.#others = others
  }

  find(connection: Connection, length: number): Entry | null {
    const hash = tailHash(TOKEN_AT, length, SEED)
    const { entry } = connection
    if (entry !== null && entry.hash === hash && entry.length === length && entry.slot !== 0 && isCurrent(entry)) {
      if (this.#others.isSame(TOKEN_AT, entry.slot, length)) return entry
    }
    const found = this.#others.findByHash(hash, length)
    connection.entry = found
    return found
  }
}

/** An LRU cache by one text of token and resource. */
export class ByTokenAndResourceText {
  readonly #cache = new LRUCache<string, Pair>({ max: 1_000_000 })

  constructor(tokens: TokenStore, resources: readonly BenchResource[]) {
    for (let token = 0; token < tokens.count; token++) {
      tokens.arrive(token)
      const text = tokenText(tokens.length)
      const entry = new Entry(TOKEN_AT, tokens.length)
      for (const resource of resources) this.#cache.set(`${text}${resource.key}`, { resource, refusal: null, entry })
    }
  }

  find(length: number, resource: BenchResource): Pair | null {
    const pair = this.#cache.get(`${tokenText(length)}${resource.key}`)
    return pair !== undefined && isCurrent(pair.entry) ? pair : null
  }
}
