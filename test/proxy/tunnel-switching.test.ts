/**
 * Upgrades (RFC 9110 7.8, 15.2.2): which 101 responses open a tunnel, which fields of the two heads are forwarded,
 * bytes before and after the heads, and connections after a refused upgrade.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertFault, takeResponse } from '../harness/responses.ts'
import { serverPlan, connectSecured } from '../harness/secured-peers.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { switchingProtocols, upgradeRequest, openTunnel, takeHead } from '../harness/tunnels.ts'

const backend = await ScriptedBackend.listen()
const plan = { kinds: ['http', 'ws', 'https', 'wss'], tlsServer: serverPlan() } as const
const gateway = await startGateway([{ context: '/echo', port: backend.port }], { accessLog: 'json', ...plan })
after(() => {
  gateway.stop()
  backend.close()
})

/** Sends a request; returns the client, the backend connection and the head of the forwarded request. */
async function forward(request: string): Promise<{ client: Peer; peer: Peer; head: string }> {
  const client = await connectPeer(gateway.port)
  client.send(request)
  const peer = await arrival()
  const head = peer.text.slice(0, peer.text.indexOf('\r\n\r\n') + 4)
  return { client, peer, head: peer.take(head.length) }
}

/** Waits for the next request on any backend connection. */
async function arrival(): Promise<Peer> {
  let peer: Peer | undefined
  await eventually('a request at the backend', () => {
    peer = backend.peers.find(({ text }) => text.includes('\r\n\r\n'))
    return peer !== undefined
  })
  return peer!
}

/** Resets the clients, then closes the backends; in this order no request is retried. */
async function closeAll(...clients: readonly Peer[]): Promise<void> {
  for (const client of clients) client.reset()
  await eventually('the end of all clients', () => gateway.metrics().counts.connectionsOpen === 0)
  for (const peer of backend.peers.splice(0)) peer.destroy()
  backend.skip()
}

// ---- forwarded heads -----------------------------------------------------------------------------------------------

test('RFC 6455 4.2.2: both heads are forwarded with the WebSocket fields and new hop-by-hop fields', async () => {
  const own = ['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version: 13']
  const { client, peer, head } = await forward(upgradeRequest('websocket', ...own, 'Keep-Alive: x'))
  const sent = head.split('\r\n')
  assert.deepEqual(
    sent.filter(line => /^(connection|upgrade|sec-websocket|keep-alive)/i.test(line)),
    [...own, 'Upgrade: websocket', 'Connection: Upgrade'],
  )
  const accept = 'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo='
  peer.send(switchingProtocols('WebSocket', accept, 'Keep-Alive: x', 'Content-Length: 5', 'Server: y'))
  const received = (await takeHead(client)).split('\r\n')
  assert.equal(received[0], 'HTTP/1.1 101 Switching Protocols')
  assert.deepEqual(
    received.slice(1).map(line => line.replace(/^activityid: .*/, 'activityid: …')),
    [accept, 'activityid: …', 'Upgrade: WebSocket', 'Connection: Upgrade', '', ''],
  )
  client.send('there')
  peer.send('back')
  await Promise.all([peer.untilText('there'), client.untilText('back')])
  await closeAll(client)
})

const accepted: readonly (readonly [string, string, string])[] = [
  ['the protocol in another case', 'WebSocket', 'webSOCKET'],
  ['one of several protocols', 'a, b/2', 'B/2'],
  ['several protocols', 'a, b/2', 'b/2, a'],
]
for (const [name, protocols, chosen] of accepted) {
  test(`RFC 9110 7.8: a 101 response with ${name} opens a tunnel`, async () => {
    const { client, peer } = await forward(upgradeRequest(protocols))
    peer.send(switchingProtocols(chosen))
    assert.match(await takeHead(client), /^HTTP\/1\.1 101 /)
    client.send('x')
    await peer.untilText('x')
    await closeAll(client)
  })
}

test('RFC 9110 10.1.1: a 100 response before the 101 response is forwarded', async () => {
  const { client, peer } = await forward(upgradeRequest('websocket', 'Expect: 100-continue'))
  peer.send(`HTTP/1.1 100 Continue\r\n\r\n${switchingProtocols()}`)
  assert.match(await takeHead(client), /^HTTP\/1\.1 100 /)
  assert.match(await takeHead(client), /^HTTP\/1\.1 101 /)
  await closeAll(client)
})

test('a 101 response that arrives byte by byte opens a tunnel', async () => {
  const { client, peer } = await forward(upgradeRequest())
  await peer.sendBytewise(`${switchingProtocols()}bytes after it`)
  await takeHead(client)
  await client.untilText('bytes after it')
  await closeAll(client)
})

// ---- invalid 101 responses -----------------------------------------------------------------------------------------

const PLAIN = 'GET /echo/x HTTP/1.1\r\nHost: a\r\n\r\n'
const WITH_BODY = upgradeRequest('websocket', 'Content-Length: 1').replace('GET', 'POST')
const refused: readonly (readonly [string, string, string, string])[] = [
  ['without an upgrade request', PLAIN, switchingProtocols(), 'without a request'],
  [
    'to an Upgrade that Connection does not name',
    upgradeRequest().replace('Connection: Upgrade', 'A: b'),
    switchingProtocols(),
    'without a request',
  ],
  ['to an upgrade to h2c only', upgradeRequest('h2c'), switchingProtocols('h2c'), 'without a request'],
  [
    'with h2c, which the gateway removed from the list,',
    upgradeRequest('h2c, websocket'),
    switchingProtocols('h2c'),
    'not asked for',
  ],
  ['with another protocol', upgradeRequest('a'), switchingProtocols('b'), 'not asked for'],
  ['with another version', upgradeRequest('a/1'), switchingProtocols('a/2'), 'not asked for'],
  ['without the requested version', upgradeRequest('a/1'), switchingProtocols('a'), 'not asked for'],
  ['with an additional protocol', upgradeRequest('a'), switchingProtocols('a, b'), 'not asked for'],
  ['without a protocol', upgradeRequest(), 'HTTP/1.1 101 S\r\nConnection: Upgrade\r\n\r\n', 'not asked for'],
  [
    'whose Connection does not name Upgrade',
    upgradeRequest(),
    'HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n',
    'does not name',
  ],
  ['of HTTP/1.0', upgradeRequest(), switchingProtocols().replace('1.1', '1.0'), 'HTTP/1.0 response'],
  ['to an HTTP/1.0 request', upgradeRequest().replace('1.1', '1.0'), switchingProtocols(), 'without a request'],
]
for (const [name, request, response, rule] of refused) {
  test(`RFC 9110 15.2.2: a 101 response ${name} causes 502, and nothing after it is read`, async () => {
    const { client, peer } = await forward(request)
    const reported = gateway.reports.length
    peer.send(`${response}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`)
    const fault = await takeResponse(client)
    assertFault(fault, 502, 101506, 3, request.includes('HTTP/1.0'))
    await peer.untilEnd()
    assert.match(String(gateway.reports[reported]?.fields.CAUSE_OF_ERROR), new RegExp(`^101 .*${rule}`))
    assert.equal(client.text, '')
    await closeAll(client)
  })
}

test('RFC 9110 7.8: Upgrade of a request with a body is stripped, and a 101 response causes 502', async () => {
  const { client, peer, head } = await forward(`${WITH_BODY}x`)
  assert.doesNotMatch(head, /upgrade/i)
  peer.send(switchingProtocols())
  assertFault(await takeResponse(client), 502, 101506, 3, false)
  await closeAll(client)
})

// ---- refused upgrades ----------------------------------------------------------------------------------------------

for (const [status, fields] of [
  [200, []],
  [400, []],
  [426, ['Connection: Upgrade', 'Upgrade: other/2, h2c']],
] as const) {
  test(`RFC 9110 7.8: a response ${status} to an upgrade leaves both connections open`, async () => {
    const { client, peer } = await forward(upgradeRequest())
    const lines = fields.map(line => `${line}\r\n`).join('')
    peer.send(`HTTP/1.1 ${status} X\r\n${lines}Content-Length: 2\r\n\r\nno`)
    const response = await takeResponse(client)
    assert.equal(response.status, status)
    assert.equal(response.body, 'no')
    // RFC 9110 15.5.22: 426 names the protocols to upgrade to.
    assert.deepEqual(response.fields.get('upgrade'), status === 426 ? ['other/2'] : undefined)
    client.send(PLAIN)
    await peer.untilText('\r\n\r\n')
    assert.equal(backend.peers.length, 1, 'the backend connection is reused')
    assert.doesNotMatch(peer.take(), /upgrade/i)
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes')
    assert.equal((await takeResponse(client)).body, 'yes')
    assert.equal(gateway.metrics().counts.tunnelsOpen, 0)
    await closeAll(client)
  })
}

test('RFC 9112 9.3.2: bytes pipelined after a refused upgrade are the next request', async () => {
  const { client, peer } = await forward(upgradeRequest() + PLAIN)
  await quiet()
  assert.equal(peer.text, '', 'the next request waits for the response')
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno')
  await takeResponse(client)
  await peer.untilText(' /x HTTP/1.1')
  await closeAll(client)
})

// ---- bytes around the heads ----------------------------------------------------------------------------------------

test('RFC 6455 4.1: bytes in one segment with the 101 response reach the client', async () => {
  const { client, peer } = await forward(upgradeRequest())
  peer.send(`${switchingProtocols()}first frame`)
  await takeHead(client)
  await client.untilText('first frame')
  peer.send(', second frame')
  await client.untilText('first frame, second frame')
  await closeAll(client)
})

test('RFC 9110 7.8: bytes after the upgrade request reach the backend unchanged after the 101 response', async () => {
  const { client, peer } = await forward(upgradeRequest() + PLAIN)
  await quiet()
  peer.send(switchingProtocols())
  await takeHead(client)
  await peer.untilText(PLAIN)
  assert.equal(peer.text, PLAIN)
  assert.equal(client.text, '')
  client.send(' and more')
  await peer.untilText(`${PLAIN} and more`)
  await closeAll(client)
})

test('the bytes that are read before the 101 response are bounded, and each byte arrives in order', async () => {
  const early = Buffer.alloc(3 * 1024 * 1024, Array.from({ length: 256 }, (_, byte) => byte) as never)
  for (let at = 0; at < early.length; at++) early[at] = (at * 7) % 251
  const { client, peer } = await forward(upgradeRequest())
  const before = gateway.metrics().counts.bytesFromClients
  client.send(early)
  await quiet()
  assert.ok(gateway.metrics().counts.bytesFromClients - before < 200_000, 'the gateway stops reading')
  peer.send(switchingProtocols())
  await takeHead(client)
  await peer.untilLength(early.length)
  assert.ok(peer.received.equals(early))
  await closeAll(client)
})

test('RFC 9112 9.6: the bytes and the FIN of a client that has ended before the 101 reach the backend', async () => {
  const { client, peer } = await forward(`${upgradeRequest()}all bytes`)
  client.end()
  await quiet()
  peer.send(switchingProtocols())
  await takeHead(client)
  assert.equal(await peer.untilEnd(), 'FIN')
  assert.equal(peer.text, 'all bytes')
  peer.send('a reply')
  peer.end()
  await client.untilText('a reply')
  assert.equal(await client.untilEnd(), 'FIN')
  await closeAll(client)
})

// ---- WebSocket listeners -------------------------------------------------------------------------------------------

const notWebSocket: readonly (readonly [string, string])[] = [
  ['a plain request', PLAIN],
  ['an upgrade to another protocol', upgradeRequest('other')],
  ['an upgrade with POST', upgradeRequest().replace('GET', 'POST')],
  ['an upgrade with a body', upgradeRequest('websocket', 'Content-Length: 1')],
  ['an upgrade of HTTP/1.0', upgradeRequest().replace('1.1', '1.0')],
  ['an Upgrade that Connection does not name', upgradeRequest().replace('Connection: Upgrade\r\n', '')],
]
for (const [name, request] of notWebSocket) {
  test(`RFC 9110 15.5.22: ${name} on a WebSocket listener gets 426`, async () => {
    const client = await connectPeer(gateway.ports[1]!)
    client.send(request)
    const response = await takeResponse(client)
    assert.equal(response.status, 426)
    assert.equal(response.reason, 'Upgrade Required')
    assert.deepEqual(response.fields.get('upgrade'), ['websocket'])
    assert.deepEqual(response.fields.get('connection'), ['Upgrade', 'close'])
    assert.equal(await client.untilEnd(), 'FIN')
    assert.equal(backend.peers.length, 0, 'the backend gets no connection')
    client.destroy()
  })
}

test('on a WebSocket listener only the protocol websocket is forwarded', async () => {
  const client = await connectPeer(gateway.ports[1]!)
  client.send(upgradeRequest('other, WebSocket'))
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  assert.match(peer.text, /\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n$/)
  await closeAll(client)
})

test('RFC 9112 3.2.2: absolute-form must have the scheme of the listener', async () => {
  const secured = await connectSecured(gateway.ports[2]!)
  secured.peer.send('GET https://a/echo/x HTTP/1.1\r\nHost: a\r\n\r\n')
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  assert.match(peer.text, /^GET \/x HTTP\/1\.1\r\n/)
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  assert.equal((await takeResponse(secured.peer)).body, 'ok')
  secured.peer.send('GET http://a/echo/x HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeResponse(secured.peer)).status, 400)
  secured.tcp.destroy()
  await closeAll()
})

test('a tunnel is counted, and listed on both sides', async () => {
  const before = gateway.metrics().counts
  const { client, peer } = await openTunnel(gateway, backend)
  const { counts } = gateway.metrics()
  assert.equal(counts.tunnelsOpened - before.tunnelsOpened, 1)
  assert.equal(counts.tunnelsOpen, 1)
  client.end()
  await peer.untilEnd()
  const response = gateway.reactor.inspector.serve({
    kind: 'connections',
    query: { side: '', state: 'TUNNEL_CLIENT_ENDED', limit: 9 },
  })
  const list = (await response) as { rows: readonly { side: string; path: string; partner: string }[] }
  assert.deepEqual(
    list.rows.map(({ side, path }) => `${side} ${path}`),
    ['source /echo/x', 'target /echo/x'],
  )
  peer.end()
  await client.untilEnd()
  await eventually('the end of the tunnel', () => gateway.metrics().counts.tunnelsOpen === 0)
  await closeAll(client)
})
