/**
 * CONNECTING: a backend connection that is being opened. UNWRITABLE, UNWRITABLE_HEAD and UNWRITABLE_BODY: a backend
 * that accepts no more of a request but may still respond (RFC 9112 9.5). Log events and codes have the documented
 * states.
 */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import type { ConnectionList } from '../../src/observe/connection-list.ts'
import { assertFault, takeResponse } from '../harness/responses.ts'
import { countedFailures, failureLine } from '../harness/failures.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { ScriptedDialer, type ScriptedSocket } from '../harness/scripted-dialer.ts'

const CONNECT_TIMEOUT_MS = 500
const backend = await ScriptedBackend.listen()
let gateway: TestGateway
let dialer: ScriptedDialer

beforeEach(async () => {
  dialer = new ScriptedDialer()
  gateway = await start()
})
afterEach(() => gateway.stop())

function start(http: Readonly<Record<string, unknown>> = {}): Promise<TestGateway> {
  const apis = [{ context: '/t', port: backend.port }]
  return startGateway(apis, { http, wrapDialer: level => dialer.wrap(level) })
}

after(() => backend.close())

const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'
const POST = 'POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n'

function list(): ConnectionList {
  const query = { side: 'target', state: '', limit: 10 } as const
  return gateway.reactor.inspector.serve({ kind: 'connections', query }) as ConnectionList
}

/** Numbers of backend connections by state. */
function states(): ConnectionList['counts']['target'] {
  return list().counts.target
}

// ---- CONNECTING -----------------------------------------------------------------------------------------------------

/** Sends a request whose backend connection stays CONNECTING until the test opens it. */
async function connecting(sent: string): Promise<{ client: Peer; socket: ScriptedSocket }> {
  dialer.opensAtOnce = false
  const client = await connectPeer(gateway.port)
  client.send(sent)
  await eventually('a dialled connection', () => dialer.sockets.length === 1)
  return { client, socket: dialer.sockets[0]! }
}

test('a backend connection is CONNECTING until it is open, and is listed with its exchange', async () => {
  const { client, socket } = await connecting(GET)
  assert.deepEqual(states(), { CONNECTING: 1 })
  const [row] = list().rows
  assert.deepEqual(
    [row?.state, row?.method, row?.path, row?.partner],
    ['CONNECTING', 'GET', '/t/it', 'http-incoming-1'],
  )
  socket.open()
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  assert.deepEqual(states(), { REQUEST_DONE: 1 })
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  assert.equal((await takeResponse(client)).status, 200)
  assert.deepEqual(states(), { REQUEST_READY: 1 })
  client.destroy()
})

test('a body that arrives in CONNECTING is sent after the head when the connection is open', async () => {
  const { client, socket } = await connecting(`${POST}01234`)
  client.send('56789')
  await quiet()
  assert.deepEqual(states(), { CONNECTING: 1 })
  socket.open()
  const peer = await backend.next()
  await peer.untilText('0123456789')
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  assert.equal((await takeResponse(client)).status, 200)
  client.destroy()
})

test('of a long body only the first read is taken in CONNECTING', async () => {
  const length = 4_000_000
  const { client, socket } = await connecting(`POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`)
  client.send('x'.repeat(length))
  await quiet()
  const read = gateway.metrics().counts.bytesFromClients
  assert.ok(read <= 200_000, `${read} bytes were read`)
  socket.open()
  const peer = await backend.next()
  await peer.untilLength(length)
  client.destroy()
})

test('a reset of the client in CONNECTING is logged as 101507 with state 0', async () => {
  const { client, socket } = await connecting(GET)
  client.reset()
  await eventually('the end of the connection', () => socket.isDestroyed)
  assert.equal(countedFailures(gateway, 101507, 0), 1)
  const { level, fields } = failureLine(gateway, 0)
  assert.equal(level, 'debug')
  assert.deepEqual(
    [fields.ERROR_CODE, fields.INTERNAL_STATE, fields.STATE_DESCRIPTION, fields.CAUSE_OF_ERROR],
    [101507, 0, 'target connection in REQUEST_READY', 'the client left'],
  )
  assert.deepEqual(states(), {})
})

test('a backend connection that does not open in time causes 504 with 101508 and state 0', async () => {
  gateway.stop()
  gateway = await start({ 'http.connection.timeout': CONNECT_TIMEOUT_MS })
  const { client, socket } = await connecting(GET)
  assertFault(await takeResponse(client), 504, 101508, 0, false)
  assert.ok(socket.isDestroyed)
  assert.equal(failureLine(gateway, 0).fields.INTERNAL_STATE, 0)
  client.destroy()
})

// ---- UNWRITABLE -----------------------------------------------------------------------------------------------------

/** Sends a part of a request, then makes the writes of its backend connection fail. */
async function unwritable(): Promise<{ client: Peer; peer: Peer }> {
  const client = await connectPeer(gateway.port)
  client.send(`${POST}01234`)
  const peer = await backend.next()
  await peer.untilText('01234')
  dialer.sockets[0]!.breakWrites()
  assert.deepEqual(states(), { UNWRITABLE: 1 })
  return { client, peer }
}

const REFUSAL = 'HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nabc'

test('RFC 9112 9.5: a response after a failed write is forwarded, and its backend connection is closed', async () => {
  const { client, peer } = await unwritable()
  peer.send(REFUSAL)
  const { status, body } = await takeResponse(client)
  assert.deepEqual([status, body], [413, 'abc'])
  assert.equal(await peer.untilEnd(), 'FIN')
  assert.deepEqual(states(), {})
  assert.deepEqual(gateway.reports, [])
  client.destroy()
})

test('RFC 9112 9.5: the rest of a request is read and discarded after a failed write', async () => {
  const { client, peer } = await unwritable()
  client.send('56789')
  await quiet()
  assert.deepEqual(states(), { UNWRITABLE: 1 })
  peer.send(REFUSAL)
  assert.equal((await takeResponse(client)).status, 413)
  assert.ok(peer.text.endsWith('\r\n\r\n01234'))
  client.destroy()
})

test('a 1xx response keeps the state UNWRITABLE, a final response leads to UNWRITABLE_BODY', async () => {
  const { client, peer } = await unwritable()
  peer.send('HTTP/1.1 102 Processing\r\n\r\n')
  await client.untilText('\r\n\r\n')
  assert.deepEqual(states(), { UNWRITABLE: 1 })
  peer.send(REFUSAL.slice(0, -2))
  await client.untilText('\r\n\r\na')
  assert.deepEqual(states(), { UNWRITABLE_BODY: 1 })
  peer.send(REFUSAL.slice(-2))
  await client.untilText('\r\n\r\nabc')
  assert.equal(await peer.untilEnd(), 'FIN')
  client.destroy()
})

test('a failed write during an early response leads to UNWRITABLE_BODY, and the response continues', async () => {
  const client = await connectPeer(gateway.port)
  client.send(`${POST}01234`)
  const peer = await backend.next()
  await peer.untilText('01234')
  peer.send(REFUSAL.slice(0, -2))
  await client.untilText('\r\n\r\na')
  assert.deepEqual(states(), { EARLY_BODY: 1 })
  dialer.sockets[0]!.breakWrites()
  assert.deepEqual(states(), { UNWRITABLE_BODY: 1 })
  peer.send(REFUSAL.slice(-2))
  await client.untilText('\r\n\r\nabc')
  assert.equal(await peer.untilEnd(), 'FIN')
  client.destroy()
})

test('RFC 9112 6.3: a response body after a failed write may end with the connection', async () => {
  const { client, peer } = await unwritable()
  peer.send('HTTP/1.1 413 Too Large\r\n\r\nabc')
  await client.untilText('abc')
  assert.deepEqual(states(), { UNWRITABLE_BODY: 1 })
  peer.end()
  await client.untilText('0\r\n\r\n')
  assert.deepEqual(gateway.reports, [])
  client.destroy()
})

/** Events in UNWRITABLE, the base code of the fault, and the logged cause. */
const ENDINGS: readonly (readonly [what: string, act: (peer: Peer) => void, base: number, cause: RegExp])[] = [
  ['no response within a second', () => {}, 101500, /^EPIPE$/],
  ['a FIN', peer => peer.end(), 101500, /^EPIPE$/],
  ['a reset', peer => peer.reset(), 101500, /^EPIPE$/],
  ['a malformed response', peer => peer.send('nonsense\r\n\r\n'), 101506, /RFC 9112/],
]
for (const [what, act, base, cause] of ENDINGS) {
  test(`${what} in UNWRITABLE causes 502 with ${base} + 2`, async () => {
    const { client, peer } = await unwritable()
    act(peer)
    assertFault(await takeResponse(client), 502, base, 2, true)
    const { fields } = failureLine(gateway, 0)
    assert.deepEqual([fields.BASE_ERROR_CODE, fields.INTERNAL_STATE], [base, 2])
    assert.match(String(fields.CAUSE_OF_ERROR), cause)
    assert.equal(countedFailures(gateway, base, 2), 1)
    client.destroy()
    peer.destroy()
  })
}

for (const [what, act] of [
  ['a FIN', (peer: Peer) => peer.end()],
  ['a reset', (peer: Peer) => peer.reset()],
] as const) {
  test(`${what} in UNWRITABLE_BODY causes 101501 + 5 and a reset of the client`, async () => {
    const { client, peer } = await unwritable()
    peer.send(REFUSAL.slice(0, -2))
    await client.untilText('\r\n\r\na')
    act(peer)
    assert.equal(await client.untilEnd(), 'RST')
    const { fields } = failureLine(gateway, 0)
    assert.deepEqual([fields.BASE_ERROR_CODE, fields.INTERNAL_STATE, fields.CAUSE_OF_ERROR], [101501, 5, 'EPIPE'])
  })
}

test('a reset of the client in UNWRITABLE is counted as 101509 + 2', async () => {
  const { client, peer } = await unwritable()
  client.reset()
  assert.equal(await peer.untilEnd(), 'FIN')
  assert.equal(countedFailures(gateway, 101509, 2), 1)
})

test('a failed write of a complete request causes 502 with 101501 + 3 at once', async () => {
  const client = await connectPeer(gateway.port)
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  dialer.sockets[0]!.breakWrites()
  assertFault(await takeResponse(client), 502, 101501, 3, false)
  assert.deepEqual(states(), {})
  client.destroy()
})
