/** Captured request fields: those that mention XML, and those that a fault sequence reads. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FieldKinds, KIND } from '../../src/http1/field-kinds.ts'
import { BodySpans } from '../../src/http1/body.ts'
import { HeadPool } from '../../src/http1/head.ts'
import { captureFields, NO_CAPTURED_FIELDS } from '../../src/http1/captured-fields.ts'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import { MessageReader } from '../../src/http1/message-reader.ts'

const LIMITS = { headBytesMax: 16_384, targetBytesMax: 8192, extensionBytesMax: 1024, trailerBytesMax: 8192 }
const kinds = new FieldKinds('activityid')
const body = new BodySpans()

/** Captured fields of a request with these lines, while sequences read these names. */
function captured(lines: readonly string[], names: readonly string[] = []): readonly string[] {
  kinds.capture(names)
  const text = `GET / HTTP/1.1\r\nHost: a\r\n${lines.map(line => `${line}\r\n`).join('')}\r\n`
  const chunk = arena.acquire(text.length)!
  const reader = new MessageReader(Parser.forRequests(body)!, kinds, new HeadPool(64), new HeadPool(64), LIMITS)
  try {
    arena.bytes.latin1Write(text, chunk.offset)
    reader.begin(chunk.offset)
    assert.ok(reader.readHead(chunk.offset, chunk.offset + text.length, false))
    return captureFields(arena.bytes, reader.head, kinds)
  } finally {
    reader.dispose()
    arena.release(chunk)
  }
}

const NOTHING: readonly (readonly string[])[] = [
  [],
  ['Accept: */*'],
  ['Accept: application/json, text/plain, */*'],
  ['Accept: '],
  ['Accept: xm'],
  ['Accept: x-ml, xm l'],
  ['Content-Type: application/json'],
  ['X-Accept: application/xml', 'Acceptx: application/xml', 'Bccept: application/xml'],
  ['Authorization: Bearer xml'],
]

for (const lines of NOTHING) {
  test(`nothing is captured of ${JSON.stringify(lines)}`, () => assert.equal(captured(lines), NO_CAPTURED_FIELDS))
}

const SOMETHING: readonly (readonly [
  lines: readonly string[],
  names: readonly string[],
  expected: readonly string[],
])[] = [
  [['Accept: application/xml'], [], ['accept', 'application/xml']],
  [['Accept: xml'], [], ['accept', 'xml']],
  [['Accept: axml'], [], ['accept', 'axml']],
  [['Accept: abxml'], [], ['accept', 'abxml']],
  [['Accept: abcXmLd'], [], ['accept', 'abcXmLd']],
  [['ACCEPT: text/xml', 'accept: a/b', 'Accept: b/xml'], [], ['accept', 'text/xml', 'accept', 'b/xml']],
  [['Content-Type: text/xml; charset=utf-8'], [], ['content-type', 'text/xml; charset=utf-8']],
  [['SOAPAction: ""'], [], ['soapaction', '""']],
  [[`Accept: application/xml${','.repeat(5000)}`], [], ['accept', `application/xml${','.repeat(1009)}`]],
  [
    ['Accept: a/b', 'X-Who: me'],
    ['accept', 'x-who'],
    ['accept', 'a/b', 'x-who', 'me'],
  ],
  [['User-Agent: me/1', 'X-Who: me'], ['user-agent'], ['user-agent', 'me/1']],
  [['X-Forwarded-For: a', 'X-Forwarded-Port: 1'], ['x-forwarded-port'], ['x-forwarded-port', '1']],
  [['activityid: 7'], ['activityid'], ['activityid', '7']],
]

for (const [lines, names, expected] of SOMETHING) {
  const said = JSON.stringify(lines).slice(0, 60)
  test(`captured of ${said} while ${JSON.stringify(names)} are read`, () =>
    assert.deepEqual(captured(lines, names), expected))
}

test('new names replace the earlier ones, and fields that a proxy knows keep their kind', () => {
  assert.deepEqual(captured(['X-One: 1'], ['x-one']), ['x-one', '1'])
  assert.equal(captured(['X-One: 1'], ['x-two']), NO_CAPTURED_FIELDS)
  kinds.capture(['host', 'te', 'x-forwarded-for', 'x-forwarded-port'])
  assert.notEqual(kinds.capturedKinds & (1 << KIND.HOST), 0)
  assert.equal(kinds.capturedKinds & 1, 0)
})
