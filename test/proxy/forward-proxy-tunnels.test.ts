/**
 * Backends behind a forward proxy that opens tunnels (RFC 9110 9.3.6): CONNECT, TLS through the tunnel, the responses
 * of the proxy to CONNECT, and the logged cause of each failure.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import type { Route } from '../../src/proxy/target/route.ts'
import { OTHER_CA, SERVER } from '../harness/certificates.ts'
import { ConnectProxy } from '../harness/connect-proxy.ts'
import { failureLine } from '../harness/failures.ts'
import { connectPeer, eventually, type Peer, quiet, refusingPort, ScriptedBackend } from '../harness/peers.ts'
import { assertRefused, gatewayFor, proxyAt, securedApi, sendGet, TLS } from '../harness/proxied-gateway.ts'
import { assertFault, takeResponse } from '../harness/responses.ts'

const BASIC = `Basic ${btoa('gateway:secret')}`

/** A TLS backend that responds with its name, method, path, and the number of requests on its connection. */
async function securedBackend(t: { after(done: () => void): void }, name: string): Promise<number> {
  const requestCounts = new WeakMap<object, number>()
  const server = createServer({ key: SERVER.key, cert: SERVER.cert }, (request, response) => {
    const count = (requestCounts.get(request.socket) ?? 0) + 1
    requestCounts.set(request.socket, count)
    response.setHeader('x-seen', JSON.stringify([request.headers.host, request.headers['proxy-authorization'] ?? '']))
    const body = `${name} ${request.method} ${request.url} ${count}`
    response.setHeader('content-length', body.length)
    response.end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

test('a TLS backend is reached through CONNECT and does not get the credentials for the proxy', async t => {
  const port = await securedBackend(t, 'one')
  const proxy = await ConnectProxy.listen(BASIC)
  t.after(() => proxy.close())
  const gateway = await gatewayFor(t, [securedApi(port, proxyAt(proxy.port, BASIC))])
  const response = await takeResponse(await sendGet(t, gateway, '/t/it?a=b'))
  assert.equal(response.body, 'one GET /it?a=b 1')
  assert.deepEqual(response.fields.get('x-seen'), [JSON.stringify([`localhost:${port}`, ''])])
  const authority = `localhost:${port}`
  assert.deepEqual(proxy.heads, [
    `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\nProxy-Authorization: ${BASIC}\r\n\r\n`,
  ])
  assert.ok(!JSON.stringify(gateway.reports).includes(btoa('gateway:secret')))
})

test('a tunnel is reused for its own backend only', async t => {
  const one = await securedBackend(t, 'one')
  const two = await securedBackend(t, 'two')
  const proxy = await ConnectProxy.listen()
  t.after(() => proxy.close())
  const plan = proxyAt(proxy.port)
  const gateway = await gatewayFor(t, [securedApi(one, plan, '/one'), securedApi(two, plan, '/two')])
  const bodies: string[] = []
  for (const path of ['/one/', '/two/', '/one/', '/two/', '/one/']) {
    bodies.push((await takeResponse(await sendGet(t, gateway, path))).body)
  }
  assert.deepEqual(bodies, ['one GET / 1', 'two GET / 1', 'one GET / 2', 'two GET / 2', 'one GET / 3'])
  assert.deepEqual(
    proxy.heads.map(head => head.split(' ')[1]),
    [`localhost:${one}`, `localhost:${two}`],
  )
})

test('a plain route through a tunnel sends requests in origin-form', async t => {
  const backend = await ScriptedBackend.listen()
  const proxy = await ConnectProxy.listen(BASIC)
  t.after(() => {
    backend.close()
    proxy.close()
  })
  const route: Partial<Route> = { proxy: proxyAt(proxy.port, BASIC), connectsThroughProxy: true }
  const gateway = await gatewayFor(t, [{ context: '/t', port: backend.port, basePath: '/base', route }])
  const client = await sendGet(t, gateway, '/t/it')
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  assert.match(peer.text, /^GET \/base\/it HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\n/)
  assert.ok(!peer.text.includes('Proxy-Authorization'))
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  assert.equal((await takeResponse(client)).body, 'ok')
  assert.match(proxy.heads[0]!, /^CONNECT 127\.0\.0\.1:\d+ HTTP\/1\.1\r\n/)
})

test('wrong credentials for the proxy cause 502 with 101503, and the log names the proxy', async t => {
  const port = await securedBackend(t, 'one')
  const proxy = await ConnectProxy.listen(BASIC)
  t.after(() => proxy.close())
  const gateway = await gatewayFor(t, [securedApi(port, proxyAt(proxy.port, `Basic ${btoa('gateway:wrong')}`))])
  const cause = `proxy 127.0.0.1:${proxy.port} answered 407: it got no credentials, or wrong ones`
  await assertRefused(t, gateway, cause)
})

test('a backend that the proxy cannot reach causes 502 with 101503, and the log has the status', async t => {
  const closed = await refusingPort()
  t.after(() => closed.close())
  const proxy = await ConnectProxy.listen()
  t.after(() => proxy.close())
  const gateway = await gatewayFor(t, [securedApi(closed.port, proxyAt(proxy.port))])
  await assertRefused(t, gateway, `proxy 127.0.0.1:${proxy.port} answered 502 to CONNECT`)
})

test('a proxy that refuses the connection causes 502 with 101503, and the log names the proxy', async t => {
  const closed = await refusingPort()
  t.after(() => closed.close())
  const gateway = await gatewayFor(t, [securedApi(443, proxyAt(closed.port))])
  await assertRefused(t, gateway, `proxy 127.0.0.1:${closed.port}: ECONNREFUSED`)
  const { fields } = failureLine(gateway, 0)
  assert.equal(fields.TARGET_PORT, 443)
  assert.equal(fields.REMOTE_ADDRESS, `127.0.0.1:${closed.port}`)
})

test('a proxy whose name does not resolve causes 502 with 101503', async t => {
  const proxy = { host: 'proxy.invalid', port: 3128, authorization: '' }
  const gateway = await gatewayFor(t, [securedApi(443, proxy)])
  assertFault(await takeResponse(await sendGet(t, gateway, '/t/')), 502, 101503, 0, false)
  assert.match(String(failureLine(gateway, 0).fields.CAUSE_OF_ERROR), /^proxy proxy\.invalid:3128: E/)
})

test('an untrusted certificate of the backend is logged with the proxy', async t => {
  const port = await securedBackend(t, 'one')
  const proxy = await ConnectProxy.listen()
  t.after(() => proxy.close())
  const gateway = await gatewayFor(t, [securedApi(port, proxyAt(proxy.port))], {}, { ...TLS, ca: [OTHER_CA.cert] })
  const response = await takeResponse(await sendGet(t, gateway, '/t/'))
  assert.equal(response.status, 502)
  assert.match(response.body, /"code":101503,.*"The certificate of the backend is not accepted \([A-Z_]+\)"/)
  const cause = String(failureLine(gateway, 0).fields.CAUSE_OF_ERROR)
  assert.match(cause, /^certificate of localhost: .*\([A-Z_]+\), through proxy 127\.0\.0\.1:\d+$/)
})

test('RFC 9110 7.8: an upgrade is forwarded through a tunnel, then bytes in both directions', async t => {
  const backend = await ScriptedBackend.listen()
  const proxy = await ConnectProxy.listen()
  t.after(() => {
    backend.close()
    proxy.close()
  })
  const route: Partial<Route> = { proxy: proxyAt(proxy.port), connectsThroughProxy: true }
  const gateway = await gatewayFor(t, [{ context: '/t', port: backend.port, route }])
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send('GET /t/it HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n')
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  assert.match(peer.take(), /^GET \/it HTTP\/1\.1\r\n/)
  peer.send('HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nfrom the backend')
  await client.untilText('from the backend')
  client.send('from the client')
  await peer.untilText('from the client')
})

// ---- responses to CONNECT ------------------------------------------------------------------------------------------

const TIMEOUT_MS = 500

/** A proxy whose connections the test scripts. */
const scripted = await ScriptedBackend.listen()
after(() => scripted.close())
const NAME = `proxy 127.0.0.1:${scripted.port}`

/** A response of the proxy to CONNECT, and the end of the logged cause. */
const REFUSALS: readonly (readonly [string, (peer: Peer) => unknown, string])[] = [
  ['403', peer => peer.send('HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno'), ' answered 403 to CONNECT'],
  ['302', peer => peer.send('HTTP/1.1 302 No\r\nLocation: /\r\n\r\n'), ' answered 302 to CONNECT'],
  [
    '101',
    peer => peer.send('HTTP/1.1 101 No\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
    ' answered 101 to CONNECT',
  ],
  [
    '200 and further bytes',
    peer => peer.send('HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n'),
    ': bytes behind its answer to CONNECT',
  ],
  [
    '200 and a body',
    peer => peer.send('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx'),
    ': bytes behind its answer to CONNECT',
  ],
  ['another protocol', peer => peer.send('SSH-2.0-OpenSSH_9.6\r\n'), ': Expected HTTP/, RTSP/ or ICE/ (RFC 9112)'],
  [
    'HTTP/2.0',
    peer => peer.send('HTTP/2.0 200 OK\r\n\r\n'),
    ': status line is not "HTTP/1.x SP code SP reason" (RFC 9112 4)',
  ],
  [
    'a head over the limit',
    peer => peer.send(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(5000)}\r\n\r\n`),
    ': head is longer than the limit (RFC 6585 5)',
  ],
  [
    'an unfinished head over the limit',
    peer => peer.send(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(5000)}`),
    ': head is longer than the limit (RFC 6585 5)',
  ],
  [
    '17 interim responses',
    peer => peer.send('HTTP/1.1 102 Wait\r\n\r\n'.repeat(17)),
    ': more than 16 interim responses',
  ],
  ['a FIN', peer => peer.end(), ' closed the connection instead of opening a tunnel'],
  [
    'a FIN within the head',
    peer => {
      peer.send('HTTP/1.1 200 OK\r\nX')
      peer.end()
    },
    ' closed the connection instead of opening a tunnel',
  ],
  ['a reset', peer => peer.reset(), ': ECONNRESET'],
]

for (const [what, act, cause] of REFUSALS) {
  test(`RFC 9110 9.3.6: ${what} as the response to CONNECT causes 502 with 101503`, async t => {
    const gateway = await gatewayFor(t, [securedApi(443, proxyAt(scripted.port))], {
      'response.header.max_bytes': 4096,
    })
    scripted.skip()
    const refused = assertRefused(t, gateway, `${NAME}${cause}`)
    const peer = await scripted.next()
    await peer.untilText('\r\n\r\n')
    act(peer)
    await refused
    if (what !== 'a reset') await peer.untilEnd()
    peer.destroy()
  })
}

const OPENINGS: readonly (readonly [string, string])[] = [
  ['200', 'HTTP/1.1 200 OK\r\n\r\n'],
  ['299 of HTTP/1.0', 'HTTP/1.0 299 Whatever it says\r\nServer: x\r\n\r\n'],
  ['200 with a meaningless Content-Length', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n'],
  ['200 with a meaningless Transfer-Encoding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
  [
    'interim responses and 200',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
  ],
  ['204', 'HTTP/1.1 204 No Content\r\n\r\n'],
]

for (const [what, bytes] of OPENINGS) {
  for (const cut of [false, true]) {
    test(`RFC 9110 9.3.6: ${what}${cut ? ', sent byte by byte,' : ''} opens the tunnel`, async t => {
      const route: Partial<Route> = { proxy: proxyAt(scripted.port), connectsThroughProxy: true }
      const gateway = await gatewayFor(t, [{ context: '/t', host: 'backend.example', port: 80, route }])
      scripted.skip()
      const client = await sendGet(t, gateway, '/t/it')
      const peer = await scripted.next()
      await peer.untilText('\r\n\r\n')
      assert.equal(peer.take(), 'CONNECT backend.example:80 HTTP/1.1\r\nHost: backend.example:80\r\n\r\n')
      if (cut) await peer.sendBytewise(bytes)
      else peer.send(bytes)
      await peer.untilText('\r\n\r\n')
      assert.match(peer.take(), /^GET \/it HTTP\/1\.1\r\nHost: backend\.example\r\n/)
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      assert.equal((await takeResponse(client)).body, 'ok')
      peer.destroy()
    })
  }
}

test('a 407 response that arrives through a tunnel is forwarded', async t => {
  const route: Partial<Route> = { proxy: proxyAt(scripted.port), connectsThroughProxy: true }
  const gateway = await gatewayFor(t, [{ context: '/t', host: 'backend.example', port: 80, route }])
  scripted.skip()
  const client = await sendGet(t, gateway, '/t/it')
  const peer = await scripted.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send('HTTP/1.1 200 OK\r\n\r\n')
  await peer.untilText('\r\n\r\n')
  peer.send('HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno')
  const response = await takeResponse(client)
  assert.deepEqual([response.status, response.body], [407, 'no'])
  peer.destroy()
})

test('RFC 9110 9.3.6: an IPv6 backend has brackets in the target of CONNECT', async t => {
  const route: Partial<Route> = { proxy: proxyAt(scripted.port), connectsThroughProxy: true }
  const gateway = await gatewayFor(t, [{ context: '/t', host: '[2001:db8::1]', port: 8080, route }])
  scripted.skip()
  await sendGet(t, gateway, '/t/it')
  const peer = await scripted.next()
  await peer.untilText('\r\n\r\n')
  assert.equal(peer.take(), 'CONNECT [2001:db8::1]:8080 HTTP/1.1\r\nHost: [2001:db8::1]:8080\r\n\r\n')
  peer.destroy()
})

/** A proxy that stops at some point, its bytes, and the awaited event. */
const SILENCES: readonly (readonly [string, string, string])[] = [
  ['does not respond', '', `answer of ${NAME} to CONNECT`],
  ['does not complete its response', 'HTTP/1.1 200 OK\r\n', `answer of ${NAME} to CONNECT`],
  ['opens a tunnel to a backend that does not respond', 'HTTP/1.1 200 OK\r\n\r\n', 'end of the TLS handshake'],
]

for (const [what, bytes, awaited] of SILENCES) {
  test(`http.connection.timeout: a proxy that ${what} causes 504 with 101508`, async t => {
    const limit = { 'http.connection.timeout': TIMEOUT_MS }
    const gateway = await gatewayFor(t, [securedApi(443, proxyAt(scripted.port))], limit)
    scripted.skip()
    const client = await sendGet(t, gateway, '/t/it')
    const peer = await scripted.next()
    await peer.untilText('\r\n\r\n')
    peer.send(bytes)
    assertFault(await takeResponse(client), 504, 101508, 0, false)
    const { fields } = failureLine(gateway, 0)
    assert.equal(fields.CAUSE_OF_ERROR, `no ${awaited} within ${TIMEOUT_MS} ms`)
    assert.equal(gateway.metrics().counts.timeoutConnect, 1)
    assert.equal(gateway.metrics().counts.targetsOpen, 0)
    await peer.untilEnd()
    peer.destroy()
  })
}

test('a client that leaves during CONNECT is logged as 101507 with level debug', async t => {
  const gateway = await gatewayFor(t, [securedApi(443, proxyAt(scripted.port))])
  scripted.skip()
  const client = await sendGet(t, gateway, '/t/it')
  const peer = await scripted.next()
  await peer.untilText('\r\n\r\n')
  peer.send('HTTP/1.1 20')
  client.reset()
  await peer.untilEnd()
  await eventually('the end of the proxy connection', () => gateway.metrics().counts.targetsOpen === 0)
  const { level, fields } = failureLine(gateway, 0)
  assert.equal(level, 'debug')
  assert.equal(fields.ERROR_CODE, 101507)
  peer.destroy()
})

test('every outcome of CONNECT releases its parser and its memory', async t => {
  const gateway = await gatewayFor(t, [securedApi(443, proxyAt(scripted.port))])
  const before = [arena.acquiredChunks, Parser.inUse]
  const endings: readonly ((peer: Peer, client: Peer) => void)[] = [
    (_, client) => client.reset(),
    peer => peer.reset(),
    peer => peer.end(),
    peer => peer.send('x: y\r\n\r\n\0'),
    peer => peer.send('\r\nHTTP/1.1 200 OK\r\n\r\n'),
  ]
  for (const end of endings) {
    scripted.skip()
    const client = await sendGet(t, gateway, '/t/it')
    const peer = await scripted.next()
    await peer.untilText('\r\n\r\n')
    peer.send('HTTP/1.1 200 OK\r\nX')
    await quiet()
    assert.equal(arena.acquiredChunks, before[0]! + 2, 'the request, and the unfinished response')
    end(peer, client)
    await peer.untilEnd()
    client.destroy()
    peer.destroy()
    await eventually('the release of both', () => arena.acquiredChunks === before[0] && Parser.inUse === before[1])
  }
})
