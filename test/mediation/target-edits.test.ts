/** `<queryParameter>` and `<resourcePath>`: path and query of a request that passes. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Message } from '../../src/mediation/message.ts'
import { compiled, planOf, testRefusals } from './test-sequences.ts'
import { needsOf } from '../../src/mediation/needs.ts'

/** [steps, target of the request, target for the backend]. */
const EDITS: readonly (readonly [string, string, string])[] = [
  ['<queryParameter name="a" value="1"/>', '/p', '/p?a=1'],
  ['<queryParameter name="a" value="1"/>', '/p?', '/p?a=1'],
  ['<queryParameter name="a" value="1"/>', '/p?b=2', '/p?b=2&a=1'],
  ['<queryParameter name="a" value="1"/>', '/p?a=0', '/p?a=0&a=1'],
  ['<queryParameter name="a%20b" value="c%26d"/>', '/p', '/p?a%20b=c%26d'],
  ['<queryParameter name="a"/>', '/p', '/p?a='],
  ['<queryParameter name="a" action="remove"/>', '/p?a=1', '/p'],
  ['<queryParameter name="a" action="remove"/>', '/p?b=1&a&c=2&a=3', '/p?b=1&c=2'],
  ['<queryParameter name="a%20b" action="remove"/>', '/p?a+b=1&ab=2', '/p?ab=2'],
  ['<queryParameter name="a" action="remove"/>', '/p?%61=1&%zz=2', '/p?%zz=2'],
  ['<queryParameter name="a" action="remove"/>', '/p', '/p'],
  ['<resourcePath value="/new"/>', '/p?a=1', '/new'],
  ['<resourcePath value="new" keepsQuery="true"/>', '/p?a=1', '/new?a=1'],
  ['<resourcePath value="/new?b=2" keepsQuery="true"/>', '/p?a=1', '/new?b=2&a=1'],
  ['<resourcePath value="/new" keepsQuery="true"/>', '/p', '/new'],
  ['<resourcePath value="/x/{unknown}"/>', '/p', '/x/{unknown}'],
  ['<resourcePath value="/new"/><queryParameter name="a" value="1"/>', '/p', '/new?a=1'],
]
describe('a sequence edits path and query', () => {
  for (const [steps, target, expected] of EDITS) {
    test(`${steps} makes ${expected} of ${target}`, async () => {
      const message = new Message(() => undefined)
      message.receive({ method: 'GET', target, status: 0, reason: '' }, null)
      const report = (...said: readonly unknown[]): void => assert.fail(said.join(' '))
      assert.equal((await compiled(steps, report)).run('one', message), 'ended')
      assert.equal(message.head.target, expected)
    })
  }
})

test('edits of path and query need no worker', async () => {
  const plan = await planOf('<queryParameter name="a" value="1"/><resourcePath value="/new" keepsQuery="true"/>')
  assert.equal(
    needsOf(['one'], () => plan),
    'heads',
  )
})

testRefusals([
  ['<queryParameter value="1"/>', 'queryParameter/name: is missing'],
  ['<queryParameter name="a b"/>', 'queryParameter/name = a b: is not percent-encoded'],
  ['<queryParameter name="a" value="b&amp;c"/>', 'queryParameter/value = b&c: is not percent-encoded'],
  ['<queryParameter name="a" value="b" action="remove"/>', 'queryParameter/value: has no effect'],
  ['<resourcePath/>', 'resourcePath/value: is missing'],
  ['<resourcePath value="/a b"/>', 'resourcePath/value = /a b: is not a path'],
])
