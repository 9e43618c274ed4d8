import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dateTimeInterval } from '../../../src/mounted/healthcare/date-interval.ts'
import { readJson } from '../../../src/mounted/healthcare/json-text.ts'
import { primitiveFault } from '../../../src/mounted/healthcare/primitives.ts'

/** Type, JSON text of values that it allows, and of values that it does not. */
const VALUES: readonly (readonly [type: string, allowed: readonly string[], refused: readonly string[]])[] = [
  [
    'id',
    ['"a"', '"A-1.b"', `"${'x'.repeat(64)}"`],
    [`"${'x'.repeat(65)}"`, '"a b"', '"a_b"', '"a/b"', '"é"', '1', '"a\\n"'],
  ],
  ['code', ['"a"', '"a b"', '"a-b.c"'], ['" a"', '"a "', '"a  b"', '"\\t"', 'true']],
  ['uri', ['"http://a/b"', '"urn:x"', '"#x"', '"a"'], ['"a b"', '" "', '"http://a\\n"', '1']],
  ['url', ['"http://a/b?c=d|e"'], ['"http://a b"']],
  ['canonical', ['"http://a/b|1.0"'], ['"http://a b"', '{}']],
  [
    'oid',
    ['"urn:oid:1.2.3"', '"urn:oid:2.16.0"'],
    ['"1.2.3"', '"urn:oid:3.1"', '"urn:oid:1"', '"urn:oid:1.02"', '"urn:oid:1.2."'],
  ],
  [
    'uuid',
    ['"urn:uuid:c757873d-ec9a-4326-a141-556f43239520"'],
    ['"c757873d-ec9a-4326-a141-556f43239520"', '"urn:uuid:C757873D-EC9A-4326-A141-556F43239520"', '"urn:uuid:1"'],
  ],
  [
    'string',
    ['"a"', '"a\\tb\\r\\nc"', '" a "', '"\ud83d\ude00"'],
    ['" "', '"\\n\\t"', '"a\\u0000"', '"a\\u001f"', '"\\ud800"', '1', 'true', '[]'],
  ],
  ['markdown', ['"# a\\n\\n* b"'], ['"  "', '"\\u0008x"']],
  ['boolean', ['true', 'false'], ['"true"', '1', '0', 'null']],
  ['integer', ['0', '-1', '2147483647', '-2147483648'], ['2147483648', '-2147483649', '1.5', '1.0', '1e2', '"1"']],
  ['unsignedInt', ['0', '2147483647'], ['-1', '2147483648', '-0', '0.5']],
  ['positiveInt', ['1', '2147483647'], ['0', '-1', '2147483648', '1.0']],
  ['decimal', ['0', '1.00', '-1.5e-10', '1e400', '100'], ['"1"', 'true']],
  [
    'date',
    ['"2024"', '"2024-02"', '"2024-02-29"', '"0001-01-01"', '"9999-12-31"'],
    [
      '"0000"',
      '"2023-02-29"',
      '"2024-02-30"',
      '"2024-13"',
      '"2024-00"',
      '"2024-1-1"',
      '"24"',
      '"2024-01-01T00:00:00Z"',
      '"2024-01-01 "',
      '2024',
    ],
  ],
  [
    'dateTime',
    [
      '"2024"',
      '"2024-02"',
      '"2024-02-29"',
      '"2024-02-29T10:00:00Z"',
      '"2024-02-29T10:00:00.123456+14:00"',
      '"2024-12-31T23:59:60-05:00"',
    ],
    [
      '"2024-02-29T10:00Z"',
      '"2024-02-29T10:00:00"',
      '"2024-02-29T24:00:00Z"',
      '"2024-02-30T10:00:00Z"',
      '"2024-02-29T10:00:00+14:01"',
      '"2024-02-29T10:00:61Z"',
      '"2024-02-29t10:00:00z"',
      '"2024-02T10:00:00Z"',
      '"0000-01-01T00:00:00Z"',
    ],
  ],
  [
    'instant',
    ['"2024-02-29T10:00:00Z"', '"2024-02-29T10:00:00.1-08:00"'],
    ['"2024-02-29"', '"2024"', '"2024-02-29T10:00Z"', '"2024-02-29T10:00:00"'],
  ],
  [
    'time',
    ['"00:00:00"', '"23:59:60"', '"08:30:00.5"'],
    ['"24:00:00"', '"8:30:00"', '"08:30"', '"08:30:00Z"', '"08:30:00+01:00"'],
  ],
  [
    'base64Binary',
    ['"AAAA"', '"AA=="', '"AAA="', '"AAAA\\nAAAA"', '" AAAA "'],
    ['"A"', '"AAA"', '"A==="', '"AA=A"', '"A*AA"', '"===="', '" "'],
  ],
]

for (const [type, allowed, refused] of VALUES) {
  test(`${type} allows ${allowed.length} forms and refuses ${refused.length}`, () => {
    for (const text of allowed) assert.equal(primitiveFault(type, readJson(text)), undefined, text)
    for (const text of refused) assert.notEqual(primitiveFault(type, readJson(text)), undefined, text)
  })
}

test('a string has at most 1,048,576 characters', () => {
  assert.equal(primitiveFault('string', 'x'.repeat(1_048_576)), undefined)
  assert.notEqual(primitiveFault('string', 'x'.repeat(1_048_577)), undefined)
})

test('long values that almost fit are refused in linear time', () => {
  const long = 1_000_000
  for (const [type, text] of [
    ['base64Binary', `${'A'.repeat(long)}*`],
    ['code', `${'a '.repeat(long / 2)} `],
    ['oid', `urn:oid:1${'.1'.repeat(long / 2)}.`],
    ['uri', `${'a'.repeat(long)} `],
    ['time', `00:00:00.${'1'.repeat(long)}x`],
  ] as const) {
    assert.notEqual(primitiveFault(type, text), undefined, type)
  }
})

test('dates are intervals of their precision', () => {
  const of = (text: string): readonly string[] => {
    const { start, end } = dateTimeInterval(text)!
    return [new Date(start).toISOString(), new Date(end).toISOString()]
  }
  assert.deepEqual(of('2024'), ['2024-01-01T00:00:00.000Z', '2025-01-01T00:00:00.000Z'])
  assert.deepEqual(of('2024-12'), ['2024-12-01T00:00:00.000Z', '2025-01-01T00:00:00.000Z'])
  assert.deepEqual(of('2024-02-29'), ['2024-02-29T00:00:00.000Z', '2024-03-01T00:00:00.000Z'])
  assert.deepEqual(of('2024-02-29T10:00:00+02:00'), ['2024-02-29T08:00:00.000Z', '2024-02-29T08:00:01.000Z'])
  assert.deepEqual(of('2024-02-29T10:00:00.5Z'), ['2024-02-29T10:00:00.500Z', '2024-02-29T10:00:00.600Z'])
  assert.deepEqual(of('0099-01-01'), ['0099-01-01T00:00:00.000Z', '0099-01-02T00:00:00.000Z'])
})
