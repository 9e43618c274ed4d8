/** Copies of messages, kept responses and policy servers, end to end: real worker threads, scripted backends. */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { type FlowTexts, flowsOf } from '../harness/flows.ts'
import { planGateway, startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import {
  address,
  callTo,
  planEndpoints,
  type Reaction,
  says,
  startBackend,
  startCalls,
} from '../harness/sequence-calls.ts'

const json = (value: unknown) => JSON.stringify(value)
const bodyOf: Reaction = ({ body }) => [200, json({ got: JSON.parse(body) })]

const target = (steps: string) => `<target><sequence>${steps}</sequence></target>`
const aggregate = (condition: string, steps = '<respond/>') =>
  `<aggregate>${condition}<onComplete expression="json-eval($)">${steps}</onComplete></aggregate>`

test('an aggregate of JSON by XPath without an enclosing element keeps all answers', async t => {
  const backend = await startBackend(t, { '/one': says(200, '{"n":1}'), '/two': says(200, '{"n":2}') })
  const copies = `${target(callTo(backend.port, '/one'))}${target(callTo(backend.port, '/two'))}`
  const request = `<clone>${copies}</clone>
    <aggregate><onComplete expression="//jsonObject"><respond/></onComplete></aggregate>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask(), [200, '[{"n":1},{"n":2}]'])
})

test('an aggregate of XML that is no SOAP warns of elements that its format leaves out', async t => {
  const xml = (text: string) => says(200, text, 'Content-Type: application/xml\r\n')
  const backend = await startBackend(t, { '/one': xml('<n>1</n>'), '/two': xml('<n>2</n>') })
  const copies = `${target(callTo(backend.port, '/one'))}${target(callTo(backend.port, '/two'))}`
  const request = `<clone>${copies}</clone>
    <aggregate><onComplete expression="//n"><respond/></onComplete></aggregate>`
  const { ask, gateway } = await startCalls(t, { request }, backend.port)
  assert.equal((await ask())[0], 200)
  assert.match(JSON.stringify(gateway.reports), /set enclosingElementProperty/)
})

/** [what, flows by the port of the backend, response]. */
const DROPPED: readonly (readonly [string, (port: number) => FlowTexts, readonly [number, string]])[] = [
  [
    'the request flow, where another one is sent',
    port => ({ request: `<clone>${audit(port)}${target('<send/>')}</clone>` }),
    [200, '{"n":1}'],
  ],
  [
    'the response flow, where another one goes on',
    port => ({ response: `<clone>${audit(port)}${target('<send/>')}</clone>` }),
    [200, '{"n":1}'],
  ],
  [
    'the request flow, with all others',
    port => ({ request: `<clone>${audit(port)}${audit(port)}</clone>` }),
    [202, ''],
  ],
]
function audit(port: number): string {
  return target(`${callTo(port, '/audit')}<drop/>`)
}

for (const [what, flows, expected] of DROPPED) {
  test(`a dropped copy of ${what}, does not answer the client`, async t => {
    const backend = await startBackend(t, { '/x': says(200, '{"n":1}'), '/audit': says(200, '{}') })
    const { ask } = await startCalls(t, flows(backend.port), backend.port)
    assert.deepEqual(await ask('POST /a/x', '{"a":1}'), expected)
  })
}

test('the responses of cloned messages are one array, in the order of their targets', async t => {
  const backend = await startBackend(t, {
    '/one': (_, peer) => {
      setTimeout(
        () => peer.send('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"n":1}'),
        50,
      )
      return null
    },
    '/two': says(200, '{"n":2}'),
  })
  const targets = ['/one', '/two'].map(path => target(callTo(backend.port, path))).join('')
  const { ask } = await startCalls(t, { request: `<clone>${targets}</clone>${aggregate('')}` }, backend.port)
  assert.deepEqual(await ask(), [200, '[{"n":1},{"n":2}]'])
})

test('an aggregate goes on without a late branch once its time is over', async t => {
  const backend = await startBackend(t, { '/late': () => null, '/soon': says(200, '{"n":2}') })
  const targets = ['/late', '/soon'].map(path => target(callTo(backend.port, path))).join('')
  const condition = '<completeCondition timeout="0.2"/>'
  const { ask } = await startCalls(t, { request: `<clone>${targets}</clone>${aggregate(condition)}` }, backend.port)
  assert.deepEqual(await ask(), [200, '[{"n":2}]'])
})

test('an aggregate goes on with as many messages as it takes at most', async t => {
  const backend = await startBackend(t, { '/late': () => null, '/soon': says(200, '{"n":2}') })
  const targets = ['/late', '/soon'].map(path => target(callTo(backend.port, path))).join('')
  const condition = '<completeCondition><messageCount min="1" max="1"/></completeCondition>'
  const { ask } = await startCalls(t, { request: `<clone>${targets}</clone>${aggregate(condition)}` }, backend.port)
  assert.deepEqual(await ask(), [200, '[{"n":2}]'])
})

/** [min, max, body of the request that has both, response or code], where one of two branches never ends. */
const COUNTS = [
  ['{$ctx:min}', '{$ctx:max}', '{"min":1,"max":1}', [200, '[{"n":2}]']],
  ['{get-property("min")}', '-1', '{"min":2}', 102554],
  ['1', '{$ctx:max}', '{"max":1}', [200, '[{"n":2}]']],
  ['{$ctx:min}', '{$ctx:max}', '{}', [200, '[{"n":2}]']],
  ['{$ctx:min}', '-1', '{"min":"many"}', [200, '[{"n":2}]']],
] as const

test('the counts of an aggregate and of a scatter-gather may be expressions', async t => {
  const backend = await startBackend(t, { '/late': () => null, '/soon': says(200, '{"n":2}') })
  const keep = ['min', 'max'].map(name => `<property name="${name}" expression="json-eval($.${name})"/>`).join('')
  const [late, soon] = ['/late', '/soon'].map(path => callTo(backend.port, path))
  const requests = COUNTS.flatMap(([min, max, body, expected]) => {
    const [least, most] = [min, max].map(text => text.replaceAll('"', '&quot;'))
    const count = `<completeCondition timeout="0.2"><messageCount min="${least}" max="${most}"/></completeCondition>`
    const counts = `timeout="200" min-messages="${least}" max-messages="${most}"`
    const gathering = `<aggregation expression="json-eval($)" ${counts}/>`
    const branches = `<sequence>${late}</sequence><sequence>${soon}</sequence>`
    return [
      [`${keep}<clone>${target(late!)}${target(soon!)}</clone>${aggregate(count)}`, body, expected],
      [`${keep}<scatter-gather>${gathering}${branches}</scatter-gather><respond/>`, body, expected],
    ] as const
  })
  const plans = await Promise.all(requests.map(([request]) => flowsOf({ request })))
  const apis = plans.map((mediation, at) => ({ context: `/c${at}`, port: backend.port, overrides: { mediation } }))
  const sequenceEndpoints = planEndpoints(plans.flatMap(({ sequences }) => sequences))
  const gateway = await startGateway(apis, { sequenceEndpoints })
  t.after(() => gateway.stop())
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  for (const [at, [request, sent, expected]] of requests.entries()) {
    const type = `Content-Type: application/json\r\nContent-Length: ${sent.length}\r\n`
    client.send(`POST /c${at}/x HTTP/1.1\r\nHost: a\r\n${type}\r\n${sent}`)
    const { status, body } = await takeResponse(client)
    assert.deepEqual(typeof expected === 'number' ? JSON.parse(body).fault.code : [status, body], expected, request)
  }
})

test('an aggregate with fewer messages than it needs is a fault', async t => {
  const backend = await startBackend(t, { '/late': () => null, '/soon': says(200, '{"n":2}') })
  const targets = ['/late', '/soon'].map(path => target(callTo(backend.port, path))).join('')
  const condition = '<completeCondition timeout="0.2"><messageCount min="2" max="-1"/></completeCondition>'
  const { ask } = await startCalls(t, { request: `<clone>${targets}</clone>${aggregate(condition)}` }, backend.port)
  const [status, body] = await ask()
  assert.deepEqual([status, JSON.parse(body).fault.code], [504, 102554])
})

test('a message that every branch has failed gets the fault of the first', async t => {
  const backend = await startBackend(t, {})
  const targets = target('<header name="To" value=""/><call/>').repeat(2)
  const { ask } = await startCalls(t, { request: `<clone>${targets}</clone>${aggregate('')}` }, backend.port)
  assert.equal(JSON.parse((await ask())[1]).fault.code, 102551)
})

test('each item of an array is a message of its own, and what follows up to the aggregate runs on it', async t => {
  const backend = await startBackend(t, { '/item': bodyOf })
  const request = `<iterate expression="json-eval($.items)">${target(callTo(backend.port, '/item'))}</iterate>
    <property name="own" expression="json-eval($.got.id)"/>
    <aggregate><onComplete expression="get-property('own')"><respond/></onComplete></aggregate>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask('POST /a/x', json({ items: [{ id: 'a' }, { id: 'b' }, { id: 'c' }] })), [
    200,
    '["a","b","c"]',
  ])
})

test('an item takes the place that attachPath names', async t => {
  const backend = await startBackend(t, { '/item': bodyOf })
  const request = `<iterate expression="json-eval($.items)" preservePayload="true" attachPath="json-eval($.items)"
      sequential="true">${target(`${callTo(backend.port, '/item')}${aggregate('')}`)}</iterate>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask('POST /a/x', json({ of: 1, items: [7, 8] })), [
    200,
    '[{"got":{"of":1,"items":7}},{"got":{"of":1,"items":8}}]',
  ])
})

test('an item of XML is the only one within the element that attachPath finds', async t => {
  const backend = await startBackend(t, { '/item': ({ body }) => [200, JSON.stringify(body)] })
  const order =
    '<payloadFactory media-type="xml"><format><r xmlns=""><of>1</of><l><i>7</i><i>8</i></l></r></format><args/>'
  const request = `${order}</payloadFactory><iterate expression="//i" preservePayload="true" attachPath="//l"
      sequential="true">${target(`${callTo(backend.port, '/item')}${aggregate('')}`)}</iterate>`
  const { ask } = await startCalls(t, { request }, backend.port)
  const [status] = await ask()
  const bodies = backend.received.map(({ body }) => body.replace(/^<\?xml[^>]*\?>| xmlns=""/g, ''))
  assert.deepEqual([status, bodies], [200, [7, 8].map(n => `<r><of>1</of><l><i>${n}</i></l></r>`)])
})

test('items of a parallel foreach wait beside each other, and their results keep the order', async t => {
  let first: Parameters<Reaction>[1] | undefined
  const backend = await startBackend(t, {
    '/one': (_, peer) => {
      first = peer
      return null
    },
    '/two': () => {
      first!.send('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"n":1}')
      return [200, '{"n":2}']
    },
  })
  const call = (path: string) => callTo(backend.port, path)
  const steps = `<filter source="$var:i" regex="0"><then>${call('/one')}</then><else>${call('/two')}</else></filter>`
  const loop = `<foreach collection="json-eval($)" counter-variable="i" parallel-execution="true">
    <sequence>${steps}</sequence></foreach><respond/>`
  const list = '<payloadFactory media-type="json"><format>[1,2]</format><args/></payloadFactory>'
  const { ask } = await startCalls(t, { request: list + loop }, backend.port)
  assert.deepEqual(await ask(), [200, '[{"n":1},{"n":2}]'])
})

test('an item of a parallel foreach that fails fails the message once the others have ended', async t => {
  const backend = await startBackend(t, { '/one': says(200, '{"n":1}') })
  const steps = `<filter source="$var:i" regex="0"><then>${callTo(backend.port, '/one')}</then>
    <else><throwError type="102553" errorMessage="m"/></else></filter>`
  const loop = `<foreach collection="json-eval($)" counter-variable="i" parallel-execution="true">
    <sequence>${steps}</sequence></foreach><respond/>`
  const list = '<payloadFactory media-type="json"><format>[1,2,3]</format><args/></payloadFactory>'
  const { ask } = await startCalls(t, { request: list + loop }, backend.port)
  assert.equal((await ask())[0], 500)
  assert.equal(backend.received.length, 1)
})

test('an item of a collection that responds is the response, and no further item begins', async t => {
  const backend = await startBackend(t, { '/one': says(200, '{"n":1}') })
  const steps = `${callTo(backend.port, '/one')}<respond/>`
  const loop = `<foreach collection="json-eval($)"><sequence>${steps}</sequence></foreach>
    <throwError type="1" errorMessage="m"/>`
  const { ask } = await startCalls(t, { request: loop }, backend.port)
  assert.deepEqual(await ask('POST /a/x', json(Array.from({ length: 20 }, () => 1))), [200, '{"n":1}'])
  assert.equal(backend.received.length, 16)
})

test('items of a collection run in the background, and the message goes on', async t => {
  const backend = await startBackend(t, { '/x': bodyOf, '/': says(200, '{}'), '/item': says(200, '{}') })
  const attributes = 'collection="json-eval($)" continue-without-aggregation="true"'
  const steps = `<filter source="json-eval($)" regex="1"><then>${callTo(backend.port, '/item')}</then></filter><send/>`
  const request = `<foreach ${attributes}><sequence>${steps}</sequence></foreach>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask('POST /a/x', '[1,2]'), [200, '{"got":[1,2]}'])
  await eventually('all items', () => backend.received.length === 4)
  assert.deepEqual(backend.received.map(({ target, body }) => `${target} ${body}`).toSorted(), [
    '/ {}',
    '/item 1',
    '/x 2',
    '/x [1,2]',
  ])
})

test('parts of XML stand in the enclosing element', async t => {
  const xml = (n: number): Reaction => says(200, `<n>${n}</n>`, 'Content-Type: application/xml\r\n')
  const backend = await startBackend(t, { '/one': xml(1), '/two': xml(2) })
  const targets = ['/one', '/two'].map(path => target(callTo(backend.port, path))).join('')
  const request = `<property name="all" type="OM"><all xmlns=""/></property><clone>${targets}</clone>
    <aggregate><onComplete expression="//n" enclosingElementProperty="all"><respond/></onComplete></aggregate>`
  const { ask } = await startCalls(t, { request }, backend.port)
  const [status, body] = await ask()
  assert.equal(status, 200)
  assert.match(body, /<all xmlns=""><n>1<\/n><n>2<\/n><\/all>/)
})

test('an aggregate of the type child joins what the elements hold', async t => {
  const xml = (n: number): Reaction => says(200, `<l><n>${n}</n></l>`, 'Content-Type: application/xml\r\n')
  const backend = await startBackend(t, { '/one': xml(1), '/two': xml(2) })
  const targets = ['/one', '/two'].map(path => target(callTo(backend.port, path))).join('')
  const attributes = 'expression="//l" enclosingElementProperty="all" aggregateElementType="child"'
  const request = `<property name="all" type="OM"><all xmlns=""/></property><clone>${targets}</clone>
    <aggregate><onComplete ${attributes}><respond/></onComplete></aggregate>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.match((await ask())[1], /<all xmlns=""><n>1<\/n><n>2<\/n><\/all>/)
})

test('more copies than a task may make are a fault', async t => {
  const backend = await startBackend(t, {})
  const request = `<iterate expression="json-eval($)">${target('<log/>')}</iterate>${aggregate('')}`
  const { ask } = await startCalls(t, { request }, backend.port)
  const [status, body] = await ask('POST /a/x', json(Array.from({ length: 1001 }, () => 1)))
  assert.deepEqual([status, JSON.parse(body).fault.code], [500, 102553])
})

test('copies that nothing gathers run in the background while the message goes on', async t => {
  const backend = await startBackend(t, { '/x': says(200, '{"main":1}'), '/audit': says(200, '{}') })
  const request = `<clone continueParent="true">${target(callTo(backend.port, '/audit'))}</clone>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask('POST /a/x', '{"a":1}'), [200, '{"main":1}'])
  await eventually('the copy', () => backend.received.some(({ target }) => target === '/audit'))
  assert.equal(backend.received.find(({ target }) => target === '/audit')!.body, '{"a":1}')
})

test('a copy in the background has its long body once the message itself is over', async t => {
  let held: Parameters<Reaction>[1] | undefined
  const backend = await startBackend(t, {
    '/x': says(200, '{"main":1}'),
    '/held': (_, peer) => {
      held = peer
      return null
    },
    '/audit': says(200, '{}'),
  })
  const targets = ['/held', '/audit'].map(path => target(callTo(backend.port, path))).join('')
  const request = `<clone continueParent="true">${targets}</clone>`
  const { workers, bodies } = planGateway([]).plan
  const one = { ...workers.limits.background, core: 1, max: 1 }
  const options = {
    workers: { ...workers, limits: { ...workers.limits, background: one } },
    bodies: { ...bodies, memoryMax: 1000 },
  }
  const { ask, gateway } = await startCalls(t, { request }, backend.port, {}, options)
  const body = json('x'.repeat(5000))
  assert.deepEqual(await ask('POST /a/x', body), [200, '{"main":1}'])
  await eventually('the first copy', () => held !== undefined)
  held!.send('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n')
  await eventually('the second copy', () => backend.received.some(({ target }) => target === '/audit'))
  assert.equal(backend.received.find(({ target }) => target === '/audit')!.body, body)
  assert.deepEqual(
    gateway.reports.filter(({ event }) => event.startsWith('background')),
    [],
  )
  const prefix = `sluice-body-${process.pid}-`
  await eventually('no file', () => !readdirSync(tmpdir()).some(name => name.startsWith(prefix)))
})

test('the first response of cloned requests goes to the response flow', async t => {
  const backend = await startBackend(t, { '/one/x': says(200, '{"n":1}') })
  const request = `<clone><target>${address(backend.port, '/one')}</target></clone>`
  const { ask } = await startCalls(t, { request, response: '<property name="X" value="1" scope="transport"/>' }, 1)
  assert.deepEqual(await ask(), [200, '{"n":1}'])
})

for (const [what, result, expected] of [
  ['the body', 'target="Body"', '[{"n":1},{"n":2}]'],
  ['a variable', 'target="Variable" target-variable="all"', '{"kept":true}'],
] as const) {
  test(`scatter-gather puts its results into ${what}`, async t => {
    const backend = await startBackend(t, { '/one': says(200, '{"n":1}'), '/two': says(200, '{"n":2}') })
    const targets = ['/one', '/two'].map(path => target(callTo(backend.port, path))).join('')
    const request = `<scatter-gather ${result} result-content-type="JSON"><aggregation expression="json-eval($)"/>
      ${targets}</scatter-gather><respond/>`
    const { ask } = await startCalls(t, { request }, backend.port)
    assert.deepEqual(await ask('POST /a/x', '{"kept":true}'), [200, expected])
  })
}

test('the branches of scatter-gather are sequences; a condition filters their results', async t => {
  const reactions = Object.fromEntries([1, 2, 3].map(n => [`/${n}`, says(200, `{"n":${n}}`)]))
  const backend = await startBackend(t, reactions)
  const branches = [1, 2, 3].map(n => `<sequence>${callTo(backend.port, `/${n}`)}</sequence>`).join('')
  const request = `<scatter-gather parallel-execution="false" target="Body" result-content-type="JSON">
    <aggregation expression="\${payload}" condition="\${payload.n != 2}" timeout="30000"/>
    ${branches}</scatter-gather><respond/>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask(), [200, '[{"n":1},{"n":3}]'])
})

test('scatter-gather joins XML within the element that it names', async t => {
  const xml = (n: number): Reaction => says(200, `<n>${n}</n>`, 'Content-Type: application/xml\r\n')
  const backend = await startBackend(t, { '/one': xml(1), '/two': xml(2) })
  const branches = ['/one', '/two'].map(path => `<sequence>${callTo(backend.port, path)}</sequence>`).join('')
  const request = `<scatter-gather result-target="Body" content-type="XML" root-element="all">
    <aggregation expression="//n"/>${branches}</scatter-gather><respond/>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.match((await ask())[1], /^(?:<\?xml [^>]*>)?<all><n>1<\/n><n>2<\/n><\/all>$/)
})

test('the soapAction of a target is the SOAPAction of its copy', async t => {
  const backend = await startBackend(t, { '/x': says(200, '{"n":1}') })
  const at = `<endpoint><http method="post" uri-template="http://127.0.0.1:${backend.port}/x"/></endpoint>`
  const request = `<clone><target soapAction="urn:one">${at}</target><target soapAction="urn:two">${at}</target></clone>
    <aggregate><onComplete expression="json-eval($.n)"><respond/></onComplete></aggregate>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask('POST /a/x', '{}'), [200, '[1,1]'])
  const actions = backend.received.map(({ head }) => /^SOAPAction: (.*)\r$/m.exec(head)?.[1])
  assert.deepEqual(actions.sort(), ['"urn:one"', '"urn:two"'])
})

test('callout sends what its source finds as SOAP action, and keeps the response in a property', async t => {
  const backend = await startBackend(t, { '/service': says(200, '{"done":1}'), '/x': bodyOf })
  const request = `<callout serviceURL="http://127.0.0.1:${backend.port}/service" action="urn:do">
      <source xpath="json-eval($.part)"/><target key="answer"/></callout>
    <property name="X" expression="get-property('answer')" scope="transport"/>`
  const { ask } = await startCalls(t, { request }, backend.port)
  await ask('POST /a/x', '{"part":{"a":1}}')
  const [service, passed] = backend.received
  assert.equal(service!.body, '{"a":1}')
  assert.match(service!.head, /^SOAPAction: "urn:do"\r$/m)
  assert.match(passed!.head, /^X: \{"done":1\}\r$/m)
})

const ENVELOPE = (content: string) =>
  `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>${content}</s:Body></s:Envelope>`

test('callout puts the content of the response in the place that the XPath of its target finds', async t => {
  const answer = says(200, ENVELOPE('<answer>1</answer>'), 'Content-Type: text/xml\r\n')
  const backend = await startBackend(t, { '/service': answer, '/x': says(200, '{}') })
  const content = 's11:Body/child::*[fn:position()=1]'
  const request = `<payloadFactory><format>${ENVELOPE('<q xmlns="">2</q>')}</format></payloadFactory>
    <property name="messageType" value="text/xml" scope="axis2"/>
    <callout serviceURL="http://127.0.0.1:${backend.port}/service" action="urn:do">
    <source xpath="${content}"/><target xpath="${content}"/></callout>`
  const { ask } = await startCalls(t, { request }, backend.port)
  await ask('POST /a/x', '{}')
  const [service, passed] = backend.received
  assert.match(service!.body, /<q[^>]*>2<\/q>/)
  assert.match(passed!.body, /Body><answer[^>]*>1<\/answer><\/\w+:Body>/)
  assert.doesNotMatch(passed!.body, /<q/)
})

for (const target of ['<target type="property">p</target>', '<target type="variable">p</target>']) {
  test(`a call with ${target} says the status of the answer in HTTP_SC`, async t => {
    const backend = await startBackend(t, { '/fails': says(500, '{"why":1}'), '/x': says(200, '{}') })
    const endpoint = `<endpoint><http method="get" uri-template="http://127.0.0.1:${backend.port}/fails"/></endpoint>`
    const request = `<call>${endpoint}${target}</call>
      <filter source="get-property('axis2', 'HTTP_SC')" regex="500">
        <then><property name="HTTP_SC" value="502" scope="axis2"/><respond/></then></filter>`
    const { ask } = await startCalls(t, { request }, backend.port)
    assert.equal((await ask('POST /a/x', '{}'))[0], 502)
  })
}

test('a request whose call was answered with 500 goes on to its endpoint', async t => {
  const backend = await startBackend(t, { '/fails': says(500, '{"why":1}'), '/x': says(201, '{"n":1}') })
  const endpoint = `<endpoint><http method="get" uri-template="http://127.0.0.1:${backend.port}/fails"/></endpoint>`
  const request = `<call>${endpoint}<target type="property">p</target></call>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask('POST /a/x', '{}'), [201, '{"n":1}'])
})

test('scatter-gather without an expression joins whole bodies, and a result-target may name the variable', async t => {
  const backend = await startBackend(t, { '/one': says(200, '{"n":1}'), '/two': says(200, '{"n":2}') })
  const branches = ['/one', '/two'].map(path => `<sequence>${callTo(backend.port, path)}</sequence>`).join('')
  const request = `<scatter-gather result-target="both"><aggregation/>${branches}</scatter-gather>
    <payloadFactory media-type="json"><format>\${vars.both}</format></payloadFactory><respond/>`
  const { ask } = await startCalls(t, { request }, backend.port)
  assert.deepEqual(await ask(), [200, '[{"n":1},{"n":2}]'])
})

for (const [result, status, code] of [
  ['{"result":true}', 200, 0],
  ['{"result":false}', 403, 102555],
  ['{}', 500, 102556],
  ['{"result":"yes"}', 500, 102556],
] as const) {
  test(`the answer ${result} of a policy server is ${status}`, async t => {
    const backend = await startBackend(t, {
      '/v1/data/apis/pets/allow': says(200, result),
      '/x': says(200, '{"ok":1}'),
    })
    const request = `<opa serverUrl="http://127.0.0.1:${backend.port}/v1/data" policy="apis/pets" rule="allow"
      accessToken="secret"><parameter name="team" value="blue"/></opa>`
    const { ask } = await startCalls(t, { request }, backend.port)
    const [got, body] = await ask('GET /a/x?q=1')
    assert.deepEqual([got, JSON.parse(body).fault?.code ?? 0], [status, code])
    const { input } = JSON.parse(backend.received[0]!.body)
    assert.deepEqual([input.method, input.path, input.query, input.team], ['GET', '/x', 'q=1', 'blue'])
    assert.match(backend.received[0]!.head, /^Authorization: Bearer secret\r$/m)
  })
}

test('<opa> takes its settings from elements; without a rule the rule allow decides', async t => {
  const backend = await startBackend(t, {
    '/v1/data/apis/pets': says(200, '{"result":{"allow":false}}'),
    '/v1/data/apis/pets/reads': says(200, '{"result":true}'),
    '/x': says(200, '{"ok":1}'),
  })
  const opa = (rule: string) => `<opa><serverUrl>http://127.0.0.1:${backend.port}/v1/data</serverUrl>
    <accessKey>secret</accessKey><policy>apis/pets</policy>${rule}
    <additionalParameters><parameter name="additionalMCProperties">team,none</parameter></additionalParameters></opa>`
  const request = `<property name="team" value="blue"/>${opa('<rule>reads</rule>')}${opa('')}`
  const { ask } = await startCalls(t, { request }, backend.port)
  const [status, body] = await ask('GET /a/x?q=1', '', 'X-Own: 1\r\n')
  assert.deepEqual([status, JSON.parse(body).fault.code], [403, 102555])
  assert.deepEqual(
    backend.received.map(({ target }) => target),
    ['/v1/data/apis/pets/reads', '/v1/data/apis/pets'],
  )
  const { input } = JSON.parse(backend.received[0]!.body)
  const { method, team, requestOrigin, transportHeaders, apiContext } = input
  assert.deepEqual([method, team, requestOrigin], ['GET', 'blue', '127.0.0.1'])
  assert.deepEqual([transportHeaders['x-own'], apiContext], ['1', { apiName: 'a', apiVersion: '1.0.0' }])
})

test('copies read the parameters of the template that makes them, in the background too', async t => {
  const backend = await startBackend(t, { '/ping': says(200, '') })
  const steps =
    `<property name="X-P" expression="$func:p" scope="transport"/>` +
    `<property name="X-Q" expression="$func:q" scope="transport"/>${callTo(backend.port, '/ping')}`
  const branches = `<clone>${target(steps)}</clone><clone continueParent="true">${target(steps)}</clone>`
  const parameters = '<parameter name="p"/><parameter name="q"/>'
  const template = `<template name="t">${parameters}<sequence>${branches}</sequence></template>`
  const given = '<with-param name="p" value="a"/><with-param name="q" value="{{$ctx:q}}"/>'
  const request = `<property name="q" value="b"/><call-template target="t">${given}</call-template><respond/>`
  const { ask } = await startCalls(t, { request, others: { 'template t': template } }, backend.port)
  await ask()
  await eventually('both copies have come', () => backend.received.length === 2)
  for (const { head } of backend.received) assert.match(head, /X-P: a\r\nX-Q: b\r\n/)
})

test('an item that XPath splits off an array of JSON is the whole payload of its copy', async t => {
  const backend = await startBackend(t, { '/item': bodyOf })
  const split = `<iterate expression="//jsonArray/jsonElement">${target(callTo(backend.port, '/item'))}</iterate>`
  const { ask } = await startCalls(t, { request: `${split}${aggregate('')}` }, backend.port)
  assert.deepEqual(await ask('POST /a/x', '[{"n":1},2,{"l":[3,4]}]'), [
    200,
    '[{"got":{"n":1}},{"got":2},{"got":{"l":[3,4]}}]',
  ])
})

/** [what, steps, body of the response to `[{"n":1},{"n":2}]`]. */
const ITEMS = [
  [
    'foreach that makes items',
    `<foreach expression="//jsonArray/jsonElement"><sequence><payloadFactory media-type="json">
      <format>{"m":$1}</format><args><arg evaluator="json" expression="$.n"/></args>
      </payloadFactory></sequence></foreach>`,
    '[{"m":1},{"m":2}]',
  ],
  [
    'foreach that leaves them',
    '<foreach expression="//jsonArray/jsonElement"><sequence><property name="n" expression="//n"/></sequence></foreach>',
    '[{"n":1},{"n":2}]',
  ],
  [
    'enrich of the body',
    '<enrich><source type="custom" xpath="//jsonArray/jsonElement[n=2]"/><target type="body"/></enrich>',
    '{"n":2}',
  ],
  [
    'filter over items',
    `<filter xpath="//jsonArray/jsonElement[n=2]"><then><payloadFactory media-type="json"><format>true</format><args/>
      </payloadFactory></then></filter>`,
    'true',
  ],
] as const
for (const [what, steps, expected] of ITEMS) {
  test(`XPath sees an array of JSON as <jsonArray> with <jsonElement>: ${what}`, async t => {
    const backend = await startBackend(t, {})
    const { ask } = await startCalls(t, { request: `${steps}<respond/>` }, backend.port)
    assert.deepEqual(await ask('POST /a/x', '[{"n":1},{"n":2}]'), [200, expected])
  })
}

/** [what, expression of correlateOn, body of the response, or the code of its fault]. */
const SELECTED: readonly (readonly [string, string, string | number])[] = [
  ['in which it finds something', 'json-eval($.n)', '[{"n":1},{"n":2}]'],
  ['that it is true for', 'not(json-eval($.m))', '[{"n":1},{"n":2}]'],
  ['of another value', '//m', '[{"m":3}]'],
  ['of none', 'json-eval($.none)', 102554],
]
for (const [what, expression, expected] of SELECTED) {
  test(`correlateOn gathers the copies ${what}`, async t => {
    const backend = await startBackend(t, {
      '/one': says(200, '{"n":1}'),
      '/two': says(200, '{"n":2}'),
      '/three': says(200, '{"m":3}'),
    })
    const targets = ['/one', '/two', '/three'].map(path => target(callTo(backend.port, path))).join('')
    const selecting = aggregate(`<correlateOn expression="${expression}"/>`)
    const { ask } = await startCalls(t, { request: `<clone>${targets}</clone>${selecting}` }, backend.port)
    const [status, body] = await ask()
    if (typeof expected === 'string') assert.deepEqual([status, body], [200, expected])
    else assert.deepEqual([status, (JSON.parse(body) as { fault: { code: number } }).fault.code], [504, expected])
  })
}

test('arrays of one item and of none stay arrays where an XPath splits JSON', async t => {
  const backend = await startBackend(t, { '/item': bodyOf })
  const call = callTo(backend.port, '/item')
  const sent = '{"orders":[{"tags":["a"],"none":[],"n":1},{"tags":["b","c"],"none":[{"x":[2]}]}]}'
  const split = `<iterate expression="//orders">${target(call)}</iterate>${aggregate('')}`
  const { ask } = await startCalls(t, { request: split }, backend.port)
  const [first, second] = JSON.parse(sent).orders as readonly unknown[]
  assert.deepEqual(await ask('POST /a/x', sent), [200, json([{ got: { orders: first } }, { got: { orders: second } }])])
})
