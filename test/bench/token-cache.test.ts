/** The compared token caches work: they compare all bytes of a token, and check expiry and version. */
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import {
  bytes,
  allocate,
  clearSlab,
  copyOf,
  isBearer,
  isSameByBytes,
  isSameByWords,
  isSameInWasm,
  TOKEN_AT,
  TokenStore,
} from '../../bench/micro/token-cache/token-memory.ts'
import {
  ByHashWithCopies,
  ByHashInSlab,
  ByTokenText,
  compareWithBuffer,
  type Connection,
  currentState,
  SetAssociative,
  PerConnection,
  PerConnectionByHash,
} from '../../bench/micro/token-cache/caches.ts'
import { ROW_INTS, WindowObject, SharedWindows } from '../../bench/micro/token-cache/throttle-windows.ts'

const LENGTHS = [16, 17, 31, 32, 33, 47, 48, 600, 601, 602, 603, 1500]
const SCHEMES: readonly (readonly [string, boolean])[] = [
  ['Bearer x', true],
  ['bEARER x', true],
  ['Bearer\tx', false],
  ['Bearerx ', false],
  ['Basic xy', false],
  // Bit 5 makes only letters of different case equal.
  ['\x02earer x', false],
  ['B%arer x', false],
]
const MINUTE = 60_000

beforeEach(clearSlab)

for (const length of LENGTHS) {
  test(`tokens of ${length} bytes are equal only if all bytes are`, () => {
    const tokens = new TokenStore(1, Math.max(length, 400))
    tokens.arrive(0)
    const slab = allocate(2048) + 3
    bytes.copyWithin(slab, TOKEN_AT, TOKEN_AT + length)
    const copy = copyOf(TOKEN_AT, length)
    const comparisons = () => [
      isSameByWords(TOKEN_AT, length, copy),
      isSameByBytes(TOKEN_AT, length, new Uint8Array(copy.buffer)),
      isSameInWasm(TOKEN_AT, slab, length) !== 0,
    ]
    assert.deepEqual(comparisons(), [true, true, true])
    for (let i = 0; i < length; i++) {
      bytes[TOKEN_AT + i]! ^= 1 << (i & 7)
      assert.deepEqual(comparisons(), [false, false, false], `byte ${i}`)
      bytes[TOKEN_AT + i]! ^= 1 << (i & 7)
    }
    bytes[TOKEN_AT - 1]! ^= 255
    bytes[TOKEN_AT + length]! ^= 255
    assert.deepEqual(comparisons(), [true, true, true], 'bytes around the token do not matter')
  })
}

for (const [text, isOne] of SCHEMES) {
  test(`${JSON.stringify(text)} ${isOne ? 'is' : 'is not'} the scheme Bearer`, () => {
    bytes.latin1Write(text, TOKEN_AT)
    assert.equal(isBearer(TOKEN_AT), isOne)
  })
}

const TABLES = {
  'LRU by text': (tokens: TokenStore) => new ByTokenText(tokens),
  'LRU by hash': (tokens: TokenStore) => new ByHashWithCopies(tokens),
  'set-associative': (tokens: TokenStore) => new SetAssociative(tokens),
  'LRU by hash in a slab': (tokens: TokenStore) => new ByHashInSlab(tokens),
  'per connection, then text': (tokens: TokenStore) => new PerConnection(new ByTokenText(tokens, { hasCopies: true })),
  'per connection by hash': (tokens: TokenStore) => new PerConnectionByHash(new ByHashInSlab(tokens)),
}

for (const [name, make] of Object.entries(TABLES)) {
  test(`a cache finds only the same token, before its expiry and of the current version: ${name}`, () => {
    const tokens = new TokenStore(100, 600)
    const table = make(tokens)
    const connection: Connection = { entry: null }
    const isFound = () => table.find(connection, 600) !== null
    for (let token = 0; token < 100; token++) {
      tokens.arrive(token)
      assert.ok(isFound())
      assert.ok(isFound(), 'again, on the same connection')
      // Other claims with the same signature have the same hash.
      bytes[TOKEN_AT + 200]! ^= 1
      assert.ok(!isFound(), 'changed claims')
      bytes[TOKEN_AT + 200]! ^= 1
    }
    const entry = table.find(connection, 600)!
    entry.expiresMs = currentState.nowMs
    assert.ok(!isFound(), 'expired')
    entry.expiresMs = currentState.nowMs + 1
    assert.ok(isFound())
    currentState.epoch++
    assert.ok(!isFound(), 'of an earlier version')
    currentState.epoch--
  })
}

test('a connection does not find its last token after another token took its slot', () => {
  const tokens = new TokenStore(3, 600)
  const table = new ByHashInSlab(null, compareWithBuffer, 2)
  const perConnection = new PerConnectionByHash(table)
  const connection: Connection = { entry: null }
  tokens.arrive(0)
  table.add(600)
  assert.ok(perConnection.find(connection, 600))
  tokens.arrive(1)
  table.add(600)
  tokens.arrive(2)
  table.add(600)
  assert.ok(table.find(connection, 600))
  tokens.arrive(0)
  assert.equal(perConnection.find(connection, 600), null)
})

/** Two threads that share a counter: counts one for a thread at a time, and returns whether it is within the limit. */
const WINDOWS = {
  'an object per counter': (rows: Int32Array) => {
    const windows = [new WindowObject(rows, 0, 5, MINUTE), new WindowObject(rows, 0, 5, MINUTE)]
    return (thread: number, wallMs: number) => windows[thread]!.take(wallMs)
  },
  'without objects': (rows: Int32Array) => {
    const windows = new SharedWindows(rows)
    const threads = [0, 1].map(() => windows.counters([{ row: 0, limit: 5, lengthS: 60 }]))
    return (thread: number, wallMs: number) => windows.take(threads[thread]!, Math.floor(wallMs / 1000)) < 0
  },
}

for (const [name, make] of Object.entries(WINDOWS)) {
  test(`a window admits exactly its limit from all threads, and a new one begins each minute: ${name}`, () => {
    const take = make(new Int32Array(new SharedArrayBuffer(4 * ROW_INTS)))
    const admitted = (wallMs: number) =>
      Array.from({ length: 10 }, (_, i) => take(i & 1, wallMs)).filter(Boolean).length
    const noon = 29_000_000 * MINUTE
    assert.deepEqual([admitted(noon), admitted(noon + MINUTE - 1), admitted(noon + MINUTE)], [5, 0, 5])
    assert.equal(admitted(noon), 0, 'a clock that goes back does not reset a window')
  })
}
