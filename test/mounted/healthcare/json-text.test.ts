import assert from 'node:assert/strict'
import { test } from 'node:test'
import { copyJson, JsonSyntaxError, readJson, sameJson, writeJson } from '../../../src/mounted/healthcare/json-text.ts'
import { Random, SEED } from '../../harness/random.ts'
import { FULL_SERVICE } from './service-example.ts'

/** Text that comes back as it was. */
const KEPT = [
  '1.00',
  '1.0',
  '1e3',
  '1E+3',
  '-0',
  '0.1',
  '100000000000000000000',
  '0.30000000000000000001',
  '1e400',
  '[1.50,{"value":2.0}]',
  '{"b":1,"a":2}',
  '"a\\nb"',
  'true',
  'null',
  '{"__proto__":1}',
  '{"constructor":{"prototype":1}}',
]
const REFUSED: readonly (readonly [why: string, text: string, kind: JsonSyntaxError['kind']])[] = [
  ['nothing', '', 'syntax'],
  ['a comment', '{/* x */}', 'syntax'],
  ['a line comment', '{} // x', 'syntax'],
  ['a trailing comma in an object', '{"a":1,}', 'syntax'],
  ['a trailing comma in an array', '[1,]', 'syntax'],
  ['a second value', '{}{}', 'syntax'],
  ['a name without quotes', '{a:1}', 'syntax'],
  ['single quotes', "{'a':1}", 'syntax'],
  ['a number with a leading zero', '01', 'syntax'],
  ['a number with a leading plus', '+1', 'syntax'],
  ['a number without digits behind the point', '1.', 'syntax'],
  ['a number without digits before the point', '.5', 'syntax'],
  ['NaN', 'NaN', 'syntax'],
  ['Infinity', '-Infinity', 'syntax'],
  ['a control character in a string', '"a\u0001"', 'syntax'],
  ['a line feed in a string', '"a\n"', 'syntax'],
  ['an unknown escape', '"\\x41"', 'syntax'],
  ['an escape with three digits', '"\\u004"', 'syntax'],
  ['a string without its end', '"abc', 'syntax'],
  ['an object without its end', '{"a":1', 'syntax'],
  ['an unfinished word', 'tru', 'syntax'],
  ['a no-break space', '\u00a0{}', 'syntax'],
  ['a repeated member', '{"a":1,"b":2,"a":3}', 'duplicate'],
  ['a repeated member, once with an escape', '{"a":1,"\\u0061":3}', 'duplicate'],
  ['a repeated __proto__', '{"__proto__":1,"__proto__":2}', 'duplicate'],
  ['65 arrays', '['.repeat(65) + ']'.repeat(65), 'depth'],
  ['a million arrays', '['.repeat(1_000_000), 'depth'],
  ['a million objects', '{"a":'.repeat(1_000_000), 'depth'],
]

for (const text of KEPT) {
  test(`${text} is written as it was read`, () => {
    assert.equal(writeJson(readJson(text)), text)
  })
}

for (const [why, text, kind] of REFUSED) {
  test(`JSON with ${why} is refused`, () => {
    assert.throws(
      () => readJson(text),
      (error: unknown) => error instanceof JsonSyntaxError && error.kind === kind,
    )
  })
}

test('a fault of syntax has its line and column, and no part of the text', () => {
  assert.throws(() => readJson('{\n  "secret": 1,\n  "b" 2\n}'), {
    message: 'No ":" at line 3, column 7',
  })
})

test('64 levels are read', () => {
  assert.equal(writeJson(readJson('['.repeat(64) + ']'.repeat(64))).length, 128)
})

test('a byte order mark is skipped', () => {
  assert.deepEqual(readJson('\ufeff{"a":1}'), { a: 1 })
})

test('__proto__ is a member like others and changes no prototype', () => {
  const value = readJson('{"__proto__":{"isAdmin":true}}') as Record<string, unknown>
  assert.equal(value.isAdmin, undefined)
  assert.deepEqual(Object.keys(value), ['__proto__'])
  assert.equal((copyJson(value) as Record<string, unknown>).isAdmin, undefined)
  assert.equal(writeJson(copyJson(value)), '{"__proto__":{"isAdmin":true}}')
})

test('pretty text has line breaks and the same value', () => {
  const pretty = writeJson(readJson('{"a":[1.50,{"b":"c"}]}'), true)
  assert.equal(pretty, '{\n  "a": [\n    1.50,\n    {\n      "b": "c"\n    }\n  ]\n}')
})

test('a resource is written as it was read', () => {
  assert.equal(writeJson(readJson(FULL_SERVICE)), FULL_SERVICE)
})

test('numbers are the same JSON value when their values are the same', () => {
  assert.ok(sameJson(readJson('{"a":1.00,"b":[1]}'), readJson('{"b":[1.0],"a":1}')))
  assert.ok(!sameJson(readJson('[1,2]'), readJson('[2,1]')))
  assert.ok(!sameJson(readJson('{"a":null}'), readJson('{"b":null}')))
  assert.ok(!sameJson(readJson('{}'), readJson('[]')))
})

test('what JSON.parse accepts is read to the same value, and what it refuses is refused', t => {
  t.diagnostic(`seed ${SEED}`)
  const random = new Random(SEED)
  const alphabet = '{}[]",:0123.eE+-\\u tfn\n\u00e9/'
  for (let run = 0; run < 5000; run++) {
    const at = random.below(FULL_SERVICE.length)
    const text = random.once(2)
      ? random.text(random.below(12), alphabet)
      : FULL_SERVICE.slice(0, at) +
        random.text(random.between(0, 2), alphabet) +
        FULL_SERVICE.slice(at + random.below(3))
    let expected: unknown
    try {
      expected = JSON.parse(text)
    } catch {
      assert.throws(() => readJson(text), JsonSyntaxError, `seed ${SEED}: ${text}`)
      continue
    }
    try {
      assert.deepEqual(JSON.parse(writeJson(readJson(text))), expected, `seed ${SEED}: ${text}`)
    } catch (error) {
      // JSON.parse takes the last of repeated members.
      assert.ok(error instanceof JsonSyntaxError && error.kind === 'duplicate', `seed ${SEED}: ${text}`)
    }
  }
})
