/** `<class>` and `<validate>` on real worker threads. */
import assert from 'node:assert/strict'
import { utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { temporaryHome } from '../config/temporary-home.ts'
import { testRefusals } from '../mediation/test-sequences.ts'
import { json, messageOf, startWorker, suiteWorker, textOf } from './started-worker.ts'

/** [module, what the message becomes] */
const MODULES: readonly (readonly [code: string, expected: string])[] = [
  ['export const mediate = m => { m.json = { ...m.json, b: 2 } }', 'continues {"a":1,"b":2}'],
  [
    'export async function mediate(m) { m.json = [await Promise.resolve(m.status), m.method, m.target] }',
    'continues [0,"POST","/pets?limit=5"]',
  ],
  [`export const mediate = m => { m.text = m.text.toUpperCase() }`, 'continues {"A":1}'],
  [`export const mediate = m => { m.bytes = Buffer.from([...m.bytes].reverse()) }`, 'continues }1:"a"{'],
  [`export const mediate = m => { m.setPayload('<x>1</x>', 'application/xml') }`, 'continues <x>1</x>'],
  [
    `export const mediate = (m, { properties, api, flow }) => { m.json = { ...properties, flow } }`,
    'continues {"n":"v","e":1,"flow":"request"}',
  ],
  [
    `export const mediate = m => { m.setProperty('o', { a: [1] }); m.json = m.getProperty('o') }`,
    'continues {"a":[1]}',
  ],
  [
    `export const mediate = m => { m.setField('X', 'y'); m.json = ['x', 'CONTENT-type', 'no'].map(m.getField) }`,
    'continues ["y","application/json",null]',
  ],
  [
    `export const mediate = () => { throw new TypeError('text of a client') }`,
    'faults 102580 code.mjs:1 throws TypeError',
  ],
  [
    `export const mediate = async () => { throw 'text of a client' }`,
    'faults 102580 code.mjs throws a value that is no error',
  ],
  [`export const mediate = m => m.setField('Connection', 'x')`, 'faults 102580 code.mjs:1 throws TypeError'],
  ['export const other = 1', 'faults 102580 code.mjs exports no function mediate'],
  ['export default', 'faults 102580 code.mjs cannot be loaded'],
]

const classOf = (name: string) =>
  `<class name="${name}"><property name="n" value="v"/><property name="e" expression="json-eval($.a)"/></class>`
const CLASS = classOf('code.mjs')

describe('modules', () => {
  // The module and the sequence of a row have its index.
  const files = Object.fromEntries(MODULES.map(([code], at) => [`code${at}.mjs`, code]))
  const others = Object.fromEntries(MODULES.map((_, at) => [`row${at}`, classOf(`code${at}.mjs`)]))
  const started = suiteWorker({ request: CLASS, others }, files)
  for (const [at, [code, expected]] of MODULES.entries()) {
    test(`the module ${code} makes ${expected}`, async () => {
      const worker = await started
      const result = await worker.run({ body: json('{"a":1}') }, [`row${at}`])
      const made =
        result.kind === 'faults'
          ? `faults ${result.fault.code} ${result.fault.cause.replace(/^.*?xml:\d+: /, '')}`
          : `${result.kind} ${textOf(messageOf(result)).replace(/<\?.*?\?>/, '')}`
      assert.ok(made.replace(/code\d+\.mjs/, 'code.mjs').startsWith(expected), made)
      assert.doesNotMatch(made, /text of a client/)
    })
  }
})

test('a class that returns false ends the sequence', async t => {
  const home = temporaryHome(t, { 'code.mjs': 'export const mediate = () => false' })
  const after = '<property name="X" value="set" scope="transport"/>'
  const worker = await startWorker(t, { request: CLASS + after }, { home })
  assert.deepEqual(messageOf(await worker.run({ body: json('{}'), fields: [] })).fields, [])
})

test('a class reads numbers that no double holds as the nearest doubles', async t => {
  const home = temporaryHome(t, { 'code.mjs': 'export const mediate = m => { m.json = [m.json.n + 1, m.json.fee] }' })
  const worker = await startWorker(t, { request: CLASS }, { home })
  const result = await worker.run({ body: json('{"n":12345678901234567890,"fee":1.50}') })
  assert.equal(textOf(messageOf(result)), '[12345678901234567000,1.5]')
})

test('an edited module is loaded again', async t => {
  const home = temporaryHome(t, { 'code.mjs': 'export const mediate = m => { m.json = 1 }' })
  const worker = await startWorker(t, { request: CLASS }, { home })
  const made = async () => textOf(messageOf(await worker.run({ body: json('{}') })))
  assert.equal(await made(), '1')
  writeFileSync(join(home, 'code.mjs'), 'export const mediate = m => { m.json = 2 }')
  utimesSync(join(home, 'code.mjs'), 1, 1)
  while ((await made()) !== '2') await setTimeout(50)
})

testRefusals([
  ['<class name="org.example.Order"/>', 'class/name = org.example.Order: is a Java class'],
  [
    '<class name="a.XMLSchemaValidator"/>',
    'class/name = a.XMLSchemaValidator: is a Java class, which does not run here (attach the policy xmlThreatProtector',
  ],
  [
    '<class name="a.APIMgtFaultHandler"/>',
    'class/name = a.APIMgtFaultHandler: is a Java class, which does not run here (remove it: log and metrics',
  ],
  ['<class name="order.txt"/>', 'class/name = order.txt: is not the file of an ES module'],
  ['<class/>', 'class/name: is missing'],
])

const ON_FAIL = `<on-fail><property name="X-Why" expression="$ctx:ERROR_MESSAGE" scope="transport"/>
  <payloadFactory media-type="json"><format>{"code": $1}</format><args><arg expression="$ctx:ERROR_CODE"/></args></payloadFactory>
  <respond/></on-fail>`
const validate = (schema: string, source = '') => `<validate${source}><schema${schema}${ON_FAIL}</validate>`
const inline = (schema: unknown) => `><![CDATA[${JSON.stringify(schema)}]]></schema>`
const ORDER = { type: 'object', required: ['n'], properties: { n: { type: 'integer', minimum: 1 } } }

/** [title, schema, source, valid JSON, invalid JSON, part of the violation] */
const SCHEMAS: readonly (readonly [string, string, string, string, string, RegExp])[] = [
  ['inline', inline(ORDER), '', '{"n":1}', '{"n":0}', /^\/n must be >= 1/],
  [
    'draft 04',
    inline({
      ...ORDER,
      $schema: 'http://json-schema.org/draft-04/schema#',
      properties: { n: { minimum: 1, exclusiveMinimum: true } },
    }),
    '',
    '{"n":2}',
    '{"n":1}',
    /must be > 1/,
  ],
  [
    'draft 06',
    inline({ ...ORDER, $schema: 'http://json-schema.org/draft-06/schema#' }),
    '',
    '{"n":2}',
    '{}',
    /required property 'n'/,
  ],
  [
    'draft 07',
    inline({ ...ORDER, $schema: 'http://json-schema.org/draft-07/schema#' }),
    '',
    '{"n":2}',
    '[]',
    /must be object/,
  ],
  [
    'draft 2019-09',
    inline({ ...ORDER, $schema: 'https://json-schema.org/draft/2019-09/schema' }),
    '',
    '{"n":2}',
    '{}',
    /required/,
  ],
  [
    'draft 2020-12',
    inline({ ...ORDER, $schema: 'https://json-schema.org/draft/2020-12/schema' }),
    '',
    '{"n":2}',
    '{}',
    /required/,
  ],
  ['a file', ' key="schemas/order.json"/>', '', '{"n":1}', '{"n":"x"}', /must be integer/],
  ['a local entry', ' key="order"/>', '', '{"n":1}', '{"n":"x"}', /must be integer/],
  ['a part', inline({ type: 'integer' }), ' source="json-eval($.n)"', '{"n":1}', '{"n":"x"}', /must be integer/],
  ['a repeated member', inline(ORDER), '', '{"n":1,"m":{"n":2}}', '{"n":0,"n":1}', /^\/n must not be repeated/],
  [
    'a repeated member beside a part',
    inline({ type: 'integer' }),
    ' source="json-eval($.a)"',
    '{"a":1}',
    '{"a":"x","b":[{"c":1,"c":2}],"a":1}',
    /^\/b\/0\/c must not be repeated/,
  ],
  ['a body without JSON', inline(ORDER), '', '{"n":1}', '', /is not JSON/],
  [
    'a hostile pattern',
    inline({ properties: { n: { pattern: '^(a+)+$' } } }),
    '',
    '{"n":"aa"}',
    JSON.stringify({ n: `${'a'.repeat(50_000)}!` }),
    /must match pattern/,
  ],
]

describe('schemas', () => {
  const text = JSON.stringify(ORDER)
  const files = {
    'schemas/order.json': text,
    'synapse-configs/default/local-entries/order.xml': `<localEntry key="order"><![CDATA[${text}]]></localEntry>`,
  }
  const sequences = SCHEMAS.map(([title, schema, source]) => [title, validate(schema, source)])
  const started = suiteWorker({ request: CLASS, others: Object.fromEntries(sequences) }, files)
  for (const [title, , , valid, invalid, violation] of SCHEMAS) {
    test(`a schema checks payloads: ${title}`, async () => {
      const worker = await started
      assert.equal((await worker.run({ body: json(valid) }, [title])).kind, 'continues')
      const result = await worker.run(invalid === '' ? {} : { body: json(invalid) }, [title])
      assert.equal(result.kind, 'responds')
      const message = messageOf(result)
      assert.match(new Map(message.fields).get('X-Why') ?? '', violation)
      assert.deepEqual(JSON.parse(textOf(message)), { code: 102584 })
    })
  }
})

test('a file that is no JSON Schema fails the message with its name', async t => {
  const home = temporaryHome(t, { 'order.xml': '<xs:schema/>' })
  const worker = await startWorker(t, { request: validate(' key="order.xml"/>') }, { home })
  const result = await worker.run({ body: json('{}') })
  assert.ok(result.kind === 'faults')
  assert.match(result.fault.cause, /order\.xml is XML Schema, which is not supported/)
})

testRefusals([
  [validate(' key="order.xsd"/>'), 'schema/key = order.xsd: is XML Schema, which is not supported'],
  [validate('><schema/></schema>'), 'schema: is XML Schema, which is not supported'],
  [validate('>{</schema>'), 'schema: is no JSON Schema'],
  [validate('>{"type":"nothing"}</schema>'), 'schema: is no JSON Schema'],
  ['<validate><schema key="a"/></validate>', 'validate/on-fail: is missing'],
  [`<validate>${ON_FAIL}</validate>`, 'validate/schema: is missing'],
])
