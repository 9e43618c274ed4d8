/** Readiness of a gateway with every part configured: a part that fails is told as degraded, until it is back. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { symlinkSync, unlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { ReportServer } from '../../src/events/report-server.ts'
import { messageBroker } from '../harness/message-broker.ts'
import { home, leave, sluice, start } from '../harness/operator.ts'
import { pollPause } from '../harness/peers.ts'
import { ask, freePort, type RunningGateway } from '../harness/program.ts'
import { RedisServer, WITHOUT_REDIS } from '../harness/redis-server.ts'
import { put } from '../harness/reloading.ts'
import { TcpGate } from '../harness/tcp-gate.ts'

const ACCOUNT = { username: 'gateways', password: 'of-this-test' }

const broker = await messageBroker()
const brokerPort = typeof broker === 'string' ? await freePort() : broker.port
const [brokerGate, managerPort, analyticsPort] = [
  new TcpGate(await freePort(), brokerPort),
  await freePort(),
  await freePort(),
]
const redis = WITHOUT_REDIS === '' ? await RedisServer.start() : null
const at = home()
const log = join(at.path, 'access.log')
let gateway: RunningGateway

before(async () => {
  const [manager, analytics] = [managerPort, analyticsPort].map(port => `["tcp://127.0.0.1:${port}"]`)
  const vhost = typeof broker === 'string' ? 'none' : broker.vhost
  put(
    at,
    'deployment.toml',
    `[[apim.throttling.url_group]]
traffic_manager_urls = ${manager}
traffic_manager_auth_urls = ${manager}
[[apim.analytics.url_group]]
analytics_url = ${analytics}
analytics_auth_url = ${analytics}
[apim.analytics]
enable = true
receiver_username = "ann"
receiver_password = "of-this-test"
[apim.throttling]
throttle_decision_endpoints = ["tcp://127.0.0.1:${brokerGate.port}/${vhost}"]
receiver_username = "${ACCOUNT.username}"
receiver_password = "${ACCOUNT.password}"
jms.username = "guest"
jms.password = "guest"
publishing_interval = "20ms"
redis.url = "redis://127.0.0.1:${redis?.port ?? (await freePort())}"
[access_log]
target = "file"
path = ${JSON.stringify(log)}
`,
  )
  await brokerGate.open()
  gateway = await start(at, [], { SLUICE_TEST_HOOKS: '1' })
})
after(async () => {
  await leave()
  await brokerGate.shut()
  await redis?.remove()
  if (typeof broker !== 'string') await broker.remove()
})

interface Readiness {
  readonly status: string
  readonly parts: readonly { readonly name: string; readonly status: string; readonly detail: string }[]
}

async function readiness(): Promise<Readiness> {
  const headers = { accept: 'application/json' }
  const response = await fetch(`http://127.0.0.1:${gateway.healthPort}/readyz`, { headers })
  assert.equal(response.status, 200)
  return (await response.json()) as Readiness
}

/** Resolves once the part has the state, with its detail. Each look sends a request, which makes events and lines. */
async function until(name: string, status: 'ok' | 'degraded'): Promise<string> {
  for (;;) {
    await ask(gateway.port, 'GET', '/t/1.0.0/x')
    const { parts } = await readiness()
    const part = parts.find(it => it.name === name) ?? assert.fail(`${name} is not told`)
    if (part.status === status) return part.detail
    await pollPause()
  }
}

test('each configured part is told, in one order', async () => {
  const { status, parts } = await readiness()
  assert.equal(status, 'ready')
  assert.deepEqual(
    parts.map(({ name }) => name),
    [
      ...['node', 'key manager', 'database', 'broker', 'traffic managers', 'redis', 'access log', 'analytics'],
      'endpoints',
    ],
  )
})

test('the message broker', { skip: typeof broker === 'string' ? broker : false }, async () => {
  await until('broker', 'ok')
  await brokerGate.shut()
  assert.equal(await until('broker', 'degraded'), 'the message broker does not answer')
  await brokerGate.open()
  await until('broker', 'ok')
})

test('a traffic manager', async t => {
  assert.equal(await until('traffic managers', 'degraded'), 'there is no connection to one of them')
  const context = { metrics: { add: () => {} }, report: () => {}, receive: () => {} }
  const server = new ReportServer({ host: '127.0.0.1', port: managerPort, tls: null, ...ACCOUNT }, context)
  await server.listen()
  t.after(() => server.close())
  await until('traffic managers', 'ok')
})

test('Redis', { skip: WITHOUT_REDIS === '' ? false : WITHOUT_REDIS }, async () => {
  await until('redis', 'ok')
  await redis!.kill()
  assert.equal(await until('redis', 'degraded'), 'the Redis of shared counters does not answer')
  await redis!.restart()
  await until('redis', 'ok')
})

test('the access log on a full disk', async () => {
  await until('access log', 'ok')
  unlinkSync(log)
  symlinkSync('/dev/full', log)
  gateway.program.signal('SIGHUP')
  assert.equal(await until('access log', 'degraded'), 'the last lines could not be written')
  unlinkSync(log)
  gateway.program.signal('SIGHUP')
  await until('access log', 'ok')
})

test('analytics without a receiver', async t => {
  const detail = await until('analytics', 'degraded')
  assert.equal(detail, 'a group of receivers takes no events; they are kept on disk')
  const receiver = createServer((request, response) => {
    request.resume()
    const type = { 'Content-Type': 'application/json' }
    request.on('end', () => response.writeHead(200, type).end('{"session":"s1"}'))
  }).listen(analyticsPort, '127.0.0.1')
  await once(receiver, 'listening')
  t.after(() => {
    receiver.closeAllConnections()
    receiver.close()
  })
  await until('analytics', 'ok')
})

test('an endpoint that is switched off', async () => {
  await until('endpoints', 'ok')
  await sluice(at, 'endpoints', 'off', 't/1.0.0')
  assert.match(await until('endpoints', 'degraded'), /^1 of \d+ not active: t\/1\.0\.0 OFF$/)
  await sluice(at, 'endpoints', 'on', 't/1.0.0')
  await until('endpoints', 'ok')
})

test('the key manager, whose thread dies and is replaced', async () => {
  await until('key manager', 'ok')
  await ask(gateway.healthPort, 'POST', '/test/kill-control')
  assert.equal(await until('key manager', 'degraded'), 'the control thread died; a replacement starts')
  await until('key manager', 'ok')
})
