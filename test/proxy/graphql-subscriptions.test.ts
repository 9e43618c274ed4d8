/** Operations over the WebSocket connections of GraphQL APIs are checked as requests are, with clients of `ws`. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { PERMIT_ROWS } from '../../src/plan/worker-plan.ts'
import { SharedPermits } from '../../src/runtime/shared-permits.ts'
import { loadProjects, mediationsOf } from '../harness/contracts.ts'
import { flowsOf } from '../harness/flows.ts'
import { type GatewayOptions, planGateway, type TestApi } from '../harness/gateway.ts'
import { GRAPHQL_FILES, GRAPHQL_OPERATIONS } from '../harness/graphql.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { callTo, planEndpoints, startBackend } from '../harness/sequence-calls.ts'
import { advanced, quota, securedApi, subscription, ThrottledGateway } from '../harness/throttled-gateway.ts'
import { switchingProtocols, takeHead } from '../harness/tunnels.ts'
import { frame } from '../harness/websocket-frames.ts'
import type { ThrottlingPolicy } from '../../src/throttle/policy.ts'

const TRANSPORT = 'graphql-transport-ws'
const LEGACY = 'graphql-ws'
const READ = { scope: ['read'] }
const ALL = { scope: ['read', 'write'] }

type Claims = Readonly<Record<string, unknown>>

async function startGraphql(
  t: TestContext,
  port: number,
  policies: readonly ThrottlingPolicy[] = [],
  others: readonly TestApi[] = [],
  options: GatewayOptions = {},
) {
  const apis = await loadProjects(t, { '/g': [GRAPHQL_OPERATIONS, GRAPHQL_FILES] })
  const own = securedApi(port, 'g', mediationsOf(apis).get('/g')!)
  const running = await ThrottledGateway.start(() => [own, ...others], {}, options)
  t.after(() => running.gateway.stop())
  running.apply(policies)
  running.token('app', {}, 'g')
  const bearer = (claims: Claims) => `Bearer ${running.control.token('app', claims)}`
  return { running, bearer }
}

/** A gateway in front of a WebSocket server that echoes each message with `>`. */
async function startEcho(t: TestContext, policies: readonly ThrottlingPolicy[] = []) {
  const server = new WebSocketServer({
    port: 0,
    perMessageDeflate: true,
    handleProtocols: protocols => [...protocols][0]!,
  })
  await once(server, 'listening')
  const received: string[] = []
  server.on('connection', socket => {
    socket.on('message', data => {
      received.push(data.toString())
      socket.send(`>${data.toString()}`)
    })
  })
  const { running, bearer } = await startGraphql(t, (server.address() as AddressInfo).port, policies)
  t.after(() => {
    for (const client of server.clients) client.terminate()
    server.close()
  })
  const open = async (claims: Claims, protocol = TRANSPORT) => {
    const url = `ws://127.0.0.1:${running.gateway.port}/g`
    const client = new WebSocket(url, protocol, { headers: { Authorization: bearer(claims) } })
    t.after(() => client.terminate())
    const messages: string[] = []
    client.on('message', data => messages.push(data.toString()))
    await once(client, 'open')
    /** Sends a message, and resolves with the next one. */
    const ask = async (message: unknown): Promise<string> => {
      const count = messages.length
      client.send(typeof message === 'string' ? message : JSON.stringify(message))
      await eventually('a message', () => messages.length > count)
      return messages[count]!
    }
    return { client, messages, ask }
  }
  return { running, open, received, server }
}

const subscribe = (query: string, id = '1', more: Claims = {}) => ({
  id,
  type: 'subscribe',
  payload: { query, ...more },
})

interface ErrorMessage {
  readonly id: string
  readonly type: string
  readonly payload: readonly { readonly message: string; readonly extensions: { readonly code: number } }[]
}

/** [what, query, claims, code; 0: the backend gets it]. */
const OPERATIONS: readonly (readonly [string, string, Claims, number])[] = [
  ['a subscription with its scope', 'subscription{changes{name}}', READ, 0],
  ['a query and its scope', '{hero{name}}', READ, 0],
  ['a subscription without its scope', 'subscription{changes{name}}', {}, 900910],
  ['a mutation without its scope', 'mutation{rename(name:"a"){name}}', READ, 900910],
  ['one field of two lacks its scope', '{heroes{name} hero{name}}', {}, 900910],
  ['a field that is no operation', '{other}', READ, 900906],
  ['a field that the schema does not have', '{nothing}', READ, 900422],
  ['a syntax error', '{hero{', READ, 900422],
  ['introspection, with a token', '{__schema{types{name}}}', {}, 0],
]

test('each operation is authorised, a refused one is answered with its code, and the connection stays', async t => {
  const { open, received } = await startEcho(t)
  for (const [what, query, claims, code] of OPERATIONS) {
    const before = received.length
    const { client, ask } = await open(claims)
    assert.equal(client.extensions, '', 'compressed messages could not be read')
    const text = await ask(subscribe(query, '7"ü'))
    if (code === 0) assert.deepEqual(JSON.parse(text.slice(1)), subscribe(query, '7"ü'), what)
    else {
      const { id, type, payload } = JSON.parse(text) as ErrorMessage
      assert.deepEqual([id, type, payload[0]!.extensions.code], ['7"ü', 'error', code], what)
    }
    assert.equal(received.length - before, code === 0 ? 1 : 0, what)
    assert.equal(await ask('{"type":"ping"}'), '>{"type":"ping"}', what)
    client.terminate()
  }
})

test('a payload that another reader takes for another query is answered with 900422', async t => {
  const { open, received } = await startEcho(t)
  const { ask } = await open({})
  for (const more of [{ Query: '{hero{name}}' }, { documentId: 'a' }, { extensions: { persistedQuery: {} } }]) {
    const { payload } = JSON.parse(await ask(subscribe('{open}', '1', more))) as ErrorMessage
    assert.equal(payload[0]!.extensions.code, 900422, JSON.stringify(more))
  }
  assert.deepEqual(received, [])
})

test('graphql-ws: start is checked as subscribe is, with the error of its own form', async t => {
  const { open } = await startEcho(t)
  const { ask } = await open(READ, LEGACY)
  assert.equal(await ask('{"type":"connection_init","payload":{}}'), '>{"type":"connection_init","payload":{}}')
  assert.match(await ask({ ...subscribe('{hero{name}}'), type: 'start' }), /^>/)
  const refused = JSON.parse(await ask({ ...subscribe('mutation{rename(name:"a"){name}}'), type: 'start' })) as {
    payload: ErrorMessage['payload'][0]
  }
  assert.equal(refused.payload.extensions.code, 900910)
})

test('limits of operations, of depth and of complexity hold for each message', async t => {
  const graphQL = { depth: 3, complexity: 20 }
  const { open } = await startEcho(t, [advanced('HeroTier', quota(2)), subscription('Unlimited', null, { graphQL })])
  const { ask } = await open(READ)
  const codes: number[] = []
  for (const query of [
    '{hero{name}}',
    '{a:hero{name} b:hero{name}}',
    '{hero{name}}',
    '{heroes{friends{friends{name}}}}',
    '{heroes(first:3){friends{name}}}',
    '{heroes{name}}',
  ]) {
    const text = await ask(subscribe(query))
    codes.push(text.startsWith('>') ? 0 : (JSON.parse(text) as ErrorMessage).payload[0]!.extensions.code)
  }
  assert.deepEqual(codes, [0, 0, 900802, 900820, 900821, 0])
})

/** [what, message, what the backend gets; a number: the status of the close frame]. */
const MESSAGES: readonly (readonly [string, string | Buffer, string | number])[] = [
  ['a message without JSON', 'subscribe', 4400],
  ['a batch', '[]', 4400],
  ['a message without a type', '{"id":"1"}', 4400],
  ['an operation without an id', '{"type":"subscribe","payload":{"query":"{open}"}}', 4400],
  [
    'a Type beside the type of a ping',
    '{"type":"ping","Type":"subscribe","id":"1","payload":{"query":"{open}"}}',
    4400,
  ],
  ['an ID beside the id', '{"type":"subscribe","id":"1","ID":"2","payload":{"query":"{open}"}}', 4400],
  ['a Payload beside the payload', '{"type":"subscribe","id":"1","payload":{"query":"{open}"},"Payload":{}}', 4400],
  ['a message in bytes', Buffer.from('{"type":"ping"}'), 1003],
  ['a complete', '{ "type": "complete", "id": "1" }', '{ "type": "complete", "id": "1" }'],
  ['a type of the future', '{"type":"x","n":12345678901234567890}', '{"type":"x","n":12345678901234567890}'],
  [
    'a repeated type: the backend gets the one that was checked',
    '{"type":"subscribe","id":"1","payload":{"query":"{hero{name}}"},"type":"ping"}',
    '{"type":"ping","id":"1","payload":{"query":"{hero{name}}"}}',
  ],
  [
    'a long ping',
    `{"type":"ping","payload":"${'x'.repeat(70_000)}"}`,
    `{"type":"ping","payload":"${'x'.repeat(70_000)}"}`,
  ],
  ['a message beyond the limit', 'x'.repeat(1_100_001), 1009],
]

test('messages that ask for nothing pass, and what no server should read closes the connection', async t => {
  const { open } = await startEcho(t)
  for (const [what, message, expected] of MESSAGES) {
    const { client, messages } = await open({})
    client.send(message)
    if (typeof expected === 'number') {
      const [status] = (await once(client, 'close')) as [number]
      assert.equal(status, expected, what)
    } else {
      await eventually(what, () => messages.length > 0)
      assert.equal(messages[0], `>${expected}`, what)
    }
    client.terminate()
  }
})

// ---- frames --------------------------------------------------------------------------------------------------------

interface Tunnel {
  readonly client: Peer
  readonly peer: Peer
}

async function startScripted(t: TestContext, others: readonly TestApi[] = [], options: GatewayOptions = {}) {
  const backend = await ScriptedBackend.listen()
  const { running, bearer } = await startGraphql(t, backend.port, [], others, options)
  t.after(() => backend.close())
  const upgrade = async (claims: Claims, protocol: string, answer: string): Promise<Tunnel> => {
    const client = await connectPeer(running.gateway.port)
    t.after(() => client.destroy())
    const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
    const offers = `Sec-WebSocket-Protocol: ${protocol}\r\nSec-WebSocket-Extensions: permessage-deflate\r\n`
    const lines = `Host: h\r\nAuthorization: ${bearer(claims)}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`
    client.send(`GET /g HTTP/1.1\r\n${lines}${key}${protocol === '' ? '' : offers}\r\n`)
    const peer = await backend.next()
    const head = await takeHead(peer)
    assert.doesNotMatch(head, protocol === '' ? /^$/ : /permessage-deflate/)
    peer.send(switchingProtocols('websocket', ...(answer === '' ? [] : [answer])))
    return { client, peer }
  }
  const open = async (claims: Claims): Promise<Tunnel> => {
    const tunnel = await upgrade(claims, TRANSPORT, `Sec-WebSocket-Protocol: ${TRANSPORT}`)
    await takeHead(tunnel.client)
    return tunnel
  }
  return { running, backend, upgrade, open, bearer }
}

const REFUSED = Buffer.from(JSON.stringify(subscribe('mutation{rename(name:"a"){name}}')))
const ALLOWED = Buffer.from(JSON.stringify(subscribe('{open}')))

test('5.4: fragments and pieces of every length are one message, with control frames between them', async t => {
  const { open } = await startScripted(t)
  const { client, peer } = await open({})
  let pings = 0
  for (const cut of [0, 1, ALLOWED.length >> 1, ALLOWED.length]) {
    const bytes = Buffer.concat([
      frame(ALLOWED.subarray(0, cut), { isLast: false }),
      frame('p', { opcode: 9 }),
      frame(ALLOWED.subarray(cut), { opcode: 0 }),
    ])
    for (const byte of bytes) client.send(Buffer.from([byte]))
    pings++
    // A ping has 7 bytes, a message 8 before its payload, as its length has 16 bits or fewer.
    const whole = pings * (7 + ALLOWED.length + (ALLOWED.length < 126 ? 6 : 8))
    await peer.until('ping and message', () => peer.received.length >= whole)
    assert.equal(peer.received.length, whole)
  }
})

test('an answer stands between two messages of the backend, never between their frames', async t => {
  const { open } = await startScripted(t)
  const { client, peer } = await open({})
  const first = frame('one ', { isLast: false, isMasked: false })
  const rest = frame('message', { opcode: 0, isMasked: false })
  for (let cut = 1; cut < first.length + rest.length; cut++) {
    const bytes = Buffer.concat([first, rest])
    peer.send(bytes.subarray(0, cut))
    await client.until('the start of a message', () => client.received.length === cut)
    client.send(Buffer.concat([frame(REFUSED), frame('after', { opcode: 9 })]))
    peer.send(Buffer.concat([bytes.subarray(cut), frame('next', { isMasked: false })]))
    await client.untilText('900910')
    await client.untilText('next')
    const text = client.take()
    assert.match(
      text,
      /^.{2}one .{2}message(?:.{2,4}\{"id".*900910.*\}.{2}next|.{2}next.{2,4}\{"id".*900910.*\})$/s,
      `${cut}`,
    )
    await peer.until('the ping behind it', () => peer.received.length === 11)
    peer.take()
  }
})

test('malformed frames close both sides with a status, and other connections go on', async t => {
  const { open } = await startScripted(t)
  const other = await open({})
  for (const [bytes, status] of [
    [frame('{}', { reserved: 0x40 }), 1002],
    [frame('{}', { isMasked: false }), 1002],
    [frame('{}', { opcode: 0 }), 1002],
    [frame(Buffer.from([0x22, 0xff, 0x22])), 1007],
    [frame('x', { opcode: 2 }), 1003],
  ] as const) {
    const { client, peer } = await open({})
    client.send(bytes)
    await client.until('a close frame', () => client.received.length >= 4)
    assert.deepEqual([client.received[0], client.received.readUInt16BE(2)], [0x88, status])
    await peer.until('a close frame', () => peer.received.length >= 8)
    assert.equal(peer.received[0], 0x88)
  }
  other.client.send(frame('{"type":"ping"}'))
  await other.peer.until('a ping', () => other.peer.received.length > 15)
})

test('a message waits for the check of the one before, and its bytes for the backend', async t => {
  const { open } = await startScripted(t)
  const { client, peer } = await open({})
  const messages = Array.from({ length: 40 }, (_, at) =>
    at % 2 === 0 ? JSON.stringify(subscribe('{open}', `${at}`)) : JSON.stringify({ type: 'ping', payload: at }),
  )
  client.send(Buffer.concat(messages.map(message => frame(message))))
  const lengths = messages.map(message => message.length + (message.length < 126 ? 6 : 8))
  const whole = lengths.reduce((sum, length) => sum + length, 0)
  await peer.until('all messages', () => peer.received.length === whole)
  const found: string[] = []
  for (let at = 0, rest = Buffer.from(peer.received); at < lengths.length; at++) {
    const start = lengths[at]! - messages[at]!.length
    const mask = rest.subarray(start - 4, start)
    found.push(Buffer.from(rest.subarray(start, lengths[at]).map((byte, index) => byte ^ mask[index % 4]!)).toString())
    rest = rest.subarray(lengths[at])
  }
  assert.deepEqual(found, messages)
})

for (const [how, leave] of [
  ['resets its connection', (client: Peer) => client.reset()],
  ['ends its connection', (client: Peer) => client.end()],
] as const) {
  test(`a message whose client ${how} gives its place in the queue of the workers up`, async t => {
    const gate = Promise.withResolvers<Peer>()
    const held = await startBackend(t, {
      '/held': (_, peer) => {
        gate.resolve(peer)
        return null
      },
    })
    const mediation = await flowsOf({ request: `${callTo(held.port, '/held')}<respond/>` })
    const others = [{ context: '/held', port: held.port, overrides: { mediation } }]
    const { workers } = planGateway([]).plan
    const plain = { ...workers.limits.plain, core: 1, max: 1, queueLength: -1 }
    const permits = SharedPermits.allocate(1, Object.keys(PERMIT_ROWS).length)
    const { running, open } = await startScripted(t, others, {
      ...{ permits, workers: { ...workers, limits: { ...workers.limits, plain } } },
      sequenceEndpoints: planEndpoints(mediation.sequences),
    })
    const waiting = () => SharedPermits.counts(permits, 1, PERMIT_ROWS.plain).waiting
    const { client, peer } = await open({})
    const holder = await connectPeer(running.gateway.port)
    t.after(() => holder.destroy())
    holder.send('GET /held HTTP/1.1\r\nHost: h\r\n\r\n')
    await gate.promise
    client.send(frame(JSON.stringify(subscribe('{open}'))))
    await eventually('the place in the queue', () => waiting() === 1)
    leave(client)
    await eventually('the free place', () => waiting() === 0)
    assert.equal(running.gateway.metrics().counts.workerTasksLeft, 1)
    assert.deepEqual(
      running.gateway.reports.filter(({ event }) => event === 'operation refused'),
      [],
    )
    await peer.untilEnd()
    assert.equal(peer.received.length, 0)
  })
}

test('a connection of another subprotocol needs the rights of every operation', async t => {
  const { upgrade, running, bearer } = await startScripted(t)
  const refused = async (claims: Claims, protocol: string) => {
    const client = await connectPeer(running.gateway.port)
    t.after(() => client.destroy())
    const lines = `Host: h\r\nAuthorization: ${bearer(claims)}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`
    client.send(`GET /g HTTP/1.1\r\n${lines}Sec-WebSocket-Protocol: ${protocol}\r\n\r\n`)
    return (await takeResponse(client)).status
  }
  assert.deepEqual([await refused(READ, 'other'), await refused(READ, `${TRANSPORT}, other`)], [403, 403])
  const { client } = await upgrade(ALL, 'other', 'Sec-WebSocket-Protocol: other')
  assert.match(await takeHead(client), /^HTTP\/1.1 101/)
  const unasked = await upgrade(READ, TRANSPORT, '')
  assert.match(await takeHead(unasked.client), /^HTTP\/1.1 403/)
  const extended = 'Sec-WebSocket-Protocol: graphql-transport-ws\r\nSec-WebSocket-Extensions: permessage-deflate'
  assert.match(await takeHead((await upgrade(READ, TRANSPORT, extended)).client), /^HTTP\/1.1 502/)
})
