/** Hostile bodies: an error with a place, within bounded memory and linear work, and never a crash. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { build, errorOf, type GivenSettings, shown } from './build-body.ts'

const MIB = 1024 * 1024
const LONG = 'x'.repeat(2000)

interface Hostile {
  readonly name: string
  readonly type: string
  readonly body: () => string | Uint8Array
  readonly coding?: string
  readonly settings?: GivenSettings
  readonly error: RegExp
}

const HOSTILE: readonly Hostile[] = [
  {
    name: 'a million open arrays',
    type: 'application/json',
    body: () => '['.repeat(MIB),
    error: /^limit: the JSON body has more than 200 levels at character 200$/,
  },
  {
    name: 'a million open objects',
    type: 'application/json',
    body: () => '{"a":'.repeat(MIB),
    error: /^limit: the JSON body has more than 200 levels at character 1000$/,
  },
  {
    name: '32 MiB of numbers',
    type: 'application/json',
    body: () => `[${'1,'.repeat(16 * MIB)}1]`,
    error: /^limit: the JSON body has more than 500000 items at character 1000000$/,
  },
  {
    name: 'a body of 100 MiB',
    type: 'application/json',
    body: () => Buffer.alloc(100 * MIB, 0x31),
    error: /^limit: the body has more than 67108864 bytes$/,
  },
  {
    name: 'a number of two thousand digits',
    type: 'application/json',
    body: () => '1'.repeat(2000),
    error: /^limit: the JSON body has too long a number at character 0$/,
  },
  {
    name: 'a name of two thousand characters',
    type: 'application/json',
    body: () => `{"${LONG}" : 1}`,
    error: /^limit: the JSON body has too long a name at character 1$/,
  },
  {
    name: 'a text beyond its limit',
    type: 'application/json',
    body: () => `["${LONG}"]`,
    settings: { limits: { textLength: 1000 } },
    error: /^limit: the JSON body has too long a text at character 1$/,
  },
  {
    name: 'a text of a million backslashes',
    type: 'application/json',
    body: () => `"${'\\'.repeat(MIB)}`,
    error: /^malformed: the body is not JSON/,
  },
  {
    name: 'a million open elements',
    type: 'application/xml',
    body: () => '<a>'.repeat(MIB),
    error: /^limit: the XML body has more than 200 levels at line 1, column \d+$/,
  },
  {
    name: 'a hundred thousand elements side by side',
    type: 'application/xml',
    body: () => `<r>${'<a/>'.repeat(100_000)}</r>`,
    settings: { limits: { items: 50_000 } },
    error: /^limit: the XML body has more than 50000 items/,
  },
  {
    name: 'an element with sixty thousand attributes',
    type: 'text/xml',
    body: () => `<r ${Array.from({ length: 60_000 }, (_, at) => `a${at}="1"`).join(' ')}/>`,
    settings: { limits: { items: 50_000 } },
    error: /^limit: the XML body has more than 50000 items/,
  },
  {
    name: 'an expanding entity',
    type: 'application/xml',
    body: () => '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;&b;">]><a>&c;</a>',
    error: /^malformed: the body is not XML: a document type is not allowed/,
  },
  {
    name: 'an external entity',
    type: 'application/soap+xml',
    body: () => '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
    error: /^malformed: the body is not XML: a document type is not allowed/,
  },
  {
    name: 'an external parameter entity',
    type: 'application/xml',
    body: () => '<!DOCTYPE a SYSTEM "http://127.0.0.1/a.dtd"><a/>',
    error: /a document type is not allowed/,
  },
  {
    name: 'an undeclared entity',
    type: 'application/xml',
    body: () => '<a>&secret;</a>',
    error: /^malformed: the body is not XML: undefined entity at line 1/,
  },
  {
    name: 'an element name of two thousand characters',
    type: 'application/xml',
    body: () => `<${LONG}/>`,
    error: /^limit: the XML body has too long a name/,
  },
  {
    name: 'an attribute name of two thousand characters',
    type: 'application/xml',
    body: () => `<a ${LONG}="1"/>`,
    error: /^limit: the XML body has too long a name/,
  },
  {
    name: 'a text of XML beyond its limit',
    type: 'application/xml',
    body: () => `<a>${LONG}</a>`,
    settings: { limits: { textLength: 1000 } },
    error: /^limit: the XML body has too long a text/,
  },
  {
    name: 'a control character in XML',
    type: 'application/xml',
    body: () => '<a>\u0001</a>',
    error: /^malformed: the body is not XML/,
  },
  {
    name: 'a million fields of a form',
    type: 'application/x-www-form-urlencoded',
    body: () => 'a&'.repeat(MIB),
    error: /^limit: the form has more than 500000 fields$/,
  },
  {
    name: 'a million parts of a form',
    type: 'multipart/form-data; boundary=B',
    body: () => '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'.repeat(10_000),
    settings: { limits: { items: 1000 } },
    error: /^limit: the form has more than 1000 parts$/,
  },
  {
    name: 'a part whose head does not end',
    type: 'multipart/form-data; boundary=B',
    body: () => `--B\r\n${LONG.repeat(100)}\r\n--B--`,
    error: /^malformed: the form has a part without a head/,
  },
  {
    name: 'a gzip bomb',
    type: 'text/plain',
    body: () => gzipSync(Buffer.alloc(16 * MIB)),
    coding: 'gzip',
    error: /^limit: the body has more than \d+ bytes without its content coding$/,
  },
  {
    name: 'a gzip bomb within a gzip bomb',
    type: 'text/plain',
    body: () => gzipSync(gzipSync(Buffer.alloc(16 * MIB))),
    coding: 'gzip, gzip',
    error: /^limit: the body has more than 1048576 bytes/,
  },
  {
    name: 'a Brotli bomb',
    type: 'text/plain',
    body: () => brotliCompressSync(Buffer.alloc(16 * MIB), { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
    coding: 'br',
    error: /^limit: the body has more than 1048576 bytes/,
  },
  {
    name: 'a deflate bomb',
    type: 'text/plain',
    body: () => deflateSync(Buffer.alloc(16 * MIB)),
    coding: 'deflate',
    error: /^limit: the body has more than \d+ bytes/,
  },
  {
    name: 'a bare deflate bomb',
    type: 'text/plain',
    body: () => deflateRawSync(Buffer.alloc(16 * MIB)),
    coding: 'deflate',
    error: /^limit: the body has more than \d+ bytes/,
  },
  {
    name: 'four codings',
    type: 'text/plain',
    body: () => 'x',
    coding: 'gzip, gzip, gzip, gzip',
    error: /^limit: the body has more than 3 codings$/,
  },
  {
    name: 'an unknown coding',
    type: 'text/plain',
    body: () => 'x',
    coding: 'compress',
    error: /^coding: the content coding of the body is not supported$/,
  },
  {
    name: 'malformed gzip',
    type: 'text/plain',
    body: () => 'not gzip',
    coding: 'gzip',
    error: /^malformed: the content coding of the body is malformed \(Z_DATA_ERROR\)$/,
  },
  {
    name: 'gzip that ends too early',
    type: 'text/plain',
    body: () => gzipSync('hello world').subarray(0, 15),
    coding: 'gzip',
    error: /^malformed: the content coding of the body is malformed \(Z_BUF_ERROR\)$/,
  },
]

for (const { name, type, body, coding = '', settings = {}, error } of HOSTILE) {
  test(`${name} of type ${type} is refused with its place`, () => {
    const bytes = body()
    assert.match(
      errorOf(() => build(bytes, type, coding, settings)),
      error,
    )
  })
}

test('names that objects inherit are members like others', () => {
  const text = '{"__proto__":{"a":1},"constructor":2}'
  assert.equal(shown(build(text, 'application/json')), `json ${text}`)
})

test('a number with a million zeros between its digits is read in linear time', () => {
  const text = `[1${'0'.repeat(1_000_000)}1]`
  assert.equal(shown(build(text, 'application/json', '', { limits: { nameLength: 2_000_000 } })), `json ${text}`)
})
