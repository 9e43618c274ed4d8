/**
 * Pooled connections that are no longer what they seem: closed by the backend at the moment they are used again, closed
 * or spoken on while idle, too old. A request is tried once more only where that cannot do harm (RFC 9110 9.2.2).
 */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import { assertFault, takeAnswer } from '../harness/answers.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'

const backend = await ScriptedBackend.listen()
const apis = [{ context: '/t', port: backend.port }]
/** A new one for each test, so that no pool holds what another test left. */
let gateway: TestGateway

beforeEach(async () => {
  gateway = await startGateway(apis)
  backend.skip()
})
afterEach(() => gateway.stop())
after(() => backend.close())

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

function request(method: string, path: string, body: string | null = null): string {
  const length = body === null ? '' : `Content-Length: ${body.length}\r\n`
  return `${method} /t/${path} HTTP/1.1\r\nHost: a\r\n${length}\r\n${body ?? ''}`
}

interface Reused {
  readonly client: Peer
  /** The backend's end of a connection that has served one request and is about to serve a second. */
  readonly peer: Peer
}

/** A client and a pooled backend connection that answered `head` to one request. */
async function reused(through: TestGateway = gateway, answer = OK): Promise<Reused> {
  const client = await connectPeer(through.port)
  client.send(request('GET', 'first'))
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send(answer)
  await takeAnswer(client)
  return { client, peer }
}

async function served(peer: Peer, path: string): Promise<void> {
  await peer.untilText('\r\n\r\n')
  assert.match(peer.take(), new RegExp(`^[A-Z]+ /${path} HTTP/1\\.1\r\n`))
  peer.send(OK)
}

const IDEMPOTENT = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'] as const
const ENDS: readonly (readonly [string, (peer: Peer) => void])[] = [
  ['closes', peer => peer.end()],
  ['resets', peer => peer.reset()],
]

for (const [name, end] of ENDS) {
  for (const method of IDEMPOTENT) {
    test(`${method} on a connection that the backend ${name} is sent once more, on a fresh connection`, async () => {
      const { client, peer } = await reused()
      client.send(request(method, 'again'))
      await peer.untilText('\r\n\r\n')
      assert.ok(peer.text.startsWith(`${method} /again `))
      end(peer)
      const fresh = await backend.next()
      await served(fresh, 'again')
      const answer = method === 'HEAD' ? null : await takeAnswer(client)
      if (answer !== null) assert.equal(answer.body, 'ok')
      else await client.untilText('Content-Length: 2\r\n')
      assert.equal(gateway.metrics().counts.retries, 1)
      client.destroy()
      fresh.end()
      await fresh.untilEnd()
    })
  }

  for (const [method, body] of [
    ['POST', null],
    ['POST', ''],
    ['PATCH', null],
    ['POST', 'data'],
    ['PUT', 'data'],
  ] as const) {
    const what = body === null ? 'without a body' : body === '' ? 'with an empty body' : 'with a body'
    test(`${method} ${what} on a connection that the backend ${name} is not sent again`, async () => {
      const { client, peer } = await reused()
      client.send(request(method, 'again', body))
      await peer.untilText(`\r\n\r\n${body ?? ''}`)
      end(peer)
      assertFault(await takeAnswer(client), 502, name === 'closes' ? 101505 : 101501, 3, false)
      assert.equal(gateway.metrics().counts.retries, 0)
      assert.equal(gateway.metrics().counts.targetsOpened, 1)
      client.destroy()
    })
  }
}

test('a request is sent once more, and no third time', async () => {
  const { client, peer } = await reused()
  client.send(request('GET', 'again'))
  await peer.untilText('\r\n\r\n')
  peer.end()
  const fresh = await backend.next()
  await fresh.untilText('\r\n\r\n')
  fresh.end()
  assertFault(await takeAnswer(client), 502, 101505, 3, false)
  assert.equal(gateway.metrics().counts.targetsOpened, 2)
  client.destroy()
})

test('a connection that never served is not stale: its request is not sent again', async () => {
  const client = await connectPeer(gateway.port)
  client.send(request('GET', 'once'))
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.end()
  assertFault(await takeAnswer(client), 502, 101505, 3, false)
  assert.equal(gateway.metrics().counts.targetsOpened, 1)
  client.destroy()
})

for (const [name, bytes] of [
  ['some bytes of a head', 'HTTP/1.1 20'],
  ['an interim response', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'],
] as const) {
  test(`after ${name} a request is not sent again: the backend was at work`, async () => {
    const { client, peer } = await reused()
    client.send(request('GET', 'again'))
    await peer.untilText('\r\n\r\n')
    peer.send(bytes)
    if (bytes.endsWith('\r\n\r\n')) assert.equal((await takeAnswer(client)).status, 103)
    peer.end()
    assertFault(await takeAnswer(client), 502, 101505, 3, false)
    assert.equal(gateway.metrics().counts.retries, 0)
    client.destroy()
  })
}

for (const [name, end] of ENDS) {
  test(`a backend that ${name} an idle connection is noticed before the next request`, async () => {
    const { client, peer } = await reused()
    end(peer)
    await eventually('the end to be noticed', () => gateway.metrics().counts.staleConnections === 1)
    client.send(request('POST', 'next', 'data'))
    const fresh = await backend.next()
    await served(fresh, 'next')
    assert.equal((await takeAnswer(client)).body, 'ok')
    assert.equal(gateway.metrics().counts.retries, 0)
    client.destroy()
  })
}

for (const [name, bytes] of [
  ['a whole response', 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison'],
  ['a line feed', '\n'],
  ['garbage', 'xyz'],
] as const) {
  test(`${name} on an idle connection ends it; the next request never meets it`, async () => {
    const { client, peer } = await reused()
    peer.send(bytes)
    await peer.untilEnd()
    client.send(request('GET', 'next'))
    const fresh = await backend.next()
    await served(fresh, 'next')
    assert.equal((await takeAnswer(client)).body, 'ok')
    client.destroy()
  })

  test(`${name} behind a complete response, in the same bytes, ends the connection`, async () => {
    const { client, peer } = await reused(gateway, OK + bytes)
    await peer.untilEnd()
    client.send(request('GET', 'next'))
    await served(await backend.next(), 'next')
    assert.equal((await takeAnswer(client)).body, 'ok')
    assert.equal(client.text, '')
    client.destroy()
  })
}

test('a body on the answer to HEAD ends the connection', async () => {
  const client = await connectPeer(gateway.port)
  client.send(request('HEAD', 'head'))
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.send(OK)
  await client.untilText('\r\n\r\n')
  await peer.untilEnd()
  assert.ok(!client.text.endsWith('ok'))
  client.destroy()
})

test('an idle connection is closed in silence after its time', async t => {
  const hasty = await startGateway(apis, { 'sender.keepalive.timeout': 100 })
  t.after(() => hasty.stop())
  const { client, peer } = await reused(hasty)
  assert.equal(await peer.untilEnd(), 'FIN')
  assert.equal(hasty.metrics().counts.timeoutTargetIdle, 1)
  assert.equal(hasty.metrics().counts.targetsOpen, 0)
  assert.deepEqual(hasty.reports, [])
  client.send(request('GET', 'next'))
  await served(await backend.next(), 'next')
  assert.equal((await takeAnswer(client)).body, 'ok')
  client.destroy()
})

test('a backend that keeps connections for a shorter time is believed', async () => {
  const { client, peer } = await reused(gateway, OK.replace('\r\n\r\n', '\r\nKeep-Alive: timeout=0\r\n\r\n'))
  assert.equal(await peer.untilEnd(), 'FIN')
  client.destroy()
})

test('a response that says close is the last one of its connection', async () => {
  const { client, peer } = await reused(gateway, OK.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
  assert.equal(await peer.untilEnd(), 'FIN')
  client.destroy()
})

test('disable_connection_keepalive: each request says close and has a connection of its own', async t => {
  const closing = await startGateway(apis, { disable_connection_keepalive: true })
  t.after(() => closing.stop())
  const client = await connectPeer(closing.port)
  for (const path of ['one', 'two']) {
    client.send(request('GET', path))
    const peer = await backend.next()
    await peer.untilText('\r\n\r\n')
    assert.match(peer.text, /\r\nConnection: close\r\n/)
    peer.send(OK)
    const answer = await takeAnswer(client)
    assert.equal(answer.body, 'ok')
    // The client's connection is another matter.
    assert.equal(answer.fields.get('connection'), undefined)
    assert.equal(await peer.untilEnd(), 'FIN')
  }
  assert.equal(closing.metrics().counts.targetsReused, 0)
  client.destroy()
})
