/** What `<send>` does with a response that goes to an endpoint, and with the sequence that receives the answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import { type FlowTexts, remove, set } from '../harness/flows.ts'
import { refusingPort } from '../harness/peers.ts'
import { address, callTo, type Reaction, says, startBackend, startCalls } from '../harness/sequence-calls.ts'

const bare = '<property name="REST_URL_POSTFIX" scope="axis2" action="remove"/>'
const send = (port: number, path: string, receive = '') =>
  `${bare}<send${receive === '' ? '' : ` receive="${receive}"`}>${address(port, path)}</send>`
const wrap = (name: string) =>
  `<payloadFactory media-type="json"><format>{"${name}":$1}</format><args><arg evaluator="json" expression="$"/></args>
   </payloadFactory>`
const target = (steps: string) => `<target><sequence>${steps}</sequence></target>`
const aggregate = '<aggregate><onComplete expression="json-eval($)"/></aggregate>'
/** Answers with the body that it got, in a member of that name. */
const adds =
  (name: string): Reaction =>
  ({ body }) => [200, `{"${name}":${body}}`]
const breaksOff: Reaction = (_, peer) => {
  peer.destroy()
  return null
}

const BACKEND: Readonly<Record<string, Reaction>> = {
  '/x': says(200, '{"n":0}', 'X-First: 1\r\n'),
  '/second': adds('second'),
  '/third': adds('third'),
  '/one': says(200, '{"n":1}'),
  '/two': says(200, '{"n":2}'),
  '/busy': says(503, '{"busy":true}'),
  '/gone': breaksOff,
}

type Texts = (port: number) => FlowTexts
type Expected = readonly [status: number, body: string, targets: readonly string[]]
/** A code in place of a body: that of the fault. */
const IN_RESPONSES: readonly (readonly [what: string, Texts, Expected])[] = [
  [
    'its endpoint gets the response, and the client gets what that answers',
    port => ({ response: send(port, '/second') }),
    [200, '{"second":{"n":0}}', ['/x', '/second']],
  ],
  [
    'what the response flow has made of the response is sent',
    port => ({ response: wrap('made') + send(port, '/second') + wrap('never') }),
    [200, '{"second":{"made":{"n":0}}}', ['/x', '/second']],
  ],
  [
    'the answer runs through the sequence that receives it',
    port => ({ response: send(port, '/second', 'received'), others: { received: wrap('received') } }),
    [200, '{"received":{"second":{"n":0}}}', ['/x', '/second']],
  ],
  [
    'the sequence that receives it may be found by an expression',
    port => ({
      response: `<property name="r" value="received"/>${send(port, '/second', "{get-property('r')}")}`,
      others: { received: wrap('found') },
    }),
    [200, '{"found":{"second":{"n":0}}}', ['/x', '/second']],
  ],
  [
    'the sequence that receives it may send again, and may end with <send/>',
    port => ({
      response: send(port, '/second', 'again'),
      others: { again: send(port, '/third', 'last'), last: `${wrap('last')}<send/>` },
    }),
    [200, '{"last":{"third":{"second":{"n":0}}}}', ['/x', '/second', '/third']],
  ],
  [
    'the sequence that receives it may drop it',
    port => ({ response: send(port, '/second', 'received'), others: { received: '<drop/>' } }),
    [202, '', ['/x', '/second']],
  ],
  ['any status is an answer', port => ({ response: send(port, '/busy') }), [503, '{"busy":true}', ['/x', '/busy']]],
  [
    'copies that an aggregate gathers bring the answers of their endpoints',
    port => ({ response: `<clone>${target(send(port, '/one'))}${target(send(port, '/two'))}</clone>${aggregate}` }),
    [200, '[{"n":1},{"n":2}]', ['/x', '/one', '/two']],
  ],
  [
    'of copies that nothing gathers the first answer is the response',
    port => ({ response: `<clone sequential="true">${target(send(port, '/one'))}</clone>${wrap('never')}` }),
    [200, '{"n":1}', ['/x', '/one']],
  ],
  [
    'responses to sent copies go to it one by one',
    port => ({
      request: `<iterate sequential="true" expression="json-eval($)">${target(send(port, '/one'))}</iterate>`,
      response: `<filter source="$trp:X-None" regex="x"><then>${aggregate}</then></filter>${send(port, '/second')}`,
    }),
    [200, '{"second":{"n":1}}', ['/one', '/second']],
  ],
]

const IN_REQUESTS: readonly (readonly [what: string, Texts, Expected])[] = [
  [
    'the answer of its endpoint runs through that sequence in place of the response flow',
    port => ({ request: send(port, '/second', 'received'), response: wrap('never'), others: { received: wrap('r') } }),
    [200, '{"r":{"second":[7]}}', ['/second']],
  ],
  [
    'without an endpoint the endpoint of the API answers',
    () => ({ request: '<send receive="received"/>', response: wrap('never'), others: { received: wrap('r') } }),
    [200, '{"r":{"n":0}}', ['/x']],
  ],
  [
    'without an endpoint To is the endpoint',
    port => ({
      request: `<header name="To" value="http://127.0.0.1:${port}/third"/><send receive="received"/>`,
      others: { received: `${wrap('r')}<respond/>` },
    }),
    [200, '{"r":{"third":[7]}}', ['/third']],
  ],
  [
    'services are chained: each answer goes to the next endpoint',
    port => ({
      request: send(port, '/second', 'chain'),
      response: wrap('never'),
      others: { chain: wrap('mid') + send(port, '/third') },
    }),
    [200, '{"third":{"mid":{"second":[7]}}}', ['/second', '/third']],
  ],
  [
    'answers to copies gather in that sequence',
    port => ({
      request: `<iterate expression="json-eval($)">${target(send(port, '/second', 'all'))}</iterate>`,
      response: wrap('never'),
      others: { all: `<aggregate><onComplete expression="json-eval($)"><send/></onComplete></aggregate>` },
    }),
    [200, '[{"second":7}]', ['/second']],
  ],
  [
    'a sequence that ends with <loopback/> is a response already',
    port => ({ request: send(port, '/one', 'received'), others: { received: `<loopback/>${wrap('r')}` } }),
    [200, '{"r":{"n":1}}', ['/one']],
  ],
  [
    'a request that a sequence marks as a response goes to the endpoint all the same',
    port => ({ request: `<property name="RESPONSE" value="true"/>${send(port, '/one')}`, response: wrap('never') }),
    [200, '{"n":1}', ['/one']],
  ],
]

for (const [flow, cases] of [
  ['a response flow', IN_RESPONSES],
  ['a request flow, with receive', IN_REQUESTS],
] as const) {
  for (const [what, texts, [status, body, targets]] of cases) {
    test(`<send> in ${flow}: ${what}`, async t => {
      const backend = await startBackend(t, BACKEND)
      const { ask, gateway } = await startCalls(t, texts(backend.port), backend.port)
      const got = await ask('POST /a/x', '[7]')
      const said = gateway.reports.filter(({ level }) => level === 'warn')
      assert.deepEqual([...got, said], [status, body, []])
      const bare = backend.received.map(({ target }) => target)
      // Copies arrive in any order.
      assert.deepEqual(bare.toSorted(), targets.toSorted())
    })
  }
}

const fault = (body: string) => Number(JSON.parse(body).fault?.code)

test('an endpoint that fails is a fault, which onError and the fault flow see', async t => {
  const backend = await startBackend(t, BACKEND)
  for (const texts of [
    { response: send(backend.port, '/gone') },
    { request: send(backend.port, '/gone', 'received'), others: { received: '' } },
  ]) {
    const { ask } = await startCalls(t, texts, backend.port)
    const [status, body] = await ask()
    assert.equal(status >= 500 && fault(body) > 100_000, true, body)
  }
})

test('a fault flow sends the fault to an endpoint, whose answer the client gets', async t => {
  const backend = await startBackend(t, BACKEND)
  const closed = await refusingPort()
  t.after(() => closed.close())
  const { ask } = await startCalls(t, { fault: send(backend.port, '/one') }, closed.port)
  assert.deepEqual(await ask(), [200, '{"n":1}'])
})

test('a sequence that sends to itself for ever is 102545', async t => {
  const backend = await startBackend(t, BACKEND)
  const again = `${callTo(backend.port, '/one')}${send(backend.port, '/two', 'again')}`
  const { ask } = await startCalls(t, { response: again, others: { again } }, backend.port)
  const [, body] = await ask()
  assert.equal(fault(body), 102545, body)
  assert.ok(backend.received.length < 250)
})

test('receive of a response without an endpoint is said to have no effect', async t => {
  const backend = await startBackend(t, BACKEND)
  const texts = { response: '<send receive="received"/>', others: { received: wrap('never') } }
  const { ask, gateway } = await startCalls(t, texts, backend.port)
  assert.deepEqual(await ask(), [200, '{"n":0}'])
  assert.ok(JSON.stringify(gateway.reports).includes('receive has no effect'))
})

test('the endpoint of the API gets the credentials of the gateway, and others do not', async t => {
  const backend = await startBackend(t, BACKEND)
  const credentials: Filter = {
    name: 'credentials',
    request(exchange) {
      exchange.callerLines = 'Authorization: Basic b3du\r\n'
      return undefined
    },
  }
  const texts = { request: '<send receive="next"/>', others: { next: send(backend.port, '/second') } }
  const { ask } = await startCalls(t, texts, backend.port, {}, { filters: [credentials] })
  assert.deepEqual(await ask(), [200, '{"second":{"n":0}}'])
  const sent = backend.received.map(({ target, head }) => [target, /^Authorization: (.*)\r$/im.exec(head)?.[1]])
  assert.deepEqual(sent, [
    ['/x', 'Basic b3du'],
    ['/second', undefined],
  ])
})

test('status and fields of the client are those of the answer', async t => {
  const backend = await startBackend(t, { ...BACKEND, '/one': says(206, '{"n":1}', 'X-One: 1\r\n') })
  const response = remove('X-First') + set('X-Sent', 'yes') + send(backend.port, '/one')
  const { ask } = await startCalls(t, { response }, backend.port)
  assert.deepEqual(await ask(), [206, '{"n":1}'])
  const [, sent] = backend.received
  assert.match(sent!.head, /^x-sent: yes\r$/im)
  assert.doesNotMatch(sent!.head, /^x-first/im)
})

test('a name that receive finds and no sequence has is a fault, and nothing is sent', async t => {
  const backend = await startBackend(t, BACKEND)
  const request = `<property name="r" value="none"/>${send(backend.port, '/second', '{$ctx:r}')}`
  const { ask } = await startCalls(t, { request }, backend.port)
  const [status, body] = await ask()
  assert.deepEqual([status, (JSON.parse(body) as { fault: { code: number } }).fault.code], [500, 102544])
  assert.deepEqual(backend.received, [])
})

test('a request that <makefault> refuses is answered by <send>, and does not reach the backend', async t => {
  const backend = await startBackend(t, { '/x': says(200, '{}') })
  const code = '<code value="s11:Client"/><reason value="refused"/>'
  const request = `<makefault>${code}</makefault><header name="To" scope="default" action="remove"/><send/>`
  const { ask } = await startCalls(t, { request }, backend.port)
  const [status, body] = await ask('POST /a/x', '{"a":1}')
  assert.equal(status, 500)
  assert.match(body, /"faultstring":"refused"/)
  assert.deepEqual(backend.received, [])
})
