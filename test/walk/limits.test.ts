/** Limits on how many and how much at once: connections in all, per client, per backend; pipelined bytes; idle ones. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { arena } from '../../src/http1/llhttp.ts'
import { assertFault, takeAnswer } from '../harness/answers.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, Peer, ScriptedBackend, turn } from '../harness/peers.ts'
import { IS_LONG } from '../harness/random.ts'

const MIB = 1024 * 1024
const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** Left to the tests. */
const backend = await ScriptedBackend.listen()
/** Answers every request that comes in one piece. */
const quick = await ScriptedBackend.listen(peer => void answerAll(peer))

async function answerAll(peer: Peer): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    await peer.untilAsked()
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
    http,
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

/** The reset may come before the client's own process has noticed that it is connected. */
async function assertRefused(gateway: TestGateway): Promise<void> {
  const peer = new Peer(connect(gateway.port, '127.0.0.1'))
  assert.equal(await peer.untilEnd(), 'RST')
  assert.equal(peer.text, '')
}

async function works(peer: Peer): Promise<void> {
  peer.send('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeAnswer(peer)).body, 'ok')
}

test('max_open_connections: one more is accepted, reset at once, and counted', async t => {
  const gateway = await start(t, { max_open_connections: 3 })
  const inside = [await dial(gateway), await dial(gateway), await dial(gateway)]
  for (const peer of inside) await works(peer)
  for (let attempt = 1; attempt <= 3; attempt++) {
    await assertRefused(gateway)
    assert.equal(gateway.metrics().counts.connectionsRefusedAtLimit, attempt)
  }
  for (const peer of inside) await works(peer)
  const { connectionsAccepted, connectionsOpen } = gateway.metrics().counts
  assert.deepEqual([connectionsAccepted, connectionsOpen], [3, 3])

  inside[0]!.end()
  await inside[0]!.untilEnd()
  await eventually('room', () => gateway.metrics().counts.connectionsOpen === 2)
  await works(await dial(gateway))
})

test('max_connections_per_client: counted by address, and by nobody else', async t => {
  const gateway = await start(t, { max_connections_per_client: 2 })
  const first = [await dial(gateway), await dial(gateway)]
  for (const peer of first) await works(peer)
  await assertRefused(gateway)
  await works(await dial(gateway, '127.0.0.2'))
  assert.equal(gateway.metrics().counts.connectionsRefusedPerClient, 1)
  assert.equal(gateway.metrics().counts.connectionsRefusedAtLimit, 0)

  first[0]!.reset()
  await eventually('room', () => gateway.metrics().counts.connectionsOpen === 2)
  await works(await dial(gateway))
  await assertRefused(gateway)
})

test('http.max.connection.per.host.port: a burst beyond it is answered 503 at once, by all its APIs', async t => {
  const LIMIT = 4
  const gateway = await start(t, { 'http.max.connection.per.host.port': LIMIT })
  const clients: Peer[] = []
  for (let index = 0; index < LIMIT; index++) {
    const client = await dial(gateway)
    client.send(GET)
    clients.push(client)
  }
  const held: Peer[] = []
  for (let index = 0; index < LIMIT; index++) held.push(await backend.next())
  for (const path of ['/t/', '/other/', '/t/']) {
    const client = await dial(gateway)
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
    assertFault(await takeAnswer(client), 503, 101504, 0, false)
    // Another backend has a limit of its own.
    await works(client)
  }
  for (const [index, peer] of held.entries()) {
    await peer.untilText('\r\n\r\n')
    peer.send(OK)
    assert.equal((await takeAnswer(clients[index]!)).body, 'ok')
  }
  // All are idle now: further requests use them.
  clients[0]!.send('GET /other/again HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('the request', () => held.some(peer => peer.text.includes('/again ')))
  assert.equal(gateway.metrics().counts.targetsOpen, LIMIT + 1)
})

test('http.max.connection.per.host.port: pipelined requests need one connection', async t => {
  const gateway = await start(t, { 'http.max.connection.per.host.port': 1 })
  const client = await dial(gateway)
  client.send('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(20))
  for (let index = 0; index < 20; index++) assert.equal((await takeAnswer(client)).body, 'ok', `answer ${index}`)
  assert.equal(gateway.metrics().counts.targetsOpened, 1)
})

/** Turns of the event loop without progress after which a sender is taken to be stopped. */
const STILL_TURNS = 300

test('pipeline.max_bytes: what follows a request waits outside, and nothing of it is lost', async t => {
  const gateway = await start(t, { 'pipeline.max_bytes': 4096 })
  const client = await dial(gateway)
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  const { uncut } = arena
  const length = 32 * MIB
  client.send(`POST /t/next HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`)
  client.send(Buffer.alloc(length, 'x'))
  for (let still = 0, last = -1; still < STILL_TURNS; still++) {
    if (client.unsent !== last) still = 0
    last = client.unsent
    await turn()
  }
  assert.ok(client.unsent > 0, 'the client is held back')
  assert.ok(uncut - arena.uncut < MIB)
  assert.equal(peer.text, '')

  peer.send(OK)
  assert.equal((await takeAnswer(client)).body, 'ok')
  await peer.untilText('\r\n\r\n')
  await peer.untilLength(peer.text.indexOf('\r\n\r\n') + 4 + length)
  assert.ok(peer.text.startsWith('POST /next HTTP/1.1\r\n'))
  peer.send(OK)
  assert.equal((await takeAnswer(client)).body, 'ok')
})

test('pipeline.max_bytes: many small requests beyond it are all answered', async t => {
  const gateway = await start(t, { 'pipeline.max_bytes': 512 })
  const client = await dial(gateway)
  const REQUESTS = 2000
  client.send('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(REQUESTS))
  const answered = () => client.text.split('HTTP/1.1 200 OK\r\n').length - 1
  await client.until('all answers', () => answered() === REQUESTS && client.text.endsWith('ok'))
})

/** Descriptors that this process may still open. */
function spareDescriptors(): number {
  const report = process.report.getReport() as unknown as { userLimits: { open_files: { soft: number | string } } }
  const { soft } = report.userLimits.open_files
  return (typeof soft === 'number' ? soft : 1_000_000) - 500
}

const WANTED_IDLE = IS_LONG ? 10_000 : 600
// Both ends are in this process.
const IDLE = Math.min(WANTED_IDLE, Math.floor(spareDescriptors() / 2))

test(`${IDLE} idle connections are held while traffic flows`, async t => {
  const gateway = await start(t, {})
  const idle: Socket[] = []
  let closed = 0
  let answers = 0
  const open = async (): Promise<void> => {
    const socket = connect(gateway.port, '127.0.0.1')
    socket.on('close', () => closed++)
    socket.on('data', () => answers++)
    await once(socket, 'connect')
    socket.write('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(socket, 'data')
    idle.push(socket)
  }
  t.after(() => {
    for (const socket of idle) socket.destroy()
  })
  const { uncut } = arena
  while (idle.length < IDLE) await Promise.all(Array.from({ length: Math.min(100, IDLE - idle.length) }, open))
  // An idle connection holds a parser and nothing else.
  assert.ok(uncut - arena.uncut < IDLE * 200 + 16 * MIB, `${(uncut - arena.uncut) / IDLE} bytes each`)

  const client = await connectPeer(gateway.port)
  peers.push(client)
  for (let request = 0; request < 500; request++) await works(client)
  const fresh = await dial(gateway)
  await works(fresh)
  assert.equal(closed, 0)
  assert.equal(gateway.metrics().counts.connectionsOpen, IDLE + 2)

  const before = answers
  for (const socket of idle) socket.write('GET /quick/ HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('an answer on each', () => answers === before + IDLE)
  assert.equal(closed, 0)
})
