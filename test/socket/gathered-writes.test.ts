/** Writes that may wait until a turn of the event loop ends: order, endings, a peer that takes nothing, a lost peer. */
import assert from 'node:assert/strict'
import { connect as connectTcp, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { WRITE } from '../../src/socket/byte-socket.ts'
import { gather, releaseSlot, type Slot } from '../../src/socket/gathered-writes.ts'
import { eventually } from '../harness/peers.ts'
import { level, Recorder } from './secured.ts'

const IS_HANDLES = level.name === 'handles'
const open: { close(): unknown }[] = []
after(() => {
  for (const each of open) each.close()
})

const IDLE = { flush: () => {} }

interface Pair {
  readonly ours: Recorder
  readonly peer: Socket
  /** What the peer has received. */
  received(): string
}

async function pair(isRead = true): Promise<Pair> {
  const ours = new Recorder()
  const listener = await level.listen({ host: '127.0.0.1', port: 0, reusePort: false }, socket => {
    ours.socket = socket
    socket.attach(ours, ours.view)
  })
  open.push(listener)
  const peer = connectTcp(listener.port, '127.0.0.1')
  const pieces: Buffer[] = []
  if (isRead) peer.on('data', (bytes: Buffer) => pieces.push(bytes))
  peer.on('error', () => {})
  open.push({ close: () => peer.destroy() })
  peer.write('x')
  await eventually('the first byte', () => ours.text === 'x')
  return { ours, peer, received: () => Buffer.concat(pieces).toString('latin1') }
}

/** Makes the thread gather: writes are gathered where a turn has many of them. */
async function raiseLoad(turns = 30): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    await nextTurn()
    for (let i = 0; i < 30; i++) {
      const slot = gather(IDLE, Buffer.from('x'))
      if (slot !== null) releaseSlot(slot)
    }
  }
}

/** Gathers until the peer takes no more, turn after turn; returns the text of all writes. */
async function fill({ ours }: Pair): Promise<string> {
  let text = ''
  while (!ours.has('BLOCKED')) {
    const piece = String(text.length).padStart(4096, '.')
    const written = ours.socket.write(Buffer.from(piece), true)
    text += piece
    if (written === WRITE.PENDING) break
    assert.equal(written, WRITE.DONE)
    await raiseLoad(1)
  }
  return text
}

const LONG = 'z'.repeat(5000)

const WRITES: Record<string, readonly (readonly [text: string, gathers: boolean])[]> = {
  'two gathered writes': [
    ['one', true],
    ['two', true],
  ],
  'a direct write behind a gathered one': [
    ['one', true],
    ['two', false],
  ],
  'a gathered write behind a direct one': [
    ['one', false],
    ['two', true],
  ],
  'a gathered write that is too long to gather': [
    ['one', true],
    [LONG, true],
    ['two', true],
  ],
}

for (const [name, writes] of Object.entries(WRITES)) {
  for (const ending of ['none', 'end', 'destroy'] as const) {
    test(`${name}, then ${ending}: the peer gets all bytes in order`, async () => {
      const { ours, received } = await pair()
      await raiseLoad()
      const memory = Buffer.alloc(LONG.length)
      for (const [text, gathers] of writes) {
        memory.latin1Write(text, 0)
        assert.equal(ours.socket.write(memory.subarray(0, text.length), gathers), WRITE.DONE)
        // The memory is free.
        memory.fill(0)
      }
      if (ending !== 'none') ours.socket[ending]()
      const all = writes.map(([text]) => text).join('')
      await eventually('all bytes', () => received() === all)
    })
  }
}

test('gathered bytes have left before the owner hears of further bytes', async () => {
  const { ours, peer, received } = await pair()
  await raiseLoad()
  let turns = 0
  ours.onData = bytes => {
    turns++
    ours.socket.write(bytes, true)
  }
  for (let i = 0; i < 50; i++) {
    peer.write(`${i},`)
    if (i % 7 === 0) await nextTurn()
  }
  const all = Array.from({ length: 50 }, (_, i) => `${i},`).join('')
  await eventually('the echo', () => received() === all)
  assert.ok(turns > 0)
})

test('few writes in a turn leave at once', { skip: !IS_HANDLES }, async () => {
  for (let turn = 0; turn < 200; turn++) await nextTurn()
  for (let write = 0; write < 100; write++) {
    const slot = gather(IDLE, Buffer.from('x'))
    if (slot !== null) releaseSlot(slot)
    await nextTurn()
  }
  assert.equal(gather(IDLE, Buffer.from('x')), null)
})

test('a peer that takes nothing: the owner hears that bytes wait, and that they have left; none is lost', async () => {
  const each = await pair(false)
  const { ours, peer } = each
  await raiseLoad()
  const text = await fill(each)
  if (IS_HANDLES) await ours.called('BLOCKED')
  let received = ''
  peer.on('data', (bytes: Buffer) => {
    received += bytes.toString('latin1')
  })
  await ours.called('DRAINED')
  await eventually('all bytes', () => received.length === text.length)
  assert.equal(received, text)
})

test('a gathered write to a lost peer is reported', async () => {
  const { ours, peer } = await pair()
  await raiseLoad()
  ours.socket.setReading(false)
  peer.resetAndDestroy()
  await eventually('the failure', () => {
    if (!ours.has('WRITE') && !ours.has('LOST')) ours.socket.write(Buffer.from('late'), true)
    return ours.has('WRITE') || ours.has('LOST')
  })
  assert.ok(!ours.has('ERROR'))
})

/** How many writes can be gathered now. */
async function freeSlots(): Promise<number> {
  await raiseLoad()
  const slots: Slot[] = []
  for (;;) {
    const slot = gather(IDLE, Buffer.from('x'))
    if (slot === null) break
    slots.push(slot)
  }
  for (const slot of slots) releaseSlot(slot)
  return slots.length
}

test('sockets that close while gathered bytes wait return their memory', { skip: !IS_HANDLES }, async () => {
  const before = await freeSlots()
  for (const ending of ['reset', 'destroy'] as const) {
    const each = await pair(false)
    await raiseLoad()
    await fill(each)
    await each.ours.called('BLOCKED')
    assert.equal(await freeSlots(), before - 1)
    each.ours.socket[ending]()
    each.peer.destroy()
    await nextTurn()
    assert.equal(await freeSlots(), before)
  }
  assert.ok(before > 0)
})
