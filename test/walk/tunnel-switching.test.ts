/**
 * Which 101 opens a tunnel and which request may ask for one (RFC 9110 7.8, 15.2.2), what passes of the two heads, what
 * becomes of bytes around them, and that a refused upgrade stays HTTP.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertFault, takeAnswer } from '../harness/answers.ts'
import { serverPlan, connectSecured } from '../harness/secured-peers.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { agreeing, asking, openTunnel, takeSwitch } from '../harness/tunnels.ts'

const backend = await ScriptedBackend.listen()
const plan = { kinds: ['http', 'ws', 'https', 'wss'], tlsServer: serverPlan() } as const
const gateway = await startGateway([{ context: '/echo', port: backend.port }], {}, 'json', [], plan)
after(() => {
  gateway.stop()
  backend.close()
})

/** A request on its way through the gateway, and the backend's connection that has it. */
async function asked(request: string): Promise<{ client: Peer; peer: Peer; head: string }> {
  const client = await connectPeer(gateway.port)
  client.send(request)
  const peer = await arrival()
  const head = peer.text.slice(0, peer.text.indexOf('\r\n\r\n') + 4)
  return { client, peer, head: peer.take(head.length) }
}

/** The next request, on whichever connection. */
async function arrival(): Promise<Peer> {
  let peer: Peer | undefined
  await eventually('a request at the back end', () => {
    peer = backend.peers.find(({ text }) => text.includes('\r\n\r\n'))
    return peer !== undefined
  })
  return peer!
}

/** Clients first: a request that they no longer wait for is not sent again. A reset ends a tunnel at once. */
async function forgetAll(...clients: readonly Peer[]): Promise<void> {
  for (const client of clients) client.reset()
  await eventually('the end of all clients', () => gateway.metrics().counts.connectionsOpen === 0)
  for (const peer of backend.peers.splice(0)) peer.destroy()
  backend.skip()
}

// ---- what passes ---------------------------------------------------------------------------------------------------

test('RFC 6455 4.2.2: both heads pass with what belongs to WebSocket, hop-by-hop fields are said anew', async () => {
  const own = ['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version: 13']
  const { client, peer, head } = await asked(asking('websocket', ...own, 'Keep-Alive: x'))
  const sent = head.split('\r\n')
  assert.deepEqual(
    sent.filter(line => /^(connection|upgrade|sec-websocket|keep-alive)/i.test(line)),
    [...own, 'Upgrade: websocket', 'Connection: Upgrade'],
  )
  const accept = 'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo='
  peer.send(agreeing('WebSocket', accept, 'Keep-Alive: x', 'Content-Length: 5', 'Server: y'))
  const got = (await takeSwitch(client)).split('\r\n')
  assert.equal(got[0], 'HTTP/1.1 101 Switching Protocols')
  assert.deepEqual(
    got.slice(1).map(line => line.replace(/^activityid: .*/, 'activityid: …')),
    [accept, 'activityid: …', 'Upgrade: WebSocket', 'Connection: Upgrade', '', ''],
  )
  client.send('there')
  peer.send('back')
  await Promise.all([peer.untilText('there'), client.untilText('back')])
  await forgetAll(client)
})

const agreed: readonly (readonly [string, string, string])[] = [
  ['in any case', 'WebSocket', 'webSOCKET'],
  ['one of a list', 'a, b/2', 'B/2'],
  ['several layers', 'a, b/2', 'b/2, a'],
]
for (const [name, protocols, given] of agreed) {
  test(`RFC 9110 7.8: a 101 to what was asked for opens a tunnel: ${name}`, async () => {
    const { client, peer } = await asked(asking(protocols))
    peer.send(agreeing(given))
    assert.match(await takeSwitch(client), /^HTTP\/1\.1 101 /)
    client.send('x')
    await peer.untilText('x')
    await forgetAll(client)
  })
}

test('RFC 9110 10.1.1: 100 (Continue) may come in front of the 101', async () => {
  const { client, peer } = await asked(asking('websocket', 'Expect: 100-continue'))
  peer.send(`HTTP/1.1 100 Continue\r\n\r\n${agreeing()}`)
  assert.match(await takeSwitch(client), /^HTTP\/1\.1 100 /)
  assert.match(await takeSwitch(client), /^HTTP\/1\.1 101 /)
  await forgetAll(client)
})

test('a 101 in single bytes opens a tunnel', async () => {
  const { client, peer } = await asked(asking())
  await peer.sendBytewise(`${agreeing()}bytes behind it`)
  await takeSwitch(client)
  await client.untilText('bytes behind it')
  await forgetAll(client)
})

// ---- a 101 that opens nothing --------------------------------------------------------------------------------------

const PLAIN = 'GET /echo/x HTTP/1.1\r\nHost: a\r\n\r\n'
const WITH_BODY = asking('websocket', 'Content-Length: 1').replace('GET', 'POST')
const refused: readonly (readonly [string, string, string, string])[] = [
  ['that nobody asked for', PLAIN, agreeing(), 'without a request'],
  [
    'to a request that names Upgrade without Connection',
    asking().replace('Connection: Upgrade', 'A: b'),
    agreeing(),
    'without a request',
  ],
  ['to a request that asked for h2c only', asking('h2c'), agreeing('h2c'), 'without a request'],
  ['to h2c, which was left out of a list', asking('h2c, websocket'), agreeing('h2c'), 'not asked for'],
  ['to another protocol', asking('a'), agreeing('b'), 'not asked for'],
  ['to another version', asking('a/1'), agreeing('a/2'), 'not asked for'],
  ['without a version that was asked for', asking('a/1'), agreeing('a'), 'not asked for'],
  ['to a protocol more than was asked for', asking('a'), agreeing('a, b'), 'not asked for'],
  ['that names no protocol', asking(), 'HTTP/1.1 101 S\r\nConnection: Upgrade\r\n\r\n', 'not asked for'],
  ['whose Connection does not name Upgrade', asking(), 'HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n', 'does not name'],
  ['of HTTP/1.0', asking(), agreeing().replace('1.1', '1.0'), 'HTTP/1.0 response'],
  ['to a HTTP/1.0 request', asking().replace('1.1', '1.0'), agreeing(), 'without a request'],
]
for (const [name, request, response, rule] of refused) {
  test(`RFC 9110 15.2.2: a 101 ${name} is a violation: 502, and nothing behind it is read`, async () => {
    const { client, peer } = await asked(request)
    const reported = gateway.reports.length
    peer.send(`${response}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`)
    const answer = await takeAnswer(client)
    assertFault(answer, 502, 101506, 3, request.includes('HTTP/1.0'))
    await peer.untilEnd()
    assert.match(String(gateway.reports[reported]?.fields.CAUSE_OF_ERROR), new RegExp(`^101 .*${rule}`))
    assert.equal(client.text, '')
    await forgetAll(client)
  })
}

test('RFC 9110 7.8: a request with a body asks for no upgrade, and a 101 to it is a violation', async () => {
  const { client, peer, head } = await asked(`${WITH_BODY}x`)
  assert.doesNotMatch(head, /upgrade/i)
  peer.send(agreeing())
  assertFault(await takeAnswer(client), 502, 101506, 3, false)
  await forgetAll(client)
})

// ---- an upgrade that is refused ------------------------------------------------------------------------------------

for (const [status, fields] of [
  [200, []],
  [400, []],
  [426, ['Connection: Upgrade', 'Upgrade: other/2, h2c']],
] as const) {
  test(`a refusal with ${status} is HTTP, and both connections go on with it`, async () => {
    const { client, peer } = await asked(asking())
    const lines = fields.map(line => `${line}\r\n`).join('')
    peer.send(`HTTP/1.1 ${status} X\r\n${lines}Content-Length: 2\r\n\r\nno`)
    const answer = await takeAnswer(client)
    assert.equal(answer.status, status)
    assert.equal(answer.body, 'no')
    // RFC 9110 15.5.22: 426 says what to upgrade to.
    assert.deepEqual(answer.fields.get('upgrade'), status === 426 ? ['other/2'] : undefined)
    client.send(PLAIN)
    await peer.untilText('\r\n\r\n')
    assert.equal(backend.peers.length, 1, 'the connection to the back end is used again')
    assert.doesNotMatch(peer.take(), /upgrade/i)
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes')
    assert.equal((await takeAnswer(client)).body, 'yes')
    assert.equal(gateway.metrics().counts.tunnelsOpen, 0)
    await forgetAll(client)
  })
}

test('RFC 9112 9.3.2: what is pipelined behind a refused upgrade is the next request', async () => {
  const { client, peer } = await asked(asking() + PLAIN)
  await quiet()
  assert.equal(peer.text, '', 'it waits for the response')
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno')
  await takeAnswer(client)
  await peer.untilText(' /x HTTP/1.1')
  await forgetAll(client)
})

// ---- bytes around the heads ----------------------------------------------------------------------------------------

test('RFC 6455 4.1: bytes in one segment with the 101 reach the client, and more follows', async () => {
  const { client, peer } = await asked(asking())
  peer.send(`${agreeing()}first frame`)
  await takeSwitch(client)
  await client.untilText('first frame')
  peer.send(', second frame')
  await client.untilText('first frame, second frame')
  await forgetAll(client)
})

test('what stands behind the request is no HTTP after the 101: it reaches the backend as it is', async () => {
  const { client, peer } = await asked(asking() + PLAIN)
  await quiet()
  peer.send(agreeing())
  await takeSwitch(client)
  await peer.untilText(PLAIN)
  assert.equal(peer.text, PLAIN)
  assert.equal(client.text, '')
  client.send(' and more')
  await peer.untilText(`${PLAIN} and more`)
  await forgetAll(client)
})

test('what is read before the 101 is bounded, and every byte of it arrives in order', async () => {
  const early = Buffer.alloc(3 * 1024 * 1024, Array.from({ length: 256 }, (_, byte) => byte) as never)
  for (let at = 0; at < early.length; at++) early[at] = (at * 7) % 251
  const { client, peer } = await asked(asking())
  const before = gateway.metrics().counts.bytesFromClients
  client.send(early)
  await quiet()
  assert.ok(gateway.metrics().counts.bytesFromClients - before < 200_000, 'the client is not read any further')
  peer.send(agreeing())
  await takeSwitch(client)
  await peer.untilLength(early.length)
  assert.ok(peer.received.equals(early))
  await forgetAll(client)
})

test('a client that has ended before the 101: its bytes and its end reach the backend, which answers', async () => {
  const { client, peer } = await asked(`${asking()}all there is`)
  client.end()
  await quiet()
  peer.send(agreeing())
  await takeSwitch(client)
  assert.equal(await peer.untilEnd(), 'FIN')
  assert.equal(peer.text, 'all there is')
  peer.send('an answer')
  peer.end()
  await client.untilText('an answer')
  assert.equal(await client.untilEnd(), 'FIN')
  await forgetAll(client)
})

// ---- listeners of WebSocket ----------------------------------------------------------------------------------------

const notWebSocket: readonly (readonly [string, string])[] = [
  ['a plain request', PLAIN],
  ['another protocol', asking('other')],
  ['another method', asking().replace('GET', 'POST')],
  ['an upgrade with a body', asking('websocket', 'Content-Length: 1')],
  ['an upgrade of HTTP/1.0', asking().replace('1.1', '1.0')],
  ['an Upgrade that Connection does not name', asking().replace('Connection: Upgrade\r\n', '')],
]
for (const [name, request] of notWebSocket) {
  test(`RFC 9110 15.5.22: on a port for WebSocket, 426 to ${name}`, async () => {
    const client = await connectPeer(gateway.ports[1]!)
    client.send(request)
    const answer = await takeAnswer(client)
    assert.equal(answer.status, 426)
    assert.equal(answer.reason, 'Upgrade Required')
    assert.deepEqual(answer.fields.get('upgrade'), ['websocket'])
    assert.deepEqual(answer.fields.get('connection'), ['Upgrade', 'close'])
    assert.equal(await client.untilEnd(), 'FIN')
    assert.equal(backend.peers.length, 0, 'the back end hears nothing of it')
    client.destroy()
  })
}

test('on a port for WebSocket nothing else is asked for', async () => {
  const client = await connectPeer(gateway.ports[1]!)
  client.send(asking('other, WebSocket'))
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  assert.match(peer.text, /\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n$/)
  await forgetAll(client)
})

test('RFC 9112 3.2.2: absolute-form names the scheme of its listener', async () => {
  const secured = await connectSecured(gateway.ports[2]!)
  secured.peer.send('GET https://a/echo/x HTTP/1.1\r\nHost: a\r\n\r\n')
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  assert.match(peer.text, /^GET \/x HTTP\/1\.1\r\n/)
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  assert.equal((await takeAnswer(secured.peer)).body, 'ok')
  secured.peer.send('GET http://a/echo/x HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeAnswer(secured.peer)).status, 400)
  secured.tcp.destroy()
  await forgetAll()
})

test('tunnels are counted, and listed on both sides', async () => {
  const before = gateway.metrics().counts
  const { client, peer } = await openTunnel(gateway, backend)
  const { counts } = gateway.metrics()
  assert.equal(counts.tunnelsOpened - before.tunnelsOpened, 1)
  assert.equal(counts.tunnelsOpen, 1)
  client.end()
  await peer.untilEnd()
  const answer = gateway.reactor.answers.answer({
    kind: 'connections',
    query: { side: '', state: 'TUNNEL_REPLYING', limit: 9 },
  })
  const list = (await answer) as { rows: readonly { side: string; path: string; partner: string }[] }
  assert.deepEqual(
    list.rows.map(({ side, path }) => `${side} ${path}`),
    ['source /echo/x', 'target /echo/x'],
  )
  peer.end()
  await client.untilEnd()
  await eventually('its end', () => gateway.metrics().counts.tunnelsOpen === 0)
  await forgetAll(client)
})
