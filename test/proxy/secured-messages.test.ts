/** Messages through a gateway with TLS on both sides: pipelining, long bodies, interim responses, half-close. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { takeResponse } from '../harness/responses.ts'
import { type Framing, framingLine, Sink, Source } from '../harness/bulk.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer } from '../harness/peers.ts'
import {
  clientPlan,
  connectSecured,
  SECURED,
  SecuredBackend,
  type SecuredPeer,
  serverPlan,
} from '../harness/secured-peers.ts'

const PLAN = { kinds: ['https'], tlsServer: serverPlan(), tlsClients: { default: clientPlan() } } as const
const LONG = 10 * 1024 * 1024

const backend = await SecuredBackend.listen()
const gateway = await startGateway([{ context: '/t', host: 'localhost', port: backend.port, route: SECURED }], {
  accessLog: 'json',
  ...PLAN,
})
after(() => {
  gateway.stop()
  backend.close()
})

const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const

async function client(version: (typeof VERSIONS)[number] = 'TLSv1.3'): Promise<SecuredPeer> {
  return connectSecured(gateway.port, { minVersion: version, maxVersion: version })
}

/** The backend connection that gets the next request: a pooled one or a new one. */
async function requestAtBackend(): Promise<Peer> {
  const find = (): Peer | undefined => backend.connections.find(({ peer }) => peer.length > 0 && !peer.isClosed)?.peer
  await eventually('the request', () => find() !== undefined)
  const peer = find()!
  await peer.untilText('\r\n\r\n')
  return peer
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const GET = 'GET /t/a?b=c HTTP/1.1\r\nHost: shop.test\r\n\r\n'

for (const version of VERSIONS) {
  test(`${version}: requests on one connection are forwarded on one backend connection`, async () => {
    const { peer, tls } = await client(version)
    const before = backend.accepted
    for (let i = 0; i < 3; i++) {
      peer.send(GET)
      const at = await requestAtBackend()
      const head = at.take()
      assert.match(head, /^GET \/a\?b=c HTTP\/1\.1\r\n/)
      assert.match(head, /\r\nX-Forwarded-Proto: https\r\n/)
      assert.match(head, new RegExp(`\r\nHost: localhost:${backend.port}\r\n`))
      at.send(OK)
      const { status, body } = await takeResponse(peer)
      assert.deepEqual([status, body], [200, 'ok'])
    }
    assert.ok(backend.accepted - before <= 1)
    assert.equal(tls.alpnProtocol, false)
    peer.end()
    assert.equal(await peer.untilEnd(), 'FIN')
  })

  for (const framing of ['length', 'chunked'] as Framing[]) {
    test(`${version}: bodies of 10 MiB with ${framing} framing pass in both directions`, {
      timeout: 60_000,
    }, async () => {
      const { tls } = await client(version)
      backend.skip()
      const response = new Sink(tls, LONG)
      const before = backend.connections.length
      tls.write(`POST /t/long HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${framingLine(framing, LONG)}\r\n`)
      const source = new Source(tls, LONG, framing)
      await eventually('the connection', () => backend.connections.length > before || withRequest() !== undefined)
      const target = withRequest() ?? backend.connections.at(-1)!
      // The sink also gets the bytes that arrived before it was created.
      const early = target.peer.take()
      target.tls.removeAllListeners('data')
      const sink = new Sink(target.tls, LONG)
      target.tls.emit('data', Buffer.from(early, 'latin1'))
      await sink.done
      await source.done
      target.tls.write(`HTTP/1.1 200 OK\r\nConnection: close\r\n${framingLine(framing, LONG)}\r\n`)
      const back = new Source(target.tls, LONG, framing)
      await response.done
      await back.done
      target.tls.destroy()
      tls.destroy()
    })
  }
}

function withRequest(): SecuredPeer | undefined {
  return backend.connections.find(({ peer }) => peer.length > 0 && !peer.isClosed)
}

test('pipelined requests are served from one TLS record and from one record per byte', async () => {
  for (const how of ['one', 'bytewise'] as const) {
    const { peer } = await client()
    const pair = `${GET}POST /t/p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello${GET}`
    if (how === 'one') peer.send(pair)
    else void peer.sendBytewise(pair)
    for (const line of ['GET /a?b=c', 'POST /p', 'GET /a?b=c']) {
      const at = await requestAtBackend()
      if (line.startsWith('POST')) await at.untilText('hello')
      assert.ok(at.take().startsWith(line))
      at.send(OK)
      assert.equal((await takeResponse(peer)).body, 'ok')
    }
    peer.destroy()
  }
})

test('HEAD, interim responses and trailers pass over TLS', async () => {
  const { peer } = await client()
  peer.send('HEAD /t/h HTTP/1.1\r\nHost: a\r\n\r\n')
  let at = await requestAtBackend()
  at.take()
  at.send('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n')
  await peer.untilText('\r\n\r\n')
  assert.match(peer.take(), /^HTTP\/1\.1 200 OK\r\n[\s\S]*Content-Length: 99\r\n/)

  peer.send('POST /t/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n')
  at = await requestAtBackend()
  at.take()
  at.send('HTTP/1.1 100 Continue\r\n\r\n')
  await peer.untilText('100 Continue\r\n')
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send('hi')
  await at.untilText('hi')
  at.take()
  at.send(`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}`)
  await peer.untilText('ok')
  assert.match(peer.take(), /^HTTP\/1\.1 103 Early Hints\r\n[\s\S]*\r\n\r\nHTTP\/1\.1 200 OK\r\n[\s\S]*ok$/)

  peer.send('POST /t/t HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\nTrailer: X-Up\r\n\r\n')
  peer.send('2\r\nhi\r\n0\r\nX-Up: 1\r\n\r\n')
  at = await requestAtBackend()
  await at.untilText('X-Up: 1\r\n\r\n')
  at.take()
  at.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Down\r\n\r\n2\r\nok\r\n0\r\nX-Down: 2\r\n\r\n')
  await peer.untilText('0\r\nX-Down: 2\r\n\r\n')
  peer.destroy()
})

test('RFC 9112 3.2.2: an absolute-form target on a TLS listener must be https', async () => {
  const { peer } = await client()
  peer.send('GET https://other.test/t/abs HTTP/1.1\r\nHost: a\r\n\r\n')
  const at = await requestAtBackend()
  const head = at.take()
  assert.match(head, /^GET \/abs HTTP\/1\.1\r\n/)
  assert.match(head, /\r\nX-Forwarded-Host: other\.test\r\n/)
  at.send(OK)
  assert.equal((await takeResponse(peer)).body, 'ok')
  peer.send('GET http://other.test/t/abs HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeResponse(peer)).status, 400)
  peer.destroy()
})

test('a plain HTTP request on a TLS listener closes the connection and is counted', async () => {
  const before = gateway.metrics().counts.tlsHandshakesFailed
  const peer = await connectPeer(gateway.port)
  peer.send(GET)
  await peer.untilEnd()
  assert.doesNotMatch(peer.text, /HTTP/)
  await eventually('the count', () => gateway.metrics().counts.tlsHandshakesFailed === before + 1)
  const failed = gateway.reports.find(({ event }) => event === 'TLS handshake failed')!
  assert.equal(failed.fields.CAUSE_OF_ERROR, 'handshake: plain HTTP came where TLS is spoken (ERR_SSL_HTTP_REQUEST)')
  peer.destroy()
})

test('RFC 9112 9.6: a client that has sent close_notify gets its response, then close_notify', async () => {
  const { peer, tls } = await client()
  peer.send(GET)
  peer.end()
  const at = await requestAtBackend()
  at.take()
  at.send(OK)
  await peer.untilText('ok')
  assert.equal(await peer.untilEnd(), 'FIN')
  await eventually('the close', () => peer.isClosed)
  assert.equal(tls.errored ?? null, null)
})

test('the access log has an entry for each request', async () => {
  const before = gateway.accessLines.length
  const { peer } = await client()
  peer.send(GET)
  const at = await requestAtBackend()
  at.take()
  at.send(OK)
  await takeResponse(peer)
  await eventually('the line', () => gateway.accessLines.length > before)
  const line = JSON.parse(gateway.accessLines.at(-1)!)
  assert.equal(line.status, 200)
  peer.destroy()
})
