/**
 * Clients that are slow: to send a head, a body, another request, or to take what they asked for. Each wait has its
 * limit, and what the backend is slow at is not held against the client.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { assertFault, takeAnswer } from '../harness/answers.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'

/** Two ticks of the gateway's clock. */
const LIMIT_MS = 200
const BIG_BYTES = 32 * 1024 * 1024

const backend = await ScriptedBackend.listen()
after(() => backend.close())

interface Started {
  readonly gateway: TestGateway
  readonly client: Peer
}

async function start(t: { after(done: () => void): void }, http: Record<string, unknown>): Promise<Started> {
  const gateway = await startGateway([{ context: '/t', port: backend.port }], http)
  backend.skip()
  const client = await connectPeer(gateway.port)
  t.after(() => {
    client.destroy()
    gateway.stop()
  })
  return { gateway, client }
}

const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

function counted(gateway: TestGateway, side: 'source' | 'target', base: number, state: number): number {
  const row = gateway.metrics().faults.find(it => it.side === side && it.base === base && it.state === state)
  return row?.count ?? 0
}

/** The one warning that tells of the slow client. */
function warningOf(gateway: TestGateway): Readonly<Record<string, string | number>> {
  const lines = gateway.reports.filter(({ level }) => level === 'warn')
  assert.equal(lines.length, 1, JSON.stringify(gateway.reports))
  assert.equal(lines[0]!.event, 'client timed out')
  return lines[0]!.fields
}

async function allGone(gateway: TestGateway): Promise<void> {
  await eventually('all to be over', () => {
    const { connectionsOpen, targetsOpen } = gateway.metrics().counts
    return connectionsOpen === 0 && targetsOpen === 0
  })
}

test('a head that is not finished in time: 408', async t => {
  const { gateway, client } = await start(t, { 'header.read_timeout': LIMIT_MS })
  client.send('GET /t/it HTTP/1.1\r\nHost: a')
  assertFault(await takeAnswer(client), 408, 408, 0, true)
  assert.equal(await client.untilEnd(), 'FIN')
  const { STATE_DESCRIPTION: described, CONNECTION: connection, CORRELATION_ID: id, ...fields } = warningOf(gateway)
  assert.equal(typeof described, 'string')
  assert.equal(typeof id, 'string')
  assert.match(String(connection), /^http-incoming-\d+$/)
  assert.deepEqual(fields, {
    INTERNAL_STATE: 1,
    DIRECTION: 'REQUEST',
    CAUSE_OF_ERROR: `head not complete within ${LIMIT_MS} ms`,
    HTTP_URL: '',
    HTTP_METHOD: '',
    SOCKET_TIMEOUT: 180_000,
    CLIENT_ADDRESS: '127.0.0.1',
  })
  assert.equal(gateway.metrics().counts.timeoutRequestHead, 1)
  assert.equal(counted(gateway, 'source', 101001, 1), 1)
  assert.equal(gateway.metrics().counts.targetsOpened, 0)
})

test('a head that comes drop by drop gets no more time', async t => {
  const { client } = await start(t, { 'header.read_timeout': LIMIT_MS })
  client.send('GET /t/it HTTP/1.1\r\nX: ')
  while (client.length === 0) {
    client.send('x')
    await wait(LIMIT_MS / 10)
  }
  assert.equal((await takeAnswer(client)).status, 408)
})

test('a second request on a connection has as long as the first', async t => {
  const { gateway, client } = await start(t, { 'header.read_timeout': LIMIT_MS })
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.send(OK)
  await takeAnswer(client)
  client.send('GET /t')
  assert.equal((await takeAnswer(client)).status, 408)
  assert.equal(gateway.metrics().counts.timeoutRequestHead, 1)
})

test('a connection on which nothing ever comes is closed without a word', async t => {
  const { gateway, client } = await start(t, { 'header.read_timeout': LIMIT_MS })
  assert.equal(await client.untilEnd(), 'FIN')
  assert.equal(client.text, '')
  assert.deepEqual(gateway.reports, [])
  assert.equal(gateway.metrics().counts.connectionsOpen, 0)
})

test('an idle connection is closed without a word', async t => {
  const { gateway, client } = await start(t, { 'keepalive.timeout': LIMIT_MS })
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.send(OK)
  assert.equal((await takeAnswer(client)).body, 'ok')
  assert.equal(await client.untilEnd(), 'FIN')
  assert.equal(client.text, '')
  assert.deepEqual(gateway.reports, [])
  assert.equal(gateway.metrics().counts.timeoutSourceIdle, 1)
})

for (const [name, http, socketTimeout] of [
  ['body.read_timeout', { 'body.read_timeout': LIMIT_MS }, 180_000],
  ['http.socket.timeout', { 'http.socket.timeout': LIMIT_MS, 'body.read_timeout': 0 }, LIMIT_MS],
] as const) {
  for (const [what, framing, part] of [
    ['of a length', 'Content-Length: 10', '01234'],
    ['in chunks', 'Transfer-Encoding: chunked', '5\r\n01234\r\n'],
  ] as const) {
    test(`${name}: a body ${what} that stops coming: 408, and the backend's exchange is aborted`, async t => {
      const { gateway, client } = await start(t, http)
      client.send(`POST /t/it HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n${part}`)
      const peer = await backend.next()
      await peer.untilText('01234')
      assertFault(await takeAnswer(client), 408, 408, 0, true)
      assert.equal(await client.untilEnd(), 'FIN')
      await peer.untilEnd()
      assert.ok(peer.text.endsWith(part), 'no last chunk is made up')
      const fields = warningOf(gateway)
      assert.equal(fields.INTERNAL_STATE, 2)
      assert.equal(fields.HTTP_METHOD, 'POST')
      assert.equal(fields.HTTP_URL, '/t/it')
      assert.equal(fields.SOCKET_TIMEOUT, socketTimeout)
      assert.equal(gateway.metrics().counts.timeoutRequestBody, 1)
      assert.equal(counted(gateway, 'source', 101001, 2), 1)
      assert.equal(counted(gateway, 'target', 101509, 2), 1)
    })
  }
}

test('body.read_timeout: a body that comes drop by drop gets no more time', async t => {
  const { client } = await start(t, { 'body.read_timeout': LIMIT_MS })
  client.send('POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n')
  while (client.length === 0) {
    client.send('x')
    await wait(LIMIT_MS / 10)
  }
  assert.equal((await takeAnswer(client)).status, 408)
})

test('body.read_timeout: each 64 KiB get it anew', async t => {
  const PIECE = 65_536
  const PIECES = 5
  const { client } = await start(t, { 'body.read_timeout': 3 * LIMIT_MS })
  client.send(`POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: ${PIECE * PIECES}\r\n\r\n`)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  for (let piece = 1; piece <= PIECES; piece++) {
    client.send(Buffer.alloc(PIECE))
    await peer.untilLength(PIECE * piece)
    await wait(LIMIT_MS)
  }
  peer.send(OK)
  assert.equal((await takeAnswer(client)).body, 'ok')
})

test('a backend that takes its time with a body is not the fault of the client', async t => {
  const { gateway, client } = await start(t, { 'body.read_timeout': LIMIT_MS })
  client.send(`POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: ${BIG_BYTES}\r\n\r\n`)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.pause()
  client.send(Buffer.alloc(BIG_BYTES))
  await wait(3 * LIMIT_MS)
  peer.resume()
  await peer.untilLength(BIG_BYTES)
  peer.send(OK)
  assert.equal((await takeAnswer(client)).body, 'ok')
  assert.deepEqual(gateway.reports, [])
})

for (const [name, framing] of [
  ['of a length', `Content-Length: ${BIG_BYTES}`],
  ['in chunks', 'Transfer-Encoding: chunked'],
] as const) {
  test(`a client that takes no byte of a response ${name} is reset, and the backend's exchange aborted`, async t => {
    const { gateway, client } = await start(t, { 'http.socket.timeout': LIMIT_MS })
    client.pause()
    client.send(GET)
    const peer = await backend.next()
    await peer.untilText('\r\n\r\n')
    peer.send(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n`)
    const piece = Buffer.alloc(BIG_BYTES / 2)
    peer.send(framing.startsWith('C') ? piece : Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece]))
    await peer.untilEnd()
    client.resume()
    assert.equal(await client.untilEnd(), 'RST')
    const fields = warningOf(gateway)
    assert.equal(fields.INTERNAL_STATE, 5)
    assert.equal(fields.DIRECTION, 'RESPONSE')
    assert.equal(gateway.metrics().counts.timeoutSourceStalled, 1)
    assert.equal(counted(gateway, 'source', 101000, 5), 1)
    assert.equal(counted(gateway, 'target', 101509, 5), 1)
    assert.equal(counted(gateway, 'target', 101504, 5), 0, 'the backend is not to blame')
    await allGone(gateway)
  })
}

test('a client that takes its time with a response is not the fault of the backend', async t => {
  const { gateway, client } = await start(t, { 'http.socket.timeout': 5 * LIMIT_MS })
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${BIG_BYTES}\r\n\r\n`)
  peer.send(Buffer.alloc(BIG_BYTES))
  // Longer than the limit in all, but never silent for so long.
  for (let taken = 0; taken < BIG_BYTES; taken += BIG_BYTES / 8) {
    await client.untilLength(taken)
    client.pause()
    await wait(LIMIT_MS)
    client.resume()
  }
  await client.untilLength(BIG_BYTES)
  assert.deepEqual(gateway.reports, [])
})

test('a client that does not take the end of a whole response is closed in time', async t => {
  const { gateway, client } = await start(t, { 'http.socket.timeout': LIMIT_MS })
  const length = 8 * 1024 * 1024
  client.pause()
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`)
  peer.send(Buffer.alloc(length))
  await eventually('the client to be given up', () => gateway.metrics().counts.connectionsOpen === 0)
  client.resume()
  await client.untilEnd()
  assert.ok(client.length < length)
})
