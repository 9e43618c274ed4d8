/**
 * Read buffers of connections that read in turn into shared memory. Each connection finds its own bytes again whatever
 * it uses, keeps or surrenders, and releases all its chunks.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReadBuffer, ReadMemory } from '../../../src/proxy/exchange/read-buffer.ts'
import { arena } from '../../../src/http1/llhttp.ts'
import { type Chunk, CHUNK_MAX, MARGIN } from '../../../src/runtime/arena.ts'
import { IS_LONG, Random, SEED } from '../../harness/random.ts'

const SHARED_BYTES = 65_536

/** Read memory, and the number of chunks that are acquired besides its shared buffer. */
function memoryOf(ownBytes = 16_384) {
  const memory = new ReadMemory(ownBytes)
  const base = arena.acquiredChunks
  return { memory, acquired: () => arena.acquiredChunks - base }
}

/** A socket that reads into its latest view. */
class Wire {
  readonly buffer: ReadBuffer
  #view: Uint8Array
  #next: number

  /** `first`: first byte of its stream; each next byte is one more. */
  constructor(memory: ReadMemory, first: number) {
    this.buffer = new ReadBuffer(memory)
    this.#view = this.buffer.firstView
    this.#next = first
  }

  /** Bytes of the view; a connection without room stops reading. */
  get viewLength(): number {
    return this.#view.length
  }

  read(length: number): void {
    for (let i = 0; i < length; i++) this.#view[i] = this.#next++ & 255
    this.buffer.begin(length)
  }

  settle(bulk: boolean): void {
    const view = this.buffer.settle(bulk)
    assert.notEqual(view, null)
    if (view != null) this.#view = view
  }
}

/** The bytes of a buffer are `expected` and those that follow it. */
function check(buffer: ReadBuffer, expected: number): void {
  for (let at = buffer.from, byte = expected; at < buffer.to; at++, byte++) {
    if (arena.bytes[at] !== (byte & 255)) assert.fail(`byte ${at - buffer.from} of ${buffer.length}`)
  }
}

test('a read that is used up keeps the shared buffer', () => {
  const { memory, acquired } = memoryOf()
  const wire = new Wire(memory, 0)
  wire.read(1000)
  wire.buffer.from = wire.buffer.to
  assert.equal(wire.buffer.settle(false), undefined)
  assert.equal(acquired(), 0)
})

test('bytes in use move to an own chunk, and the shared buffer serves others', () => {
  const { memory, acquired } = memoryOf()
  const [a, b] = [new Wire(memory, 0), new Wire(memory, 100)]
  a.read(50)
  a.settle(false)
  b.read(50)
  check(a.buffer, 0)
  check(b.buffer, 100)
  assert.equal(acquired(), 1)
  a.buffer.dispose()
  assert.equal(acquired(), 0)
})

test('more bytes than an own chunk holds move to a larger chunk', () => {
  const { memory } = memoryOf()
  const wire = new Wire(memory, 0)
  wire.read(40_000)
  wire.buffer.from += 5
  wire.settle(false)
  check(wire.buffer, 5)
  assert.ok(wire.viewLength >= SHARED_BYTES - 40_000)
})

test('a long body is read into a bulk chunk, which can be surrendered', () => {
  const { memory, acquired } = memoryOf()
  const wire = new Wire(memory, 0)
  wire.read(100)
  wire.buffer.from = wire.buffer.to
  wire.settle(true)
  assert.equal(wire.viewLength, SHARED_BYTES)
  assert.equal(wire.buffer.surrender(), null, 'not while the socket may read into it')
  wire.read(SHARED_BYTES)
  assert.ok(wire.buffer.canSurrender)
  const chunk = wire.buffer.surrender()!
  wire.buffer.from = wire.buffer.to
  wire.settle(true)
  assert.equal(acquired(), 2)
  arena.release(chunk)
  wire.buffer.dispose()
  assert.equal(acquired(), 0)
})

test('bulk chunks are limited in number; further connections get their own size', () => {
  const { memory, acquired } = memoryOf(4096)
  const wires = Array.from({ length: 300 }, () => new Wire(memory, 0))
  for (const wire of wires) {
    wire.read(1)
    wire.buffer.from = wire.buffer.to
    wire.settle(true)
  }
  assert.equal(wires.filter(({ viewLength }) => viewLength === SHARED_BYTES).length, 256)
  assert.equal(wires.filter(({ viewLength }) => viewLength === 4096).length, 44)
  for (const { buffer } of wires) buffer.dispose()
  assert.equal(acquired(), 0)
  const next = new Wire(memory, 0)
  next.read(1)
  next.buffer.from = next.buffer.to
  next.settle(true)
  assert.equal(next.viewLength, SHARED_BYTES, 'they come back')
})

test('room counts the bytes in use, not their position', () => {
  const { memory } = memoryOf(4096)
  const wire = new Wire(memory, 0)
  wire.read(100)
  wire.settle(false)
  wire.read(wire.viewLength)
  wire.settle(false)
  assert.equal(wire.buffer.room, 0)
  wire.buffer.from += 1000
  assert.equal(wire.buffer.room, 1000)
  assert.equal(wire.viewLength, MARGIN / 2, 'a full chunk reads into its margin')
})

test(`any reads, uses and surrenders of several connections (seed ${SEED})`, () => {
  const random = new Random(SEED)
  const { memory, acquired } = memoryOf()
  const gifts: Chunk[] = []
  const wires = Array.from({ length: 8 }, (_, i) => ({ wire: new Wire(memory, i * 31), expected: i * 31 }))
  for (let round = 0; round < (IS_LONG ? 200_000 : 5000); round++) {
    const peer = random.pick(wires)
    const { buffer } = peer.wire
    if (random.once(6)) {
      // Between reads bytes may be used up, but no chunk surrendered.
      const used = random.below(buffer.length + 1)
      buffer.from += used
      peer.expected += used
      assert.equal(buffer.surrender(), null)
      continue
    }
    if (buffer.room <= 0) {
      peer.expected += buffer.length
      buffer.from = buffer.to
    }
    peer.wire.read(random.between(1, Math.min(peer.wire.viewLength, random.pick([1, 50, 5000, SHARED_BYTES]))))
    check(buffer, peer.expected)
    const used = random.once(3) ? buffer.length : random.below(buffer.length + 1)
    buffer.from += used
    peer.expected += used
    if (random.once(4) && buffer.canSurrender) gifts.push(buffer.surrender()!)
    const before = buffer.to
    peer.wire.settle(random.once(3))
    assert.equal(buffer.to - before, buffer.moved)
    check(buffer, peer.expected)
    while (gifts.length > 20 || (gifts.length > 0 && random.once(3))) arena.release(gifts.shift()!)
  }
  for (const { wire } of wires) wire.buffer.dispose()
  for (const chunk of gifts) arena.release(chunk)
  assert.equal(acquired(), 0)
})

// Last: chunks of other sizes cannot be cut any more.
test('an exhausted arena: settle tells to close the connection', () => {
  const { memory } = memoryOf()
  const wire = new Wire(memory, 0)
  const all: Chunk[] = []
  for (const size of [CHUNK_MAX, 16_384]) {
    for (let chunk = arena.acquire(size); chunk !== undefined; chunk = arena.acquire(size)) all.push(chunk)
  }
  wire.read(10)
  assert.equal(wire.buffer.settle(false), null)
  for (const chunk of all) arena.release(chunk)
})
