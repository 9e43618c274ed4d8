/** Regular expressions: Java's, as far as no text can keep the thread busy with them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { matcherOf, patternOf } from '../../src/mediation/pattern.ts'

/** Pattern, texts that match as a whole, texts that do not. */
const TAKEN: readonly (readonly [string, readonly string[], readonly string[]])[] = [
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

for (const [pattern, matching, others] of TAKEN) {
  test(`${pattern} is taken, and matches all of a text or nothing`, () => {
    const read = patternOf(pattern)
    const match = matcherOf(read.pattern!, cause => assert.fail(cause))
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

test('groups are counted, and those that took no part are empty', () => {
  assert.equal(patternOf('(a)(?:b)(?<c>c)?').groups, 2)
  assert.deepEqual(matcherOf('(a)(?:b)(?<c>c)?', assert.fail)('ab'), ['ab', 'a', ''])
})

/** Pattern, and why it is refused. */
const REFUSED: readonly (readonly [string, RegExp])[] = [
  ['(', /is no regular expression: missing closing/],
  ['[a', /is no regular expression/],
  ['a{2,1}', /is no regular expression/],
  ['*', /is no regular expression/],
  ['a++', /is no regular expression/],
  ['(?>a)', /is no regular expression/],
  ['(?=a)', /is no regular expression/],
  ['(a)\\1', /is no regular expression/],
  ['\\p{Alpha}', /is no regular expression/],
  ['\\h', /is no regular expression/],
  ['a{1001}', /is no regular expression/],
  ['((a{1,100}){1,100}){1,100}', /is no regular expression/],
  ['[a-z&&[^b]]', /has an intersection of classes/],
  ['a'.repeat(1025), /is longer than 1024 characters/],
]

for (const [pattern, why] of REFUSED) {
  test(`${pattern.slice(0, 40)} is refused`, () => {
    const read = patternOf(pattern)
    assert.equal(read.pattern, undefined)
    assert.match(read.why, why)
    assert.notEqual(read.remedy, '')
  })
}

// With backtracking each of these takes longer than anybody waits; the test then never ends.
for (const pattern of ['(a+)+b', '(?:a|a)*b', '(a?b?)*c', '.*a.*a.*a.*a.*b', '(a{1,30}){1,30}b']) {
  test(`${pattern} takes linear time`, { timeout: 60_000 }, () => {
    assert.equal(matcherOf(patternOf(pattern).pattern!, assert.fail)('a'.repeat(8192)), null)
  })
}

test('a long text matches nothing, and that is told', () => {
  const said: string[] = []
  const match = matcherOf('a+', cause => said.push(cause))
  assert.notEqual(match('a'.repeat(8192)), null)
  assert.equal(match('a'.repeat(8193)), null)
  assert.deepEqual(said, ['a text of more than 8192 characters matches nothing'])
})
