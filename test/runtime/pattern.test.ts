/** Patterns: what they match, what is no pattern, and that no text takes long. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compilePattern } from '../../src/runtime/pattern.ts'

/** [pattern, names that match as a whole, names that do not]. */
const CASES: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ['openid', ['openid'], ['', 'openid2', 'xopenid', 'OPENID']],
  ['^device_.*', ['device_', 'device_1', 'device_a b'], ['device', 'xdevice_1']],
  ['^a+b?$', ['a', 'aaa', 'ab', 'aaab'], ['', 'b', 'abb', 'aba']],
  ['[a-c_]*', ['', 'abc_', 'cab'], ['d', 'abd']],
  ['[^a-c]x', ['dx', '-x'], ['ax', 'x']],
  ['v\\d+\\.\\w', ['v12.x', 'v1._'], ['v.x', 'v1xx', 'v1.']],
  ['a{2,3}', ['aa', 'aaa'], ['a', 'aaaa']],
  ['a\\$', ['a$'], ['a']],
  ['(read|write):.*', ['read:a', 'write:'], ['delete:a', 'read']],
  ['', [''], ['a']],
]

for (const [text, matching, others] of CASES) {
  test(`${JSON.stringify(text)} matches whole names`, () => {
    const pattern = compilePattern(text)
    assert.deepEqual(
      [...matching, ...others].filter(name => pattern.matcher(name).matches()),
      matching,
    )
  })
}

test('a text that is no pattern, a look-around or a back reference throws', () => {
  for (const text of ['*a', 'a**', '[', '(', 'a\\', '(?=a)', '(a)\\1']) assert.throws(() => compilePattern(text), text)
})

test('a pattern with catastrophic backtracking elsewhere takes linear time', () => {
  const pattern = compilePattern('a*a*a*a*a*a*a*a*a*a*a*a*b')
  const started = performance.now()
  assert.equal(pattern.matcher('a'.repeat(2000)).matches(), false)
  assert.ok(performance.now() - started < 1000)
})
