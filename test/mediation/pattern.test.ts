/** Regular expressions: Java's syntax, as far as it matches in linear time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileMatcher, parsePattern } from '../../src/mediation/pattern.ts'

/** Pattern, texts that match as a whole, texts that do not. */
const ACCEPTED: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ['abc', ['abc'], ['abcd', 'xabc', '']],
  ['a|b', ['a', 'b'], ['ab', 'xb']],
  ['.*json.*', ['application/json', 'json'], ['a\njson', 'xml']],
  ['(?i)abc', ['ABC'], ['ABCD']],
  ['(?i:a)bc', ['Abc'], ['ABC']],
  ['\\Qa.b\\E', ['a.b'], ['axb']],
  ['\\Aabc\\z', ['abc'], ['xabc']],
  ['4\\d\\d', ['404'], ['4044', '4o4', '4\u0661\u0661']],
  ['a\\-b\\/c\\"d\\_', ['a-b/c"d_'], ['a\\-b']],
  ['[\\w\\-.&]+', ['a-b.c&d'], ['a b']],
  ['a&&b', ['a&&b'], ['a']],
  ['\\p{Lu}+', ['AÑ'], ['a']],
  ['^abc$', ['abc'], ['abc\n']],
  ['(?<year>\\d{4})-(\\d{2})', ['2026-11'], ['26-11']],
  ['\\d{1,3}(\\.\\d{1,3}){3}', ['10.0.0.255'], ['10.0.0']],
  ['(?:foo|bar)*', ['foobarfoo', ''], ['fo']],
  ['😀+', ['😀😀'], ['\ud83d']],
]

for (const [pattern, matching, others] of ACCEPTED) {
  test(`${pattern} matches whole texts`, () => {
    const read = parsePattern(pattern)
    const match = compileMatcher(read.pattern!, cause => assert.fail(cause))
    assert.deepEqual(
      matching.filter(text => match(text) === null),
      [],
    )
    assert.deepEqual(
      others.filter(text => match(text) !== null),
      [],
    )
  })
}

test('groups are counted, and unused groups are empty', () => {
  assert.equal(parsePattern('(a)(?:b)(?<c>c)?').groups, 2)
  assert.deepEqual(compileMatcher('(a)(?:b)(?<c>c)?', assert.fail)('ab'), ['ab', 'a', ''])
})

/** Pattern and the reason of its refusal. */
const REFUSED: readonly (readonly [string, RegExp])[] = [
  ['(', /is not a valid regular expression: missing closing/],
  ['[a', /is not a valid regular expression/],
  ['a{2,1}', /is not a valid regular expression/],
  ['*', /is not a valid regular expression/],
  ['a++', /is not a valid regular expression/],
  ['(?>a)', /is not a valid regular expression/],
  ['(?=a)', /is not a valid regular expression/],
  ['(a)\\1', /is not a valid regular expression/],
  ['\\p{Alpha}', /is not a valid regular expression/],
  ['\\h', /is not a valid regular expression/],
  ['a{1001}', /is not a valid regular expression/],
  ['((a{1,100}){1,100}){1,100}', /is not a valid regular expression/],
  ['[a-z&&[^b]]', /has an intersection of classes/],
  ['a'.repeat(1025), /is longer than 1024 characters/],
]

for (const [pattern, why] of REFUSED) {
  test(`${pattern.slice(0, 40)} is refused`, () => {
    const read = parsePattern(pattern)
    assert.equal(read.pattern, undefined)
    assert.match(read.why, why)
    assert.notEqual(read.hint, '')
  })
}

// With a backtracking engine these tests would run into their timeout.
for (const pattern of ['(a+)+b', '(?:a|a)*b', '(a?b?)*c', '.*a.*a.*a.*a.*b', '(a{1,30}){1,30}b']) {
  test(`${pattern} takes linear time`, { timeout: 60_000 }, () => {
    assert.equal(compileMatcher(parsePattern(pattern).pattern!, assert.fail)('a'.repeat(8192)), null)
  })
}

test('a text of more than 8 KiB matches nothing, with a warning', () => {
  const warnings: string[] = []
  const match = compileMatcher('a+', cause => warnings.push(cause))
  assert.notEqual(match('a'.repeat(8192)), null)
  assert.equal(match('a'.repeat(8193)), null)
  assert.deepEqual(warnings, ['a text of more than 8192 characters matches nothing'])
})
