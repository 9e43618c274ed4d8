/** Calls of sequences to backends, end to end: real worker threads, scripted backends. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { examine } from '../../src/config/load.ts'
import { formatSettings } from '../../src/mediation/formats/format-settings.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { refusingPort } from '../harness/peers.ts'
import { address, callTo, type Reaction, says, startBackend, startCalls } from '../harness/sequence-calls.ts'

const json = (value: unknown) => JSON.stringify(value)

test('a call in the request flow makes its response the message, which <respond> sends', async t => {
  const backend = await startBackend(t, { '/one': says(201, '{"from":"one"}', 'X-One: yes\r\n') })
  const { ask } = await startCalls(t, { request: `${callTo(backend.port, '/one')}<respond/>` }, backend.port)
  assert.deepEqual(await ask(), [201, '{"from":"one"}'])
  assert.deepEqual(
    backend.received.map(({ method, target }) => [method, target]),
    [['GET', '/one']],
  )
})

test('a chain of calls passes on what each has responded', async t => {
  const backend = await startBackend(t, {
    '/token': says(200, '{"id":"41"}'),
    '/user': ({ head }) => [200, json({ seen: /^x-id: (.*)\r$/im.exec(head)?.[1] })],
  })
  const request = `${callTo(backend.port, '/token')}
    <property name="X-Id" expression="json-eval($.id)" scope="transport"/>
    <property name="HTTP_METHOD" value="POST" scope="axis2"/>${callTo(backend.port, '/user')}<respond/>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask(), [200, '{"seen":"41"}'])
  assert.deepEqual(
    backend.received.map(({ method, body }) => [method, body]),
    [
      ['GET', ''],
      ['POST', '{"id":"41"}'],
    ],
  )
})

const get = (port: number, path: string) =>
  `<endpoint><http method="get" uri-template="http://127.0.0.1:${port}${path}"/></endpoint>`
test('ContentType and messageType are the types of the message, until a sequence sets them', async t => {
  const type = 'Content-Type: application/vnd.one+json; x=1\r\n'
  const backend = await startBackend(t, { '/one': says(200, '{"n":1}', type) })
  const request = `<log><property name="r" expression="fn:concat($axis2:ContentType, '|', $axis2:messageType)"/></log>
    <call>${get(backend.port, '/one')}</call>
    <log><property name="s" expression="fn:concat($axis2:ContentType, '|', $axis2:messageType)"/></log>
    <property name="messageType" value="text/plain" scope="axis2"/>
    <log><property name="t" expression="fn:concat($axis2:ContentType, '|', $axis2:messageType)"/></log><respond/>`
  const { ask, gateway } = await startCalls(t, { request }, backend.port)
  await ask('POST /a/x', '{"a":1}')
  const told = JSON.stringify(gateway.reports)
  assert.match(told, /r = application\/json\|application\/json/)
  assert.match(told, /s = application\/vnd\.one\+json; x=1\|application\/vnd\.one\+json/)
  assert.match(told, /t = text\/plain\|text\/plain/)
})

const OF_GET = '<property name="HTTP_METHOD" value="GET" scope="axis2"/>'
const EMPTY_BODY = '<property name="NO_ENTITY_BODY" value="true" scope="axis2"/>'

/** [what, request flow, request]. The last request of the backend is GET without a body. */
const BODILESS: readonly (readonly [string, (port: number) => string, string])[] = [
  ['<call> after a call', port => `<call>${get(port, '/one')}</call><call>${get(port, '/two')}</call>`, 'GET'],
  ['<send> after a call', port => `<call>${get(port, '/one')}</call><send>${get(port, '/two')}</send>`, 'GET'],
  ['<call> of a POST', port => `<call>${get(port, '/two')}</call>`, 'POST'],
  ['<call> by HTTP_METHOD', port => `${OF_GET}${callTo(port, '/two')}`, 'POST'],
  ['<call> in the format get', port => `<call>${address(port, '/two" format="get')}</call>`, 'POST'],
  [
    '<call> in the format rest',
    port => `<call>${get(port, '/one')}</call>${OF_GET}<call>${address(port, '/two" format="rest')}</call>`,
    'POST',
  ],
  ['<call> with NO_ENTITY_BODY', port => `${EMPTY_BODY}<call>${get(port, '/two')}</call>`, 'POST'],
  ['<send> by HTTP_METHOD', port => `<log level="full"/>${OF_GET}<send>${address(port, '/two')}</send>`, 'POST'],
  ['<send/> after a call', port => `<call>${get(port, '/one')}</call><send/>`, 'GET'],
]
for (const [what, request, method] of BODILESS) {
  test(`a GET carries no body of an earlier message: ${what}`, async t => {
    const backend = await startBackend(t, { '/one': says(200, '{"one":1}') })
    const { ask } = await startCalls(t, { request: `${request(backend.port)}<respond/>` }, backend.port)
    await ask(`${method} /a`, method === 'POST' ? '{"own":1}' : '')
    const last = backend.received.at(-1)!
    assert.deepEqual([last.method, last.body], ['GET', ''], last.head)
    assert.doesNotMatch(last.head, /^content-(?:type|length|encoding)|^transfer-encoding/im)
  })
}

const MADE = '<payloadFactory media-type="json"><format>{"made":1}</format></payloadFactory>'
const http = (method: string, port: number) =>
  `<endpoint><http method="${method}" uri-template="http://127.0.0.1:${port}/two"/></endpoint>`
/** [what, response flow, method of the client, what the last request of the backend is]. */
const IN_RESPONSES: readonly (readonly [string, (port: number) => string, string, readonly [string, string]])[] = [
  ['<call>', port => `<call>${http('get', port)}</call>`, 'POST', ['GET', '']],
  ['<call> of a GET', port => `<call>${http('get', port)}</call>`, 'GET', ['GET', '']],
  ['<call> by HTTP_METHOD', port => `${OF_GET}${callTo(port, '/two')}`, 'GET', ['GET', '']],
  ['<call> that names no method', port => callTo(port, '/two'), 'GET', ['GET', '{"one":1}']],
  ['<call> by DELETE', port => `<call>${http('delete', port)}</call>`, 'POST', ['DELETE', '']],
  ['<call> by POST', port => `<call>${http('post', port)}</call>`, 'GET', ['POST', '{"one":1}']],
  ['<call> with a body of the flow', port => `${MADE}<call>${http('get', port)}</call>`, 'POST', ['GET', '{"made":1}']],
  ['<send>', port => `<send>${http('get', port)}</send>`, 'POST', ['GET', '']],
  ['a copy', port => `<clone><target>${http('get', port)}</target></clone>`, 'POST', ['GET', '']],
]
for (const [what, response, method, expected] of IN_RESPONSES) {
  test(`D897: ${expected.join(' ')} goes from a response flow: ${what}`, async t => {
    const backend = await startBackend(t, { '/x': says(200, '{"one":1}'), '/two': says(200, '{"two":2}') })
    const { ask } = await startCalls(t, { response: response(backend.port) }, backend.port)
    assert.deepEqual(await ask(`${method} /a/x`, method === 'POST' ? '{"own":1}' : ''), [200, '{"two":2}'])
    const last = backend.received.at(-1)!
    assert.deepEqual([last.method, last.body], expected)
    if (last.body === '') assert.doesNotMatch(last.head, /^content-(?:type|encoding)|^transfer-encoding/im)
  })
}

test('a DELETE that a sequence makes of a request keeps its body', async t => {
  const backend = await startBackend(t, { '/x': says(200, '{}') })
  const request = '<log level="full"/><property name="HTTP_METHOD" value="DELETE" scope="axis2"/>'
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask('POST /a/x', '{"own":1}'), [200, '{}'])
  assert.deepEqual([backend.received[0]!.method, backend.received[0]!.body], ['DELETE', '{"own":1}'])
})

test('D900: the log tells once that a response flow waits for the end of an event stream', async t => {
  const events = says(200, 'data: 1\n\n', 'Content-Type: text/event-stream; charset=utf-8\r\n')
  const backend = await startBackend(t, { '/x': events, '/json': says(200, '{}') })
  const { ask, gateway } = await startCalls(t, { response: '<log level="full"/>' }, backend.port)
  const told = () => gateway.reports.filter(({ event }) => event === 'event stream collected').length
  await ask('GET /a/json')
  assert.equal(told(), 0)
  assert.deepEqual(await ask('GET /a/x'), [200, 'data: 1\n\n'])
  await ask('GET /a/x')
  assert.equal(told(), 1)
})

test('a GET of a client that a flow does not change keeps its body', async t => {
  const backend = await startBackend(t, { '/x': says(200, '{}') })
  const { ask } = await startCalls(t, { request: '<log level="full"/>' }, backend.port)
  assert.deepEqual(await ask('GET /a/x', '{"own":1}'), [200, '{}'])
  assert.equal(backend.received[0]!.body, '{"own":1}')
})

test('properties stay after a call, and a target property leaves the message as it is', async t => {
  const backend = await startBackend(t, {
    '/side': says(200, '{"price":7}'),
    '/x': ({ head, body }) => [200, json({ price: /^x-price: (.*)\r$/im.exec(head)?.[1], kept: body })],
  })
  const request = `<property name="before" value="kept"/>
    <call>${address(backend.port)}<source type="inline" contentType="application/json">{"of":1}</source>
      <target type="property">side</target></call>
    <property name="X-Price" expression="fn:concat(get-property('before'), json-eval($.a))" scope="transport"/>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask('POST /a/x', '{"a":"!"}'), [200, '{"price":"kept!","kept":"{\\"a\\":\\"!\\"}"}'])
  assert.equal(backend.received[0]!.body, '{"of":1}')
})

test('an <http> endpoint gets path and query from properties, and nothing of those of the request', async t => {
  const backend = await startBackend(t, { '/pets/a%2Fb': says(200, '{}') })
  const template = `http://127.0.0.1:${backend.port}/pets/{uri.var.id}?q={uri.var.q}`
  const request = `<property name="uri.var.id" value="a/b"/><property name="uri.var.q" value="1&amp;2"/>
    <call><endpoint><http uri-template="${template}" method="delete"/></endpoint></call><respond/>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask('GET /a/x?own=3'), [200, '{}'])
  assert.equal(`${backend.received[0]!.method} ${backend.received[0]!.target}`, 'DELETE /pets/a%2Fb?q=1%262')
})

test('path and query of the request follow an <address>, never an <http>', async t => {
  const reactions = Object.fromEntries(['/one/x', '/two/', '/', '/all'].map(path => [path, says(200, '{}')]))
  const backend = await startBackend(t, reactions)
  const base = `http://127.0.0.1:${backend.port}`
  const http = (url: string) => `<call><endpoint><http method="get" uri-template="${url}"/></endpoint></call>`
  const request = `<call>${address(backend.port, '/one')}</call>${http(`${base}/two/`)}${http(base)}
    <property name="uri.var.url" value="${base}/all?a=1"/>${http('{uri.var.url}')}<respond/>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask('GET /a/x?q=3'), [200, '{}'])
  const targets = backend.received.map(({ target }) => target)
  assert.deepEqual(targets, ['/one/x?q=3', '/two/', '/', '/all?a=1'])
})

test('<call/> goes to the destination of the message', async t => {
  const backend = await startBackend(t, { '/there': says(200, '{"there":true}') })
  const request = `<header name="To" value="http://127.0.0.1:${backend.port}/there?x=1"/><call/><respond/>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask(), [200, '{"there":true}'])
  assert.equal(backend.received[0]!.target, '/there?x=1')
})

const DEFAULT = '<endpoint><default/></endpoint>'
/** `To` is then its origin with this path and query. */
const REWRITE = '<rewrite><rewriterule><action type="prepend" fragment="path" value="/v2"/></rewriterule></rewrite>'
/** [To behind the origin, request, more steps, target that the backend gets]. */
const BEHIND_TO = [
  ['/base', 'GET /a/x/1?q=3', '', '/base/x/1?q=3'],
  ['', 'GET /a/x', '', '/x'],
  ['/base/', 'GET /a/x', '', '/base/x'],
  ['/base?a=1', 'GET /a/x?q=3', '', '/base/x?a=1&q=3'],
  ['/base', 'GET /a/x?q=3', '<property name="REST_URL_POSTFIX" scope="axis2" action="remove"/>', '/base'],
  ['/base', 'GET /a/x', '<property name="REST_URL_POSTFIX" scope="axis2" value="/other"/>', '/base/other'],
  ['/base', 'GET /a/x?q=3', REWRITE, '/v2/x?q=3'],
] as const

for (const [to, request, steps, target] of BEHIND_TO) {
  test(`D871: <default/> behind To ${JSON.stringify(to)}: ${request} ${steps} goes to ${target}`, async t => {
    const backend = await startBackend(t, { [target.replace(/\?.*/, '')]: says(200, '{}') })
    const set = `<header name="To" value="http://127.0.0.1:${backend.port}${to}"/>${steps}`
    for (const sends of [`<call>${DEFAULT}</call><respond/>`, `<send>${DEFAULT}</send>`]) {
      const { ask } = await startCalls(t, { request: set + sends }, backend.port)
      assert.deepEqual(await ask(request), [200, '{}'])
    }
    assert.deepEqual(
      backend.received.map(each => each.target),
      [target, target],
    )
  })
}

test('RFC 3986 5.2.4: a path with a dot segment that a flow on a worker makes is 102532', async t => {
  const backend = await startBackend(t, { '/x': says(200, '{}') })
  const set = '<property name="REST_URL_POSTFIX" scope="axis2" expression="$trp:X-P"/>'
  for (const sends of [`<call>${address(backend.port)}</call><respond/>`, '<builder/>']) {
    const { ask } = await startCalls(t, { request: set + sends }, backend.port)
    const [status, body] = await ask('GET /a/x', '', 'X-P: /a/%2e%2e/x\r\n')
    assert.equal(status, 500)
    assert.match(body, /102532/)
  }
  assert.deepEqual(backend.received, [])
})

const PAYLOAD = '<payloadFactory media-type="json"><format>{"x":1}</format><args/></payloadFactory>'
const STATUS = (status: string) => `<property name="HTTP_SC" value="${status}" scope="axis2"/>`

test('RFC 9110 15.3.6: a 205 that a flow on a worker makes, or lets pass, has no content', async t => {
  const backend = await startBackend(t, { '/x': says(200, '{}'), '/y': says(205, '{}') })
  const flows = { request: `${PAYLOAD}${STATUS('205')}<respond/>` }
  assert.deepEqual(await (await startCalls(t, flows, backend.port)).ask(), [205, ''])
  for (const response of [`${PAYLOAD}${STATUS('205')}`, '<builder/>']) {
    const { ask } = await startCalls(t, { response }, backend.port)
    const path = response === '<builder/>' ? '/y' : '/x'
    assert.deepEqual(await ask(`GET /a${path}`), [205, ''])
  }
})

test('D83: the status 0 that a flow on a worker sets is 500', async t => {
  const { ask } = await startCalls(t, { request: `${PAYLOAD}${STATUS('0')}<respond/>` }, 1)
  assert.equal((await ask())[0], 500)
})

test('RFC 9110 15: a status of a backend beyond 599 is its failure where a flow on a worker reads it', async t => {
  const backend = await startBackend(t, { '/x': says(999, '{}') })
  const { ask } = await startCalls(t, { response: '<builder/>' }, backend.port)
  const [status, body] = await ask()
  assert.equal(status, 502)
  assert.match(body, /101506/)
})

test('a forward proxy serves the destinations that it is for', async t => {
  const proxy = await startBackend(t, { 'http://other.example/there': says(200, '{"proxied":true}') })
  const profile = {
    targets: ['*.example'],
    bypass: [],
    proxy: { host: '127.0.0.1', port: proxy.port, authorization: '' },
  }
  const request = '<header name="To" value="http://other.example/there"/><call/><respond/>'
  const profiles = { plain: [profile], secured: [] }
  const { ask } = await startCalls(t, { request }, proxy.port, {}, {}, profiles)
  assert.deepEqual(await ask(), [200, '{"proxied":true}'])
})

for (const to of ['', 'jms:/queue', 'http://user@host/', 'http://ho st/', 'http://127.0.0.1:99999/']) {
  test(`the destination ${JSON.stringify(to)} is a fault`, async t => {
    const backend = await startBackend(t, {})
    const request = `<header name="To" value="${to}"/><call/><respond/>`
    const { ask, gateway } = await startCalls(t, { request }, backend.port)
    const [status, body] = await ask()
    assert.deepEqual([status, JSON.parse(body).fault.code], [500, 102551])
    const { level, fields } = gateway.reports.find(({ event }) => event === 'sequence failed')!
    assert.deepEqual([level, fields.ERROR_CODE], ['warn', 102551])
    assert.match(String(fields.CAUSE_OF_ERROR), /^api--In\.xml:1: .*(?:destination|address|URL)/)
  })
}

test('a named endpoint is called by its key', async t => {
  const backend = await startBackend(t, { '/base/x': says(200, '{"named":1}') })
  const named = { stock: `http://127.0.0.1:${backend.port}/base` }
  const request = '<call><endpoint key="stock"/></call><respond/>'
  const { ask } = await startCalls(t, { request }, backend.port, named)
  assert.deepEqual(await ask(), [200, '{"named":1}'])
})

test('credentials that a sequence sets or removes are those of a call', async t => {
  const backend = await startBackend(t, { '/one': says(200, '{}'), '/two': says(200, '{}') })
  const request = `<property name="Authorization" action="remove" scope="transport"/>${callTo(backend.port, '/one')}
    <property name="Authorization" value="Basic set" scope="transport"/>${callTo(backend.port, '/two')}<respond/>`
  const { ask } = await startCalls(t, { request }, backend.port)
  await ask('GET /a/x', '', 'Authorization: Bearer client\r\n')
  const sent = backend.received.map(({ head }) => /^authorization: (.*)\r$/im.exec(head)?.[1])
  assert.deepEqual(sent, [undefined, 'Basic set'])
})

for (const [what, fields] of Object.entries({
  'a Host that no head can hold': { Host: 'two words' },
  'credentials that are longer than the room for edits': {
    Authorization: 'x'.repeat(5000),
    'User-Agent': 'y'.repeat(5000),
  },
})) {
  test(`${what}: the call that sets them is the fault 102551`, async t => {
    const backend = await startBackend(t, { '/one': says(200, '{}') })
    const set = Object.entries(fields).map(([name, value]) => {
      return `<property name="${name}" value="${value}" scope="transport"/>`
    })
    const request = `${set.join('')}${callTo(backend.port, '/one')}<respond/>`
    const { ask } = await startCalls(t, { request }, backend.port)
    const [status, body] = await ask('POST /a/x', '{"a":1}')
    assert.deepEqual([status, JSON.parse(body).fault?.code, backend.received.length], [500, 102551, 0])
  })
}

test('a backend that refuses connections is a fault with its code', async t => {
  const closed = await refusingPort()
  t.after(() => closed.close())
  const backend = await startBackend(t, {})
  const { ask } = await startCalls(t, { request: `${callTo(closed.port, '/')}<respond/>` }, backend.port)
  const [status, body] = await ask()
  assert.deepEqual([status, JSON.parse(body).fault.code], [502, 101503])
})

test('an endpoint that is suspended refuses further calls, and the gateway says so', async t => {
  const closed = await refusingPort()
  t.after(() => closed.close())
  const backend = await startBackend(t, {})
  const settings = '<suspendOnFailure><initialDuration>60000</initialDuration></suspendOnFailure>'
  const endpoint = `<endpoint><address uri="http://127.0.0.1:${closed.port}">${settings}</address></endpoint>`
  const { ask } = await startCalls(t, { request: `<call>${endpoint}</call><respond/>` }, backend.port)
  const codes = []
  for (let i = 0; i < 2; i++) codes.push(JSON.parse((await ask())[1]).fault.code)
  assert.deepEqual(codes, [101503, 303001])
})

test('a call obeys the time-out of its endpoint', async t => {
  const backend = await startBackend(t, { '/slow/x': () => null })
  const timeout = '<timeout><duration>200</duration><responseAction>fault</responseAction></timeout>'
  const endpoint = `<endpoint><address uri="http://127.0.0.1:${backend.port}/slow">${timeout}</address></endpoint>`
  const { ask } = await startCalls(t, { request: `<call>${endpoint}</call><respond/>` }, backend.port)
  const [status, body] = await ask()
  // Base code and state of the connection.
  assert.deepEqual([status, JSON.parse(body).fault.code], [504, 101504 + 3])
})

test('a blocking call obeys SO_TIMEOUT of the blocking transport', async t => {
  const backend = await startBackend(t, { '/slow/x': () => null })
  const request = `<call blocking="true">${address(backend.port, '/slow')}</call><respond/>`
  const plain = { timeoutMs: 200, omitsSoap12Action: false }
  const blockingCalls = { plain, secured: { ...plain, timeoutMs: 60_000 } }
  const { ask } = await startCalls(t, { request }, backend.port, {}, { blockingCalls })
  assert.equal(JSON.parse((await ask())[1]).fault.code, 101504)
})

/** Modules that mark what they build and write with their name. */
const marking = (name: string) => `
  export const build = bytes => ({ text: '${name} built ' + Buffer.from(bytes) })
  export const format = payload => '${name} wrote ' + payload.text`

/** Lines of deployment.toml, and what calls of text/plain get back; what is sent was built as all messages are. */
const BLOCKING_FORMATS: readonly (readonly [what: string, toml: string, blocking: string, other: string])[] = [
  [
    'blocking.message_builders and message_formatters',
    '[blocking.message_builders]\ntext_plain = "b.mjs"\n[blocking.message_formatters]\ntext_plain = "b.mjs"',
    'b built b wrote x',
    'x',
  ],
  [
    'blocking.custom_message_builders and custom_message_formatters',
    ['builders', 'formatters']
      .map(side => `[[blocking.custom_message_${side}]]\ncontent_type = "text/plain"\nclass = "b.mjs"`)
      .join('\n'),
    'b built b wrote x',
    'x',
  ],
  [
    'the keys of all messages, where there are no blocking ones',
    '[message_builders]\ntext_plain = "a.mjs"\n[message_formatters]\ntext_plain = "a.mjs"',
    'a built a wrote a built x',
    'a built a wrote a built x',
  ],
  [
    'blocking keys before those of all messages',
    '[message_builders]\ntext_plain = "a.mjs"\n[blocking.message_builders]\ntext_plain = "b.mjs"',
    'b built a built x',
    'a built a built x',
  ],
]

for (const [what, toml, blocking, other] of BLOCKING_FORMATS) {
  test(`calls obey ${what}`, async t => {
    const home = temporaryHome(t, { 'deployment.toml': toml, 'a.mjs': marking('a'), 'b.mjs': marking('b') })
    const { configuration, errors } = examine(home, [], join(home, 'data'))
    assert.deepEqual(errors, [])
    const echoes: Reaction = ({ body }) => [200, body, 'Content-Type: text/plain\r\n']
    const backend = await startBackend(t, { '/echo/x': echoes })
    const call = (attributes: string, to: string) =>
      `<call ${attributes}>${address(backend.port, '/echo')}<source type="inline" contentType="text/plain">x</source>
        <target type="property">${to}</target></call>`
    const request = `${call('blocking="true"', 'one')}${call('', 'two')}<payloadFactory media-type="json">
      <format>["$1","$2"]</format><args><arg expression="get-property('one')"/><arg expression="get-property('two')"/></args>
      </payloadFactory><respond/>`
    const options = { home, formats: formatSettings(configuration) }
    const { ask } = await startCalls(t, { request }, backend.port, {}, options)
    assert.deepEqual(await ask(), [200, json([blocking, other])])
  })
}

for (const [omits, isBlocking, action] of [
  [true, true, undefined],
  [false, true, 'urn:x'],
  [true, false, 'urn:x'],
] as const) {
  const sent = action === undefined ? 'no action' : 'its action'
  test(`a ${isBlocking ? '' : 'non-'}blocking SOAP 1.2 call with OmitSOAP12Action ${omits} sends ${sent}`, async t => {
    const backend = await startBackend(t, { '/x': says(200, '{}') })
    const request = `<property name="SOAPAction" value="urn:x" scope="transport"/>
      <payloadFactory media-type="xml"><format><a/></format></payloadFactory>
      <property name="messageType" value="application/soap+xml" scope="axis2"/>
      <call blocking="${isBlocking}">${address(backend.port)}</call><respond/>`
    const plain = { timeoutMs: 60_000, omitsSoap12Action: omits }
    const blockingCalls = { plain, secured: { ...plain, omitsSoap12Action: false } }
    const { ask } = await startCalls(t, { request }, backend.port, {}, { blockingCalls })
    assert.equal((await ask())[0], 200)
    const type = /^content-type: (.*)\r$/im.exec(backend.received[0]!.head)![1]
    assert.equal(type, `application/soap+xml; charset=UTF-8${action === undefined ? '' : `; action="${action}"`}`)
  })
}

test('a call fails over to the next endpoint of a group', async t => {
  const closed = await refusingPort()
  t.after(() => closed.close())
  const backend = await startBackend(t, { '/x': says(200, '{"second":true}') })
  const group = `<endpoint><failover>${address(closed.port)}${address(backend.port)}</failover></endpoint>`
  const { ask } = await startCalls(t, { request: `<call>${group}</call><respond/>` }, backend.port)
  assert.deepEqual(await ask(), [200, '{"second":true}'])
})

test('a response beyond the limit of bodies has a code of its own', async t => {
  const backend = await startBackend(t, { '/big': says(200, json('x'.repeat(5000))) })
  const bodies = { bytesMax: 4096, memoryMax: 4096, pieceBytes: 4096 }
  const request = `${callTo(backend.port, '/big')}<respond/>`
  const { ask } = await startCalls(t, { request }, backend.port, {}, { bodies })
  assert.equal(JSON.parse((await ask())[1]).fault.code, 102550)
})

test('a long response of a call passes through a file, which is deleted', async t => {
  const text = json('x'.repeat(200_000))
  const backend = await startBackend(t, { '/big': says(200, text) })
  const bodies = { bytesMax: 1_000_000, memoryMax: 4096, pieceBytes: 4096 }
  const request = `${callTo(backend.port, '/big')}<respond/>`
  const { ask } = await startCalls(t, { request }, backend.port, {}, { bodies })
  assert.deepEqual(await ask(), [200, text])
})

test('send with an endpoint goes there in place of the backend of the API', async t => {
  const backend = await startBackend(t, { '/x': says(200, '{"api":1}') })
  const other = await startBackend(t, { '/other/x': says(200, '{"other":1}') })
  const { ask } = await startCalls(t, { request: `<send>${address(other.port, '/other')}</send>` }, backend.port)
  assert.deepEqual(await ask(), [200, '{"other":1}'])
  assert.equal(backend.received.length, 0)
})

test('send to an endpoint whose path is longer than the room for edits is the fault 102532', async t => {
  const backend = await startBackend(t, {})
  const template = `http://127.0.0.1:${backend.port}/{uri.var.long}`
  const request = `<property name="uri.var.long" expression="$trp:X-Long"/>
    <send><endpoint><http uri-template="${template}"/></endpoint></send>`
  const { ask } = await startCalls(t, { request }, backend.port)
  const [status, body] = await ask('GET /a/x', '', `X-Long: ${'"'.repeat(3000)}\r\n`)
  assert.deepEqual([status, JSON.parse(body).fault?.code, backend.received.length], [500, 102532, 0])
})

for (const [value, template] of [
  ['..', '/in/{uri.var.it}/x'],
  ['../../x', '/in/{uri.var.it}'],
  ['%2e%2e/x', '/in/{+uri.var.it}'],
] as const) {
  for (const [mediator, code] of [
    ['send', 102532],
    ['call', 102551],
  ] as const) {
    test(`D894: <${mediator}> to ${template} with ${value} of a client is the fault ${code}`, async t => {
      const backend = await startBackend(t, {})
      const url = `http://127.0.0.1:${backend.port}${template}`
      const request = `<property name="uri.var.it" expression="$trp:X-It"/>
        <${mediator}><endpoint><http uri-template="${url}"/></endpoint></${mediator}>`
      const { ask } = await startCalls(t, { request }, backend.port)
      const [status, body] = await ask('GET /a/x', '', `X-It: ${value}\r\n`)
      assert.deepEqual([status, JSON.parse(body).fault?.code, backend.received.length], [500, code, 0])
    })
  }
}

test('every status of a backend is a response, no fault', async t => {
  const backend = await startBackend(t, { '/no': says(503, '{"no":1}') })
  const { ask } = await startCalls(t, { request: `${callTo(backend.port, '/no')}<respond/>` }, backend.port)
  assert.deepEqual(await ask(), [503, '{"no":1}'])
})

test('a call in the response flow sees the response of the backend', async t => {
  const backend = await startBackend(t, {
    '/x': says(200, '{"n":1}'),
    '/add': ({ body }) => [200, json({ added: JSON.parse(body) })],
  })
  const { ask } = await startCalls(t, { response: callTo(backend.port, '/add') }, backend.port)
  assert.deepEqual(await ask(), [200, '{"added":{"n":1}}'])
})
