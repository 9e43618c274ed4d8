/** What a warm token is found with: the alternatives, all with the same three questions in common. */
import { LRUCache } from 'lru-cache'
import {
  bytes,
  carve,
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
  /** A bit for each scope of the API that is enough. */
  readonly scopeMask: number
}

/** What a resource makes of a token. */
export interface Pair {
  readonly resource: BenchResource
  readonly refusal: object | null
  readonly entry: Entry
}

/** What an API makes of a token: subscription, application, their counters; resources differ by a mask of scopes. */
export interface Grant {
  readonly api: object
  readonly scopeMask: number
  readonly refusal: object | null
}

const NO_COPY = new Int32Array(0)

export class Entry {
  readonly length: number
  readonly copy: Int32Array
  /** Where its bytes are in the slab; 0: nowhere. */
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

/** What is kept for each connection: one field of an object that is there anyway. */
export interface Connection {
  entry: Entry | null
}

/** In force: one number for everything that a verdict was made from. */
export const inForce = { epoch: 0, nowMs: 1e6 }

export interface Verdicts {
  find(connection: Connection, length: number): Entry | null
}

const ENTRIES = 10_000
const BYTES = 16 << 20
const SEED = 0x2545f491

function isCurrent(entry: Entry): boolean {
  return inForce.nowMs < entry.expiresMs && entry.epoch === inForce.epoch
}

function tokenText(length: number): string {
  return bytes.latin1Slice(TOKEN_AT, TOKEN_AT + length)
}

/** Found by the text of the token. */
export class ByText implements Verdicts {
  readonly #cache: LRUCache<string, Entry>

  /** `hasCopies`: for connections that remember an entry and compare with it. */
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

/** Found by a seeded hash of the token's end, a small integer; then every byte is compared. */
export class ByHash implements Verdicts {
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
/** Longer tokens would need another place. */
const SLOT_BYTES = 2048

/** A table of sets of eight, with the bytes in one slab: no set is ever longer, whoever chooses the tokens. */
export class InSlab implements Verdicts {
  readonly #sets: number
  readonly #tags: Int32Array
  readonly #used: Int32Array
  readonly #entries: (Entry | null)[]
  readonly #slab: number
  #tick = 0

  constructor(tokens: TokenStore, sets = 1024) {
    this.#sets = sets
    this.#slab = carve(sets * WAYS * SLOT_BYTES)
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

type Same = (a: number, b: number, length: number) => boolean

export const compareInWasm: Same = (a, b, length) => isSameInWasm(a, b, length) !== 0
export const compareBuffer: Same = (a, b, length) => bytes.compare(bytes, b, b + length, a, a + length) === 0

/** Found by the same hash; the copies are in the memory of the reads, a slot each, so that no object stands for one. */
export class ByHashInSlab implements Verdicts {
  readonly #cache: LRUCache<number, Entry>
  readonly #free: number[] = []
  readonly isSame: Same

  constructor(tokens: TokenStore | null, isSame = compareInWasm, max = 8192) {
    this.isSame = isSame
    const slab = carve(max * SLOT_BYTES)
    for (let slot = max; slot-- > 0; ) this.#free.push(slab + slot * SLOT_BYTES)
    const giveBack = (entry: Entry) => {
      this.#free.push(entry.slot)
      // Connections that remember it find nobody there.
      entry.slot = 0
    }
    // One more is there for a moment: what is put in comes before what goes out.
    this.#cache = new LRUCache({ max: max - 1, dispose: giveBack })
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

/** The token that came last on the connection, before any other: what is there is compared at once. */
export class Remembered implements Verdicts {
  readonly #others: Verdicts

  constructor(others: Verdicts) {
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

/** The same, but compared only where hash and length are those of the token. */
export class RememberedByHash implements Verdicts {
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

/** Token and resource in one text, as caches of pairs usually have it. */
export class ByTextOfPair {
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
