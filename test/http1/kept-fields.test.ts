/** What of a request's fields is kept for its fault: nearly nothing, unless it speaks of XML or a sequence reads it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FieldKinds, KIND } from '../../src/http1/field-kinds.ts'
import { Head } from '../../src/http1/head.ts'
import { keptFields, NOTHING_KEPT } from '../../src/http1/kept-fields.ts'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import { MessageReader } from '../../src/http1/message-reader.ts'

const LIMITS = { headBytesMax: 16_384, targetBytesMax: 8192, extensionBytesMax: 1024, trailerBytesMax: 8192 }
const kinds = new FieldKinds('activityid')

function heads(): { scratch: Head; pin(): Head; unpin(): void } {
  return { scratch: new Head(64), pin: () => new Head(64), unpin: () => {} }
}

/** Of a request with these lines, while sequences read these names. */
function kept(lines: readonly string[], names: readonly string[] = []): readonly string[] {
  kinds.keep(names)
  const text = `GET / HTTP/1.1\r\nHost: a\r\n${lines.map(line => `${line}\r\n`).join('')}\r\n`
  const chunk = arena.lend(text.length)!
  const reader = new MessageReader(Parser.forRequests()!, arena, kinds, heads(), heads(), LIMITS)
  try {
    arena.bytes.latin1Write(text, chunk.offset)
    reader.begin(chunk.offset)
    assert.ok(reader.readHead(chunk.offset, chunk.offset + text.length, false))
    return keptFields(arena.bytes, reader.head, kinds)
  } finally {
    reader.dispose()
    arena.giveBack(chunk)
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
  test(`nothing is kept of ${JSON.stringify(lines)}`, () => assert.equal(kept(lines), NOTHING_KEPT))
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
  test(`kept of ${said} while ${JSON.stringify(names)} are read`, () => assert.deepEqual(kept(lines, names), expected))
}

test('other names take the place of those before, and what a proxy knows keeps its kind', () => {
  assert.deepEqual(kept(['X-One: 1'], ['x-one']), ['x-one', '1'])
  assert.equal(kept(['X-One: 1'], ['x-two']), NOTHING_KEPT)
  kinds.keep(['host', 'te', 'x-forwarded-for', 'x-forwarded-port'])
  assert.notEqual(kinds.keptKinds & (1 << KIND.HOST), 0)
  assert.equal(kinds.keptKinds & 1, 0)
})
