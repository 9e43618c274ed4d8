/** Backends that are the gateway itself: a request that comes back too often ends with 508 (RFC 9110 7.6.3). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type CallChain, callChainOf } from '../../src/http1/call-chain.ts'
import { viaEntriesOf } from '../../src/http1/forwarded.ts'
import { flowsOf, set } from '../harness/flows.ts'
import { planGateway, startGateway, type TestApi, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { clientPlan, connectSecured, serverPlan } from '../harness/secured-peers.ts'
import { callTo, planEndpoints, says, startBackend } from '../harness/sequence-calls.ts'

async function ask(port: number, path: string, fields = '') {
  const client = await connectPeer(port)
  client.send(`GET ${path} HTTP/1.1\r\nHost: h\r\n${fields}\r\n`)
  const response = await takeResponse(client)
  client.destroy()
  return response
}

/** Starts a gateway of which every API has the gateway itself as its backend. */
async function startLoop(apis: readonly Omit<TestApi, 'port'>[]): Promise<TestGateway> {
  const gateway = await startGateway(apis.map(api => ({ ...api, port: 1 })))
  await gateway.deploy({ apis: apis.map(api => ({ ...api, port: gateway.port })) })
  return gateway
}

const SELF: readonly (readonly [what: string, texts: Parameters<typeof flowsOf>[0] | null])[] = [
  ['messages that pass', null],
  ['messages of a flow of heads', { request: set('x-a', 'b') }],
  [
    'messages of a flow on a worker',
    { request: '<payloadFactory media-type="json"><format>{}</format></payloadFactory>' },
  ],
]

for (const [what, texts] of SELF) {
  test(`7.6.3: an API whose backend is the gateway itself ends with 508: ${what}`, async t => {
    const mediation = texts === null ? null : await flowsOf(texts)
    const gateway = await startLoop([{ context: '/self', basePath: '/self', overrides: { mediation } }])
    t.after(() => gateway.stop())
    const { status, body } = await ask(gateway.port, '/self')
    assert.equal(status, 508)
    assert.match(body, /"code":102512/)
    assert.equal(gateway.reports.filter(({ event }) => event === 'request loop').length, 1)
  })
}

test('7.6.3: ten APIs of one gateway may call each other in a row', async t => {
  const backend = await ScriptedBackend.listen(peer => peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
  t.after(() => backend.close())
  const names = Array.from({ length: 11 }, (_, at) => `/hop${at}`)
  const chain = names.map((context, at) => ({ context, basePath: names[at + 1] ?? '/end' }))
  const gateway = await startGateway(chain.map(api => ({ ...api, port: backend.port })))
  t.after(() => gateway.stop())
  await gateway.deploy({ apis: chain.slice(0, -1).map(api => ({ ...api, port: gateway.port })) })
  assert.equal((await ask(gateway.port, '/hop0')).status, 200)
  assert.equal(backend.peers[0]!.text.match(/^Via: 1\.1 sluice\r$/gm)?.length, 11)
})

test('7.6.3: entries of other gateways count for nothing', async t => {
  const backend = await ScriptedBackend.listen(peer => peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
  const gateway = await startGateway([{ context: '/a', port: backend.port }], { pseudonym: 'sluice-0a1b' })
  t.after(() => {
    gateway.stop()
    backend.close()
  })
  const others = 'Via: 1.1 sluice-0a1c, 1.0 sluice\r\n'.repeat(20)
  assert.equal((await ask(gateway.port, '/a', others)).status, 200)
  assert.match(backend.peers[0]!.text, /^Via: 1\.1 sluice-0a1b\r$/m)
  assert.equal((await ask(gateway.port, '/a', 'Via: 1.1 sluice-0a1b\r\n'.repeat(11))).status, 508)
})

const LISTS: readonly (readonly [list: string, entries: number])[] = [
  ['', 0],
  ['1.1 own', 1],
  ['1.1 OWN (a comment), HTTP/1.1\town', 2],
  ['1.1 owner, 1.1 an-own, own, 1.1 other (own)', 0],
  ['1.1 own,,1.0   own ', 2],
]

test('7.6.3: an entry of Via is a version, a recipient and a comment', () => {
  for (const [list, entries] of LISTS) assert.equal(viaEntriesOf(list, 'own'), entries, list)
})

const { workers } = planGateway([]).plan
/** [permits, length of the queue]. */
const POOLS: readonly (readonly [permits: number, queueLength: number])[] = [
  [1, -1],
  [1, 0],
  [4, -1],
  [4, 10],
  [400, -1],
]

/** Starts a gateway whose API `/self` asks itself; `steps`: in front of the call. */
async function startCalling(t: TestContext, permits: number, queueLength: number, steps = ''): Promise<TestGateway> {
  const row = { ...workers.limits.plain, core: permits, max: permits, queueLength }
  const pool = { ...workers, limits: { ...workers.limits, plain: row } }
  const gateway = await startGateway([{ context: '/self', port: 1 }], { workers: pool, responseTimeoutMs: 20_000 })
  t.after(() => gateway.stop())
  const request = `${steps}<header name="To" value="http://127.0.0.1:${gateway.port}/self"/><call/><respond/>`
  const mediation = await flowsOf({ request })
  const sequenceEndpoints = planEndpoints(mediation.sequences)
  await gateway.deploy({ apis: [{ context: '/self', port: 1, overrides: { mediation } }], sequenceEndpoints })
  return gateway
}

for (const [permits, queueLength] of POOLS) {
  test(`D531: a sequence that calls its own API ends with 508: ${permits} permits, queue ${queueLength}`, async t => {
    const gateway = await startCalling(t, permits, queueLength)
    const { status, body } = await ask(gateway.port, '/self')
    assert.equal(status, 508, body)
    assert.match(body, /"code":102512/)
    // With more permits the depth of the calls ends the loop.
    if (permits === 1) assert.equal(gateway.metrics().counts.workerRefusedLoop, 1)
  })
}

for (const [what, steps] of [
  ['removes all fields', '<property name="TRANSPORT_HEADERS" scope="axis2" action="remove"/>'],
  ['removes Via', '<header name="Via" scope="transport" action="remove"/>'],
  ['has called another service before', '<CALL>'],
] as const) {
  test(`D531: a sequence that calls its own API ends with 508 where it ${what}`, async t => {
    const backend = await startBackend(t, { '/other': says(200, '{}') })
    const gateway = await startCalling(t, 400, -1, steps.replace('<CALL>', callTo(backend.port, '/other')))
    assert.equal((await ask(gateway.port, '/self')).status, 508)
  })
}

test('D531: a call to another API waits for a permit that a message outside of its calls holds', async t => {
  const held = Promise.withResolvers<Peer>()
  const backend = await startBackend(t, {
    '/slow': (_, peer) => {
      held.resolve(peer)
      return null
    },
  })
  const row = { ...workers.limits.plain, core: 2, max: 2, queueLength: -1 }
  const pool = { ...workers, limits: { ...workers.limits, plain: row } }
  const gateway = await startGateway([{ context: '/outer', port: 1 }], { workers: pool })
  t.after(() => gateway.stop())
  const inner = await flowsOf({
    request: '<payloadFactory media-type="json"><format>{"in":1}</format></payloadFactory><respond/>',
  })
  const outer = await flowsOf({ request: `${callTo(gateway.port, '/inner')}<respond/>` })
  const slow = await flowsOf({ request: `${callTo(backend.port, '/slow')}<respond/>` })
  const sequenceEndpoints = planEndpoints([...inner.sequences, ...outer.sequences, ...slow.sequences])
  const apis = Object.entries({ '/inner': inner, '/outer': outer, '/slow': slow })
  await gateway.deploy({
    apis: apis.map(([context, mediation]) => ({ context, port: 1, overrides: { mediation } })),
    sequenceEndpoints,
  })
  const first = ask(gateway.port, '/slow')
  const peer = await held.promise
  const second = ask(gateway.port, '/outer')
  await eventually('the inner request waits', () => gateway.metrics().counts.workerWaits > 0)
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  assert.deepEqual([(await first).status, (await second).body], [200, '{"in":1}'])
})

/** Returns a behaviour of a backend: the first request waits for the second one, then both are answered. */
function answerInPairs(): (request: unknown, peer: Peer) => null {
  const gates: Peer[] = []
  return (_, peer) => {
    gates.push(peer)
    if (gates.length === 2) for (const gate of gates) gate.send('HTTP/1.1 204 No Content\r\n\r\n')
    return null
  }
}

test('D531: of several calls that would wait for each other one is 508, and the others go on', async t => {
  const backend = await startBackend(t, { '/gate': answerInPairs() })
  const row = { ...workers.limits.plain, core: 2, max: 2, queueLength: -1 }
  const pool = { ...workers, limits: { ...workers.limits, plain: row } }
  const gateway = await startGateway([{ context: '/outer', port: 1 }], { workers: pool })
  t.after(() => gateway.stop())
  const inner = await flowsOf({
    request: '<payloadFactory media-type="json"><format>{"in":1}</format></payloadFactory><respond/>',
  })
  const outer = await flowsOf({
    request: `${callTo(backend.port, '/gate')}${callTo(gateway.port, '/inner')}<respond/>`,
  })
  const sequenceEndpoints = planEndpoints([...inner.sequences, ...outer.sequences])
  const apis = Object.entries({ '/inner': inner, '/outer': outer })
  await gateway.deploy({
    apis: apis.map(([context, mediation]) => ({ context, port: 1, overrides: { mediation } })),
    sequenceEndpoints,
  })
  const responses = await Promise.all([ask(gateway.port, '/outer'), ask(gateway.port, '/outer')])
  assert.deepEqual(responses.map(({ status }) => status).toSorted(), [200, 508])
  assert.match(responses.find(({ status }) => status === 508)!.body, /"code":102512/)
})

test('D642: of an http and an https message whose calls would wait for each other one is 508 at once', async t => {
  const backend = await startBackend(t, { '/gate': answerInPairs() })
  const row = { core: 1, max: 1, queueLength: -1 }
  const { plain, secured } = workers.limits
  const limits = { ...workers.limits, plain: { ...plain, ...row }, secured: { ...secured, ...row } }
  const tls = { kinds: ['http', 'https'], tlsServer: serverPlan(), tlsClients: { default: clientPlan() } } as const
  const gateway = await startGateway([{ context: '/inner', port: 1 }], { workers: { ...workers, limits }, ...tls })
  t.after(() => gateway.stop())
  const [http, https] = gateway.ports
  const inner = await flowsOf({
    request: '<payloadFactory media-type="json"><format>{"in":1}</format></payloadFactory><respond/>',
  })
  const calling = (url: string) => {
    const call = `<call><endpoint><address uri="${url}/inner"/></endpoint></call>`
    return flowsOf({ request: `${callTo(backend.port, '/gate')}${call}<respond/>` })
  }
  const toSecured = await calling(`https://localhost:${https}`)
  const toPlain = await calling(`http://localhost:${http}`)
  const apis = Object.entries({ '/inner': inner, '/to-secured': toSecured, '/to-plain': toPlain })
  await gateway.deploy({
    apis: apis.map(([context, mediation]) => ({ context, port: 1, overrides: { mediation } })),
    sequenceEndpoints: planEndpoints(apis.flatMap(([, { sequences }]) => sequences)),
  })
  const overTls = async () => {
    const { peer } = await connectSecured(https!)
    peer.send('GET /to-plain HTTP/1.1\r\nHost: h\r\n\r\n')
    const response = await takeResponse(peer)
    peer.destroy()
    return response
  }
  const responses = await Promise.all([ask(http!, '/to-secured'), overTls()])
  assert.deepEqual(responses.map(({ status }) => status).toSorted(), [200, 508])
  assert.match(responses.find(({ status }) => status === 508)!.body, /"code":102512/)
})

const CHAINS: readonly (readonly [list: string, chain: CallChain | null])[] = [
  ['1.1 own', null],
  ['1.1 own (calls 2 1 1), 1.1 own (calls 2 1 1 t1)', null],
  ['1.1 own (calls 2 1 1 t0)', { depth: 2, plain: 1, secured: 1 }],
  ['1.1 OWN (Calls 3 1 1 t0), 1.1 own (calls 2 1 1 t0)', { depth: 3, plain: 1, secured: 1 }],
  ['1.1 other (calls 9 9 9 t0), 1.1 own (calls 1 0 0 t0), 1.1 own', { depth: 1, plain: 0, secured: 0 }],
  ['1.1 own (calls 1 t0), 1.1 own (calls 1 1 99999 t0)', null],
  ['1.1 own (calls 2 1 1 parallel t0)', { depth: 2, plain: 1, secured: 1, isParallel: true }],
]

test('D531: the comment of an own entry of Via says what a request is nested in', () => {
  for (const [list, chain] of CHAINS) assert.deepEqual(callChainOf(list, 'own', 't0'), chain, list)
})
