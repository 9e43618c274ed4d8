/** Active health checks: what is healthy, how often it must be so, and over TLS with the terms of requests. */
import { PLAIN_API } from '../harness/api-plan.ts'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createPlainServer } from 'node:http'
import { createServer } from 'node:https'
import { type TestContext, test } from 'node:test'
import { DEFAULT_SETTINGS, type HealthCheckSettings } from '../../src/config/endpoint-settings.ts'
import { HealthChecks } from '../../src/primary/health-checks.ts'
import type { EndpointPlan } from '../../src/plan.ts'
import type { ForwardProxy } from '../../src/target/route.ts'
import type { TlsClientPlan } from '../../src/socket/tls.ts'
import { EndpointDesk } from '../../src/primary/endpoint-desk.ts'
import { openLog } from '../../src/observe/log.ts'
import { EndpointTable } from '../../src/target/endpoint-table.ts'
import { CA, OTHER_CA, SERVER, VIRTUAL } from '../harness/certificates.ts'
import { ConnectProxy } from '../harness/connect-proxy.ts'
import { Patient } from '../harness/endpoints.ts'
import { eventually, quiet, ScriptedBackend } from '../harness/peers.ts'

const CHECK: HealthCheckSettings = {
  path: '/health',
  intervalMs: 5,
  timeoutMs: 200,
  unhealthyAfter: 3,
  healthyAfter: 2,
}

function planOf(
  port: number,
  check: Partial<HealthCheckSettings> = {},
  secured = false,
  proxy: ForwardProxy | null = null,
): EndpointPlan {
  const place = { row: 1, secured, host: '127.0.0.1', port, tlsClient: secured ? 'default' : '' }
  return {
    row: 0,
    url: '',
    route: { ...place, proxy, connectsThroughProxy: false },
    basePath: '',
    settings: { ...DEFAULT_SETTINGS, healthCheck: { ...CHECK, ...check } },
  }
}

/** What the checks of one endpoint have found, in order; it is active while what was found last is good. */
function watch(t: TestContext, plan: EndpointPlan, tls: Readonly<Record<string, TlsClientPlan>> = {}): string[] {
  const found: string[] = []
  const checks = new HealthChecks(() => tls, {
    isActive: () => found.length === 0 || found.at(-1) === 'healthy',
    found: (_, isHealthy, cause) => found.push(isHealthy ? 'healthy' : cause),
  })
  checks.put([plan])
  t.after(() => checks.stop())
  return found
}

async function patient(t: TestContext): Promise<Patient> {
  const backend = await Patient.start('a')
  t.after(() => backend.die())
  return backend
}

test('an endpoint is ill after so many failures in a row, and well after so many successes', async t => {
  const backend = await patient(t)
  backend.health = 'errs'
  const found = watch(t, planOf(backend.port))
  await eventually('its illness', () => found.length > 0)
  assert.equal(found[0], 'its health check was answered 500')
  assert.equal(backend.requests.length, 3)
  assert.match(backend.requests[0]!, /^GET \/health /)
  backend.health = 'well'
  await eventually('its recovery', () => found.at(-1) === 'healthy')
})

test('failures that are not in a row do not make it ill', async t => {
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

test('nobody listens: ill, with the error as the cause', async t => {
  const backend = await patient(t)
  await backend.die()
  const found = watch(t, planOf(backend.port))
  await eventually('its illness', () => found.length > 0)
  assert.equal(found[0], 'ECONNREFUSED')
})

test('no answer in time: ill', async t => {
  const backend = await patient(t)
  backend.health = 'hangs'
  const found = watch(t, planOf(backend.port, { timeoutMs: 50, unhealthyAfter: 1 }))
  await eventually('its illness', () => found.length > 0)
  assert.equal(found[0], 'no answer within 50 ms')
})

const VERSIONS = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers: '' } as const
const TERMS: TlsClientPlan = { ...VERSIONS, ca: [CA.cert], identity: null, hostname: 'strict' }

for (const [what, { cert, key }, tls, first] of [
  ['trusted: well', SERVER, { default: TERMS }, 'none'],
  ['for another name, where any will do: well', VIRTUAL, { default: { ...TERMS, hostname: 'none' } }, 'none'],
  ['not trusted: ill', SERVER, { default: { ...TERMS, ca: [OTHER_CA.cert] } }, /UNABLE_TO_VERIFY|SELF_SIGNED|ISSUER/],
  ['for another name: ill', VIRTUAL, { default: TERMS }, /ERR_TLS_CERT_ALTNAME_INVALID/],
] as const) {
  test(`over TLS, a certificate that is ${what}`, async t => {
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

/** Whatever URLs would have to encode. */
const AUTHORIZATION = `Basic ${Buffer.from('g@te:pass:/wörd%').toString('base64')}`

test('a plain endpoint is asked through its proxy, in absolute-form and with credentials; 407 is its', async t => {
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
  assert.equal(found[0], `proxy 127.0.0.1:${port} answered 407: it was given no credentials, or wrong ones`)
})

for (const [what, { cert, key }, authorization, tls, first] of [
  ['is well', SERVER, AUTHORIZATION, TERMS, /^none$/],
  ['is not trusted', SERVER, AUTHORIZATION, { ...TERMS, ca: [OTHER_CA.cert] }, /UNABLE_TO_VERIFY|SELF_SIGNED|ISSUER/],
  ['is another one', VIRTUAL, AUTHORIZATION, TERMS, /ERR_TLS_CERT_ALTNAME_INVALID/],
  ['is another one, where any will do', VIRTUAL, AUTHORIZATION, { ...TERMS, hostname: 'none' }, /^none$/],
  ['is refused by the proxy', SERVER, 'Basic eDpzZWNyZXQ=', TERMS, /127\.0\.0\.1:\d+.*407/],
] as const) {
  test(`through a tunnel of its proxy, a secured endpoint that ${what}`, async t => {
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

test('a proxy that does not accept: ill, and the cause names it', async t => {
  const backend = await patient(t)
  await backend.die()
  for (const secured of [false, true]) {
    const plan = planOf(1, { unhealthyAfter: 1 }, secured, { host: '127.0.0.1', port: backend.port, authorization: '' })
    const found = watch(t, plan, { default: TERMS })
    await eventually('its illness', () => found.length > 0)
    assert.equal(found[0], `proxy 127.0.0.1:${backend.port}: ECONNREFUSED`)
  }
})

for (const secured of [false, true]) {
  test(`a proxy that does not answer ${secured ? 'CONNECT' : 'GET'}: ill in time, and it is left`, async t => {
    const proxy = await ScriptedBackend.listen()
    t.after(() => proxy.close())
    const plan = { host: '127.0.0.1', port: proxy.port, authorization: '' }
    const found = watch(t, planOf(8080, { timeoutMs: 50, unhealthyAfter: 1 }, secured, plan), { default: TERMS })
    const peer = await proxy.next()
    await eventually('its illness', () => found.length > 0)
    assert.equal(found[0], 'no answer within 50 ms')
    await peer.untilEnd()
    peer.destroy()
  })
}

test('an endpoint behind a proxy is checked as any other', async t => {
  const proxy = await patient(t)
  proxy.health = 'errs'
  const plan = planOf(8080, {}, false, { host: '127.0.0.1', port: proxy.port, authorization: '' })
  const endpoints = { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [plan] } as const
  const apis = [{ ...PLAIN_API, name: 'A', paths: ['/a'], endpoints }]
  const desk = new EndpointDesk({ apis, endpoints: EndpointTable.allocate(1, 1) }, openLog('silent'))
  t.after(() => desk.stop())
  await desk.check(() => ({}))
  await eventually('its illness', () => desk.list()[0]!.state !== 'ACTIVE')
})

test('over a reload an endpoint keeps its check, and without one it is left alone', async t => {
  const backend = await patient(t)
  backend.health = 'errs'
  const checked = planOf(backend.port, { unhealthyAfter: 1, intervalMs: 1 })
  const apisOf = (plan: EndpointPlan) => {
    const endpoints = { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [plan] } as const
    return [{ ...PLAIN_API, name: 'A', paths: ['/a'], endpoints }]
  }
  const desk = new EndpointDesk({ apis: [], endpoints: EndpointTable.allocate(1, 1) }, openLog('silent'))
  t.after(() => desk.stop())
  const state = () => desk.list()[0]!.state
  await desk.check(() => ({}))
  desk.put(apisOf(checked))
  await desk.check(() => ({}))
  await eventually('its illness', () => state() === 'SUSPENDED')
  // Nothing else could ever bring it back.
  desk.put(apisOf({ ...checked, settings: DEFAULT_SETTINGS }))
  await desk.check(() => ({}))
  assert.equal(state(), 'ACTIVE')
  desk.put(apisOf(checked))
  await desk.check(() => ({}))
  await eventually('its illness', () => state() === 'SUSPENDED')
  desk.put([])
  await desk.check(() => ({}))
  assert.deepEqual(desk.list(), [])
  const before = backend.requests.length
  await quiet()
  assert.ok(backend.requests.length <= before + 1)
})

test('a check goes on counting where its endpoint has not changed', async t => {
  const backend = await patient(t)
  backend.health = 'errs'
  const found: string[] = []
  const checks = new HealthChecks(() => ({}), { isActive: () => true, found: (_, __, cause) => found.push(cause) })
  t.after(() => checks.stop())
  const plan = planOf(backend.port, { unhealthyAfter: 20, intervalMs: 1 })
  for (let asked = 0; found.length === 0; asked++) {
    checks.put([{ ...plan }])
    await eventually('a check', () => backend.requests.length > asked)
  }
})

test('when the checks stop nothing is asked any more', async t => {
  const backend = await patient(t)
  const found: string[] = []
  const checks = new HealthChecks(() => ({}), { isActive: () => true, found: (_, __, cause) => found.push(cause) })
  checks.put([planOf(backend.port, { intervalMs: 1 })])
  await eventually('a check', () => backend.requests.length > 0)
  backend.health = 'hangs'
  await eventually('one that hangs', () => backend.held > 0)
  checks.stop()
  await backend.die()
  assert.deepEqual(found, [])
})
