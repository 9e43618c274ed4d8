/** `<payloadFactory>`: whatever the arguments, the payload is well-formed and has the structure of its template. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { DOMParser, type Element } from '@xmldom/xmldom'
import { Message } from '../../src/mediation/message.ts'
import { CompiledSequences } from '../../src/mediation/compiled-sequences.ts'
import type { Value } from '../../src/mediation/value.ts'
import type { XmlNode } from '../../src/mediation/xml-tree.ts'
import { formatResponse } from '../../src/mediation/formatter.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import { causes, errorsOf, testRefusals, planOf, run } from './test-sequences.ts'

function factory(media: string, format: string, ...args: readonly string[]): string {
  const listed = args.map(arg => `<arg ${arg}/>`).join('')
  return `<payloadFactory media-type="${media}"><format>${format}</format><args>${listed}</args></payloadFactory>`
}

function node(...children: readonly XmlNode[]): XmlNode {
  return { name: 'x', attributes: [], children }
}

const PROPERTIES: Readonly<Record<string, Value>> = {
  number: 900901,
  truth: true,
  text: 'a "quoted" \\ text\n<&> ]]> \u0001',
  digits: '42',
  decimal: '1.50',
  leading: '007',
  long: '12345678901234567890',
  word: 'false',
  nothing: 'null',
  object: { kind: 'json', value: { a: [1, null], 'b c': '<' } },
  nodes: { kind: 'xml', nodes: [{ name: 'x', attributes: [['y', '"']], children: ['<'] }] },
  tree: {
    kind: 'xml',
    nodes: [{ name: 'x', attributes: [['y', 'one']], children: [{ name: 'z', attributes: [], children: ['2.5'] }] }],
  },
  padded: { kind: 'xml', nodes: [node(' IBM\n')] },
  blank: { kind: 'xml', nodes: [node(' ')] },
  several: { kind: 'xml', nodes: [node('1'), node('2')] },
  mixed: { kind: 'xml', nodes: [node('t', { name: 'z', attributes: [], children: [] })] },
  template: '$1 $2 $ctx:number \\u0022',
  written: ' {"a":[1,12345678901234567890],"b":"<"}',
  broken: '{"a":1},"b":{"c":2}',
  infinite: Number.POSITIVE_INFINITY,
}

/** Media type, format, arguments, body. */
const BODIES: readonly (readonly [string, string, readonly string[], string])[] = [
  // JSON without quotes: numbers, booleans and objects keep their type, text gets quotes.
  ['json', '{"a":$1}', ['number'], '{"a":900901}'],
  ['json', '{"a":$1}', ['truth'], '{"a":true}'],
  ['json', '{"a":$1}', ['text'], '{"a":"a \\"quoted\\" \\\\ text\\n<&> ]]> \\u0001"}'],
  ['json', '{"a":$1}', ['digits'], '{"a":42}'],
  ['json', '{"a":$1}', ['decimal'], '{"a":"1.50"}'],
  ['json', '{"a":$1}', ['leading'], '{"a":"007"}'],
  ['json', '{"a":$1}', ['long'], '{"a":"12345678901234567890"}'],
  ['json', '{"a":$1}', ['word'], '{"a":false}'],
  ['json', '{"a":$1}', ['nothing'], '{"a":null}'],
  ['json', '{"a":$1}', ['object'], '{"a":{"a":[1,null],"b c":"<"}}'],
  // The text of an object or array is that, with its digits; it cannot end the place where it stands.
  ['json', '{"a":$1}', ['written'], '{"a":{"a":[1,12345678901234567890],"b":"<"}}'],
  ['json', '{"a":"$1"}', ['written'], '{"a":" {\\"a\\":[1,12345678901234567890],\\"b\\":\\"<\\"}"}'],
  ['json', '{"a":$1}', ['broken'], '{"a":"{\\"a\\":1},\\"b\\":{\\"c\\":2}"}'],
  // An element with text alone is its text, as in XPath; one with elements is JSON.
  ['json', '{"a":$1}', ['nodes'], '{"a":"<"}'],
  ['json', '{"a":$1}', ['tree'], '{"a":{"x":{"@y":"one","z":2.5}}}'],
  ['json', '{"a":$1}', ['missing'], '{"a":""}'],
  ['json', '{"a":$1}', ['infinite'], '{"a":"Infinity"}'],
  ['json', '{"a":[$1,$2,$1]}', ['number', 'truth'], '{"a":[900901,true,900901]}'],
  // JSON within quotes: text only.
  ['json', '{"a":"$1"}', ['number'], '{"a":"900901"}'],
  ['json', '{"a":"($1)"}', ['text'], '{"a":"(a \\"quoted\\" \\\\ text\\n<&> ]]> \\u0001)"}'],
  ['json', '{"a":"$1"}', ['object'], '{"a":"{\\"a\\":[1,null],\\"b c\\":\\"<\\"}"}'],
  ['json', '{"$1":"\\"$2\\\\"}', ['text', 'digits'], '{"a \\"quoted\\" \\\\ text\\n<&> ]]> \\u0001":"\\"42\\\\"}'],
  // Arguments are not scanned for $.
  [
    'json',
    '{"a":"$1","b":$1,"c":"$2"}',
    ['template', 'digits'],
    '{"a":"$1 $2 $ctx:number \\\\u0022","b":"$1 $2 $ctx:number \\\\u0022","c":"42"}',
  ],
  ['json', '{"a":"$1$10$1"}', ['digits', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'word'], '{"a":"42false42"}'],
  ['json', '{"a":"100$ $x $"}', [], '{"a":"100$ $x $"}'],
  // XML: texts and attributes.
  [
    'xml',
    '<a b="$1">$1</a>',
    ['text'],
    '<a b="a &quot;quoted&quot; \\ text&#10;&lt;&amp;&gt; ]]&gt; \ufffd">a "quoted" \\ text\n&lt;&amp;&gt; ]]&gt; \ufffd</a>',
  ],
  ['xml', '<a xmlns="">x$1y$2</a>', ['number', 'word'], '<a xmlns="">x900901yfalse</a>'],
  // One element with text alone is its text, as on the reference platform; anything else is inserted as it is.
  ['xml', '<a>$1</a>', ['nodes'], '<a>&lt;</a>'],
  ['xml', '<a>$1</a>', ['padded'], '<a>IBM</a>'],
  ['xml', '<a>$1</a>', ['blank'], '<a><x> </x></a>'],
  ['xml', '<a>$1</a>', ['several'], '<a><x>1</x><x>2</x></a>'],
  ['xml', '<a>$1</a>', ['tree'], '<a><x y="one"><z>2.5</z></x></a>'],
  ['xml', '<a>$1</a>', ['mixed'], '<a><x>t<z/></x></a>'],
  ['xml', '<a b="$1"/>', ['nodes'], '<a b="&lt;"/>'],
  [
    'xml',
    '<a>$1</a>',
    ['object'],
    '<a><a>1</a><a xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/><b_c>&lt;</b_c></a>',
  ],
  ['xml', '<a>$1</a>', ['template'], '<a>$1 $2 $ctx:number \\u0022</a>'],
  ['xml', '<am:a am:b="1"><c/>\n</am:a>', [], '<am:a xmlns:am="http://example.org/am" am:b="1"><c/></am:a>'],
  ['xml', '<a><![CDATA[<$1>]]><!-- $2 --></a>', ['number'], '<a>&lt;900901&gt;</a>'],
  ['xml', '<b><?xml-multiple a?><a>$1</a></b>', ['digits'], '<b><?xml-multiple a?><a>42</a></b>'],
  ['text', 'a $1 b', ['text'], 'a a "quoted" \\ text\n<&> ]]> \u0001 b'],
  ['text', '$1$2', ['template', 'number'], '$1 $2 $ctx:number \\u0022900901'],
  ['text', '$1', ['object'], '{"a":[1,null],"b c":"<"}'],
]

for (const [media, format, names, expected] of BODIES) {
  test(`${media}: ${format} with ${names.join(', ')}`, async () => {
    const args = names.map(name => `expression="$ctx:${name}"`)
    const { response, reports } = await run(factory(media, format, ...args), { properties: PROPERTIES })
    const declaration = media === 'xml' ? '<?xml version="1.0" encoding="UTF-8"?>' : ''
    assert.equal(response.body, declaration + expected)
    assert.deepEqual(reports, [])
  })
}

test('an xml-multiple instruction of a format opens an array, also after an edit of the payload', async () => {
  const xml = factory('xml', '<b><?xml-multiple a?><a>$1</a><c/></b>', 'value="1"')
  const edit = '<enrich><source type="inline"><d/></source><target xpath="//c"/></enrich>'
  const asJson = '<property name="messageType" value="application/json" scope="axis2"/>'
  assert.equal((await run(xml + asJson, {})).response.body, '{"b":{"a":[1],"c":""}}')
  assert.equal((await run(xml + edit + asJson, {})).response.body, '{"b":{"a":[1],"d":""}}')
})

test('arguments are values or expressions of either evaluator; literals stay text', async () => {
  const given = { json: { a: { b: [1, 'x'] } }, properties: { digits: '42', object: PROPERTIES.object! } }
  const body = async (format: string, ...args: readonly string[]) =>
    (await run(factory('json', format, ...args), given)).response.body
  assert.equal(await body('[$1,"$1"]', 'value="5"'), '[5,"5"]')
  assert.equal(await body('[$1]', 'value=""'), '[""]')
  assert.equal(
    await body('[$1,$2]', 'expression="$.a" evaluator="json"', 'expression="json-eval($.a.b[1])"'),
    '[{"b":[1,"x"]},"x"]',
  )
  assert.equal(await body('[$1]', 'expression="$.a.b[*]" evaluator="json"'), '[[1,"x"]]')
  assert.equal(await body('[$1]', 'expression="$ctx:digits" evaluator="json"'), '[42]')
  assert.equal(await body('[$1]', 'expression="$ctx:digits" evaluator="xml"'), '[42]')
  assert.equal(
    await body('[$1,$2]', 'expression="$ctx:digits" literal="true"', 'value="true" literal="true"'),
    '["42","true"]',
  )
  assert.equal(
    await body('[$1]', 'expression="$ctx:object" literal="true"'),
    '["{\\"a\\":[1,null],\\"b c\\":\\"<\\"}"]',
  )
  const literal = await run(factory('xml', '<a>$1</a>', 'expression="$ctx:object" literal="true"'), given)
  assert.match(literal.response.body, /<a>\{"a":\[1,null\],"b c":"&lt;"\}<\/a>$/)
})

test('escapeXmlChars changes nothing: values are always escaped for their position', async () => {
  const format = '<format>{"a":"$1"}</format><args><arg value="x&lt;&#9;&amp;"/></args>'
  for (const attribute of ['', 'escapeXmlChars="true"', 'escapeXmlChars="false"']) {
    const { response } = await run(`<payloadFactory media-type="json" ${attribute}>${format}</payloadFactory>`)
    assert.equal(response.body, '{"a":"x<\\t&"}')
  }
})

test('messageType is set, unless it is XML already, and the body is enabled', async () => {
  const type = async (before: string, media: string, format: string) =>
    (await run(`${before}<property name="NO_ENTITY_BODY" value="true" scope="axis2"/>${factory(media, format)}`))
      .response.lines
  const soap = '<property name="messageType" value="text/xml" scope="axis2"/>'
  assert.equal(await type('', 'json', '{}'), 'Content-Type: application/json; charset=UTF-8\r\n')
  assert.equal(await type(soap, 'json', '{}'), 'Content-Type: application/json; charset=UTF-8\r\n')
  assert.equal(await type('', 'xml', '<a/>'), 'Content-Type: application/xml; charset=UTF-8\r\n')
  assert.equal(await type(soap, 'xml', '<a/>'), 'Content-Type: text/xml; charset=UTF-8\r\n')
  assert.equal(await type('', 'text', 'a'), 'Content-Type: text/plain; charset=UTF-8\r\n')
})

test('a payload beyond 1 MiB is dropped', async () => {
  const properties = { long: 'x'.repeat(600_000) }
  for (const [media, format] of [
    ['json', '["$1","$1"]'],
    ['xml', '<a b="$1">$1</a>'],
    ['text', '$1$1'],
  ] as const) {
    const ran = await run(factory(media, format, 'expression="$ctx:long"'), { properties })
    assert.equal(ran.message.payload, null)
    assert.deepEqual(causes(ran), ['the payload has more than 1048576 characters'])
  }
})

test('a payload that is inserted into itself repeatedly is limited in depth', async () => {
  const wrap = factory('xml', '<a xmlns="">$1</a>', 'expression="$body/*"')
  const ran = await run(wrap.repeat(150))
  assert.deepEqual(causes(ran), ['expression: Error: the result is more than 100 elements deep'])
  assert.equal(ran.response.body.match(/<a/g)?.length, 49)
})

/** Content of payloadFactory, its attributes, and its error. */
const REFUSED: readonly (readonly [string, string, string])[] = [
  ['', 'media-type="yaml"', 'payloadFactory/media-type = yaml: expected one of xml, json, text'],
  ['', '', 'payloadFactory/format: is missing'],
  ['<format/><format/>', '', 'format: is repeated in <payloadFactory>'],
  ['<format key="x">1</format>', '', 'format: has both content and key'],
  ['<format key="{$ctx:x}"/>', '', 'format/key = {$ctx:x}: is an expression'],
  ['<format x="y"><a/></format>', '', 'format/x: is an unknown attribute'],
  ['<format>text</format>', '', 'format: contains text, which has no effect'],
  ['<format><a/><b/></format>', '', 'format = 2: expected one element'],
  ['<format><a/></format>', 'media-type="json"', 'format: contains elements, but media-type is json'],
  ['<format>{"a":}</format>', 'media-type="json"', 'format: is not valid JSON: Unexpected token'],
  ['<format>{$1:1}</format>', 'media-type="json"', 'format: is not valid JSON'],
  ['<format>{"a":$1 $1}</format>', 'media-type="json"', 'format: is not valid JSON'],
  ['<format>{"a":1$1}</format>', 'media-type="json"', 'format: is not valid JSON'],
  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: expressions of the language
  ['<format>{"a":${payload.x} 1}</format>', 'media-type="json"', 'format: is not valid JSON'],
  ['<format>{"a":${payload.x}</format>', 'media-type="json"', 'format: is not valid JSON'],
  ['<format>{"a":${payload.x</format>', 'media-type="json"', 'format: has an expression without its closing brace'],
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: expressions of the language
  [
    '<format><a/></format>',
    'template-type="velocity"',
    'payloadFactory/template-type = velocity: expected one of default, freemarker',
  ],
  ['<format><a/></format>', 'escapeXmlChars="yes"', 'payloadFactory/escapeXmlChars = yes: expected one of true, false'],
  ['<format>{"a":$1}</format>', 'media-type="json"', 'format: there is no argument for $1'],
  ['<format>{"a":"$0"}</format>', 'media-type="json"', 'format: there is no argument for $0'],
  ['<format><a b="$2"/></format><args><arg value="1"/></args>', '', 'format: there is no argument for $2'],
  ['<format><a/></format><args><a/></args>', '', 'a: is not an element of <args>'],
  ['<format><a/></format><args><arg/></args>', '', 'arg/value: expected either value or expression'],
  [
    '<format><a/></format><args><arg value="1" literal="yes"/></args>',
    '',
    'arg/literal = yes: expected one of true, false',
  ],
  ['<format><a/></format><args><arg value="1" evaluator="json"/></args>', '', 'arg/evaluator: needs an expression'],
  [
    '<format><a/></format><args><arg expression="$.a..b.." evaluator="json"/></args>',
    '',
    'arg/expression = $.a..b..: is not valid JSONPath',
  ],
  [
    '<format><a/></format><args><arg expression="$.a" evaluator="xml"/></args>',
    '',
    'arg/expression = $.a: is not valid XPath',
  ],
  [
    `<format><a/></format><args>${'<arg value="1"/>'.repeat(101)}</args>`,
    '',
    'args/arg = 101: occurs more than 100 times',
  ],
]

/** Format of FreeMarker, and its error with the line of the file. */
const REFUSED_TEMPLATES: readonly (readonly [format: string, error: string])[] = [
  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: templates
  [
    '<format><![CDATA[{\n"a": ${payload.x?eval}\n}]]></format>',
    '2: format: has ?eval, which is not supported (use ?eval_json',
  ],
  ['<format>\n\n  <![CDATA[<#if x>]]></format>', '3: format: has <#if> without its end (add </#if>)'],
  [
    '<format>\n<![CDATA[\n\n<#include "x.ftl">]]></format>',
    '4: format: has <#include>, which is not supported (write its text',
  ],
  ['<format><a b="${payload.}"/></format>', '1: format: expected a name behind the dot (correct it)'],
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: templates
  ['<format key="x">1</format>', '1: format: has both content and key (keep one of them)'],
  ['<format key="{$ctx:x}"/>', '1: format/key = {$ctx:x}: is an expression'],
  ['<format x="y"/>', '1: format/x: is an unknown attribute'],
]

for (const [format, error] of REFUSED_TEMPLATES) {
  test(`FreeMarker in ${JSON.stringify(format)} is refused`, async () => {
    const [first = ''] = await errorsOf(`<payloadFactory template-type="freemarker">${format}</payloadFactory>`)
    assert.ok(first.startsWith(`one.xml:${error}`), first)
  })
}

test('a template of FreeMarker does not run on a reactor', async () => {
  const ran = await run('<payloadFactory template-type="freemarker"><format><![CDATA[<a/>]]></format></payloadFactory>')
  assert.equal(ran.outcome, 'failed')
  assert.deepEqual(causes(ran), [
    'one.xml:1: templates of FreeMarker run on workers alone, and not in sequences that word faults',
  ])
})

testRefusals(
  REFUSED.map(([within, attributes, said]) => [`<payloadFactory ${attributes}>${within}</payloadFactory>`, said]),
)

const ALPHABET = '"\\<>&\'/$123{}$[],:#;!-]]> \t\r\n\u0000\u0007\u007f\u0085\ud800\udc00\ufffe\u2028añ€😀xmlu0022'
const ROUNDS = IS_LONG ? 20_000 : 500

/** Names and order of everything in a payload, without the values of arguments. */
function shape(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(shape)
  if (typeof json === 'object' && json !== null)
    return Object.entries(json).map(([name, value]) => [name, shape(value)])
  return 'scalar'
}

function names(element: Element): unknown {
  const attributes = Array.from(element.attributes, ({ name }) => name)
  const children = Array.from(element.childNodes).filter(({ nodeType }) => nodeType === element.ELEMENT_NODE)
  return [element.nodeName, attributes, children.map(child => names(child as Element))]
}

function parsedXml(text: string): Element {
  const onError = (level: string, said: string) => {
    if (level !== 'warning') throw new Error(said)
  }
  return new DOMParser({ onError }).parseFromString(text, 'text/xml').documentElement!
}

test('whatever the arguments, bodies parse and have the structure of their template', async (t: TestContext) => {
  t.diagnostic(`seed ${SEED}`)
  const random = new Random(SEED)
  const args = ['expression="$ctx:a"', 'expression="$ctx:b"', 'expression="$ctx:c" literal="true"']
  const json = factory('json', '{"x":$1,"y":"a$2b","z":[$3,{"w":"$1$2$3\\\\"}],"$ d":"\\"$1"}', ...args)
  const asText = args.map(arg => `${arg.replace(' literal="true"', '')} literal="true"`)
  const xml = factory('xml', '<f:x xmlns:f="urn:f" y="$1$2"><z>$3</z>$1<w v="\'$2\'"/><![CDATA[$3]]></f:x>', ...asText)
  const report = (level: string, event: string) => assert.fail(`${level} ${event}`)
  const sequences = new CompiledSequences([await planOf(json, 'json'), await planOf(xml, 'xml')], report)
  const asJson = shape({ x: 0, y: 0, z: [0, { w: 0 }], '$ d': 0 })
  const asXml = [
    'f:x',
    ['xmlns:f', 'y'],
    [
      ['z', [], []],
      ['w', ['v'], []],
    ],
  ]
  for (let round = 0; round < ROUNDS; round++) {
    const value = () => (random.once(4) ? random.between(-9, 9) / 4 : random.text(random.below(40), ALPHABET))
    const message = new Message(() => undefined)
    const given = [value(), value(), value()]
    for (const [at, each] of given.entries()) message.set('default', 'abc'[at]!, each)
    sequences.run('json', message)
    const { body } = formatResponse(message, report)
    assert.deepEqual(shape(JSON.parse(body)), asJson, `${SEED} ${round} ${body}`)
    assert.equal(JSON.parse(Buffer.from(body).toString()).y, `a${given[1]}b`)
    sequences.run('xml', message)
    const root = parsedXml(Buffer.from(formatResponse(message, report).body).toString())
    assert.deepEqual(names(root), asXml, `${SEED} ${round}`)
  }
})
