/**
 * Edited fault sequences: whatever the file contains, the client gets one well-formed response with the fields that
 * belong to the refusal.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Diagnostics } from '../../src/config/diagnostics.ts'
import { parseSequence } from '../../src/mediation/sequence-parser.ts'
import { takeResponse } from '../harness/responses.ts'
import { OPEN_CORS, operation } from '../harness/filter-chain.ts'
import { faultsWith } from '../harness/default-sequences.ts'
import { type GatewayOptions, startGateway, type TestApi, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually } from '../harness/peers.ts'
import { parseResponse, valuesOf } from '../harness/strict-http.ts'

async function start(
  t: TestContext,
  edited: Readonly<Record<string, string>>,
  more: GatewayOptions = {},
  aiSequence = '',
  api: Partial<TestApi> = {},
): Promise<TestGateway> {
  const faults = await faultsWith(edited, aiSequence)
  const gateway = await startGateway([{ context: '/t', port: 1, ...api }], { faults, ...more })
  t.after(() => gateway.stop())
  return gateway
}

async function request(gateway: TestGateway, text: string): ReturnType<typeof takeResponse> {
  const client = await connectPeer(gateway.port)
  client.send(text)
  const response = await takeResponse(client)
  client.destroy()
  return response
}

/** A payload factory whose arguments are these request fields. */
function json(format: string, ...names: readonly string[]): string {
  const args = names.map(name => `<arg expression="$trp:${name}"/>`).join('')
  return `<payloadFactory media-type="json"><format>${format}</format><args>${args}</args></payloadFactory>`
}

const NONE = 'GET /none HTTP/1.1\r\nHost: a\r\n\r\n'
const NOT_FOUND =
  '{"fault":{"code":404,"type":"Status report","message":"Not Found","description":"The requested resource is not available"}}'

const WITHOUT_RESPONSE: readonly (readonly [name: string, content: string])[] = [
  ['ends without a response', '<property name="x" value="y"/>'],
  ['is empty', ''],
  ['drops the message', '<drop/>'],
  ['drops the message after setting a status', '<property name="HTTP_SC" value="200" scope="axis2"/><drop/>'],
  ['calls itself endlessly', '<sequence key="main"/><sequence key="main"/>'],
]

for (const [name, content] of WITHOUT_RESPONSE) {
  test(`a sequence that ${name} is replaced by the built-in fault, with a warning`, async t => {
    const gateway = await start(t, { main: content })
    const response = await request(gateway, NONE)
    assert.equal(response.status, 404)
    assert.equal(response.body, NOT_FOUND)
    assert.deepEqual(response.fields.get('content-type'), ['application/json; charset=UTF-8'])
    const warnings = gateway.reports.filter(({ event }) => event === 'fault sequence gave no response')
    assert.deepEqual(
      warnings.map(({ level, fields }) => [level, fields.SEQUENCE]),
      [['warn', 'main']],
    )
  })
}

test('a missing sequence is replaced by the built-in fault', async t => {
  const gateway = await start(t, {}, { faults: { sequences: [], aiSequence: '' } })
  assert.equal((await request(gateway, NONE)).body, NOT_FOUND)
})

test('the warning about a sequence without a response is rate-limited', async t => {
  const gateway = await start(t, { main: '<drop/>' })
  const client = await connectPeer(gateway.port)
  for (let i = 0; i < 200; i++) {
    client.send(NONE)
    assert.equal((await takeResponse(client)).status, 404)
  }
  client.destroy()
  const warnings = gateway.reports.filter(({ event }) => event === 'fault sequence gave no response')
  assert.ok(warnings.length >= 1 && warnings.length < 10, `${warnings.length} warnings`)
})

const STATUSES: readonly (readonly [given: string, status: number])[] = [
  ['204', 204],
  ['205', 205],
  ['304', 304],
  ['200', 200],
  ['599', 599],
]

for (const [given, status] of STATUSES) {
  test(`HTTP_SC ${given} gives a well-formed response, and the next response follows`, async t => {
    const content = `<payloadFactory media-type="json"><format>{"a":1}</format></payloadFactory>
      <property name="HTTP_SC" value="${given}" scope="axis2"/><respond/>`
    const gateway = await start(t, { main: content })
    const client = await connectPeer(gateway.port)
    client.send(`${NONE}GET /t HTTP/1.1\r\nHost: a\r\n\r\n`)
    await client.untilText('101503')
    const first = parseResponse(client.received, 0, 'GET', false)!
    assert.equal(first.status, status)
    assert.equal(first.body.toString(), [204, 205, 304].includes(status) ? '' : '{"a":1}')
    assert.equal(parseResponse(client.received, first.end, 'GET', false)!.status, 502)
    client.destroy()
  })
}

for (const given of ['100', '101', '199', '600', '99', '0', '-1', '20x', '1e3', ' ', 'none']) {
  test(`HTTP_SC "${given}" is not a valid status and gives 500`, async t => {
    const gateway = await start(t, { main: `<property name="HTTP_SC" value="${given}" scope="axis2"/><respond/>` })
    assert.equal((await request(gateway, NONE)).status, 500)
  })
}

test('RFC 9110 9.3.2: a fault in response to HEAD has the fields of GET and no body', async t => {
  const gateway = await start(t, {})
  const client = await connectPeer(gateway.port)
  for (const accept of ['*/*', 'application/xml']) {
    client.send(`HEAD /none HTTP/1.1\r\nHost: a\r\nAccept: ${accept}\r\n\r\n${NONE}`)
    await client.untilText('"fault"')
    const head = parseResponse(client.received, 0, 'HEAD', false)!
    assert.equal(head.status, 404)
    const type = accept === '*/*' ? 'application/json' : 'application/xml'
    assert.deepEqual(valuesOf(head.lines, 'content-type'), [`${type}; charset=UTF-8`])
    assert.ok(Number(valuesOf(head.lines, 'content-length')[0]) > 0)
    const next = parseResponse(client.received, head.end, 'GET', false)!
    assert.equal(next.body.toString(), NOT_FOUND)
    client.take(next.end)
  }
  client.destroy()
})

test('GET / gets an HTML page; other methods and similar paths get 404', async t => {
  const gateway = await start(t, {})
  const page = await request(gateway, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal(page.status, 200)
  assert.deepEqual(page.fields.get('content-type'), ['text/html; charset=UTF-8'])
  assert.match(page.body, /^<html lang="en"><head>.*<\/html>$/)
  for (const start of ['POST /', 'GET //', 'GET /?x']) {
    assert.equal((await request(gateway, `${start} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`)).status, 404)
  }
})

const INJECTIONS = ['a%0d%0aX-Injected:%20yes', 'a%0aX-Injected:%20yes', 'a%00b', 'caf\u00e9']

test('bytes of a request cannot inject a field or change the structure of the body', async t => {
  const content = `<property name="X-Path" expression="$ctx:REST_FULL_REQUEST_PATH" scope="transport"/>
    <property name="X-Who" expression="$trp:X-Who" scope="transport"/>
    <property name="HTTP_SC_DESC" expression="$trp:X-Who" scope="axis2"/>
    <property name="ContentType" expression="$trp:X-Type" scope="axis2"/>
    ${json('{"who":"$1"}', 'X-Who')}<respond/>`
  const gateway = await start(t, { main: content, fault: content })
  for (const piece of INJECTIONS) {
    const response = await request(
      gateway,
      `GET /none/${piece.replace(/[^!-~]/g, '')} HTTP/1.1\r\nHost: a\r\n` +
        `X-Who: "},"x":{"y":"${piece}\r\nX-Type: text/html, ${piece}\r\n\r\n`,
    )
    assert.equal(response.fields.get('x-injected'), undefined)
    assert.deepEqual(Object.keys(JSON.parse(response.body)), ['who'])
    for (const values of response.fields.values()) for (const value of values) assert.doesNotMatch(value, /[\0\r\n]/)
  }
})

test('a request that is refused before routing is not described with data of the previous request', async t => {
  const content = '<property name="X-Path" expression="$ctx:REST_FULL_REQUEST_PATH" scope="transport"/><respond/>'
  const gateway = await start(t, { main: content, fault: content })
  const client = await connectPeer(gateway.port)
  client.send('GET http://first.test/none HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.deepEqual((await takeResponse(client)).fields.get('x-path'), ['/none'])
  client.send('GET /then/this HTTP/1.1\r\nHost: a b\r\n\r\n')
  assert.deepEqual((await takeResponse(client)).fields.get('x-path'), ['/then/this'])
  client.destroy()
})

test('decoded line ends in a property do not split a field', async t => {
  const content = `<property name="X-Decoded" expression="base64Decode('YQ0KWC1JbmplY3RlZDogeWVz')" scope="transport"/>
    <property name="X-Literal" value="a&#13;&#10;X-Injected: yes" scope="transport"/>
    <property name="HTTP_SC_DESC" value="OK&#13;&#10;X-Injected: yes" scope="axis2"/><respond/>`
  const findings = new Diagnostics()
  const text = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="main">${content}</sequence>`
  const plan = await parseSequence('main', 'main.xml', text, findings)
  // A literal line end is refused when the file is parsed, a computed one at run time.
  if (plan === undefined) assert.ok(findings.errors.length > 0)
  else {
    const gateway = await start(t, {}, { faults: { sequences: [plan], aiSequence: '' } })
    const response = await request(gateway, NONE)
    assert.equal(response.fields.get('x-injected'), undefined)
  }
})

test('fields of the refusal are present once, whatever fields the sequence sets', async t => {
  const content = `<property name="HTTP_SC" value="400" scope="axis2"/>
    <property name="Allow" value="NOTHING" scope="transport"/>
    <property name="Vary" value="Accept" scope="transport"/>
    <property name="activityid" value="mine" scope="transport"/><respond/>`
  const api = {
    overrides: { resources: [operation('GET /pets')], cors: { ...OPEN_CORS, origins: ['https://a.test'] } },
  }
  const gateway = await start(t, { _resource_mismatch_handler_: content }, { hasFilterChain: true }, '', api)
  const response = await request(
    gateway,
    'PUT /t/pets HTTP/1.1\r\nHost: a\r\nOrigin: https://a.test\r\nactivityid: x1\r\nContent-Length: 0\r\n\r\n',
  )
  assert.deepEqual(response.fields.get('allow'), ['NOTHING'])
  assert.deepEqual(response.fields.get('activityid'), ['x1'])
  assert.deepEqual(response.fields.get('vary'), ['Accept', 'Origin'])
  assert.deepEqual(response.fields.get('access-control-allow-origin'), ['https://a.test'])
})

/** RFC 9110 12.5.5, 15.1: fields of a sequence, its status, whether CORS names the origin, and the expected Vary. */
const VARIED: readonly (readonly [
  fields: Readonly<Record<string, string>>,
  status: number,
  isNamed: boolean,
  varied: readonly string[] | undefined,
])[] = [
  [{}, 404, false, ['Accept']],
  [{}, 410, true, ['Origin, Accept']],
  [{}, 414, false, ['Accept']],
  [{}, 501, false, ['Accept']],
  [{}, 403, false, undefined],
  [{}, 503, true, ['Origin']],
  [{ 'Cache-Control': 'no-store' }, 404, false, undefined],
  [{ 'cache-control': 'max-age=5' }, 405, true, ['Origin']],
  [{ Vary: '*' }, 404, false, ['*']],
  [{ Vary: 'X-A,accept' }, 404, true, ['X-A,accept', 'Origin']],
  [{ Vary: 'Accept-Language' }, 404, false, ['Accept-Language, Accept']],
  [{ Vary: 'X-A' }, 404, true, ['X-A', 'Origin, Accept']],
]

for (const [fields, status, isNamed, varied] of VARIED) {
  const what = `${JSON.stringify(fields)}${isNamed ? ' and a named origin' : ''}`
  test(`RFC 9110 12.5.5: a fault ${status} with ${what} has Vary: ${varied?.join(', ') ?? 'none'}`, async t => {
    const set = Object.entries(fields).map(([name, value]) => {
      return `<property name="${name}" value="${value}" scope="transport"/>`
    })
    const main = `<property name="HTTP_SC" value="${status}" scope="axis2"/>${set.join('')}<respond/>`
    const cors = isNamed ? { ...OPEN_CORS, origins: ['https://a.test'] } : OPEN_CORS
    const gateway = await start(t, { main }, { cors })
    const response = await request(gateway, NONE)
    assert.equal(response.status, status)
    assert.deepEqual(response.fields.get('vary'), varied)
  })
}

// A fault gets the fields that an edited `_cors_request_handler_` sets, and no others.
for (const origin of ['', 'https://a.test', 'https://other.test', '*']) {
  test(`CORS: an edited _cors_request_handler_ names the origin "${origin}"`, async t => {
    const content = `<property name="Access-Control-Allow-Origin" value="${origin}" scope="transport"/>`
    const cors = { ...OPEN_CORS, origins: ['https://a.test'], credentials: true, exposedHeaders: ['X-A'] }
    const gateway = await start(t, { _cors_request_handler_: origin === '' ? '' : content }, { cors })
    const response = await request(gateway, 'GET /none HTTP/1.1\r\nHost: a\r\nOrigin: https://a.test\r\n\r\n')
    assert.deepEqual(response.fields.get('access-control-allow-origin'), origin === '' ? undefined : [origin])
    assert.equal(response.fields.get('access-control-allow-credentials'), undefined)
    assert.equal(response.fields.get('access-control-expose-headers'), undefined)
    assert.deepEqual(response.fields.get('vary'), ['Origin, Accept'])
  })
}

test('CORS: a fault to an origin that is not configured has only Vary', async t => {
  const cors = { ...OPEN_CORS, origins: ['https://a.test'] }
  const gateway = await start(t, {}, { cors })
  for (const origin of ['https://b.test', 'null']) {
    const response = await request(gateway, `GET /none HTTP/1.1\r\nHost: a\r\nOrigin: ${origin}\r\n\r\n`)
    assert.equal(response.fields.get('access-control-allow-origin'), undefined)
    assert.deepEqual(response.fields.get('vary'), ['Origin, Accept'])
  }
})

test('CORS: response fields sent by the client do not affect the fault', async t => {
  const gateway = await start(t, {}, { cors: OPEN_CORS })
  const response = await request(gateway, 'GET /none HTTP/1.1\r\nHost: a\r\nAccess-Control-Allow-Origin: evil\r\n\r\n')
  assert.deepEqual(response.fields.get('access-control-allow-origin'), ['*'])
})

const SHAPED =
  '{"error":{"code":"101503","type":"Error connecting to the backend","message":"Connecting to the backend failed"}}'

test('[apim.ai] custom_error_response_sequence words the faults of AI APIs only', async t => {
  const api = { overrides: { isAi: true } }
  const ai = await start(t, {}, {}, '_ai_error_response_', api)
  const response = await request(ai, 'GET /t HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal(response.status, 502)
  assert.equal(response.body, SHAPED)
  assert.equal((await request(ai, NONE)).body, NOT_FOUND)
  const xml = await request(ai, 'GET /t HTTP/1.1\r\nHost: a\r\nAccept: application/xml\r\n\r\n')
  assert.match(xml.body, /<error><code>101503<\/code><type>Error connecting to the backend<\/type>/)
  const other = await start(t, {}, {}, '_ai_error_response_')
  assert.match((await request(other, 'GET /t HTTP/1.1\r\nHost: a\r\n\r\n')).body, /^\{"fault":\{"code":101503,/)
  const unset = await start(t, {}, {}, '', api)
  assert.match((await request(unset, 'GET /t HTTP/1.1\r\nHost: a\r\n\r\n')).body, /^\{"fault":\{"code":101503,/)
})

test('_token_fault_ words the faults of the token API only', async t => {
  const content = `${json('["token"]')}<respond/>`
  const tokens = await start(t, { _token_fault_: content }, {}, '', { overrides: { name: '_TokenAPI_' } })
  assert.equal((await request(tokens, 'GET /t HTTP/1.1\r\nHost: a\r\n\r\n')).body, '["token"]')
  const other = await start(t, { _token_fault_: content })
  assert.match((await request(other, 'GET /t HTTP/1.1\r\nHost: a\r\n\r\n')).body, /^\{"fault":\{"code":101503,/)
})

test('a sequence reads captured request fields: known, repeated and missing ones', async t => {
  const names = ['User-Agent', 'accept', 'Host', 'X-Forwarded-For', 'Cookie', 'Content-Type', 'Not-There']
  const format = names.map((_, i) => `"$${i + 1}"`).join(',')
  const content = `${json(`[${format}]`, ...names)}<respond/>`
  const gateway = await start(t, { fault: content })
  const response = await request(
    gateway,
    'GET /t HTTP/1.1\r\nHost: a\r\nUser-Agent: me/1\r\nACCEPT: text/plain\r\ncookie: a=1\r\nCookie: b=2\r\n' +
      'X-Forwarded-For: 10.0.0.1\r\nContent-Type: text/plain\r\nConnection: close, cookie\r\n\r\n',
  )
  assert.deepEqual(JSON.parse(response.body), ['me/1', 'text/plain', 'a', '10.0.0.1', 'a=1, b=2', 'text/plain', ''])
})

test('To is the request target until the sequence removes it', async t => {
  const content = `<property name="X-Before" expression="get-property('To')" scope="transport"/>
    <header name="To" action="remove"/>
    <property name="X-After" expression="concat('[', get-property('To'), ']')" scope="transport"/><respond/>`
  const gateway = await start(t, { main: content })
  const response = await request(gateway, 'GET /none/x?y=1 HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.deepEqual(response.fields.get('x-before'), ['/none/x?y=1'])
  assert.deepEqual(response.fields.get('x-after'), ['[]'])
})

test('a reload changes the wording and the captured fields on open connections', async t => {
  const wording = (name: string) => `${json('{"now":"$1"}', name)}<respond/>`
  const gateway = await start(t, { fault: wording('X-One') })
  const client = await connectPeer(gateway.port)
  const request = 'GET /t HTTP/1.1\r\nHost: a\r\nX-One: 1\r\nX-Two: 2\r\n\r\n'
  for (const [name, value] of [
    ['X-One', '1'],
    ['X-Two', '2'],
    ['X-One', '1'],
  ] as const) {
    await gateway.deploy({ faults: await faultsWith({ fault: wording(name) }) })
    client.send(request)
    assert.equal((await takeResponse(client)).body, `{"now":"${value}"}`)
  }
  client.destroy()
})

test('a reload with a sequence that cannot be compiled is refused and changes nothing', async t => {
  const gateway = await start(t, {})
  const broken = { name: 'main', label: 'main.xml', requestFields: [], calls: [], onError: '', isDefault: false }
  const faults = { sequences: [{ ...broken, steps: [{ mediator: 'none', line: 1, settings: {} }] }], aiSequence: '' }
  await assert.rejects(gateway.deploy({ faults, removed: ['/t'] }), /no mediator/)
  assert.equal((await request(gateway, NONE)).body, NOT_FOUND)
  assert.equal((await request(gateway, 'GET /t HTTP/1.1\r\nHost: a\r\n\r\n')).status, 502)
})

test('a client that resets while its faults are worded leaves no open connection', async t => {
  const gateway = await start(t, {})
  for (let i = 0; i < 20; i++) {
    const client = await connectPeer(gateway.port)
    client.send(NONE.repeat(50))
    client.reset()
  }
  await eventually('the end of all connections', () => gateway.metrics().counts.connectionsOpen === 0)
  assert.equal((await request(gateway, NONE)).status, 404)
})
