/** Plain backends behind a forward proxy that reads each request: absolute-form, credentials, pools, and its 407. */
import { PLAIN_API } from '../harness/api-plan.ts'
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { DEFAULT_SETTINGS } from '../../src/config/endpoint-settings.ts'
import type { EndpointPlan } from '../../src/plan.ts'
import type { ForwardProxy } from '../../src/target/route.ts'
import { assertFault, takeAnswer } from '../harness/answers.ts'
import { countedFailures, failureLine } from '../harness/failures.ts'
import { type MorePlan, startGateway, type TestApi, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, type Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { refusalOf } from '../harness/proxied-gateway.ts'

const BASIC = `Basic ${btoa('gateway:secret')}`
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const PROXY_407 = 'HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="x"\r\nContent-Length: 2\r\n\r\nno'

const proxy = await ScriptedBackend.listen()
after(() => proxy.close())
const NAME = `proxy 127.0.0.1:${proxy.port}`

function plan(authorization = BASIC): ForwardProxy {
  return { host: '127.0.0.1', port: proxy.port, authorization }
}

async function gatewayFor(
  t: TestContext,
  apis: readonly TestApi[],
  http: Readonly<Record<string, unknown>> = {},
  more: MorePlan = {},
): Promise<TestGateway> {
  proxy.skip()
  const gateway = await startGateway(apis, http, null, [], more)
  t.after(() => gateway.stop())
  return gateway
}

async function client(t: TestContext, gateway: TestGateway): Promise<Peer> {
  const peer = await connectPeer(gateway.port)
  t.after(() => peer.destroy())
  return peer
}

/** What is asked for, of which endpoint, and how the head begins that the proxy gets. */
const HEADS: readonly (readonly [string, string, Partial<TestApi>, readonly string[]])[] = [
  [
    'path and query behind that of the endpoint',
    'GET /t/it?a=b%2F HTTP/1.1\r\nHost: a\r\n\r\n',
    { host: 'one.example', port: 8080, basePath: '/base' },
    ['GET http://one.example:8080/base/it?a=b%2F HTTP/1.1', 'Host: one.example:8080'],
  ],
  [
    'the canonical form of a path, and the query as it came',
    'GET http://b.test//t/./x/../%62/.?q=/../%zz HTTP/1.1\r\nHost: a\r\n\r\n',
    { host: 'one.example', port: 8080, basePath: '/base' },
    ['GET http://one.example:8080/base/b/?q=/../%zz HTTP/1.1', 'Host: one.example:8080'],
  ],
  [
    'the port of the scheme is not said',
    'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n',
    { host: 'one.example', port: 80 },
    ['GET http://one.example/it HTTP/1.1', 'Host: one.example'],
  ],
  [
    'an empty rest, which must not lose its slash',
    'GET /t HTTP/1.1\r\nHost: a\r\n\r\n',
    { host: 'one.example', port: 80 },
    ['GET http://one.example/ HTTP/1.1', 'Host: one.example'],
  ],
  [
    'nothing but a query',
    'OPTIONS /t?a HTTP/1.1\r\nHost: a\r\n\r\n',
    { host: 'one.example', port: 80 },
    ['OPTIONS http://one.example/?a HTTP/1.1', 'Host: one.example'],
  ],
  [
    'an IPv6 backend',
    'DELETE /t/it HTTP/1.1\r\nHost: a\r\n\r\n',
    { host: '[2001:db8::1]', port: 81 },
    ['DELETE http://[2001:db8::1]:81/it HTTP/1.1', 'Host: [2001:db8::1]:81'],
  ],
  [
    'absolute-form of the client, whose authority is not the backend',
    'GET http://other.example/t/it HTTP/1.1\r\nHost: other.example\r\n\r\n',
    { host: 'one.example', port: 80 },
    ['GET http://one.example/it HTTP/1.1', 'Host: one.example'],
  ],
]

for (const [what, request, api, expected] of HEADS) {
  test(`absolute-form (RFC 9112 3.2.2): ${what}`, async t => {
    const gateway = await gatewayFor(t, [{ context: '/t', port: 80, ...api, route: { proxy: plan() } }])
    const asking = await client(t, gateway)
    asking.send(request)
    const peer = await proxy.next()
    await peer.untilText('\r\n\r\n')
    const lines = peer.text.split('\r\n')
    assert.deepEqual(lines.slice(0, 3), [...expected, `Proxy-Authorization: ${BASIC}`])
    assert.equal(lines.filter(line => /^host:/i.test(line)).length, 1)
    peer.send(OK)
    assert.equal((await takeAnswer(asking)).status, 200)
    peer.destroy()
  })
}

test('without credentials none are sent, and those of the client end at the gateway', async t => {
  const api = { context: '/t', host: 'one.example', port: 80, route: { proxy: plan('') } }
  const gateway = await gatewayFor(t, [api])
  const asking = await client(t, gateway)
  asking.send('GET /t/ HTTP/1.1\r\nHost: a\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\n\r\n')
  const peer = await proxy.next()
  await peer.untilText('\r\n\r\n')
  assert.ok(!/proxy-/i.test(peer.text), peer.text)
  peer.send(OK)
  await takeAnswer(asking)
  peer.destroy()
})

test('a preserved Host passes; the target says which backend is meant', async t => {
  const api = { context: '/t', host: 'one.example', port: 80, route: { proxy: plan() } }
  const gateway = await gatewayFor(t, [api], { 'http.headers.preserve': ['Host'] })
  const asking = await client(t, gateway)
  asking.send('GET /t/it HTTP/1.1\r\nHost: public.example\r\n\r\n')
  const peer = await proxy.next()
  await peer.untilText('\r\n\r\n')
  assert.match(peer.text, /^GET http:\/\/one\.example\/it HTTP\/1\.1\r\nHost: public\.example\r\nProxy-Authorization: /)
  peer.send(OK)
  await takeAnswer(asking)
  peer.destroy()
})

test('connections to a proxy are kept for each backend by itself', async t => {
  const route = { proxy: plan() }
  const gateway = await gatewayFor(t, [
    { context: '/one', host: 'one.example', port: 80, route },
    { context: '/two', host: 'two.example', port: 80, route },
  ])
  const asking = await client(t, gateway)
  const exchange = async (path: string, peer?: Peer): Promise<Peer> => {
    asking.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
    const by = peer ?? (await proxy.next())
    await by.untilText('\r\n\r\n')
    by.take()
    by.send(OK)
    await takeAnswer(asking)
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

test('a request sent once more on a fresh connection has all that the first had', async t => {
  const gateway = await gatewayFor(t, [{ context: '/t', host: 'one.example', port: 80, route: { proxy: plan() } }])
  const asking = await client(t, gateway)
  const heads: string[] = []
  const take = async (peer: Peer): Promise<void> => {
    await peer.untilText('\r\n\r\n')
    heads.push(peer.take().replace(/activityid: .*\r\n/, ''))
  }
  asking.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  const first = await proxy.next()
  await take(first)
  first.send(OK)
  await takeAnswer(asking)
  asking.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  await take(first)
  first.reset()
  const second = await proxy.next()
  await take(second)
  second.send(OK)
  assert.equal((await takeAnswer(asking)).status, 200)
  assert.deepEqual([heads[1], heads[2]], [heads[0], heads[0]])
  assert.match(heads[0]!, /^GET http:\/\/one\.example\/it HTTP\/1\.1\r\n/)
  second.destroy()
})

/** An endpoint of `failover`; without a proxy in between where none is named. */
function endpoint(row: number, port: number, through: ForwardProxy | null): EndpointPlan {
  const route = { secured: false, host: '127.0.0.1', port, tlsClient: '', proxy: through, connectsThroughProxy: false }
  const url = `http://127.0.0.1:${port}/e${row}`
  return { row, url, basePath: `/e${row}`, route: { row: row + 1, ...route }, settings: DEFAULT_SETTINGS }
}

for (const proxyIsFirst of [true, false]) {
  const order = proxyIsFirst ? 'from a proxy to a backend' : 'from a backend to a proxy'
  test(`a request handed over ${order} has the head of its new way, and no credentials but its own`, async t => {
    const closed = await ScriptedBackend.listen()
    closed.close()
    const backend = await ScriptedBackend.listen()
    t.after(() => backend.close())
    const gone = { host: '127.0.0.1', port: closed.port, authorization: BASIC }
    const endpoints = proxyIsFirst
      ? [endpoint(0, backend.port, gone), endpoint(1, backend.port, null)]
      : [endpoint(0, closed.port, null), endpoint(1, backend.port, plan())]
    const group = { kind: 'failover', algorithm: 'round_robin', failsOver: true, endpoints } as const
    const gateway = await gatewayFor(
      t,
      [],
      {},
      { apis: [{ ...PLAIN_API, name: 'T', paths: ['/t'], endpoints: group }] },
    )
    const asking = await client(t, gateway)
    asking.send('POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody')
    const peer = await (proxyIsFirst ? backend : proxy).next()
    await peer.untilText('\r\n\r\nbody')
    const origin = proxyIsFirst ? '' : `http://127.0.0.1:${backend.port}`
    const [start, host, third] = peer.text.split('\r\n')
    assert.deepEqual([start, host], [`POST ${origin}/e1/it HTTP/1.1`, `Host: 127.0.0.1:${backend.port}`])
    assert.equal(third === `Proxy-Authorization: ${BASIC}`, !proxyIsFirst)
    assert.equal(peer.text.includes('Proxy-Authorization'), !proxyIsFirst)
    peer.send(OK)
    assert.equal((await takeAnswer(asking)).status, 200)
    peer.destroy()
  })
}

test('a proxy that does not accept: 502 with 101503, and the log names it', async t => {
  const closed = await ScriptedBackend.listen()
  closed.close()
  const gone = { host: '127.0.0.1', port: closed.port, authorization: '' }
  const gateway = await gatewayFor(t, [{ context: '/t', host: 'one.example', port: 80, route: { proxy: gone } }])
  const asking = await client(t, gateway)
  asking.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  assertFault(await takeAnswer(asking), 502, 101503, 0, false)
  const { fields } = failureLine(gateway, 0)
  assert.equal(fields.CAUSE_OF_ERROR, `proxy 127.0.0.1:${closed.port}: ECONNREFUSED`)
  assert.equal(fields.TARGET_HOST, 'one.example')
  assert.equal(fields.REMOTE_ADDRESS, `127.0.0.1:${closed.port}`)
})

test('407 of a proxy: 502 with 101503, nothing of it reaches the client, and the log names the proxy', async t => {
  const gateway = await gatewayFor(t, [{ context: '/t', host: 'one.example', port: 80, route: { proxy: plan() } }])
  const asking = await client(t, gateway)
  asking.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  const peer = await proxy.next()
  await peer.untilText('\r\n\r\n')
  peer.send(PROXY_407)
  const answer = await takeAnswer(asking)
  assertFault(answer, 502, 101503, 0, false, refusalOf(407))
  assert.equal(answer.fields.has('proxy-authenticate'), false)
  const { fields, level } = failureLine(gateway, 0)
  assert.equal(fields.CAUSE_OF_ERROR, `${NAME} answered 407: it was given no credentials, or wrong ones`)
  assert.deepEqual([fields.ERROR_CODE, fields.BASE_ERROR_CODE, fields.INTERNAL_STATE], [101503, 101503, 0])
  assert.equal(level, 'warn')
  assert.equal(countedFailures(gateway, 101503, 0), 1)
  await peer.untilEnd()
  assert.ok(!JSON.stringify(gateway.reports).includes(BASIC))
  peer.destroy()
})

test('407 of a proxy before the request is complete: 502 with 101503', async t => {
  const gateway = await gatewayFor(t, [{ context: '/t', host: 'one.example', port: 80, route: { proxy: plan() } }])
  const asking = await client(t, gateway)
  asking.send('POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nbody')
  const peer = await proxy.next()
  await peer.untilText('body')
  peer.send(PROXY_407)
  assertFault(await takeAnswer(asking), 502, 101503, 0, true, refusalOf(407))
  await peer.untilEnd()
  peer.destroy()
})

test('407 of a backend without a proxy is what the backend says', async t => {
  const gateway = await gatewayFor(t, [{ context: '/t', port: proxy.port }])
  const asking = await client(t, gateway)
  asking.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  const peer = await proxy.next()
  await peer.untilText('\r\n\r\n')
  peer.send(PROXY_407)
  const answer = await takeAnswer(asking)
  assert.deepEqual([answer.status, answer.body], [407, 'no'])
  await quiet()
  assert.deepEqual(gateway.reports, [])
  peer.destroy()
})
