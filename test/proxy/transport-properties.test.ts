/** Properties that steer the transport: requests that get 202 at once, SOAP Faults as faults, left out bodies. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type FlowTexts, flowsOf } from '../harness/flows.ts'
import { planGateway, startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer } from '../harness/peers.ts'
import { loadProject } from '../harness/project-flows.ts'
import { takeResponse } from '../harness/responses.ts'
import {
  address,
  callTo,
  planEndpoints,
  type Reaction,
  refusing,
  says,
  startBackend,
  startCalls,
} from '../harness/sequence-calls.ts'
import { file } from '../mediation/test-sequences.ts'

const ACCEPTED = '<property name="FORCE_SC_ACCEPTED" value="true" scope="axis2"/>'
const OUT_ONLY = '<property name="OUT_ONLY" value="true"/>'
const NOT_SEEN = '<property name="X-Response" value="yes" scope="transport"/>'

/** [what, request flow, of the port of the backend; status of the client, path that the backend gets]. */
const ACCEPTED_FLOWS: readonly (readonly [string, (port: number) => string, number, string | null])[] = [
  ['a request to the endpoint of the API', () => ACCEPTED, 202, '/x'],
  ['a request that <send> sends', port => `${ACCEPTED}<send>${address(port, '/far')}</send>`, 202, '/far/x'],
  ['a request of a template', () => `${ACCEPTED}<property name="a" value="b"/>`, 202, '/x'],
  ['a request with OUT_ONLY', () => OUT_ONLY, 202, '/x'],
  [
    'a request whose To is a URL, which the endpoint of the API gets all the same',
    port => `${ACCEPTED}<header name="To" value="http://127.0.0.1:${port}/far"/><send/>`,
    202,
    '/x',
  ],
  [
    'a request whose To is a URL, and whose client waits',
    port => `<header name="To" value="http://127.0.0.1:${port}/far"/><log/><send/>`,
    200,
    '/x',
  ],
  ['a response of the flow', () => `${ACCEPTED}<respond/>`, 202, null],
  ['a response of a flow with OUT_ONLY', () => `${OUT_ONLY}<respond/>`, 200, null],
  [
    'a request whose property was removed',
    () => `${ACCEPTED}<property name="FORCE_SC_ACCEPTED" scope="axis2" action="remove"/>`,
    200,
    '/x',
  ],
  ['a request with the value false', () => ACCEPTED.replace('true', 'false'), 200, '/x'],
  ['a fault of the flow', () => `${ACCEPTED}<throwError type="T" errorMessage="m"/>`, 500, null],
]
for (const [what, request, expected, path] of ACCEPTED_FLOWS) {
  test(`${what} is ${expected} for the client`, async t => {
    const backend = await startBackend(t, { '/x': says(200, '{}'), '/far/x': says(200, '{}') })
    const texts: FlowTexts = { request: request(backend.port) }
    const { ask } = await startCalls(t, texts, backend.port)
    const [status, body] = await ask('POST /a/x', '{"a":1}')
    assert.equal(status, expected)
    if (status === 202) assert.equal(body, '')
    if (path === null) assert.equal(backend.received.length, 0)
    else await eventually('the request has come', () => backend.received.length === 1)
    assert.deepEqual(
      backend.received.map(({ target, body }) => [target, body]),
      path === null ? [] : [[path, '{"a":1}']],
    )
  })
}

test('a client gets 202 while its backend stays silent, and its long body goes on', async t => {
  const backend = await startBackend(t, { '/x': () => null })
  const { ask } = await startCalls(t, { request: ACCEPTED, response: NOT_SEEN }, backend.port)
  const long = JSON.stringify('a'.repeat(1_000_000))
  assert.deepEqual(await ask('POST /a/x', long), [202, ''])
  await eventually('the request has come', () => backend.received.length === 1)
  assert.equal(backend.received[0]!.body.length, long.length)
})

for (const [name, property] of [
  ['FORCE_SC_ACCEPTED', ACCEPTED],
  ['OUT_ONLY', OUT_ONLY],
] as const) {
  test(`D801: with ${name} no client waits for a list of recipients`, async t => {
    const backend = await startBackend(t, { '/one/x': () => null, '/two/x': () => null })
    const list = ['/one', '/two'].map(path => address(backend.port, path)).join('')
    const request = `${property}<send><endpoint><recipientlist>${list}</recipientlist></endpoint></send>`
    const { ask } = await startCalls(t, { request, response: NOT_SEEN }, backend.port)
    assert.deepEqual(await ask('POST /a/x', '{"a":1}'), [202, ''])
    await eventually('both requests have come', () => backend.received.length === 2)
    assert.deepEqual(backend.received.map(({ target, body }) => `${target} ${body}`).sort(), [
      '/one/x {"a":1}',
      '/two/x {"a":1}',
    ])
  })
}

for (const [name, property] of [
  ['FORCE_SC_ACCEPTED', ACCEPTED],
  ['OUT_ONLY', OUT_ONLY],
] as const) {
  test(`D896: with ${name} no client waits for the answer that a sequence receives`, async t => {
    const held: Peer[] = []
    const hold: Reaction = (_, peer) => {
      held.push(peer)
      return null
    }
    const backend = await startBackend(t, { '/far/x': hold, '/next': says(200, '{}') })
    const request = `${property}<send receive="r">${address(backend.port, '/far')}</send>`
    const { ask } = await startCalls(t, { request, others: { r: callTo(backend.port, '/next') } }, backend.port)
    assert.deepEqual(await ask('POST /a/x', '{"a":1}'), [202, ''])
    await eventually('the request has come', () => held.length === 1)
    held[0]!.send(
      'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\nConnection: close\r\n\r\n{"b":2}',
    )
    await eventually('the answer was received', () => backend.received.length === 2)
    assert.deepEqual(
      backend.received.map(({ target, body }) => [target, body]),
      [
        ['/far/x', '{"a":1}'],
        ['/next', '{"b":2}'],
      ],
    )
  })
}

const { workers } = planGateway([]).plan
/** The background pool takes one task. */
const one = { ...workers.limits.background, core: 1, max: 1, queueLength: 0 }
const FULL = { workers: { ...workers, limits: { ...workers.limits, background: one } } }
const toAll = (port: number): string =>
  `<send><endpoint><recipientlist>${address(port, '/far')}</recipientlist></endpoint></send>`
for (const [what, request] of [
  ['FORCE_SC_ACCEPTED', () => ACCEPTED],
  ['OUT_ONLY', () => OUT_ONLY],
  ['a <send> whose answer a sequence receives', (port: number) => `${ACCEPTED}${receivedFrom(port)}`],
  ['a <send> to a list of recipients', (port: number) => `${ACCEPTED}${toAll(port)}`],
] as const) {
  test(`D940: a request that the background pool refuses is 503, and no 202: ${what}`, async t => {
    const backend = await startBackend(t, { '/x': () => null, '/far/x': () => null })
    const texts: FlowTexts = { request: request(backend.port), others: { r: '<log/>' } }
    const { ask } = await startCalls(t, texts, backend.port, {}, FULL)
    assert.deepEqual(await ask('POST /a/x', '{"a":1}'), [202, ''])
    await eventually('the first request has come', () => backend.received.length === 1)
    const [status, body] = await ask('POST /a/x', '{"a":2}')
    assert.deepEqual([status, JSON.parse(body).fault.code], [503, 102540])
    assert.equal(backend.received.length, 1)
  })
}

for (const [what, copies] of [
  ['clone', (one: string) => `<clone continueParent="true">${one.repeat(3)}</clone>`],
  ['iterate', (one: string) => `<iterate continueParent="true" expression="json-eval($)">${one}</iterate>`],
] as const) {
  test(`D940: copies of <${what}> that the background pool refuses are logged, and the message goes on`, async t => {
    const backend = await startBackend(t, { '/x': says(200, '{"main":1}'), '/held': () => null })
    const request = copies(`<target><sequence>${callTo(backend.port, '/held')}</sequence></target>`)
    const { ask, gateway } = await startCalls(t, { request }, backend.port, {}, FULL)
    assert.deepEqual(await ask('POST /a/x', '[1,2,3]'), [200, '{"main":1}'])
    const refused = gateway.reports.filter(({ event }) => event === 'copies not made')
    const copiesRefused = refused.map(({ fields }) => Number(fields.COPIES))
    assert.equal(
      copiesRefused.reduce((sum, count) => sum + count, 0),
      2,
    )
    for (const { level, fields } of refused) {
      assert.equal(level, 'warn')
      assert.match(String(fields.CAUSE_OF_ERROR), /synapse\.max_threads/)
    }
  })
}

function receivedFrom(port: number): string {
  return `<send receive="r">${address(port, '/far')}</send>`
}

for (const [what, sent] of [
  ['receives its answer', (port: number) => `<send receive="r">${address(port, '/far')}</send>`],
  ['receives no answer', (port: number) => `<send>${address(port, '/far')}</send>`],
] as const) {
  test(`D896: the onError of a request in the background runs where its flow ${what}`, async t => {
    const backend = await startBackend(t, { '/far/x': says(200, ''), '/spare/x': says(200, '{}') })
    const gone = await refusing(t)
    const others = {
      r: '<property name="p" value="v"/>',
      failed: `<send>${address(backend.port, '/spare')}</send>`,
      guarded: `<sequence onError="failed">${sent(gone)}</sequence>`,
    }
    const request = `${ACCEPTED}<sequence key="guarded"/>`
    const { ask } = await startCalls(t, { request, others }, backend.port)
    assert.deepEqual(await ask('POST /a/x', '{"a":1}'), [202, ''])
    await eventually('the other endpoint has got it', () => backend.received.length === 1)
    assert.equal(backend.received[0]!.target, '/spare/x')
  })
}

for (const [method, expected] of [
  ['POST', ''],
  ['PUT', ''],
  ['PATCH', '{"a":1}'],
] as const) {
  test(`FORCE_POST_PUT_NOBODY sends ${method} with the body ${expected}`, async t => {
    const backend = await startBackend(t, { '/x': says(200, '{}') })
    const request = '<property name="FORCE_POST_PUT_NOBODY" value="true" scope="axis2"/>'
    const { ask } = await startCalls(t, { request }, backend.port)
    assert.deepEqual(await ask(`${method} /a/x`, '{"a":1}'), [200, '{}'])
    assert.equal(backend.received[0]!.body, expected)
  })
}

test('FORCE_POST_PUT_NOBODY leaves the body of a response', async t => {
  const backend = await startBackend(t, {})
  const request = '<property name="FORCE_POST_PUT_NOBODY" value="true" scope="axis2"/><respond/>'
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask('POST /a/x', '{"a":1}'), [200, '{"a":1}'])
})

const OF_ACCEPT = '<property name="messageType" expression="$trp:Accept" scope="axis2"/>'
const MADE = '<payloadFactory media-type="json"><format>{"a":1}</format></payloadFactory>'
/** [what, request flow, fields of the client, type that the backend gets]. */
const TYPES: readonly (readonly [string, string, string, string])[] = [
  ['messageType of a range', MADE + OF_ACCEPT, 'Accept: */*\r\n', 'application/json; charset=UTF-8'],
  ['messageType of a list', MADE + OF_ACCEPT, 'Accept: text/plain, */*\r\n', 'text/plain; charset=UTF-8'],
  ['messageType of a range, and the body as it came', OF_ACCEPT, 'Accept: */*\r\n', 'application/json'],
  ['ContentType of a range', OF_ACCEPT.replace('messageType', 'ContentType'), 'Accept: */*\r\n', 'application/json'],
  [
    'ContentType of a range, of a made body',
    MADE + OF_ACCEPT.replace('messageType', 'ContentType'),
    'Accept: */*;q=0.5\r\n',
    'application/json; charset=UTF-8',
  ],
]
for (const [what, request, lines, type] of TYPES) {
  test(`D903: ${what} is no type of a body`, async t => {
    const backend = await startBackend(t, { '/x': says(200, '{}') })
    const { ask } = await startCalls(t, { request }, backend.port)
    assert.deepEqual(await ask('POST /a/x', '{"a":1}', lines), [200, '{}'])
    const [{ head, body } = { head: '', body: '' }] = backend.received
    assert.deepEqual([/^content-type: (.*)\r$/im.exec(head)?.[1], JSON.parse(body)], [type, { a: 1 }])
  })
}

const SOAP = 'http://schemas.xmlsoap.org/soap/envelope/'
const envelope = (content: string) => `<s:Envelope xmlns:s="${SOAP}"><s:Body>${content}</s:Body></s:Envelope>`
const FAULT = envelope('<s:Fault><faultcode>s:Server</faultcode><faultstring>broken</faultstring></s:Fault>')
const XML = 'Content-Type: text/xml\r\n'
const FORCED = '<property name="FORCE_ERROR_ON_SOAP_FAULT" value="true"/>'
const WORDED = '<property name="X-Code" expression="$ctx:ERROR_CODE" scope="transport"/>'

/** A gateway with the project of one API, whose paths end in a Fault, another envelope and JSON. */
async function startSoap(t: TestContext, request: (port: number) => string) {
  const backend = await startBackend(t, {
    '/fault': says(500, FAULT, XML),
    '/fault-as-200': says(200, FAULT, XML),
    '/fine': says(200, envelope('<a/>'), XML),
    '/json': says(200, '{"a":1}'),
  })
  const flows = {
    'Sequences/in-sequence/in.xml': file(request(backend.port), 'in'),
    'Sequences/fault-sequence/out.xml': file(WORDED, 'out'),
  }
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: 'http://backend.example' } }
  const { said, mediation, sequences } = await loadProject(t, { endpointConfig }, flows)
  assert.deepEqual(said, [])
  const faults = { sequences: [...sequences.files.values()].map(({ plan }) => plan), aiSequence: '' }
  const gateway = await startGateway([{ context: '/a', port: backend.port, overrides: { mediation } }], { faults })
  t.after(() => gateway.stop())
  return async (path: string) => {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    client.send(`GET /a${path} HTTP/1.1\r\nHost: gateway\r\n\r\n`)
    const { status, fields, body } = await takeResponse(client)
    return [status, fields.get('x-code')?.[0] ?? '', body] as const
  }
}

test('FORCE_ERROR_ON_SOAP_FAULT makes a SOAP Fault of the backend a fault of the API', async t => {
  const ask = await startSoap(t, () => FORCED)
  for (const path of ['/fault', '/fault-as-200']) {
    const [status, code, body] = await ask(path)
    assert.deepEqual([status, code], [500, '500000'], path)
    assert.match(body, /500000/)
    assert.doesNotMatch(body, /broken/)
  }
  assert.deepEqual(await ask('/fine'), [200, '', envelope('<a/>')])
  assert.deepEqual(await ask('/json'), [200, '', '{"a":1}'])
})

test('a SOAP Fault passes where the property is false or absent', async t => {
  for (const request of [FORCED.replace('"true"', '"false"'), '<property name="a" value="b"/>']) {
    const ask = await startSoap(t, () => request)
    assert.deepEqual(await ask('/fault'), [500, '', FAULT])
  }
})

const CALLED = ['call', 'call blocking="true"'] as const
for (const opened of CALLED) {
  test(`FORCE_ERROR_ON_SOAP_FAULT makes a SOAP Fault that <${opened}> gets a fault`, async t => {
    const backend = await startBackend(t, { '/x': says(200, FAULT, XML) })
    const request = `${FORCED}<${opened}>${address(backend.port)}</call><respond/>`
    const { ask } = await startCalls(
      t,
      { request, fault: `${WORDED}<property name="HTTP_SC" value="418" scope="axis2"/><respond/>` },
      backend.port,
    )
    const [status] = await ask()
    assert.equal(status, 418)
  })
}

/** [type, value as it is written, value in a script]. */
const TYPED: readonly (readonly [type: string, written: string, seen: unknown])[] = [
  ['STRING', '1.5', '1.5'],
  ['INTEGER', '7', 7],
  ['SHORT', '-3', -3],
  ['LONG', '9007199254740991', 9007199254740991],
  ['DOUBLE', '1.50', 1.5],
  ['FLOAT', '0.5', 0.5],
  ['BOOLEAN', 'true', true],
  ['JSON', '[1.0,{"a":null}]', [1, { a: null }]],
  ['OM', '&lt;a&gt;1&lt;/a&gt;', '<a>1</a>'],
]
const STEPS = TYPED.flatMap(([type, value], at) =>
  ['default', 'axis2'].map(scope => {
    return `<property name="p${at}" value="${value.replaceAll('"', '&quot;')}" type="${type}" scope="${scope}"/>`
  }),
).join('')
const READ_ALL = `var read = function (scope) {
    return [${TYPED.map((_, at) => at).join()}].map(function (at) { return mc.getProperty('p' + at, scope) })
  }
  mc.setPayloadJSON({ own: read('default'), axis2: read('axis2'), fee: mc.getProperty('fee'), kind: typeof mc.getProperty('fee'),
    types: [mc.getProperty('ContentType', 'axis2'), mc.getProperty('messageType', 'axis2')] })`
const FEE = '<property name="fee" expression="json-eval($.fee)" type="DOUBLE"/>'
for (const [where, earlier] of [
  ['of its own flow', ''],
  ['of an earlier flow', STEPS + FEE],
] as const) {
  test(`D905: a script sees the types of properties ${where}, and of the content`, async t => {
    const type = 'Content-Type: application/vnd.x+json; a=1\r\n'
    const backend = await startBackend(t, { '/x': says(200, '{"fee":7000.0}', type) })
    const script = `<script language="js"><![CDATA[${READ_ALL}]]></script>`
    const steps = earlier === '' ? STEPS + FEE : ''
    const texts = { request: earlier, response: `${steps}${script}` }
    const { ask } = await startCalls(t, texts, backend.port)
    const [status, body] = await ask('POST /a/x', '{"fee":7000.0}')
    const seen = TYPED.map(([, , value]) => value)
    const types = ['application/vnd.x+json; a=1', 'application/vnd.x+json']
    assert.deepEqual([status, JSON.parse(body)], [200, { own: seen, axis2: seen, fee: 7000, kind: 'number', types }])
  })
}

const copied = (port: number, path: string): string =>
  `<clone continueParent="true"><target><sequence>${callTo(port, path)}</sequence></target></clone>`
for (const [what, changed, expected] of [
  ['stand elsewhere after a reload', (port: number) => copied(port, '/other') + copied(port, '/copy'), '/copy'],
  [
    'are gone after a reload',
    (port: number) => `${copied(port, '/other')}<filter xpath="false()"><then>${callTo(port, '/copy')}</then></filter>`,
    '/copy',
  ],
  ['are gone after a reload, with their endpoint', (port: number) => copied(port, '/other'), ''],
] as const) {
  test(`D942: a copy that waits runs no other steps than its own, which ${what}`, async t => {
    const held: Peer[] = []
    const hold: Reaction = (_, peer) => {
      held.push(peer)
      return null
    }
    const backend = await startBackend(t, { '/x': says(200, '{}'), '/copy': hold, '/other': says(200, '{}') })
    const { port } = backend
    const queue = { ...one, queueLength: 10 }
    const options = { workers: { ...workers, limits: { ...workers.limits, background: queue } } }
    const { ask, gateway } = await startCalls(t, { request: copied(port, '/copy') }, port, {}, options)
    for (let n = 0; n < 2; n++) assert.deepEqual(await ask(), [200, '{}'])
    await eventually('the first copy has come', () => held.length === 1)
    const mediation = await flowsOf({ request: changed(port) })
    const sequenceEndpoints = planEndpoints(mediation.sequences)
    await gateway.deploy({ apis: [{ context: '/a', port, overrides: { mediation } }], sequenceEndpoints })
    held[0]!.send('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n')
    const failed = () => gateway.reports.find(({ event }) => event === 'background task failed')
    await eventually('the second copy is over', () => held.length === 2 || failed() !== undefined)
    assert.ok(!backend.received.some(({ target }) => target === '/other'))
    assert.equal(held.length === 2 ? '/copy' : '', expected)
    if (expected === '') assert.match(String(failed()!.fields.CAUSE_OF_ERROR), /there is no such endpoint/)
  })
}
