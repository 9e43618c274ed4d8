/**
 * Timeouts of the client: a slow head, a slow body, an idle connection, and a response that the client does not read.
 * The time that the backend takes does not count against the client, and vice versa.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { assertFault, takeResponse } from '../harness/responses.ts'
import { countedFailures, untilAllClosed } from '../harness/failures.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'

/** A time limit that expires in the test; several ticks of the gateway's clock. */
const LIMIT_MS = 300
/** A time limit that must not expire in the test, although the test waits for about as long. */
const WIDE_LIMIT_MS = 1000
const BIG_BYTES = 32 * 1024 * 1024

const backend = await ScriptedBackend.listen()
after(() => backend.close())

interface Started {
  readonly gateway: TestGateway
  readonly client: Peer
}

async function start(t: { after(done: () => void): void }, http: Record<string, unknown>): Promise<Started> {
  const gateway = await startGateway([{ context: '/t', port: backend.port }], { http })
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

/** The fields of the only warning, `client timed out`. */
function warningOf(gateway: TestGateway): Readonly<Record<string, string | number>> {
  const lines = gateway.reports.filter(({ level }) => level === 'warn')
  assert.equal(lines.length, 1, JSON.stringify(gateway.reports))
  assert.equal(lines[0]!.event, 'client timed out')
  return lines[0]!.fields
}

test('header.read_timeout: an unfinished head gets 408', async t => {
  const { gateway, client } = await start(t, { 'header.read_timeout': LIMIT_MS })
  client.send('GET /t/it HTTP/1.1\r\nHost: a')
  assertFault(await takeResponse(client), 408, 408, 0, true)
  assert.equal(await client.untilEnd(), 'FIN')
  const { STATE_DESCRIPTION: description, CONNECTION: connection, CORRELATION_ID: id, ...fields } = warningOf(gateway)
  assert.equal(typeof description, 'string')
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
  assert.equal(countedFailures(gateway, 101001, 1, 'source'), 1)
  assert.equal(gateway.metrics().counts.targetsOpened, 0)
})

test('header.read_timeout: a head that arrives byte by byte gets 408 after the same time', async t => {
  const { client } = await start(t, { 'header.read_timeout': LIMIT_MS })
  client.send('GET /t/it HTTP/1.1\r\nX: ')
  while (client.length === 0) {
    client.send('x')
    await wait(LIMIT_MS / 10)
  }
  assert.equal((await takeResponse(client)).status, 408)
})

test('header.read_timeout: an unfinished head of a second request gets 408', async t => {
  const { gateway, client } = await start(t, { 'header.read_timeout': LIMIT_MS })
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.send(OK)
  await takeResponse(client)
  client.send('GET /t')
  assert.equal((await takeResponse(client)).status, 408)
  assert.equal(gateway.metrics().counts.timeoutRequestHead, 1)
})

test('header.read_timeout: a connection without a byte is closed without a response', async t => {
  const { gateway, client } = await start(t, { 'header.read_timeout': LIMIT_MS })
  assert.equal(await client.untilEnd(), 'FIN')
  assert.equal(client.text, '')
  assert.deepEqual(gateway.reports, [])
  assert.equal(gateway.metrics().counts.connectionsOpen, 0)
})

test('keepalive.timeout: an idle connection is closed without a response', async t => {
  const { gateway, client } = await start(t, { 'keepalive.timeout': LIMIT_MS })
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.send(OK)
  assert.equal((await takeResponse(client)).body, 'ok')
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
    ['with Content-Length', 'Content-Length: 10', '01234'],
    ['in chunks', 'Transfer-Encoding: chunked', '5\r\n01234\r\n'],
  ] as const) {
    test(`${name}: an unfinished body ${what} gets 408 and aborts the backend exchange`, async t => {
      const { gateway, client } = await start(t, http)
      client.send(`POST /t/it HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n${part}`)
      const peer = await backend.next()
      await peer.untilText('01234')
      assertFault(await takeResponse(client), 408, 408, 0, true)
      assert.equal(await client.untilEnd(), 'FIN')
      await peer.untilEnd()
      assert.ok(peer.text.endsWith(part), 'the gateway adds no last chunk')
      const fields = warningOf(gateway)
      assert.equal(fields.INTERNAL_STATE, 2)
      assert.equal(fields.HTTP_METHOD, 'POST')
      assert.equal(fields.HTTP_URL, '/t/it')
      assert.equal(fields.SOCKET_TIMEOUT, socketTimeout)
      assert.equal(gateway.metrics().counts.timeoutRequestBody, 1)
      assert.equal(countedFailures(gateway, 101001, 2, 'source'), 1)
      assert.equal(countedFailures(gateway, 101509, 2), 1)
    })
  }
}

test('body.read_timeout: a body that arrives byte by byte gets 408 after the same time', async t => {
  const { client } = await start(t, { 'body.read_timeout': LIMIT_MS })
  client.send('POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n')
  while (client.length === 0) {
    client.send('x')
    await wait(LIMIT_MS / 10)
  }
  assert.equal((await takeResponse(client)).status, 408)
})

test('body.read_timeout: the time starts again after each 64 KiB', async t => {
  const PIECE = 65_536
  const PIECES = 6
  const { client } = await start(t, { 'body.read_timeout': WIDE_LIMIT_MS })
  client.send(`POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: ${PIECE * PIECES}\r\n\r\n`)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  for (let piece = 1; piece <= PIECES; piece++) {
    client.send(Buffer.alloc(PIECE))
    await peer.untilLength(PIECE * piece)
    await wait((1.2 * WIDE_LIMIT_MS) / PIECES)
  }
  peer.send(OK)
  assert.equal((await takeResponse(client)).body, 'ok')
})

test('body.read_timeout: the time in which the backend does not read does not count', async t => {
  const { gateway, client } = await start(t, { 'body.read_timeout': WIDE_LIMIT_MS })
  client.send(`POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: ${BIG_BYTES}\r\n\r\n`)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.pause()
  client.send(Buffer.alloc(BIG_BYTES))
  await wait(1.2 * WIDE_LIMIT_MS)
  peer.resume()
  await peer.untilLength(BIG_BYTES)
  peer.send(OK)
  assert.equal((await takeResponse(client)).body, 'ok')
  assert.deepEqual(gateway.reports, [])
})

for (const [name, framing] of [
  ['with Content-Length', `Content-Length: ${BIG_BYTES}`],
  ['in chunks', 'Transfer-Encoding: chunked'],
] as const) {
  test(`http.socket.timeout: a client that does not read a response ${name} is reset`, async t => {
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
    assert.equal(countedFailures(gateway, 101000, 5, 'source'), 1)
    assert.equal(countedFailures(gateway, 101509, 5), 1)
    assert.equal(countedFailures(gateway, 101504, 5), 0, 'the backend did not time out')
    await untilAllClosed(gateway)
  })
}

test('http.socket.timeout: a client that reads slowly does not let the backend time out', async t => {
  const { gateway, client } = await start(t, { 'http.socket.timeout': WIDE_LIMIT_MS })
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${BIG_BYTES}\r\n\r\n`)
  peer.send(Buffer.alloc(BIG_BYTES))
  // Takes longer than the limit in total, but no single pause does.
  for (let taken = 0; taken < BIG_BYTES; taken += BIG_BYTES / 8) {
    await client.untilLength(taken)
    client.pause()
    await wait((1.2 * WIDE_LIMIT_MS) / 8)
    client.resume()
  }
  await client.untilLength(BIG_BYTES)
  assert.deepEqual(gateway.reports, [])
})

test('http.socket.timeout: a client that does not read the end of a complete response is closed', async t => {
  const { gateway, client } = await start(t, { 'http.socket.timeout': LIMIT_MS })
  const length = 8 * 1024 * 1024
  client.pause()
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`)
  peer.send(Buffer.alloc(length))
  await eventually('the end of the client connection', () => gateway.metrics().counts.connectionsOpen === 0)
  client.resume()
  await client.untilEnd()
  assert.ok(client.length < length)
})

/** A client that reads for a moment and pauses, again and again, until `isOver`. No pause is as long as a limit. */
async function readWithPauses(client: Peer, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    client.pause()
    await wait(LIMIT_MS / 3)
    const before = client.length
    client.resume()
    // On a busy machine a timer may end before the socket is read.
    do await wait(1)
    while (client.length === before && !isOver())
  }
}

for (const [rate, isReset] of [
  [1_000_000_000, true],
  [0, false],
] as const) {
  const what = isReset ? 'is reset' : 'gets all of it'
  test(`response.min_rate = ${rate}: a client that reads a response with many pauses ${what}`, async t => {
    // A pause may become longer where the client gets no processor.
    const timeoutMs = isReset ? 4 * LIMIT_MS : 2 * WIDE_LIMIT_MS
    const { gateway, client } = await start(t, { 'http.socket.timeout': timeoutMs, 'response.min_rate': rate })
    client.send(GET)
    const peer = await backend.next()
    await peer.untilText('\r\n\r\n')
    // More than a client gets before its pauses exceed the limit.
    const parts = isReset ? 4 : 1
    const length = parts * BIG_BYTES
    peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`)
    for (let part = 0; part < parts; part++) peer.send(Buffer.alloc(BIG_BYTES))
    await readWithPauses(client, () => client.ending !== '' || client.length > length)
    if (!isReset) {
      assert.deepEqual([client.ending, gateway.reports], ['', []])
      return
    }
    assert.ok(client.length < length)
    const { CAUSE_OF_ERROR: cause } = warningOf(gateway)
    assert.equal(cause, `fewer than ${rate} bytes per second taken (response.min_rate)`)
    assert.equal(gateway.metrics().counts.timeoutSourceStalled, 1)
    await untilAllClosed(gateway)
  })
}

test('header.read_timeout begins with the first byte, however long a new connection has waited for it', async t => {
  const { client } = await start(t, { 'header.read_timeout': 2 * LIMIT_MS })
  await wait(LIMIT_MS)
  const begun = performance.now()
  client.send('GET /t/it HTTP/1.1\r\n')
  assert.equal((await takeResponse(client)).status, 408)
  assert.ok(performance.now() - begun >= 2 * LIMIT_MS - 1)
})

test('sluice_requests_total counts requests whose head was read completely, and no others', async t => {
  const { gateway, client } = await start(t, { 'header.read_timeout': LIMIT_MS })
  client.send(GET.slice(0, 10))
  assert.equal((await takeResponse(client)).status, 408)
  const malformed = await connectPeer(gateway.port)
  malformed.send('nonsense\r\n\r\n')
  assert.equal((await takeResponse(malformed)).status, 400)
  assert.equal(gateway.metrics().counts.requests, 0)
  const refused = await connectPeer(gateway.port)
  refused.send('GET /none HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeResponse(refused)).status, 404)
  assert.equal(gateway.metrics().counts.requests, 1)
  for (const peer of [malformed, refused]) peer.destroy()
})
