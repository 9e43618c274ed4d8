/** Bodies through a real worker thread: hostile ones get an answer with a code, converted and coded ones arrive. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { brotliDecompressSync, brotliCompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { planOf } from '../mediation/test-sequences.ts'
import { DEFAULT_FAULTS } from '../harness/default-sequences.ts'
import { flowsOf, setAxis2 } from '../harness/flows.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { type StrictMessage, valuesOf } from '../harness/strict-http.ts'

const MIB = 1024 * 1024
const READ = '<property name="read" expression="json-eval($.a)"/>'
const toType = (type: string) => setAxis2('messageType', type)
const EDIT =
  '<payloadFactory media-type="json"><format>{"id":$1}</format><args><arg evaluator="json" expression="$.id"/></args></payloadFactory>'

const WRAP =
  '<payloadFactory media-type="json"><format>{"wrapped":$1}</format><args><arg expression="json-eval($)"/></args></payloadFactory>'

/** Makes a text of 64 Mi characters out of one. */
const DOUBLE =
  '<property name="p" expression="json-eval($.a)"/>' +
  '<property name="p" expression="concat($ctx:p, $ctx:p)"/>'.repeat(26)

/** Compares one text with a pattern for each item: seconds of work that the sender of the items chooses. */
const SLOW = `<property name="p" expression="json-eval($.a)"/>
  <foreach collection="\${payload.items}"><sequence>
    <filter source="get-property('p')" regex="(a+)+b"><then><drop/></then></filter>
  </sequence></foreach>`

let respond: { readonly type: string; readonly body: string } = { type: 'application/json', body: '{}' }
const backend = await StrictBackend.listen(() => {
  const { type, body } = respond
  return `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
})

async function api(context: string, texts: Parameters<typeof flowsOf>[0]) {
  return { context, port: backend.port, overrides: { mediation: await flowsOf(texts) } }
}

const gateway = await startGateway([
  await api('/read', { request: READ }),
  await api('/soap', { request: toType('text/xml'), response: toType('application/json') }),
  await api('/edit', { request: EDIT }),
  await api('/wrap', { request: WRAP }),
  await api('/double', { request: DOUBLE }),
  await api('/readback', { response: READ }),
  await api('/threat', { request: '<jsonThreatProtection maxDepth="2"/>' }),
  await api('/guarded', {
    request: '<guardrail type="wordCount" max="1"/>',
    response: '<guardrail type="wordCount" max="1"/>',
  }),
  await api('/blocklist', { request: '<guardrail type="regex" pattern="secret" invert="true"/>' }),
  await api('/pattern', { request: '<regexThreatProtection pattern="&lt;script" body="true"/>' }),
  await api('/slow', { request: SLOW }),
  { context: '/passed', port: backend.port },
])
after(() => {
  gateway.stop()
  backend.close()
})

async function post(path: string, body: string | Uint8Array, fields: Readonly<Record<string, string>>) {
  const client = await connectPeer(gateway.port)
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  const bytes = Buffer.from(body)
  client.send(`POST ${path} HTTP/1.1\r\nHost: a\r\n${lines.join('')}Content-Length: ${bytes.length}\r\n\r\n`)
  client.send(bytes)
  const response = await takeResponse(client)
  client.destroy()
  return response
}

const JSON_TYPE = { 'Content-Type': 'application/json' }
const XML_TYPE = { 'Content-Type': 'application/xml' }

/** Name, body, fields, status, code. */
const HOSTILE: readonly (readonly [
  string,
  () => string | Uint8Array,
  Readonly<Record<string, string>>,
  number,
  number,
])[] = [
  ['a depth bomb of JSON', () => '['.repeat(MIB), JSON_TYPE, 413, 102521],
  ['a depth bomb of XML', () => '<a>'.repeat(MIB / 4), XML_TYPE, 413, 102521],
  ['an expanding entity', () => '<!DOCTYPE a [<!ENTITY b "bb">]><a>&b;</a>', XML_TYPE, 400, 102520],
  ['a gzip bomb', () => gzipSync(Buffer.alloc(96 * MIB)), { ...JSON_TYPE, 'Content-Encoding': 'gzip' }, 413, 102521],
  ['4 MiB of numbers', () => `[${'1,'.repeat(2 * MIB)}1]`, JSON_TYPE, 413, 102521],
  ['60 MiB of numbers', () => `[${'1,'.repeat(30 * MIB)}1]`, JSON_TYPE, 413, 102521],
  ['100 MB of numbers', () => `[${'1,'.repeat(50_000_000)}1]`, JSON_TYPE, 413, 102530],
  ['invalid UTF-8', () => Buffer.from([0x22, 0xff, 0x22]), JSON_TYPE, 400, 102520],
  ['an unknown coding', () => 'x', { ...JSON_TYPE, 'Content-Encoding': 'compress' }, 415, 102522],
  ['a body of two types', () => '[[1]]', { ...JSON_TYPE, 'content-type': 'text/plain' }, 415, 102522],
  ['an unknown charset', () => 'x', { 'Content-Type': 'text/plain; charset=koi8-r' }, 415, 102522],
]

test('a content type that is given twice is one', async () => {
  const fields = { ...JSON_TYPE, 'content-type': 'application/json' }
  assert.equal((await post('/edit/a', '{"id":7,"b":1}', fields)).status, 200)
  assert.equal(lastRequest().body.toString(), '{"id":7}')
})

test('a body of 2 MiB that payloadFactory wraps arrives whole', async () => {
  const body = JSON.stringify({ x: 'x'.repeat(2 * MIB) })
  assert.equal((await post('/wrap/a', body, JSON_TYPE)).status, 200)
  assert.equal(lastRequest().body.toString(), `{"wrapped":${body}}`)
})

test('a property beyond the longest text of a body is answered with 102532', async () => {
  const response = await post('/double/a', '{"a":"x"}', JSON_TYPE)
  assert.deepEqual([response.status, JSON.parse(response.body).fault.code], [500, 102532])
})

for (const [name, body, fields, status, code] of HOSTILE) {
  test(`${name} is answered with ${code}, and the next request is served`, async () => {
    const response = await post('/read/a', body(), fields)
    assert.equal(response.status, status)
    assert.equal(JSON.parse(response.body).fault.code, code)
    assert.equal((await post('/read/a', '{"a":1}', JSON_TYPE)).status, 200)
  })
}

test('a message that computes for seconds gets a code, and those that pass are answered before it', async () => {
  const items = Array.from({ length: 60_000 }, () => 1)
  const answered: string[] = []
  const slow = post('/slow/a', JSON.stringify({ items, a: 'a'.repeat(8000) }), JSON_TYPE)
  const passed = Array.from({ length: 20 }, async () => {
    assert.equal((await post('/passed/a', '{"a":1}', JSON_TYPE)).status, 200)
    answered.push('passed')
  })
  const response = await slow
  answered.push('slow')
  await Promise.all(passed)
  assert.equal(JSON.parse(response.body).fault.code, 102542)
  assert.equal(answered.at(-1), 'slow')
})

function lastRequest(): StrictMessage {
  return backend.requests.at(-1)!
}

test('JSON goes to a SOAP backend as an Envelope, and its Envelope comes back as JSON', async () => {
  const envelope =
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><r><n>1</n></r></s:Body></s:Envelope>'
  respond = { type: 'text/xml', body: envelope }
  const response = await post('/soap/a', '{"q":{"n":7}}', { ...JSON_TYPE, SOAPAction: 'urn:q' })
  respond = { type: 'application/json', body: '{}' }
  assert.equal(response.body, '{"r":{"n":1}}')
  const { body } = lastRequest()
  const inside = /<soapenv:Body>(.*)<\/soapenv:Body>/.exec(Buffer.from(body).toString())?.[1]
  assert.equal(inside, '<jsonObject><q><n>7</n></q></jsonObject>')
  assert.deepEqual(valuesOf(lastRequest().lines, 'content-type'), ['text/xml; charset=UTF-8'])
  assert.deepEqual(valuesOf(lastRequest().lines, 'soapaction'), ['"urn:q"'])
})

for (const [coding, encode, decode] of [
  ['gzip', gzipSync, gunzipSync],
  ['br', brotliCompressSync, brotliDecompressSync],
] as const) {
  test(`a body with ${coding} is edited and coded again`, async () => {
    const text = '{"id":12345678901234567890,"secret":1}'
    assert.equal((await post('/edit/a', encode(text), { ...JSON_TYPE, 'Content-Encoding': coding })).status, 200)
    assert.deepEqual(valuesOf(lastRequest().lines, 'content-encoding'), [coding])
    assert.equal(decode(lastRequest().body).toString(), '{"id":12345678901234567890}')
  })
}

test('a malformed response is 101510 with 502', async () => {
  respond = { type: 'application/json', body: '{"a":' }
  const response = await post('/readback/a', '{}', JSON_TYPE)
  respond = { type: 'application/json', body: '{}' }
  assert.deepEqual([response.status, JSON.parse(response.body).fault.code], [502, 101510])
})

test('threat protection answers by _threat_fault_', async () => {
  const response = await post('/threat/a', '[[[1]]]', JSON_TYPE)
  assert.equal(response.status, 400)
  const { code, message, description } = JSON.parse(response.body).fault
  assert.deepEqual(
    [code, message, description],
    [400, 'Bad Request', 'JSON threat protection: the depth is more than 2'],
  )
})

/** API, content type and body of what passed the policy of the API until it was inspected as a whole. */
const EVASIONS: readonly (readonly [path: string, type: string, body: string, status: number])[] = [
  ['/threat/a', 'application/json', '{"a":[[1]],"a":1}', 400],
  ['/blocklist/a', 'application/json', `"${'a'.repeat(1_100_000)} secret"`, 446],
  ['/blocklist/a', 'application/json', '["\\u0073ecret"]', 446],
  ['/pattern/a', 'application/xml', '<a><![CDATA[<script>]]></a>', 400],
  ['/pattern/a', 'application/x-www-form-urlencoded', 'q=%3Cscript%3E', 400],
]
for (const [path, type, body, status] of EVASIONS) {
  test(`${path} refuses ${body.slice(0, 40)} of type ${type}, which reaches no backend`, async () => {
    const before = backend.requests.length
    assert.equal((await post(path, body, { 'Content-Type': type })).status, status)
    assert.equal(backend.requests.length, before)
  })
}

test('an edited _threat_fault_ reads THREAT_CODE, THREAT_MSG and THREAT_DESC', async t => {
  const words = ['CODE', 'MSG', 'DESC'].map(name => `<arg expression="$ctx:THREAT_${name}"/>`).join('')
  const format = '<format>["$1","$2","$3"]</format>'
  const made = `<payloadFactory media-type="json">${format}<args>${words}</args></payloadFactory>`
  const plan = await planOf(`${made}<respond/>`, '_threat_fault_')
  const sequences = [...DEFAULT_FAULTS.sequences.filter(({ name }) => name !== plan.name), plan]
  const mediation = await flowsOf({ request: '<regexThreatProtection name="Paths" pattern="admin" path="true"/>' })
  const api = { context: '/a', port: backend.port, overrides: { mediation } }
  const edited = await startGateway([api], { faults: { ...DEFAULT_FAULTS, sequences } })
  t.after(() => edited.stop())
  const client = await connectPeer(edited.port)
  client.send('GET /a/%61dmin HTTP/1.1\r\nHost: a\r\n\r\n')
  const said = 'Paths: the path of the request may not match'
  assert.equal((await takeResponse(client)).body, JSON.stringify(['400', 'Bad Request', said]))
  client.destroy()
})

test('a guardrail answers by guardrail_fault, for a request and for a response', async () => {
  const refused = await post('/guarded/a', '"two words"', JSON_TYPE)
  respond = { type: 'application/json', body: '"two words"' }
  const refusedResponse = await post('/guarded/a', '"word"', JSON_TYPE)
  respond = { type: 'application/json', body: '{}' }
  for (const [{ status, body }, direction] of [
    [refused, 'request'],
    [refusedResponse, 'response'],
  ] as const) {
    assert.equal(status, 446)
    const { code, message, description } = JSON.parse(body).fault
    const said = `the guardrail wordCount refuses the ${direction}`
    assert.deepEqual([code, message, description], [900514, 'Guardrail intervened', said])
  }
})
