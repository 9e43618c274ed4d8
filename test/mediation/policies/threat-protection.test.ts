/** Threat protection: limits of JSON and XML, and patterns that no part of a request may match. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsOf } from '../../../src/mediation/needs.ts'
import { planOf, testRefusals } from '../test-sequences.ts'
import { type GivenMessage, runPolicy } from './policy-flow.ts'

const XML = 'application/xml'
const regex = (pattern: string, parts: string) => `<regexThreatProtection name="SQL" pattern="${pattern}" ${parts}/>`

/** Steps, message, and the description of the violation; '' where the message continues. */
const MESSAGES: readonly (readonly [steps: string, given: GivenMessage, violation: string])[] = [
  ['<jsonThreatProtection maxDepth="2"/>', { body: '{"a":[1]}' }, ''],
  ['<jsonThreatProtection maxDepth="2"/>', { body: '{"a":[[1]]}' }, 'the depth is more than 2'],
  ['<jsonThreatProtection maxProperties="1"/>', { body: '[{"a":1},{"b":1}]' }, ''],
  ['<jsonThreatProtection maxProperties="1"/>', { body: '[{"a":1,"b":1}]' }, 'an object has more than 1 members'],
  ['<jsonThreatProtection maxArrayElements="2"/>', { body: '[1,2]' }, ''],
  ['<jsonThreatProtection maxArrayElements="2"/>', { body: '[1,2,3]' }, 'an array has more than 2 items'],
  ['<jsonThreatProtection maxKeyLength="3"/>', { body: '{"abc":"abcd"}' }, ''],
  ['<jsonThreatProtection maxKeyLength="3"/>', { body: '{"abcd":1}' }, 'a name is longer than 3'],
  ['<jsonThreatProtection maxStringLength="3"/>', { body: '{"abcd":"abc"}' }, ''],
  ['<jsonThreatProtection maxStringLength="3"/>', { body: '["abcd"]' }, 'a text is longer than 3'],
  // Members whose names repeat.
  ['<jsonThreatProtection maxStringLength="3"/>', { body: '{"a":"abcd","a":""}' }, 'a text is longer than 3'],
  ['<jsonThreatProtection maxDepth="2"/>', { body: '{"a":[[1]],"a":1}' }, 'the depth is more than 2'],
  ['<jsonThreatProtection maxProperties="1"/>', { body: '{"a":1,"a":2}' }, 'an object has more than 1 members'],
  ['<jsonThreatProtection maxKeyLength="1"/>', { body: '{"a":{"bc":1},"a":2}' }, 'a name is longer than 1'],
  ['<jsonThreatProtection maxArrayElements="1"/>', { body: '{"a":[1,2],"a":[]}' }, 'an array has more than 1 items'],
  // Lengths are those of the characters that escapes stand for.
  ['<jsonThreatProtection maxStringLength="3" maxKeyLength="1"/>', { body: '{"\\u0061":"\\n\\\\\\""}' }, ''],
  ['<jsonThreatProtection maxStringLength="3"/>', { body: '["\\n\\\\\\"x"]' }, 'a text is longer than 3'],
  ['<jsonThreatProtection maxArrayElements="3"/>', { body: ' [ -1.5e+3 , true,[ ] ]\n' }, ''],
  ['<jsonThreatProtection maxArrayElements="2"/>', { body: '[null,"",{}]' }, 'an array has more than 2 items'],
  ['<jsonThreatProtection maxStringLength="1"/>', { body: '"ab"' }, 'a text is longer than 1'],
  ['<jsonThreatProtection maxDepth="1"/>', { body: '<a><b/></a>', type: XML }, ''],
  ['<jsonThreatProtection maxDepth="1"/>', {}, ''],
  ['<jsonThreatProtection/>', { body: '{"a":' }, 'the body is not JSON: it ends too early'],
  ['<jsonThreatProtection/>', { body: '['.repeat(1000) }, 'the JSON body has more than 200 levels at character 200'],
  ['<jsonThreatProtection maxDepth="3"/>', { body: '{"n":12345678901234567890}' }, ''],
  ['<xmlThreatProtection maxDepth="2"/>', { body: '<a><b/></a>', type: XML }, ''],
  ['<xmlThreatProtection maxDepth="1"/>', { body: '<a><b/></a>', type: 'text/xml' }, 'the depth is more than 1'],
  [
    '<xmlThreatProtection maxElements="2"/>',
    { body: '<a><b/><b/></a>', type: XML },
    'the document has more than 2 elements',
  ],
  [
    '<xmlThreatProtection maxAttributes="1"/>',
    { body: '<a xmlns:p="u" b="1" p:c="2"/>', type: XML },
    'an element has more than 1 attributes',
  ],
  [
    '<xmlThreatProtection maxAttributeLength="2"/>',
    { body: '<a b="123"/>', type: XML },
    'the value of an attribute is longer than 2',
  ],
  ['<xmlThreatProtection maxChildren="1"/>', { body: '<a>x<b/>y</a>', type: XML }, ''],
  [
    '<xmlThreatProtection maxChildren="1"/>',
    { body: '<a><b/><b/></a>', type: XML },
    'an element has more than 1 child elements',
  ],
  ['<xmlThreatProtection maxTextLength="3"/>', { body: '<a>ab<b/>cd</a>', type: XML }, 'a text is longer than 3'],
  [
    '<xmlThreatProtection/>',
    { body: '<!DOCTYPE a><a/>', type: XML },
    'the body is not XML: a document type is not allowed at line 1, column 12',
  ],
  ['<xmlThreatProtection maxDepth="1"/>', { body: '[[1]]' }, ''],
  ...['json', 'xml'].map(
    kind =>
      [
        `<${kind}ThreatProtection maxDepth="1"/>`,
        { body: '[[1]]', type: `application/${kind}; charset="a,b", text/plain` },
        'the request has more than one content type',
      ] as const,
  ),
  ['<jsonThreatProtection maxDepth="2"/>', { body: '[1]', type: 'application/json; a="b,c"' }, ''],
  [
    regex('drop table', 'body="true"'),
    { body: '{"q":"\\u0064rop\\u0020table"}' },
    'the body of the request may not match',
  ],
  [
    regex('(?i)drop\\s+table', 'query="true"'),
    { target: '/a?q=DROP%20%20table+x' },
    'the query of the request may not match',
  ],
  [regex('(?i)drop\\s+table', 'query="true"'), { target: '/drop%20table?q=1' }, ''],
  // Escapes beside bytes that are no UTF-8, which a backend may leave out or replace.
  [regex("' or", 'query="true"'), { target: '/a?q=%FF%27%20or' }, 'the query of the request may not match'],
  [regex("' or", 'path="true"'), { target: '/a%27%20%6Fr%C3' }, 'the path of the request may not match'],
  [regex('(?i)drop\\s+table', 'path="true"'), { target: '/drop%20table?q=1' }, 'the path of the request may not match'],
  [regex('\\.\\./', 'path="true"'), { target: '/a/%2e%2E%2fb%ff' }, 'the path of the request may not match'],
  [
    regex('&lt;script', 'headers="true"'),
    { fields: { 'X-A': '<script>' } },
    'the headers of the request may not match',
  ],
  [regex('&lt;script', 'headers="true" body="true"'), { body: '"<script>"' }, 'the body of the request may not match'],
  [regex('(a+)+b', 'body="true"'), { body: `"${'a'.repeat(100_000)}"` }, ''],
  [regex('b', 'body="true"'), { body: `"${'a'.repeat(2_000_000)}"` }, 'the body has more than 1048576 characters'],
  ['<wellFormedBody json="true"/>', { body: '{"a":1}' }, ''],
  ['<wellFormedBody xml="true"/>', { body: '{"a":' }, ''],
]

const FORM = 'application/x-www-form-urlencoded'

/** Types under which a backend may read JSON or XML all the same; '' is none. */
const OTHER_TYPES = ['', 'text/plain', 'text/html', 'text/x-json', 'application/javascript', '*/*', FORM]
const OF_JSON = [...OTHER_TYPES, 'application/octet-stream', 'application/json/badgerfish', XML, 'image/svg+xml']
const OF_XML = [...OTHER_TYPES, 'application/octet-stream', 'application/json']
const MARK = '\ufeff'

for (const [types, steps, allowed, refused] of [
  [OF_JSON, '<jsonThreatProtection maxDepth="1" maxStringLength="3"/>', '{"a":"abc"}', '{"a":[1]}'],
  [OF_JSON, '<jsonThreatProtection maxDepth="1" maxStringLength="3"/>', `${MARK} [1]`, `${MARK}\n[[1]]`],
  [OF_JSON, '<jsonThreatProtection maxDepth="1" maxStringLength="3"/>', '"abc"', '"abcd\\""'],
  [OF_XML, '<xmlThreatProtection maxDepth="1"/>', '<a/>', '<a><b/></a>'],
  [OF_XML, '<xmlThreatProtection maxDepth="1"/>', `${MARK} <a/>`, `${MARK}\n<a><b/></a>`],
] as const) {
  for (const type of types) {
    test(`D266: of type "${type}", ${steps} allows ${allowed} and refuses ${refused}`, async () => {
      assert.equal((await runPolicy(steps, { body: allowed, type })).fault, null)
      assert.equal((await runPolicy(steps, { body: refused, type })).fault?.code, 400)
    })
  }
}

for (const [steps, type, body, isRefused] of [
  ['<jsonThreatProtection/>', 'text/plain', '{"a":[1', true],
  ['<jsonThreatProtection/>', 'text/plain', '[\0[\0', true],
  ['<jsonThreatProtection/>', 'text/plain', `${'['.repeat(300)}${']'.repeat(300)}`, true],
  ['<jsonThreatProtection/>', 'text/csv', '"a","b"', false],
  ['<jsonThreatProtection/>', FORM, 'a=1', false],
  ['<jsonThreatProtection/>', 'text/plain', 'see [1]', false],
  ['<xmlThreatProtection/>', 'text/plain', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', true],
  ['<xmlThreatProtection/>', '', '<a>', true],
  ['<xmlThreatProtection/>', 'text/plain', 'a < b', false],
  ['<xmlThreatProtection/>', 'application/json', '{"a":', false],
  ['<jsonThreatProtection/>', 'text/plain', '\u00a0\u3000[', true],
  // Bytes that no text in UTF-8 has.
  ['<jsonThreatProtection/>', 'text/csv', Buffer.from('\xe4,1', 'latin1'), false],
  ['<jsonThreatProtection/>', 'text/csv', Buffer.from('"\xe4",1', 'latin1'), false],
  ['<jsonThreatProtection/>', 'text/csv', Buffer.from('{"\xe4":1}', 'latin1'), true],
  ['<jsonThreatProtection/>', 'text/csv', Buffer.from('"\xe4"', 'latin1'), true],
  ['<jsonThreatProtection maxStringLength="1"/>', 'text/plain;charset=utf-16le', Buffer.from('"ab"', 'utf16le'), true],
  ['<xmlThreatProtection/>', 'text/csv', Buffer.from('\xe4,1', 'latin1'), false],
] as const) {
  const shown = Buffer.from(body).toString('latin1').slice(0, 40)
  test(`D266: of type "${type}", ${steps} ${isRefused ? 'refuses' : 'allows'} ${shown}`, async () => {
    const { fault } = await runPolicy(steps, { body, type })
    assert.equal(fault?.code, isRefused ? 400 : undefined)
  })
}
const MULTIPART = 'multipart/form-data; boundary=B'
const parts = (head: string, content: string) =>
  `--B\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n--B--\r\n`
const base64 = Buffer.from('ok').toString('base64')

/** Pattern, content type, body, and whether it is refused. */
const INSPECTED: readonly (readonly [pattern: string, type: string, body: string, isRefused: boolean])[] = [
  ['&lt;script', 'application/json', '{"q":"\\u003cscript>"}', true],
  ['&lt;script', 'application/json', '{"\\u003cscript":1}', true],
  ['&lt;script', 'application/json', '{"q":"\\u003cscript>","q":""}', true],
  ['drop\\s+table', 'application/json', '{"q":"drop\\ntable"}', true],
  ["='\\s*or", 'application/json', '{"q":"=\'\\t or"}', true],
  ['say "', 'application/json', '{"q":"say \\"x"}', true],
  ['^admin$', 'application/json', '{"role":"admin"}', true],
  ['"q" *: *"x', 'application/json', '{"q" : "\\u0078"}', true],
  ['drop\\s+table', 'application/json', '{"drop":"table"}', false],
  ['&lt;script', XML, '<a>&lt;script&gt;</a>', true],
  ['&lt;script', XML, '<a>&#60;script</a>', true],
  ['&lt;script', XML, '<a><![CDATA[<script>]]></a>', true],
  ['&lt;script', XML, '<a b="&lt;script"/>', true],
  ['&lt;script', XML, '<a b="x"><script/></a>', true],
  ['drop table', XML, '<a>dr<!-- -->op table</a>', true],
  ['secret', XML, '<a><!-- secret --></a>', true],
  ['secret', XML, '<?secret x?><a/>', true],
  ['^admin$', XML, '<a><b>x</b><b>admin</b></a>', true],
  ['role="admin"', XML, "<a role = 'admin'/>", true],
  ['&lt;script', 'text/xml; charset=utf-8', '<a filename="b">&lt;script</a>', true],
  ['&lt;script', FORM, 'q=%3Cscript%3E', true],
  ['a b', FORM, 'a+b=1', true],
  ['a b', FORM, 'q=a%20b', true],
  ['é', `${FORM}; charset=iso-8859-1`, 'q=caf%E9', true],
  ['q=%3C', FORM, 'q=%3Cscript%3E', true],
  ['JsonReader', FORM, 'a+b=1', false],
  ['&lt;script', 'text/plain', 'x <script>', true],
  ['&lt;script', 'text/plain', '&lt;script', false],
  ['&lt;script', MULTIPART, parts('name="a"', '<script>'), true],
  ['a b', MULTIPART, parts('name="a b"', 'x'), true],
  ['&lt;script', MULTIPART, parts('name="a"; filename="b"', '<script>'), true],
  ['evil\\.exe', MULTIPART, parts('name="a"; filename="evil.exe"', 'x'), true],
  ['é', MULTIPART, parts('name="a"; filename="b"', 'é'), true],
  [base64, MULTIPART, parts('name="a"; filename="b"', 'ok'), false],
  ['&lt;script', 'application/octet-stream', '\u0000<script', true],
  // A backend may read JSON whatever its type says.
  ['&lt;script', '', '{"q":"\\u003cscript"}', true],
  ['&lt;script', 'text/plain', ' ["\\u003cscript"]', true],
  ['&lt;script', 'text/plain; charset=utf-16le', '"\\u003cscript"', false],
  ['&lt;script', 'application/octet-stream', '\ufeff{"\\u003cscript":1}', true],
  ['&lt;é', 'application/octet-stream', '["\\u003cé"]', true],
  ['&lt;script', 'application/x-www-form-urlencoded', '{"q":"\\u003cscript"}', true],
  ['&lt;script', 'text/plain', '{"q":"\\u003cscript"', false],
  ['é', '', 'é', true],
]

for (const [pattern, type, body, isRefused] of INSPECTED) {
  const shown = body.replace(/[\0\r\n]+/g, ' ')
  test(`the pattern ${pattern} ${isRefused ? 'refuses' : 'lets pass'} ${shown} of type ${type}`, async () => {
    const { fault } = await runPolicy(regex(pattern.replaceAll('"', '&quot;'), 'body="true"'), { body, type })
    assert.equal(fault?.message.replace(/^[^:]*: /, '') ?? '', isRefused ? 'the body of the request may not match' : '')
  })
}

test('a body that a sequence made is inspected in place of the one that was received', async () => {
  const made = '<payloadFactory media-type="json"><format>{"q":"a\\nb"}</format></payloadFactory>'
  const inspect = (pattern: string) =>
    runPolicy(`${made}${regex(pattern, 'body="true"')}`, { body: '{"q":"received"}' })
  assert.equal((await inspect('received')).fault, null)
  assert.notEqual((await inspect('a\\sb')).fault, null)
})

for (const [steps, given, violation] of MESSAGES) {
  const shown = `${given.target ?? ''}${(given.body ?? '').slice(0, 30)}`
  test(`${steps} ${violation === '' ? 'lets pass' : `refuses because ${violation}`}: ${shown}`, async () => {
    const { fault, message } = await runPolicy(steps, given)
    if (violation === '') return assert.equal(fault, null)
    assert.equal(fault?.message.replace(/^[^:]*: /, ''), violation)
    assert.deepEqual([fault?.code, fault?.sequence], [400, '_threat_fault_'])
    const said = ['THREAT_CODE', 'THREAT_MSG', 'THREAT_DESC'].map(name => message.get('default', name))
    assert.deepEqual(said, [400, 'Bad Request', fault?.message])
  })
}

for (const [attribute, type, body] of [
  ['json', 'application/json', '{"a":'],
  ['json', 'application/vnd.a+json', '[1,]'],
  ['xml', 'application/xml', '<a>'],
  ['xml', 'text/xml; charset=utf-8', 'x'],
] as const) {
  test(`${body} of type ${type} is refused by <wellFormedBody ${attribute}="true"> with 102520`, async () => {
    const { fault } = await runPolicy(`<wellFormedBody ${attribute}="true"/>`, { type, body })
    assert.deepEqual([fault?.code, fault?.sequence], [102520, ''])
  })
}

testRefusals([
  ['<jsonThreatProtection maxDepth="-1"/>', 'jsonThreatProtection/maxDepth = -1: expected a whole number'],
  ['<jsonThreatProtection maxdepth="1"/>', 'jsonThreatProtection/maxdepth: is an unknown attribute'],
  ['<regexThreatProtection pattern="(" body="true"/>', 'regexThreatProtection/pattern = ('],
  ['<regexThreatProtection pattern="a"/>', 'regexThreatProtection: inspects nothing'],
])

test('only protection that looks at a body needs a worker', async () => {
  const needs = async (steps: string) => {
    const plan = await planOf(steps)
    return needsOf(['one'], () => plan)
  }
  assert.equal(await needs(regex('a', 'path="true" headers="true" query="true"')), 'heads')
  assert.equal(await needs(regex('a', 'body="true"')), 'worker')
  assert.equal(await needs('<jsonThreatProtection/>'), 'worker')
})
