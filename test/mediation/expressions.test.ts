/** Expressions: variables, functions, operators, paths, and their errors. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadExpressionSyntax } from '../../src/mediation/expression-syntax.ts'
import { ExpressionParser } from '../../src/mediation/expression-parser.ts'
import { Message } from '../../src/mediation/message.ts'
import { CompiledSequences } from '../../src/mediation/compiled-sequences.ts'
import { needsOf } from '../../src/mediation/needs.ts'
import { errorsOf, planOf, parseFile, run, textFrom } from './test-sequences.ts'

const OTHER = { '12X12': 'twelve', '@type': 'order', 'a-b:c': 'dashed' }
const GIVEN = {
  properties: {
    CODE: 900901,
    MESSAGE: 'Invalid Credentials',
    YES: true,
    NO: false,
    EMPTY: '',
    ZERO: 0,
    'a.b-c': 'dotted',
    NAME: 'MESSAGE',
    SCOPE: 'transport',
    TEXT: '{"student":{"name":"Ann","marks":[5,7]}}',
  },
  fields: { accept: 'text/xml', 'x-two-words': 'two words' },
  json: { a: { b: [1, 'x', { c: true }], 'd e': null, f: 1.5 }, list: [{ n: 1 }, { n: 2 }], other: OTHER },
}

/** Expression and its value as text. */
const VALUES: readonly (readonly [string, string])[] = [
  ['$ctx:CODE', '900901'],
  ['$ctx:a.b-c', 'dotted'],
  ['$ctx:missing', ''],
  ['$axis2:missing', ''],
  ['$trp:Accept', 'text/xml'],
  ['$trp:X-Two-Words', 'two words'],
  ["get-property('CODE')", '900901'],
  ["syn:get-property('CODE')", '900901'],
  ["get-property('default', 'MESSAGE')", 'Invalid Credentials'],
  ["get-property('synapse', 'MESSAGE')", 'Invalid Credentials'],
  ["get-property('transport', 'ACCEPT')", 'text/xml'],
  ["get-property('axis2', 'none')", ''],
  ["get-property('To')", ''],
  // Booleans (XPath 1.0 4.3).
  ['boolean($ctx:CODE)', 'true'],
  ['boolean($ctx:ZERO)', 'false'],
  ['boolean($ctx:EMPTY)', 'false'],
  ['boolean($ctx:missing)', 'false'],
  ['boolean($ctx:NO)', 'false'],
  ["boolean('false')", 'true'],
  ['not($ctx:missing)', 'true'],
  ['true()', 'true'],
  ['false()', 'false'],
  // Text (4.2).
  ['string(1.50)', '1.5'],
  ['string(1 div 0)', 'Infinity'],
  ["string-length('añ😀')", '3'],
  ["normalize-space('  a \t b\n')", 'a b'],
  ["contains('abc', 'bc')", 'true'],
  ["contains('abc', '')", 'true'],
  ["starts-with('abc', 'b')", 'false'],
  ["substring('12345', 2, 3)", '234'],
  ["substring('12345', 1.5, 2.6)", '234'],
  ["substring('12345', 0, 3)", '12'],
  ["substring('12345', 2)", '2345'],
  ["substring('12345', 0 div 0)", ''],
  ["substring-before('1999/04/01', '/')", '1999'],
  ["substring-after('1999/04/01', '/')", '04/01'],
  ["substring-after('abc', 'x')", ''],
  ["translate('--aaa--', 'abc-', 'ABC')", 'AAA'],
  ["concat('a', 1, true(), $ctx:missing)", 'a1true'],
  ["fn:concat('a', $ctx:CODE)", 'a900901'],
  ["fn:string-length('abc')", '3'],
  ["fn:upper-case('abc')", 'ABC'],
  ["fn:lower-case('ABC')", 'abc'],
  ["base64Encode('añ')", 'YcOx'],
  ["base64Encode('añ', 'ISO-8859-1')", 'YfE='],
  ["base64Decode('YcOx')", 'añ'],
  ["base64Decode('YfE=', 'ISO-8859-1')", 'añ'],
  ["url-encode('a b&c=ñ')", 'a+b%26c%3D%C3%B1'],
  // Functions of later versions, with and without a prefix.
  ["upper-case('abc')", 'ABC'],
  ["lower-case('ABC')", 'abc'],
  ["ends-with('abc', 'bc')", 'true'],
  ["fn:ends-with('abc', 'ab')", 'false'],
  // Names of properties that only the message tells.
  ["get-property(concat('CO', 'DE'))", '900901'],
  ["get-property('default', $ctx:NAME)", 'Invalid Credentials'],
  ["get-property($ctx:SCOPE, concat('x-two-', 'words'))", 'two words'],
  ["get-property($ctx:NAME, 'x')", ''],
  ["concat(//f, get-property('default', $ctx:NAME))", '1.5Invalid Credentials'],
  // Numbers (4.4, 3.5).
  ['number("12")', '12'],
  ['number("1e3")', 'NaN'],
  ['number(true())', '1'],
  ['floor(1.9)', '1'],
  ['ceiling(1.1)', '2'],
  ['round(-2.5)', '-2'],
  ['1 + 2 * 3', '7'],
  ['7 mod 3', '1'],
  ['-7 mod 2', '-1'],
  ['8 div 4', '2'],
  ['-(1 + 1)', '-2'],
  ['1 < 2 and 2 <= 2 and 3 > 2 and 2 >= 3', 'false'],
  ['false() or $ctx:CODE > 900000', 'true'],
  // Equality (3.4), and booleans beside the texts true and false.
  ['$ctx:CODE = 900901', 'true'],
  ["$ctx:CODE = '900901'", 'true'],
  ["$ctx:MESSAGE != 'x'", 'true'],
  ["$ctx:missing = ''", 'true'],
  ["$ctx:YES = 'true'", 'true'],
  ["$ctx:NO = 'false'", 'true'],
  ["$ctx:NO = 'true'", 'false'],
  ['$ctx:NO = false()', 'true'],
  ["1 = '1.0'", 'true'],
  // JSONPath.
  ['json-eval($.a.f)', '1.5'],
  ['json-eval($.a.b[0])', '1'],
  ['json-eval($.a.b[-1].c)', 'true'],
  ['json-eval($.a.b[2])', '{"c":true}'],
  ["json-eval($.a['d e'])", ''],
  ['json-eval($.a.none.none)', ''],
  ['json-eval($.a.f.none)', ''],
  ['json-eval($.list[*].n)', '[1,2]'],
  ['json-eval($.list.length())', '2'],
  ['json-eval($.a.length()) + json-eval($.list.length())', '5'],
  ['json-eval($.none.length())', '0'],
  ["boolean(json-eval($['list'].length()) > 1)", 'true'],
  ['json-eval($.list[?(@.n > 1)].n)', '[2]'],
  // Forms of the reference platform that RFC 9535 lacks.
  ['string-length(json-eval($.)) = string-length(json-eval($))', 'true'],
  ['json-eval($.list.)', '[{"n":1},{"n":2}]'],
  ["json-eval($.['list'][0].['n'])", '1'],
  ['json-eval($.other.12X12)', 'twelve'],
  ['json-eval($.other.@type)', 'order'],
  ['json-eval($.other.a-b:c)', 'dashed'],
  ['json-eval($..12X12)', '["twelve"]'],
  ['json-eval(a.f)', '1.5'],
  ['json-eval(list[1].n)', '2'],
  ['json-eval(other.12X12)', 'twelve'],
  ['json-eval(list.length())', '2'],
  ["concat(json-eval('other.12X12'), '-', json-eval(a.f))", 'twelve-1.5'],
  ["concat(//f, json-eval('other.12X12'), json-eval(a.f))", '1.5twelve1.5'],
  ['json-eval($ctx:TEXT.student.name)', 'Ann'],
  ['json-eval($ctx:TEXT.student.marks[1])', '7'],
  ["json-eval($ctx:TEXT['student'].marks.length())", '2'],
  ['json-eval($ctx:TEXT)', '{"student":{"name":"Ann","marks":[5,7]}}'],
  ['json-eval($ctx:missing.name)', ''],
  ['json-eval($trp:X-Two-Words.name)', ''],
  ['json-eval($..n)', '[1,2]'],
  ['json-eval($.none[*])', ''],
  ["concat('x', json-eval( $.a.f ), 'json-eval($.no)')", 'x1.5json-eval($.no)'],
  ['boolean(json-eval($.a.b[2].c))', 'true'],
  // Functions about nodes with a prefix: Synapse sample 430 asks for the first value so.
  ['//list[fn:position() = 1]/n', '1'],
  ['//list[fn:position()=fn:last()]/n', '2'],
  ['fn:count(//n)', '2'],
  ['fn:sum( //n )', '3'],
  ['//list[fn:position()=2]/n', '2'],
  ["fn:concat(fn:local-name(//f), 'fn:count(x)', fn:string(//f))", 'ffn:count(x)1.5'],
  ['fn:count($env/s11:Body)', '1'],
  ['local-name($env)', 'Envelope'],
  ['$env/s11:Body/jsonObject/a/f', '1.5'],
  // Paths into the payload, which is within the Body of an Envelope.
  ['string(//f)', '1.5'],
  ['//n', '12'],
  ['count(//n)', '2'],
  ['//list[2]/n', '2'],
  ['//n[. = $ctx:ZERO + 2]', '2'],
  ['sum(//n)', '3'],
  ['local-name(s11:Body/*)', 'jsonObject'],
  ['$body/jsonObject/a/f', '1.5'],
  ['count($header)', '0'],
  ['//f = 1.5', 'true'],
  ['//f | //list[1]/n', '1.51'],
  ["concat(//f, fn:upper-case('x'), base64Encode(//f), get-property('transport','Accept'))", '1.5XMS41text/xml'],
  ['concat(//f, json-eval($.list[0].n))', '1.51'],
  ['string(//jsonObject/a/f)', '1.5'],
  ['name($body/*)', 'jsonObject'],
  ['boolean(//none)', 'false'],
  ['boolean(//f) and true()', 'true'],
  ['//f * 2', '3'],
  ["string(name(//f)) = 'f'", 'true'],
  ['//list[1]', '<list><n>1</n></list>'],
]

for (const [expression, expected] of VALUES) {
  test(`${expression} is ${expected === '' ? 'empty' : expected}`, async () => {
    assert.equal(await textFrom(expression, GIVEN), expected)
  })
}

/** Expression and its error. */
const REFUSED: readonly (readonly [string, RegExp])[] = [
  ['', /expression: is missing/],
  ['concat(', /is not valid XPath/],
  ['$ctx:', /is not valid XPath/],
  ['a b', /is not valid XPath/],
  ['$file:x', /there is no variable \$file:x/],
  ['$x', /there is no variable \$x/],
  ['//bar:x', /the prefix bar is not declared/],
  ['//a[bar:x = 1]', /the prefix bar is not declared/],
  ['bar:concat(1, 2)', /the prefix bar is not declared/],
  ['am:concat(1, 2)', /there is no function am:concat/],
  ['fn:get-property(1)', /there is no function fn:get-property/],
  ['constructor(1)', /there is no function constructor/],
  ['id(1)', /there is no function id/],
  ['//a[frobnicate()]', /there is no function frobnicate/],
  ["wso2:vault-lookup('a')", /vault-lookup\(\) has no vault to read \(write get-property\('env', 'NAME'\)/],
  ["fn:replace('a', 'b', 'c')", /there is no function fn:replace\(\) \(write it as \$\{replace\(…\)\}/],
  ["id('a')", /there is no function id\(\) \(known functions are /],
  ['concat(1)', /concat\(\) takes 2 to 100 arguments/],
  ['not()', /not\(\) takes 1 arguments/],
  ["get-property('registry', 'x')", /there is no scope registry \(there is no registry: write the value/],
  ["get-property('file', 'x')", /there is no scope file \(property files are not read: write get-property\('env'/],
  ["get-property('none', 'x')", /there is no scope none \(known scopes are default, synapse, .*, env, system\)/],
  ["get-property('none', $ctx:x)", /there is no scope none/],
  ["get-property('env', $ctx:x)", /get-property\('env'\) needs a name in quotes/],
  ["concat(//a, get-property('env', //b))", /get-property\('env'\) needs a name in quotes/],
  ["get-property('env', 'A=B')", /there is no variable A=B/],
  ["get-property('system', 'carbon.home')", /there is no system property carbon.home \(known ones are file.separator/],
  ["get-property('system', $ctx:x)", /there is no system property that a message names/],
  ["get-property('constructor', 'x')", /there is no scope constructor/],
  ["get-property('')", /get-property\(\) has an empty name/],
  ['json-eval($.a..)', /is not valid JSONPath/],
  ['json-eval($.a', /json-eval\(\) is not closed/],
  ['json-eval(1)', /is not valid JSONPath: it has no form that is known from 1 \(write it as \$\.a/],
  ['json-eval($.a b)', /is not valid JSONPath: it has no form that is known from b \(write it as \$\.a/],
  ['json-eval($.a[)', /is not valid JSONPath: its end is missing/],
  ["json-eval('')", /is not valid JSONPath: it is empty \(write \$ for the whole payload/],
  ['json-eval($.a..)', /is not valid JSONPath: it ends with a dot \(remove the dot/],
  ['json-eval($.list.sum())', /is not valid JSONPath: it ends with the function sum\(\) \(only length\(\)/],
  ['json-eval($.list[?(@.n =~ /1/)])', /its filter compares with =~ \(write \[\?match/],
  ['json-eval($.list[?(@.n in [1])])', /its filter has the operator in \(write conditions with ==/],
  ['json-eval($.list[(@.length-1)])', /it computes an index \(write \[-1\]/],
  ['concat(//a, json-eval($ctx:CODE.a))', /has json-eval\(\) of a property beside a location path/],
  ["base64Encode('a', 'EBCDIC')", /has no charset EBCDIC/],
  [`${'('.repeat(300)}1${')'.repeat(300)}`, /is not valid XPath|nested more than 200 deep/],
  [`${'-'.repeat(5000)}1`, /is not valid XPath|nested more than 200 deep/],
  [`1${' + 1'.repeat(3000)}`, /is longer than 8192 characters/],
]

for (const [expression, said] of REFUSED) {
  test(`${expression.slice(0, 40) || 'nothing'} is refused`, async () => {
    const escaped = expression.replaceAll('<', '&lt;').replaceAll('"', '&quot;')
    const [fault = '', ...others] = await errorsOf(`\n<property name="it" expression="${escaped}"/>`)
    assert.match(fault, said)
    assert.match(fault, /^one\.xml:2: property\/expression/)
    assert.deepEqual(others, [])
  })
}

test('the plan names the request fields that expressions read, wherever they are', async () => {
  const steps = [
    '<property name="a" expression="$trp:X-One"/>',
    '<filter xpath="//a[@b = $trp:X-Two]"><log><property name="c" expression="string($trp:x-three)"/></log></filter>',
    '<property name="d" expression="get-property(\'transport\', \'X-FOUR\')"/>',
  ]
  assert.deepEqual((await planOf(steps.join(''))).requestFields, ['x-one', 'x-two', 'x-three', 'x-four'])
})

test('a path finds nothing without a payload, and finds a text payload as text', async () => {
  assert.equal(await textFrom('count(//x)'), '0')
  const { message } = await run(
    '<payloadFactory media-type="text"><format>plain</format></payloadFactory>' +
      '<property name="it" expression="$body/*"/>',
  )
  assert.equal(message.get('default', 'it'), 'plain')
})

test('get-property finds the elements of a property, as $ctx does', async () => {
  const steps = [
    '<property name="om" type="OM"><a xmlns=""><b>1</b><b>2</b></a></property>',
    '<property name="x" expression="count(get-property(\'om\')//b)"/>',
    '<property name="y" expression="count($ctx:om//b)"/>',
    '<property name="z" expression="get-property(\'default\', \'om\')//b[2]"/>',
  ]
  const { message } = await run(steps.join(''))
  assert.deepEqual(
    ['x', 'y', 'z'].map(name => message.get('default', name)),
    ['2', '2', '2'],
  )
})

test('a variable of the environment is read by its name, and no log shows its value (D740)', async t => {
  process.env.SLUICE_TEST_BACKEND = 'https://u:geheim@h/x'
  t.after(() => delete process.env.SLUICE_TEST_BACKEND)
  const read = "get-property('env', 'SLUICE_TEST_BACKEND')"
  const steps = [
    `<property name="url" expression="${read}"/>`,
    `<property name="mixed" expression="concat(//none, ${read})"/>`,
    `<property name="by" value="env"/>`,
    `<property name="other" expression="get-property($ctx:by, 'SLUICE_TEST_BACKEND')"/>`,
    `<property name="absent" expression="get-property('env', 'SLUICE_TEST_ABSENT')"/>`,
    `<log><property name="a" expression="${read}"/><property name="b" expression="$ctx:url"/></log>`,
  ]
  const { message, reports } = await run(steps.join(''))
  assert.deepEqual(
    ['url', 'mixed', 'other', 'absent'].map(name => message.get('default', name)),
    ['https://u:geheim@h/x', 'https://u:geheim@h/x', '', ''],
  )
  const [[, , { MESSAGE: logged }]] = reports as [[string, string, { MESSAGE: string }]]
  assert.equal(logged.includes('geheim'), false)
  assert.match(logged, /a = \S+, b = \S+$/)
})

test('system properties with a meaning are read by their Java names', async () => {
  const read = (name: string) => textFrom(`get-property('system', '${name}')`)
  assert.deepEqual([await read('file.separator'), await read('user.dir')], ['/', process.cwd()])
  assert.equal(await textFrom("concat(count(//none), get-property('system', 'path.separator'))"), '0:')
})

test('a property whose name the message tells needs a worker', async () => {
  const needs = async (expression: string) => {
    const plan = await planOf(`<property name="it" expression="${expression}"/>`)
    return needsOf(['one'], () => plan)
  }
  assert.deepEqual(
    [await needs('get-property($ctx:x)'), await needs("get-property('env', 'HOME')"), await needs("get-property('x')")],
    ['worker', 'heads', 'heads'],
  )
})

test('a path reads the current payload', async () => {
  const payload = (text: string) => `<payloadFactory><format><a xmlns="">${text}</a></format></payloadFactory>`
  const read = (name: string) => `<property name="${name}" expression="//a"/>`
  const steps = payload('1') + read('x') + payload('2') + read('y')
  const { message } = await run(steps)
  assert.deepEqual([message.get('default', 'x'), message.get('default', 'y')], ['1', '2'])
})

test('inherited members of objects are not found', async () => {
  assert.equal(await textFrom('json-eval($.constructor.name)', GIVEN), '')
  assert.equal(await textFrom('json-eval($.list.length)', GIVEN), '')
})

const REFERENCE_STYLE = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="one">
  <payloadFactory media-type="json" template-type="default"><format>{"f":"x"}</format></payloadFactory>
  <property name="plain" expression="fn:concat('a', 'b')"/><property name="tree" expression="fn:concat(//f, 'b')"/>
</sequence>`

test('the prefix fn needs no declaration', async () => {
  const { plan, errors } = await parseFile(REFERENCE_STYLE)
  assert.deepEqual(errors, [])
  const message = new Message(() => undefined)
  new CompiledSequences([plan!], (_, __, fields) => assert.fail(JSON.stringify(fields))).run('one', message)
  assert.deepEqual([message.get('default', 'plain'), message.get('default', 'tree')], ['ab', 'xb'])
})

const LINEAR: readonly (readonly [expression: string, found: string])[] = [
  ["json-eval($.all[?match(@, '(a+)+b')])", ''],
  ["json-eval($.all[?search(@, '(a+)+!!')])", ''],
  ['json-eval($.all[?search(@, $.by)])', ''],
  ["json-eval($.all[?match(@, '[a-c]+')])", '["abc"]'],
  ["json-eval($.all[?search(@, 'bc')])", '["abc"]'],
  ["json-eval($.all[?match(@, '(')])", ''],
]

for (const [expression, found] of LINEAR) {
  test(`${expression} takes linear time`, { timeout: 20_000 }, async () => {
    const json = { all: [`${'a'.repeat(4000)}!`, 'abc', 7], by: '(a|aa)+$' }
    assert.equal(await textFrom(expression, { json }), found)
  })
}

test('a syntax node of an unknown class is refused', async () => {
  const parsers = { ...(await loadExpressionSyntax()), classOf: () => undefined }
  const { expression, why } = new ExpressionParser(parsers, new Set()).parse('1 + 1', () => undefined)
  assert.deepEqual([expression, why], [undefined, 'has a part of an unsupported kind'])
})

test('an object that is no syntax node has no class', async () => {
  const { classOf, xpath } = await loadExpressionSyntax()
  const node = xpath('1')
  assert.notEqual(classOf(node), undefined)
  assert.equal(classOf({ ...node }), undefined)
})

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: expressions of the language
/** [what, steps, names of the variables that are warned about]. */
const UNSET: readonly (readonly [string, string, readonly string[]])[] = [
  ['get-property', '<property name="a" expression="get-property(\'env\', \'SLUICE_TYPO\')"/>', ['SLUICE_TYPO']],
  [
    'get-property beside a path',
    "<filter xpath=\"//a = get-property('env', 'SLUICE_TYPO')\"><then/></filter>",
    ['SLUICE_TYPO'],
  ],
  ['${configs.NAME}', '<property name="a" expression="${configs.SLUICE_TYPO}"/>', ['SLUICE_TYPO']],
  ['a variable that is set', '<property name="a" expression="get-property(\'env\', \'PATH\')"/>', []],
]
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: expressions of the language
for (const [what, steps, names] of UNSET) {
  test(`a variable of the environment that is not set is a warning: ${what}`, async () => {
    const { warnings, errors } = await parseFile(
      `<sequence xmlns="http://ws.apache.org/ns/synapse" name="one">\n${steps}</sequence>`,
    )
    assert.deepEqual(errors, [])
    const said = warnings.map(
      warning =>
        /^one\.xml:2: \S+: reads (\S+), a variable of the environment that is not set \(set it/.exec(warning)?.[1],
    )
    assert.deepEqual(said, names)
  })
}

const raw = (digits: string) => JSON.rawJSON(digits)
const WRITTEN = { fee: raw('7000.0'), same: raw('7000.00'), whole: 7000, none: raw('0.0'), power: raw('1e2') }
const POWERS = { great: raw('1E+300'), small: raw('1e-7') }
const LIST = { list: [{ p: raw('1.0') }, { p: raw('2.50') }], big: raw('12345678901234567890') }

/** Expression, and its value as text. */
const WRITTEN_ROWS: readonly (readonly [string, string])[] = [
  ['json-eval($.fee)', '7000.0'],
  ['json-eval($.power)', '1e2'],
  ['json-eval($.list)', '[{"p":1.0},{"p":2.50}]'],
  ['json-eval($..p)', '[1.0,2.50]'],
  ["concat('x', json-eval($.fee))", 'x7000.0'],
  ["concat(//none, ' ', json-eval($.fee))", '0.0 7000.0'],
  ['json-eval($.fee) = 7000', 'true'],
  ['json-eval($.fee) = json-eval($.whole)', 'true'],
  ['json-eval($.fee) = json-eval($.same)', 'true'],
  ['json-eval($.big) = 1', 'false'],
  ['json-eval($.power) + 1', '101'],
  ['//whole = 7000 and json-eval($.power) > 99', 'true'],
  ['//power', '100'],
  ['//power = 100 and //great > 1000 and //small < 1', 'true'],
  ['sum(//power | //whole)', '7100'],
  ['boolean(json-eval($.none))', 'false'],
  ['json-eval($.list[?(@.p == 1)])', '[{"p":1.0}]'],
  ['json-eval($.list[?(@.p > 2)].p)', '[2.50]'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: an expression of the sequence language
  ['${payload.fee}', '7000.0'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: an expression of the sequence language
  ['${payload.fee == 7000 && payload.fee == payload.same}', 'true'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: an expression of the sequence language
  ['${payload.fee + 1}', '7001'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: an expression of the sequence language
  ['${isNumber(payload.fee) && not(isObject(payload.fee))}', 'true'],
]
for (const [expression, expected] of WRITTEN_ROWS) {
  test(`D898: ${expression} reads a number as it is written: ${expected}`, async () => {
    assert.equal(await textFrom(expression, { json: { ...WRITTEN, ...POWERS, ...LIST } }), expected)
  })
}

test('D898: a number of JSON that is whole is an INTEGER, however it is written', async () => {
  const steps = '<property name="p" expression="json-eval($.fee)" type="INTEGER"/>'
  const { message } = await run(steps, { json: WRITTEN })
  assert.equal(message.get('default', 'p'), 7000)
})

test('D898: values of other threads keep the types of lists and numbers', async () => {
  const steps = `<property name="p" expression="json-eval($.fee)" type="JSON"/>
    <property name="l" expression="json-eval($.list)" type="JSON"/>`
  const { message } = await run(steps, { json: { ...WRITTEN, ...LIST } })
  assert.deepEqual(structuredClone(message.state().default), [
    ['p', 7000],
    ['l', { kind: 'json', value: [{ p: 1 }, { p: 2.5 }] }],
  ])
})
