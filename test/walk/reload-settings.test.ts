/**
 * Settings that a reload changes, each by what client and backend see of it: on connections that were open before, and
 * on new ones. A wait under way keeps the time that it began with.
 */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { takeAnswer } from '../harness/answers.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { deafListener } from '../harness/deaf-listener.ts'
import { type Changes, startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { openTunnel } from '../harness/tunnels.ts'

/** Two ticks of the gateway's clock. */
const LIMIT_MS = 200
const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** Answers at once. */
const quick = await AnsweringBackend.listen()
after(() => quick.close())

interface Started {
  readonly gateway: TestGateway
  /** Left to the test. */
  readonly backend: ScriptedBackend
}

async function start(t: TestContext, http: Readonly<Record<string, unknown>> = {}, reactors = 1): Promise<Started> {
  const backend = await ScriptedBackend.listen()
  const apis = [
    { context: '/t', port: backend.port },
    { context: '/echo', port: backend.port },
    { context: '/quick', port: quick.port },
  ]
  const gateway = await startGateway(apis, http, null, [], { reactors })
  t.after(() => {
    gateway.stop()
    backend.close()
  })
  return { gateway, backend }
}

async function dial(t: TestContext, gateway: TestGateway): Promise<Peer> {
  const peer = await connectPeer(gateway.port)
  t.after(() => peer.destroy())
  return peer
}

// ---- times ---------------------------------------------------------------------------------------------------------

interface Wait {
  readonly what: string
  readonly changes: Changes
  /** What the client sends; the backend is silent. */
  readonly request: string
  readonly status: number
}

const WAITS: readonly Wait[] = [
  { what: 'http.socket.timeout', changes: { http: { 'http.socket.timeout': LIMIT_MS } }, request: GET, status: 504 },
  { what: 'the limit of all responses', changes: { responseMs: LIMIT_MS }, request: GET, status: 504 },
  {
    what: 'header.read_timeout',
    changes: { http: { 'header.read_timeout': LIMIT_MS } },
    request: 'GET /t/it HT',
    status: 408,
  },
  {
    what: 'body.read_timeout',
    changes: { http: { 'body.read_timeout': LIMIT_MS } },
    request: 'POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel',
    status: 408,
  },
]

for (const { what, changes, request, status } of WAITS) {
  test(`${what} is another on open connections and on new ones`, async t => {
    const { gateway } = await start(t)
    const lasting = await dial(t, gateway)
    lasting.send('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal((await takeAnswer(lasting)).status, 200)
    await gateway.deploy(changes)
    for (const isNew of [false, true]) {
      const client = isNew ? await dial(t, gateway) : lasting
      client.send(request)
      assert.equal((await takeAnswer(client)).status, status)
    }
  })
}

test('http.connection.timeout is another for connections that are opened from now on', async t => {
  const deaf = await deafListener()
  const gateway = await startGateway([{ context: '/t', port: deaf.port }])
  t.after(() => {
    gateway.stop()
    deaf.close()
  })
  const client = await dial(t, gateway)
  await gateway.deploy({ http: { 'http.connection.timeout': LIMIT_MS } })
  client.send(GET)
  assert.equal((await takeAnswer(client)).status, 504)
  assert.equal(gateway.metrics().counts.timeoutConnect, 1)
})

test('keepalive.timeout: a connection that has served once more is closed after the time of now', async t => {
  const { gateway } = await start(t)
  const client = await dial(t, gateway)
  await gateway.deploy({ http: { 'keepalive.timeout': LIMIT_MS } })
  client.send('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeAnswer(client)).status, 200)
  assert.equal(await client.untilEnd(), 'FIN')
  assert.equal(gateway.metrics().counts.timeoutSourceIdle, 1)
})

test('tunnel.idle_timeout: an open tunnel in which something moves has the time of now', async t => {
  const { gateway, backend } = await start(t)
  const { client, peer } = await openTunnel(gateway, backend)
  await gateway.deploy({ http: { 'tunnel.idle_timeout': LIMIT_MS } })
  client.send('a word')
  await peer.untilText('a word')
  assert.equal(await client.untilEnd(), 'FIN')
  assert.equal(await peer.untilEnd(), 'FIN')
  assert.equal(gateway.metrics().counts.timeoutTunnelIdle, 1)
})

// ---- connections to backends ---------------------------------------------------------------------------------------

/** So many exchanges at once, answered when all of them have reached the backend. */
async function serveAtOnce(t: TestContext, { gateway, backend }: Started, count: number): Promise<void> {
  const clients = await Promise.all(Array.from({ length: count }, () => dial(t, gateway)))
  for (const client of clients) client.send(GET)
  const reached = await Promise.all(clients.map(() => backend.next()))
  await Promise.all(reached.map(peer => peer.untilText('\r\n\r\n')))
  for (const peer of reached) {
    peer.take()
    peer.send(OK)
  }
  for (const client of clients) assert.equal((await takeAnswer(client)).status, 200)
}

for (const http of [{ 'sender.keepalive.timeout': 1000 }, { disable_connection_keepalive: true }]) {
  const [name] = Object.keys(http)
  test(`${name}: what is idle is closed, and what serves when it has served`, async t => {
    const { gateway, backend } = await start(t)
    await serveAtOnce(t, { gateway, backend }, 2)
    const client = await dial(t, gateway)
    client.send(GET)
    await eventually('the request', () => backend.peers.some(({ length }) => length > 0))
    assert.equal(gateway.metrics().counts.targetsOpen, 2)
    await gateway.deploy({ http })
    await eventually('one connection', () => gateway.metrics().counts.targetsOpen === 1)
    backend.peers.find(({ length }) => length > 0)!.send(OK)
    assert.equal((await takeAnswer(client)).status, 200)
    await eventually('none', () => gateway.metrics().counts.targetsOpen === 0)
    assert.equal(gateway.heldRows(), 0)
  })
}

test('a longer sender.keepalive.timeout leaves connections to backends as they are', async t => {
  const { gateway, backend } = await start(t)
  await serveAtOnce(t, { gateway, backend }, 3)
  await gateway.deploy({ http: { 'sender.keepalive.timeout': 3_600_000 } })
  assert.equal(gateway.metrics().counts.targetsOpen, 3)
})

test('http.max.connection.per.host.port: idle ones beyond it are closed, and one more is refused', async t => {
  const { gateway, backend } = await start(t)
  await serveAtOnce(t, { gateway, backend }, 5)
  assert.equal(gateway.metrics().counts.targetsOpen, 5)
  await gateway.deploy({ http: { 'http.max.connection.per.host.port': 2 } })
  assert.equal(gateway.metrics().counts.targetsOpen, 2)
  const clients = [await dial(t, gateway), await dial(t, gateway), await dial(t, gateway)]
  for (const client of clients) {
    client.send(GET)
    await quiet()
  }
  assert.equal((await takeAnswer(clients[2]!)).status, 503)
  await gateway.deploy({ http: { 'http.max.connection.per.host.port': 3 } })
  clients[2]!.send(GET)
  await eventually('three', () => gateway.metrics().counts.targetsOpen === 3)
})

test('http.max.connection.per.host.port: beside other reactors none idle is kept that they would miss', async t => {
  const { gateway, backend } = await start(t, {}, 2)
  await serveAtOnce(t, { gateway, backend }, 3)
  await gateway.deploy({ http: { 'http.max.connection.per.host.port': 2 } })
  assert.equal(gateway.metrics().counts.targetsOpen, 1)
})

test('http.max.connection.per.host.port: those beyond it that serve are closed when they have served', async t => {
  const { gateway, backend } = await start(t)
  const clients = [await dial(t, gateway), await dial(t, gateway), await dial(t, gateway)]
  for (const client of clients) client.send(GET)
  const reached = [await backend.next(), await backend.next(), await backend.next()]
  await Promise.all(reached.map(peer => peer.untilText('\r\n\r\n')))
  await gateway.deploy({ http: { 'http.max.connection.per.host.port': 1 } })
  assert.equal(gateway.metrics().counts.targetsOpen, 3)
  for (const peer of reached) peer.send(OK)
  for (const client of clients) assert.equal((await takeAnswer(client)).status, 200)
  await eventually('one', () => gateway.metrics().counts.targetsOpen === 1)
})

// ---- clients -------------------------------------------------------------------------------------------------------

test('max_open_connections: whoever is in stays, one more is refused', async t => {
  const { gateway } = await start(t)
  const inside = [await dial(t, gateway), await dial(t, gateway), await dial(t, gateway)]
  await eventually('three', () => gateway.metrics().counts.connectionsOpen === 3)
  await gateway.deploy({ http: { max_open_connections: 2 } })
  const refused = new Peer(connect(gateway.port, '127.0.0.1'))
  assert.equal(await refused.untilEnd(), 'RST')
  for (const peer of inside) {
    peer.send('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal((await takeAnswer(peer)).status, 200)
  }
  await gateway.deploy({ http: { max_open_connections: 4 } })
  const fourth = await dial(t, gateway)
  fourth.send('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeAnswer(fourth)).status, 200)
})

test('abort_on_half_close: an exchange under way whose client ends from now on', async t => {
  const { gateway, backend } = await start(t)
  const client = await dial(t, gateway)
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  await gateway.deploy({ http: { abort_on_half_close: true } })
  client.end()
  assert.equal(await client.untilEnd(), 'RST')
  await peer.untilEnd()
})

test('pipeline.max_bytes: what is read ahead of the answer', async t => {
  const { gateway, backend } = await start(t)
  const client = await dial(t, gateway)
  await gateway.deploy({ http: { 'pipeline.max_bytes': 1 } })
  const read = () => gateway.metrics().counts.bytesFromClients
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  client.send(GET.slice(0, 9))
  await eventually('the first piece', () => read() === GET.length + 9)
  client.send(GET.slice(9))
  await quiet()
  assert.equal(read(), GET.length + 9)
  peer.send(OK)
  assert.equal((await takeAnswer(client)).status, 200)
  await peer.untilText('\r\n\r\n')
  peer.send(OK)
  assert.equal((await takeAnswer(client)).status, 200)
})

test('body.max_bytes: a body under way keeps what it began with', async t => {
  const { gateway, backend } = await start(t, { 'body.max_bytes': 10 })
  const client = await dial(t, gateway)
  client.send('POST /t/it HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n')
  const peer = await backend.next()
  await peer.untilText('hello')
  await gateway.deploy({ http: { 'body.max_bytes': 3 } })
  client.send('5\r\nworld\r\n0\r\n\r\n')
  await peer.untilText('0\r\n\r\n')
  peer.send(OK)
  assert.equal((await takeAnswer(client)).status, 200)
})

test('sender.warnOnHTTP500', async t => {
  const { gateway, backend } = await start(t)
  const client = await dial(t, gateway)
  for (const [plain, warnings] of [
    ['', 0],
    ['text/xml', 1],
    ['text/plain', 1],
    ['*', 2],
  ] as const) {
    await gateway.deploy({ warnOn500: { plain, secured: '' } })
    client.send(GET)
    await eventually('the request', () => backend.peers.some(({ length }) => length > 0))
    const peer = backend.peers.find(({ length }) => length > 0)!
    await peer.untilText('\r\n\r\n')
    peer.take()
    peer.send('HTTP/1.1 500 Oh\r\nContent-Type: text/xml\r\nContent-Length: 0\r\n\r\n')
    assert.equal((await takeAnswer(client)).status, 500)
    assert.equal(gateway.reports.filter(({ event }) => event === 'back end answered 500').length, warnings)
  }
})

// ---- what is not live ----------------------------------------------------------------------------------------------

test('sizes that memory was cut by, and the name of the correlation field, stay as they are', async t => {
  const { gateway } = await start(t)
  const sizes = { 'header.max_bytes': 65_536, 'response.header.max_bytes': 65_536, 'trailer.max_bytes': 65_536 }
  await gateway.deploy({
    http: { ...sizes, io_buffer_size: 65_536, 'correlation.header': 'x-id', 'header.max_count': 1 },
  })
  const client = await dial(t, gateway)
  client.send('GET /quick/some/where HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n')
  const { status, fields } = await takeAnswer(client)
  assert.equal(status, 200)
  assert.ok(fields.has('activityid'))
  client.send(`GET /quick/ HTTP/1.1\r\nHost: a\r\nLong: ${'x'.repeat(20_000)}\r\n\r\n`)
  assert.equal((await takeAnswer(client)).status, 431)
})
