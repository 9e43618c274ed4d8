/** Regular expressions: Java's where JavaScript reads them alike, and none that a text can keep busy. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { matcherOf, patternOf } from '../../src/mediation/pattern.ts'

/** Pattern, texts that match as a whole, texts that do not. */
const TAKEN: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ['abc', ['abc'], ['abcd', 'xabc', '']],
  ['a|b', ['a', 'b'], ['ab', 'xb']],
  ['.*json.*', ['application/json', 'json'], ['a\njson', 'xml']],
  ['(?i:abc)', ['ABC'], ['ABCD']],
  ['4\\d\\d', ['404'], ['4044', '4o4']],
  ['a\\-b\\/c\\"d\\_', ['a-b/c"d_'], ['a\\-b']],
  ['[\\w\\-.]+', ['a-b.c'], ['a b']],
  ['\\p{Lu}+', ['AÑ'], ['a']],
  ['^abc$', ['abc'], ['abc\n']],
  ['(?<year>\\d{4})-(\\d{2})', ['2026-11'], ['26-11']],
  ['\\d{1,3}(\\.\\d{1,3}){3}', ['10.0.0.255'], ['10.0.0']],
  ['(?:foo|bar)*', ['foobarfoo', ''], ['fo']],
  ['([a-c]d)+', ['adbd'], ['a']],
  ['a{2,}b?', ['aaab'], ['ab']],
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

/** Pattern, and why it is refused. */
const REFUSED: readonly (readonly [string, RegExp])[] = [
  ['(', /is no regular expression/],
  ['[a', /is no regular expression/],
  ['a{2,1}', /is no regular expression/],
  ['*', /is no regular expression/],
  ['(?i)abc', /has flags for all of it/],
  ['\\Qa.b\\E', /quotes with \\Q/],
  ['\\Aabc\\z', /has an anchor of Java/],
  ['a++', /possessive/],
  ['(?>a)', /possessive or atomic/],
  ['\\p{Alpha}', /has a class of POSIX/],
  ['[a-z&&[^b]]', /intersection/],
  ['\\h', /is no regular expression/],
  ['\\x{41}', /is no regular expression/],
  // Ways to share a text that grow with a power of its length.
  ['(a+)+', /repeats what/],
  ['(a*)*b', /repeats what/],
  ['(?:a|a)*b', /repeats what/],
  ['(?:a|A)*b', /repeats what/],
  ['(?:a|.)*b', /repeats what/],
  ['(a?b?)*c', /repeats what/],
  ['(a{1,5})+c', /repeats what/],
  ['((ab?)c?){2,}', /repeats what/],
  ['(a+){30}', /repeats what/],
  ['(a+){3}', /repeats what/],
  ['(x(?:a+)y)*', /repeats what/],
]

for (const [pattern, why] of REFUSED) {
  test(`${pattern} is refused`, () => {
    const read = patternOf(pattern)
    assert.equal(read.pattern, undefined)
    assert.match(read.why, why)
    assert.notEqual(read.remedy, '')
  })
}

test('a long text matches nothing, and that is told', () => {
  for (const [pattern, most] of [
    ['a+', 8192],
    ['a*b*', 8192],
    ['a*b*c*', 2048],
    ['a*b*c*d*', 1024],
  ] as const) {
    const said: string[] = []
    const match = matcherOf(pattern, cause => said.push(cause))
    assert.notEqual(match('a'.repeat(most)), null)
    assert.equal(match('a'.repeat(most + 1)), null)
    assert.deepEqual(said, [`a text of more than ${most} characters matches nothing`])
  }
})
