/** Limits of a reactor: client connections in total and per address, connections per backend, pipelined bytes. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { arena } from '../../src/http1/llhttp.ts'
import { assertFault, takeResponse } from '../harness/responses.ts'
import { countedFailures, failureLine } from '../harness/failures.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, Peer, ScriptedBackend, turn } from '../harness/peers.ts'
import { IS_LONG } from '../harness/random.ts'

const MIB = 1024 * 1024
const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** The tests script its connections. */
const backend = await ScriptedBackend.listen()
/** Responds to every request that arrives in one piece. */
const quick = await ScriptedBackend.listen(peer => void respondToAll(peer))

async function respondToAll(peer: Peer): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    await peer.untilRequest()
    if (peer.take() !== '') peer.send(OK)
  }
}

const peers: Peer[] = []
after(() => {
  for (const peer of peers) peer.destroy()
  backend.close()
  quick.close()
})

async function start(t: { after(done: () => void): void }, http: Record<string, unknown>): Promise<TestGateway> {
  const gateway = await startGateway(
    [
      { context: '/t', port: backend.port },
      { context: '/other', port: backend.port },
      { context: '/quick', port: quick.port },
    ],
    { http },
  )
  backend.skip()
  t.after(() => gateway.stop())
  return gateway
}

async function dial(gateway: TestGateway, localAddress = '127.0.0.1'): Promise<Peer> {
  const socket = connect({ port: gateway.port, host: '127.0.0.1', localAddress, allowHalfOpen: true })
  const peer = new Peer(socket)
  peers.push(peer)
  await once(socket, 'connect')
  return peer
}

/** Checks that a connection is reset, which the client may see before it sees that it is connected. */
async function assertRefused(gateway: TestGateway): Promise<void> {
  const peer = new Peer(connect(gateway.port, '127.0.0.1'))
  assert.equal(await peer.untilEnd(), 'RST')
  assert.equal(peer.text, '')
}

async function assertServed(peer: Peer): Promise<void> {
  peer.send('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeResponse(peer)).body, 'ok')
}

test('max_open_connections: a connection over the limit is reset and counted', async t => {
  const gateway = await start(t, { max_open_connections: 3 })
  const open = [await dial(gateway), await dial(gateway), await dial(gateway)]
  for (const peer of open) await assertServed(peer)
  for (let attempt = 1; attempt <= 3; attempt++) {
    await assertRefused(gateway)
    assert.equal(gateway.metrics().counts.connectionsRefusedAtLimit, attempt)
  }
  for (const peer of open) await assertServed(peer)
  const { connectionsAccepted, connectionsOpen } = gateway.metrics().counts
  assert.deepEqual([connectionsAccepted, connectionsOpen], [3, 3])

  open[0]!.end()
  await open[0]!.untilEnd()
  await eventually('the end of one connection', () => gateway.metrics().counts.connectionsOpen === 2)
  await assertServed(await dial(gateway))
})

test('max_connections_per_client: a connection over the limit of its address is reset and counted', async t => {
  const gateway = await start(t, { max_connections_per_client: 2 })
  const first = [await dial(gateway), await dial(gateway)]
  for (const peer of first) await assertServed(peer)
  await assertRefused(gateway)
  await assertServed(await dial(gateway, '127.0.0.2'))
  assert.equal(gateway.metrics().counts.connectionsRefusedPerClient, 1)
  assert.equal(gateway.metrics().counts.connectionsRefusedAtLimit, 0)

  first[0]!.reset()
  await eventually('the end of one connection', () => gateway.metrics().counts.connectionsOpen === 2)
  await assertServed(await dial(gateway))
  await assertRefused(gateway)
})

test('http.max.connection.per.host.port: a request over the limit gets 503 with 101600 in every API', async t => {
  const LIMIT = 4
  const gateway = await start(t, { 'http.max.connection.per.host.port': LIMIT })
  const clients: Peer[] = []
  for (let index = 0; index < LIMIT; index++) {
    const client = await dial(gateway)
    client.send(GET)
    clients.push(client)
  }
  const pending: Peer[] = []
  for (let index = 0; index < LIMIT; index++) pending.push(await backend.next())
  for (const path of ['/t/', '/other/', '/t/']) {
    const client = await dial(gateway)
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
    assertFault(await takeResponse(client), 503, 101600, 0, false)
    // The limit of another backend is separate.
    await assertServed(client)
  }
  for (const [index, peer] of pending.entries()) {
    await peer.untilText('\r\n\r\n')
    peer.send(OK)
    assert.equal((await takeResponse(clients[index]!)).body, 'ok')
  }
  // All connections are idle now: further requests reuse them.
  clients[0]!.send('GET /other/again HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('the request', () => pending.some(peer => peer.text.includes('/again ')))
  assert.equal(gateway.metrics().counts.targetsOpen, LIMIT + 1)
})

test('http.max.connection.per.host.port: a refusal is logged; a closed connection makes room', async t => {
  const gateway = await start(t, { 'http.max.connection.per.host.port': 1 })
  const first = await connectPeer(gateway.port)
  first.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  const second = await connectPeer(gateway.port)
  second.send(GET)
  assertFault(await takeResponse(second), 503, 101600, 0, false)
  const { level, fields } = failureLine(gateway, 0)
  assert.equal(level, 'warn')
  assert.equal(fields.ERROR_CODE, 101600)
  assert.equal(countedFailures(gateway, 101600, 0), 1)
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx')
  assert.equal((await takeResponse(first)).body, 'x')
  second.send(GET)
  const next = await backend.next()
  await next.untilText('\r\n\r\n')
  next.send('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny')
  assert.equal((await takeResponse(second)).body, 'y')
  assert.equal(gateway.metrics().counts.targetsOpen, 1)
  first.destroy()
  second.destroy()
})

test('http.max.connection.per.host.port: pipelined requests of one client use one backend connection', async t => {
  const gateway = await start(t, { 'http.max.connection.per.host.port': 1 })
  const client = await dial(gateway)
  client.send('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(20))
  for (let index = 0; index < 20; index++) assert.equal((await takeResponse(client)).body, 'ok', `response ${index}`)
  assert.equal(gateway.metrics().counts.targetsOpened, 1)
})

/** A sender without progress for so many turns of the event loop has stopped. */
const STILL_TURNS = 300

test('pipeline.max_bytes: bytes over the limit are not read before the response, and none is lost', async t => {
  const gateway = await start(t, { 'pipeline.max_bytes': 4096 })
  const client = await dial(gateway)
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  const { unreservedBytes } = arena
  const length = 32 * MIB
  client.send(`POST /t/next HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`)
  client.send(Buffer.alloc(length, 'x'))
  for (let still = 0, last = -1; still < STILL_TURNS; still++) {
    if (client.unsent !== last) still = 0
    last = client.unsent
    await turn()
  }
  assert.ok(client.unsent > 0, 'the client is stopped')
  assert.ok(unreservedBytes - arena.unreservedBytes < MIB)
  assert.equal(peer.text, '')

  peer.send(OK)
  assert.equal((await takeResponse(client)).body, 'ok')
  await peer.untilText('\r\n\r\n')
  await peer.untilLength(peer.text.indexOf('\r\n\r\n') + 4 + length)
  assert.ok(peer.text.startsWith('POST /next HTTP/1.1\r\n'))
  peer.send(OK)
  assert.equal((await takeResponse(client)).body, 'ok')
})

test('pipeline.max_bytes: 2000 pipelined requests over the limit are all served', async t => {
  const gateway = await start(t, { 'pipeline.max_bytes': 512 })
  const client = await dial(gateway)
  const REQUESTS = 2000
  client.send('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(REQUESTS))
  const responses = () => client.text.split('HTTP/1.1 200 OK\r\n').length - 1
  await client.until('all responses', () => responses() === REQUESTS && client.text.endsWith('ok'))
})

/** File descriptors that this process may still open. */
function spareDescriptors(): number {
  const report = process.report.getReport() as unknown as { userLimits: { open_files: { soft: number | string } } }
  const { soft } = report.userLimits.open_files
  return (typeof soft === 'number' ? soft : 1_000_000) - 500
}

const WANTED_IDLE = IS_LONG ? 10_000 : 600
// Each connection takes two descriptors, because both ends are in this process.
const IDLE = Math.min(WANTED_IDLE, Math.floor(spareDescriptors() / 2))

test(`${IDLE} idle connections stay open while other requests are served`, async t => {
  const gateway = await start(t, {})
  const idle: Socket[] = []
  let closed = 0
  let responses = 0
  const open = async (): Promise<void> => {
    const socket = connect(gateway.port, '127.0.0.1')
    socket.on('close', () => closed++)
    socket.on('data', () => responses++)
    await once(socket, 'connect')
    socket.write('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(socket, 'data')
    idle.push(socket)
  }
  t.after(() => {
    for (const socket of idle) socket.destroy()
  })
  const { unreservedBytes } = arena
  while (idle.length < IDLE) await Promise.all(Array.from({ length: Math.min(100, IDLE - idle.length) }, open))
  // An idle connection holds a parser only.
  const reserved = unreservedBytes - arena.unreservedBytes
  assert.ok(reserved < IDLE * 200 + 16 * MIB, `${reserved / IDLE} bytes each`)

  const client = await connectPeer(gateway.port)
  peers.push(client)
  for (let request = 0; request < 500; request++) await assertServed(client)
  const fresh = await dial(gateway)
  await assertServed(fresh)
  assert.equal(closed, 0)
  assert.equal(gateway.metrics().counts.connectionsOpen, IDLE + 2)

  const before = responses
  for (const socket of idle) socket.write('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('a response on each connection', () => responses === before + IDLE)
  assert.equal(closed, 0)
})
