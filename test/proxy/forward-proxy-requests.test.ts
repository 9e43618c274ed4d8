/** Plain backends behind a forward proxy: requests in absolute-form, credentials, connection pools, and 407. */
import { PLAIN_API } from '../harness/api-plan.ts'
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { DEFAULT_ENDPOINT_SETTINGS } from '../../src/apis/api-definition.ts'
import type { EndpointPlan } from '../../src/plan/reactor-plan.ts'
import type { ForwardProxy } from '../../src/proxy/target/route.ts'
import { assertFault, takeResponse } from '../harness/responses.ts'
import { countedFailures, failureLine } from '../harness/failures.ts'
import { type GatewayOptions, startGateway, type TestApi, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, type Peer, quiet, refusingPort, ScriptedBackend } from '../harness/peers.ts'
import { refusalDescription } from '../harness/proxied-gateway.ts'

const BASIC = `Basic ${btoa('gateway:secret')}`
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const PROXY_407 = 'HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="x"\r\nContent-Length: 2\r\n\r\nno'

const proxy = await ScriptedBackend.listen()
after(() => proxy.close())
const NAME = `proxy 127.0.0.1:${proxy.port}`

function proxyPlan(authorization = BASIC): ForwardProxy {
  return { host: '127.0.0.1', port: proxy.port, authorization }
}

async function gatewayFor(
  t: TestContext,
  apis: readonly TestApi[],
  http: Readonly<Record<string, unknown>> = {},
  more: GatewayOptions = {},
): Promise<TestGateway> {
  proxy.skip()
  const gateway = await startGateway(apis, { http, ...more })
  t.after(() => gateway.stop())
  return gateway
}

async function dial(t: TestContext, gateway: TestGateway): Promise<Peer> {
  const peer = await connectPeer(gateway.port)
  t.after(() => peer.destroy())
  return peer
}

/** A request, the endpoint, and the first lines of the head that the proxy gets. */
const HEADS: readonly (readonly [string, string, Partial<TestApi>, readonly string[]])[] = [
  [
    'the path and the query are appended to the path of the endpoint',
    'GET /t/it?a=b%2F HTTP/1.1\r\nHost: a\r\n\r\n',
    { host: 'one.example', port: 8080, basePath: '/base' },
    ['GET http://one.example:8080/base/it?a=b%2F HTTP/1.1', 'Host: one.example:8080'],
  ],
  [
    'the path is canonical, and the query is unchanged',
    'GET http://b.test//t/./x/../%62/.?q=/../%zz HTTP/1.1\r\nHost: a\r\n\r\n',
    { host: 'one.example', port: 8080, basePath: '/base' },
    ['GET http://one.example:8080/base/b/?q=/../%zz HTTP/1.1', 'Host: one.example:8080'],
  ],
  [
    'the default port is omitted',
    'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n',
    { host: 'one.example', port: 80 },
    ['GET http://one.example/it HTTP/1.1', 'Host: one.example'],
  ],
  [
    'an empty path becomes a slash',
    'GET /t HTTP/1.1\r\nHost: a\r\n\r\n',
    { host: 'one.example', port: 80 },
    ['GET http://one.example/ HTTP/1.1', 'Host: one.example'],
  ],
  [
    'a query without a path follows a slash',
    'OPTIONS /t?a HTTP/1.1\r\nHost: a\r\n\r\n',
    { host: 'one.example', port: 80 },
    ['OPTIONS http://one.example/?a HTTP/1.1', 'Host: one.example'],
  ],
  [
    'an IPv6 backend has brackets',
    'DELETE /t/it HTTP/1.1\r\nHost: a\r\n\r\n',
    { host: '[2001:db8::1]', port: 81 },
    ['DELETE http://[2001:db8::1]:81/it HTTP/1.1', 'Host: [2001:db8::1]:81'],
  ],
  [
    'the authority of the client is replaced by that of the backend',
    'GET http://other.example/t/it HTTP/1.1\r\nHost: other.example\r\n\r\n',
    { host: 'one.example', port: 80 },
    ['GET http://one.example/it HTTP/1.1', 'Host: one.example'],
  ],
]

for (const [what, request, api, expected] of HEADS) {
  test(`RFC 9112 3.2.2: in a request to a proxy ${what}`, async t => {
    const gateway = await gatewayFor(t, [{ context: '/t', port: 80, ...api, route: { proxy: proxyPlan() } }])
    const client = await dial(t, gateway)
    client.send(request)
    const peer = await proxy.next()
    await peer.untilText('\r\n\r\n')
    const lines = peer.text.split('\r\n')
    assert.deepEqual(lines.slice(0, 3), [...expected, `Proxy-Authorization: ${BASIC}`])
    assert.equal(lines.filter(line => /^host:/i.test(line)).length, 1)
    peer.send(OK)
    assert.equal((await takeResponse(client)).status, 200)
    peer.destroy()
  })
}

test('without configured credentials Proxy-Authorization of the client is stripped and none is sent', async t => {
  const api = { context: '/t', host: 'one.example', port: 80, route: { proxy: proxyPlan('') } }
  const gateway = await gatewayFor(t, [api])
  const client = await dial(t, gateway)
  client.send('GET /t/ HTTP/1.1\r\nHost: a\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\n\r\n')
  const peer = await proxy.next()
  await peer.untilText('\r\n\r\n')
  assert.ok(!/proxy-/i.test(peer.text), peer.text)
  peer.send(OK)
  await takeResponse(client)
  peer.destroy()
})

test('http.headers.preserve with Host: Host is forwarded, and the absolute-form target names the backend', async t => {
  const api = { context: '/t', host: 'one.example', port: 80, route: { proxy: proxyPlan() } }
  const gateway = await gatewayFor(t, [api], { 'http.headers.preserve': ['Host'] })
  const client = await dial(t, gateway)
  client.send('GET /t/it HTTP/1.1\r\nHost: public.example\r\n\r\n')
  const peer = await proxy.next()
  await peer.untilText('\r\n\r\n')
  assert.match(peer.text, /^GET http:\/\/one\.example\/it HTTP\/1\.1\r\nHost: public\.example\r\nProxy-Authorization: /)
  peer.send(OK)
  await takeResponse(client)
  peer.destroy()
})

test('each backend behind a proxy has its own connection pool', async t => {
  const route = { proxy: proxyPlan() }
  const gateway = await gatewayFor(t, [
    { context: '/one', host: 'one.example', port: 80, route },
    { context: '/two', host: 'two.example', port: 80, route },
  ])
  const client = await dial(t, gateway)
  const exchange = async (path: string, peer?: Peer): Promise<Peer> => {
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
    const by = peer ?? (await proxy.next())
    await by.untilText('\r\n\r\n')
    by.take()
    by.send(OK)
    await takeResponse(client)
    return by
  }
  const one = await exchange('/one/')
  const two = await exchange('/two/')
  assert.notEqual(one, two)
  await exchange('/one/', one)
  await exchange('/two/', two)
  assert.equal(gateway.metrics().counts.targetsOpened, 2)
  one.destroy()
  two.destroy()
})

test('RFC 9110 9.2.2: a retried request has the same head as the first one', async t => {
  const gateway = await gatewayFor(t, [{ context: '/t', host: 'one.example', port: 80, route: { proxy: proxyPlan() } }])
  const client = await dial(t, gateway)
  const heads: string[] = []
  const take = async (peer: Peer): Promise<void> => {
    await peer.untilText('\r\n\r\n')
    heads.push(peer.take().replace(/activityid: .*\r\n/, ''))
  }
  client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  const first = await proxy.next()
  await take(first)
  first.send(OK)
  await takeResponse(client)
  client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  await take(first)
  first.reset()
  const second = await proxy.next()
  await take(second)
  second.send(OK)
  assert.equal((await takeResponse(client)).status, 200)
  assert.deepEqual([heads[1], heads[2]], [heads[0], heads[0]])
  assert.match(heads[0]!, /^GET http:\/\/one\.example\/it HTTP\/1\.1\r\n/)
  second.destroy()
})

/** An endpoint of a failover group; `through` is its proxy. */
function endpoint(slot: number, port: number, through: ForwardProxy | null): EndpointPlan {
  const route = { secured: false, host: '127.0.0.1', port, tlsClient: '', proxy: through, connectsThroughProxy: false }
  const url = `http://127.0.0.1:${port}/e${slot}`
  return { slot, url, basePath: `/e${slot}`, route: { slot: slot + 3, ...route }, settings: DEFAULT_ENDPOINT_SETTINGS }
}

for (const proxyIsFirst of [true, false]) {
  const order = proxyIsFirst ? 'from a proxied route to a direct one' : 'from a direct route to a proxied one'
  test(`failover ${order}: the request has the head and the credentials of its new route only`, async t => {
    const closed = await refusingPort()
    t.after(() => closed.close())
    const backend = await ScriptedBackend.listen()
    t.after(() => backend.close())
    const closedProxy = { host: '127.0.0.1', port: closed.port, authorization: BASIC }
    const endpoints = proxyIsFirst
      ? [endpoint(0, backend.port, closedProxy), endpoint(1, backend.port, null)]
      : [endpoint(0, closed.port, null), endpoint(1, backend.port, proxyPlan())]
    const group = { kind: 'failover', algorithm: 'round_robin', failsOver: true, endpoints } as const
    const gateway = await gatewayFor(
      t,
      [],
      {},
      { apis: [{ ...PLAIN_API, name: 'T', paths: ['/t'], endpoints: group }] },
    )
    const client = await dial(t, gateway)
    client.send('POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody')
    const peer = await (proxyIsFirst ? backend : proxy).next()
    await peer.untilText('\r\n\r\nbody')
    const origin = proxyIsFirst ? '' : `http://127.0.0.1:${backend.port}`
    const [start, host, third] = peer.text.split('\r\n')
    assert.deepEqual([start, host], [`POST ${origin}/e1/it HTTP/1.1`, `Host: 127.0.0.1:${backend.port}`])
    assert.equal(third === `Proxy-Authorization: ${BASIC}`, !proxyIsFirst)
    assert.equal(peer.text.includes('Proxy-Authorization'), !proxyIsFirst)
    peer.send(OK)
    assert.equal((await takeResponse(client)).status, 200)
    peer.destroy()
  })
}

test('a proxy that refuses the connection causes 502 with 101503, and the log names the proxy', async t => {
  const closed = await refusingPort()
  t.after(() => closed.close())
  const closedProxy = { host: '127.0.0.1', port: closed.port, authorization: '' }
  const gateway = await gatewayFor(t, [{ context: '/t', host: 'one.example', port: 80, route: { proxy: closedProxy } }])
  const client = await dial(t, gateway)
  client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  assertFault(await takeResponse(client), 502, 101503, 0, false)
  const { fields } = failureLine(gateway, 0)
  assert.equal(fields.CAUSE_OF_ERROR, `proxy 127.0.0.1:${closed.port}: ECONNREFUSED`)
  assert.equal(fields.TARGET_HOST, 'one.example')
  assert.equal(fields.REMOTE_ADDRESS, `127.0.0.1:${closed.port}`)
})

test('RFC 9110 15.5.8: a 407 of the proxy causes 502 with 101503, and the log names the proxy', async t => {
  const gateway = await gatewayFor(t, [{ context: '/t', host: 'one.example', port: 80, route: { proxy: proxyPlan() } }])
  const client = await dial(t, gateway)
  client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  const peer = await proxy.next()
  await peer.untilText('\r\n\r\n')
  peer.send(PROXY_407)
  const response = await takeResponse(client)
  assertFault(response, 502, 101503, 0, false, refusalDescription(407))
  assert.equal(response.fields.has('proxy-authenticate'), false)
  const { fields, level } = failureLine(gateway, 0)
  assert.equal(fields.CAUSE_OF_ERROR, `${NAME} answered 407: it got no credentials, or wrong ones`)
  assert.deepEqual([fields.ERROR_CODE, fields.BASE_ERROR_CODE, fields.INTERNAL_STATE], [101503, 101503, 0])
  assert.equal(level, 'warn')
  assert.equal(countedFailures(gateway, 101503, 0), 1)
  await peer.untilEnd()
  assert.ok(!JSON.stringify(gateway.reports).includes(BASIC))
  peer.destroy()
})

test('RFC 9110 15.5.8: a 407 of the proxy before the request is complete causes 502 with 101503', async t => {
  const gateway = await gatewayFor(t, [{ context: '/t', host: 'one.example', port: 80, route: { proxy: proxyPlan() } }])
  const client = await dial(t, gateway)
  client.send('POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nbody')
  const peer = await proxy.next()
  await peer.untilText('body')
  peer.send(PROXY_407)
  assertFault(await takeResponse(client), 502, 101503, 0, true, refusalDescription(407))
  await peer.untilEnd()
  peer.destroy()
})

test('RFC 9110 15.5.8: a 407 of a backend without a proxy is forwarded', async t => {
  const gateway = await gatewayFor(t, [{ context: '/t', port: proxy.port }])
  const client = await dial(t, gateway)
  client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  const peer = await proxy.next()
  await peer.untilText('\r\n\r\n')
  peer.send(PROXY_407)
  const response = await takeResponse(client)
  assert.deepEqual([response.status, response.body], [407, 'no'])
  await quiet()
  assert.deepEqual(gateway.reports, [])
  peer.destroy()
})
