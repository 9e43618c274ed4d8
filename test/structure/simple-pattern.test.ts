/** Patterns of names: what they fit, what is none of them, and that no name takes long. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SimplePattern } from '../../src/structure/simple-pattern.ts'

/** [pattern, names that it fits, names that it does not]. */
const CASES: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ['openid', ['openid'], ['', 'openid2', 'xopenid', 'OPENID']],
  ['^device_.*', ['device_', 'device_1', 'device_a b'], ['device', 'xdevice_1']],
  ['^a+b?$', ['a', 'aaa', 'ab', 'aaab'], ['', 'b', 'abb', 'aba']],
  ['[a-c_]*', ['', 'abc_', 'cab'], ['d', 'abd']],
  ['[^a-c]x', ['dx', '-x'], ['ax', 'x']],
  ['v\\d+\\.\\w', ['v12.x', 'v1._'], ['v.x', 'v1xx', 'v1.']],
  ['a\\$', ['a$'], ['a']],
  ['', [''], ['a']],
]

for (const [pattern, fitting, others] of CASES) {
  test(`${JSON.stringify(pattern)} fits whole names`, () => {
    const read = SimplePattern.read(pattern)!
    assert.deepEqual(
      [...fitting, ...others].filter(name => read.matches(name)),
      fitting,
    )
  })
}

test('groups, alternatives, counts, anchors within and escapes with a meaning of their own are not taken', () => {
  for (const text of [
    '(a)',
    'a|b',
    'a{}',
    'a{,2}',
    'a^b',
    'a$b',
    '*a',
    'a**',
    '[',
    '[]',
    'a\\',
    '\\s',
    '\\bx',
    'a'.repeat(300),
  ]) {
    assert.equal(SimplePattern.read(text), undefined, text)
  }
})

test('a pattern that other engines take for ever over is quick', () => {
  const pattern = SimplePattern.read('a*a*a*a*a*a*a*a*a*a*a*a*b')!
  const started = performance.now()
  assert.equal(pattern.matches('a'.repeat(2000)), false)
  assert.ok(performance.now() - started < 1000)
})
