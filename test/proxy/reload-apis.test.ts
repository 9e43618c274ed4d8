/**
 * Reloads of APIs and endpoints while requests are served: the next request uses the new plan, a pending exchange
 * continues with the old plan, and removed routes leave no open connection.
 */
import { PLAIN_API } from '../harness/api-plan.ts'
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import { DEFAULT_ENDPOINT_SETTINGS, type EndpointSettings } from '../../src/apis/api-definition.ts'
import { monotonicMs } from '../../src/runtime/monotonic-clock.ts'
import { EndpointTable } from '../../src/proxy/target/endpoint-table.ts'
import type { ConnectionList } from '../../src/observe/connection-list.ts'
import type { ApiPlan, EndpointsPlan } from '../../src/plan/reactor-plan.ts'
import { takeResponse } from '../harness/responses.ts'
import { outcome, sendRequest, UnreliableBackend } from '../harness/unreliable-backend.ts'
import { CA } from '../harness/certificates.ts'
import { type Changes, startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { flowsOf } from '../harness/flows.ts'
import { startCalls } from '../harness/sequence-calls.ts'
import { clientPlan, SECURED, SecuredBackend } from '../harness/secured-peers.ts'

const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'
const KEPT_ON_WORKERS = '<payloadFactory media-type="json"><format>{"kept":true}</format><args/></payloadFactory>'
const KEPT_ON_REACTORS = '<property name="HTTP_SC" value="203" scope="axis2"/>'
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

const closeables: { close(): unknown }[] = []
after(() => {
  for (const it of closeables) it.close()
})

interface Started {
  readonly gateway: TestGateway
  /** Backends that respond with their names, except to /pending, which the test responds to. */
  readonly one: ScriptedBackend
  readonly two: ScriptedBackend
}

function responseOf(name: string): string {
  return `HTTP/1.1 200 OK\r\nContent-Length: ${name.length}\r\n\r\n${name}`
}

async function named(name: string): Promise<ScriptedBackend> {
  const backend = await ScriptedBackend.listen(peer => void serve(peer, name))
  closeables.push(backend)
  return backend
}

async function serve(peer: Peer, name: string): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    if (peer.text.includes('/pending')) return
    if (peer.text.includes('\r\n\r\n')) {
      peer.take()
      peer.send(responseOf(name))
    }
    await peer.changed()
  }
}

/** Starts a gateway with the API /t, whose backend is `one`. */
async function start(t: TestContext, filters: readonly Filter[] = []): Promise<Started> {
  const [one, two] = [await named('one'), await named('two')]
  const gateway = await startGateway([{ context: '/t', port: one.port }], { filters })
  t.after(() => gateway.stop())
  return { gateway, one, two }
}

async function dial(t: TestContext, gateway: TestGateway): Promise<Peer> {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  return client
}

async function ask(client: Peer, target = '/t/it'): Promise<string> {
  client.send(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`)
  const { status, body } = await takeResponse(client)
  return status === 200 ? body : String(status)
}

/** Waits for a request to /pending on the next backend connection. */
async function pendingRequest(backend: ScriptedBackend): Promise<Peer> {
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  return peer
}

async function targets(gateway: TestGateway): Promise<readonly string[]> {
  const query = { side: 'target', state: '', limit: 100 } as const
  const { rows } = (await gateway.reactor.inspector.serve({ kind: 'connections', query })) as ConnectionList
  return rows.map(({ backend }) => backend)
}

async function assertNoTargets(gateway: TestGateway): Promise<void> {
  await eventually('the end of all backend connections', () => gateway.metrics().counts.targetsOpen === 0)
  assert.equal(gateway.countedTargets(), 0)
  assert.deepEqual(await targets(gateway), [])
}

// ---- the next request ----------------------------------------------------------------------------------------------

type Backends = Pick<Started, 'one' | 'two'>

interface Step {
  changes(backends: Backends): Changes
  /** Outcomes of requests to /t and /u after the step. */
  readonly t: string
  readonly u: string
}

const STEPS: readonly Step[] = [
  { changes: ({ two }) => ({ apis: [{ context: '/u', port: two.port }] }), t: 'one', u: 'two' },
  { changes: ({ two }) => ({ apis: [{ context: '/t', port: two.port }] }), t: 'two', u: 'two' },
  { changes: () => ({ removed: ['/t'] }), t: '404', u: 'two' },
  { changes: ({ one }) => ({ removed: ['/u'], apis: [{ context: '/t', port: one.port }] }), t: 'one', u: '404' },
  { changes: () => ({ removed: ['/t', '/never'] }), t: '404', u: '404' },
  { changes: () => ({}), t: '404', u: '404' },
  {
    changes: ({ one }) => ({
      removed: ['/t'],
      apis: [
        { context: '/t', port: one.port },
        { context: '/u', port: one.port },
      ],
    }),
    t: 'one',
    u: 'one',
  },
]

test('the next request on an open and on a new connection uses the deployed APIs', async t => {
  const { gateway, ...backends } = await start(t)
  const open = await dial(t, gateway)
  assert.equal(await ask(open), 'one')
  assert.equal(await ask(open, '/u/it'), '404')
  for (const step of STEPS) {
    await gateway.deploy(step.changes(backends))
    for (const client of [open, await dial(t, gateway)]) {
      assert.equal(await ask(client), step.t)
      assert.equal(await ask(client, '/u/it'), step.u)
    }
  }
  await gateway.deploy({ removed: ['/t', '/u'] })
  await assertNoTargets(gateway)
})

test('a changed base path and a longer context apply to the next request on the same backend connection', async t => {
  const backend = await ScriptedBackend.listen()
  t.after(() => backend.close())
  const { gateway } = await start(t)
  await gateway.deploy({ apis: [{ context: '/t', port: backend.port }] })
  const client = await dial(t, gateway)
  const forwarded = async (): Promise<string> => {
    client.send(GET)
    await eventually('the request at the backend', () => backend.peers.some(({ text }) => text.includes('\r\n\r\n')))
    const peer = backend.peers.find(({ length }) => length > 0)!
    const [start = ''] = peer.take().split('\r\n')
    peer.send(responseOf('it'))
    await takeResponse(client)
    return start
  }
  assert.equal(await forwarded(), 'GET /it HTTP/1.1')
  await gateway.deploy({ apis: [{ context: '/t', port: backend.port, basePath: '/base' }] })
  assert.equal(await forwarded(), 'GET /base/it HTTP/1.1')
  await gateway.deploy({ apis: [{ context: '/t/it', port: backend.port, basePath: '/longer' }] })
  assert.equal(await forwarded(), 'GET /longer HTTP/1.1')
  // The route did not change.
  assert.equal(gateway.metrics().counts.targetsOpened, 1)
})

test('each of several pipelined requests uses the plan at the time of its processing', async t => {
  const { gateway, one, two } = await start(t)
  const client = await dial(t, gateway)
  client.send('GET /t/pending HTTP/1.1\r\nHost: a\r\n\r\n'.concat(GET, 'GET /u/it HTTP/1.1\r\nHost: a\r\n\r\n', GET))
  const peer = await pendingRequest(one)
  await gateway.deploy({
    apis: [
      { context: '/t', port: two.port },
      { context: '/u', port: two.port, basePath: '/u' },
    ],
  })
  peer.send(responseOf('pending'))
  const bodies: string[] = []
  for (let i = 0; i < 4; i++) bodies.push((await takeResponse(client)).body)
  assert.deepEqual(bodies, ['pending', 'two', 'two', 'two'])
})

// ---- pending exchanges ---------------------------------------------------------------------------------------------

const CHANGES_OF_ROUTE: readonly (readonly [name: string, changes: (backends: Backends) => Changes])[] = [
  ['its API is removed', () => ({ removed: ['/t'] })],
  ['its endpoint changes', ({ two }) => ({ apis: [{ context: '/t', port: two.port }] })],
  [
    'another part of its route changes',
    ({ one }) => ({ apis: [{ context: '/t', port: one.port, route: { connectsThroughProxy: true } }] }),
  ],
]

for (const [name, changes] of CHANGES_OF_ROUTE) {
  test(`a pending response continues when ${name}, and its backend connection is closed afterwards`, async t => {
    const { gateway, ...backends } = await start(t)
    // The second connection is idle during the reload.
    const { one } = backends
    const clients = [await dial(t, gateway), await dial(t, gateway)]
    for (const client of clients) client.send('GET /t/pending HTTP/1.1\r\nHost: a\r\n\r\n')
    const [peer, idle] = [await pendingRequest(one), await pendingRequest(one)]
    idle.send(responseOf('pending'))
    peer.send(`${CHUNKED}5\r\nhello\r\n`)
    await Promise.all(clients.map(client => client.until('a response', ({ text }) => /hello|pending/.test(text))))
    await gateway.deploy(changes(backends))
    assert.equal(await idle.untilEnd(), 'FIN')
    assert.deepEqual(await targets(gateway), [`127.0.0.1:${one.port}`])
    assert.equal(gateway.countedTargets(), 1)
    const text = 'x'.repeat(100_000)
    peer.send(`${text.length.toString(16)}\r\n${text}\r\n`)
    await gateway.deploy({})
    peer.send('0\r\n\r\n')
    const client = clients.find(each => each.text.includes('hello'))!
    await client.untilText('\r\n0\r\n\r\n')
    assert.equal(client.text.split('\r\n\r\n')[1]!.split('x').length - 1, text.length)
    await peer.untilEnd()
    await assertNoTargets(gateway)
  })

  test(`a pending upload continues when ${name}`, async t => {
    const { gateway, ...backends } = await start(t)
    const client = await dial(t, gateway)
    client.send('PUT /t/pending HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n')
    const peer = await pendingRequest(backends.one)
    client.send(Buffer.alloc(100_000, 'x'))
    await peer.until('half of the body', ({ length }) => length > 100_000)
    await gateway.deploy(changes(backends))
    client.send(Buffer.alloc(100_000, 'x'))
    await peer.until('the whole body', ({ length }) => length > 200_000)
    peer.send(responseOf('thanks'))
    assert.equal((await takeResponse(client)).body, 'thanks')
    await peer.untilEnd()
    await assertNoTargets(gateway)
  })
}

test('a request that waits in a filter is sent to its old route, which is closed afterwards', async t => {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  let calls = 0
  const filter: Filter = { name: 'waits', request: () => (calls++ === 0 ? promise : undefined) }
  const { gateway } = await start(t, [filter])
  const client = await dial(t, gateway)
  client.send(GET)
  await eventually('the call of the filter', () => calls === 1)
  await gateway.deploy({ removed: ['/t'] })
  resolve(undefined)
  assert.equal((await takeResponse(client)).body, 'one')
  assert.equal(await ask(client), '404')
  await assertNoTargets(gateway)
})

test('RFC 9110 9.2.2: a request on a stale connection is retried although its API is removed', async t => {
  const { gateway, one } = await start(t)
  const client = await dial(t, gateway)
  assert.equal(await ask(client), 'one')
  const peer = await one.next()
  client.send('GET /t/pending HTTP/1.1\r\nHost: a\r\n\r\n')
  await peer.untilText('/pending')
  await gateway.deploy({ removed: ['/t'] })
  peer.reset()
  const retried = await pendingRequest(one)
  assert.deepEqual(await targets(gateway), [`127.0.0.1:${one.port}`])
  retried.send(responseOf('retried'))
  assert.equal((await takeResponse(client)).body, 'retried')
  assert.equal(gateway.metrics().counts.retries, 1)
  await assertNoTargets(gateway)
})

// ---- connection pools ----------------------------------------------------------------------------------------------

test('an unchanged route keeps its backend connections when other parts of its API change', async t => {
  const { gateway, one } = await start(t)
  const client = await dial(t, gateway)
  assert.equal(await ask(client), 'one')
  const changes: readonly Changes[] = [
    { apis: [{ context: '/t', port: one.port, basePath: '/base' }] },
    { apis: [{ context: '/u', port: one.port }] },
    { removed: ['/t'] },
    { apis: [{ context: '/t', port: one.port }], removed: ['/u'] },
  ]
  for (const change of changes) {
    await gateway.deploy(change)
    assert.deepEqual(await targets(gateway), [`127.0.0.1:${one.port}`])
  }
  assert.equal(await ask(client), 'one')
  assert.equal(gateway.metrics().counts.targetsOpened, 1)
})

test('a route that is removed and deployed again gets new connections, and the old ones end', async t => {
  const { gateway, one } = await start(t)
  const client = await dial(t, gateway)
  client.send('GET /t/pending HTTP/1.1\r\nHost: a\r\n\r\n')
  const peer = await pendingRequest(one)
  await gateway.deploy({ removed: ['/t'] })
  await gateway.deploy({ apis: [{ context: '/t', port: one.port }] })
  assert.equal(await ask(await dial(t, gateway)), 'one')
  assert.equal(gateway.countedTargets(), 2)
  peer.send(responseOf('pending'))
  assert.equal((await takeResponse(client)).body, 'pending')
  await peer.untilEnd()
  await eventually('one backend connection', () => gateway.metrics().counts.targetsOpen === 1)
  assert.equal(gateway.countedTargets(), 1)
})

// ---- all or nothing -------------------------------------------------------------------------------------------------

/** [what becomes of an API with a response flow, on workers or not, reloads, status and body of its response]. */
const FLOW_RELOADS: readonly (readonly [string, string, (port: number) => Changes, number, number, string])[] = [
  ['loses its flows', KEPT_ON_WORKERS, port => ({ apis: [{ context: '/a', port }] }), 1, 200, '{"kept":true}'],
  ['is removed', KEPT_ON_WORKERS, () => ({ removed: ['/a'] }), 1, 200, '{"kept":true}'],
  ['is removed', KEPT_ON_REACTORS, () => ({ removed: ['/a'] }), 1, 203, '{}'],
  ['is removed', KEPT_ON_WORKERS, () => ({ removed: ['/a'] }), 4, 200, '{"kept":true}'],
  ['is removed', KEPT_ON_WORKERS, () => ({ removed: ['/a'] }), 5, 500, ''],
]
for (const [what, response, changed, reloads, status, body] of FLOW_RELOADS) {
  const where = response === KEPT_ON_WORKERS ? 'workers' : 'reactors'
  const end = status === 500 ? 'is refused where' : 'runs its flow although'
  test(`D945: a response on ${where} ${end} its API ${what}, after ${reloads} reloads`, async t => {
    const backend = await ScriptedBackend.listen()
    closeables.push(backend)
    const { gateway } = await startCalls(t, { response }, backend.port)
    const client = await dial(t, gateway)
    client.send('GET /a/x HTTP/1.1\r\nHost: a\r\n\r\n')
    const peer = await backend.next()
    await peer.untilText('\r\n\r\n')
    await gateway.deploy(changed(backend.port))
    for (let n = 1; n < reloads; n++) {
      // Workers get another plan.
      const mediation = await flowsOf({ response: KEPT_ON_WORKERS })
      await gateway.deploy({ apis: [{ context: `/b${n}`, port: backend.port, overrides: { mediation } }] })
    }
    peer.send('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}')
    const answer = await takeResponse(client)
    assert.equal(answer.status, status)
    if (status !== 500) assert.equal(answer.body, body)
    else assert.match(answer.body, /102544/)
  })
}

test('a reload that cannot be applied changes no API, no setting and no connection', async t => {
  const { gateway, one, two } = await start(t)
  const client = await dial(t, gateway)
  assert.equal(await ask(client), 'one')
  const empty: ApiPlan = {
    ...PLAIN_API,
    name: 'Empty',
    paths: ['/empty'],
    endpoints: { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [] },
  }
  const http = { 'body.max_bytes': 0, 'target.max_bytes': 1 }
  const valid = { http, apis: [{ context: '/t', port: two.port }], removed: ['/t'] }
  await assert.rejects(gateway.deploy({ ...valid, planned: [empty] }), /the API Empty has no endpoint/)
  const invalid = { invalid: clientPlan({ ca: ['not a certificate'] }) }
  await assert.rejects(gateway.deploy({ ...valid, tlsClients: invalid }))
  assert.equal(await ask(client), 'one')
  assert.deepEqual(await targets(gateway), [`127.0.0.1:${one.port}`])
  assert.equal(gateway.metrics().counts.targetsOpened, 1)
  await gateway.deploy({ apis: valid.apis })
  assert.equal(await ask(client), 'two')
})

// ---- the first TLS route -------------------------------------------------------------------------------------------

test('the first TLS route is deployed by a reload and removed by another', async t => {
  const secured = await SecuredBackend.listen({}, peer => void serve(peer, 'secured'))
  closeables.push(secured)
  const { gateway, one } = await start(t)
  const client = await dial(t, gateway)
  assert.equal(await ask(client), 'one')
  const api = { context: '/t', host: 'localhost', port: secured.port, route: SECURED }
  await gateway.deploy({ apis: [api], tlsClients: { default: clientPlan() } })
  assert.equal(await ask(client), 'secured')
  // A pending request can still open a TLS connection after the last TLS route is removed.
  client.send('GET /t/pending HTTP/1.1\r\nHost: a\r\n\r\n')
  const idle = secured.connections[0]!
  await idle.peer.untilText('/pending')
  await gateway.deploy({ apis: [{ context: '/t', port: one.port }], tlsClients: {} })
  idle.tcp.resetAndDestroy()
  await eventually('the second backend connection', () => secured.connections.length === 2)
  const { peer } = secured.connections[1]!
  await peer.untilText('/pending')
  peer.send(responseOf('pending'))
  assert.equal((await takeResponse(client)).body, 'pending')
  assert.equal(await ask(client), 'one')
  await gateway.deploy({ apis: [api], tlsClients: { default: clientPlan({ ca: [CA.cert] }) } })
  assert.equal(await ask(client), 'secured')
})

// ---- draining ------------------------------------------------------------------------------------------------------

test('a reload during a drain lets a pending exchange finish and keeps no connection', async t => {
  const { gateway, one, two } = await start(t)
  const client = await dial(t, gateway)
  const idle = await dial(t, gateway)
  assert.equal(await ask(idle), 'one')
  client.send('GET /t/pending HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('the request at the backend', () => one.peers.some(({ text }) => text.includes('/pending')))
  const peer = one.peers.find(({ text }) => text.includes('/pending'))!
  gateway.reactor.drain()
  await gateway.deploy({ apis: [{ context: '/t', port: two.port }], http: { 'keepalive.timeout': 1000 } })
  await quiet()
  peer.send(responseOf('pending'))
  assert.equal((await takeResponse(client)).body, 'pending')
  await client.untilEnd()
  await assertNoTargets(gateway)
  await gateway.deploy({ removed: ['/t'] })
  gateway.stop()
  await gateway.deploy({ apis: [{ context: '/t', port: one.port }] })
})

// ---- endpoints -----------------------------------------------------------------------------------------------------

const LONG_MS = 3_600_000
const SLOTS = 16

interface StartedEndpoints {
  readonly gateway: TestGateway
  readonly table: EndpointTable
  readonly backends: readonly UnreliableBackend[]
}

/** The API /t with the endpoints of these slots; the slot is the index of the backend. */
function apiOf(
  backends: readonly UnreliableBackend[],
  slots: readonly number[],
  kind: EndpointsPlan['kind'],
  settings: Partial<EndpointSettings> = {},
): ApiPlan {
  const endpoints = slots.map(slot => {
    const { port } = backends[slot]!
    const route = { slot: slot + 3, secured: false, host: '127.0.0.1', port }
    return {
      slot,
      url: `http://127.0.0.1:${port}`,
      route: { ...route, tlsClient: '', proxy: null, connectsThroughProxy: false },
      basePath: '',
      settings: { ...DEFAULT_ENDPOINT_SETTINGS, eachFailureCounts: true, suspensionMs: LONG_MS, ...settings },
    }
  })
  return {
    ...PLAIN_API,
    name: 'T',
    paths: ['/t'],
    endpoints: { kind, algorithm: 'least_pending', failsOver: true, endpoints },
  }
}

async function startWithEndpoints(
  t: TestContext,
  slots: readonly number[],
  kind: EndpointsPlan['kind'],
): Promise<StartedEndpoints> {
  const backends = await Promise.all(['a', 'b', 'c', 'd'].map(name => UnreliableBackend.start(name)))
  const shared = EndpointTable.allocate(SLOTS, 1)
  const apis = [apiOf(backends, slots, kind)]
  const gateway = await startGateway([], { apis, endpoints: shared })
  t.after(async () => {
    gateway.stop()
    await Promise.all(backends.map(backend => backend.stop()))
  })
  return { gateway, backends, table: new EndpointTable(shared, 0, monotonicMs) }
}

test('an endpoint stays suspended over reloads, also in another position of its group', async t => {
  const { gateway, backends, table } = await startWithEndpoints(t, [0, 1], 'failover')
  backends[0]!.behaviour = 'resets'
  assert.equal(await outcome(gateway), 'b')
  assert.equal(table.read(0).state, 'SUSPENDED')
  backends[0]!.behaviour = 'responds'
  await gateway.deploy({ planned: [apiOf(backends, [0, 2], 'failover')] })
  assert.equal(await outcome(gateway), 'c')
  await gateway.deploy({ planned: [apiOf(backends, [0], 'single')] })
  assert.equal((await sendRequest(gateway)).status, 503)
  table.switchTo(0, DEFAULT_ENDPOINT_SETTINGS, false)
  table.switchTo(0, DEFAULT_ENDPOINT_SETTINGS, true)
  assert.equal(await outcome(gateway), 'a')
})

test('a request whose endpoint fails after the reload is sent to the next endpoint of its old group', async t => {
  const { gateway, backends } = await startWithEndpoints(t, [0, 1], 'failover')
  backends[0]!.behaviour = 'hangs'
  const client = await connectPeer(gateway.port)
  client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('the request at the backend', () => backends[0]!.held === 1)
  await gateway.deploy({ planned: [apiOf(backends, [2, 3], 'failover')] })
  await backends[0]!.stop()
  assert.equal((await takeResponse(client)).body, 'b')
  assert.equal(await outcome(gateway), 'c')
  await eventually('one backend connection', () => gateway.countedTargets() === 1)
  client.destroy()
})

test('pending requests sent before the reload count for an unchanged endpoint until they end', async t => {
  const { gateway, backends, table } = await startWithEndpoints(t, [0, 1], 'load_balance')
  for (const backend of backends) backend.behaviour = 'hangs'
  const clients = [await connectPeer(gateway.port), await connectPeer(gateway.port), await connectPeer(gateway.port)]
  for (const [at, client] of clients.entries()) {
    client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
    await eventually('the request at the backend', () => backends[0]!.held + backends[1]!.held === at + 1)
  }
  assert.deepEqual([table.pending(0), table.pending(1)], [2, 1])
  await gateway.deploy({ planned: [apiOf(backends, [0, 2], 'load_balance')] })
  backends[2]!.behaviour = 'responds'
  for (let i = 0; i < 3; i++) assert.equal(await outcome(gateway), 'c')
  for (const backend of backends) backend.respondToHeld()
  for (const client of clients) {
    assert.equal((await takeResponse(client)).status, 200)
    client.destroy()
  }
  assert.deepEqual([table.pending(0), table.pending(1), table.pending(2)], [0, 0, 0])
})

test('changed settings of an endpoint apply to the next request', async t => {
  const { gateway, backends, table } = await startWithEndpoints(t, [0], 'single')
  assert.equal(await outcome(gateway), 'a')
  backends[0]!.behaviour = 'hangs'
  await gateway.deploy({
    planned: [apiOf(backends, [0], 'single', { responseTimeoutMs: 200, retriesBeforeSuspension: 1 })],
  })
  assert.equal((await sendRequest(gateway)).status, 504)
  assert.equal(table.read(0).state, 'TIMEOUT')
  assert.equal(gateway.metrics().counts.targetsOpened, 1)
})
