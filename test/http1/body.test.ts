/** Bodies encoded in place, compared with a plain encoder. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BodySpans, encodeBody, LAST_CHUNK } from '../../src/http1/body.ts'
import { CHUNKED, UNTIL_CLOSE } from '../../src/http1/framing.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'

const MARGIN = 32
const body = new BodySpans()

/** Puts the spans into the bytes; returns their text. */
function lay(bytes: Buffer, spans: readonly (readonly [at: number, text: string])[]): string {
  bytes.fill('.')
  spans.forEach(([at, text], i) => {
    bytes.latin1Write(text, at)
    body.offsets[2 * i] = at
    body.offsets[2 * i + 1] = text.length
  })
  return spans.map(([, text]) => text).join('')
}

const out = (bytes: Buffer) => bytes.latin1Slice(body.at, body.at + body.length)

test('without spans there is nothing to write', () => {
  assert.equal(encodeBody(Buffer.alloc(64), body, 0, CHUNKED, 0), false)
  assert.equal(encodeBody(Buffer.alloc(64), body, 0, 5, 0), false)
})

test('the last chunk has no trailers', () => {
  assert.equal(LAST_CHUNK, '0\r\n\r\n')
})

/** Sizes around those at which the size line grows by a digit. */
for (const size of [1, 9, 10, 15, 16, 17, 255, 256, 4095, 4096, 65_535, 65_536, 100_000]) {
  test(`a chunk of ${size} bytes gets its size line in front and CRLF behind`, () => {
    const bytes = Buffer.alloc(size + 3 * MARGIN)
    const text = lay(bytes, [[MARGIN, 'x'.repeat(size)]])
    assert.ok(encodeBody(bytes, body, 1, CHUNKED, 0))
    assert.equal(out(bytes), `${size.toString(16)}\r\n${text}\r\n`)
    assert.equal(body.at + body.length, MARGIN + size + 2, 'the data did not move')
  })
}

test('data that begins at the floor is moved behind its size line', () => {
  const bytes = Buffer.alloc(256)
  const text = lay(bytes, [
    [40, 'abc'],
    [45, 'defgh'],
    [60, 'ijklmnopqrst'],
  ])
  assert.ok(encodeBody(bytes, body, 3, CHUNKED, 40))
  assert.equal(out(bytes), `14\r\n${text}\r\n`)
  assert.equal(bytes.latin1Slice(0, 40), '.'.repeat(40), 'nothing in front of the floor is touched')
})

test(`any spans, any floor: the same as a plain encoder (seed ${SEED})`, () => {
  const random = new Random(SEED)
  for (let round = 0; round < (IS_LONG ? 500_000 : 20_000); round++) {
    const size = random.once(50) ? 70_000 : 1200
    const bytes = Buffer.allocUnsafe(size + 3 * MARGIN)
    const floor = random.below(40)
    let at = floor + random.below(40)
    const spans: (readonly [number, string])[] = []
    const count = random.between(1, 12)
    for (let i = 0; i < count && at < size - 2; i++) {
      const length = random.between(1, random.once(4) ? size : 30)
      const text = random.text(Math.min(length, size - at), 'abcdefghij')
      spans.push([at, text])
      at += text.length + random.below(9)
    }
    const text = lay(bytes, spans)
    const framing = random.pick([CHUNKED, CHUNKED, UNTIL_CLOSE, text.length])
    assert.ok(encodeBody(bytes, body, spans.length, framing, floor))
    assert.equal(out(bytes), framing === CHUNKED ? `${text.length.toString(16)}\r\n${text}\r\n` : text)
    assert.ok(body.at >= floor)
    assert.equal(bytes.latin1Slice(0, floor), '.'.repeat(floor), 'nothing in front of the floor is touched')
  }
})
