/** The bench of warm tokens proves something where its tables find a token by all of its bytes, and forget in time. */
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import {
  bytes,
  carve,
  clearSlab,
  copyOf,
  isBearer,
  isSameByBytes,
  isSameByWords,
  isSameInWasm,
  TOKEN_AT,
  TokenStore,
} from '../../bench/micro/warm/token-memory.ts'
import {
  ByHash,
  ByHashInSlab,
  ByText,
  compareBuffer,
  type Connection,
  inForce,
  InSlab,
  Remembered,
  RememberedByHash,
} from '../../bench/micro/warm/verdicts.ts'
import { ROW_INTS, SharedWindow, SharedWindows } from '../../bench/micro/warm/windows.ts'

const LENGTHS = [16, 17, 31, 32, 33, 47, 48, 600, 601, 602, 603, 1500]
const SCHEMES: readonly (readonly [string, boolean])[] = [
  ['Bearer x', true],
  ['bEARER x', true],
  ['Bearer\tx', false],
  ['Bearerx ', false],
  ['Basic xy', false],
  // Bit 5 makes letters equal that differ in case, and nothing else.
  ['\x02earer x', false],
  ['B%arer x', false],
]
const MINUTE = 60_000

beforeEach(clearSlab)

for (const length of LENGTHS) {
  test(`tokens of ${length} bytes are the same when every byte is`, () => {
    const tokens = new TokenStore(1, Math.max(length, 400))
    tokens.arrive(0)
    const slab = carve(2048) + 3
    bytes.copyWithin(slab, TOKEN_AT, TOKEN_AT + length)
    const copy = copyOf(TOKEN_AT, length)
    const answers = () => [
      isSameByWords(TOKEN_AT, length, copy),
      isSameByBytes(TOKEN_AT, length, new Uint8Array(copy.buffer)),
      isSameInWasm(TOKEN_AT, slab, length) !== 0,
    ]
    assert.deepEqual(answers(), [true, true, true])
    for (let i = 0; i < length; i++) {
      bytes[TOKEN_AT + i]! ^= 1 << (i & 7)
      assert.deepEqual(answers(), [false, false, false], `byte ${i}`)
      bytes[TOKEN_AT + i]! ^= 1 << (i & 7)
    }
    bytes[TOKEN_AT - 1]! ^= 255
    bytes[TOKEN_AT + length]! ^= 255
    assert.deepEqual(answers(), [true, true, true], 'what stands around it does not count')
  })
}

for (const [text, isOne] of SCHEMES) {
  test(`${JSON.stringify(text)} ${isOne ? 'is' : 'is not'} the scheme Bearer`, () => {
    bytes.latin1Write(text, TOKEN_AT)
    assert.equal(isBearer(TOKEN_AT), isOne)
  })
}

const TABLES = {
  'by text': (tokens: TokenStore) => new ByText(tokens),
  'by hash': (tokens: TokenStore) => new ByHash(tokens),
  'in sets': (tokens: TokenStore) => new InSlab(tokens),
  'by hash in a slab': (tokens: TokenStore) => new ByHashInSlab(tokens),
  'remembered, else by text': (tokens: TokenStore) => new Remembered(new ByText(tokens, { hasCopies: true })),
  'remembered by hash': (tokens: TokenStore) => new RememberedByHash(new ByHashInSlab(tokens)),
}

for (const [name, make] of Object.entries(TABLES)) {
  test(`a token is found ${name}, and no other, and not beyond its time or what is in force`, () => {
    const tokens = new TokenStore(100, 600)
    const table = make(tokens)
    const connection: Connection = { entry: null }
    const isFound = () => table.find(connection, 600) !== null
    for (let token = 0; token < 100; token++) {
      tokens.arrive(token)
      assert.ok(isFound())
      assert.ok(isFound(), 'again, on the same connection')
      // Same signature, other claims: the hash of its end is that of the good one.
      bytes[TOKEN_AT + 200]! ^= 1
      assert.ok(!isFound(), 'changed claims')
      bytes[TOKEN_AT + 200]! ^= 1
    }
    const entry = table.find(connection, 600)!
    entry.expiresMs = inForce.nowMs
    assert.ok(!isFound(), 'expired')
    entry.expiresMs = inForce.nowMs + 1
    assert.ok(isFound())
    inForce.epoch++
    assert.ok(!isFound(), 'of an epoch before')
    inForce.epoch--
  })
}

test('what a connection remembers is gone with its slot, whoever has the slot now', () => {
  const tokens = new TokenStore(3, 600)
  const table = new ByHashInSlab(null, compareBuffer, 2)
  const remembered = new RememberedByHash(table)
  const connection: Connection = { entry: null }
  tokens.arrive(0)
  table.add(600)
  assert.ok(remembered.find(connection, 600))
  tokens.arrive(1)
  table.add(600)
  tokens.arrive(2)
  table.add(600)
  assert.ok(table.find(connection, 600))
  tokens.arrive(0)
  assert.equal(remembered.find(connection, 600), null)
})

/** Whether one of two that count together is let in at a wall clock. */
const WINDOWS = {
  'an object for a counter': (rows: Int32Array) => {
    const windows = [new SharedWindow(rows, 0, 5, MINUTE), new SharedWindow(rows, 0, 5, MINUTE)]
    return (one: number, wallMs: number) => windows[one]!.take(wallMs)
  },
  'rows alone': (rows: Int32Array) => {
    const windows = new SharedWindows(rows)
    const holds = [0, 1].map(() => windows.hold([{ row: 0, limit: 5, lengthS: 60 }]))
    return (one: number, wallMs: number) => windows.take(holds[one]!, Math.floor(wallMs / 1000)) < 0
  },
}

for (const [name, make] of Object.entries(WINDOWS)) {
  test(`a window admits exactly its limit, whoever counts, and begins anew on the minute: ${name}`, () => {
    const take = make(new Int32Array(new SharedArrayBuffer(4 * ROW_INTS)))
    const admitted = (wallMs: number) =>
      Array.from({ length: 10 }, (_, i) => take(i & 1, wallMs)).filter(Boolean).length
    const noon = 29_000_000 * MINUTE
    assert.deepEqual([admitted(noon), admitted(noon + MINUTE - 1), admitted(noon + MINUTE)], [5, 0, 5])
    assert.equal(admitted(noon), 0, 'a clock that goes back opens no window again')
  })
}
