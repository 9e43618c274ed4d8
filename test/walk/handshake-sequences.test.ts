/**
 * What `dispatchSeq` makes of requests for WebSocket and `outDispatchSeq` of the 101 of a backend: each handshake goes
 * on as it is, is answered by the sequence, or is refused; and nothing is left of those that come to no tunnel.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { takeAnswer } from '../harness/answers.ts'
import { OPEN_CORS } from '../harness/chained.ts'
import { faultsWith } from '../harness/default-sequences.ts'
import { type MorePlan, startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { agreeing, asking, openTunnel, takeSwitch } from '../harness/tunnels.ts'

type Edited = Readonly<Record<string, string>>

interface Stage {
  readonly gateway: TestGateway
  readonly backend: ScriptedBackend
}

const SIDES = ['dispatchSeq', 'outDispatchSeq'] as const
type Side = (typeof SIDES)[number]

/** A gateway whose sequences are these, in front of a scripted backend. In the end nothing of anybody is left. */
async function start(t: TestContext, edited: Edited, more: MorePlan = {}): Promise<Stage> {
  const backend = await ScriptedBackend.listen()
  const faults = await faultsWith(edited)
  const gateway = await startGateway([{ context: '/echo', port: backend.port }], {}, 'json', [], { faults, ...more })
  t.after(async () => {
    try {
      await nothingIsLeft(gateway)
    } finally {
      gateway.stop()
      backend.close()
    }
  })
  return { gateway, backend }
}

async function nothingIsLeft({ metrics, heldRows }: TestGateway): Promise<void> {
  await eventually('the end of all connections', () => metrics().counts.connectionsOpen === 0 && heldRows() === 0)
  assert.equal(metrics().counts.tunnelsOpen, 0)
}

/** A client that asks, and the backend that agrees to it where the request gets so far. */
async function shake(
  { gateway, backend }: Stage,
  side: Side,
  request = asking(),
  fields: string[] = [],
): Promise<Peer> {
  const client = await connectPeer(gateway.port)
  client.send(request)
  if (side === 'outDispatchSeq') await agree(backend, fields)
  return client
}

async function agree(backend: ScriptedBackend, fields: readonly string[] = [], behind = ''): Promise<Peer> {
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send(agreeing('websocket', ...fields) + behind)
  return peer
}

/** Both ends are the test's to end: the gateway keeps what it may use again. */
function leave({ backend }: Stage, client: Peer): void {
  client.reset()
  for (const peer of backend.peers) peer.destroy()
}

function json(format: string, ...expressions: readonly string[]): string {
  const args = expressions.map(expression => `<arg expression="${expression}"/>`).join('')
  return `<payloadFactory media-type="json"><format>${format}</format><args>${args}</args></payloadFactory>`
}

const status = (code: number) => `<property name="HTTP_SC" value="${code}" scope="axis2"/>`
const PLAIN = 'GET /echo/x HTTP/1.1\r\nHost: a\r\n\r\n'
const CONTENT = { 'content-type': ['application/json; charset=UTF-8'] }
const FORBIDDEN =
  '{"fault":{"code":900908,"type":"Status report","message":"Resource forbidden","description":"The WebSocket connection is not allowed"}}'

// ---- what goes on --------------------------------------------------------------------------------------------------

const PASSING: readonly (readonly [name: string, content: string])[] = [
  ['only sends', '<send/>'],
  ['sends last', '<property name="a" value="b"/><filter xpath="true()"><then><send/></then></filter><drop/>'],
  ['sets fields and a payload, and sends', `<property name="X-A" value="b" scope="transport"/>${json('{}')}<send/>`],
  ['sends in a sequence that it calls', '<sequence key="sends"/>'],
]

/** Head at the backend and head at the client, without what differs each time. */
async function heads(stage: Stage): Promise<readonly string[]> {
  const client = await connectPeer(stage.gateway.port)
  client.send(asking('websocket', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'X-A: c', 'activityid: same'))
  const peer = await stage.backend.next()
  await peer.untilText('\r\n\r\n')
  const asked = peer.take()
  peer.send(`${agreeing('websocket', 'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=', 'X-A: d')}behind it`)
  const answered = await takeSwitch(client)
  await client.untilText('behind it')
  client.send('there')
  await peer.untilText('there')
  leave(stage, client)
  return [asked.replaceAll(String(stage.backend.port), 'PORT'), answered]
}

for (const [name, content] of PASSING) {
  test(`RFC 6455 4: both heads pass through a sequence that ${name} as they pass without`, async t => {
    const plain = await heads(await start(t, {}))
    const stage = await start(t, { dispatchSeq: content, outDispatchSeq: content, sends: '<send/>' })
    assert.deepEqual(await heads(stage), plain)
    assert.match(plain[0]!, /\r\nX-A: c\r\n/)
    assert.match(plain[1]!, /\r\nX-A: d\r\n/)
    assert.deepEqual(
      stage.gateway.reports.filter(({ level }) => level !== 'debug' && level !== 'warn'),
      [],
    )
  })
}

const NO_SOCKETS: readonly (readonly [name: string, request: string, response: string])[] = [
  ['a plain request', PLAIN, 'HTTP/1.1 204 No Content\r\n\r\n'],
  ['another protocol', asking('other/1, xwebsocket, websocket-x'), agreeing('other/1')],
  ['a request that a backend refuses to switch for', asking(), 'HTTP/1.1 204 No Content\r\n\r\n'],
  [
    'an Upgrade that Connection does not name',
    asking().replace('Connection: Upgrade\r\n', ''),
    'HTTP/1.1 204 N\r\n\r\n',
  ],
]

for (const [name, request, response] of NO_SOCKETS) {
  test(`what is no WebSocket goes past them: ${name}`, async t => {
    const isSocket = request === asking()
    const stage = await start(t, { outDispatchSeq: '<drop/>', ...(isSocket ? {} : { dispatchSeq: '<drop/>' }) })
    const client = await connectPeer(stage.gateway.port)
    client.send(request)
    const peer = await stage.backend.next()
    await peer.untilText('\r\n\r\n')
    peer.send(response)
    await client.untilText(response.startsWith('HTTP/1.1 101') ? ' 101 ' : ' 204 ')
    leave(stage, client)
  })
}

// ---- what is refused -----------------------------------------------------------------------------------------------

const REFUSING: readonly (readonly [name: string, content: string])[] = [
  ['drops', '<drop/>'],
  ['comes to its end', '<log/>'],
  ['is empty', ''],
  ['drops what it has worded', `${json('{}')}${status(200)}<property name="RESPONSE" value="true"/><drop/>`],
  ['drops in a sequence that it calls', '<sequence key="drops"/><send/>'],
]

for (const side of SIDES) {
  for (const protocols of ['websocket', 'WebSocket', 'websocket/13', 'other, websocket']) {
    test(`RFC 9110 7.8: ${side} is asked where ${protocols} is`, async t => {
      const stage = await start(t, { [side]: '<drop/>' })
      const client = await connectPeer(stage.gateway.port)
      client.send(asking(protocols))
      if (side === 'outDispatchSeq') {
        const peer = await stage.backend.next()
        await peer.untilText('\r\n\r\n')
        peer.send(agreeing(protocols.replace(/, .*/, '')))
      }
      assert.equal((await takeAnswer(client)).status, 403)
      leave(stage, client)
    })
  }

  for (const [name, content] of REFUSING) {
    test(`a ${side} that ${name} refuses: 403, and the connection goes on`, async t => {
      const stage = await start(t, { [side]: content, drops: '<drop/>' })
      const client = await shake(stage, side)
      const answer = await takeAnswer(client)
      assert.deepEqual([answer.status, answer.body], [403, FORBIDDEN])
      assert.deepEqual(answer.fields.get('content-type'), CONTENT['content-type'])
      assert.equal(answer.fields.get('connection'), undefined)
      assert.equal(stage.backend.peers.length, side === 'dispatchSeq' ? 0 : 1)
      client.send(PLAIN)
      const peer = await stage.backend.next()
      await peer.untilText('\r\n\r\n')
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      assert.equal((await takeAnswer(client)).body, 'ok')
      assert.equal(stage.gateway.metrics().counts.tunnelsOpened, 0)
      leave(stage, client)
    })
  }

  test(`a ${side} that calls itself without end, or fails: 500, and a line in the log`, async t => {
    const stage = await start(t, { [side]: `<sequence key="${side}"/><send/>` })
    const client = await shake(stage, side)
    const answer = await takeAnswer(client)
    assert.equal(answer.status, 500)
    assert.match(answer.body, /^\{"fault":\{"code":500,/)
    const said = stage.gateway.reports.filter(({ event }) => event === 'sequence failed')
    assert.deepEqual(
      said.map(({ fields }) => [fields.SEQUENCE, fields.CAUSE_OF_ERROR]),
      [[side, 'entered more than 100 sequences']],
    )
    leave(stage, client)
  })

  test(`the refusal of ${side} is worded by an edited sequence, and has the fields of CORS`, async t => {
    const worded = `${json('{"who":"$1"}', '$trp:X-Who')}${status(418)}<respond/>`
    const stage = await start(t, { [side]: '<drop/>', _auth_failure_handler_: worded }, { cors: OPEN_CORS })
    const client = await shake(stage, side, asking('websocket', 'X-Who: me', 'Origin: https://a.test'))
    const answer = await takeAnswer(client)
    assert.deepEqual([answer.status, answer.body], [418, '{"who":"me"}'])
    leave(stage, client)
  })
}

// ---- what is answered ----------------------------------------------------------------------------------------------

const ANSWERING: readonly (readonly [name: string, end: string])[] = [
  ['<respond/>', '<respond/>'],
  ['RESPONSE and <send/>', '<property name="RESPONSE" value="true"/><send/>'],
  ['RESPONSE as a truth, and <send/>', '<property name="RESPONSE" value="true" type="BOOLEAN"/><send/><drop/>'],
]

for (const side of SIDES) {
  for (const [name, end] of ANSWERING) {
    test(`a ${side} that ends with ${name} is the answer`, async t => {
      const content = `${json('{"for":"$1","at":"$2"}', '$trp:X-For', '$ctx:REST_API_CONTEXT')}${status(426)}
        <property name="X-Why" expression="$ctx:REST_SUB_REQUEST_PATH" scope="transport"/>
        <property name="activityid" value="mine" scope="transport"/>${end}`
      const stage = await start(t, { [side]: content })
      const [ofRequest, ofReply] = side === 'dispatchSeq' ? ['asks', 'no'] : ['no', 'answers']
      const client = await shake(stage, side, asking('websocket', `X-For: ${ofRequest}`, 'activityid: theirs'), [
        `X-For: ${ofReply}`,
      ])
      const answer = await takeAnswer(client)
      assert.deepEqual([answer.status, answer.reason], [426, 'Upgrade Required'])
      assert.equal(answer.body, `{"for":"${side === 'dispatchSeq' ? 'asks' : 'answers'}","at":"/echo"}`)
      assert.deepEqual(answer.fields.get('x-why'), ['/x'])
      assert.deepEqual(answer.fields.get('activityid'), ['theirs'])
      assert.equal(answer.fields.get('connection'), undefined)
      leave(stage, client)
    })
  }

  test(`no status of ${side} is one of tunnels or of no answer: 500`, async t => {
    const stage = await start(t, { [side]: `${status(101)}<respond/>` })
    const client = await shake(stage, side)
    assert.equal((await takeAnswer(client)).status, 500)
    leave(stage, client)
  })
}

test('what <in> and <out> hold is for the one and for the other', async t => {
  const content = `<in>${status(401)}</in><out>${status(402)}</out><respond/>`
  for (const side of SIDES) {
    const stage = await start(t, { [side]: content })
    const client = await shake(stage, side)
    assert.equal((await takeAnswer(client)).status, side === 'dispatchSeq' ? 401 : 402)
    leave(stage, client)
  }
})

const BY_FIELD = `<filter source="$trp:X-Key" regex="open sesame"><then><send/></then></filter>${status(401)}
  <log level="custom"><property name="key" expression="$trp:X-Key"/><property name="path" expression="$ctx:REST_FULL_REQUEST_PATH"/></log>
  <respond/>`

for (const side of SIDES) {
  test(`${side} decides by a field: repeated, missing, in any case; and what it logs is in the log`, async t => {
    const stage = await start(t, { [side]: BY_FIELD })
    const cases: readonly (readonly [fields: readonly string[], status: number])[] = [
      [['x-KEY: open sesame'], 101],
      [['X-Key: open sesame', 'X-Key: x'], 401],
      [['X-Keys: open sesame'], 401],
      [[], 401],
    ]
    for (const [fields, expected] of cases) {
      const isOut = side === 'outDispatchSeq'
      const client = await connectPeer(stage.gateway.port)
      client.send(asking('websocket', ...(isOut ? [] : fields)))
      if (isOut || expected === 101) await agree(stage.backend, isOut ? fields : [])
      assert.equal((await takeAnswer(client)).status, expected)
      leave(stage, client)
    }
    const logged = stage.gateway.reports.filter(({ event }) => event === 'log of a sequence')
    assert.deepEqual(
      logged.map(({ fields }) => fields.MESSAGE),
      ['key = open sesame, x, path = /echo/x', 'key = , path = /echo/x', 'key = , path = /echo/x'],
    )
  })
}

// ---- what is around the handshake ----------------------------------------------------------------------------------

test('without a tunnel the backend is closed, and what it sent behind its 101 reaches nobody', async t => {
  const stage = await start(t, { outDispatchSeq: '<drop/>' })
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
  const stage = await start(t, { outDispatchSeq: '<drop/>' })
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
    const stage = await start(t, { [side]: '<drop/>' })
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
    const stage = await start(t, { [side]: '<drop/>' })
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
  const stage = await start(t, { outDispatchSeq: '<drop/>' })
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
  const stage = await start(t, { outDispatchSeq: '<drop/>' })
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
  const stage = await start(t, { outDispatchSeq: '<drop/>' })
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
  const stage = await start(t, {})
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
