/** The documented examples of `${…}` have the documented values, on a worker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { json, messageOf, startWorker, textOf } from './started-worker.ts'

const BODY = {
  students: [{ name: 'Ann' }],
  user: { 'first name': 'Bo' },
  users: [
    { name: 'old', age: 41 },
    { name: 'young', age: 17 },
  ],
  value: 'some text here',
  encodedValue: 'dGV4dA==',
  array: [1, 2, 3],
  object: '{"students":[{"name":"Cy"}]}',
  list: '[{"name":"a"},{"name":"b"}]',
  base: 2,
  exponent: 5,
  number: 2.7543,
  booleanValue: false,
  student: { firstName: 'Ann', lastName: 'Lee' },
}

/** Expression, and its value as text. */
const EXAMPLES: readonly (readonly [expression: string, value: string])[] = [
  ['"Hello World"', 'Hello World'],
  ['payload.students', '[{"name":"Ann"}]'],
  ['$.base', '2'],
  ['payload.user["first name"]', 'Bo'],
  ['vars["last name"]', 'Lee'],
  ['headers["Content-Type"]', 'application/json'],
  ['props.synapse.propertyName', 'set'],
  ['properties.axis2.HTTP_METHOD', 'POST'],
  ['params.queryParams.limit', '5'],
  ['params.uriParams.kind', 'pets'],
  ['params.pathParams.kind', 'pets'],
  ['(vars.num1 + vars.num2) * vars.num1', '80'],
  ['vars.num1 / vars.num2', '4'],
  ['(vars.num1 + 5) > vars.num2 && (vars.num1 - 3) < vars.num2', 'false'],
  ['vars.num1 == null ? vars.num2 : vars.num1', '8'],
  ['45 == (  $["null"] ? vars.num1 : vars.num2)', 'false'],
  [
    '"Hello " +  ( exists($.student.lastName) ? $.student.firstName + " " +  $.student.lastName : "" )',
    'Hello Ann Lee',
  ],
  ['isNumber(vars.num1) ? vars.num1 * 2 : 0', '16'],
  ['payload.users[?(@.age >= 18)]', '[{"name":"old","age":41}]'],
  ['payload.users[?(@.age >= vars.minAge)].name', '["old"]'],
  ['length(payload.array)', '3'],
  ['subString("text", 0, 2)', 'te'],
  ['startsWith(payload.value, "some")', 'true'],
  ['endsWith("text", "xt")', 'true'],
  ['replace("text", "t", "r")', 'rexr'],
  ['split("a,b,c", ",")', '["a","b","c"]'],
  ['charAt("text", 1)', 'e'],
  ['indexOf(payload.value, "text", 5)', '5'],
  ['abs(-5)', '5'],
  ['log(1)', '0'],
  ['pow(payload.base, payload.exponent)', '32'],
  ['round(payload.number, 2)', '2.75'],
  ['base64encode(payload.value, "ISO-8859-1")', 'c29tZSB0ZXh0IGhlcmU='],
  ['base64decode(payload.encodedValue)', 'text'],
  ['urlDecode("text%20with%20spaces")', 'text with spaces'],
  ['object(payload.object).students..name', '["Cy"]'],
  ['array(payload.list)[1].name', 'b'],
  ['formatDateTime("29-09-1988", "dd-MM-yyyy", "yyyy MMM dd")', '1988 Sep 29'],
  ['length(formatDateTime(now(), "yyyy-MM-dd"))', '10'],
  ['now() + 1000 > now()', 'true'],
  ["exists('vars.notMandatoryProperty') ? vars.notMandatoryProperty : 'default'", 'default'],
  ['not(payload.booleanValue)', 'true'],
  ["xpath('//students/name/text()')", 'Ann'],
  ["xpath('//student[2]/text()', 'Students')", 'Di'],
]

test('the documented examples of expressions have the documented values', async t => {
  const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
  const steps = [
    '<variable name="num1" type="INTEGER" value="8"/><variable name="num2" type="INTEGER" value="2"/>',
    '<variable name="minAge" type="INTEGER" value="18"/><variable name="last name" value="Lee"/>',
    '<variable name="Students" value="&lt;a&gt;&lt;student&gt;Cy&lt;/student&gt;&lt;student&gt;Di&lt;/student&gt;&lt;/a&gt;"/>',
    '<property name="propertyName" value="set"/><property name="API_ELECTED_RESOURCE" value="/{kind}"/>',
    ...EXAMPLES.map(([expression], at) => `<property name="p${at}" expression="\${${escaped(expression)}}"/>`),
    '<payloadFactory media-type="text"><format>',
    EXAMPLES.map((_, at) => `\${props.synapse.p${at}}`).join('\n'),
    '</format></payloadFactory>',
  ]
  const worker = await startWorker(t, { request: steps.join('') })
  const made = textOf(messageOf(await worker.run({ body: json(JSON.stringify(BODY)) })))
  const values = made.trim().split('\n')
  assert.deepEqual(
    EXAMPLES.map(([expression], at) => [expression, values[at]]),
    EXAMPLES,
  )
  assert.deepEqual(worker.reports, [])
})
