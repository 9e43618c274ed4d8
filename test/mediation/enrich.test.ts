/** `<enrich>`: sources, targets and actions over JSON and XML. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Message } from '../../src/mediation/message.ts'
import { writeXml } from '../../src/mediation/xml-tree.ts'
import { markupOf, type Value } from '../../src/mediation/value.ts'
import { causes, file, parseFile, run, testRefusals } from './test-sequences.ts'

const JSON_BODY = { a: { b: 1, list: [{ n: 1 }, { n: 2 }] }, name: 'x' }

const inline = (content: string) => `<source type="inline">${content}</source>`
const property = '<source type="property" property="p"/>'
const custom = (path: string, more = '') => `<source clone="true" xpath="${path}" ${more}/>`
const into = (path: string, action = 'replace') => `<target action="${action}" xpath="${path}"/>`

function bodyOf({ payload }: Message): unknown {
  if (payload?.kind === 'json') return JSON.parse(payload.text)
  if (payload?.kind === 'xml') return writeXml(payload.root)
  return payload?.kind === 'text' ? payload.text : null
}

const REMAINS = { a: { b: 1, list: [{}] } }
const OF_FILTER = { a: { list: [{ n: 2 }] }, name: 'x' }

/** Children of enrich, and the JSON body after it. */
const ON_JSON: readonly (readonly [string, unknown])[] = [
  [inline('5') + into('json-eval($.a.b)'), { ...JSON_BODY, a: { ...JSON_BODY.a, b: 5 } }],
  [inline('text') + into('json-eval($.name)'), { ...JSON_BODY, name: 'text' }],
  [inline('{"c":[1]}') + into('json-eval($.a)'), { a: { c: [1] }, name: 'x' }],
  [inline('5') + into('json-eval($.none)'), JSON_BODY],
  [property + into('json-eval($.name)'), { ...JSON_BODY, name: { q: true } }],
  [custom('json-eval($.a.b)') + into('json-eval($.name)'), { ...JSON_BODY, name: 1 }],
  [inline('{"c":1}') + into('json-eval($)', 'child'), { ...JSON_BODY, c: 1 }],
  [inline('{"c":1}') + into('json-eval($.name)', 'sibling'), { ...JSON_BODY, c: 1 }],
  [
    inline('{"n":3}') + into('json-eval($.a.list)', 'child'),
    { a: { b: 1, list: [{ n: 1 }, { n: 2 }, { n: 3 }] }, name: 'x' },
  ],
  [
    inline('{"n":3}') + into('json-eval($.a.list[0])', 'sibling'),
    { a: { b: 1, list: [{ n: 1 }, { n: 3 }, { n: 2 }] }, name: 'x' },
  ],
  [inline('9') + into('json-eval($..n)'), { a: { b: 1, list: [{ n: 9 }, { n: 9 }] }, name: 'x' }],
  [into('json-eval($.a.list[*])', 'remove'), { a: { b: 1, list: [] }, name: 'x' }],
  [into('json-eval($.a.list[-1])', 'remove'), { a: { b: 1, list: [{ n: 1 }] }, name: 'x' }],
  [into('json-eval($.a)', 'remove'), { name: 'x' }],
  [`${inline('title')}<target type="key" xpath="json-eval($.name)"/>`, { a: JSON_BODY.a, title: 'x' }],
  [`${inline('{"z":1}')}<target type="body"/>`, { z: 1 }],
  [`${inline('{"z":1}')}<target type="body" action="child"/>`, { ...JSON_BODY, z: 1 }],
  [`${property}<target type="body"/>`, { q: true }],
  [`${custom('json-eval($.a.list)')}<target type="body"/>`, [{ n: 1 }, { n: 2 }]],
  [`${inline('<x xmlns="">1</x>')}<target type="body"/>`, '<x xmlns="">1</x>'],
  ['<target type="body" action="remove"/>', null],
  // The nodes of a source are copied unless clone is false; values of JSON always are.
  [`<source clone="false" xpath="json-eval($.a.b)"/>${into('json-eval($.name)')}`, { ...JSON_BODY, name: 1 }],
  // With a source, `remove` takes what its paths find out of the body.
  [`${custom('json-eval($.a.list[*].n,$.a.list[0],$.name)')}<target type="body" action="remove"/>`, REMAINS],
  [`${custom("json-eval($['a'].list[?(@.n == 1)], $.a.b)")}<target type="body" action="remove"/>`, OF_FILTER],
  [`${custom('json-eval($.none)')}<target type="body" action="remove"/>`, JSON_BODY],
]

for (const [children, expected] of ON_JSON) {
  test(`JSON: ${children}`, async () => {
    const properties = { p: '{"q":true}' }
    const ran = await run(`<enrich>${children}</enrich>`, { json: JSON_BODY, properties })
    assert.deepEqual(causes(ran), [])
    assert.deepEqual(bodyOf(ran.message), expected)
  })
}

const XML_BODY = '<r xmlns=""><a k="v"><b>1</b></a><c>2</c></r>'
const MAKES_XML = `<payloadFactory><format>${XML_BODY}</format></payloadFactory>`

/** Children of enrich, and the XML body after it. */
const ON_XML: readonly (readonly [string, string])[] = [
  [inline('5') + into('//b/text()'), '<r xmlns=""><a k="v"><b>5</b></a><c>2</c></r>'],
  [inline('<d xmlns="">5</d>') + into('//b'), '<r xmlns=""><a k="v"><d>5</d></a><c>2</c></r>'],
  [inline('w') + into('//a/@k'), '<r xmlns=""><a k="w"><b>1</b></a><c>2</c></r>'],
  [inline('<d xmlns="">5</d>') + into('//a', 'child'), '<r xmlns=""><a k="v"><b>1</b><d>5</d></a><c>2</c></r>'],
  [inline('<d xmlns="">5</d>') + into('//a', 'sibling'), '<r xmlns=""><a k="v"><b>1</b></a><d>5</d><c>2</c></r>'],
  [into('//b', 'remove'), '<r xmlns=""><a k="v"/><c>2</c></r>'],
  [into('//a/@k', 'remove'), '<r xmlns=""><a><b>1</b></a><c>2</c></r>'],
  [into('//none', 'remove'), XML_BODY],
  [custom('//b') + into('//c', 'child'), '<r xmlns=""><a k="v"><b>1</b></a><c>2<b>1</b></c></r>'],
  [`<source xpath="//b"/>${into('//c', 'child')}`, '<r xmlns=""><a k="v"><b>1</b></a><c>2<b>1</b></c></r>'],
  [`<source clone="false" xpath="//b"/>${into('//c', 'child')}`, '<r xmlns=""><a k="v"/><c>2<b>1</b></c></r>'],
  [`${custom('//b | //c')}<target type="body" action="remove"/>`, '<r xmlns=""><a k="v"/></r>'],
  [`${custom('//a')}<target type="body"/>`, '<a k="v"><b>1</b></a>'],
  [`${inline('{"z":1}')}<target type="body"/>`, '{"z":1}'],
]

for (const [children, expected] of ON_XML) {
  test(`XML: ${children}`, async () => {
    const ran = await run(`${MAKES_XML}<enrich>${children}</enrich>`)
    assert.deepEqual(causes(ran), [])
    const body = bodyOf(ran.message)
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    assert.equal(text.replaceAll(' xmlns=""', ''), expected.replaceAll(' xmlns=""', ''))
  })
}

test('many places are edited in one walk, and edits beside them are limited', async () => {
  const json = { l: Array.from({ length: 50_000 }, (_, n) => ({ n })) }
  const all = await run(`<enrich>${inline('1')}${into('json-eval($.l[*].n)')}</enrich>`, { json })
  assert.deepEqual(bodyOf(all.message), { l: json.l.map(() => ({ n: 1 })) })
  const none = await run(`<enrich>${into('json-eval($.l[*])', 'remove')}</enrich>`, { json })
  assert.deepEqual(bodyOf(none.message), { l: [] })
  const beside = await run(`<enrich>${inline('1')}${into('json-eval($.l[*])', 'sibling')}</enrich>`, { json })
  assert.deepEqual(causes(beside), ['one.xml:1: the target has more than 1000 places'])
})

test('a body is kept in a property and comes back from it', async () => {
  const steps =
    '<enrich><source type="body"/><target type="property" property="kept"/></enrich>' +
    '<payloadFactory media-type="json"><format>{"other":1}</format></payloadFactory>' +
    '<enrich><source type="property" property="kept"/><target type="body"/></enrich>'
  assert.deepEqual(bodyOf((await run(steps, { json: JSON_BODY })).message), JSON_BODY)
  const xml = await run(MAKES_XML + steps)
  assert.equal(String(bodyOf(xml.message)).replaceAll(' xmlns=""', ''), XML_BODY.replaceAll(' xmlns=""', ''))
  assert.equal(xml.message.get('axis2', 'messageType'), 'application/xml')
})

test('a part becomes a variable, and a property is removed', async () => {
  const steps =
    '<enrich><source xpath="json-eval($.a.list)"/><target type="variable" property="v"/></enrich>' +
    '<enrich><target type="property" property="p" action="remove"/></enrich>'
  const { message } = await run(steps, { json: JSON_BODY, properties: { p: 1 } })
  assert.deepEqual(message.get('variable', 'v'), { kind: 'json', value: JSON_BODY.a.list })
  assert.equal(message.get('default', 'p'), undefined)
})

const STUDENTS = {
  data: {
    students: [
      { id: '01', modules: ['CS001'] },
      { id: '02', modules: ['CS011', 'CS012'] },
    ],
  },
}
const PARTS = '<source clone="true" type="custom" xpath="json-eval($.data.students[*].modules,$.data.students[0])"/>'

test('the documented remove takes parts out of the body, and out of a property', async () => {
  const left = { data: { students: [{ id: '02' }] } }
  const { message } = await run(`<enrich>${PARTS}<target action="remove" type="body"/></enrich>`, { json: STUDENTS })
  assert.deepEqual(bodyOf(message), left)
  const steps =
    '<enrich><source clone="false" type="body"/><target action="replace" type="property" property="s"/></enrich>' +
    `<enrich>${PARTS}<target action="remove" type="property" property="s"/></enrich>`
  const ran = await run(steps, { json: STUDENTS })
  assert.deepEqual(ran.message.get('default', 's'), { kind: 'json', value: left })
  assert.deepEqual(bodyOf(ran.message), STUDENTS)
})

test('remove with an XPath takes nodes out of a property, whose body stays', async () => {
  const steps =
    '<enrich><source type="body"/><target type="property" property="kept"/></enrich>' +
    '<enrich><source xpath="//b"/><target type="property" property="kept" action="remove"/></enrich>'
  const { message } = await run(MAKES_XML + steps)
  assert.equal(markupOf(message.get('default', 'kept')!).replaceAll(' xmlns=""', ''), '<r><a k="v"/><c>2</c></r>')
  assert.match(String(bodyOf(message)), /<b>1<\/b>/)
})

test('the documented child of a property: set where it is absent, then appended, by name or expression', async () => {
  const cars =
    '<enrich><source type="inline"><Cars/></source><target action="child" type="property" property="C"/></enrich>'
  const car = (target: string) =>
    `<enrich><source type="inline"><Car>L</Car></source><target action="child" ${target}/></enrich>`
  const ran = await run(cars + car('xpath="$ctx:C"') + car('type="property" property="C"'))
  assert.deepEqual(causes(ran), [])
  assert.equal(markupOf(ran.message.get('default', 'C')!), '<Cars><Car>L</Car><Car>L</Car></Cars>')
})

/** [property before, child, property after] */
const CHILDREN: readonly (readonly [Value | undefined, string, unknown])[] = [
  [{ kind: 'json', value: [1] }, '2', [1, 2]],
  [{ kind: 'json', value: { a: 1 } }, '{"b":2}', { a: 1, b: 2 }],
  ['[1]', '2', [1, 2]],
  [undefined, '{"b":2}', { b: 2 }],
]

for (const [before, child, after] of CHILDREN) {
  test(`JSON of a property: ${JSON.stringify(before)} with the child ${child}`, async () => {
    const properties: Record<string, Value> = before === undefined ? {} : { p: before }
    const target = '<target type="property" property="p" action="child"/>'
    const { message } = await run(`<enrich>${inline(child)}${target}</enrich>`, { properties })
    assert.deepEqual(message.get('default', 'p'), { kind: 'json', value: after })
  })
}

const NO_CHILD = 'one.xml:1: the property holds neither JSON nor an element'

test('a text property takes no child: the message is a fault', async () => {
  const steps = `<enrich>${inline('1')}<target type="property" property="p" action="child"/></enrich>`
  const ran = await run(steps, { properties: { p: 'text' } })
  assert.deepEqual([ran.outcome, causes(ran)], ['failed', [NO_CHILD]])
})

test('an expression names the target property, of any scope but transport', async () => {
  const steps =
    `<enrich>${inline('x')}<target xpath="$axis2:p"/></enrich>` +
    `<enrich>${inline('y')}<target xpath="get-property('q')"/></enrich>` +
    '<enrich><target xpath="$ctx:r" action="remove"/></enrich>'
  const { message } = await run(steps, { properties: { r: 1 } })
  const values = [message.get('axis2', 'p'), message.get('default', 'q'), message.get('default', 'r')]
  assert.deepEqual(values, ['x', 'y', undefined])
})

test('a target within a property is a warning, because it changes nothing', async () => {
  const { warnings } = await parseFile(file(`<enrich>${inline('x')}<target xpath="$ctx:p/a" action="child"/></enrich>`))
  assert.match(String(warnings), /^one\.xml:1: target\/xpath: changes nothing: nodes of a property are copies of it/)
})

test('remove names a source that has no effect', async () => {
  const { warnings } = await parseFile(file(`<enrich>${inline('x')}<target type="body" action="remove"/></enrich>`))
  assert.match(String(warnings), /^one\.xml:1: enrich\/source: has no effect/)
})

test('the envelope is a source, and replaces the message', async () => {
  const steps =
    '<enrich><source type="envelope"/><target type="property" property="e"/></enrich>' +
    '<enrich><source type="property" property="e"/><target type="envelope"/></enrich>'
  const { message } = await run(MAKES_XML + steps)
  assert.match(String(bodyOf(message)), /^<soapenv:Envelope [^>]*><soapenv:Body>.*<b>1<\/b>/)
})

test('a source that is not there is a fault', async () => {
  for (const source of [property, '<source xpath="//none"/>']) {
    const ran = await run(`${MAKES_XML}<enrich>${source}<target type="body"/></enrich>`)
    assert.deepEqual([ran.outcome, causes(ran)], ['failed', ['one.xml:1: there is no source']])
  }
})

testRefusals([
  ['<enrich/>', 'enrich/target: is missing'],
  ['<enrich><target/></enrich>', 'target/xpath: is missing'],
  ['<enrich><target type="body"/></enrich>', 'enrich/source: is missing'],
  ['<enrich><source/><target type="body"/></enrich>', 'source/xpath: is missing'],
  ['<enrich><source type="property"/><target type="body"/></enrich>', 'source/property: is missing'],
  [
    '<enrich><source type="inline" key="k">x</source><target type="body"/></enrich>',
    'source: has both content and key',
  ],
  ['<enrich><source xpath="json-eval($.a,)"/><target type="body" action="remove"/></enrich>', 'source/xpath'],
  ['<enrich><source xpath="1"/><target type="body" action="remove"/></enrich>', 'source/xpath = 1: is no path'],
  ['<enrich><source type="body"/><target xpath="$trp:a"/></enrich>', 'target/xpath = $trp:a: is a header field'],
  ['<enrich><source type="key"/><target type="body"/></enrich>', 'source/type = key: is only for a target'],
  ['<enrich><source type="body"/><target type="inline"/></enrich>', 'target/type = inline: is only for a source'],
  ['<enrich><source type="body"/><target xpath="1"/></enrich>', 'target/xpath = 1: is no path into the body'],
  ['<enrich><source type="body"/><target type="body" action="add"/></enrich>', 'target/action = add: expected one of'],
  [
    '<enrich><source type="body"/><target type="property" property="p" action="sibling"/></enrich>',
    'target/action = sibling: has no meaning for a property',
  ],
])
