/**
 * Pooled connections that are stale: closed by the backend at the moment of reuse, closed or written to while idle, too
 * old. A request is retried only where that is safe (RFC 9110 9.2.2).
 */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import { assertFault, takeResponse } from '../harness/responses.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'

const backend = await ScriptedBackend.listen()
const apis = [{ context: '/t', port: backend.port }]
/** New for each test, so that its pool is empty. */
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

interface PooledExchange {
  readonly client: Peer
  /** The backend connection, idle after its first request. */
  readonly peer: Peer
}

/** Sends a first request, whose response leaves a pooled backend connection. */
async function fillPool(through: TestGateway = gateway, response = OK): Promise<PooledExchange> {
  const client = await connectPeer(through.port)
  client.send(request('GET', 'first'))
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send(response)
  await takeResponse(client)
  return { client, peer }
}

async function serve(peer: Peer, path: string): Promise<void> {
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
    test(`RFC 9110 9.2.2: ${method} on a connection that the backend ${name} is retried on another one`, async () => {
      const { client, peer } = await fillPool()
      client.send(request(method, 'again'))
      await peer.untilText('\r\n\r\n')
      assert.ok(peer.text.startsWith(`${method} /again `))
      end(peer)
      const next = await backend.next()
      await serve(next, 'again')
      const response = method === 'HEAD' ? null : await takeResponse(client)
      if (response !== null) assert.equal(response.body, 'ok')
      else await client.untilText('Content-Length: 2\r\n')
      assert.equal(gateway.metrics().counts.retries, 1)
      client.destroy()
      next.end()
      await next.untilEnd()
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
    test(`RFC 9110 9.2.2: ${method} ${what} on a connection that the backend ${name} is not retried`, async () => {
      const { client, peer } = await fillPool()
      client.send(request(method, 'again', body))
      await peer.untilText(`\r\n\r\n${body ?? ''}`)
      end(peer)
      assertFault(await takeResponse(client), 502, name === 'closes' ? 101505 : 101501, 3, false)
      assert.equal(gateway.metrics().counts.retries, 0)
      assert.equal(gateway.metrics().counts.targetsOpened, 1)
      client.destroy()
    })
  }
}

test('RFC 9110 9.2.2: a request is retried once only', async () => {
  const { client, peer } = await fillPool()
  client.send(request('GET', 'again'))
  await peer.untilText('\r\n\r\n')
  peer.end()
  const next = await backend.next()
  await next.untilText('\r\n\r\n')
  next.end()
  assertFault(await takeResponse(client), 502, 101505, 3, false)
  assert.equal(gateway.metrics().counts.targetsOpened, 2)
  client.destroy()
})

test('RFC 9110 9.2.2: a request on a new connection is not retried', async () => {
  const client = await connectPeer(gateway.port)
  client.send(request('GET', 'once'))
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.end()
  assertFault(await takeResponse(client), 502, 101505, 3, false)
  assert.equal(gateway.metrics().counts.targetsOpened, 1)
  client.destroy()
})

for (const [name, bytes] of [
  ['a part of the response head', 'HTTP/1.1 20'],
  ['an interim response', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'],
] as const) {
  test(`RFC 9110 9.2.2: a request is not retried after ${name}`, async () => {
    const { client, peer } = await fillPool()
    client.send(request('GET', 'again'))
    await peer.untilText('\r\n\r\n')
    peer.send(bytes)
    if (bytes.endsWith('\r\n\r\n')) assert.equal((await takeResponse(client)).status, 103)
    peer.end()
    assertFault(await takeResponse(client), 502, 101505, 3, false)
    assert.equal(gateway.metrics().counts.retries, 0)
    client.destroy()
  })
}

for (const [name, end] of ENDS) {
  test(`a backend that ${name} an idle connection is noticed before the next request`, async () => {
    const { client, peer } = await fillPool()
    end(peer)
    await eventually('the end to be noticed', () => gateway.metrics().counts.staleConnections === 1)
    client.send(request('POST', 'next', 'data'))
    const next = await backend.next()
    await serve(next, 'next')
    assert.equal((await takeResponse(client)).body, 'ok')
    assert.equal(gateway.metrics().counts.retries, 0)
    client.destroy()
  })
}

for (const [name, bytes] of [
  ['a response', 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison'],
  ['a bare LF', '\n'],
  ['an empty line', '\r\n'],
  ['one byte', 'x'],
  ['garbage', 'xyz'],
] as const) {
  test(`RFC 9112 6.3: ${name} on an idle connection closes the connection`, async () => {
    const { client, peer } = await fillPool()
    peer.send(bytes)
    await peer.untilEnd()
    client.send(request('GET', 'next'))
    const next = await backend.next()
    await serve(next, 'next')
    assert.equal((await takeResponse(client)).body, 'ok')
    client.destroy()
  })

  test(`RFC 9112 6.3: ${name} after a complete response in the same read closes the connection`, async () => {
    const { client, peer } = await fillPool(gateway, OK + bytes)
    await peer.untilEnd()
    client.send(request('GET', 'next'))
    await serve(await backend.next(), 'next')
    assert.equal((await takeResponse(client)).body, 'ok')
    assert.equal(client.text, '')
    client.destroy()
  })
}

test('RFC 9112 6.3: a body after a response to HEAD closes the connection', async () => {
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

test('sender.keepalive.timeout: an idle connection is closed without a log event', async t => {
  const hasty = await startGateway(apis, { http: { 'sender.keepalive.timeout': 100 } })
  t.after(() => hasty.stop())
  const { client, peer } = await fillPool(hasty)
  assert.equal(await peer.untilEnd(), 'FIN')
  assert.equal(hasty.metrics().counts.timeoutTargetIdle, 1)
  assert.equal(hasty.metrics().counts.targetsOpen, 0)
  assert.deepEqual(hasty.reports, [])
  client.send(request('GET', 'next'))
  await serve(await backend.next(), 'next')
  assert.equal((await takeResponse(client)).body, 'ok')
  client.destroy()
})

test('RFC 2068 19.7.1: a shorter Keep-Alive timeout of the backend is respected', async () => {
  const { client, peer } = await fillPool(gateway, OK.replace('\r\n\r\n', '\r\nKeep-Alive: timeout=0\r\n\r\n'))
  assert.equal(await peer.untilEnd(), 'FIN')
  client.destroy()
})

test('RFC 9112 9.6: a response with Connection: close is the last one of its connection', async () => {
  const { client, peer } = await fillPool(gateway, OK.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
  assert.equal(await peer.untilEnd(), 'FIN')
  client.destroy()
})

test('disable_connection_keepalive: each request has Connection: close and its own connection', async t => {
  const closing = await startGateway(apis, { http: { disable_connection_keepalive: true } })
  t.after(() => closing.stop())
  const client = await connectPeer(closing.port)
  for (const path of ['one', 'two']) {
    client.send(request('GET', path))
    const peer = await backend.next()
    await peer.untilText('\r\n\r\n')
    assert.match(peer.text, /\r\nConnection: close\r\n/)
    peer.send(OK)
    const response = await takeResponse(client)
    assert.equal(response.body, 'ok')
    // The client's connection is another matter.
    assert.equal(response.fields.get('connection'), undefined)
    assert.equal(await peer.untilEnd(), 'FIN')
  }
  assert.equal(closing.metrics().counts.targetsReused, 0)
  client.destroy()
})
