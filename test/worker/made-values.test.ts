/** Values that sequences make on workers: elements from texts, and texts up to the limits of bodies. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { json, messageOf, startWorker, textOf } from './started-worker.ts'

const show = (expression: string) =>
  `<payloadFactory media-type="json"><format>{"is":"$1"}</format>
    <args><arg expression="${expression}"/></args></payloadFactory>`

/** [steps, JSON body, body that goes on] */
const ROWS: readonly (readonly [steps: string, body: string, made: string])[] = [
  [
    `<property name="e" type="OM" expression="json-eval($.x)"/>${show('local-name($ctx:e/*)')}`,
    '{"x":"<a><b/></a>"}',
    '{"is":"b"}',
  ],
  [`<property name="e" type="OM" value="&lt;a>1&lt;/a>"/>${show('$ctx:e')}`, '{}', '{"is":"1"}'],
  [`<variable name="e" type="XML" expression="json-eval($.x)"/>${show('$var:e')}`, '{"x":"<a>1</a>"}', '{"is":"1"}'],
  [`<property name="e" type="OM" expression="json-eval($.x)"/>${show('$ctx:e')}`, '{"x":"<a>"}', '{"is":""}'],
  [`<property name="e" type="OM" expression="json-eval($.x)"/>${show('$ctx:e')}`, '{"x":"a"}', '{"is":""}'],
]

for (const [steps, body, made] of ROWS) {
  test(`${steps} on ${body} makes ${made}`, async t => {
    const worker = await startWorker(t, { request: steps })
    assert.equal(textOf(messageOf(await worker.run({ body: json(body) }))), made)
  })
}

const LONG = 'x'.repeat(2_097_152)
const COPY = '<property name="p" expression="json-eval($.x)"/>'
const DOUBLED = '<property name="p" expression="concat($ctx:p, $ctx:p)"/>'
const OF_PROPERTY =
  '<payloadFactory media-type="text"><format>$1</format><args><arg expression="$ctx:p"/></args></payloadFactory>'

test('a text of 2 MiB is a property and a variable', async t => {
  const variable = `<variable name="v" expression="json-eval($.x)"/>${OF_PROPERTY.replace('$ctx:p', '$var:v')}`
  for (const request of [COPY + OF_PROPERTY, variable]) {
    const worker = await startWorker(t, { request })
    assert.equal(textOf(messageOf(await worker.run({ body: json(JSON.stringify({ x: LONG })) }))).length, LONG.length)
  }
})

const WRAPPED = (media: string, format: string) =>
  `<payloadFactory media-type="${media}"><format>${format}</format>
    <args><arg evaluator="json" expression="$.x"/></args></payloadFactory>`
const XML_TYPE = '<property name="messageType" value="application/xml" scope="axis2"/>'

/** Formats of payloadFactory, with how much is around the argument. */
const FORMATS: readonly (readonly [steps: string, around: number])[] = [
  [WRAPPED('json', '{"a":$1}'), '{"a":""}'.length],
  [WRAPPED('json', '{"a":"$1"}'), '{"a":""}'.length],
  [WRAPPED('text', '[$1]'), '[]'.length],
  [WRAPPED('xml', '<a xmlns="">$1</a>') + XML_TYPE, '<a></a>'.length],
]

for (const [request, around] of FORMATS) {
  test(`2 MiB are a part of the payload of ${request}`, async t => {
    const worker = await startWorker(t, { request })
    const text = textOf(messageOf(await worker.run({ body: json(JSON.stringify({ x: LONG })) })))
    assert.equal(text.replace(/^<\?.*?\?>| xmlns=""/g, '').length, LONG.length + around)
  })
}

test('a payload beyond the limits of bodies is a fault with a code', async t => {
  const many = '["1"'.concat(',"1"'.repeat(400_000), ']')
  const [json2, text] = [WRAPPED('json', '{"a":$1,"b":$1}'), WRAPPED('text', '$1'.repeat(40))]
  for (const [request, x, cause] of [
    [json2, many, /the JSON body has more than 500000 items/],
    [text, JSON.stringify(LONG), /the payload has more than 67108864 characters \(body\.max_decoded_size\)/],
  ] as const) {
    const worker = await startWorker(t, { request })
    const result = await worker.run({ body: json(`{"x":${x}}`) })
    assert.ok(result.kind === 'faults')
    assert.equal(result.fault.code, 102532)
    assert.match(result.fault.cause, cause)
  }
})

test('a property beyond the longest text of a body is a fault with a code, and no property is lost', async t => {
  const worker = await startWorker(t, { request: COPY + DOUBLED.repeat(5) + OF_PROPERTY })
  const result = await worker.run({ body: json(JSON.stringify({ x: LONG })) })
  assert.ok(result.kind === 'faults')
  assert.equal(result.fault.code, 102532)
  assert.match(result.fault.cause, /the value has more than 33554432 characters \(body\.max_text_length\)/)
})

/** Expressions on a text of 2 MiB, with the length of what they make; null: it is beyond the longest text of a body. */
const OF_FUNCTIONS: readonly (readonly [expression: string, length: number | null])[] = [
  ["payload.x + '!'", LONG.length + 1],
  ["replace(payload.x, 'x', 'y')", LONG.length],
  ["replace(payload.x, 'x', '')", 0],
  [`replace(payload.x, 'x', '${'y'.repeat(1000)}')`, null],
  [`replace(payload.x, '', '${'y'.repeat(1000)}')`, null],
  ["length(split(payload.x, ''))", null],
]

for (const [expression, length] of OF_FUNCTIONS) {
  const shown = expression.replace(/y{3,}/, 'y…')
  test(`\${${shown}} of 2 MiB is ${length === null ? 'a fault with a code' : `${length} characters`}`, async t => {
    const variable = `<variable name="p" type="STRING" expression="\${${expression}}"/>`
    const request = variable + OF_PROPERTY.replace('$ctx:p', '$var:p')
    const worker = await startWorker(t, { request })
    const result = await worker.run({ body: json(JSON.stringify({ x: LONG })) })
    if (length !== null) assert.equal(textOf(messageOf(result)).length, length)
    else {
      assert.ok(result.kind === 'faults')
      assert.equal(result.fault.code, 102532)
      assert.match(result.fault.cause, /makes a value beyond the limits of bodies/)
    }
  })
}
