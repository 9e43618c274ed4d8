/** `<property>` and `<header>`: scopes, types, values, removal, and refused fields. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Message } from '../../src/mediation/message.ts'
import { causes, errorsOf, file, parseFile, run, testRefusals } from './test-sequences.ts'

test('a property is set in its scope only, and can be removed', async () => {
  for (const scope of ['default', 'axis2', 'transport'] as const) {
    const set = `<property name="a" value="1" scope="${scope}"/>`
    const { message } = await run(set)
    const found = (['default', 'axis2', 'transport'] as const).filter(other => message.get(other, 'a') !== undefined)
    assert.deepEqual(found, [scope])
    const removed = await run(`${set}<property name="a" scope="${scope}" action="remove"/>`)
    assert.equal(removed.message.get(scope, 'a'), undefined)
  }
  assert.equal((await run('<property name="a" value="1" scope="synapse"/>')).message.get('default', 'a'), '1')
})

/** A number beyond 2^53, with its digits. */
function exact(digits: string): unknown {
  return { kind: 'json', value: JSON.rawJSON(digits) }
}

/** Type, value, and the converted value; undefined: not valid. */
const TYPED: readonly (readonly [string, string, unknown])[] = [
  ['STRING', ' a ', ' a '],
  ['string', '1', '1'],
  ['INTEGER', ' 42 ', 42],
  ['INTEGER', '-2147483648', -2147483648],
  ['INTEGER', '2147483648', undefined],
  ['INTEGER', '1.5', undefined],
  ['INTEGER', '', undefined],
  ['LONG', '2147483648', 2147483648],
  ['LONG', '9007199254740993', exact('9007199254740993')],
  ['LONG', '+9223372036854775807', exact('9223372036854775807')],
  ['LONG', '-9223372036854775808', exact('-9223372036854775808')],
  ['LONG', '9223372036854775808', undefined],
  ['LONG', '-9223372036854775809', undefined],
  ['INTEGER', '-2147483649', undefined],
  ['SHORT', '32767', 32767],
  ['SHORT', '32768', undefined],
  ['DOUBLE', '1.5e3', 1500],
  ['DOUBLE', '1e999', undefined],
  ['DOUBLE', '0x10', undefined],
  ['FLOAT', '0.1', Math.fround(0.1)],
  ['BOOLEAN', 'TRUE', true],
  ['BOOLEAN', 'false', false],
  ['BOOLEAN', 'yes', undefined],
  ['JSON', '{"a":[1]}', { kind: 'json', value: { a: [1] } }],
  ['JSON', '"text"', 'text'],
  ['JSON', '{a:1}', undefined],
  ['JSON', 'null', undefined],
  ['JSON', '['.repeat(102) + ']'.repeat(102), undefined],
  ['OM', 'text', undefined],
]

for (const [type, value, expected] of TYPED) {
  const escaped = value.replaceAll('"', '&quot;')
  test(`property ${value.slice(0, 20)} as ${type}, checked when the file is parsed`, async () => {
    const step = `<property name="a" value="${escaped}" type="${type}"/>`
    const errors = await errorsOf(step)
    if (expected === undefined)
      assert.match(errors[0]!, new RegExp(`property/value.*: is not a valid ${type} \\(correct`))
    else assert.deepEqual((await run(step)).message.get('default', 'a'), expected)
  })
  test(`property ${value.slice(0, 20)} as ${type}, checked when the sequence runs`, async () => {
    const step = `<property name="a" value="old"/><property name="a" expression="$ctx:b" type="${type}"/>`
    const ran = await run(step, { properties: { b: value } })
    assert.deepEqual(ran.message.get('default', 'a'), expected)
    assert.deepEqual(
      causes(ran),
      expected === undefined ? [`the value of property a is not a valid ${type.toUpperCase()}`] : [],
    )
  })
}

test('a child element and the result of a path are values of type OM', async () => {
  const steps =
    '<property name="a" type="OM"><am:x am:y="1"><z xmlns=""/></am:x></property>' +
    '<payloadFactory><format><p xmlns="">$1</p></format><args><arg expression="$ctx:a"/></args></payloadFactory>' +
    '<property name="b" type="OM" expression="//am:x"/><property name="c" expression="string(count(//am:x/@am:y))"/>'
  const { message, response } = await run(steps)
  assert.match(
    response.body,
    /<p xmlns=""><am:x xmlns:am="http:\/\/example.org\/am" am:y="1"><z xmlns=""\/><\/am:x><\/p>$/,
  )
  assert.equal((message.get('default', 'b') as { kind: string }).kind, 'xml')
  assert.equal(message.get('default', 'c'), '1')
})

test('a pattern selects a group of a value that matches as a whole', async () => {
  const value = async (attributes: string) =>
    (
      await run(`<property name="a" expression="$ctx:b" ${attributes}/>`, { properties: { b: 'Bearer abc' } })
    ).message.get('default', 'a')
  assert.equal(await value('pattern="Bearer (\\w+)" group="1"'), 'abc')
  assert.equal(await value('pattern="Bearer (\\w+)"'), 'Bearer abc')
  assert.equal(await value('pattern="Bearer" group="0"'), '')
  assert.equal(
    (await run('<property name="a" value="x1" pattern="x(\\d)" group="1" type="INTEGER"/>')).message.get(
      'default',
      'a',
    ),
    1,
  )
})

test('a text beyond 1 MiB is not a valid value', async () => {
  const doubled = '<property name="a" expression="concat($ctx:a, $ctx:a)"/>'.repeat(30)
  const ran = await run(`<property name="a" value="0123456789"/>${doubled}`)
  assert.equal(causes(ran)[0], 'the value of property a is not a valid STRING')
  assert.equal(ran.message.get('default', 'a'), '')
})

/** Step and its error. */
const REFUSED: readonly (readonly [string, string])[] = [
  ['<property value="1"/>', 'property/name: is missing'],
  ['<property name="a"/>', 'property/value: expected either value or expression'],
  [
    '<property name="a" value="1" scope="registry"/>',
    'property/scope = registry: expected one of default, synapse, axis2, axis2-client, transport',
  ],
  ['<property name="a" value="1" type="TEXT"/>', 'property/type = TEXT: expected one of STRING'],
  ['<property name="a" value="1" action="add"/>', 'property/action = add: expected one of set, remove'],
  ['<property name="a" value="1" action="remove"/>', 'property/value: has no effect with action="remove"'],
  ['<property name="a" value="1" group="1"/>', 'property/group: needs a pattern'],
  ['<property name="a" value="1" pattern="(" />', 'property/pattern = (: is not a valid regular expression'],
  ['<property name="a" value="1" pattern="a" group="-1"/>', 'property/group = -1: expected 0 to 0'],
  ['<property name="a" value="1" pattern="(a)" group="2"/>', 'property/group = 2: expected 0 to 1'],
  ['<property name="a" type="JSON"><x/></property>', 'x: is allowed as the value of type OM only'],
  ['<property name="a" value="1"><x/></property>', 'x: is allowed as the value of type OM only'],
  ['<property name="{get-property(}" value="1"/>', 'property/name = get-property(: is not valid XPath'],
  ['<property name="a" type="OM" value="1"><x/></property>', 'x: is allowed as the value of type OM only'],
  ...['Content-Length', 'transfer-encoding', 'Connection', 'Keep-Alive', 'Upgrade', 'Trailer', 'TE', 'Date'].flatMap(
    name => [
      [
        `<property name="${name}" value="1" scope="transport"/>`,
        `property/name = ${name}: is set by the gateway alone`,
      ] as const,
      [
        `<header name="${name}" value="1" scope="transport"/>`,
        `header/name = ${name}: is set by the gateway alone`,
      ] as const,
    ],
  ),
  ['<property name="a b" value="1" scope="transport"/>', 'property/name = a b: is not a valid header field name'],
  ['<header name="a:b" value="1" scope="transport"/>', 'header/name = a:b: is not a valid header field name'],
  ['<header name="To" value="1" expression="1"/>', 'header/value: expected either value or expression'],
  ['<header name="To" action="remove" value="1"/>', 'header/value: has no effect with action="remove"'],
  ['<header name="To" scope="axis2" value="1"/>', 'header/scope = axis2: expected one of default, transport'],
  ['<header><x/></header>', 'x: is not an element of <header>'],
]

testRefusals(REFUSED)

for (const scope of ['axis2', 'axis2-client', 'default']) {
  test(`a property of the scope ${scope} without effect is a warning with a remedy`, async () => {
    const { plan, warnings } = await parseFile(file(`<property name="NO_KEEPALIVE" value="true" scope="${scope}"/>`))
    assert.deepEqual(
      [plan?.steps.length, warnings],
      [
        1,
        [
          'one.xml:1: property/name: NO_KEEPALIVE has no effect (remove it: the keys of [transport.passthru_http] limit idle connections)',
        ],
      ],
    )
  })
}

test('value wins beside expression, which is a warning', async () => {
  const step = '<property name="a" value="1" expression="//b"/>'
  const { errors, warnings } = await parseFile(file(step))
  const said = 'property/expression: has no effect beside value, which wins (remove one of them)'
  assert.deepEqual([errors, warnings], [[], [`one.xml:1: ${said}`]])
  assert.equal((await run(step)).message.get('default', 'a'), '1')
})

test('D899: a constant that is no method is a warning', async () => {
  const warned = async (value: string) =>
    (await parseFile(file(`<property name="HTTP_METHOD" value="${value}" scope="axis2"/>`))).warnings
  assert.deepEqual(await warned('POST'), [])
  assert.deepEqual(await warned('post'), [
    'one.xml:1: property/value: is no method, so that requests of this sequence are 102532 (write a method in upper case: POST)',
  ])
})

test('the steering properties of the scope default are warnings too', async () => {
  const names = ['PRESERVE_WS_ADDRESSING', 'preserveProcessedHeaders', 'disableAddressingForOutMessages']
  const steps = names.map(name => `<property name="${name}" value="true"/>`).join('')
  const { warnings } = await parseFile(file(steps))
  assert.deepEqual(
    warnings.map(warning => /(\w+) has no effect/.exec(warning)?.[1]),
    names,
  )
})

for (const [name, wrong, right] of [
  ['FORCE_SC_ACCEPTED', 'default', 'axis2'],
  ['FORCE_POST_PUT_NOBODY', 'default', 'axis2'],
  ['OUT_ONLY', 'axis2', 'default'],
  ['FORCE_ERROR_ON_SOAP_FAULT', 'axis2', 'default'],
] as const) {
  test(`${name} in the scope ${wrong} is a warning that names the scope ${right}`, async () => {
    const [said, ...others] = await Promise.all(
      [wrong, right].map(
        async scope => (await parseFile(file(`<property name="${name}" value="true" scope="${scope}"/>`))).warnings,
      ),
    )
    assert.deepEqual(said, [`one.xml:1: property/name: ${name} has no effect in this scope (write scope="${right}")`])
    assert.deepEqual(others, [[]])
  })
}

test('the scope axis2-client is that of the transport', async () => {
  const { message } = await run('<property name="HTTP_METHOD" value="PUT" scope="axis2-client"/>')
  assert.equal(message.get('axis2', 'HTTP_METHOD'), 'PUT')
})

for (const name of ["{get-property('p')}", '{$ctx:p}']) {
  test(`the name ${name} is evaluated: set, removed, in each scope`, async () => {
    for (const scope of ['default', 'axis2', 'transport'] as const) {
      const set = `<property name="${name}" value="1" scope="${scope}"/>`
      const given = { properties: { p: 'a' } }
      assert.equal((await run(set, given)).message.get(scope, 'a'), '1')
      const removed = await run(`${set}<property name="${name}" scope="${scope}" action="remove"/>`, given)
      assert.equal(removed.message.get(scope, 'a'), undefined)
    }
  })
}

/** [value of the expression, cause] */
const NAMES: readonly (readonly [string, string])[] = [
  ['', 'the name of the property is empty'],
  ['a b', 'the name of the property is not a valid header field name'],
  ['Content-Length', 'the name of the property is set by the gateway alone'],
]

for (const [value, cause] of NAMES) {
  test(`a name that is "${value}" on a message sets no field and is a warning`, async () => {
    const ran = await run('<property name="{$ctx:p}" value="1" scope="transport"/>', { properties: { p: value } })
    assert.deepEqual([ran.response.lines, causes(ran)], ['', [cause]])
  })
}

test('a child element is of the type OM without the attribute', async () => {
  const { message } = await run('<property name="a"><am:x>1</am:x></property>')
  const value = message.get('default', 'a')
  assert.equal((value as { kind: string }).kind, 'xml')
})

test('header sets response fields and the destination', async () => {
  const steps =
    '<header name="X-A" scope="transport" value="1"/><header name="X-B" scope="transport" expression="concat(1, 2)"/>' +
    '<header name="x-a" scope="transport" action="remove"/><header name="To" value="http://a/"/><property name="to" expression="get-property(\'To\')"/>'
  const { message, response } = await run(steps)
  assert.equal(response.lines, 'X-B: 12\r\n')
  assert.equal(message.get('default', 'to'), 'http://a/')
  assert.equal((await run('<header name="To" value="x"/><header name="To" action="remove"/>')).message.to, '')
})

test('request fields can be read, but only fields set by a sequence are sent', async () => {
  const fields = { authorization: 'Bearer x', 'x-in': 'in' }
  const read = '<property name="a" expression="$trp:X-In"/>'
  const { message, response } = await run(`${read}<property name="X-Out" value="1" scope="transport"/>`, { fields })
  assert.equal(message.get('default', 'a'), 'in')
  assert.equal(response.lines, 'X-Out: 1\r\n')
  const removed = await run(`<property name="x-IN" scope="transport" action="remove"/>${read}`, { fields })
  assert.equal(removed.message.get('default', 'a'), '')
  assert.equal(removed.response.lines, '')
})

for (const name of ['Content-Length', 'Transfer-Encoding', 'Connection', 'Date']) {
  test(`${name} may be removed, without effect on the framing of the response`, async () => {
    const { response, reports } = await run(
      ['property', 'header'].map(it => `<${it} name="${name}" scope="transport" action="remove"/>`).join(''),
    )
    assert.deepEqual([response.lines, reports], ['', []])
  })
}

test('a number of 64 bits keeps its digits in payloads, copies of the state and sums', async () => {
  const n = '9223372036854775806'
  const steps =
    `<property name="a" value="${n}" type="LONG"/><variable name="v" value="${n}" type="LONG"/>` +
    '<payloadFactory media-type="json">' +
    `<format>{"one":$1,"two":\${vars.v},"three":\${vars.v + 1},"four":"$1"}</format>` +
    '<args><arg expression="$ctx:a"/></args></payloadFactory>'
  const { message } = await run(steps)
  const text = (message.payload as { readonly text: string }).text
  assert.equal(text.replace(/\s/g, ''), `{"one":${n},"two":${n},"three":9223372036854775807,"four":"${n}"}`)
  const passed = new Message(() => undefined)
  passed.restore(structuredClone(message.state()))
  assert.equal(passed.get('variable', 'v'), n)
})
