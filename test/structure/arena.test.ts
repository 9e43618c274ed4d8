import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Arena, type Chunk, MARGIN } from '../../src/structure/arena.ts'
import { Random, SEED } from '../harness/random.ts'

const LARGEST = 131_072

function arenaOf(bytes: number, start = 0): Arena {
  return new Arena(new ArrayBuffer(start + bytes), start, start + bytes)
}

const sizes: readonly (readonly [asked: number, lent: number])[] = [
  [0, 2048],
  [1, 2048],
  [2048, 2048],
  [2049, 4096],
  [4096, 4096],
  [16_384, 16_384],
  [16_385, 32_768],
  [65_536, 65_536],
  [LARGEST, LARGEST],
]

for (const [asked, lent] of sizes) {
  test(`a chunk for ${asked} bytes has ${lent}`, () => {
    const chunk = arenaOf(1_000_000).lend(asked)!
    assert.equal(chunk.size, lent)
    assert.equal(chunk.view.length, lent)
  })
}

test('more than the largest chunk is a mistake of the caller', () => {
  assert.throws(() => arenaOf(1_000_000).lend(LARGEST + 1), RangeError)
})

test('a chunk that was given back is lent next', () => {
  const arena = arenaOf(100_000)
  const first = arena.lend(2048)!
  const second = arena.lend(2048)!
  arena.giveBack(first)
  arena.giveBack(second)
  assert.equal(arena.lend(2000), second)
  assert.equal(arena.lend(2000), first)
})

test('a chunk given back twice throws', () => {
  const arena = arenaOf(100_000)
  const chunk = arena.lend(2048)!
  arena.giveBack(chunk)
  assert.throws(() => arena.giveBack(chunk), /twice/)
})

test('an arena that is used up lends nothing, until something comes back', () => {
  const arena = arenaOf(3 * (4096 + 2 * MARGIN) + 64)
  const chunks = [arena.lend(4096), arena.lend(4096), arena.lend(4096)]
  assert.ok(chunks.every(chunk => chunk !== undefined))
  assert.equal(arena.lend(4096), undefined)
  assert.equal(arena.carve(4096), -1)
  assert.equal(arena.lentChunks, 3)
  arena.giveBack(chunks[1]!)
  assert.equal(arena.lend(4096), chunks[1])
})

test('what is carved is aligned to eight bytes and lies within the arena', () => {
  const arena = arenaOf(10_000, 40)
  for (const size of [1, 80, 7, 96, 3]) {
    const at = arena.carve(size)
    assert.equal(at % 8, 0)
    assert.ok(at >= 40 && at + size <= 10_040)
  }
})

test('views and prefixes are the bytes of the arena', () => {
  const arena = arenaOf(300_000, 100)
  const chunk = arena.lend(65_536)!
  arena.bytes.write('hello', chunk.offset, 'latin1')
  assert.equal(Buffer.from(chunk.view.subarray(0, 5)).toString(), 'hello')
  for (const length of [0, 5, 4096, 4097, 65_536]) {
    const prefix = chunk.prefix(length)
    assert.equal(prefix.length, length)
    assert.equal(prefix.byteOffset, chunk.offset)
  }
  assert.equal(chunk.prefix(5), chunk.prefix(5), 'a short prefix is made once')
})

test(`chunks and their margins never overlap (seed ${SEED})`, () => {
  const random = new Random(SEED)
  const arena = arenaOf(8_000_000, 1000)
  const held: Chunk[] = []
  for (let i = 0; i < 20_000; i++) {
    if (held.length > 0 && random.once(2)) arena.giveBack(held.splice(random.below(held.length), 1)[0]!)
    else {
      const chunk = arena.lend(random.below(LARGEST + 1))
      if (chunk !== undefined) held.push(chunk)
    }
    assert.equal(arena.lentChunks, held.length)
  }
  const ranges = held.map(({ offset, size }) => [offset - MARGIN, offset + size + MARGIN] as const)
  ranges.sort(([a], [b]) => a - b)
  for (let i = 1; i < ranges.length; i++) assert.ok(ranges[i]![0] >= ranges[i - 1]![1])
  assert.ok(ranges.every(([from, to]) => from >= 1000 && to <= 8_001_000))
})
