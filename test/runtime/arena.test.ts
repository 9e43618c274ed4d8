/** Arena: sizes, reuse, exhaustion and alignment of chunks. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Arena, type Chunk, MARGIN } from '../../src/runtime/arena.ts'
import { Random, SEED } from '../harness/random.ts'

const LARGEST = 131_072

function arenaOf(bytes: number, start = 0): Arena {
  return new Arena(new ArrayBuffer(start + bytes), start, start + bytes)
}

const sizes: readonly (readonly [requested: number, size: number])[] = [
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

for (const [requested, size] of sizes) {
  test(`a chunk for ${requested} bytes has ${size}`, () => {
    const chunk = arenaOf(1_000_000).acquire(requested)!
    assert.equal(chunk.size, size)
    assert.equal(chunk.view.length, size)
  })
}

test('a request for more than the largest chunk throws', () => {
  assert.throws(() => arenaOf(1_000_000).acquire(LARGEST + 1), RangeError)
})

test('the chunk that was released last is acquired next', () => {
  const arena = arenaOf(100_000)
  const first = arena.acquire(2048)!
  const second = arena.acquire(2048)!
  arena.release(first)
  arena.release(second)
  assert.equal(arena.acquire(2000), second)
  assert.equal(arena.acquire(2000), first)
})

test('releasing a chunk twice throws', () => {
  const arena = arenaOf(100_000)
  const chunk = arena.acquire(2048)!
  arena.release(chunk)
  assert.throws(() => arena.release(chunk), /twice/)
})

test('an exhausted arena returns no chunk until one is released', () => {
  const arena = arenaOf(3 * (4096 + 2 * MARGIN) + 64)
  const chunks = [arena.acquire(4096), arena.acquire(4096), arena.acquire(4096)]
  assert.ok(chunks.every(chunk => chunk !== undefined))
  assert.equal(arena.acquire(4096), undefined)
  assert.equal(arena.reserve(4096), -1)
  assert.equal(arena.acquiredChunks, 3)
  arena.release(chunks[1]!)
  assert.equal(arena.acquire(4096), chunks[1])
})

test('a reservation is aligned to eight bytes and lies within the arena', () => {
  const arena = arenaOf(10_000, 40)
  for (const size of [1, 80, 7, 96, 3]) {
    const at = arena.reserve(size)
    assert.equal(at % 8, 0)
    assert.ok(at >= 40 && at + size <= 10_040)
  }
})

test('views and prefixes of a chunk show the bytes of the arena', () => {
  const arena = arenaOf(300_000, 100)
  const chunk = arena.acquire(65_536)!
  arena.bytes.write('hello', chunk.offset, 'latin1')
  assert.equal(Buffer.from(chunk.view.subarray(0, 5)).toString(), 'hello')
  for (const length of [0, 5, 4096, 4097, 65_536]) {
    const prefix = chunk.prefix(length)
    assert.equal(prefix.length, length)
    assert.equal(prefix.byteOffset, chunk.offset)
  }
  assert.equal(chunk.prefix(5), chunk.prefix(5), 'a short prefix is created once')
})

test(`chunks and their margins never overlap (seed ${SEED})`, () => {
  const random = new Random(SEED)
  const arena = arenaOf(8_000_000, 1000)
  const held: Chunk[] = []
  for (let i = 0; i < 20_000; i++) {
    if (held.length > 0 && random.once(2)) arena.release(held.splice(random.below(held.length), 1)[0]!)
    else {
      const chunk = arena.acquire(random.below(LARGEST + 1))
      if (chunk !== undefined) held.push(chunk)
    }
    assert.equal(arena.acquiredChunks, held.length)
  }
  const ranges = held.map(({ offset, size }) => [offset - MARGIN, offset + size + MARGIN] as const)
  ranges.sort(([a], [b]) => a - b)
  for (let i = 1; i < ranges.length; i++) assert.ok(ranges[i]![0] >= ranges[i - 1]![1])
  assert.ok(ranges.every(([from, to]) => from >= 1000 && to <= 8_001_000))
})
