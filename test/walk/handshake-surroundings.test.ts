/**
 * What is around a handshake that a sequence decides: bytes behind both heads, ends of both sides, reloads, kinds of
 * endpoints that have sequences of their own, and a WebSocket library on both ends.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { takeAnswer } from '../harness/answers.ts'
import { faultsWith } from '../harness/default-sequences.ts'
import { startGateway } from '../harness/gateway.ts'
import { agree, json, leave, nothingIsLeft, SIDES, shake, startStage, status } from '../harness/handshakes.ts'
import { connectPeer, eventually, quiet } from '../harness/peers.ts'
import { agreeing, asking, openTunnel, takeSwitch } from '../harness/tunnels.ts'

const PLAIN = 'GET /echo/x HTTP/1.1\r\nHost: a\r\n\r\n'

test('without a tunnel the backend is closed, and what it sent behind its 101 reaches nobody', async t => {
  const stage = await startStage(t, { outDispatchSeq: '<drop/>' })
  const client = await connectPeer(stage.gateway.port)
  client.send(asking())
  const peer = await agree(stage.backend, [], 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil')
  assert.equal((await takeAnswer(client)).status, 403)
  await peer.untilEnd()
  peer.send('more')
  await quiet()
  assert.equal(client.text, '')
  assert.equal(peer.text, '')
  leave(stage, client)
})

test('100 (Continue), and a 101 in single bytes, change nothing of that', async t => {
  const stage = await startStage(t, { outDispatchSeq: '<drop/>' })
  const client = await connectPeer(stage.gateway.port)
  client.send(asking())
  const peer = await stage.backend.next()
  await peer.untilText('\r\n\r\n')
  await peer.sendBytewise(`HTTP/1.1 100 Continue\r\n\r\n${agreeing()}`)
  assert.match(await takeSwitch(client), /^HTTP\/1\.1 100 /)
  assert.equal((await takeAnswer(client)).status, 403)
  leave(stage, client)
})

for (const side of SIDES) {
  test(`RFC 9112 9.3.2: what stands behind a request that ${side} refuses is the next request`, async t => {
    const stage = await startStage(t, { [side]: '<drop/>' })
    const client = await shake(stage, side, asking() + PLAIN)
    assert.equal((await takeAnswer(client)).status, 403)
    const peer = await stage.backend.next()
    await peer.untilText('\r\n\r\n')
    assert.doesNotMatch(peer.text, /upgrade/i)
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    assert.equal((await takeAnswer(client)).body, 'ok')
    leave(stage, client)
  })

  test(`a client that has ended its side still hears what ${side} says`, async t => {
    const stage = await startStage(t, { [side]: '<drop/>' })
    const client = await connectPeer(stage.gateway.port)
    client.send(asking())
    client.end()
    await quiet()
    if (side === 'outDispatchSeq') await agree(stage.backend)
    assert.equal((await takeAnswer(client)).status, 403)
    assert.equal(await client.untilEnd(), 'FIN')
    leave(stage, client)
  })
}

test('a client that was held back, because it sent ahead of the 101, is read on when there is none', async t => {
  const stage = await startStage(t, { outDispatchSeq: '<drop/>' })
  const client = await connectPeer(stage.gateway.port)
  const ahead = PLAIN.repeat(20_000)
  client.send(asking())
  client.send(ahead)
  await quiet()
  await agree(stage.backend)
  assert.equal((await takeAnswer(client)).status, 403)
  const peer = await stage.backend.next()
  for (let round = 0; round < 5; round++) {
    await peer.untilText('\r\n\r\n')
    peer.take()
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    assert.equal((await takeAnswer(client)).body, 'ok')
  }
  client.reset()
  await eventually('the end of a client that is not read', () => {
    for (const it of stage.backend.peers) it.destroy()
    return stage.gateway.metrics().counts.connectionsOpen === 0
  })
})

test('a client that is gone when the backend agrees leaves nothing behind', async t => {
  const stage = await startStage(t, { outDispatchSeq: '<drop/>' })
  const client = await connectPeer(stage.gateway.port)
  client.send(asking())
  const peer = await stage.backend.next()
  await peer.untilText('\r\n\r\n')
  client.reset()
  await eventually('the end of the client', () => stage.gateway.metrics().counts.connectionsOpen === 0)
  peer.send(agreeing())
  await peer.untilEnd()
})

test('a handshake that comes to no tunnel is an exchange like any other, and no failure of the endpoint', async t => {
  const stage = await startStage(t, { outDispatchSeq: '<drop/>' })
  const client = await shake(stage, 'outDispatchSeq')
  await takeAnswer(client)
  leave(stage, client)
  await nothingIsLeft(stage.gateway)
  await eventually('its line in the access log', () => stage.gateway.accessLines.length > 0)
  assert.equal(stage.gateway.metrics().counts.requests, 1)
  assert.deepEqual(
    stage.gateway.accessLines.map(line => JSON.parse(line).status),
    [403],
  )
  assert.deepEqual(
    stage.gateway.reports.filter(({ level }) => level !== 'debug'),
    [],
  )
})

test('a reload puts them in force on connections that are open, and spares tunnels', async t => {
  const stage = await startStage(t, {})
  const { gateway, backend } = stage
  const tunnel = await openTunnel(gateway, backend)
  const client = await connectPeer(gateway.port)
  for (const [edited, expected] of [
    [{ dispatchSeq: '<drop/>' }, 403],
    [{ outDispatchSeq: `${status(401)}<respond/>` }, 401],
    [{ dispatchSeq: `${status(402)}<respond/>` }, 402],
    [{}, 101],
  ] as const) {
    await gateway.deploy({ faults: await faultsWith(edited) })
    client.send(asking())
    if (expected === 401 || expected === 101) await agree(backend)
    assert.equal((await takeAnswer(client)).status, expected)
  }
  tunnel.client.send('still here')
  await tunnel.peer.untilText('still here')
  tunnel.client.destroy()
  leave(stage, client)
})

// ---- endpoints of WebSocket ----------------------------------------------------------------------------------------

const OF_WS = { dispatch: 'ofWs', fault: 'faultOfWs' }
const NONE = { dispatch: '', fault: '' }
const UNNAMED = 'by outDispatchSeq'
const answering = (text: string) => `${json(`{"said":"${text}"}`)}${status(401)}<respond/>`

/** Endpoint, sequences of [transport.ws], content of ofWs, and who has the word. */
const NAMED: readonly (readonly [endpoint: 'http' | 'ws', sockets: typeof NONE, content: string, said: string])[] = [
  ['ws', OF_WS, answering('by ofWs'), 'by ofWs'],
  ['ws', OF_WS, '<drop/>', 'by faultOfWs: 900908'],
  ['ws', OF_WS, '<sequence key="ofWs"/>', 'by faultOfWs: 500'],
  ['ws', NONE, answering('by ofWs'), UNNAMED],
  ['http', OF_WS, answering('by ofWs'), UNNAMED],
]

for (const [endpoint, ws, content, said] of NAMED) {
  test(`[transport.ws] ${JSON.stringify(ws)}, a ${endpoint} endpoint, ${content.slice(0, 20)}: ${said}`, async t => {
    const edited = {
      outDispatchSeq: answering(UNNAMED),
      ofWs: content,
      faultOfWs: `${json('{"said":"by faultOfWs: $1"}', '$ctx:ERROR_CODE')}${status(401)}<respond/>`,
    }
    const route = { connectsThroughProxy: endpoint === 'ws' }
    const stage = await startStage(t, edited, { sockets: { ws, wss: NONE } }, { route })
    const client = await shake(stage, 'outDispatchSeq')
    const answer = await takeAnswer(client)
    assert.deepEqual([answer.status, JSON.parse(answer.body)], [401, { said }])
    leave(stage, client)
  })
}

test('a sequence of their own that only sends opens the tunnel, and a reload takes it away again', async t => {
  const ws = { dispatch: 'ofWs', fault: '' }
  const edited = { outDispatchSeq: '<drop/>', ofWs: '<send/>' }
  const stage = await startStage(t, edited, { sockets: { ws, wss: NONE } }, { route: { connectsThroughProxy: true } })
  const tunnel = await openTunnel(stage.gateway, stage.backend)
  await stage.gateway.deploy({ sockets: { ws: NONE, wss: NONE } })
  const client = await shake(stage, 'outDispatchSeq')
  assert.equal((await takeAnswer(client)).status, 403)
  tunnel.client.reset()
  leave(stage, client)
})

// ---- a library on both ends ----------------------------------------------------------------------------------------

test('RFC 6455 4.1: a library sees a connection that was refused, or one that is open', async t => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  server.on('connection', socket => {
    socket.on('error', () => undefined)
    // Written behind the 101, perhaps in the same segment.
    socket.send('welcome')
  })
  const faults = await faultsWith({
    dispatchSeq: '<filter source="$trp:Origin" regex="https://good\\.test"><then><send/></then></filter>',
    outDispatchSeq:
      '<filter source="$trp:Sec-WebSocket-Protocol" regex="chat"><then><send/></then></filter>' +
      `${json('{"protocol":"$1"}', '$trp:Sec-WebSocket-Protocol')}${status(406)}<respond/>`,
  })
  const { port } = server.address() as AddressInfo
  const gateway = await startGateway([{ context: '/ws', port }], {}, null, [], { faults, kinds: ['ws'] })
  t.after(() => {
    for (const socket of server.clients) socket.terminate()
    server.close()
    gateway.stop()
  })
  const ask = (protocol: string, origin: string) => {
    const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/ws/x`, [protocol], { origin })
    socket.on('error', () => undefined)
    return socket
  }
  for (const [protocol, origin, expected] of [
    ['chat', 'https://evil.test', 403],
    ['talk', 'https://good.test', 406],
  ] as const) {
    const socket = ask(protocol, origin)
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }]
    assert.equal(response.statusCode, expected)
    socket.terminate()
  }
  const open = ask('chat', 'https://good.test')
  const [message] = (await once(open, 'message')) as [Buffer]
  assert.equal(String(message), 'welcome')
  assert.equal(gateway.metrics().counts.tunnelsOpened, 1)
  open.close()
  await once(open, 'close')
  await nothingIsLeft(gateway)
})
