/** A proxy that is asked for a tunnel and opens none, or takes its time; and what counts as an open one. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import type { Route } from '../../src/target/route.ts'
import { assertFault, takeAnswer } from '../harness/answers.ts'
import { failureLine } from '../harness/failures.ts'
import { eventually, type Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { ask, assertRefused, gatewayFor, proxyAt, secured } from '../harness/proxied-gateway.ts'

const TIMEOUT_MS = 300

const proxy = await ScriptedBackend.listen()
after(() => proxy.close())
const NAME = `proxy 127.0.0.1:${proxy.port}`

/** What the proxy does with CONNECT, and what the log says of it. */
const REFUSALS: readonly (readonly [string, (peer: Peer) => unknown, string])[] = [
  ['403', peer => peer.send('HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno'), ' answered 403 to CONNECT'],
  ['a redirection', peer => peer.send('HTTP/1.1 302 No\r\nLocation: /\r\n\r\n'), ' answered 302 to CONNECT'],
  [
    '101',
    peer => peer.send('HTTP/1.1 101 No\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
    ' answered 101 to CONNECT',
  ],
  [
    'bytes behind its answer',
    peer => peer.send('HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n'),
    ': bytes behind its answer to CONNECT',
  ],
  [
    'a body that its answer announces',
    peer => peer.send('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx'),
    ': bytes behind its answer to CONNECT',
  ],
  ['garbage', peer => peer.send('SSH-2.0-OpenSSH_9.6\r\n'), ': Expected HTTP/, RTSP/ or ICE/ (RFC 9112)'],
  [
    'another version',
    peer => peer.send('HTTP/2.0 200 OK\r\n\r\n'),
    ': status line is not "HTTP/1.x SP code SP reason" (RFC 9112 4)',
  ],
  [
    'a head that is too long',
    peer => peer.send(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(5000)}\r\n\r\n`),
    ': head is longer than the limit (RFC 6585 5)',
  ],
  [
    'a head that never ends',
    peer => peer.send(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(5000)}`),
    ': head is longer than the limit (RFC 6585 5)',
  ],
  [
    'interim responses without end',
    peer => peer.send('HTTP/1.1 102 Wait\r\n\r\n'.repeat(17)),
    ': more than 16 interim responses',
  ],
  ['an end at once', peer => peer.end(), ' closed the connection instead of opening a tunnel'],
  [
    'an end in the midst of its answer',
    peer => {
      peer.send('HTTP/1.1 200 OK\r\nX')
      peer.end()
    },
    ' closed the connection instead of opening a tunnel',
  ],
  ['a reset', peer => peer.reset(), ': ECONNRESET'],
]

for (const [what, act, cause] of REFUSALS) {
  test(`a proxy that answers CONNECT with ${what}: 502 with 101503, and its connection is closed`, async t => {
    const gateway = await gatewayFor(t, [secured(443, proxyAt(proxy.port))], { 'response.header.max_bytes': 4096 })
    proxy.skip()
    const refused = assertRefused(t, gateway, `${NAME}${cause}`)
    const peer = await proxy.next()
    await peer.untilText('\r\n\r\n')
    act(peer)
    await refused
    if (what !== 'a reset') await peer.untilEnd()
    peer.destroy()
  })
}

const OPENINGS: readonly (readonly [string, string])[] = [
  ['200', 'HTTP/1.1 200 OK\r\n\r\n'],
  ['another 2xx, of HTTP/1.0', 'HTTP/1.0 299 Whatever it says\r\nServer: x\r\n\r\n'],
  ['a length that means nothing (RFC 9110 9.3.6)', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n'],
  ['a coding that means nothing (RFC 9110 9.3.6)', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
  [
    'interim responses before',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
  ],
  ['no body to a 204', 'HTTP/1.1 204 No Content\r\n\r\n'],
]

for (const [what, bytes] of OPENINGS) {
  for (const cut of [false, true]) {
    test(`a tunnel is open after ${what}${cut ? ', byte by byte' : ''}`, async t => {
      const route: Partial<Route> = { proxy: proxyAt(proxy.port), connectsThroughProxy: true }
      const gateway = await gatewayFor(t, [{ context: '/t', host: 'backend.example', port: 80, route }])
      proxy.skip()
      const client = await ask(t, gateway, '/t/it')
      const peer = await proxy.next()
      await peer.untilText('\r\n\r\n')
      assert.equal(peer.take(), 'CONNECT backend.example:80 HTTP/1.1\r\nHost: backend.example:80\r\n\r\n')
      if (cut) await peer.sendBytewise(bytes)
      else peer.send(bytes)
      await peer.untilText('\r\n\r\n')
      assert.match(peer.take(), /^GET \/it HTTP\/1\.1\r\nHost: backend\.example\r\n/)
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      assert.equal((await takeAnswer(client)).body, 'ok')
      peer.destroy()
    })
  }
}

test('407 that comes through a tunnel is what the backend says', async t => {
  const route: Partial<Route> = { proxy: proxyAt(proxy.port), connectsThroughProxy: true }
  const gateway = await gatewayFor(t, [{ context: '/t', host: 'backend.example', port: 80, route }])
  proxy.skip()
  const client = await ask(t, gateway, '/t/it')
  const peer = await proxy.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send('HTTP/1.1 200 OK\r\n\r\n')
  await peer.untilText('\r\n\r\n')
  peer.send('HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno')
  const answer = await takeAnswer(client)
  assert.deepEqual([answer.status, answer.body], [407, 'no'])
  peer.destroy()
})

test('an IPv6 backend is named in brackets', async t => {
  const route: Partial<Route> = { proxy: proxyAt(proxy.port), connectsThroughProxy: true }
  const gateway = await gatewayFor(t, [{ context: '/t', host: '[2001:db8::1]', port: 8080, route }])
  proxy.skip()
  await ask(t, gateway, '/t/it')
  const peer = await proxy.next()
  await peer.untilText('\r\n\r\n')
  assert.equal(peer.take(), 'CONNECT [2001:db8::1]:8080 HTTP/1.1\r\nHost: [2001:db8::1]:8080\r\n\r\n')
  peer.destroy()
})

/** Where it stops, and what did not come. */
const STOPS: readonly (readonly [string, string, string])[] = [
  ['says nothing', '', `answer of ${NAME} to CONNECT`],
  ['stops in the midst of its answer', 'HTTP/1.1 200 OK\r\n', `answer of ${NAME} to CONNECT`],
  ['opens a tunnel to a backend that says nothing', 'HTTP/1.1 200 OK\r\n\r\n', 'end of the TLS handshake'],
]

for (const [what, bytes, awaited] of STOPS) {
  test(`a proxy that ${what}: 504 with 101508 within the time for all steps`, async t => {
    const limit = { 'http.connection.timeout': TIMEOUT_MS }
    const gateway = await gatewayFor(t, [secured(443, proxyAt(proxy.port))], limit)
    proxy.skip()
    const client = await ask(t, gateway, '/t/it')
    const peer = await proxy.next()
    await peer.untilText('\r\n\r\n')
    peer.send(bytes)
    assertFault(await takeAnswer(client), 504, 101508, 0, false)
    const { fields } = failureLine(gateway, 0)
    assert.equal(fields.CAUSE_OF_ERROR, `no ${awaited} within ${TIMEOUT_MS} ms`)
    assert.equal(gateway.metrics().counts.timeoutConnect, 1)
    assert.equal(gateway.metrics().counts.targetsOpen, 0)
    await peer.untilEnd()
    peer.destroy()
  })
}

test('the client leaves while the proxy is asked: 101507, in the debug log only, and the proxy is left', async t => {
  const gateway = await gatewayFor(t, [secured(443, proxyAt(proxy.port))])
  proxy.skip()
  const client = await ask(t, gateway, '/t/it')
  const peer = await proxy.next()
  await peer.untilText('\r\n\r\n')
  peer.send('HTTP/1.1 20')
  client.reset()
  await peer.untilEnd()
  await eventually('its end', () => gateway.metrics().counts.targetsOpen === 0)
  const { level, fields } = failureLine(gateway, 0)
  assert.equal(level, 'debug')
  assert.equal(fields.ERROR_CODE, 101507)
  peer.destroy()
})

test('whatever becomes of a tunnel, what it borrowed is given back', async t => {
  const gateway = await gatewayFor(t, [secured(443, proxyAt(proxy.port))])
  const before = [arena.lentChunks, Parser.inUse]
  const endings: readonly ((peer: Peer, client: Peer) => void)[] = [
    (_, client) => client.reset(),
    peer => peer.reset(),
    peer => peer.end(),
    peer => peer.send('x: y\r\n\r\n\0'),
    peer => peer.send('\r\nHTTP/1.1 200 OK\r\n\r\n'),
  ]
  for (const end of endings) {
    proxy.skip()
    const client = await ask(t, gateway, '/t/it')
    const peer = await proxy.next()
    await peer.untilText('\r\n\r\n')
    peer.send('HTTP/1.1 200 OK\r\nX')
    await quiet()
    assert.equal(arena.lentChunks, before[0]! + 2, 'a saved request, and the answer so far')
    end(peer, client)
    await peer.untilEnd()
    client.destroy()
    peer.destroy()
    await eventually('the end of both', () => arena.lentChunks === before[0] && Parser.inUse === before[1])
  }
})
