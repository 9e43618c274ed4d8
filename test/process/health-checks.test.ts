/** Active health checks: the decision after checks in a row, TLS, forward proxies, and reloads. */
import { PLAIN_API } from '../harness/api-plan.ts'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createPlainServer, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { createServer as createTcpServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { DEFAULT_ENDPOINT_SETTINGS, type HealthCheckSettings } from '../../src/apis/api-definition.ts'
import { HealthChecks } from '../../src/primary/health-checks.ts'
import type { EndpointPlan } from '../../src/plan/reactor-plan.ts'
import type { ForwardProxy } from '../../src/proxy/target/route.ts'
import type { TlsClientPlan } from '../../src/socket/tls.ts'
import { EndpointService } from '../../src/primary/endpoint-service.ts'
import { openLog } from '../../src/observe/log.ts'
import { EndpointTable } from '../../src/proxy/target/endpoint-table.ts'
import { CA, OTHER_CA, SERVER, VIRTUAL } from '../harness/certificates.ts'
import { ConnectProxy } from '../harness/connect-proxy.ts'
import { UnreliableBackend } from '../harness/unreliable-backend.ts'
import { eventually, quiet, ScriptedBackend } from '../harness/peers.ts'

const CHECK: HealthCheckSettings = {
  path: '/health',
  intervalMs: 5,
  timeoutMs: 200,
  unhealthyAfter: 3,
  healthyAfter: 2,
}

/** A PROXY header, version 2, of the gateway itself. */
const LOCAL = '\r\n\r\n\0\r\nQUIT\n\x20\0\0\0'

function planOf(
  port: number,
  check: Partial<HealthCheckSettings> = {},
  secured = false,
  proxy: ForwardProxy | null = null,
): EndpointPlan {
  const place = { slot: 1, secured, host: '127.0.0.1', port, tlsClient: secured ? 'default' : '' }
  return {
    slot: 0,
    url: '',
    route: { ...place, proxy, connectsThroughProxy: false },
    basePath: '',
    settings: { ...DEFAULT_ENDPOINT_SETTINGS, healthCheck: { ...CHECK, ...check } },
  }
}

/** The decisions about one endpoint, in order; the endpoint is active while the last one is good. */
function watch(t: TestContext, plan: EndpointPlan, tls: Readonly<Record<string, TlsClientPlan>> = {}): string[] {
  const found: string[] = []
  const checks = new HealthChecks(() => tls, {
    isActive: () => found.length === 0 || found.at(-1) === 'healthy',
    decided: (_, isHealthy, cause) => found.push(isHealthy ? 'healthy' : cause),
  })
  checks.replace([plan])
  t.after(() => checks.stop())
  return found
}

async function patient(t: TestContext): Promise<UnreliableBackend> {
  const backend = await UnreliableBackend.start('a')
  t.after(() => backend.stop())
  return backend
}

test('an endpoint is unhealthy after so many failures in a row, and healthy after so many successes', async t => {
  const backend = await patient(t)
  backend.behaviour = 'fails with 500'
  const found = watch(t, planOf(backend.port))
  await eventually('its illness', () => found.length > 0)
  assert.equal(found[0], 'its health check got status 500')
  assert.equal(backend.requests.length, 3)
  assert.match(backend.requests[0]!, /^GET \/health /)
  backend.behaviour = 'responds'
  await eventually('its recovery', () => found.at(-1) === 'healthy')
})

test('failures that are not in a row do not make an endpoint unhealthy', async t => {
  let asked = 0
  const server = createPlainServer((_, response) => {
    response.statusCode = ++asked % 3 === 0 ? 200 : 500
    response.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const found = watch(t, planOf((server.address() as { port: number }).port, { intervalMs: 1 }))
  await eventually('some checks', () => asked > 20)
  assert.deepEqual(found, [])
})

for (const secured of [false, true]) {
  test(`a check of an endpoint that asks for the PROXY protocol is local, ${secured ? 'TLS' : 'plain'}`, async t => {
    const headers: string[] = []
    const answer = (_: unknown, response: ServerResponse): void => void response.end()
    const web = secured ? createServer(SERVER, answer) : createPlainServer(answer)
    const server = createTcpServer(socket => {
      socket.once('data', (bytes: Buffer) => {
        headers.push(bytes.toString('latin1', 0, LOCAL.length))
        socket.pause()
        if (bytes.length > LOCAL.length) socket.unshift(bytes.subarray(LOCAL.length))
        web.emit('connection', socket)
        if (!secured) socket.resume()
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const { port } = server.address() as { port: number }
    const plan = planOf(port, { intervalMs: 1 }, secured)
    const route = { ...plan.route, sendsProxyHeader: true }
    const found = watch(t, { ...plan, route }, { default: TERMS })
    await eventually('some checks', () => headers.length > 5)
    assert.deepEqual(found, [])
    assert.deepEqual(new Set(headers), new Set([LOCAL]))
  })
}

test('a refused connection is a failure, with the error as its cause', async t => {
  const backend = await patient(t)
  await backend.stop()
  const found = watch(t, planOf(backend.port))
  await eventually('its illness', () => found.length > 0)
  assert.equal(found[0], 'ECONNREFUSED')
})

test('a missing response is a failure after the time-out', async t => {
  const backend = await patient(t)
  backend.behaviour = 'hangs'
  const found = watch(t, planOf(backend.port, { timeoutMs: 50, unhealthyAfter: 1 }))
  await eventually('its illness', () => found.length > 0)
  assert.equal(found[0], 'its health check got no response within 50 ms')
})

const VERSIONS = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers: '' } as const
const TERMS: TlsClientPlan = { ...VERSIONS, ca: [CA.cert], identity: null, hostname: 'strict' }

for (const [what, { cert, key }, tls, first] of [
  ['trusted passes', SERVER, { default: TERMS }, 'none'],
  [
    'for another name passes without host name verification',
    VIRTUAL,
    { default: { ...TERMS, hostname: 'none' } },
    'none',
  ],
  ['not trusted fails', SERVER, { default: { ...TERMS, ca: [OTHER_CA.cert] } }, /UNABLE_TO_VERIFY|SELF_SIGNED|ISSUER/],
  ['for another name fails', VIRTUAL, { default: TERMS }, /ERR_TLS_CERT_ALTNAME_INVALID/],
] as const) {
  test(`over TLS, a check of a certificate that is ${what}`, async t => {
    let asked = 0
    const server = createServer({ cert, key }, (_, response) => {
      asked++
      response.end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const { port } = server.address() as { port: number }
    const found = watch(t, planOf(port, { unhealthyAfter: 1 }, true), tls)
    if (first === 'none') await eventually('checks', () => asked > 3)
    else await eventually('its illness', () => found.length > 0)
    assert.match(found[0] ?? 'none', first === 'none' ? /^none$/ : first)
  })
}

// ---- through a forward proxy ----------------------------------------------------------------------------------------

/** Characters that a URL has to encode. */
const AUTHORIZATION = `Basic ${Buffer.from('g@te:pass:/wörd%').toString('base64')}`

test('a plain endpoint is checked through its proxy, in absolute-form and with credentials', async t => {
  const heads: string[] = []
  let status = 200
  const proxy = createPlainServer(({ method, url, headers }, response) => {
    heads.push(`${method} ${url} ${headers.host} ${headers['proxy-authorization']}`)
    response.statusCode = status
    response.end()
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.after(() => proxy.close())
  const { port } = proxy.address() as { port: number }
  const plan = planOf(8080, { unhealthyAfter: 1 }, false, { host: '127.0.0.1', port, authorization: AUTHORIZATION })
  const found = watch(t, plan)
  await eventually('checks', () => heads.length > 3)
  assert.equal(heads[0], `GET http://127.0.0.1:8080/health 127.0.0.1:8080 ${AUTHORIZATION}`)
  assert.deepEqual(found, [])
  status = 407
  await eventually('its illness', () => found.length > 0)
  assert.equal(found[0], `proxy 127.0.0.1:${port} answered 407: it got no credentials, or wrong ones`)
})

for (const [what, { cert, key }, authorization, tls, first] of [
  ['is trusted passes', SERVER, AUTHORIZATION, TERMS, /^none$/],
  [
    'is not trusted fails',
    SERVER,
    AUTHORIZATION,
    { ...TERMS, ca: [OTHER_CA.cert] },
    /UNABLE_TO_VERIFY|SELF_SIGNED|ISSUER/,
  ],
  ['has another name fails', VIRTUAL, AUTHORIZATION, TERMS, /ERR_TLS_CERT_ALTNAME_INVALID/],
  [
    'has another name passes without host name verification',
    VIRTUAL,
    AUTHORIZATION,
    { ...TERMS, hostname: 'none' },
    /^none$/,
  ],
  ['its proxy refuses fails', SERVER, 'Basic eDpzZWNyZXQ=', TERMS, /127\.0\.0\.1:\d+.*407/],
] as const) {
  test(`through a tunnel of a proxy, a check of a TLS endpoint that ${what}`, async t => {
    let asked = 0
    const server = createServer({ cert, key }, (_, response) => {
      asked++
      response.end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const proxy = await ConnectProxy.listen(AUTHORIZATION)
    t.after(() => proxy.close())
    const { port } = server.address() as { port: number }
    const plan = planOf(port, { unhealthyAfter: 1 }, true, { host: '127.0.0.1', port: proxy.port, authorization })
    const found = watch(t, plan, { default: tls })
    await eventually('checks', () => found.length > 0 || asked > 3)
    assert.match(found[0] ?? 'none', first)
    assert.doesNotMatch(found[0] ?? '', /secret|eDpz/)
    for (const head of proxy.heads) assert.ok(head.startsWith(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\n`), head)
    assert.ok(proxy.heads.length >= asked)
  })
}

test('a proxy that refuses connections is a failure whose cause names the proxy', async t => {
  const backend = await patient(t)
  await backend.stop()
  for (const secured of [false, true]) {
    const plan = planOf(1, { unhealthyAfter: 1 }, secured, { host: '127.0.0.1', port: backend.port, authorization: '' })
    const found = watch(t, plan, { default: TERMS })
    await eventually('its illness', () => found.length > 0)
    assert.equal(found[0], `proxy 127.0.0.1:${backend.port}: ECONNREFUSED`)
  }
})

for (const secured of [false, true]) {
  test(`a proxy silent after ${secured ? 'CONNECT' : 'GET'} is a failure, and its connection is closed`, async t => {
    const proxy = await ScriptedBackend.listen()
    t.after(() => proxy.close())
    const plan = { host: '127.0.0.1', port: proxy.port, authorization: '' }
    const found = watch(t, planOf(8080, { timeoutMs: 50, unhealthyAfter: 1 }, secured, plan), { default: TERMS })
    const peer = await proxy.next()
    await eventually('its illness', () => found.length > 0)
    assert.equal(found[0], 'its health check got no response within 50 ms')
    await peer.untilEnd()
    peer.destroy()
  })
}

test('an endpoint behind a proxy is checked in the real program', async t => {
  const proxy = await patient(t)
  proxy.behaviour = 'fails with 500'
  const plan = planOf(8080, {}, false, { host: '127.0.0.1', port: proxy.port, authorization: '' })
  const endpoints = { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [plan] } as const
  const apis = [{ ...PLAIN_API, name: 'A', paths: ['/a'], endpoints }]
  const desk = new EndpointService({ apis, endpoints: EndpointTable.allocate(1, 1) }, openLog('silent'))
  t.after(() => desk.stop())
  await desk.runHealthChecks(() => ({}))
  await eventually('its illness', () => desk.list()[0]!.state !== 'ACTIVE')
})

test('an endpoint keeps its check over a reload, and becomes active when the check is removed', async t => {
  const backend = await patient(t)
  backend.behaviour = 'fails with 500'
  const checked = planOf(backend.port, { unhealthyAfter: 1, intervalMs: 1 })
  const apisOf = (plan: EndpointPlan) => {
    const endpoints = { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [plan] } as const
    return [{ ...PLAIN_API, name: 'A', paths: ['/a'], endpoints }]
  }
  const desk = new EndpointService({ apis: [], endpoints: EndpointTable.allocate(1, 1) }, openLog('silent'))
  t.after(() => desk.stop())
  const state = () => desk.list()[0]!.state
  await desk.runHealthChecks(() => ({}))
  desk.replace(apisOf(checked))
  await desk.runHealthChecks(() => ({}))
  await eventually('its illness', () => state() === 'SUSPENDED')
  // Without a check nothing else could make the endpoint active.
  desk.replace(apisOf({ ...checked, settings: DEFAULT_ENDPOINT_SETTINGS }))
  await desk.runHealthChecks(() => ({}))
  assert.equal(state(), 'ACTIVE')
  desk.replace(apisOf(checked))
  await desk.runHealthChecks(() => ({}))
  await eventually('its illness', () => state() === 'SUSPENDED')
  desk.replace([])
  await desk.runHealthChecks(() => ({}))
  assert.deepEqual(desk.list(), [])
  const before = backend.requests.length
  await quiet()
  assert.ok(backend.requests.length <= before + 1)
})

test('the counts of a check go on where its endpoint has not changed', async t => {
  const backend = await patient(t)
  backend.behaviour = 'fails with 500'
  const found: string[] = []
  const checks = new HealthChecks(() => ({}), { isActive: () => true, decided: (_, __, cause) => found.push(cause) })
  t.after(() => checks.stop())
  const plan = planOf(backend.port, { unhealthyAfter: 20, intervalMs: 1 })
  for (let asked = 0; found.length === 0; asked++) {
    checks.replace([{ ...plan }])
    await eventually('a check', () => backend.requests.length > asked)
  }
})

test('stopped checks send no further request', async t => {
  const backend = await patient(t)
  const found: string[] = []
  const checks = new HealthChecks(() => ({}), { isActive: () => true, decided: (_, __, cause) => found.push(cause) })
  checks.replace([planOf(backend.port, { intervalMs: 1 })])
  await eventually('a check', () => backend.requests.length > 0)
  backend.behaviour = 'hangs'
  await eventually('one that hangs', () => backend.held > 0)
  checks.stop()
  await backend.stop()
  assert.deepEqual(found, [])
})
