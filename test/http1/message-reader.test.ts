/** What a chunk may have around its data before it counts as extension (RFC 9112 7.1.1, chunk.max_extension_bytes). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FieldKinds } from '../../src/http1/field-kinds.ts'
import { Head } from '../../src/http1/head.ts'
import { arena, found, Parser } from '../../src/http1/llhttp.ts'
import { type HeadSource, MessageReader } from '../../src/http1/message-reader.ts'

const EXTENSION_BYTES_MAX = 1024
const BUFFER_BYTES = 16_384
const bufferAt = arena.carve(BUFFER_BYTES)

function heads(): HeadSource {
  const scratch = new Head(16)
  return { scratch, pin: () => scratch, unpin: () => undefined }
}

/** Reads a chunked request in pieces of so many bytes; answers what broke, or ''. */
function read(body: string, pieceBytes: number): string {
  const reader = new MessageReader(Parser.forRequests()!, arena, new FieldKinds('activityid'), heads(), heads(), {
    headBytesMax: 8192,
    targetBytesMax: 1024,
    extensionBytesMax: EXTENSION_BYTES_MAX,
    trailerBytesMax: 1024,
  })
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
  const reason = reader.broken?.rule ?? (found.message ? '' : 'not complete')
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
    test(`chunks without extensions are not limited: ${name}, read by ${pieceBytes}`, () => {
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
    test(`chunk extensions are counted: ${name}, read by ${pieceBytes}`, () => {
      assert.match(read(body + LAST, pieceBytes), /RFC 9112 7\.1\.1/)
    })
  }
}
