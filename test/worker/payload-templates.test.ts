/** Templates of `<payloadFactory>` in files and local entries, and expressions in templates, on real workers. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { NO_STATE } from '../../src/mediation/worker-task.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { set } from '../harness/flows.ts'
import { json, messageOf, startWorker, textOf } from './started-worker.ts'

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: expressions of the language
const FILES = {
  'formats/order.json': '{"order": {"n": $1, "text": "$2"}}',
  'formats/order.txt': 'n=$1 $2',
  'formats/no.json': '{"order": $1',
  'formats/more.json': '{"order": $3}',
  'formats/expression.json': '{"order": ${payload.n}}',
  'synapse-configs/default/local-entries/order.xml': '<localEntry key="order"><o n="$1">$2</o></localEntry>',
}
const ARGS =
  '<args><arg evaluator="json" expression="$.n" deepCheck="false"/><arg evaluator="json" expression="$.t"/></args>'
const keyed = (media: string, key: string) =>
  `<payloadFactory media-type="${media}" template-type="default"><format key="${key}"/>${ARGS}</payloadFactory>`
const inline = (media: string, format: string) =>
  `<payloadFactory media-type="${media}"><format>${format}</format></payloadFactory>`

/** [sequence, body, expected body] */
const TEMPLATES: readonly (readonly [string, string, string | RegExp])[] = [
  [keyed('json', 'formats/order.json'), '{"n":1,"t":"a\\"b"}', '{"order": {"n": 1, "text": "a\\"b"}}'],
  [keyed('json', 'conf:/formats/order.json'), '{"n":[1],"t":"$1"}', '{"order": {"n": [1], "text": "$1"}}'],
  [keyed('text', 'formats/order.txt'), '{"n":1,"t":"<x>"}', 'n=1 <x>'],
  [keyed('xml', 'order'), '{"n":1,"t":"<x>"}', /<o n="1">&lt;x&gt;<\/o>$/],
  [
    inline('json', '{"a": ${payload.n}, "b": "x${payload.t}1", "c": "${payload.n}1"}'),
    '{"n":"q","t":"\\"}"}',
    '{"a": "q", "b": "x\\"}1", "c": "q1"}',
  ],
  [inline('xml', '<a b="${payload.n}">${payload.t}</a>'), '{"n":2,"t":"<"}', /<a[^>]* b="2"[^>]*>&lt;<\/a>$/],
  [inline('text', 'it is ${payload.n}!'), '{"n":2}', 'it is 2!'],
]
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: expressions of the language

for (const [sequence, body, expected] of TEMPLATES) {
  test(`${sequence} of ${body} makes ${expected}`, async t => {
    const worker = await startWorker(t, { request: sequence }, { home: temporaryHome(t, FILES) })
    const text = textOf(messageOf(await worker.run({ body: json(body) })))
    if (typeof expected === 'string') assert.equal(text, expected)
    else assert.match(text, expected)
  })
}

const MARKUP = '&lt;w:s xmlns:w="urn:w"&gt;1&lt;/w:s&gt;&lt;w:s xmlns:w="urn:w"&gt;2&lt;/w:s&gt;'
const PROPERTY = `<property name="s" value='${MARKUP}'/>`
const AS_ELEMENTS = '<a><w:s xmlns:w="urn:w">1</w:s><w:s xmlns:w="urn:w">2</w:s></a>'
const xmlOf = (arg: string, before = '') =>
  `${before}<payloadFactory media-type="xml"><format><a>$1</a></format><args><arg ${arg}/></args></payloadFactory>`

/** [sequence, body, part of the payload]. */
const MADE: readonly (readonly [string, string, string])[] = [
  [xmlOf(`expression="get-property('s')"`, PROPERTY), '{}', AS_ELEMENTS],
  [xmlOf('expression="$ctx:s"', PROPERTY), '{}', AS_ELEMENTS],
  [xmlOf(`value='${MARKUP}'`), '{}', AS_ELEMENTS],
  [xmlOf('expression="$ctx:s" literal="true"', PROPERTY), '{}', '<a>&lt;w:s xmlns:w="urn:w"&gt;1&lt;/w:s&gt;'],
  [xmlOf('value="&lt;b&gt;1&lt;/b&gt;"'), '{}', '<a><b>1</b></a>'],
  // What is no markup, or ends the place where it stands, is text.
  [xmlOf('value="&lt;b&gt;1"'), '{}', '<a>&lt;b&gt;1</a>'],
  [xmlOf('value="&lt;b/&gt;&lt;/x&gt;&lt;x&gt;&lt;b/&gt;"'), '{}', '<a>&lt;b/&gt;&lt;/x&gt;&lt;x&gt;&lt;b/&gt;</a>'],
  [xmlOf('value="&lt;p:b/&gt;"'), '{}', '<a>&lt;p:b/&gt;</a>'],
  // Clients choose what paths find.
  [xmlOf('expression="$.t" evaluator="json"'), '{"t":"<b/>"}', '<a>&lt;b/&gt;</a>'],
  [xmlOf('expression="json-eval($.t)"'), '{"t":"<b/>"}', '<a>&lt;b/&gt;</a>'],
  [xmlOf('expression="//t/text()"'), '{"t":"<b/>"}', '<a>&lt;b/&gt;</a>'],
  [xmlOf("expression=\"get-property('transport', 'X-T')\"", set('X-T', '&lt;b/&gt;')), '{}', '<a>&lt;b/&gt;</a>'],
]

for (const [sequence, body, expected] of MADE) {
  test(`D864: ${sequence} of ${body} makes ${expected}`, async t => {
    const worker = await startWorker(t, { request: sequence })
    const text = textOf(messageOf(await worker.run({ body: json(body) })))
    assert.ok(text.replaceAll(' xmlns=""', '').includes(expected), text)
  })
}

const OF_CLIENT: Parameters<Awaited<ReturnType<typeof startWorker>>['run']>[0] = {
  fields: [
    ['Content-Type', '<b/>'],
    ['SOAPAction', '<b/>'],
  ],
  state: { ...NO_STATE, default: [['api.ut.userName', '<b/>']] },
}

for (const property of ["get-property('Action')", '$axis2:ContentType', '$ctx:api.ut.userName']) {
  test(`D864: what a client chooses stays text where ${property} reads it`, async t => {
    const worker = await startWorker(t, { request: xmlOf(`expression="${property}"`) })
    const text = textOf(messageOf(await worker.run(OF_CLIENT)))
    assert.ok(text.endsWith('<a>&lt;b/&gt;</a>'), text)
  })
}

for (const [key, cause] of [
  ['formats/no.json', /the format formats\/no\.json is not valid JSON/],
  ['formats/more.json', /has \$3, for which there is no argument/],
  ['formats/expression.json', /has an expression/],
  ['formats/none.json', /is neither a local entry nor a file/],
] as const) {
  test(`the format ${key} fails the message with its name`, async t => {
    const worker = await startWorker(t, { request: keyed('json', key) }, { home: temporaryHome(t, FILES) })
    const result = await worker.run({ body: json('{"n":1}') })
    assert.ok(result.kind === 'faults')
    assert.match(result.fault.cause, cause)
  })
}

test('a changed format is read again', async t => {
  const home = temporaryHome(t, FILES)
  const worker = await startWorker(t, { request: keyed('text', 'formats/order.txt') }, { home })
  const made = async () => textOf(messageOf(await worker.run({ body: json('{"n":1,"t":2}') })))
  assert.equal(await made(), 'n=1 2')
  await setTimeout(20)
  writeFileSync(join(home, 'formats/order.txt'), '$2')
  while ((await made()) !== '2') await setTimeout(50)
})
