/** Rules of heads: limits of Connection options (RFC 9110 7.6.1), protected fields, and Via (RFC 9110 7.6.3). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BadMessage } from '../../src/http1/bad-message.ts'
import { FieldKinds, KIND } from '../../src/http1/field-kinds.ts'
import { ForwardedLines } from '../../src/http1/forwarded.ts'
import { BodySpans } from '../../src/http1/body.ts'
import { Head } from '../../src/http1/head.ts'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import { readConnection } from '../../src/http1/persistence.ts'
import { checkRequestFields, checkRequestStart, checkResponse } from '../../src/http1/head-rules.ts'

const BUFFER_BYTES = 32_768
const bufferAt = arena.reserve(BUFFER_BYTES)
const kinds = new FieldKinds('activityid')

function parsed(startLine: string, fields: readonly string[]): Head {
  const isRequest = !startLine.startsWith('HTTP')
  const parser = isRequest ? Parser.forRequests(new BodySpans())! : Parser.forResponses(new BodySpans())!
  const head = new Head(128)
  const raw = `${[startLine, ...fields].join('\r\n')}\r\n\r\n`
  parser.execute(bufferAt, bufferAt + arena.bytes.latin1Write(raw, bufferAt), head, new Head(1), !isRequest)
  assert.equal(parser.isHeadComplete, true)
  parser.release()
  head.end = bufferAt + raw.length
  head.fieldsAt = bufferAt + startLine.length + 2
  kinds.classify(arena.bytes, head)
  return head
}

function checkRequest(head: Head): BadMessage | undefined {
  return checkRequestStart(arena.bytes, head, bufferAt, 'http') ?? checkRequestFields(arena.bytes, head)
}

const rows: readonly (readonly [name: string, fields: readonly string[], refused: boolean])[] = [
  ['thirty-two options', [`Connection: ${Array(32).fill('y').join(',')}`], false],
  ['thirty-three options', [`Connection: ${Array(33).fill('y').join(',')}`], true],
  [
    'options in several fields',
    [`Connection: ${Array(20).fill('y').join(',')}`, `Connection: ${'y,'.repeat(20)}`],
    true,
  ],
  ['empty options', [`Connection: close${','.repeat(40)}`], true],
  ['thirty-two fields', Array(32).fill('Connection: y'), false],
  ['thirty-three fields', Array(33).fill('Connection: y'), true],
  ['commas of other fields', ['Connection: close', `X: ${','.repeat(40)}`], false],
  [
    'as many as a head can hold, beside many fields',
    [`Connection: ${'y,'.repeat(7000)}`, ...Array(100).fill('X: y')],
    true,
  ],
]
for (const [name, fields, refused] of rows) {
  test(`7.6.1: ${name} ${refused ? 'are refused' : 'pass'} in a request`, () => {
    const head = parsed('GET / HTTP/1.1', ['Host: h', ...fields])
    const broken = checkRequest(head)
    assert.equal(broken?.status, refused ? 400 : undefined)
    if (broken !== undefined) assert.match(broken.rule, /RFC 9110 7\.6\.1/)
  })
  test(`7.6.1: ${name} ${refused ? 'are refused' : 'pass'} in a response`, () => {
    const head = parsed('HTTP/1.1 200 OK', ['Content-Length: 0', ...fields])
    const broken = checkResponse(arena.bytes, head, bufferAt)
    assert.equal(broken?.status, refused ? 502 : undefined)
  })
}

const OWN: readonly (readonly [field: string, kind: number])[] = [
  ['Host: h', KIND.HOST],
  ['Content-Length: 0', KIND.CONTENT_LENGTH],
  ['Expect: 100-continue', KIND.EXPECT],
  ['X-Forwarded-For: 192.0.2.1', KIND.X_FORWARDED_FOR],
  ['X-Forwarded-Proto: https', KIND.X_FORWARDED_PROTO],
  ['X-Forwarded-Host: h', KIND.X_FORWARDED_HOST],
  ['X-Forwarded-Port: 1', KIND.X_FORWARDED_OTHER],
  ['X-Real-IP: 192.0.2.1', KIND.X_FORWARDED_OTHER],
  ['X-Original-URL: /a', KIND.X_FORWARDED_OTHER],
  ['X-REWRITE-URL: /a', KIND.X_FORWARDED_OTHER],
  ['Forwarded: for=192.0.2.1', KIND.FORWARDED],
  ['activityid: a', KIND.CORRELATION],
  ['Via: 1.1 a', KIND.VIA],
]

test("7.6.1: the gateway's own fields are not nominated away, others are", () => {
  const names = OWN.map(([field]) => field.slice(0, field.indexOf(':')))
  const options = [...names, ...names.map(name => name.toUpperCase()), 'x-hop'].join(', ')
  const head = parsed('GET / HTTP/1.1', [...OWN.map(([field]) => field), 'X-Hop: y', `Connection: ${options}`])
  assert.equal(checkRequest(head), undefined)
  assert.equal(readConnection(arena.bytes, head), true)
  for (const [index, [field, kind]] of OWN.entries()) assert.equal(head.kinds[index], kind, field)
  assert.equal(head.kinds[OWN.length], KIND.NOMINATED)
})

for (const form of ['x-forwarded', 'forwarded', 'both', 'none'] as const) {
  for (const trusted of [false, true]) {
    test(`7.6.3: Via names the version received: ${form}, ${trusted ? 'trusted' : 'untrusted'}`, () => {
      const lines = new ForwardedLines(form, '192.0.2.7', 'http', trusted, 'sluice')
      const linesOf = (version: string) => {
        const head = parsed(`GET / HTTP/${version}`, ['Host: h'])
        assert.equal(checkRequest(head), undefined)
        return Buffer.from(lines.lines(arena.bytes, head, 'h')).toString('latin1')
      }
      const of11 = linesOf('1.1')
      assert.ok(of11.startsWith('Via: 1.1 sluice\r\n'))
      assert.equal(linesOf('1.0'), of11.replace('Via: 1.1', 'Via: 1.0'))
      assert.equal(linesOf('1.1'), of11)
    })
  }
}
