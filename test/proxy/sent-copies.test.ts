/** Copies that `<send>` sends: their responses come to the response flow, where `<aggregate>` gathers them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectPeer, eventually } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import { flowsOf } from '../harness/flows.ts'
import { startGateway } from '../harness/gateway.ts'
import { address, type Reaction, says, startBackend, startCalls } from '../harness/sequence-calls.ts'

const json = (value: unknown) => JSON.stringify(value)
const bare = '<property name="REST_URL_POSTFIX" scope="axis2" action="remove"/>'
const target = (steps: string) => `<target><sequence>${steps}</sequence></target>`
const send = (port: number, path: string) => `${bare}<send>${address(port, path)}</send>`
const clone = (port: number, paths: readonly string[], attributes = '') =>
  `<clone ${attributes}>${paths.map(path => target(send(port, path))).join('')}</clone>`
const aggregate = (condition = '', attributes = '', expression = 'json-eval($)') =>
  `<aggregate ${attributes}>${condition}<onComplete expression="${expression}"><send/></onComplete></aggregate>`
const count = (min: number, max: number) => `<messageCount min="${min}" max="${max}"/>`
const never: Reaction = () => null
const breaksOff: Reaction = (_, peer) => {
  peer.destroy()
  return null
}
const xml = (text: string): Reaction => says(200, text, 'Content-Type: application/xml\r\n')

const NUMBERS = { '/one': says(200, '{"n":1}'), '/two': says(200, '{"n":2}'), '/late': never }

/** [what, paths of the copies, response flow, response or code of its fault]. */
const GATHERED: readonly (readonly [string, readonly string[], string, string | number])[] = [
  ['all of them, in the order of the targets', ['/one', '/two'], aggregate(), '[{"n":1},{"n":2}]'],
  [
    'as many as the aggregate takes at most',
    ['/late', '/two'],
    aggregate(`<completeCondition>${count(1, 1)}</completeCondition>`),
    '[{"n":2}]',
  ],
  [
    'those that have come once its time is over',
    ['/late', '/two'],
    aggregate('<completeCondition timeout="0.2"/>'),
    '[{"n":2}]',
  ],
  [
    'fewer than it needs are a fault',
    ['/late', '/two'],
    aggregate(`<completeCondition timeout="0.2">${count(2, 2)}</completeCondition>`),
    102554,
  ],
  [
    'what stands in front of the aggregate runs on each, what follows runs once',
    ['/one', '/two'],
    `<property name="own" expression="json-eval($.n)"/><aggregate><onComplete expression="get-property('own')"/>
     </aggregate><payloadFactory media-type="json"><format>{"all":$1}</format><args>
     <arg evaluator="json" expression="$"/></args></payloadFactory>`,
    '{"all":["1","2"]}',
  ],
  ['a response of a backend that fails is left out', ['/gone', '/two'], aggregate(), '[{"n":2}]'],
  ['without an aggregate that it reaches, the first is the response', ['/one', '/two'], unreached(), '{"n":1}'],
]

function unreached(): string {
  return `<filter source="$ctx:none" regex="x"><then>${aggregate()}</then></filter>`
}

for (const [what, paths, response, expected] of GATHERED) {
  test(`the response flow gathers the responses of sent copies: ${what}`, async t => {
    const backend = await startBackend(t, { ...NUMBERS, '/gone': breaksOff })
    const { ask } = await startCalls(t, { request: clone(backend.port, paths), response }, backend.port)
    const [status, body] = await ask()
    if (typeof expected === 'number') assert.deepEqual([status, JSON.parse(body).fault?.code], [504, expected], body)
    else assert.deepEqual([status, JSON.parse(body)], [200, JSON.parse(expected)])
    assert.equal(
      backend.received.some(({ target }) => target.includes('/x')),
      false,
    )
  })
}

test('each item is sent by itself, and the aggregate joins the elements of their responses', async t => {
  const quote: Reaction = ({ body }, peer) => {
    const symbol = /<symbol[^>]*>(\w+)</.exec(body)![1]!
    return xml(`<quote><symbol>${symbol}</symbol></quote>`)({ method: '', target: '', head: '', body }, peer)
  }
  const backend = await startBackend(t, { '/quotes': quote })
  const order = `<payloadFactory media-type="xml"><format><getQuotes xmlns=""><symbol>IBM</symbol><symbol>SUN</symbol>
    </getQuotes></format><args/></payloadFactory>`
  const iterate = `<iterate expression="//symbol" preservePayload="true" attachPath="//getQuotes">
    ${target(send(backend.port, '/quotes'))}</iterate>`
  const flows = {
    request: order + iterate,
    response: `<property name="all" type="OM"><all xmlns=""/></property>
      <aggregate><completeCondition timeout="10">${count(2, 2)}</completeCondition>
      <onComplete expression="//quote" enclosingElementProperty="all"><send/></onComplete></aggregate>`,
  }
  const { ask } = await startCalls(t, flows, backend.port)
  const [status, body] = await ask()
  assert.equal(status, 200)
  const quotes = ['IBM', 'SUN'].map(symbol => `<quote><symbol>${symbol}</symbol></quote>`).join('')
  assert.ok(body.replaceAll(' xmlns=""', '').includes(`<all>${quotes}</all>`), body)
  assert.equal(backend.received.length, 2)
})

test('an endpoint of a target, and the destination of a copy, bring responses to the response flow too', async t => {
  const backend = await startBackend(t, NUMBERS)
  const request = `${bare}<clone><target>${address(backend.port, '/one')}</target>
    <target to="http://127.0.0.1:${backend.port}/two"><sequence><send/></sequence></target></clone>`
  const { ask } = await startCalls(t, { request, response: aggregate() }, backend.port)
  assert.deepEqual(await ask(), [200, '[{"n":1},{"n":2}]'])
})

test('copies of copies gather by the id of their mediator', async t => {
  const backend = await startBackend(t, { ...NUMBERS, '/three': says(200, '{"n":3}') })
  const inner = `<target><sequence>${clone(backend.port, ['/one', '/two'], 'id="inner"')}</sequence></target>`
  const request = `<clone id="outer">${inner}${target(send(backend.port, '/three'))}</clone>`
  const ended = (id: string) => `<aggregate id="${id}"><onComplete expression="json-eval($)"/></aggregate>`
  const { ask } = await startCalls(t, { request, response: ended('inner') + ended('outer') }, backend.port)
  assert.deepEqual(await ask(), [200, '[[{"n":1},{"n":2}],{"n":3}]'])
})

test('a fault of the response flow is that of the message', async t => {
  const backend = await startBackend(t, NUMBERS)
  const response = `<aggregate><onComplete expression="json-eval($)"><throwError type="777" errorMessage="no"/>
    </onComplete></aggregate>`
  const { ask } = await startCalls(t, { request: clone(backend.port, ['/one', '/two']), response }, backend.port)
  const [status, body] = await ask()
  assert.deepEqual([status, JSON.parse(body).fault.code], [500, 777])
})

test('a response flow that drops the aggregate leaves 202', async t => {
  const backend = await startBackend(t, NUMBERS)
  const response = '<aggregate><onComplete expression="json-eval($)"><drop/></onComplete></aggregate>'
  const { ask } = await startCalls(t, { request: clone(backend.port, ['/one', '/two']), response }, backend.port)
  assert.deepEqual(await ask(), [202, ''])
})

test('a message that no mediator has copied passes the aggregate of its response flow', async t => {
  const backend = await startBackend(t, { '/x': says(200, '{"n":0}'), ...NUMBERS })
  const request = `<filter source="$trp:X-Split" regex="yes"><then>${clone(backend.port, ['/one'])}</then></filter>`
  const { ask, gateway } = await startCalls(t, { request, response: aggregate() }, backend.port)
  assert.deepEqual(await ask(), [200, '{"n":0}'])
  assert.deepEqual(await ask('GET /a/x', '', 'X-Split: yes\r\n'), [200, '[{"n":1}]'])
  assert.deepEqual(
    gateway.reports.filter(({ level }) => level === 'warn'),
    [],
  )
})

test('more copies than one message may make are refused before any is sent', async t => {
  const backend = await startBackend(t, NUMBERS)
  const request = `<iterate expression="json-eval($)">${target(send(backend.port, '/one'))}</iterate>`
  const { ask } = await startCalls(t, { request, response: aggregate() }, backend.port)
  const [status, body] = await ask('POST /a/x', json(Array.from({ length: 1001 }, () => 1)))
  assert.deepEqual([status, JSON.parse(body).fault.code, backend.received.length], [500, 102553, 0])
})

test('the result goes to the client once, with the status and the fields of the first response', async t => {
  const backend = await startBackend(t, { ...NUMBERS, '/one': says(206, '{"n":1}', 'X-One: 1\r\n') })
  const response = `<property name="X-Out" value="1" scope="transport"/>${aggregate()}`
  const { gateway } = await startCalls(t, { request: clone(backend.port, ['/one', '/two']), response }, backend.port)
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send('GET /a/x HTTP/1.1\r\nHost: h\r\n\r\n')
  const { status, fields, body } = await takeResponse(client)
  assert.deepEqual([status, fields.get('x-one'), fields.get('x-out'), body], [206, ['1'], ['1'], '[{"n":1},{"n":2}]'])
})

const credentials: Filter = {
  name: 'credentials',
  request(exchange) {
    exchange.callerLines = 'Authorization: Basic b3du\r\n'
    exchange.ownCredential = { line: exchange.callerLines, refused: () => undefined }
    return undefined
  },
}
const bareIterate = (attributes = '') =>
  `<iterate expression="json-eval($)" ${attributes}>${target('<send/>')}</iterate>`
const SENT = '[{"n":1},{"n":2},{"n":3}]'
/** Answers with the body that it got. */
const echo: Reaction = ({ body }) => [200, body]

/** [what, request flow, response flow, response, requests to the endpoint of the API, without order]. */
const TO_OWN_ENDPOINT = [
  [
    'copies that the response flow gathers',
    bareIterate(),
    aggregate('', '', 'json-eval($.n)'),
    '[1,2,3]',
    ['{"n":1}', '{"n":2}', '{"n":3}'],
  ],
  [
    'copies that nothing gathers, whose first answer goes through the response flow',
    bareIterate(),
    `<payloadFactory media-type="json"><format>{"first":$1}</format><args>
     <arg evaluator="json" expression="$"/></args></payloadFactory>`,
    '{"first":{"n":1}}',
    ['{"n":1}', '{"n":2}', '{"n":3}'],
  ],
  [
    'copies in the background, and the message itself',
    bareIterate('continueParent="true"'),
    '',
    SENT,
    [SENT, '{"n":1}', '{"n":2}', '{"n":3}'],
  ],
  [
    'copies of a copy in the background',
    `<clone continueParent="true">${target(bareIterate('continueParent="true"'))}</clone>`,
    '',
    SENT,
    [SENT, '{"n":1}', '{"n":2}', '{"n":3}'],
  ],
] as const

for (const [what, request, response, expected, bodies] of TO_OWN_ENDPOINT) {
  test(`<send> without an endpoint goes to that of the API, with the gateway's credentials: ${what}`, async t => {
    const backend = await startBackend(t, { '/base/x': echo })
    const mediation = await flowsOf({ request, response })
    const api = { context: '/a', port: backend.port, basePath: '/base', overrides: { mediation } }
    const gateway = await startGateway([api], { filters: [credentials] })
    t.after(() => gateway.stop())
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const lines = 'Host: h\r\nContent-Type: application/json\r\n'
    client.send(`POST /a/x?q=1 HTTP/1.1\r\n${lines}Content-Length: ${SENT.length}\r\n\r\n${SENT}`)
    const { status, body } = await takeResponse(client)
    assert.deepEqual([status, body], [200, expected])
    await eventually('all of them', () => backend.received.length >= bodies.length)
    assert.deepEqual(backend.received.map(({ body }) => body).toSorted(), bodies.toSorted())
    for (const { method, target, head } of backend.received) {
      assert.equal(`${method} ${target}`, 'POST /base/x?q=1')
      assert.equal(head.match(/^Authorization: .*$/gim)?.join(), 'Authorization: Basic b3du')
    }
    assert.deepEqual(
      gateway.reports.filter(({ level }) => level === 'warn' || level === 'error'),
      [],
    )
  })
}
