/**
 * What a fault sequence may do and what not: whatever stands in an edited file, the client gets one well-formed answer,
 * and what belongs to the refusal is in it.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Findings } from '../../src/config/findings.ts'
import { readSequence } from '../../src/mediation/read-sequence.ts'
import { takeAnswer } from '../harness/answers.ts'
import { OPEN_CORS, operation } from '../harness/chained.ts'
import { faultsWith } from '../harness/default-sequences.ts'
import { type MorePlan, startGateway, type TestApi, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually } from '../harness/peers.ts'
import { parseResponse, valuesOf } from '../harness/strict-http.ts'

async function start(
  t: TestContext,
  edited: Readonly<Record<string, string>>,
  more: MorePlan = {},
  aiSequence = '',
  api: Partial<TestApi> = {},
): Promise<TestGateway> {
  const faults = await faultsWith(edited, aiSequence)
  const gateway = await startGateway([{ context: '/t', port: 1, ...api }], {}, null, [], { faults, ...more })
  t.after(() => gateway.stop())
  return gateway
}

async function ask(gateway: TestGateway, request: string): ReturnType<typeof takeAnswer> {
  const client = await connectPeer(gateway.port)
  client.send(request)
  const answer = await takeAnswer(client)
  client.destroy()
  return answer
}

/** Makes the body of these fields of the request. */
function json(format: string, ...names: readonly string[]): string {
  const args = names.map(name => `<arg expression="$trp:${name}"/>`).join('')
  return `<payloadFactory media-type="json"><format>${format}</format><args>${args}</args></payloadFactory>`
}

const NONE = 'GET /none HTTP/1.1\r\nHost: a\r\n\r\n'
const NOT_FOUND =
  '{"fault":{"code":404,"type":"Status report","message":"Not Found","description":"The requested resource is not available"}}'

const UNANSWERED: readonly (readonly [name: string, content: string])[] = [
  ['comes to its end', '<property name="x" value="y"/>'],
  ['is empty', ''],
  ['drops the message', '<drop/>'],
  ['drops it after wording it', '<property name="HTTP_SC" value="200" scope="axis2"/><drop/>'],
  ['calls itself without end', '<sequence key="main"/><sequence key="main"/>'],
]

for (const [name, content] of UNANSWERED) {
  test(`a sequence that ${name}: the built-in wording, and a line in the log`, async t => {
    const gateway = await start(t, { main: content })
    const answer = await ask(gateway, NONE)
    assert.equal(answer.status, 404)
    assert.equal(answer.body, NOT_FOUND)
    assert.deepEqual(answer.fields.get('content-type'), ['application/json; charset=UTF-8'])
    const said = gateway.reports.filter(({ event }) => event === 'fault worded without its sequence')
    assert.deepEqual(
      said.map(({ level, fields }) => [level, fields.SEQUENCE]),
      [['warn', 'main']],
    )
  })
}

test('a sequence that is not there: the built-in wording', async t => {
  const gateway = await start(t, {}, { faults: { programs: [], aiSequence: '' } })
  assert.equal((await ask(gateway, NONE)).body, NOT_FOUND)
})

test('a flood of faults that no sequence words is not a flood of lines', async t => {
  const gateway = await start(t, { main: '<drop/>' })
  const client = await connectPeer(gateway.port)
  for (let i = 0; i < 200; i++) {
    client.send(NONE)
    assert.equal((await takeAnswer(client)).status, 404)
  }
  client.destroy()
  const said = gateway.reports.filter(({ event }) => event === 'fault worded without its sequence')
  assert.ok(said.length >= 1 && said.length < 10, `${said.length} lines`)
})

const STATUSES: readonly (readonly [given: string, status: number])[] = [
  ['204', 204],
  ['205', 205],
  ['304', 304],
  ['200', 200],
  ['599', 599],
]

for (const [given, status] of STATUSES) {
  test(`HTTP_SC ${given}: a response that can be read, and the next one behind it`, async t => {
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
  test(`HTTP_SC "${given}" is no status of an answer: 500`, async t => {
    const gateway = await start(t, { main: `<property name="HTTP_SC" value="${given}" scope="axis2"/><respond/>` })
    assert.equal((await ask(gateway, NONE)).status, 500)
  })
}

test('HEAD: the fields of the body that GET gets, and no body', async t => {
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

test('GET / has a page of its own, in HTML; other methods and paths do not', async t => {
  const gateway = await start(t, {})
  const page = await ask(gateway, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal(page.status, 200)
  assert.deepEqual(page.fields.get('content-type'), ['text/html; charset=UTF-8'])
  assert.match(page.body, /^<html lang="en"><head>.*<\/html>$/)
  for (const start of ['POST /', 'GET //', 'GET /?x']) {
    assert.equal((await ask(gateway, `${start} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`)).status, 404)
  }
})

const INJECTIONS = ['a%0d%0aX-Injected:%20yes', 'a%0aX-Injected:%20yes', 'a%00b', 'caf\u00e9']

test('what a request says cannot become a field of the answer, or a body of its own making', async t => {
  const content = `<property name="X-Path" expression="$ctx:REST_FULL_REQUEST_PATH" scope="transport"/>
    <property name="X-Who" expression="$trp:X-Who" scope="transport"/>
    <property name="HTTP_SC_DESC" expression="$trp:X-Who" scope="axis2"/>
    <property name="ContentType" expression="$trp:X-Type" scope="axis2"/>
    ${json('{"who":"$1"}', 'X-Who')}<respond/>`
  const gateway = await start(t, { main: content, fault: content })
  for (const piece of INJECTIONS) {
    const answer = await ask(
      gateway,
      `GET /none/${piece.replace(/[^!-~]/g, '')} HTTP/1.1\r\nHost: a\r\n` +
        `X-Who: "},"x":{"y":"${piece}\r\nX-Type: text/html, ${piece}\r\n\r\n`,
    )
    assert.equal(answer.fields.get('x-injected'), undefined)
    assert.deepEqual(Object.keys(JSON.parse(answer.body)), ['who'])
    for (const values of answer.fields.values()) for (const value of values) assert.doesNotMatch(value, /[\0\r\n]/)
  }
})

test('of a request that is refused before it is located, nothing of the one before it is said', async t => {
  const content = '<property name="X-Path" expression="$ctx:REST_FULL_REQUEST_PATH" scope="transport"/><respond/>'
  const gateway = await start(t, { main: content, fault: content })
  const client = await connectPeer(gateway.port)
  client.send('GET http://first.test/none HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.deepEqual((await takeAnswer(client)).fields.get('x-path'), ['/none'])
  client.send('GET /then/this HTTP/1.1\r\nHost: a b\r\n\r\n')
  assert.deepEqual((await takeAnswer(client)).fields.get('x-path'), ['/then/this'])
  client.destroy()
})

test('decoded line ends in a property never reach a field', async t => {
  const content = `<property name="X-Decoded" expression="base64Decode('YQ0KWC1JbmplY3RlZDogeWVz')" scope="transport"/>
    <property name="X-Literal" value="a&#13;&#10;X-Injected: yes" scope="transport"/>
    <property name="HTTP_SC_DESC" value="OK&#13;&#10;X-Injected: yes" scope="axis2"/><respond/>`
  const findings = new Findings()
  const text = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="main">${content}</sequence>`
  const program = await readSequence('main', 'main.xml', text, findings)
  // What can be seen in the file is refused there; the rest when it comes about.
  if (program === undefined) assert.ok(findings.faults.length > 0)
  else {
    const gateway = await start(t, {}, { faults: { programs: [program], aiSequence: '' } })
    const answer = await ask(gateway, NONE)
    assert.equal(answer.fields.get('x-injected'), undefined)
  }
})

test('fields of the refusal are there whatever the sequence says, and none is there twice', async t => {
  const content = `<property name="HTTP_SC" value="400" scope="axis2"/>
    <property name="Allow" value="NOTHING" scope="transport"/>
    <property name="Vary" value="Accept" scope="transport"/>
    <property name="activityid" value="mine" scope="transport"/><respond/>`
  const api = { unlike: { resources: [operation('GET /pets')], cors: { ...OPEN_CORS, origins: ['https://a.test'] } } }
  const gateway = await start(t, { _resource_mismatch_handler_: content }, { isChained: true }, '', api)
  const answer = await ask(
    gateway,
    'PUT /t/pets HTTP/1.1\r\nHost: a\r\nOrigin: https://a.test\r\nactivityid: x1\r\nContent-Length: 0\r\n\r\n',
  )
  assert.deepEqual(answer.fields.get('allow'), ['NOTHING'])
  assert.deepEqual(answer.fields.get('activityid'), ['x1'])
  assert.deepEqual(answer.fields.get('vary'), ['Accept', 'Origin'])
  assert.deepEqual(answer.fields.get('access-control-allow-origin'), ['https://a.test'])
})

/** RFC 9110 12.5.5, 15.1: fields of a sequence, its status, Origin of the API, and what the answer varies by. */
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
  const said = `${JSON.stringify(fields)}${isNamed ? ' and an origin' : ''}`
  test(`a fault that a cache may store untold varies by Accept: ${status} with ${said}`, async t => {
    const set = Object.entries(fields).map(([name, value]) => {
      return `<property name="${name}" value="${value}" scope="transport"/>`
    })
    const main = `<property name="HTTP_SC" value="${status}" scope="axis2"/>${set.join('')}<respond/>`
    const cors = isNamed ? { ...OPEN_CORS, origins: ['https://a.test'] } : OPEN_CORS
    const gateway = await start(t, { main }, { cors })
    const answer = await ask(gateway, NONE)
    assert.equal(answer.status, status)
    assert.deepEqual(answer.fields.get('vary'), varied)
  })
}

/** Whom an edited `_cors_request_handler_` names, '' for nobody, and whether what it leaves out is said then. */
const NAMED: readonly (readonly [origin: string, isAdded: boolean])[] = [
  ['', true],
  ['https://a.test', true],
  // Credentials are of the gateway's grant, and never go with another one, least of all with the star.
  ['https://other.test', false],
  ['*', false],
]

for (const [origin, isAdded] of NAMED) {
  test(`CORS: _cors_request_handler_ has the first word: "${origin}"`, async t => {
    const content = `<property name="Access-Control-Allow-Origin" value="${origin}" scope="transport"/>`
    const cors = { ...OPEN_CORS, origins: ['https://a.test'], credentials: true, exposedHeaders: ['X-A'] }
    const gateway = await start(t, { _cors_request_handler_: origin === '' ? '' : content }, { cors })
    const answer = await ask(gateway, 'GET /none HTTP/1.1\r\nHost: a\r\nOrigin: https://a.test\r\n\r\n')
    assert.deepEqual(answer.fields.get('access-control-allow-origin'), [origin || 'https://a.test'])
    assert.deepEqual(answer.fields.get('access-control-allow-credentials'), isAdded ? ['true'] : undefined)
    assert.deepEqual(answer.fields.get('access-control-expose-headers'), isAdded ? ['X-A'] : undefined)
    assert.deepEqual(answer.fields.get('vary'), ['Origin, Accept'])
  })
}

test('CORS: nothing is said to an origin that is granted nothing, but that it varies', async t => {
  const cors = { ...OPEN_CORS, origins: ['https://a.test'] }
  const gateway = await start(t, {}, { cors })
  for (const origin of ['https://b.test', 'null']) {
    const answer = await ask(gateway, `GET /none HTTP/1.1\r\nHost: a\r\nOrigin: ${origin}\r\n\r\n`)
    assert.equal(answer.fields.get('access-control-allow-origin'), undefined)
    assert.deepEqual(answer.fields.get('vary'), ['Origin, Accept'])
  }
})

test('CORS: a client that sends fields of answers gets those of the gateway', async t => {
  const gateway = await start(t, {}, { cors: OPEN_CORS })
  const answer = await ask(gateway, 'GET /none HTTP/1.1\r\nHost: a\r\nAccess-Control-Allow-Origin: evil\r\n\r\n')
  assert.deepEqual(answer.fields.get('access-control-allow-origin'), ['*'])
})

const SHAPED =
  '{"error":{"code":"101503","type":"Error connecting to the back end","message":"Connecting to the back end failed"}}'

test('[apim.ai] custom_error_response_sequence words the faults of AI APIs, and of no others', async t => {
  const api = { unlike: { isAi: true } }
  const ai = await start(t, {}, {}, '_ai_error_response_', api)
  const answer = await ask(ai, 'GET /t HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal(answer.status, 502)
  assert.equal(answer.body, SHAPED)
  assert.equal((await ask(ai, NONE)).body, NOT_FOUND)
  const xml = await ask(ai, 'GET /t HTTP/1.1\r\nHost: a\r\nAccept: application/xml\r\n\r\n')
  assert.match(xml.body, /<error><code>101503<\/code><type>Error connecting to the back end<\/type>/)
  const other = await start(t, {}, {}, '_ai_error_response_')
  assert.match((await ask(other, 'GET /t HTTP/1.1\r\nHost: a\r\n\r\n')).body, /^\{"fault":\{"code":101503,/)
  const unset = await start(t, {}, {}, '', api)
  assert.match((await ask(unset, 'GET /t HTTP/1.1\r\nHost: a\r\n\r\n')).body, /^\{"fault":\{"code":101503,/)
})

test('_token_fault_ words what goes wrong at /token and /revoke, and nothing else', async t => {
  const content = `${json('["token"]')}<respond/>`
  const tokens = await start(t, { _token_fault_: content }, {}, '', { unlike: { name: '_TokenAPI_' } })
  assert.equal((await ask(tokens, 'GET /t HTTP/1.1\r\nHost: a\r\n\r\n')).body, '["token"]')
  const other = await start(t, { _token_fault_: content })
  assert.match((await ask(other, 'GET /t HTTP/1.1\r\nHost: a\r\n\r\n')).body, /^\{"fault":\{"code":101503,/)
})

test('a sequence reads fields of the request when the head is long gone: known ones, repeated ones, none', async t => {
  const names = ['User-Agent', 'accept', 'Host', 'X-Forwarded-For', 'Cookie', 'Content-Type', 'Not-There']
  const format = names.map((_, i) => `"$${i + 1}"`).join(',')
  const content = `${json(`[${format}]`, ...names)}<respond/>`
  const gateway = await start(t, { fault: content })
  const answer = await ask(
    gateway,
    'GET /t HTTP/1.1\r\nHost: a\r\nUser-Agent: me/1\r\nACCEPT: text/plain\r\ncookie: a=1\r\nCookie: b=2\r\n' +
      'X-Forwarded-For: 10.0.0.1\r\nContent-Type: text/plain\r\nConnection: close, cookie\r\n\r\n',
  )
  assert.deepEqual(JSON.parse(answer.body), ['me/1', 'text/plain', 'a', '10.0.0.1', 'a=1, b=2', 'text/plain', ''])
})

test('To is where the request was meant to go, until the sequence removes it', async t => {
  const content = `<property name="X-Before" expression="get-property('To')" scope="transport"/>
    <header name="To" action="remove"/>
    <property name="X-After" expression="concat('[', get-property('To'), ']')" scope="transport"/><respond/>`
  const gateway = await start(t, { main: content })
  const answer = await ask(gateway, 'GET /none/x?y=1 HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.deepEqual(answer.fields.get('x-before'), ['/none/x?y=1'])
  assert.deepEqual(answer.fields.get('x-after'), ['[]'])
})

test('a reload changes words and fields that are read, on connections that are open', async t => {
  const wording = (name: string) => `${json('{"now":"$1"}', name)}<respond/>`
  const gateway = await start(t, { fault: wording('X-One') })
  const client = await connectPeer(gateway.port)
  const request = 'GET /t HTTP/1.1\r\nHost: a\r\nX-One: 1\r\nX-Two: 2\r\n\r\n'
  for (const [name, said] of [
    ['X-One', '1'],
    ['X-Two', '2'],
    ['X-One', '1'],
  ] as const) {
    await gateway.deploy({ faults: await faultsWith({ fault: wording(name) }) })
    client.send(request)
    assert.equal((await takeAnswer(client)).body, `{"now":"${said}"}`)
  }
  client.destroy()
})

test('a program that cannot be compiled refuses the reload, and everything is as it was', async t => {
  const gateway = await start(t, {})
  const broken = { name: 'main', label: 'main.xml', requestFields: [], calls: [] }
  const faults = { programs: [{ ...broken, steps: [{ mediator: 'none', line: 1, settings: {} }] }], aiSequence: '' }
  await assert.rejects(gateway.deploy({ faults, removed: ['/t'] }), /no mediator/)
  assert.equal((await ask(gateway, NONE)).body, NOT_FOUND)
  assert.equal((await ask(gateway, 'GET /t HTTP/1.1\r\nHost: a\r\n\r\n')).status, 502)
})

test('a client that leaves while its fault is worded leaves nothing behind', async t => {
  const gateway = await start(t, {})
  for (let i = 0; i < 20; i++) {
    const client = await connectPeer(gateway.port)
    client.send(NONE.repeat(50))
    client.reset()
  }
  await eventually('all connections to be gone', () => gateway.metrics().counts.connectionsOpen === 0)
  assert.equal((await ask(gateway, NONE)).status, 404)
})
