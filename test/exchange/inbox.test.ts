/**
 * Several connections read in turn into memory that they share. Whatever each of them uses up, keeps, or gives away,
 * it finds its own bytes again, and nothing stays lent behind it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Inbox, ReadMemory } from '../../src/exchange/inbox.ts'
import { Arena, type Chunk, MARGIN } from '../../src/structure/arena.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'

const SHARED_BYTES = 65_536

function memoryOf(ownBytes = 16_384, arenaBytes = 4_000_000) {
  const arena = new Arena(new ArrayBuffer(arenaBytes), 0, arenaBytes)
  return { arena, memory: new ReadMemory(arena, ownBytes) }
}

/** A socket: reads into the view it was given last. */
class Wire {
  readonly inbox: Inbox
  #view: Uint8Array
  #next: number

  /** `first`: the byte that its stream begins with; each next one is one more. */
  constructor(memory: ReadMemory, first: number) {
    this.inbox = new Inbox(memory)
    this.#view = this.inbox.firstView
    this.#next = first
  }

  /** Whether there is room in the view; a connection that has none stops reading. */
  get viewLength(): number {
    return this.#view.length
  }

  read(length: number): void {
    for (let i = 0; i < length; i++) this.#view[i] = this.#next++ & 255
    this.inbox.begin(length)
  }

  settle(bulk: boolean): void {
    const view = this.inbox.settle(bulk)
    assert.notEqual(view, null)
    if (view != null) this.#view = view
  }
}

/** The bytes of an inbox are `expected` and those that follow it. */
function check(arena: Arena, inbox: Inbox, expected: number): void {
  for (let at = inbox.from, byte = expected; at < inbox.to; at++, byte++) {
    if (arena.bytes[at] !== (byte & 255)) assert.fail(`byte ${at - inbox.from} of ${inbox.length}`)
  }
}

test('a read that is used up leaves the shared buffer in force', () => {
  const { arena, memory } = memoryOf()
  const wire = new Wire(memory, 0)
  wire.read(1000)
  wire.inbox.from = wire.inbox.to
  assert.equal(wire.inbox.settle(false), undefined)
  assert.equal(arena.lentChunks, 1, 'the shared buffer')
})

test('what is kept moves to a chunk of its own, and the shared buffer serves others', () => {
  const { arena, memory } = memoryOf()
  const [a, b] = [new Wire(memory, 0), new Wire(memory, 100)]
  a.read(50)
  a.settle(false)
  b.read(50)
  check(arena, a.inbox, 0)
  check(arena, b.inbox, 100)
  assert.equal(arena.lentChunks, 2)
  a.inbox.dispose()
  assert.equal(arena.lentChunks, 1)
})

test('more than a chunk of its own is kept in a bulk chunk', () => {
  const { arena, memory } = memoryOf()
  const wire = new Wire(memory, 0)
  wire.read(40_000)
  wire.inbox.from += 5
  wire.settle(false)
  check(arena, wire.inbox, 5)
  assert.ok(wire.viewLength >= SHARED_BYTES - 40_000)
})

test('a long body is read into a bulk chunk, which can be given away', () => {
  const { arena, memory } = memoryOf()
  const wire = new Wire(memory, 0)
  wire.read(100)
  wire.inbox.from = wire.inbox.to
  wire.settle(true)
  assert.equal(wire.viewLength, SHARED_BYTES)
  assert.equal(wire.inbox.surrender(), null, 'not while the socket may read into it')
  wire.read(SHARED_BYTES)
  assert.ok(wire.inbox.canSurrender)
  const chunk = wire.inbox.surrender()!
  wire.inbox.from = wire.inbox.to
  wire.settle(true)
  assert.equal(arena.lentChunks, 3)
  arena.giveBack(chunk)
  wire.inbox.dispose()
  assert.equal(arena.lentChunks, 1)
})

test('bulk chunks are limited in number; those who come later make do with their own size', () => {
  const { arena, memory } = memoryOf(4096, 64_000_000)
  const wires = Array.from({ length: 300 }, () => new Wire(memory, 0))
  for (const wire of wires) {
    wire.read(1)
    wire.inbox.from = wire.inbox.to
    wire.settle(true)
  }
  assert.equal(wires.filter(({ viewLength }) => viewLength === SHARED_BYTES).length, 256)
  assert.equal(wires.filter(({ viewLength }) => viewLength === 4096).length, 44)
  for (const { inbox } of wires) inbox.dispose()
  assert.equal(arena.lentChunks, 1)
  const next = new Wire(memory, 0)
  next.read(1)
  next.inbox.from = next.inbox.to
  next.settle(true)
  assert.equal(next.viewLength, SHARED_BYTES, 'they come back')
})

test('an arena that is used up: the connection is to be given up', () => {
  const { memory } = memoryOf(16_384, SHARED_BYTES + 4096)
  const wire = new Wire(memory, 0)
  wire.read(10)
  assert.equal(wire.inbox.settle(false), null)
})

test('room counts what is kept, not where it stands', () => {
  const { memory } = memoryOf(4096)
  const wire = new Wire(memory, 0)
  wire.read(100)
  wire.settle(false)
  wire.read(wire.viewLength)
  wire.settle(false)
  assert.equal(wire.inbox.room, 0)
  wire.inbox.from += 1000
  assert.equal(wire.inbox.room, 1000)
  assert.equal(wire.viewLength, MARGIN / 2, 'a full chunk reads into its margin')
})

test(`any reads, uses and gifts of several connections (seed ${SEED})`, () => {
  const random = new Random(SEED)
  const { arena, memory } = memoryOf(16_384, 30_000_000)
  const gifts: Chunk[] = []
  const wires = Array.from({ length: 8 }, (_, i) => ({ wire: new Wire(memory, i * 31), expected: i * 31 }))
  for (let round = 0; round < (IS_LONG ? 200_000 : 5000); round++) {
    const peer = random.pick(wires)
    const { inbox } = peer.wire
    if (random.once(6)) {
      // Between reads more may be used up, but nothing given away.
      const used = random.below(inbox.length + 1)
      inbox.from += used
      peer.expected += used
      assert.equal(inbox.surrender(), null)
      continue
    }
    if (inbox.room <= 0) {
      peer.expected += inbox.length
      inbox.from = inbox.to
    }
    peer.wire.read(random.between(1, Math.min(peer.wire.viewLength, random.pick([1, 50, 5000, SHARED_BYTES]))))
    check(arena, inbox, peer.expected)
    const used = random.once(3) ? inbox.length : random.below(inbox.length + 1)
    inbox.from += used
    peer.expected += used
    if (random.once(4) && inbox.canSurrender) gifts.push(inbox.surrender()!)
    const before = inbox.to
    peer.wire.settle(random.once(3))
    assert.equal(inbox.to - before, inbox.moved)
    check(arena, inbox, peer.expected)
    while (gifts.length > 20 || (gifts.length > 0 && random.once(3))) arena.giveBack(gifts.shift()!)
  }
  for (const { wire } of wires) wire.inbox.dispose()
  for (const chunk of gifts) arena.giveBack(chunk)
  assert.equal(arena.lentChunks, 1)
})
