/** `<rewrite>`: rules, conditions and actions on the parts of a URL. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Message } from '../../src/mediation/message.ts'
import { causes, compiled, run, testRefusals } from './test-sequences.ts'

const rule = (actions: string, condition = '') =>
  `<rewriterule>${condition === '' ? '' : `<condition>${condition}</condition>`}${actions}</rewriterule>`
const act = (type: string, fragment: string, more = '') => `<action type="${type}" fragment="${fragment}" ${more}/>`

const URL = 'http://u:p@host:8080/a/b?x=1&y=2#r'
const FULL = act('set', 'path', 'value="/n"')

/** Rules, and what they make of URL. */
const ROWS: readonly (readonly [string, string])[] = [
  [rule(act('set', 'protocol', 'value="https"')), 'https://u:p@host:8080/a/b?x=1&y=2#r'],
  [rule(act('set', 'host', 'value="other"')), 'http://u:p@other:8080/a/b?x=1&y=2#r'],
  [rule(act('remove', 'port')), 'http://u:p@host/a/b?x=1&y=2#r'],
  [rule(act('remove', 'user')), 'http://host:8080/a/b?x=1&y=2#r'],
  [rule(act('append', 'path', 'value="/c"')), 'http://u:p@host:8080/a/b/c?x=1&y=2#r'],
  [rule(act('prepend', 'path', 'value="/c"')), 'http://u:p@host:8080/c/a/b?x=1&y=2#r'],
  [rule(act('remove', 'query') + act('remove', 'ref')), 'http://u:p@host:8080/a/b'],
  [rule(act('replace', 'path', 'regex="/([ab])" value="/$1$1"')), 'http://u:p@host:8080/aa/bb?x=1&y=2#r'],
  [rule(act('replace', 'path', 'regex="/a" xpath="$ctx:p"')), 'http://u:p@host:8080/$1/b?x=1&y=2#r'],
  [rule(act('set', 'path', 'xpath="concat(\'/\', 1)"')), 'http://u:p@host:8080/1?x=1&y=2#r'],
  [rule('<action value="https://z/q"/>'), 'https://z/q'],
  [rule(FULL, '<equal type="url" source="host" value="host"/>'), 'http://u:p@host:8080/n?x=1&y=2#r'],
  [rule(FULL, '<equal type="url" source="host" value="hos"/>'), URL],
  [rule(FULL, '<match source="path" regex="/a/.*"/>'), 'http://u:p@host:8080/n?x=1&y=2#r'],
  [rule(FULL, '<match source="path" regex="/a"/>'), URL],
  [rule(FULL, '<not><equal type="header" source="X" value="1"/></not>'), URL],
  [
    rule(FULL, '<and><equal type="header" source="X" value="1"/><equal type="param" source="y" value="2"/></and>'),
    'http://u:p@host:8080/n?x=1&y=2#r',
  ],
  [rule(FULL, '<or><equal type="property" source="none" value="1"/><equal source="port" value="1"/></or>'), URL],
  [rule(FULL) + rule(act('append', 'path', 'value="2"')), 'http://u:p@host:8080/n2?x=1&y=2#r'],
]

for (const [rules, expected] of ROWS) {
  test(`${rules} rewrites a URL`, async () => {
    const steps = `<rewrite inProperty="in" outProperty="out">${rules}</rewrite>`
    const ran = await run(steps, { properties: { in: URL, p: '/$1' }, fields: { x: '1' } })
    assert.deepEqual(causes(ran), [])
    assert.deepEqual([ran.message.get('default', 'out'), ran.message.get('default', 'in')], [expected, URL])
  })
}

async function requestAfter(rules: string, to = ''): Promise<readonly [target: string, to: string]> {
  const message = new Message(() => undefined)
  message.receive({ method: 'GET', target: '/legacy/a?x=1', status: 0, reason: '' }, null)
  message.to = to
  const sequences = await compiled(`<rewrite>${rules}</rewrite>`, () => undefined)
  sequences.run('one', message)
  return [message.head.target, message.to]
}

test('the URL of the request is its path behind the context, and its query', async () => {
  const rules = rule(act('replace', 'path', 'regex="/legacy" value="/current"'))
  assert.deepEqual(await requestAfter(rules, '/context/1/legacy/a'), ['/current/a?x=1', '/context/1/legacy/a'])
  assert.deepEqual(await requestAfter(rule(act('remove', 'query'))), ['/legacy/a', ''])
})

test('a host makes an absolute destination', async () => {
  const host = rule(act('set', 'host', 'value="h"') + act('set', 'protocol', 'value="https"'))
  assert.deepEqual(await requestAfter(host), ['/legacy/a?x=1', 'https://h/legacy/a?x=1'])
  const port = rule(act('set', 'port', 'value="81"'))
  assert.deepEqual(await requestAfter(port, 'http://h/z'), ['/legacy/a?x=1', 'http://h:81/legacy/a?x=1'])
})

testRefusals([
  ['<rewrite/>', 'rewrite/rewriterule: is missing'],
  ['<rewrite><rewriterule/></rewrite>', 'rewriterule/action: is missing'],
  [`<rewrite>${rule('<action type="add"/>')}</rewrite>`, 'action/type = add: expected one of replace'],
  [`<rewrite>${rule('<action fragment="uri"/>')}</rewrite>`, 'action/fragment = uri: expected one of protocol'],
  [`<rewrite>${rule('<action type="replace" value="a"/>')}</rewrite>`, 'action/regex: is missing'],
  [`<rewrite>${rule('<action type="set"/>')}</rewrite>`, 'action/value: expected either value or xpath'],
  [`<rewrite>${rule('<action type="remove" value="a"/>')}</rewrite>`, 'action/value: has no effect with type="remove"'],
  [`<rewrite>${rule('<action value="a" regex="b"/>')}</rewrite>`, 'action/regex: has no effect without type="replace"'],
  [`<rewrite>${rule(FULL, '<xor/>')}</rewrite>`, 'xor: is not a condition'],
  [`<rewrite>${rule(FULL, '<equal source="none" value="1"/>')}</rewrite>`, 'equal/source = none: expected one of'],
])
