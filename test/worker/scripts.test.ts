/** `<script>` on real worker and script threads. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TransferredMessage } from '../../src/mediation/worker-task.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { type GatewayOptions, planGateway } from '../harness/gateway.ts'
import { eventually } from '../harness/peers.ts'
import { file, parseFile, testRefusals } from '../mediation/test-sequences.ts'
import { json, messageOf, startWorker, suiteWorker, textOf } from './started-worker.ts'

const script = (code: string) => `<script language="js"><![CDATA[${code}]]></script>`
const xml = (text: string): Partial<TransferredMessage> => ({
  fields: [['Content-Type', 'text/xml']],
  body: { kind: 'bytes', bytes: new TextEncoder().encode(text) },
})

/** Settings of scripts that differ from the defaults. */
function scripts(changes: Partial<ReturnType<typeof planGateway>['plan']['workers']['scripts']>) {
  const { workers } = planGateway([]).plan
  return { workers: { ...workers, scripts: { ...workers.scripts, ...changes } } }
}

/** [code, JSON body, expected JSON body]; code in the manner of public examples. */
const JSON_SCRIPTS: readonly (readonly [code: string, given: unknown, expected: unknown])[] = [
  ['var p = mc.getPayloadJSON(); mc.setPayloadJSON({ sum: p.a + p.b });', { a: 1, b: 2 }, { sum: 3 }],
  ['var p = mc.getPayloadJSON(); p.push(4); mc.setPayloadJSON(p);', [1], [1, 4]],
  [`mc.setPayloadJSON('{"text":true}')`, {}, { text: true }],
  [
    'mc.setPayloadJSON(mc.getPayloadJSON().items.filter(function (i) { return i.n > 1 }))',
    { items: [{ n: 2 }] },
    [{ n: 2 }],
  ],
  [`mc.setProperty('o', { a: [1] }); mc.setPayloadJSON(mc.getProperty('o'))`, {}, { a: [1] }],
  [
    `mc.setPayloadJSON({ m: mc.getProperty('HTTP_METHOD', 'axis2'), q: mc.getProperty('query.param.limit') })`,
    {},
    { m: 'POST', q: '5' },
  ],
  [`mc.setPayloadJSON({ type: mc.getProperty('content-TYPE', 'transport') })`, {}, { type: 'application/json' }],
  [`mc.setPayloadJSON([mc.getProperty('no'), mc.getEnvelope(), mc.isResponse()])`, {}, [null, null, false]],
  // The same elements as XPath sees.
  ['mc.setPayloadJSON([mc.getPayloadXML()])', {}, ['<jsonObject/>']],
  [
    'mc.setPayloadJSON([mc.getPayloadXML().toString()])',
    { a: 1, b: ['<', null] },
    [
      '<jsonObject><a>1</a><b>&lt;</b>' +
        '<b xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/></jsonObject>',
    ],
  ],
  ['mc.setPayloadJSON([mc.getPayloadXML()])', [1], ['<jsonArray><jsonElement>1</jsonElement></jsonArray>']],
  ['mc.setPayloadJSON({}); mc.setPayloadJSON([mc.getPayloadXML()])', { a: 1 }, [null]],
  [
    'mc.setPayloadJSON([typeof process, typeof require, typeof fetch, typeof ArrayBuffer])',
    {},
    ['undefined', 'undefined', 'undefined', 'undefined'],
  ],
  [
    `var it; try { it = mc.constructor.constructor('return 1')() } catch (e) { it = e.name } mc.setPayloadJSON([it])`,
    {},
    ['EvalError'],
  ],
]

test('a script finds the functions of the texts that it includes, and its errors name its own lines', async t => {
  const files = {
    'scripts/main.js': 'function mediate(mc) {\n  mc.setPayloadJSON({ is: twice(mc.getPayloadJSON().n) + added })\n}',
    'scripts/fails.js': 'function mediate(mc) {\n  throw new Error(twice(1))\n}',
    'scripts/twice.js': 'function twice(n) {\n  return 2 * n\n}',
    'synapse-configs/default/local-entries/added.xml': '<localEntry key="added">var added = 100</localEntry>',
  }
  const of = (key: string) =>
    `<script language="js" key="${key}"><include key="scripts/twice.js"/><include key="added"/></script>`
  const texts = { request: of('scripts/main.js'), others: { fails: of('scripts/fails.js') } }
  const worker = await startWorker(t, texts, { home: temporaryHome(t, files) })
  assert.equal(textOf(messageOf(await worker.run({ body: json('{"n":4}') }))), '{"is":108}')
  const failed = await worker.run({ body: json('{}') }, ['fails'])
  assert.ok(failed.kind === 'faults')
  assert.match(failed.fault.cause, /scripts\/fails\.js:2/)
})

/** One worker for all rows of a table; each row has a sequence, whose name has its index. */
function workerOf(rows: readonly (readonly [code: string, ...unknown[]])[], options: GatewayOptions = {}) {
  const others = Object.fromEntries(rows.map(([code], at) => [`row${at}`, script(code)]))
  return suiteWorker({ request: script(GOOD), others }, {}, options)
}

const GOOD = `mc.setProperty('X', 'ok', 'transport')`

describe('scripts and JSON', () => {
  const started = workerOf(JSON_SCRIPTS)
  for (const [at, [code, given, expected]] of JSON_SCRIPTS.entries()) {
    test(`the script ${code} makes ${JSON.stringify(expected)}`, async () => {
      const worker = await started
      const message = messageOf(await worker.run({ body: json(JSON.stringify(given)) }, [`row${at}`]))
      assert.deepEqual(JSON.parse(textOf(message)), expected)
    })
  }
})

const SOAP = '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><a>1</a></s:Body></s:Envelope>'

/** [code, XML body, part of the resulting body] */
const XML_SCRIPTS: readonly (readonly [code: string, given: string, expected: RegExp])[] = [
  [`mc.setPayloadXML('<b>' + mc.getPayloadXML() + '</b>')`, '<a>1</a>', /<b><a>1<\/a><\/b>/],
  [`mc.setPayloadXML('<b>' + mc.getPayloadXML() + '</b>')`, SOAP, /Body><b><a[^>]*>1<\/a><\/b><\/s:Body>/],
  [`mc.addHeader(true, '<h xmlns="urn:h">x</h>')`, SOAP, /s:Header><h xmlns="urn:h" s:mustUnderstand="1">x<\/h>/],
  [`mc.setPayloadXML('<n>' + mc.getEnvelope().length + '</n>')`, SOAP, /<n>\d+<\/n>/],
]

describe('scripts and XML', () => {
  const started = workerOf(XML_SCRIPTS)
  for (const [at, [code, given, expected]] of XML_SCRIPTS.entries()) {
    test(`the script ${code} makes XML of ${given.slice(0, 12)}`, async () => {
      const worker = await started
      assert.match(textOf(messageOf(await worker.run(xml(given), [`row${at}`]))), expected)
    })
  }
})

test('properties and fields that a script sets and removes are those of the message', async t => {
  const code = `mc.setProperty('X-A', 'a', 'transport'); mc.removeProperty('X-B', 'transport');
    mc.setProperty('k', 1.5); mc.setProperty('REST_URL_POSTFIX', '/x', 'axis2'); mc.getServiceLog().info('said')`
  const worker = await startWorker(t, { request: script(code) })
  const { fields, target, state } = messageOf(await worker.run({ fields: [['X-B', '1']] }))
  assert.deepEqual(fields, [['X-A', 'a']])
  assert.equal(target, '/x')
  assert.deepEqual(new Map(state.default).get('k'), 1.5)
  // The line comes from another thread, and by another channel than the result.
  await eventually('the line of the script', () =>
    worker.reports.some(({ event, fields }) => event === 'script' && fields.MESSAGE === 'said'),
  )
})

test('a script whose value is false ends the sequence', async t => {
  const next = '<property name="X" value="set" scope="transport"/>'
  const rows = [
    ['false', 0],
    ['true', 1],
    ['undefined', 1],
  ] as const
  const others = rows.map(([code]) => [code, script(code) + next])
  const worker = await startWorker(t, { others: Object.fromEntries(others), request: script(GOOD) })
  for (const [code, expected] of rows) {
    assert.equal(messageOf(await worker.run({ fields: [] }, [code])).fields.length, expected, code)
  }
})

test('what a script changes in the language is gone with the next message', async t => {
  const code = `Object.prototype.polluted = 'yes'; Array.prototype.push = function () { return 0 }
    JSON.stringify = function () { return '[]' }; globalThis.kept = (globalThis.kept || 0) + 1;
    mc.setProperty('count', kept); mc.setPayloadJSON({})`
  const look = `mc.setProperty('seen', String({}.polluted) + typeof kept)`
  const worker = await startWorker(
    t,
    { request: script(code), others: { look: script(look) } },
    scripts({ threads: 1 }),
  )
  for (let n = 0; n < 3; n++) {
    const { state } = messageOf(await worker.run({ body: json('[]') }))
    assert.ok(!new Map(state.default).has('count') || new Map(state.default).get('count') === 1)
    const seen = messageOf(await worker.run({}, ['look'])).state
    assert.equal(new Map(seen.default).get('seen'), 'undefinedundefined')
  }
})

/** [code, code of the fault, part of its cause] */
const FAILING: readonly (readonly [code: string, fault: number, cause: RegExp])[] = [
  ['for (;;) {}', 102581, /did not end/],
  ['var f = function () { Promise.resolve().then(f) }; f()', 102581, /did not end/],
  [`var a = []; for (;;) a.push(new Array(1e5).fill(a.length))`, 102582, /memory|script_mediator_heap_bytes/],
  [`var s = 'xxxxxxxx'; for (;;) s += s`, 102580, /RangeError/],
  ['\n\nnull.x', 102580, /TypeError: Cannot read properties of null \(reading 'x'\), row\d+\.xml:3/],
  [`throw new Error('text of ' + mc.getPayloadText())`, 102580, /throws Error, row/],
  ['process.exit(1)', 102580, /throws ReferenceError: process is not defined, row\d+\.xml:1/],
  ['mc.getAxis2MessageContext()', 102580, /throws TypeError: mc\.getAxis2MessageContext is not a function, row/],
  ['mc.getProperty(1).trim().a', 102580, /throws TypeError: /],
  ['mc.getServiceLog().a().b', 102580, /throws TypeError: mc\.getServiceLog\(\.\.\.\)\.a is not a function, row/],
  [`throw new Error('no roles')`, 102580, /throws Error: no roles, row/],
  [`throw new TypeError(mc.getPayloadText() + ' is not a function')`, 102580, /throws TypeError, row/],
  ['mc.getPayloadJSON().none[Object.keys(mc.getPayloadJSON())[0]]', 102580, /throws TypeError, row/],
  [`mc.setProperty('a', 1, 'nowhere')`, 102580, /RangeError/],
  [`mc.setPayloadXML('<a>')`, 102520, /./],
  [`mc.setPayloadJSON('{')`, 102580, /SyntaxError/],
]

describe('scripts that fail', () => {
  const heapBytes = 32 * 1_048_576
  const limited = workerOf(FAILING, scripts({ timeoutMs: 1000, heapBytes }))
  // Filling the heap takes longer where other programs need the processors.
  const patient = workerOf(FAILING, scripts({ timeoutMs: 20_000, heapBytes }))
  for (const [at, [code, fault, cause]] of FAILING.entries()) {
    test(`the script ${code.trim()} fails its message alone, with ${fault}`, async () => {
      const worker = await (fault === 102582 ? patient : limited)
      const [bad, good] = await Promise.all([worker.run({ body: json('{"secret":1}') }, [`row${at}`]), worker.run()])
      assert.ok(bad.kind === 'faults', bad.kind)
      assert.equal(bad.fault.code, fault, bad.fault.cause)
      assert.match(bad.fault.cause, cause)
      assert.doesNotMatch(bad.fault.cause, /secret/)
      assert.ok(messageOf(good).fields.some(([, value]) => value === 'ok'))
      assert.equal((await worker.run()).kind, 'continues')
    })
  }
})

test('a function of a file or of an ES module sees JSON as the XML that XPath sees', async t => {
  const code = 'mediate(mc) { mc.setPayloadJSON([mc.getPayloadXML()]) }'
  const later = 'mediate(mc) { mc.setPayloadJSON({ b: 2 }); mc.setPayloadJSON([mc.getPayloadXML()]) }'
  const files = {
    'code/file.js': `function ${code}`,
    'code/module.mjs': `export function ${code}`,
    'code/later.mjs': `export function ${later}`,
  }
  const of = (key: string) => `<script language="js" key="${key}"/>`
  const others = Object.fromEntries(Object.keys(files).map(key => [key, of(key)]))
  const worker = await startWorker(t, { request: script(GOOD), others }, { home: temporaryHome(t, files) })
  for (const [key, expected] of [
    ['code/file.js', '<jsonObject><a>1</a></jsonObject>'],
    ['code/module.mjs', '<jsonObject><a>1</a></jsonObject>'],
    ['code/later.mjs', '<jsonObject><b>2</b></jsonObject>'],
  ] as const) {
    const message = messageOf(await worker.run({ body: json('{"a":1}') }, [key]))
    assert.deepEqual(JSON.parse(textOf(message)), [expected], key)
  }
})

test('a script may be a function of an ES module, of a file, or of a local entry', async t => {
  const home = temporaryHome(t, {
    'code/tax.mjs': 'export async function add(mc) { mc.setPayloadJSON({ ...mc.getPayloadJSON(), tax: 2 }) }',
    'code/old.js': 'function add(mc) { var p = mc.getPayloadJSON(); p.tax = 3; mc.setPayloadJSON(p) }',
    'synapse-configs/default/local-entries/entry.xml':
      '<localEntry key="entry"><![CDATA[function add(mc) { mc.setPayloadJSON({ tax: 4 }) }]]></localEntry>',
  })
  const rows = [
    ['code/tax.mjs', 2],
    ['code/old.js', 3],
    ['conf:/code/old.js', 3],
    ['entry', 4],
  ] as const
  const others = rows.map(([key]) => [key, `<script language="js" key="${key}" function="add"/>`])
  const worker = await startWorker(t, { others: Object.fromEntries(others), request: script(GOOD) }, { home })
  for (const [key, tax] of rows) {
    assert.equal(JSON.parse(textOf(messageOf(await worker.run({ body: json('{}') }, [key])))).tax, tax)
  }
})

test('a file that is not there, or outside of the home, fails the message with its name', async t => {
  const home = temporaryHome(t, { 'a.mjs': 'export const other = 1' })
  const rows = [
    ['none.mjs', /none\.mjs is not there/],
    ['../x.mjs', /is not there|outside/],
    ['a.mjs', /exports no function mediate/],
    ['none.js', /none\.js is neither a local entry nor a file/],
  ] as const
  const others = rows.map(([key]) => [key, `<script language="js" key="${key}"/>`])
  const worker = await startWorker(t, { others: Object.fromEntries(others), request: script(GOOD) }, { home })
  for (const [key, cause] of rows) {
    const result = await worker.run({}, [key])
    assert.ok(result.kind === 'faults')
    assert.match(result.fault.cause, cause)
  }
})

/** [code of a script, name of its Java; '' for none] */
const JAVA: readonly (readonly [code: string, name: string])[] = [
  ['var s = Packages.java.lang.String(1)', 'Packages'],
  ['var m = mc.getAxis2MessageContext()', 'mc.getAxis2MessageContext'],
  ['var h = org.apache.axis2.context.MessageContext.TRANSPORT_HEADERS', 'org.apache'],
  ['importPackage(Packages.java.util)', 'importPackage'],
  ['/* Packages */ var a = "importPackage" // java.lang', ''],
  ['var a = { java: 1 }; mc.setProperty("a", a.java.b)', ''],
]

for (const [code, name] of JAVA) {
  test(`the script ${code} is ${name === '' ? 'no Java' : `told to use ${name}`}`, async () => {
    const { errors, warnings } = await parseFile(file(`<script>\n${code}</script>`))
    assert.deepEqual(errors, [])
    if (name === '') assert.deepEqual(warnings, [])
    else assert.ok(warnings[0]?.startsWith(`one.xml:2: script: uses ${name}: Java does not run here (write`), name)
  })
}

testRefusals([
  ['<script language="groovy">1</script>', 'script/language = groovy: is not supported'],
  ['<script language="js"/>', 'script: has no code'],
  ['<script>\n\nvar a = ;</script>', "script: is no JavaScript: Unexpected token ';' in line 3"],
  ['<script>mc.setPayloadXML(&lt;a/>)</script>', "script: is no JavaScript: Unexpected token '<' in line 1"],
  ['<script key="a.mjs">1</script>', 'script: has both code and key'],
  ['<script key="org.example.Thing"/>', 'script/key = org.example.Thing: is a Java class'],
  ['<script key="a.mjs" function="a b"/>', 'script/function = a b: is not the name of a function'],
  ['<script function="a">1</script>', 'script/function: needs key'],
])
