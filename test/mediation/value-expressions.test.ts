/** `${…}` expressions: values, paths, operators, functions, and refused texts; and the clock of expressions. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { datePatternError, formatDate } from '../../src/mediation/date-pattern.ts'
import { Message } from '../../src/mediation/message.ts'
import { needsOf } from '../../src/mediation/needs.ts'
import { compiled, errorsOf, planOf, run, testRefusals, textFrom } from './test-sequences.ts'

const GIVEN = {
  json: {
    a: { b: [1, 2, { c: 'x' }] },
    n: 5,
    t: 'Text',
    yes: true,
    items: [{ p: 1 }, { p: 7 }],
    'a-b': 'dash',
    no: null,
  },
  properties: { s: 'prop', n: 3, j: { kind: 'json', value: { k: [9] } } as const },
  fields: { 'x-a': 'field', count: '4' },
}

const inBraces = (text: string) => `\${${text}}`

/** Expression within the braces, and its text. */
const ROWS: readonly (readonly [string, string])[] = [
  ['payload.n', '5'],
  ['payload.a.b[2].c', 'x'],
  ['payload["a-b"]', 'dash'],
  ['payload.none', ''],
  ['payload.a', '{"b":[1,2,{"c":"x"}]}'],
  ['payload.items[?(@.p > 3)].p', '[7]'],
  ['$.n', '5'],
  ['headers.count', '4'],
  ['headers["X-A"]', 'field'],
  ['properties.synapse.s', 'prop'],
  ['props.synapse["s"]', 'prop'],
  ['properties.synapse.j.k[0]', '9'],
  ['vars.none', ''],
  ['var.none', ''],
  ['1 + 2 * 3', '7'],
  ['(1 + 2) * 3', '9'],
  ['7 - 2 - 1', '4'],
  ['7 % 4', '3'],
  ['-payload.n + 1', '-4'],
  ['payload.n + 1', '6'],
  ['payload.t + "-" + payload.n', 'Text-5'],
  ["'a\\'b'", "a'b"],
  ['payload.n == 5', 'true'],
  ['payload.n == "5"', 'true'],
  ['headers.count == 4', 'true'],
  ['payload.n != 5', 'false'],
  ['payload.n >= 5 && payload.n < 6', 'true'],
  ['payload.n > 5 || payload.yes', 'true'],
  ['payload.n > 5 or payload.n < 5', 'false'],
  ['not(payload.yes)', 'false'],
  ['!payload.yes and true', 'false'],
  ['payload.yes ? "a" : "b"', 'a'],
  ['payload.n > 9 ? "a" : payload.n > 4 ? "b" : "c"', 'b'],
  ['payload.no == null', 'true'],
  ['exists(payload.none)', 'false'],
  ['length(payload.a.b)', '3'],
  ['length(payload.t)', '4'],
  ['toUpper(payload.t)', 'TEXT'],
  ['subString(payload.t, 1, 3)', 'ex'],
  ['contains(payload.t, "ex")', 'true'],
  ['replace(payload.t, "t", "$&")', 'Tex$&'],
  ['split("a,b", ",")', '["a","b"]'],
  ['round(2.5) + pow(2, 3)', '11'],
  ['base64decode(base64encode("ü"))', 'ü'],
  ['urlEncode("a b&c")', 'a%20b%26c'],
  ['hash("abc", "SHA-256")', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
  ['hash("abc", "none")', ''],
  ["xpath('//n') + 1", '51'],
  ["xpath('count(//items)') + 1", '3'],
  ['isArray(payload.items)', 'true'],
  ['isNumber(payload.t)', 'false'],
  ['integer("42") + 1', '43'],
  ['object("{\\"a\\":1}")', '{"a":1}'],
  // Further functions of the documentation of the reference platform.
  ['indexOf("banana", "an", 2)', '3'],
  ['indexOf("text", "e")', '1'],
  ['log(1)', '0'],
  ['round(2.7543, 2)', '2.75'],
  ['round(2.7543)', '3'],
  ['base64encode("añ", "ISO-8859-1")', 'YfE='],
  ['base64encode("dext")', 'ZGV4dA=='],
  ['formatDateTime("29-09-1988", "dd-MM-yyyy", "yyyy MMM dd")', '1988 Sep 29'],
  [
    'formatDateTime("1988-09-29 03:04 PM", "yyyy-MM-dd hh:mm a", "EEEE, d MMMM yyyy HH:mm")',
    'Thursday, 29 September 1988 15:04',
  ],
  ['formatDateTime("31-02-1988", "dd-MM-yyyy", "yyyy")', ''],
  ['formatDateTime("x", "dd-MM-yyyy", "yyyy")', ''],
  ['formatDateTime("2026-01-05T12:30:00.007+05:30", "yyyy-MM-dd\'T\'HH:mm:ss.SSSXXX", "H:m:s.S")', '12:30:0.7'],
  ['formatDateTime(0 * now(), "yyyy") == "1970" or formatDateTime(0, "yyyy") == "1969"', 'true'],
  ['formatDateTime("soon", "yyyy")', ''],
  ['formatDateTime("Sep. 5, \'25", "MMM. d, \'\'yy", "yyyy-MM-dd")', '2025-09-05'],
  // Fields of several lengths each, which a backtracking reader would try in every combination.
  [`formatDateTime("${'1'.repeat(99)}x", "${'dM'.repeat(50)}", "yyyy")`, ''],
  ['isNumber(now())', 'true'],
  ['now() + 1000 - now() > 900', 'true'],
  ['payload.items[?(@.p >= props.synapse.n)].p', '[7]'],
  ['payload.items[?(@.p == $.items[1].p)]', '[{"p":7}]'],
  ['payload.items[?(@.p > payload.n && @.p < props.synapse.j.k[0])].p', '[7]'],
  ['props.synapse.j[?(@[0] > payload.n)]', '[[9]]'],
  ['payload.items[?@.p != headers["count"]].p', '[1,7]'],
  ["payload.a.b[?(@ == 'vars.x')]", ''],
  ['array("[1,{\\"name\\":\\"x\\"}]")[1].name', 'x'],
  ['object("{\\"a\\":{\\"b\\":2}}")..b', '[2]'],
  ["exists('payload.none') ? 'yes' : 'default'", 'default'],
  ["exists('payload.n') ? payload.n : 'default'", '5'],
  ["exists('plain')", 'true'],
  ["length('a\\nb')", '3'],
  ['configs.SLUICE_TEST_NONE', ''],
]

for (const [expression, expected] of ROWS) {
  test(`\${${expression}} is ${expected}`, async () => {
    assert.equal(await textFrom(`\${${expression}}`, GIVEN), expected)
  })
}

test('values keep their types, and variables have paths', async () => {
  const steps =
    `<variable name="v" type="JSON" expression="${inBraces('payload.items')}"/>` +
    `<variable name="last" type="INTEGER" expression="${inBraces('vars.v[-1].p + 1')}"/>` +
    `<filter xpath="${inBraces('vars.last > 7')}"><then><property name="big" value="yes"/></then></filter>`
  const { message } = await run(steps, GIVEN)
  assert.deepEqual([message.get('variable', 'last'), message.get('default', 'big')], [8, 'yes'])
})

test('D837: whole numbers of up to 1,000 digits are added exactly, longer ones of clients as doubles', async () => {
  const sums = [1000, 1001].map(digits => {
    const json = { n: JSON.rawJSON('9'.repeat(digits)) }
    return textFrom(inBraces('payload.n + 1 + ""'), { json })
  })
  assert.deepEqual(await Promise.all(sums), [`1${'0'.repeat(1000)}`, 'Infinity'])
})

test('parameters of the query and of the path', async () => {
  const message = new Message(() => undefined)
  message.receive({ method: 'GET', target: '/pets/7?limit=5', status: 0, reason: '' }, null)
  message.set('default', 'API_ELECTED_RESOURCE', '/pets/{id}')
  const steps =
    `<property name="a" expression="${inBraces('params.queryParams.limit')}"/>` +
    `<property name="b" expression="${inBraces('params.pathParams.id')}"/>` +
    `<property name="c" expression="${inBraces('params.uriParams.id')}"/>`
  const sequences = await compiled(steps, () => undefined)
  sequences.run('one', message)
  assert.deepEqual(
    ['a', 'b', 'c'].map(name => message.get('default', name)),
    ['5', '7', '7'],
  )
})

test('only the payload needs a worker, and fields are captured', async () => {
  for (const [text, needs] of [
    ['headers.a == 1 ? vars.b : now()', 'heads'],
    ['vars.a + payload.b', 'worker'],
    ['headers.a ? 1 : payload.b', 'worker'],
    ['length(vars.a[0])', 'heads'],
    ['vars.a[?(@.b > headers.a)]', 'heads'],
    ['vars.a[?(@.b > $.c)]', 'worker'],
    ['configs.A', 'heads'],
  ] as const) {
    const plan = await planOf(`<property name="x" expression="\${${text}}"/>`)
    assert.equal(
      needsOf(['one'], () => plan),
      needs,
    )
    assert.deepEqual(plan.requestFields, text.includes('headers') ? ['a'] : [])
  }
})

/** Text within the braces, and its error. */
const REFUSED: readonly (readonly [string, string])[] = [
  ['payload.a +', 'ends too early'],
  ['payload.a b', 'does not go on at character 11'],
  ['payload[', 'ends too early'],
  ['body.a', 'there is no body (known are payload, vars, headers'],
  ['vars', 'vars needs a name'],
  ['properties.transport.a', 'there are no properties of transport'],
  ["xpath('//')", 'is not valid XPath'],
  ["xpath(vars.a, 'b')", 'xpath() needs texts in quotes'],
  ["secret('alias')", 'secret() is not supported (there is no vault: write configs.NAME'],
  ["registry('gov:/a').property('b')", 'registry() is not supported (there is no registry'],
  ['params.formParams.a', 'there are no params of formParams'],
  ["configs['a b']", 'there is no variable a b'],
  ["base64encode('a', 'EBCDIC')", 'base64encode() has no charset EBCDIC'],
  ["formatDateTime(now(), 'Q')", 'has a date pattern that has the unknown letter Q'],
  ['payload[?(@.a > vars)]', 'vars needs a name'],
  ['nope(1)', 'there is no function nope()'],
  ['length()', 'length() takes 1 arguments'],
  ['payload[?(@.]', 'is not valid JSONPath'],
  [`${'('.repeat(200)}1`, 'is nested more than 100 deep'],
]

for (const [text, expected] of REFUSED) {
  test(`\${${text.slice(0, 20)}} is refused: ${expected}`, async () => {
    const [error = ''] = await errorsOf(`<property name="a" expression="\${${text}}"/>`)
    assert.ok(error.includes(`: ${expected}`), error)
  })
}

test('xpath reads a variable', async () => {
  const students = '<students xmlns=""><student>Ann</student><student>Bo</student></students>'
  const steps =
    `<variable name="Students" type="XML">${students}</variable>` +
    `<property name="it" expression="${inBraces("xpath('//student[2]/text()', 'Students')")}"/>` +
    `<property name="own" expression="${inBraces("xpath('local-name(.)', 'Students')")}"/>`
  const { message, reports } = await run(steps, GIVEN)
  assert.deepEqual(reports, [])
  assert.deepEqual([message.get('default', 'it'), message.get('default', 'own')], ['Bo', 'students'])
  const ran = await run(`<property name="x" expression="${inBraces("xpath('//a', 'none')")}"/>`)
  assert.match(String(ran.reports[0]?.[2].CAUSE_OF_ERROR), /the variable none is no XML/)
})

test('configs reads the environment, and no log shows its value (D740)', async t => {
  process.env.SLUICE_TEST_CONFIG = 'geheim'
  t.after(() => delete process.env.SLUICE_TEST_CONFIG)
  const steps =
    `<property name="it" expression="${inBraces('config.SLUICE_TEST_CONFIG')}"/>` +
    `<log><message>${inBraces('"x" + configs.SLUICE_TEST_CONFIG')}</message></log>`
  const { message, reports } = await run(steps)
  assert.equal(message.get('default', 'it'), 'geheim')
  assert.equal(JSON.stringify(reports).includes('geheim'), false)
})

test('the clock', async () => {
  const before = Date.now()
  const time = Number(await textFrom("get-property('SYSTEM_TIME')"))
  assert.ok(time >= before && time <= Date.now())
  assert.match(await textFrom("get-property('SYSTEM_DATE', 'yyyy-MM-dd')"), /^\d{4}-\d\d-\d\d$/)
  assert.match(
    await textFrom("get-property('SYSTEM_DATE')"),
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(?:Z|[+-]\d\d:\d\d)$/,
  )
  assert.match(await textFrom("concat(//a, get-property('SYSTEM_DATE', 'yyyy'))"), /^\d{4}$/)
  const date = new Date(2026, 0, 5, 15, 4, 9, 7)
  assert.equal(
    formatDate(date, "yy/M/d hh:mm:ss,SSS a E MMM 'o''clock' ''"),
    "26/1/5 03:04:09,007 PM Mon Jan o'clock '",
  )
  assert.deepEqual(
    [datePatternError('yyyy Q'), datePatternError("'a"), datePatternError('HH:mm')],
    ['has the unknown letter Q', 'has a quote without an end', ''],
  )
})

testRefusals([
  ['<property name="a" expression="get-property(\'SYSTEM_DATE\', \'Q\')"/>', 'property/expression = get-property('],
])
