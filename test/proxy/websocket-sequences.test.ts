/**
 * Mediation of WebSocket handshakes: `dispatchSeq` for upgrade requests, `outDispatchSeq` for 101 responses. A sequence
 * forwards the handshake unchanged, responds itself, or refuses; a refused handshake leaves no open connection.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { faultsWith } from '../harness/default-sequences.ts'
import { OPEN_CORS } from '../harness/filter-chain.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, quiet } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { openTunnel, switchingProtocols, takeHead, upgradeRequest } from '../harness/tunnels.ts'
import {
  acceptUpgrade,
  assertNothingOpen,
  disconnect,
  json,
  type MediatedGateway,
  requestUpgrade,
  SIDES,
  startMediated,
  status,
} from '../harness/websocket-mediation.ts'

const PLAIN = 'GET /echo/x HTTP/1.1\r\nHost: a\r\n\r\n'
const CONTENT = { 'content-type': ['application/json; charset=UTF-8'] }
const FORBIDDEN =
  '{"fault":{"code":900908,"type":"Status report","message":"Resource forbidden","description":"The WebSocket connection is not allowed"}}'

// ---- forwarded handshakes ------------------------------------------------------------------------------------------

const FORWARDING: readonly (readonly [name: string, content: string])[] = [
  ['sends', '<send/>'],
  [
    'sends after other mediators',
    '<property name="a" value="b"/><filter xpath="true()"><then><send/></then></filter><drop/>',
  ],
  ['sets fields and a payload and sends', `<property name="X-A" value="b" scope="transport"/>${json('{}')}<send/>`],
  ['calls a sequence that sends', '<sequence key="sends"/>'],
]

/** The forwarded heads of the request and of the response, without the parts that differ each time. */
async function heads(mediated: MediatedGateway): Promise<readonly string[]> {
  const client = await connectPeer(mediated.gateway.port)
  client.send(upgradeRequest('websocket', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'X-A: c', 'activityid: same'))
  const peer = await mediated.backend.next()
  await peer.untilText('\r\n\r\n')
  const requestHead = peer.take()
  peer.send(
    `${switchingProtocols('websocket', 'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=', 'X-A: d')}after it`,
  )
  const responseHead = await takeHead(client)
  await client.untilText('after it')
  client.send('there')
  await peer.untilText('there')
  disconnect(mediated, client)
  return [requestHead.replaceAll(String(mediated.backend.port), 'PORT'), responseHead]
}

for (const [name, content] of FORWARDING) {
  test(`RFC 6455 4: a sequence that ${name} forwards both heads unchanged`, async t => {
    const plain = await heads(await startMediated(t, {}))
    const mediated = await startMediated(t, { dispatchSeq: content, outDispatchSeq: content, sends: '<send/>' })
    assert.deepEqual(await heads(mediated), plain)
    assert.match(plain[0]!, /\r\nX-A: c\r\n/)
    assert.match(plain[1]!, /\r\nX-A: d\r\n/)
    assert.deepEqual(
      mediated.gateway.reports.filter(({ level }) => level !== 'debug' && level !== 'warn'),
      [],
    )
  })
}

const NO_WEBSOCKETS: readonly (readonly [name: string, request: string, response: string])[] = [
  ['a plain request', PLAIN, 'HTTP/1.1 204 No Content\r\n\r\n'],
  ['an upgrade to another protocol', upgradeRequest('other/1, xwebsocket, websocket-x'), switchingProtocols('other/1')],
  ['an upgrade that the backend refuses', upgradeRequest(), 'HTTP/1.1 204 No Content\r\n\r\n'],
  [
    'an Upgrade that Connection does not name',
    upgradeRequest().replace('Connection: Upgrade\r\n', ''),
    'HTTP/1.1 204 N\r\n\r\n',
  ],
]

for (const [name, request, response] of NO_WEBSOCKETS) {
  test(`${name} bypasses the sequences`, async t => {
    const isWebSocket = request === upgradeRequest()
    const mediated = await startMediated(t, {
      outDispatchSeq: '<drop/>',
      ...(isWebSocket ? {} : { dispatchSeq: '<drop/>' }),
    })
    const client = await connectPeer(mediated.gateway.port)
    client.send(request)
    const peer = await mediated.backend.next()
    await peer.untilText('\r\n\r\n')
    peer.send(response)
    await client.untilText(response.startsWith('HTTP/1.1 101') ? ' 101 ' : ' 204 ')
    disconnect(mediated, client)
  })
}

// ---- refused handshakes --------------------------------------------------------------------------------------------

const REFUSING: readonly (readonly [name: string, content: string])[] = [
  ['drops the message', '<drop/>'],
  ['ends without sending', '<log/>'],
  ['is empty', ''],
  [
    'drops the message after setting a response',
    `${json('{}')}${status(200)}<property name="RESPONSE" value="true"/><drop/>`,
  ],
  ['calls a sequence that drops the message', '<sequence key="drops"/><send/>'],
]

for (const side of SIDES) {
  for (const protocols of ['websocket', 'WebSocket', 'websocket/13', 'other, websocket']) {
    test(`RFC 9110 7.8: ${side} runs for an upgrade to ${protocols}`, async t => {
      const mediated = await startMediated(t, { [side]: '<drop/>' })
      const client = await connectPeer(mediated.gateway.port)
      client.send(upgradeRequest(protocols))
      if (side === 'outDispatchSeq') {
        const peer = await mediated.backend.next()
        await peer.untilText('\r\n\r\n')
        peer.send(switchingProtocols(protocols.replace(/, .*/, '')))
      }
      assert.equal((await takeResponse(client)).status, 403)
      disconnect(mediated, client)
    })
  }

  for (const [name, content] of REFUSING) {
    test(`a ${side} that ${name} gives 403 and leaves the client connection open`, async t => {
      const mediated = await startMediated(t, { [side]: content, drops: '<drop/>' })
      const client = await requestUpgrade(mediated, side)
      const response = await takeResponse(client)
      assert.deepEqual([response.status, response.body], [403, FORBIDDEN])
      assert.deepEqual(response.fields.get('content-type'), CONTENT['content-type'])
      assert.equal(response.fields.get('connection'), undefined)
      assert.equal(mediated.backend.peers.length, side === 'dispatchSeq' ? 0 : 1)
      client.send(PLAIN)
      const peer = await mediated.backend.next()
      await peer.untilText('\r\n\r\n')
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      assert.equal((await takeResponse(client)).body, 'ok')
      assert.equal(mediated.gateway.metrics().counts.tunnelsOpened, 0)
      disconnect(mediated, client)
    })
  }

  test(`a ${side} that calls itself endlessly gives 500 and is logged`, async t => {
    const mediated = await startMediated(t, { [side]: `<sequence key="${side}"/><send/>` })
    const client = await requestUpgrade(mediated, side)
    const response = await takeResponse(client)
    assert.equal(response.status, 500)
    assert.match(response.body, /^\{"fault":\{"code":500,/)
    const events = mediated.gateway.reports.filter(({ event }) => event === 'sequence failed')
    assert.deepEqual(
      events.map(({ fields }) => [fields.SEQUENCE, fields.CAUSE_OF_ERROR]),
      [[side, 'entered more than 100 sequences']],
    )
    disconnect(mediated, client)
  })

  test(`the refusal of ${side} is worded by the edited fault sequence`, async t => {
    const faultSequence = `${json('{"who":"$1"}', '$trp:X-Who')}${status(418)}<respond/>`
    const mediated = await startMediated(
      t,
      { [side]: '<drop/>', _auth_failure_handler_: faultSequence },
      { cors: OPEN_CORS },
    )
    const client = await requestUpgrade(
      mediated,
      side,
      upgradeRequest('websocket', 'X-Who: me', 'Origin: https://a.test'),
    )
    const response = await takeResponse(client)
    assert.deepEqual([response.status, response.body], [418, '{"who":"me"}'])
    disconnect(mediated, client)
  })
}

// ---- responses of sequences ----------------------------------------------------------------------------------------

const RESPONDING: readonly (readonly [name: string, end: string])[] = [
  ['<respond/>', '<respond/>'],
  ['RESPONSE and <send/>', '<property name="RESPONSE" value="true"/><send/>'],
  ['RESPONSE as a boolean and <send/>', '<property name="RESPONSE" value="true" type="BOOLEAN"/><send/><drop/>'],
]

for (const side of SIDES) {
  for (const [name, end] of RESPONDING) {
    test(`a ${side} that ends with ${name} gives the response to the client`, async t => {
      const content = `${json('{"for":"$1","at":"$2"}', '$trp:X-For', '$ctx:REST_API_CONTEXT')}${status(426)}
        <property name="X-Why" expression="$ctx:REST_SUB_REQUEST_PATH" scope="transport"/>
        <property name="activityid" value="mine" scope="transport"/>${end}`
      const mediated = await startMediated(t, { [side]: content })
      const [requestValue, responseValue] = side === 'dispatchSeq' ? ['request', 'no'] : ['no', 'response']
      const client = await requestUpgrade(
        mediated,
        side,
        upgradeRequest('websocket', `X-For: ${requestValue}`, 'activityid: theirs'),
        [`X-For: ${responseValue}`],
      )
      const response = await takeResponse(client)
      assert.deepEqual([response.status, response.reason], [426, 'Upgrade Required'])
      assert.equal(response.body, `{"for":"${side === 'dispatchSeq' ? 'request' : 'response'}","at":"/echo"}`)
      assert.deepEqual(response.fields.get('x-why'), ['/x'])
      assert.deepEqual(response.fields.get('activityid'), ['theirs'])
      assert.equal(response.fields.get('connection'), undefined)
      disconnect(mediated, client)
    })
  }

  test(`a ${side} with status 101 gives 500`, async t => {
    const mediated = await startMediated(t, { [side]: `${status(101)}<respond/>` })
    const client = await requestUpgrade(mediated, side)
    assert.equal((await takeResponse(client)).status, 500)
    disconnect(mediated, client)
  })
}

test('<in> runs in dispatchSeq, and <out> in outDispatchSeq', async t => {
  const content = `<in>${status(401)}</in><out>${status(402)}</out><respond/>`
  for (const side of SIDES) {
    const mediated = await startMediated(t, { [side]: content })
    const client = await requestUpgrade(mediated, side)
    assert.equal((await takeResponse(client)).status, side === 'dispatchSeq' ? 401 : 402)
    disconnect(mediated, client)
  }
})

/** Refuses by the canonical path, which is the path that the backend gets. */
const BY_PATH =
  '<filter source="$ctx:REST_FULL_REQUEST_PATH" regex="/echo/closed.*"><then><drop/></then></filter><send/>'

for (const target of [
  '/echo/closed',
  '/echo//closed',
  '/echo/%63losed',
  '/echo/x/../closed',
  'http://b//echo/./closed',
]) {
  test(`dispatchSeq gets the canonical path of ${target}`, async t => {
    const mediated = await startMediated(t, { dispatchSeq: BY_PATH })
    const client = await connectPeer(mediated.gateway.port)
    client.send(upgradeRequest('websocket').replace('/echo/x', target))
    assert.equal((await takeResponse(client)).status, 403)
    disconnect(mediated, client)
  })
}

const BY_FIELD = `<filter source="$trp:X-Key" regex="open sesame"><then><send/></then></filter>${status(401)}
  <log level="custom">
    <property name="key" expression="$trp:X-Key"/><property name="path" expression="$ctx:REST_FULL_REQUEST_PATH"/>
  </log>
  <respond/>`

for (const side of SIDES) {
  test(`${side} can decide by a field in any letter case, repeated or missing, and can log it`, async t => {
    const mediated = await startMediated(t, { [side]: BY_FIELD })
    const cases: readonly (readonly [fields: readonly string[], status: number])[] = [
      [['x-KEY: open sesame'], 101],
      [['X-Key: open sesame', 'X-Key: x'], 401],
      [['X-Keys: open sesame'], 401],
      [[], 401],
    ]
    for (const [fields, expected] of cases) {
      const isOut = side === 'outDispatchSeq'
      const client = await connectPeer(mediated.gateway.port)
      client.send(upgradeRequest('websocket', ...(isOut ? [] : fields)))
      if (isOut || expected === 101) await acceptUpgrade(mediated.backend, isOut ? fields : [])
      assert.equal((await takeResponse(client)).status, expected)
      disconnect(mediated, client)
    }
    const logged = mediated.gateway.reports.filter(({ event }) => event === 'sequence log')
    assert.deepEqual(
      logged.map(({ fields }) => fields.MESSAGE),
      ['key = open sesame, x, path = /echo/x', 'key = , path = /echo/x', 'key = , path = /echo/x'],
    )
  })
}

// ---- bytes and ends around the handshake ---------------------------------------------------------------------------

test('a refused 101 response closes the backend connection, and bytes after it are discarded', async t => {
  const mediated = await startMediated(t, { outDispatchSeq: '<drop/>' })
  const client = await connectPeer(mediated.gateway.port)
  client.send(upgradeRequest())
  const peer = await acceptUpgrade(mediated.backend, [], 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil')
  assert.equal((await takeResponse(client)).status, 403)
  await peer.untilEnd()
  peer.send('more')
  await quiet()
  assert.equal(client.text, '')
  assert.equal(peer.text, '')
  disconnect(mediated, client)
})

test('a 101 response that arrives byte by byte after a 100 response can be refused', async t => {
  const mediated = await startMediated(t, { outDispatchSeq: '<drop/>' })
  const client = await connectPeer(mediated.gateway.port)
  client.send(upgradeRequest())
  const peer = await mediated.backend.next()
  await peer.untilText('\r\n\r\n')
  await peer.sendBytewise(`HTTP/1.1 100 Continue\r\n\r\n${switchingProtocols()}`)
  assert.match(await takeHead(client), /^HTTP\/1\.1 100 /)
  assert.equal((await takeResponse(client)).status, 403)
  disconnect(mediated, client)
})

for (const side of SIDES) {
  test(`RFC 9112 9.3.2: bytes after a request that ${side} refuses are the next request`, async t => {
    const mediated = await startMediated(t, { [side]: '<drop/>' })
    const client = await requestUpgrade(mediated, side, upgradeRequest() + PLAIN)
    assert.equal((await takeResponse(client)).status, 403)
    const peer = await mediated.backend.next()
    await peer.untilText('\r\n\r\n')
    assert.doesNotMatch(peer.text, /upgrade/i)
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    assert.equal((await takeResponse(client)).body, 'ok')
    disconnect(mediated, client)
  })

  test(`RFC 9112 9.6: a client that has sent FIN still gets the response of ${side}`, async t => {
    const mediated = await startMediated(t, { [side]: '<drop/>' })
    const client = await connectPeer(mediated.gateway.port)
    client.send(upgradeRequest())
    client.end()
    await quiet()
    if (side === 'outDispatchSeq') await acceptUpgrade(mediated.backend)
    assert.equal((await takeResponse(client)).status, 403)
    assert.equal(await client.untilEnd(), 'FIN')
    disconnect(mediated, client)
  })
}

test('a client that is not read before the 101 response is read on after a refusal', async t => {
  const mediated = await startMediated(t, { outDispatchSeq: '<drop/>' })
  const client = await connectPeer(mediated.gateway.port)
  const early = PLAIN.repeat(20_000)
  client.send(upgradeRequest())
  client.send(early)
  await quiet()
  await acceptUpgrade(mediated.backend)
  assert.equal((await takeResponse(client)).status, 403)
  const peer = await mediated.backend.next()
  for (let round = 0; round < 5; round++) {
    await peer.untilText('\r\n\r\n')
    peer.take()
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    assert.equal((await takeResponse(client)).body, 'ok')
  }
  client.reset()
  await eventually('the end of the client connection', () => {
    for (const it of mediated.backend.peers) it.destroy()
    return mediated.gateway.metrics().counts.connectionsOpen === 0
  })
})

test('a client that resets before the 101 response ends the backend connection', async t => {
  const mediated = await startMediated(t, { outDispatchSeq: '<drop/>' })
  const client = await connectPeer(mediated.gateway.port)
  client.send(upgradeRequest())
  const peer = await mediated.backend.next()
  await peer.untilText('\r\n\r\n')
  client.reset()
  await eventually('the end of the client connection', () => mediated.gateway.metrics().counts.connectionsOpen === 0)
  peer.send(switchingProtocols())
  await peer.untilEnd()
})

test('a refused handshake is counted and logged as a request, and not as a failure of the backend', async t => {
  const mediated = await startMediated(t, { outDispatchSeq: '<drop/>' })
  const client = await requestUpgrade(mediated, 'outDispatchSeq')
  await takeResponse(client)
  disconnect(mediated, client)
  await assertNothingOpen(mediated.gateway)
  await eventually('the access log entry', () => mediated.gateway.accessLines.length > 0)
  assert.equal(mediated.gateway.metrics().counts.requests, 1)
  assert.deepEqual(
    mediated.gateway.accessLines.map(line => JSON.parse(line).status),
    [403],
  )
  assert.deepEqual(
    mediated.gateway.reports.filter(({ level }) => level !== 'debug'),
    [],
  )
})

test('a reload applies changed sequences to open connections, and keeps tunnels open', async t => {
  const mediated = await startMediated(t, {})
  const { gateway, backend } = mediated
  const tunnel = await openTunnel(gateway, backend)
  const client = await connectPeer(gateway.port)
  for (const [edited, expected] of [
    [{ dispatchSeq: '<drop/>' }, 403],
    [{ outDispatchSeq: `${status(401)}<respond/>` }, 401],
    [{ dispatchSeq: `${status(402)}<respond/>` }, 402],
    [{}, 101],
  ] as const) {
    await gateway.deploy({ faults: await faultsWith(edited) })
    client.send(upgradeRequest())
    if (expected === 401 || expected === 101) await acceptUpgrade(backend)
    assert.equal((await takeResponse(client)).status, expected)
  }
  tunnel.client.send('still here')
  await tunnel.peer.untilText('still here')
  tunnel.client.destroy()
  disconnect(mediated, client)
})

// ---- sequences of [transport.ws] -----------------------------------------------------------------------------------

const CONFIGURED = { dispatch: 'wsDispatch', fault: 'wsFault' }
const NONE = { dispatch: '', fault: '' }
const DEFAULT = 'by outDispatchSeq'
const respondWith = (text: string) => `${json(`{"wordedBy":"${text}"}`)}${status(401)}<respond/>`

/** Kind of endpoint, sequences of [transport.ws], content of wsDispatch, and the sequence that words the response. */
const CASES_OF_WS: readonly (readonly [
  endpoint: 'http' | 'ws',
  sockets: typeof NONE,
  content: string,
  wordedBy: string,
])[] = [
  ['ws', CONFIGURED, respondWith('by wsDispatch'), 'by wsDispatch'],
  ['ws', CONFIGURED, '<drop/>', 'by wsFault: 900908'],
  ['ws', CONFIGURED, '<sequence key="wsDispatch"/>', 'by wsFault: 500'],
  ['ws', NONE, respondWith('by wsDispatch'), DEFAULT],
  ['http', CONFIGURED, respondWith('by wsDispatch'), DEFAULT],
]

for (const [endpoint, ws, content, wordedBy] of CASES_OF_WS) {
  const what = `dispatch "${ws.dispatch}" with ${content.slice(0, 24)}`
  test(`[transport.ws] ${what} for a ${endpoint} endpoint: the response is worded ${wordedBy}`, async t => {
    const edited = {
      outDispatchSeq: respondWith(DEFAULT),
      wsDispatch: content,
      wsFault: `${json('{"wordedBy":"by wsFault: $1"}', '$ctx:ERROR_CODE')}${status(401)}<respond/>`,
    }
    const route = { connectsThroughProxy: endpoint === 'ws' }
    const mediated = await startMediated(t, edited, { webSockets: { ws, wss: NONE } }, { route })
    const client = await requestUpgrade(mediated, 'outDispatchSeq')
    const response = await takeResponse(client)
    assert.deepEqual([response.status, JSON.parse(response.body)], [401, { wordedBy }])
    disconnect(mediated, client)
  })
}

test('[transport.ws] a sequence that sends opens the tunnel until a reload removes the sequence', async t => {
  const ws = { dispatch: 'wsDispatch', fault: '' }
  const edited = { outDispatchSeq: '<drop/>', wsDispatch: '<send/>' }
  const mediated = await startMediated(
    t,
    edited,
    { webSockets: { ws, wss: NONE } },
    { route: { connectsThroughProxy: true } },
  )
  const tunnel = await openTunnel(mediated.gateway, mediated.backend)
  await mediated.gateway.deploy({ webSockets: { ws: NONE, wss: NONE } })
  const client = await requestUpgrade(mediated, 'outDispatchSeq')
  assert.equal((await takeResponse(client)).status, 403)
  tunnel.client.reset()
  disconnect(mediated, client)
})

// ---- a WebSocket library -------------------------------------------------------------------------------------------

test('RFC 6455 4.1: a WebSocket library sees a refused handshake or an open connection', async t => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  server.on('connection', socket => {
    socket.on('error', () => undefined)
    // Sent right after the 101 response, perhaps in the same segment.
    socket.send('welcome')
  })
  const faults = await faultsWith({
    dispatchSeq: '<filter source="$trp:Origin" regex="https://good\\.test"><then><send/></then></filter>',
    outDispatchSeq:
      '<filter source="$trp:Sec-WebSocket-Protocol" regex="chat"><then><send/></then></filter>' +
      `${json('{"protocol":"$1"}', '$trp:Sec-WebSocket-Protocol')}${status(406)}<respond/>`,
  })
  const { port } = server.address() as AddressInfo
  const gateway = await startGateway([{ context: '/ws', port }], { faults, kinds: ['ws'] })
  t.after(() => {
    for (const socket of server.clients) socket.terminate()
    server.close()
    gateway.stop()
  })
  const connect = (protocol: string, origin: string) => {
    const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/ws/x`, [protocol], { origin })
    socket.on('error', () => undefined)
    return socket
  }
  for (const [protocol, origin, expected] of [
    ['chat', 'https://evil.test', 403],
    ['talk', 'https://good.test', 406],
  ] as const) {
    const socket = connect(protocol, origin)
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }]
    assert.equal(response.statusCode, expected)
    socket.terminate()
  }
  const open = connect('chat', 'https://good.test')
  const [message] = (await once(open, 'message')) as [Buffer]
  assert.equal(String(message), 'welcome')
  assert.equal(gateway.metrics().counts.tunnelsOpened, 1)
  open.close()
  await once(open, 'close')
  await assertNothingOpen(gateway)
})
