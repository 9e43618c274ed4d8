/**
 * APIs that come, go and change while requests are served: whoever asks next sees what holds now, what is under way
 * goes on with what it was given, and nothing is left of what is gone.
 */
import { PLAIN_API } from '../harness/api-plan.ts'
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import type { Handler } from '../../src/exchange/contract.ts'
import type { ConnectionList } from '../../src/observe/connection-row.ts'
import type { ApiPlan } from '../../src/plan.ts'
import { takeAnswer } from '../harness/answers.ts'
import { CA } from '../harness/certificates.ts'
import { type Changes, startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { clientPlan, SECURED, SecuredBackend } from '../harness/secured-peers.ts'

const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

const closing: { close(): unknown }[] = []
after(() => {
  for (const it of closing) it.close()
})

interface Started {
  readonly gateway: TestGateway
  /** Two that answer everything with their name, but for /held, which is left to the tests. */
  readonly one: ScriptedBackend
  readonly two: ScriptedBackend
}

function answerOf(name: string): string {
  return `HTTP/1.1 200 OK\r\nContent-Length: ${name.length}\r\n\r\n${name}`
}

async function named(name: string): Promise<ScriptedBackend> {
  const backend = await ScriptedBackend.listen(peer => void serve(peer, name))
  closing.push(backend)
  return backend
}

async function serve(peer: Peer, name: string): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    if (peer.text.includes('/held')) return
    if (peer.text.includes('\r\n\r\n')) {
      peer.take()
      peer.send(answerOf(name))
    }
    await peer.changed()
  }
}

/** One API, /t, which `one` answers. */
async function start(t: TestContext, handlers: readonly Handler[] = []): Promise<Started> {
  const [one, two] = [await named('one'), await named('two')]
  const gateway = await startGateway([{ context: '/t', port: one.port }], {}, null, handlers)
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
  const { status, body } = await takeAnswer(client)
  return status === 200 ? body : String(status)
}

/** The request that is held, at its backend. */
async function held(backend: ScriptedBackend): Promise<Peer> {
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  return peer
}

async function targets(gateway: TestGateway): Promise<readonly string[]> {
  const query = { side: 'target', state: '', limit: 100 } as const
  const { rows } = (await gateway.reactor.answers.answer({ kind: 'connections', query })) as ConnectionList
  return rows.map(({ backend }) => backend)
}

async function nothingHeld(gateway: TestGateway): Promise<void> {
  await eventually('no connection to a back end', () => gateway.metrics().counts.targetsOpen === 0)
  assert.equal(gateway.heldRows(), 0)
  assert.deepEqual(await targets(gateway), [])
}

// ---- what the next request sees -------------------------------------------------------------------------------------

type Ports = Pick<Started, 'one' | 'two'>

interface Step {
  changes(backends: Ports): Changes
  /** Who answers /t and /u from then on. */
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

test('an open connection and a new one see on their next request what is deployed', async t => {
  const { gateway, ...backends } = await start(t)
  const lasting = await dial(t, gateway)
  assert.equal(await ask(lasting), 'one')
  assert.equal(await ask(lasting, '/u/it'), '404')
  for (const step of STEPS) {
    await gateway.deploy(step.changes(backends))
    for (const client of [lasting, await dial(t, gateway)]) {
      assert.equal(await ask(client), step.t)
      assert.equal(await ask(client, '/u/it'), step.u)
    }
  }
  await gateway.deploy({ removed: ['/t', '/u'] })
  await nothingHeld(gateway)
})

test('a path that is another: the base path of the endpoint, and a longer context that comes', async t => {
  const backend = await ScriptedBackend.listen()
  t.after(() => backend.close())
  const { gateway } = await start(t)
  await gateway.deploy({ apis: [{ context: '/t', port: backend.port }] })
  const client = await dial(t, gateway)
  const seen = async (): Promise<string> => {
    client.send(GET)
    await eventually('the request', () => backend.peers.some(({ text }) => text.includes('\r\n\r\n')))
    const peer = backend.peers.find(({ length }) => length > 0)!
    const [start = ''] = peer.take().split('\r\n')
    peer.send(answerOf('it'))
    await takeAnswer(client)
    return start
  }
  assert.equal(await seen(), 'GET /it HTTP/1.1')
  await gateway.deploy({ apis: [{ context: '/t', port: backend.port, basePath: '/base' }] })
  assert.equal(await seen(), 'GET /base/it HTTP/1.1')
  await gateway.deploy({ apis: [{ context: '/t/it', port: backend.port, basePath: '/longer' }] })
  assert.equal(await seen(), 'GET /longer HTTP/1.1')
  // The route has been the same all the time.
  assert.equal(gateway.metrics().counts.targetsOpened, 1)
})

test('pipelined requests: each has what holds when its turn comes', async t => {
  const { gateway, one, two } = await start(t)
  const client = await dial(t, gateway)
  client.send('GET /t/held HTTP/1.1\r\nHost: a\r\n\r\n'.concat(GET, 'GET /u/it HTTP/1.1\r\nHost: a\r\n\r\n', GET))
  const peer = await held(one)
  await gateway.deploy({
    apis: [
      { context: '/t', port: two.port },
      { context: '/u', port: two.port, basePath: '/u' },
    ],
  })
  peer.send(answerOf('held'))
  const bodies: string[] = []
  for (let i = 0; i < 4; i++) bodies.push((await takeAnswer(client)).body)
  assert.deepEqual(bodies, ['held', 'two', 'two', 'two'])
})

// ---- what is under way ----------------------------------------------------------------------------------------------

const FAREWELLS: readonly (readonly [name: string, changes: (backends: Ports) => Changes])[] = [
  ['its API is removed', () => ({ removed: ['/t'] })],
  ['its endpoint is another', ({ two }) => ({ apis: [{ context: '/t', port: two.port }] })],
  [
    'its route differs in something else',
    ({ one }) => ({ apis: [{ context: '/t', port: one.port, route: { connectsThroughProxy: true } }] }),
  ],
]

for (const [name, changes] of FAREWELLS) {
  test(`a long response goes on when ${name}; then its connection is closed`, async t => {
    const { gateway, ...backends } = await start(t)
    // One that is idle meanwhile.
    const { one } = backends
    const clients = [await dial(t, gateway), await dial(t, gateway)]
    for (const client of clients) client.send('GET /t/held HTTP/1.1\r\nHost: a\r\n\r\n')
    const [peer, idle] = [await held(one), await held(one)]
    idle.send(answerOf('held'))
    peer.send(`${CHUNKED}5\r\nhello\r\n`)
    await Promise.all(clients.map(client => client.untilText('hel')))
    await gateway.deploy(changes(backends))
    assert.equal(await idle.untilEnd(), 'FIN')
    assert.deepEqual(await targets(gateway), [`127.0.0.1:${one.port}`])
    assert.equal(gateway.heldRows(), 1)
    const text = 'x'.repeat(100_000)
    peer.send(`${text.length.toString(16)}\r\n${text}\r\n`)
    await gateway.deploy({})
    peer.send('0\r\n\r\n')
    const client = clients.find(each => each.text.includes('hello'))!
    await client.untilText('\r\n0\r\n\r\n')
    assert.equal(client.text.split('\r\n\r\n')[1]!.split('x').length - 1, text.length)
    await peer.untilEnd()
    await nothingHeld(gateway)
  })

  test(`an upload goes on when ${name}`, async t => {
    const { gateway, ...backends } = await start(t)
    const client = await dial(t, gateway)
    client.send('PUT /t/held HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n')
    const peer = await held(backends.one)
    client.send(Buffer.alloc(100_000, 'x'))
    await peer.until('half of it', ({ length }) => length > 100_000)
    await gateway.deploy(changes(backends))
    client.send(Buffer.alloc(100_000, 'x'))
    await peer.until('all of it', ({ length }) => length > 200_000)
    peer.send(answerOf('thanks'))
    assert.equal((await takeAnswer(client)).body, 'thanks')
    await peer.untilEnd()
    await nothingHeld(gateway)
  })
}

test('a request that waits for a handler goes where it was meant to go, and leaves nothing', async t => {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  let asked = 0
  const handler: Handler = { name: 'waits', request: () => (asked++ === 0 ? promise : undefined) }
  const { gateway } = await start(t, [handler])
  const client = await dial(t, gateway)
  client.send(GET)
  await eventually('the handler', () => asked === 1)
  await gateway.deploy({ removed: ['/t'] })
  resolve(undefined)
  assert.equal((await takeAnswer(client)).body, 'one')
  assert.equal(await ask(client), '404')
  await nothingHeld(gateway)
})

test('a request on a connection that turns out to be dead is sent again, though its API is gone', async t => {
  const { gateway, one } = await start(t)
  const client = await dial(t, gateway)
  assert.equal(await ask(client), 'one')
  const peer = await one.next()
  client.send('GET /t/held HTTP/1.1\r\nHost: a\r\n\r\n')
  await peer.untilText('/held')
  await gateway.deploy({ removed: ['/t'] })
  peer.reset()
  const again = await held(one)
  assert.deepEqual(await targets(gateway), [`127.0.0.1:${one.port}`])
  again.send(answerOf('again'))
  assert.equal((await takeAnswer(client)).body, 'again')
  assert.equal(gateway.metrics().counts.retries, 1)
  await nothingHeld(gateway)
})

// ---- what is kept ---------------------------------------------------------------------------------------------------

test('a route that stays keeps its connections, whatever else of its API is another', async t => {
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

test('a route that comes back has connections of its own, while those of before end', async t => {
  const { gateway, one } = await start(t)
  const client = await dial(t, gateway)
  client.send('GET /t/held HTTP/1.1\r\nHost: a\r\n\r\n')
  const peer = await held(one)
  await gateway.deploy({ removed: ['/t'] })
  await gateway.deploy({ apis: [{ context: '/t', port: one.port }] })
  assert.equal(await ask(await dial(t, gateway)), 'one')
  assert.equal(gateway.heldRows(), 2)
  peer.send(answerOf('held'))
  assert.equal((await takeAnswer(client)).body, 'held')
  await peer.untilEnd()
  await eventually('one', () => gateway.metrics().counts.targetsOpen === 1)
  assert.equal(gateway.heldRows(), 1)
})

// ---- all or nothing -------------------------------------------------------------------------------------------------

test('what cannot be built changes nothing: neither APIs, nor settings, nor connections', async t => {
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
  const good = { http, apis: [{ context: '/t', port: two.port }], removed: ['/t'] }
  await assert.rejects(gateway.deploy({ ...good, planned: [empty] }), /the API Empty has no endpoint/)
  const odd = { odd: clientPlan({ ca: ['not a certificate'] }) }
  await assert.rejects(gateway.deploy({ ...good, tlsClients: odd }))
  assert.equal(await ask(client), 'one')
  assert.deepEqual(await targets(gateway), [`127.0.0.1:${one.port}`])
  assert.equal(gateway.metrics().counts.targetsOpened, 1)
  await gateway.deploy({ apis: good.apis })
  assert.equal(await ask(client), 'two')
})

// ---- TLS that nothing had so far ------------------------------------------------------------------------------------

test('the first secured route comes with a reload, and goes with one', async t => {
  const secured = await SecuredBackend.listen({}, peer => void serve(peer, 'secured'))
  closing.push(secured)
  const { gateway, one } = await start(t)
  const client = await dial(t, gateway)
  assert.equal(await ask(client), 'one')
  const api = { context: '/t', host: 'localhost', port: secured.port, route: SECURED }
  await gateway.deploy({ apis: [api], tlsClients: { default: clientPlan() } })
  assert.equal(await ask(client), 'secured')
  // A request over TLS whose connection is not open yet has all it needs, though nothing is secured any more.
  client.send('GET /t/held HTTP/1.1\r\nHost: a\r\n\r\n')
  const idle = secured.connections[0]!
  await idle.peer.untilText('/held')
  await gateway.deploy({ apis: [{ context: '/t', port: one.port }], tlsClients: {} })
  idle.tcp.resetAndDestroy()
  await eventually('another connection', () => secured.connections.length === 2)
  const { peer } = secured.connections[1]!
  await peer.untilText('/held')
  peer.send(answerOf('held'))
  assert.equal((await takeAnswer(client)).body, 'held')
  assert.equal(await ask(client), 'one')
  await gateway.deploy({ apis: [api], tlsClients: { default: clientPlan({ ca: [CA.cert] }) } })
  assert.equal(await ask(client), 'secured')
})

// ---- the end --------------------------------------------------------------------------------------------------------

test('a reload during a drain is harmless; what is under way is finished, and nothing is kept', async t => {
  const { gateway, one, two } = await start(t)
  const client = await dial(t, gateway)
  const idle = await dial(t, gateway)
  assert.equal(await ask(idle), 'one')
  client.send('GET /t/held HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('the request', () => one.peers.some(({ text }) => text.includes('/held')))
  const peer = one.peers.find(({ text }) => text.includes('/held'))!
  gateway.reactor.drain()
  await gateway.deploy({ apis: [{ context: '/t', port: two.port }], http: { 'keepalive.timeout': 1000 } })
  await quiet()
  peer.send(answerOf('held'))
  assert.equal((await takeAnswer(client)).body, 'held')
  await client.untilEnd()
  await nothingHeld(gateway)
  await gateway.deploy({ removed: ['/t'] })
  gateway.stop()
  await gateway.deploy({ apis: [{ context: '/t', port: one.port }] })
})
