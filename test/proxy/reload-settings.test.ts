/**
 * Settings that a reload changes: each applies to open connections and to new ones, as the client and the backend see
 * it. A running timeout keeps its duration.
 */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { takeResponse } from '../harness/responses.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { deafListener } from '../harness/deaf-listener.ts'
import { type Changes, startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { valuesOf } from '../harness/strict-http.ts'
import { openTunnel } from '../harness/tunnels.ts'

/** A time limit that expires in the test; several ticks of the gateway's clock. */
const LIMIT_MS = 400
const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** Responds at once. */
const quick = await StrictBackend.listen()
after(() => quick.close())

interface Started {
  readonly gateway: TestGateway
  /** The test scripts its connections. */
  readonly backend: ScriptedBackend
}

async function start(t: TestContext, http: Readonly<Record<string, unknown>> = {}, reactors = 1): Promise<Started> {
  const backend = await ScriptedBackend.listen()
  const apis = [
    { context: '/t', port: backend.port },
    { context: '/echo', port: backend.port },
    { context: '/quick', port: quick.port },
  ]
  const gateway = await startGateway(apis, { http, reactors })
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

// ---- timeouts ------------------------------------------------------------------------------------------------------

interface TimeoutCase {
  readonly what: string
  readonly changes: Changes
  /** The request; the backend does not respond. */
  readonly request: string
  readonly status: number
}

const TIMEOUTS: readonly TimeoutCase[] = [
  { what: 'http.socket.timeout', changes: { http: { 'http.socket.timeout': LIMIT_MS } }, request: GET, status: 504 },
  { what: 'synapse.global_timeout_interval', changes: { responseTimeoutMs: LIMIT_MS }, request: GET, status: 504 },
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

for (const { what, changes, request, status } of TIMEOUTS) {
  test(`${what}: a reload changes the timeout of open and of new connections`, async t => {
    const { gateway } = await start(t)
    const open = await dial(t, gateway)
    open.send('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal((await takeResponse(open)).status, 200)
    await gateway.deploy(changes)
    for (const isNew of [false, true]) {
      const client = isNew ? await dial(t, gateway) : open
      client.send(request)
      assert.equal((await takeResponse(client)).status, status)
    }
  })
}

test('http.connection.timeout: a reload changes the timeout of new backend connections', async t => {
  const deaf = await deafListener()
  const gateway = await startGateway([{ context: '/t', port: deaf.port }])
  t.after(() => {
    gateway.stop()
    deaf.close()
  })
  const client = await dial(t, gateway)
  await gateway.deploy({ http: { 'http.connection.timeout': LIMIT_MS } })
  client.send(GET)
  assert.equal((await takeResponse(client)).status, 504)
  assert.equal(gateway.metrics().counts.timeoutConnect, 1)
})

test('keepalive.timeout: a reload changes the idle time of an open connection after its next request', async t => {
  const { gateway } = await start(t)
  const client = await dial(t, gateway)
  await gateway.deploy({ http: { 'keepalive.timeout': LIMIT_MS } })
  client.send('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeResponse(client)).status, 200)
  assert.equal(await client.untilEnd(), 'FIN')
  assert.equal(gateway.metrics().counts.timeoutSourceIdle, 1)
})

test('tunnel.idle_timeout: a reload changes the idle time of an open tunnel after its next byte', async t => {
  const { gateway, backend } = await start(t)
  const { client, peer } = await openTunnel(gateway, backend)
  await gateway.deploy({ http: { 'tunnel.idle_timeout': LIMIT_MS } })
  client.send('some bytes')
  await peer.untilText('some bytes')
  assert.equal(await client.untilEnd(), 'FIN')
  assert.equal(await peer.untilEnd(), 'FIN')
  assert.equal(gateway.metrics().counts.timeoutTunnelIdle, 1)
})

// ---- backend connections -------------------------------------------------------------------------------------------

/** Runs `count` exchanges at once; the backend responds when all requests have arrived. */
async function serveAtOnce(t: TestContext, { gateway, backend }: Started, count: number): Promise<void> {
  const clients = await Promise.all(Array.from({ length: count }, () => dial(t, gateway)))
  for (const client of clients) client.send(GET)
  const peers = await Promise.all(clients.map(() => backend.next()))
  await Promise.all(peers.map(peer => peer.untilText('\r\n\r\n')))
  for (const peer of peers) {
    peer.take()
    peer.send(OK)
  }
  for (const client of clients) assert.equal((await takeResponse(client)).status, 200)
}

for (const http of [{ 'sender.keepalive.timeout': 1000 }, { disable_connection_keepalive: true }]) {
  const [name] = Object.keys(http)
  test(`${name}: a reload closes idle backend connections, and busy ones after their response`, async t => {
    const { gateway, backend } = await start(t)
    await serveAtOnce(t, { gateway, backend }, 2)
    const client = await dial(t, gateway)
    client.send(GET)
    await eventually('the request at the backend', () => backend.peers.some(({ length }) => length > 0))
    assert.equal(gateway.metrics().counts.targetsOpen, 2)
    await gateway.deploy({ http })
    await eventually('one backend connection', () => gateway.metrics().counts.targetsOpen === 1)
    backend.peers.find(({ length }) => length > 0)!.send(OK)
    assert.equal((await takeResponse(client)).status, 200)
    await eventually('the end of all backend connections', () => gateway.metrics().counts.targetsOpen === 0)
    assert.equal(gateway.countedTargets(), 0)
  })
}

test('sender.keepalive.timeout: a reload with a longer time keeps backend connections', async t => {
  const { gateway, backend } = await start(t)
  await serveAtOnce(t, { gateway, backend }, 3)
  await gateway.deploy({ http: { 'sender.keepalive.timeout': 3_600_000 } })
  assert.equal(gateway.metrics().counts.targetsOpen, 3)
})

test('http.max.connection.per.host.port: a reload closes idle connections and limits new ones', async t => {
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
  assert.equal((await takeResponse(clients[2]!)).status, 503)
  await gateway.deploy({ http: { 'http.max.connection.per.host.port': 3 } })
  clients[2]!.send(GET)
  await eventually('three backend connections', () => gateway.metrics().counts.targetsOpen === 3)
})

test('http.max.connection.per.host.port: with two reactors a reload keeps only the share of one', async t => {
  const { gateway, backend } = await start(t, {}, 2)
  await serveAtOnce(t, { gateway, backend }, 3)
  await gateway.deploy({ http: { 'http.max.connection.per.host.port': 2 } })
  assert.equal(gateway.metrics().counts.targetsOpen, 1)
})

test('http.max.connection.per.host.port: a reload closes busy connections after their response', async t => {
  const { gateway, backend } = await start(t)
  const clients = [await dial(t, gateway), await dial(t, gateway), await dial(t, gateway)]
  for (const client of clients) client.send(GET)
  const peers = [await backend.next(), await backend.next(), await backend.next()]
  await Promise.all(peers.map(peer => peer.untilText('\r\n\r\n')))
  await gateway.deploy({ http: { 'http.max.connection.per.host.port': 1 } })
  assert.equal(gateway.metrics().counts.targetsOpen, 3)
  for (const peer of peers) peer.send(OK)
  for (const client of clients) assert.equal((await takeResponse(client)).status, 200)
  await eventually('one backend connection', () => gateway.metrics().counts.targetsOpen === 1)
})

// ---- clients -------------------------------------------------------------------------------------------------------

test('max_open_connections: a reload keeps open connections and applies to new ones', async t => {
  const { gateway } = await start(t)
  const open = [await dial(t, gateway), await dial(t, gateway), await dial(t, gateway)]
  await eventually('three connections', () => gateway.metrics().counts.connectionsOpen === 3)
  await gateway.deploy({ http: { max_open_connections: 2 } })
  const refused = new Peer(connect(gateway.port, '127.0.0.1'))
  assert.equal(await refused.untilEnd(), 'RST')
  for (const peer of open) {
    peer.send('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal((await takeResponse(peer)).status, 200)
  }
  await gateway.deploy({ http: { max_open_connections: 4 } })
  const fourth = await dial(t, gateway)
  fourth.send('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeResponse(fourth)).status, 200)
})

test('abort_on_half_close: a reload applies to a pending exchange', async t => {
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

test('pipeline.max_bytes: a reload changes how much is read before the response', async t => {
  const { gateway, backend } = await start(t)
  const client = await dial(t, gateway)
  await gateway.deploy({ http: { 'pipeline.max_bytes': 1 } })
  const read = () => gateway.metrics().counts.bytesFromClients
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  client.send(GET.slice(0, 9))
  await eventually('the first bytes of the second request', () => read() === GET.length + 9)
  client.send(GET.slice(9))
  await quiet()
  assert.equal(read(), GET.length + 9)
  peer.send(OK)
  assert.equal((await takeResponse(client)).status, 200)
  await peer.untilText('\r\n\r\n')
  peer.send(OK)
  assert.equal((await takeResponse(client)).status, 200)
})

test('body.max_bytes: a reload does not change the limit of a pending body', async t => {
  const { gateway, backend } = await start(t, { 'body.max_bytes': 10 })
  const client = await dial(t, gateway)
  client.send('POST /t/it HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n')
  const peer = await backend.next()
  await peer.untilText('hello')
  await gateway.deploy({ http: { 'body.max_bytes': 3 } })
  client.send('5\r\nworld\r\n0\r\n\r\n')
  await peer.untilText('0\r\n\r\n')
  peer.send(OK)
  assert.equal((await takeResponse(client)).status, 200)
})

test('sender.warnOnHTTP500: a reload changes which responses are logged', async t => {
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
    await eventually('the request at the backend', () => backend.peers.some(({ length }) => length > 0))
    const peer = backend.peers.find(({ length }) => length > 0)!
    await peer.untilText('\r\n\r\n')
    peer.take()
    peer.send('HTTP/1.1 500 Oh\r\nContent-Type: text/xml\r\nContent-Length: 0\r\n\r\n')
    assert.equal((await takeResponse(client)).status, 500)
    assert.equal(gateway.reports.filter(({ event }) => event === 'backend answered 500').length, warnings)
  }
})

// ---- settings that need a restart ----------------------------------------------------------------------------------

test('a reload does not change buffer sizes and the name of the correlation field', async t => {
  const { gateway } = await start(t)
  const sizes = { 'header.max_bytes': 65_536, 'response.header.max_bytes': 65_536, 'trailer.max_bytes': 65_536 }
  await gateway.deploy({
    http: { ...sizes, io_buffer_size: 65_536, 'correlation.header': 'x-id', 'header.max_count': 1 },
  })
  const client = await dial(t, gateway)
  client.send('GET /quick/some/where HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n')
  const { status, fields } = await takeResponse(client)
  assert.equal(status, 200)
  assert.ok(fields.has('activityid'))
  client.send(`GET /quick/ HTTP/1.1\r\nHost: a\r\nLong: ${'x'.repeat(20_000)}\r\n\r\n`)
  assert.equal((await takeResponse(client)).status, 431)
})

// ---- fields and limits of one request ------------------------------------------------------------------------------

/** Responds with Server and Date. */
const echo = await StrictBackend.listen(
  () => 'HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 2\r\n\r\nok',
)
after(() => echo.close())

interface FieldCase {
  readonly what: string
  readonly http: Readonly<Record<string, unknown>>
  readonly request: string
  /** The observed value: the status, or a field of the response or of the forwarded request. */
  readonly look: 'status' | `response ${string}` | `request ${string}`
  readonly before: string
  readonly after: string
}

const FIELDS = 'Host: shop.example\r\nUser-Agent: cat\r\nX-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n'
const GET_WITH_FIELDS = `GET /echo/some/where HTTP/1.1\r\n${FIELDS}\r\n`
const CHUNKED =
  'POST /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\nhello\r\n0\r\n\r\n'
const POST = 'POST /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello'
const BACKEND_HOST = `127.0.0.1:${echo.port}`

const CHANGES: readonly FieldCase[] = [
  {
    what: 'trusted_proxies',
    http: { trusted_proxies: ['127.0.0.0/8'] },
    request: GET_WITH_FIELDS,
    look: 'request X-Forwarded-For',
    before: '127.0.0.1',
    after: '192.0.2.1, 127.0.0.1',
  },
  {
    what: 'forwarded.headers, adding a field',
    http: { 'forwarded.headers': 'forwarded' },
    request: GET_WITH_FIELDS,
    look: 'request Forwarded',
    before: '',
    after: 'for=127.0.0.1;host="shop.example";proto=http',
  },
  {
    what: 'forwarded.headers, removing a field',
    http: { 'forwarded.headers': 'forwarded' },
    request: GET_WITH_FIELDS,
    look: 'request X-Forwarded-For',
    before: '127.0.0.1',
    after: '',
  },
  {
    what: 'trusted_proxies and forwarded.headers',
    http: { trusted_proxies: ['127.0.0.1'], 'forwarded.headers': 'forwarded' },
    request: GET_WITH_FIELDS,
    look: 'request Forwarded',
    before: '',
    after: 'for=192.0.2.1, for=127.0.0.1;host="shop.example";proto=http',
  },
  {
    what: 'http.headers.preserve with Host',
    http: { 'http.headers.preserve': ['Host'] },
    request: GET_WITH_FIELDS,
    look: 'request Host',
    before: BACKEND_HOST,
    after: 'shop.example',
  },
  {
    what: 'http.headers.preserve with Server',
    http: { 'http.headers.preserve': ['Server'] },
    request: GET_WITH_FIELDS,
    look: 'response Server',
    before: '',
    after: 'origin',
  },
  {
    what: 'preserve_http_server_name',
    http: { preserve_http_server_name: true },
    request: GET_WITH_FIELDS,
    look: 'response Server',
    before: '',
    after: 'origin',
  },
  {
    what: 'http.user.agent.preserve',
    http: { 'http.user.agent.preserve': false },
    request: GET_WITH_FIELDS,
    look: 'request User-Agent',
    before: 'cat',
    after: 'Sluice',
  },
  {
    what: 'disable_connection_keepalive',
    http: { disable_connection_keepalive: true },
    request: GET_WITH_FIELDS,
    look: 'request Connection',
    before: '',
    after: 'close',
  },
  { what: 'body.max_bytes', http: { 'body.max_bytes': 4 }, request: POST, look: 'status', before: '200', after: '400' },
  {
    what: 'body.max_bytes, for a chunked body',
    http: { 'body.max_bytes': 4 },
    request: CHUNKED,
    look: 'status',
    before: '200',
    after: '400',
  },
  {
    what: 'chunk.max_extension_bytes',
    http: { 'chunk.max_extension_bytes': 0 },
    request: CHUNKED,
    look: 'status',
    before: '200',
    after: '400',
  },
  {
    what: 'target.max_bytes',
    http: { 'target.max_bytes': 12 },
    request: GET_WITH_FIELDS,
    look: 'status',
    before: '200',
    after: '414',
  },
]

const DEFAULTS = {
  trusted_proxies: [],
  'forwarded.headers': 'x-forwarded',
  'http.headers.preserve': ['Content-Type'],
  preserve_http_server_name: false,
  'http.user.agent.preserve': true,
  disable_connection_keepalive: false,
  'body.max_bytes': -1,
  'chunk.max_extension_bytes': 1024,
  'target.max_bytes': 8192,
}

async function observe(client: Peer, { request, look }: FieldCase): Promise<string> {
  client.send(request)
  const { status, fields } = await takeResponse(client)
  const [how, ...name] = look.split(' ')
  if (how === 'status') return String(status)
  if (how === 'response') return fields.get(name[0]!.toLowerCase())?.join() ?? ''
  return valuesOf(echo.requests.at(-1)!.lines, name[0]!).join()
}

for (const change of CHANGES) {
  test(`${change.what}: a reload applies to open and to new connections, and can be reverted`, async t => {
    const gateway = await startGateway([{ context: '/echo', port: echo.port }])
    t.after(() => gateway.stop())
    const open = await dial(t, gateway)
    const other = await dial(t, gateway)
    assert.equal(await observe(open, change), change.before)
    assert.equal(await observe(other, change), change.before)
    await gateway.deploy({ http: change.http })
    assert.equal(await observe(open, change), change.after)
    assert.equal(await observe(await dial(t, gateway), change), change.after)
    const defaults = Object.keys(change.http).map(key => [key, DEFAULTS[key as keyof typeof DEFAULTS]])
    await gateway.deploy({ http: Object.fromEntries(defaults) })
    assert.equal(await observe(other, change), change.before)
    assert.equal(await observe(await dial(t, gateway), change), change.before)
    assert.deepEqual(echo.violations, [])
  })
}
