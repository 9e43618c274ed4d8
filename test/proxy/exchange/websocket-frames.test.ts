/** Messages found in random frames that reads cut anywhere, against the frames that were written. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closeFrame, MessageStream } from '../../../src/proxy/exchange/websocket-frames.ts'
import { IS_LONG, Random } from '../../harness/random.ts'

const RUNS = IS_LONG ? 20_000 : 300

interface Written {
  readonly bytes: Buffer
  /** Number of the message that the frame belongs to; -1 for a control frame. */
  readonly message: number
}

function frame(random: Random, opcode: number, isLast: boolean, message: number): Written {
  const isControl = opcode >= 8
  const length = random.below(random.below(10) === 0 && !isControl ? 70_000 : 126)
  const mask = random.below(2) === 0 ? 0 : 0x80
  const extended = length < 126 ? Buffer.alloc(0) : Buffer.alloc(length < 65_536 ? 2 : 8)
  if (extended.length === 2) extended.writeUInt16BE(length)
  if (extended.length === 8) extended.writeBigUInt64BE(BigInt(length))
  const short = length < 126 ? length : length < 65_536 ? 126 : 127
  const rest = Buffer.alloc((mask === 0 ? 0 : 4) + length, random.below(256))
  const bytes = Buffer.concat([Buffer.from([(isLast ? 0x80 : 0) | opcode, short | mask]), extended, rest])
  return { bytes, message }
}

/** Messages of one to three frames, with control frames anywhere. */
function conversation(random: Random): readonly Written[] {
  const frames: Written[] = []
  for (let message = 0; message < 6; message++) {
    const parts = 1 + random.below(3)
    for (let part = 0; part < parts; part++) {
      if (random.below(3) === 0) frames.push(frame(random, 9 + random.below(2), true, -1))
      frames.push(frame(random, part === 0 ? 1 + random.below(2) : 0, part === parts - 1, message))
    }
  }
  return frames
}

test(`${RUNS} random conversations: the bytes of messages that do not pass are left out, and no other byte is`, () => {
  for (let seed = 1; seed <= RUNS; seed++) {
    const random = new Random(seed)
    const frames = conversation(random)
    const passing = Array.from({ length: 6 }, () => random.below(2) === 0)
    let asked = 0
    const stream = new MessageStream({ isClosing: false, admitsMessage: () => passing[asked++]! })
    const all = Buffer.concat(frames.map(({ bytes }) => bytes))
    const passed: Buffer[] = []
    for (let at = 0; at < all.length; ) {
      const read = Math.min(all.length, at + 1 + random.below(random.below(2) === 0 ? 4 : 30_000))
      while (at < read) {
        const next = stream.next(all, at, read)
        assert.ok(next > at && next <= read)
        if (stream.passes) passed.push(all.subarray(at, next))
        at = next
      }
    }
    const expected = frames.filter(({ message }) => message < 0 || passing[message]!).map(({ bytes }) => bytes)
    assert.equal(asked, 6, `seed ${seed}`)
    assert.ok(Buffer.concat(passed).equals(Buffer.concat(expected)), `seed ${seed}`)
    assert.equal(stream.endWithClose(false), true)
  }
})

test('a close frame follows a whole frame alone, and only once', () => {
  const gate = { isClosing: false, admitsMessage: () => true }
  const stream = new MessageStream(gate)
  const whole = Buffer.from([0x81, 2, 97, 98])
  stream.next(whole, 0, 3)
  assert.equal(stream.endWithClose(false), false)
  gate.isClosing = true
  stream.next(whole, 3, 4)
  assert.equal(stream.passes, true)
  assert.deepEqual([stream.endWithClose(false), stream.endWithClose(false)], [true, false])
  assert.equal(stream.next(Buffer.from(closeFrame(1000, 'bye', true), 'latin1'), 0, 3), 3)
  assert.deepEqual([stream.passes, stream.hasClosed], [false, true])
})

test('a close frame has its status and reason, masked for a server (RFC 6455 5.3, 5.5.1)', () => {
  assert.deepEqual(Buffer.from(closeFrame(1008, 'no', false), 'latin1'), Buffer.from([0x88, 4, 3, 240, 110, 111]))
  const masked = Buffer.from(closeFrame(1008, 'no', true), 'latin1')
  assert.deepEqual([masked[0], masked[1], masked.length], [0x88, 0x84, 10])
  const payload = masked.subarray(6).map((byte, i) => byte ^ masked[2 + i]!)
  assert.deepEqual(Buffer.from(payload), Buffer.from([3, 240, 110, 111]))
  assert.equal(closeFrame(1008, 'x'.repeat(500), false).length, 127)
})
