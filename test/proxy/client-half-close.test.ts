/**
 * RFC 9112 9.6: a client that has sent FIN still gets its responses. Its connection is closed when no response is
 * pending, without a lingering close. With `abort_on_half_close` the FIN ends the exchange instead.
 */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import { untilAllClosed } from '../harness/failures.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { switchingProtocols, takeHead, upgradeRequest } from '../harness/tunnels.ts'

/** A lingering close takes 2 s. */
const NO_LINGER_MS = 1800
const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'
const POST = 'POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

const backend = await ScriptedBackend.listen()
const apis = [
  { context: '/t', port: backend.port },
  { context: '/echo', port: backend.port },
]
let gateway: TestGateway

beforeEach(async () => {
  gateway = await startGateway(apis)
  backend.skip()
})
afterEach(() => gateway.stop())
after(() => backend.close())

/** Waits for the FIN of the gateway and checks that the connection is closed at once, without a counted fault. */
async function assertClosed(client: Peer): Promise<void> {
  const start = performance.now()
  assert.equal(await client.untilEnd(), 'FIN')
  await eventually('the connection to be closed', () => gateway.metrics().counts.connectionsOpen === 0)
  assert.ok(performance.now() - start < NO_LINGER_MS)
  assert.deepEqual(
    gateway.metrics().faults.filter(({ side, count }) => side === 'source' && count > 0),
    [],
  )
}

/** Sends a request; returns the backend connection that has its head. */
async function begin(client: Peer, request: string): Promise<Peer> {
  client.send(request)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  return peer
}

test('RFC 9112 9.6: a FIN on an idle connection closes the connection', async () => {
  const client = await connectPeer(gateway.port)
  client.end()
  await assertClosed(client)
})

test('RFC 9112 9.6: a FIN after a lone CR closes the connection', async () => {
  const client = await connectPeer(gateway.port)
  client.send('\r')
  client.end()
  await assertClosed(client)
})

for (const [name, request] of [
  ['a request', GET],
  ['a request with a body', POST],
] as const) {
  test(`RFC 9112 9.6: after ${name} and a FIN the response is sent with Connection: close`, async () => {
    const client = await connectPeer(gateway.port)
    const peer = await begin(client, request)
    client.end()
    await quiet()
    peer.send(OK)
    const response = await takeResponse(client)
    assert.equal(response.body, 'ok')
    assert.deepEqual(response.fields.get('connection'), ['close'])
    await assertClosed(client)
  })
}

test('RFC 9112 9.6: after a FIN within the response its rest is sent, and the backend stays connected', async () => {
  const client = await connectPeer(gateway.port)
  const peer = await begin(client, GET)
  peer.send(OK.slice(0, -1))
  await client.untilText('\r\n\r\no')
  client.end()
  await quiet()
  peer.send('k')
  assert.equal((await takeResponse(client)).body, 'ok')
  await assertClosed(client)
  peer.take()
  const next = await connectPeer(gateway.port)
  next.send(GET)
  await peer.untilText('\r\n\r\n')
  peer.send(OK)
  assert.equal((await takeResponse(next)).body, 'ok')
  next.destroy()
})

test('RFC 9112 9.6: after pipelined requests and a FIN only the last response has Connection: close', async () => {
  const client = await connectPeer(gateway.port)
  client.send(GET.repeat(3))
  client.end()
  const peer = await backend.next()
  const closes: boolean[] = []
  for (const body of ['1', '2', '3']) {
    await peer.untilText('\r\n\r\n')
    peer.take()
    peer.send(`HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n${body}`)
    const response = await takeResponse(client)
    assert.equal(response.body, body)
    closes.push(response.fields.get('connection')?.[0] === 'close')
  }
  assert.deepEqual(closes, [false, false, true])
  await assertClosed(client)
})

test('RFC 9110 7.8: a FIN after an upgrade request reaches the backend after its 101', async () => {
  const client = await connectPeer(gateway.port)
  const peer = await begin(client, upgradeRequest())
  client.end()
  await quiet()
  peer.send(switchingProtocols())
  await takeHead(client)
  assert.equal(await peer.untilEnd(), 'FIN')
  peer.send('still here')
  await client.untilText('still here')
  peer.end()
  assert.equal(await client.untilEnd(), 'FIN')
})

for (const [name, received] of [
  ['before the response', ''],
  ['within the response', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabcde'],
] as const) {
  test(`abort_on_half_close: a FIN ${name} ends the exchange`, async t => {
    const aborting = await startGateway(apis, { http: { abort_on_half_close: true } })
    t.after(() => aborting.stop())
    const client = await connectPeer(aborting.port)
    const peer = await begin(client, GET)
    peer.send(received)
    await client.until('the beginning of the response', ({ text }) => text.endsWith(received.slice(-5)))
    client.end()
    await peer.untilEnd()
    await client.untilEnd()
    assert.ok(client.text.endsWith(received.slice(-5)))
    await untilAllClosed(aborting)
  })
}
