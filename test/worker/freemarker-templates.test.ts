/** Templates of FreeMarker in `<payloadFactory>`, on real workers: documented examples, files, faults, hostile data. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { NO_STATE } from '../../src/mediation/worker-task.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { json, messageOf, startWorker, suiteWorker, textOf } from './started-worker.ts'

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: templates

const template = (media: string, text: string, args = '') =>
  `<payloadFactory media-type="${media}" template-type="freemarker">
    <format><![CDATA[${text}]]></format><args>${args}</args></payloadFactory>`
const keyed = (media: string, key: string) =>
  `<payloadFactory media-type="${media}" template-type="FREEMARKER"><format key="${key}"/></payloadFactory>`
const property = (name: string, attributes: string) => `<property name="${name}" ${attributes}/>`

const FILES = {
  'templates/edi.ftl':
    '<#-- Separator -->\n<#assign sep="*">\nISA${sep}${payload.T.id}${sep}\n<#list payload.T.x as x>\n  X${sep}${x.n[0]!""}\n</#list>\n',
  'templates/wrong.ftl': 'a\n<#include "b.ftl">',
  'synapse-configs/default/local-entries/hello.xml':
    '<localEntry key="hello"><![CDATA[{"hi": "${payload.n}"}]]></localEntry>',
}

const USER = `<user><first_name>John</first_name><last_name>Deo</last_name><age>35</age>
  <location><state code="NY">New York</state><city>Manhattan</city></location></user>`
const PEOPLE = `<people>
  <person><id>1</id><first_name>Veronika</first_name><last_name>Lacroux</last_name></person>
  <person><id>2</id><first_name>Trescha</first_name><last_name>Campaigne</last_name></person>
</people>`
const LIST = '[{"id":1,"first_name":"V","last_name":"L"},{"id":2,"first_name":"T","last_name":"C"}]'
const PERSONS = `<people>
  <#list payload as person>
  <person><index>\${person.id}</index><name>\${person.first_name} \${person.last_name}</name></person>
  </#list>
</people>`

/** What is shown, sequence, body (JSON unless it begins with `<`), the body that is made. */
const ROWS: readonly (readonly [what: string, sequence: string, body: string, made: string])[] = [
  [
    'XML to JSON',
    template(
      'json',
      '{"Name": "${payload.user.first_name} ${payload.user.last_name}", "Age": ${payload.user.age}, "Address": "${payload.user.location.city},${payload.user.location.state.@code}"}',
    ),
    USER,
    '{"Name": "John Deo", "Age": 35, "Address": "Manhattan,NY"}',
  ],
  [
    'JSON to XML',
    template(
      'xml',
      '<user>\n  <Name>${payload.first_name}</Name>\n  <Address>${payload.location.city}, ${payload.location.state.code}</Address>\n</user>',
    ),
    '{"first_name":"John","location":{"state":{"code":"NY"},"city":"Manhattan"}}',
    '<user>\n  <Name>John</Name>\n  <Address>Manhattan, NY</Address>\n</user>',
  ],
  [
    'JSON arrays',
    template('xml', PERSONS),
    LIST,
    '<people>\n  <person><index>1</index><name>V L</name></person>\n  <person><index>2</index><name>T C</name></person>\n</people>',
  ],
  [
    'CSV of XML',
    template(
      'text',
      'ID,First Name\n    <#list payload.people.person as person>\n${person.id},${person.first_name}\n    </#list>',
    ),
    PEOPLE,
    'ID,First Name\n1,Veronika\n2,Trescha',
  ],
  [
    'CSV of columns that are not known',
    template(
      'text',
      `<#list payload.people.person[0]?children?filter(c -> c?nodeType == 'element') as c>\${c?node_name}<#sep>,</#list>
<#list payload.people.person as person>
<#list person?children?filter(c -> c?node_type == 'element') as c>\${c}<#sep>,</#list>
</#list>`,
    ),
    PEOPLE,
    'id,first_name,last_name\n1,Veronika,Lacroux\n2,Trescha,Campaigne',
  ],
  [
    'a template in a file',
    keyed('text', 'templates/edi.ftl'),
    '<T><id>7</id><x><n>1</n></x><x/></T>',
    'ISA*7*\n  X*1\n  X*',
  ],
  ['a template in a local entry', keyed('json', 'hello'), '{"n":"x"}', '{"hi": "x"}'],
  [
    'elements outside of CDATA',
    '<payloadFactory template-type="freemarker"><format><a xmlns="" b="${payload.n}"><c>${payload.n + 1}</c></a></format></payloadFactory>',
    '{"n":1}',
    '<a xmlns="" b="1"><c>2</c></a>',
  ],
  // Root variables.
  [
    'properties are texts',
    property('p', 'value="1234"') +
      property('j', 'type="JSON" expression="json-eval($.o)"') +
      property('n', 'type="INTEGER" value="5000"') +
      property('x', 'type="OM" value="&lt;a>1&lt;/a>"') +
      template(
        'text',
        '${ctx.p} ${ctx.j} ${ctx.n} ${ctx.x} ${ctx.j?eval_json.k} ${(ctx.none)!"-"} ${ctx?keys?seq_contains("p")?c} ${props.synapse.p}',
      ),
    '{"o":{"k":1}}',
    '1234 {"k":1} 5000 <a>1</a> 1 - true 1234',
  ],
  [
    'variables keep their types',
    '<variable name="s" type="STRING" value="x"/><variable name="n" type="INTEGER" value="5000"/>' +
      '<variable name="b" type="BOOLEAN" value="true"/><variable name="j" type="JSON" expression="${payload.o}"/>' +
      template(
        'text',
        '${vars.s} ${vars.n} ${vars.n?c} ${vars.b?c} ${vars.j.k[1]} ${var.s} <#list vars?keys as k>${k}</#list>',
      ),
    '{"o":{"k":[1,2]}}',
    'x 5,000 5000 true 2 x snbj',
  ],
  [
    'header fields and the scope axis2',
    property('X-New', 'scope="transport" value="v"') +
      template(
        'text',
        '${trp["Content-Type"]} ${trp["content-type"]} ${trp["X-New"]} ${headers["X-New"]} ${axis2.REST_URL_POSTFIX} ${axis2.HTTP_METHOD} ${props.axis2.HTTP_METHOD} ${trp?keys?join(",")}',
      ),
    '{}',
    'application/json application/json v v /pets?limit=5 POST POST Content-Type,X-New',
  ],
  [
    'arguments in JSON are escaped, numbers and structures stay',
    template(
      'json',
      '{"a": "${args.arg1}", "b": ${args.arg2}, "c": ${args.arg3}, "d": "${args.arg4}", "e": ${args.arg5}}',
      '<arg value="Value &quot;One&quot;"/><arg value="500"/><arg evaluator="json" expression="$.o"/><arg evaluator="json" expression="$.t"/><arg evaluator="json" expression="$.s"/>',
    ),
    '{"o":{"k":["\\""]},"t":"\\"}\\n${x}","s":"[1,2]"}',
    '{"a": "Value \\"One\\"", "b": 500, "c": {"k":["\\""]}, "d": "\\"}\\n${x}", "e": [1,2]}',
  ],
  [
    'arguments in XML are escaped, structures are elements',
    template(
      'xml',
      '<a xmlns=""><b>${args.arg1}</b>${args.arg2}</a>',
      '<arg evaluator="json" expression="$.t"/><arg evaluator="json" expression="$.o"/>',
    ),
    '{"t":"<x>&","o":{"k":1}}',
    '<a xmlns=""><b>&lt;x&gt;&amp;</b><k>1</k></a>',
  ],
  [
    'a literal argument of JSON is text',
    template('json', '["${args.arg1}"]', '<arg literal="true" evaluator="json" expression="$.o"/>'),
    '{"o":{"k":1}}',
    '["{\\"k\\":1}"]',
  ],
  // Payloads.
  ['JSON that is no object', template('text', '${payload?is_string?c} ${payload}'), '"a"', 'true a'],
  ['null', template('text', '[${payload}]'), 'null', '[null]'],
  [
    'numbers in the locale en_US',
    template('text', '${payload.n} ${payload.n?c} ${payload.f} ${payload.big} ${payload.big?c}'),
    '{"n":1234567,"f":1.23456,"big":12345678901234567890}',
    '1,234,567 1234567 1.235 12,345,678,901,234,567,890 12345678901234567890',
  ],
  [
    'names of JavaScript',
    template(
      'text',
      '${(payload.constructor)!"-"} ${(payload.__proto__.x)!"-"} ${(payload.toString)!"-"} ${(ctx.constructor)!"-"} ${constructor!"-"} ${(args.__proto__)!"-"}',
    ),
    '{"a":1}',
    '- - - - - -',
  ],
  ['a member named as the prototype', template('text', '${payload["__proto__"].x}'), '{"__proto__":{"x":1}}', '1'],
]

const making = suiteWorker(
  { others: Object.fromEntries(ROWS.map(([, sequence], at) => [`row-${at}`, sequence])) },
  FILES,
)

for (const [at, [what, , body, made]] of ROWS.entries()) {
  test(`${what}: ${body} becomes ${JSON.stringify(made)}`, async () => {
    const worker = await making
    const type = body.startsWith('<') ? 'application/xml' : 'application/json'
    const message = { body: json(body), fields: [['Content-Type', type]] } as const
    const text = textOf(messageOf(await worker.run(message, [`row-${at}`])))
    assert.equal(text.replace(/^<\?xml[^>]*\?>/, ''), made)
  })
}

test('a SOAP message is what its Body holds, and an Envelope is a message', async t => {
  const soap = (content: string) =>
    `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>${content}</s:Body></s:Envelope>`
  const request =
    property('messageType', 'scope="axis2" value="text/xml"') + template('xml', soap('<r xmlns="">${payload.q.id}</r>'))
  const worker = await startWorker(t, { request })
  const body = json(soap('<q xmlns=""><id>7</id></q>'))
  const { body: made, fields } = messageOf(await worker.run({ body, fields: [['Content-Type', 'text/xml']] }))
  assert.ok(made.kind === 'bytes')
  assert.match(new TextDecoder().decode(made.bytes), /<s:Body><r xmlns="">7<\/r><\/s:Body>/)
  assert.ok(fields.some(([name, value]) => /^content-type$/i.test(name) && value.startsWith('text/xml')))
})

test('a text payload is escaped where XML is made, and nowhere else; no payload is an empty text', async t => {
  const fields = [['Content-Type', 'text/plain']] as const
  for (const [media, text, given, expected] of [
    ['xml', '<a>${payload}</a>', 'x < y', /<a>x &lt; y<\/a>$/],
    ['text', '${payload}', 'x < y', /^x < y$/],
    ['text', '[${payload}]', '', /^\[\]$/],
  ] as const) {
    const worker = await startWorker(t, { request: template(media, text) })
    const body = given === '' ? ({ kind: 'none' } as const) : json(given)
    assert.match(textOf(messageOf(await worker.run({ body, fields }))), expected)
  }
})

const SECRET = 'do-not-tell'

/** Sequence, body, cause of the fault, its code. */
const FAULTS: readonly (readonly [sequence: string, body: string, cause: RegExp, code: number])[] = [
  [
    template('json', '{\n"a": ${payload.missing}}'),
    '{"a":1}',
    /^fault-0\.xml:1: line 2 of the template: payload\.missing is missing$/,
    0,
  ],
  [
    template('json', '{"a": "${payload.s}"}'),
    `{"s":"${SECRET}\\"}"}`,
    /: the template makes no JSON: the body is not JSON at character \d+$/,
    0,
  ],
  [template('json', '<#if false>x</#if>'), '{}', /: the template makes no JSON: it is empty$/, 0],
  [template('xml', '<a>${payload.s}</a>'), `{"s":"<${SECRET}"}`, /: the template makes no XML: /, 0],
  [template('xml', '<a/><b/>'), '{}', /: the template makes no XML: /, 0],
  [
    template('text', '${payload.s?number}'),
    `{"s":"${SECRET}"}`,
    /: line 1 of the template: payload\.s\?number is no number$/,
    0,
  ],
  [
    template('text', '<#stop payload.s>'),
    `{"s":"${SECRET}"}`,
    /: line 1 of the template: <#stop payload\.s> stops the template$/,
    0,
  ],
  [
    keyed('text', 'templates/wrong.ftl'),
    '{}',
    /: the format templates\/wrong\.ftl has <#include>, which is not supported, in its line 2: /,
    0,
  ],
  [keyed('text', 'templates/none.ftl'), '{}', /is neither a local entry nor a file/, 102580],
  // Limits.
  [
    template('text', '<#list 1..100000000 as i>${payload.s}</#list>'),
    `{"s":"${'x'.repeat(1000)}"}`,
    /: the template makes more than 67108864 characters/,
    102532,
  ],
  [
    template('text', '${(1..payload.n)?join(",")}'),
    '{"n":100000000}',
    /: the template makes a sequence of more than 500000 items/,
    102532,
  ],
  [template('json', '${"["?left_pad(300, "[")}${"]"?left_pad(300, "]")}'), '{}', /more than 200 levels/, 102532],
  [
    template('text', '${payload.s?eval_json?size}'),
    JSON.stringify({ s: '['.repeat(300) + ']'.repeat(300) }),
    /more than 200 levels/,
    102532,
  ],
  [
    template('text', '<#attempt><#list 1..payload.n as i></#list><#recover>x</#attempt>'),
    '{"n":1000000000000}',
    /^computed for more than 3000 ms without waiting$/,
    102542,
  ],
]

const faulty = suiteWorker(
  { others: Object.fromEntries(FAULTS.map(([sequence], at) => [`fault-${at}`, sequence])) },
  FILES,
)
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: templates

for (const [at, [sequence, , cause, code]] of FAULTS.entries()) {
  test(`${sequence} faults: ${cause}`, async () => {
    const worker = await faulty
    const result = await worker.run({ body: json(FAULTS[at]![1]), state: NO_STATE }, [`fault-${at}`])
    assert.ok(result.kind === 'faults', result.kind)
    assert.equal(result.fault.code, code, result.fault.cause)
    assert.match(result.fault.cause, cause)
    assert.ok(!JSON.stringify(result.fault).includes(SECRET))
  })
}

test('a changed template is read again', async t => {
  const home = temporaryHome(t, FILES)
  const worker = await startWorker(t, { request: keyed('text', 'templates/edi.ftl') }, { home })
  const fields = [['Content-Type', 'application/xml']] as const
  const made = async () => textOf(messageOf(await worker.run({ body: json('<T><id>7</id></T>'), fields })))
  assert.equal(await made(), 'ISA*7*')
  await setTimeout(20)
  // biome-ignore lint/suspicious/noTemplateCurlyInString: template
  writeFileSync(join(home, 'templates/edi.ftl'), '${payload.T.id}')
  while ((await made()) !== '7') await setTimeout(50)
})
