/** Backends behind a forward proxy that opens tunnels: CONNECT, TLS through it, and who is to blame when it fails. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import type { Route } from '../../src/target/route.ts'
import { assertFault, takeAnswer } from '../harness/answers.ts'
import { OTHER_CA, SERVER } from '../harness/certificates.ts'
import { ConnectProxy } from '../harness/connect-proxy.ts'
import { failureLine } from '../harness/failures.ts'
import { connectPeer, ScriptedBackend } from '../harness/peers.ts'
import { ask, assertRefused, gatewayFor, proxyAt, secured, TLS } from '../harness/proxied-gateway.ts'

const BASIC = `Basic ${btoa('gateway:secret')}`

/** A backend on TLS that says its name, the path, and how many requests its connection has carried. */
async function securedBackend(t: { after(done: () => void): void }, name: string): Promise<number> {
  const carried = new WeakMap<object, number>()
  const server = createServer({ key: SERVER.key, cert: SERVER.cert }, (request, response) => {
    const count = (carried.get(request.socket) ?? 0) + 1
    carried.set(request.socket, count)
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

test('a backend on TLS is reached through CONNECT with credentials, which it never sees', async t => {
  const port = await securedBackend(t, 'one')
  const proxy = await ConnectProxy.listen(BASIC)
  t.after(() => proxy.close())
  const gateway = await gatewayFor(t, [secured(port, proxyAt(proxy.port, BASIC))])
  const answer = await takeAnswer(await ask(t, gateway, '/t/it?a=b'))
  assert.equal(answer.body, 'one GET /it?a=b 1')
  assert.deepEqual(answer.fields.get('x-seen'), [JSON.stringify([`localhost:${port}`, ''])])
  const authority = `localhost:${port}`
  assert.deepEqual(proxy.heads, [
    `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\nProxy-Authorization: ${BASIC}\r\n\r\n`,
  ])
  assert.ok(!JSON.stringify(gateway.reports).includes(btoa('gateway:secret')))
})

test('a tunnel serves again and again, its own backend only', async t => {
  const one = await securedBackend(t, 'one')
  const two = await securedBackend(t, 'two')
  const proxy = await ConnectProxy.listen()
  t.after(() => proxy.close())
  const plan = proxyAt(proxy.port)
  const gateway = await gatewayFor(t, [secured(one, plan, '/one'), secured(two, plan, '/two')])
  const bodies: string[] = []
  for (const path of ['/one/', '/two/', '/one/', '/two/', '/one/']) {
    bodies.push((await takeAnswer(await ask(t, gateway, path))).body)
  }
  assert.deepEqual(bodies, ['one GET / 1', 'two GET / 1', 'one GET / 2', 'two GET / 2', 'one GET / 3'])
  assert.deepEqual(
    proxy.heads.map(head => head.split(' ')[1]),
    [`localhost:${one}`, `localhost:${two}`],
  )
})

test('a plain route that is to be tunnelled is, and its requests are in origin-form', async t => {
  const backend = await ScriptedBackend.listen()
  const proxy = await ConnectProxy.listen(BASIC)
  t.after(() => {
    backend.close()
    proxy.close()
  })
  const route: Partial<Route> = { proxy: proxyAt(proxy.port, BASIC), connectsThroughProxy: true }
  const gateway = await gatewayFor(t, [{ context: '/t', port: backend.port, basePath: '/base', route }])
  const client = await ask(t, gateway, '/t/it')
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  assert.match(peer.text, /^GET \/base\/it HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\n/)
  assert.ok(!peer.text.includes('Proxy-Authorization'))
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  assert.equal((await takeAnswer(client)).body, 'ok')
  assert.match(proxy.heads[0]!, /^CONNECT 127\.0\.0\.1:\d+ HTTP\/1\.1\r\n/)
})

test('wrong credentials: 502 with 101503, and the log says who asked for others', async t => {
  const port = await securedBackend(t, 'one')
  const proxy = await ConnectProxy.listen(BASIC)
  t.after(() => proxy.close())
  const gateway = await gatewayFor(t, [secured(port, proxyAt(proxy.port, `Basic ${btoa('gateway:wrong')}`))])
  const cause = `proxy 127.0.0.1:${proxy.port} answered 407: it was given no credentials, or wrong ones`
  await assertRefused(t, gateway, cause)
})

test('a backend that does not accept: the proxy says so', async t => {
  const closed = await ScriptedBackend.listen()
  closed.close()
  const proxy = await ConnectProxy.listen()
  t.after(() => proxy.close())
  const gateway = await gatewayFor(t, [secured(closed.port, proxyAt(proxy.port))])
  await assertRefused(t, gateway, `proxy 127.0.0.1:${proxy.port} answered 502 to CONNECT`)
})

test('a proxy that does not accept: 502 with 101503, and the log names it', async t => {
  const closed = await ScriptedBackend.listen()
  closed.close()
  const gateway = await gatewayFor(t, [secured(443, proxyAt(closed.port))])
  await assertRefused(t, gateway, `proxy 127.0.0.1:${closed.port}: ECONNREFUSED`)
  const { fields } = failureLine(gateway, 0)
  assert.equal(fields.TARGET_PORT, 443)
  assert.equal(fields.REMOTE_ADDRESS, `127.0.0.1:${closed.port}`)
})

test('a proxy whose name does not resolve', async t => {
  const proxy = { host: 'proxy.invalid', port: 3128, authorization: '' }
  const gateway = await gatewayFor(t, [secured(443, proxy)])
  assertFault(await takeAnswer(await ask(t, gateway, '/t/')), 502, 101503, 0, false)
  assert.match(String(failureLine(gateway, 0).fields.CAUSE_OF_ERROR), /^proxy proxy\.invalid:3128: E/)
})

test('a certificate that is not trusted is the failure of the backend behind the proxy', async t => {
  const port = await securedBackend(t, 'one')
  const proxy = await ConnectProxy.listen()
  t.after(() => proxy.close())
  const gateway = await gatewayFor(t, [secured(port, proxyAt(proxy.port))], {}, { ...TLS, ca: [OTHER_CA.cert] })
  const answer = await takeAnswer(await ask(t, gateway, '/t/'))
  assert.equal(answer.status, 502)
  assert.match(answer.body, /"code":101503,.*"The certificate of the back end is not accepted \([A-Z_]+\)"/)
  const cause = String(failureLine(gateway, 0).fields.CAUSE_OF_ERROR)
  assert.match(cause, /^certificate of localhost: .*\([A-Z_]+\), through proxy 127\.0\.0\.1:\d+$/)
})

test('an upgrade passes through a tunnel, and then whatever is said', async t => {
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
