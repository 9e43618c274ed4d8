/** Guardrails of AI APIs on requests and responses. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testRefusals } from '../test-sequences.ts'
import { runPolicy } from './policy-flow.ts'

const CHAT = JSON.stringify({ messages: [{ content: 'Hello there, world. See https://good.example/docs.' }] })
const PATH = 'jsonPath="$.messages[0].content" showAssessment="true"'
const urls = (...allowed: readonly string[]) =>
  `<guardrail type="url" ${PATH}>${allowed.map(url => `<url>${url}</url>`).join('')}</guardrail>`
const WHOLE_URLS = '<guardrail type="url" showAssessment="true"><url>good.example</url></guardrail>'
const regex = (pattern: string, attributes = '') =>
  `<guardrail type="regex" pattern="${pattern}" invert="true" showAssessment="true" ${attributes}/>`
const schema = (text: string, attributes = '') =>
  `<guardrail type="jsonSchema" showAssessment="true" ${attributes}><schema>${text}</schema></guardrail>`

/** Steps, body, and the assessment; '' where the message continues. */
const CONTENTS: readonly (readonly [steps: string, body: string, assessment: string])[] = [
  [`<guardrail type="wordCount" min="1" max="5" ${PATH}/>`, CHAT, ''],
  [`<guardrail type="wordCount" min="6" ${PATH}/>`, CHAT, '5 words, limits: at least 6'],
  [`<guardrail type="wordCount" max="4" ${PATH}/>`, CHAT, '5 words, limits: 0 to 4'],
  [`<guardrail type="wordCount" max="4" invert="true" ${PATH}/>`, CHAT, ''],
  [`<guardrail type="wordCount" max="5" invert="true" ${PATH}/>`, CHAT, '5 words, limits: 0 to 5'],
  [
    '<guardrail type="wordCount" min="1" jsonPath="$.none" showAssessment="true"/>',
    CHAT,
    '0 words, limits: at least 1',
  ],
  [
    '<guardrail type="sentenceCount" max="2" showAssessment="true"/>',
    '"One. Two! Three?"',
    '4 sentences, limits: 0 to 2',
  ],
  ['<guardrail type="sentenceCount" max="3" jsonPath="$.a" showAssessment="true"/>', '{"a":"One. Two! Three?"}', ''],
  ['<guardrail type="contentLength" max="4" jsonPath="$.a" showAssessment="true"/>', '{"a":"éé"}', ''],
  [
    '<guardrail type="contentLength" max="3" jsonPath="$.a" showAssessment="true"/>',
    '{"a":"éé"}',
    '4 bytes, limits: 0 to 3',
  ],
  [`<guardrail type="regex" pattern="(?i)hello" ${PATH}/>`, CHAT, ''],
  [`<guardrail type="regex" pattern="password" ${PATH}/>`, CHAT, 'the text does not match the pattern'],
  [`<guardrail type="regex" pattern="(?i)hello" invert="true" ${PATH}/>`, CHAT, 'the text matches the pattern'],
  [
    '<guardrail type="regex" pattern="a" showAssessment="true"/>',
    `"${'a'.repeat(1_100_000)}"`,
    'the text has more than 1048576 characters',
  ],
  [
    '<guardrail type="regex" pattern="secret" invert="true" showAssessment="true"/>',
    `"${'a'.repeat(1_100_000)} secret"`,
    'the text has more than 1048576 characters',
  ],
  [
    '<guardrail type="url" invert="true" showAssessment="true"><url>good.example</url></guardrail>',
    `"${'a'.repeat(1_100_000)} https://good.example/"`,
    'the text has more than 1048576 characters',
  ],
  [schema('{"type":"object","required":["messages"]}'), CHAT, ''],
  [schema('{"type":"object","required":["model"]}'), CHAT, 'the JSON is not valid'],
  [schema('{"type":"object","required":["model"]}', 'invert="true"'), CHAT, ''],
  [schema('{"type":"integer"}', 'jsonPath="$.a"'), '{"a":"7"}', ''],
  [schema('{"type":"object"}', 'jsonPath="$.a"'), '{"a":"{\'b\':1}"}', 'the text is not JSON'],
  [schema('{"type":"object"}', 'jsonPath="$.a" invert="true"'), '{"a":"{\'b\':1}"}', 'the text is not JSON'],
  [schema('{"type":"object"}', 'jsonPath="$.a"'), '{}', 'the text is not JSON'],
  [schema('{"type":"object"}', 'jsonPath="$.a" invert="true"'), '{}', ''],
  [schema('{"type":"string","pattern":"^(a+)+$"}'), `"${'a'.repeat(50_000)}b"`, 'the JSON is not valid'],
  [
    schema('{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[{"type":"number"}]}'),
    '["x"]',
    'the JSON is not valid',
  ],
  // The text of a rule is also looked at without escapes.
  [
    '<guardrail type="wordCount" max="5" showAssessment="true"/>',
    `"${'a b.'.repeat(5_000_000)}"`,
    '5000001 words, limits: 0 to 5',
  ],
  [
    '<guardrail type="sentenceCount" max="5" showAssessment="true"/>',
    `"${'a. .?! b.'.repeat(2_000_000)}"`,
    '4000001 sentences, limits: 0 to 5',
  ],
  [
    '<guardrail type="wordCount" max="1" jsonPath="$.a" showAssessment="true"/>',
    '{"a":"a\u2003b\u00a0c\ufeff\u3000"}',
    '3 words, limits: 0 to 1',
  ],
  [WHOLE_URLS, JSON.stringify('https://good.example/'.repeat(10_001)), 'the text has more than 10000 URLs'],
  [
    WHOLE_URLS.replace('<url>', '<url>a</url><url>').replace('url"', 'url" invert="true"'),
    JSON.stringify('https://'.repeat(131_000)),
    'the text has more than 10000 URLs',
  ],
  [regex('drop\\s+table'), '{"q":"drop\\ntable"}', 'the text matches the pattern'],
  [regex('secret', 'jsonPath="$.a"'), '{"a":"secret","a":"x"}', 'a member of the JSON repeats'],
  [regex('secret', 'jsonPath="$.b"'), '{"a":{"b":1},"b":"x"}', ''],
  [schema('{"properties":{"a":{"type":"number"}}}'), '{"a":"x","a":1}', 'a member of the JSON repeats'],
  [
    schema('{"properties":{"a":{"type":"number"}}}', 'jsonPath="$.text"'),
    JSON.stringify({ text: '{"a":"x","a":1}' }),
    'a member of the JSON repeats',
  ],
  [schema('{"properties":{"a":{"type":"number"}}}', 'jsonPath="$.text"'), JSON.stringify({ text: '{"a":1}' }), ''],
  [
    schema('{"properties":{"a":{"type":"string"}}}', 'invert="true"'),
    '{"a":"x","a":1}',
    'a member of the JSON repeats',
  ],
  [regex('secret'), '{"a":"x","a":"y"}', ''],
  [regex('a b'), '{"q":"a\\u0020b"}', 'the text matches the pattern'],
  [regex('drop\\s+table', 'jsonPath="$.q"'), '{"q":{"x":["drop\\ntable"]}}', 'the text matches the pattern'],
  [regex('^drop$', 'jsonPath="$.q"'), '{"q":["drop"]}', 'the text matches the pattern'],
  [WHOLE_URLS, '["https:\\/\\/evil.example"]', '1 URLs that are not allowed'],
  [WHOLE_URLS, '["https:\\u002f/evil.example"]', '1 URLs that are not allowed'],
  [WHOLE_URLS, '["https://good.example\\u002eevil.example"]', '1 URLs that are not allowed'],
  [WHOLE_URLS, '["https:\\/\\/good.example\\/"]', ''],
  // Marks of Markdown stand directly beside a URL.
  [WHOLE_URLS, '["_https://evil.example_"]', '1 URLs that are not allowed'],
  [WHOLE_URLS, '["1https://evil.example"]', '1 URLs that are not allowed'],
  [WHOLE_URLS, '["_https://good.example_ **https://good.example** ~~https://good.example~~"]', ''],
  [urls('good.example').replace('messages[0].content', 'messages'), CHAT, ''],
  [urls('good.example'), CHAT, ''],
  [urls('https://good.example/docs'), CHAT, ''],
  [urls('*.example'), CHAT, ''],
  [urls('https://good.example/other', 'bad.example'), CHAT, '1 URLs that are not allowed'],
  [urls(), CHAT, '1 URLs that are not allowed'],
  [urls('good.example'), CHAT.replace('https://', 'https://good.example@evil.example/'), '1 URLs that are not allowed'],
  [urls('good.example'), CHAT.replace('good.example', 'good.example.evil.example'), '1 URLs that are not allowed'],
  [urls('https://good.example/docs'), CHAT.replace('docs', 'docs/../admin'), '1 URLs that are not allowed'],
]

for (const [steps, body, assessment] of CONTENTS) {
  const does = assessment === '' ? 'lets pass' : `refuses: ${assessment}`
  test(`${steps.slice(0, 110)} ${does} ${body.slice(0, 60)}`, async () => {
    const { fault, message } = await runPolicy(steps, { body })
    if (assessment === '') return assert.equal(fault, null)
    assert.equal(fault?.message.replace(/^[^:]*: /, ''), assessment)
    assert.deepEqual(
      [fault?.code, fault?.sequence, message.get('default', 'CUSTOM_HTTP_SC')],
      [900514, 'guardrail_fault', 446],
    )
  })
}

/** Steps, a content type that hides the members of the body, and the body. */
const HIDDEN: readonly (readonly [steps: string, type: string, body: string])[] = [
  [regex('secret', 'jsonPath="$.a"'), 'text/plain', '{"a":"secret"}'],
  [regex('secret', 'jsonPath="$.a"'), '', '{"a":"secret"}'],
  [regex('secret', 'jsonPath="$.a"'), 'application/x-www-form-urlencoded', 'a=secret'],
  [WHOLE_URLS.replace('type', 'jsonPath="$.a" type'), 'text/plain', '{"a":"https://evil.example"}'],
  [
    '<guardrail type="contentLength" max="1" jsonPath="$.a" showAssessment="true"/>',
    'application/octet-stream',
    '{"a":"long"}',
  ],
]

for (const [steps, type, body] of HIDDEN) {
  test(`${steps.slice(0, 110)} refuses ${type === '' ? 'a body without a type' : type}`, async () => {
    const { fault } = await runPolicy(steps, { type, body })
    assert.equal(fault?.message.replace(/^[^:]*: /, ''), 'the body is not JSON')
  })
}

test('a guardrail looks into JSON whatever its content type is', async () => {
  for (const type of ['', 'text/plain', 'application/octet-stream', 'application/x-www-form-urlencoded']) {
    const { fault } = await runPolicy(WHOLE_URLS, { type, body: '["https:\\/\\/evil.example"]' })
    assert.match(fault?.message ?? '', /: 1 URLs that are not allowed$/, type)
  }
})

test('a JSONPath of a guardrail finds the members of XML', async () => {
  const { fault } = await runPolicy(regex('secret', 'jsonPath="$.a"'), { type: 'text/xml', body: '<a>secret</a>' })
  assert.match(fault?.message ?? '', /: the text matches the pattern$/)
})

test('a guardrail with a JSONPath lets a request without a body pass where an empty text passes', async () => {
  const { fault } = await runPolicy(regex('secret', 'jsonPath="$.a"'), { type: '' })
  assert.equal(fault, null)
})

test('the client is told the measure only where the guardrail shows it, and in which direction it acted', async () => {
  const steps = '<guardrail type="wordCount" name="short" max="1"/>'
  const request = await runPolicy(steps, { body: '"a b"' })
  assert.equal(request.fault?.message, 'the guardrail short refuses the request')
  assert.match(request.fault?.cause ?? '', /: 2 words, limits: 0 to 1$/)
  const response = await runPolicy(steps, { body: '"a b"', status: 200 })
  assert.equal(response.fault?.message, 'the guardrail short refuses the response')
})

testRefusals([
  ['<guardrail/>', 'guardrail/type: is missing'],
  ['<guardrail type="semantic"/>', 'guardrail/type = semantic: expected one of wordCount'],
  ['<guardrail type="wordCount" min="5" max="1"/>', 'guardrail/min = 5: is more than max'],
  ['<guardrail type="regex"/>', 'guardrail/pattern: is missing'],
  ['<guardrail type="jsonSchema"/>', 'guardrail/schema: is missing'],
  ['<guardrail type="jsonSchema"><schema>{"type":1}</schema></guardrail>', 'schema: is not a JSON Schema'],
  ['<guardrail type="jsonSchema"><schema>{"$ref":"http://a/b"}</schema></guardrail>', 'schema: is not a JSON Schema'],
  ['<guardrail type="url"><url>a b</url></guardrail>', 'url = a b: is neither a host nor a URL'],
])
