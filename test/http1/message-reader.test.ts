/** Limit of chunk extensions (RFC 9112 7.1.1, chunk.max_extension_bytes), and readers that run in turn. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FieldKinds } from '../../src/http1/field-kinds.ts'
import { BodySpans } from '../../src/http1/body.ts'
import { HeadPool } from '../../src/http1/head.ts'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import { MessageReader } from '../../src/http1/message-reader.ts'
import { CONNECTION_OPTION, readConnection } from '../../src/http1/persistence.ts'
import { requestedProtocols } from '../../src/http1/upgrade.ts'

const EXTENSION_BYTES_MAX = 1024
const BUFFER_BYTES = 16_384
const bufferAt = arena.reserve(BUFFER_BYTES)

const LIMITS = {
  headBytesMax: 8192,
  targetBytesMax: 1024,
  extensionBytesMax: EXTENSION_BYTES_MAX,
  trailerBytesMax: 1024,
}
const spans = new BodySpans()
const kinds = new FieldKinds('activityid')
const heads = new HeadPool(16)
const trailers = new HeadPool(16)

/** Readers of one reactor: they share scratch heads and body spans. */
function newReader(): MessageReader {
  return new MessageReader(Parser.forRequests(spans)!, kinds, heads, trailers, LIMITS)
}

/** Reads a chunked request in pieces of so many bytes; returns the rule that it breaks, or ''. */
function read(body: string, pieceBytes: number): string {
  const reader = newReader()
  const put = (text: string) => bufferAt + arena.bytes.latin1Write(text, bufferAt)
  reader.begin(bufferAt)
  const end = put('POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n')
  assert.equal(reader.readHead(bufferAt, end, false), true)
  for (let at = 0; at < body.length; at += pieceBytes) {
    const to = put(body.slice(at, at + pieceBytes))
    // Each piece lands where the one before it stood.
    reader.moveBy(bufferAt - reader.parsedTo)
    if (!reader.readBody(to)) break
  }
  const reason = reader.error?.rule ?? (reader.isComplete ? '' : 'not complete')
  reader.dispose()
  return reason
}

function chunk(bytes: number, size: string = bytes.toString(16)): string {
  return `${size}\r\n${'x'.repeat(bytes)}\r\n`
}

const LAST = '0\r\n\r\n'
const PIECES = [1, 7, 1460, BUFFER_BYTES]

/** Without extensions, any number of chunks passes. */
const unlimited: readonly (readonly [name: string, body: string])[] = [
  ['one byte each', chunk(1).repeat(5000)],
  ['seventeen bytes each', chunk(17).repeat(2000)],
  ['more than a read each', chunk(40_000).repeat(5)],
  ['sizes that differ', Array.from({ length: 600 }, (_, i) => chunk(i + 1)).join('')],
  ['eight digits for each of some hundred bytes', chunk(256, '00000100').repeat(400)],
]
for (const [name, body] of unlimited) {
  for (const pieceBytes of PIECES) {
    test(`RFC 9112 7.1.1: chunks without extensions are not limited: ${name}, read by ${pieceBytes}`, () => {
      assert.equal(read(body + LAST, pieceBytes), '')
    })
  }
}

/** More than 1024 bytes in all, in portions however small. */
const limited: readonly (readonly [name: string, body: string])[] = [
  ['thirteen bytes each', chunk(1, '1;a=567890123').repeat(5000)],
  ['two bytes each', chunk(1, '1;a').repeat(5000)],
  ['a zero each', chunk(1, '01').repeat(5000)],
  ['zeros in front of each size', chunk(1, '0000000000000001').repeat(500)],
  ['one that is long', chunk(1, `1;a=${'b'.repeat(1200)}`)],
  ['the last chunk', `0;a=${'b'.repeat(1200)}\r\n\r\n`],
  ['a long one behind short ones', chunk(1, '1;a').repeat(200) + chunk(1, `1;a=${'b'.repeat(1000)}`)],
]
for (const [name, body] of limited) {
  for (const pieceBytes of PIECES) {
    test(`RFC 9112 7.1.1: chunk extensions are counted: ${name}, read by ${pieceBytes}`, () => {
      assert.match(read(body + LAST, pieceBytes), /RFC 9112 7\.1\.1/)
    })
  }
}

const WIRE_BYTES = 4096

/** A reader of the same reactor with bytes of its own. */
function newWire(text: string) {
  const at = arena.reserve(WIRE_BYTES)
  arena.bytes.latin1Write(text, at)
  const reader = newReader()
  reader.begin(at)
  return { reader, at, end: at + text.length }
}

const text = (at: number, length: number) => arena.bytes.latin1Slice(at, at + length)

test('two readers in turn: each keeps whether its own message is complete', () => {
  const whole = newWire('GET /whole HTTP/1.1\r\nHost: h\r\n\r\n')
  const partial = newWire('POST /partial HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello')
  assert.ok(whole.reader.readHead(whole.at, whole.end, false))
  assert.ok(partial.reader.readHead(partial.at, partial.end, false))
  assert.equal(whole.reader.isComplete, true)
  assert.equal(partial.reader.isComplete, false)
  for (const { reader } of [whole, partial]) reader.dispose()
})

test('two readers in turn: Connection options belong to the head that lists them', () => {
  const closing = newWire('GET / HTTP/1.1\r\nHost: h\r\nConnection: close, upgrade\r\n\r\n')
  const plain = newWire('GET / HTTP/1.1\r\nHost: h\r\n\r\n')
  assert.ok(closing.reader.readHead(closing.at, closing.end, false))
  const closingHead = closing.reader.pinHead()
  assert.equal(readConnection(arena.bytes, closingHead), false)
  assert.ok(plain.reader.readHead(plain.at, plain.end, false))
  assert.equal(readConnection(arena.bytes, plain.reader.head), true)
  assert.equal(closingHead.connectionOptions, CONNECTION_OPTION.CLOSE | CONNECTION_OPTION.UPGRADE)
  assert.equal(requestedProtocols(arena.bytes, plain.reader.head, 0), '')
  for (const { reader } of [closing, plain]) reader.dispose()
})

test('two readers in turn: body spans of one are never taken for those of the other', () => {
  const head = 'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n'
  const wires = ['first', 'other'].map(body => newWire(head + body))
  for (const { reader, at, end } of wires) assert.ok(reader.readHead(at, end, false))
  for (const [i, { reader, end }] of wires.entries()) {
    assert.ok(reader.readBody(end))
    assert.equal(reader.spanCount, 1)
    assert.equal(text(spans.offsets[0]!, spans.offsets[1]!), ['first', 'other'][i])
  }
  assert.throws(() => wires[0]!.reader.spanCount, /another parser had run/)
  assert.equal(wires[1]!.reader.spanCount, 1)
  for (const { reader } of wires) reader.dispose()
})
