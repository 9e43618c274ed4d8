/** Messages of WebSocket clients (RFC 6455 5), in pieces of every length, and what breaks the protocol. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BrokenFrames, frameOf, WebSocketReader } from '../../../src/proxy/exchange/websocket-reader.ts'
import { Random } from '../../harness/random.ts'
import { frame, type FrameParts } from '../../harness/websocket-frames.ts'

const LONGEST = 100_000

/** Messages as `opcode text`, or the status of the close frame. */
function read(bytes: Buffer, pieces: number | ((at: number) => number)): readonly string[] {
  const reader = new WebSocketReader(LONGEST)
  const found: string[] = []
  try {
    for (let at = 0; at < bytes.length; ) {
      const length = Math.max(1, typeof pieces === 'number' ? pieces : pieces(at))
      let piece = bytes.subarray(at, at + length)
      at += length
      for (;;) {
        reader.position = 0
        const message = reader.next(piece)
        if (message === null) break
        found.push(`${message.opcode} ${message.payload.toString()}`)
        piece = piece.subarray(reader.position)
      }
    }
  } catch (error) {
    if (!(error instanceof BrokenFrames)) throw error
    found.push(`closed ${error.status}`)
  }
  return found
}

const LONG = 'x'.repeat(70_000)
const MIDDLE = 'y'.repeat(300)
const status = (code: number, reason = '') => Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)])

const VALID: readonly (readonly [what: string, frames: readonly Buffer[], messages: readonly string[]])[] = [
  ['5.6: text', [frame('a'), frame('ä')], ['1 a', '1 ä']],
  ['5.2: lengths of 7, 16 and 64 bits', [frame('a'), frame(MIDDLE), frame(LONG)], ['1 a', `1 ${MIDDLE}`, `1 ${LONG}`]],
  ['5.6: an empty message', [frame(''), frame('b')], ['1 ', '1 b']],
  [
    '5.4: fragments, with control frames between them',
    [
      frame('a', { isLast: false }),
      frame('p', { opcode: 9 }),
      frame('', { opcode: 0, isLast: false }),
      frame('q', { opcode: 10 }),
      frame('b', { opcode: 0 }),
    ],
    ['9 p', '10 q', '1 ab'],
  ],
  [
    '5.5.1: a close frame',
    [frame(status(1000, 'bye'), { opcode: 8 }), frame('', { opcode: 8 })],
    ['8 \u0003\ufffdbye', '8 '],
  ],
]

test('5: messages are read whole, in pieces of every length', () => {
  for (const [what, frames, messages] of VALID) {
    const bytes = Buffer.concat(frames)
    for (const pieces of [bytes.length, 1, 2, 3, 5, 7, 64])
      assert.deepEqual(read(bytes, pieces), messages, `${what}, ${pieces}`)
  }
})

test('5.4: a split at every byte changes nothing', () => {
  const frames = [frame('ab', { isLast: false }), frame('p', { opcode: 9 }), frame(MIDDLE, { opcode: 0 }), frame('c')]
  const bytes = Buffer.concat(frames)
  for (let split = 1; split < bytes.length; split++) {
    assert.deepEqual(
      read(bytes, at => (at === 0 ? split : bytes.length)),
      ['9 p', `1 ab${MIDDLE}`, '1 c'],
      `${split}`,
    )
  }
})

const BROKEN: readonly (readonly [what: string, payload: string | Buffer, parts: FrameParts, status: number])[] = [
  ['5.1: a frame without a mask', 'a', { isMasked: false }, 1002],
  ['5.2: a reserved bit, as of a compressed message', 'a', { reserved: 0x40 }, 1002],
  ['5.2: a reserved opcode', 'a', { opcode: 3 }, 1002],
  ['5.2: a reserved control opcode', 'a', { opcode: 11 }, 1002],
  ['5.2: 16 bits for a short length', 'a', { lengthBits: 16 }, 1002],
  ['5.2: 64 bits for a short length', 'a', { lengthBits: 64 }, 1002],
  ['5.4: a continuation of nothing', 'a', { opcode: 0 }, 1002],
  ['5.5: a fragmented control frame', 'a', { opcode: 9, isLast: false }, 1002],
  ['5.5: a long control frame', 'x'.repeat(126), { opcode: 9 }, 1002],
  ['5.5.1: a status of one byte', 'x', { opcode: 8 }, 1002],
  ['7.4.1: a reserved status', status(1005), { opcode: 8 }, 1002],
  ['10.4: a message beyond the limit', 'x'.repeat(LONGEST + 1), {}, 1009],
]

test('5: what breaks the protocol closes the connection', () => {
  for (const [what, payload, parts, code] of BROKEN) {
    const bytes = Buffer.concat([frame('before'), frame(payload, parts), frame('after')])
    for (const pieces of [bytes.length, 1, 3]) {
      assert.deepEqual(read(bytes, pieces), ['1 before', `closed ${code}`], `${what}, ${pieces}`)
    }
  }
  const nested = Buffer.concat([frame('a', { isLast: false }), frame('b')])
  assert.deepEqual(read(nested, 1), ['closed 1002'])
  const endless = Buffer.concat([
    frame('x', { isLast: false }),
    ...Array.from({ length: 3 }, () => frame('x'.repeat(LONGEST / 2), { opcode: 0, isLast: false })),
  ])
  assert.deepEqual(read(endless, 999), ['closed 1009'])
})

test('5.2: frames of the gateway are read as they were written, masked or not', () => {
  for (const length of [0, 125, 126, 65_535, 65_536]) {
    const payload = Buffer.alloc(length, 'z')
    assert.deepEqual(read(Buffer.from(frameOf(1, payload, true), 'latin1'), 1000), [`1 ${payload.toString()}`])
    assert.deepEqual(Buffer.from(frameOf(1, payload, false), 'latin1'), frame(payload, { isMasked: false }))
  }
})

test('5: random bytes, and valid frames with changed bytes, are read in the same way in any pieces', () => {
  const random = new Random(6455)
  for (let round = 0; round < 2000; round++) {
    const bytes = Buffer.concat([
      frame('a', { isLast: false }),
      frame(MIDDLE, { opcode: 0 }),
      frame('b', { opcode: 9 }),
    ])
    for (let changes = random.below(4); changes >= 0; changes--) bytes[random.below(bytes.length)] = random.below(256)
    const whole = read(bytes, bytes.length)
    assert.deepEqual(
      read(bytes, () => 1 + random.below(40)),
      whole,
      bytes.toString('hex'),
    )
  }
})
