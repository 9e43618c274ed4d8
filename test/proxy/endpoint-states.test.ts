/** States of an endpoint after requests, failures and commands of an operator. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { EndpointSettings } from '../../src/apis/api-definition.ts'
import { takeResponse } from '../harness/responses.ts'
import {
  sendRequest,
  type EndpointGateway,
  outcome,
  UnreliableBackend,
  startEndpoints,
  untilOutcome,
} from '../harness/unreliable-backend.ts'
import { connectPeer, eventually } from '../harness/peers.ts'

/** A response time limit for tests whose backend does not respond. */
const TIMEOUT_MS = 300
/** Longer than any test takes. */
const LONG_MS = 3_600_000

async function begin(
  t: TestContext,
  settings: Partial<EndpointSettings>,
  timeoutMs = 60_000,
): Promise<{ gateway: EndpointGateway; backend: UnreliableBackend }> {
  const backend = await UnreliableBackend.start('ok')
  const http = { 'http.socket.timeout': timeoutMs }
  const gateway = await startEndpoints({ kind: 'single', ports: [backend.port], settings }, http)
  t.after(async () => {
    gateway.stop()
    await backend.stop()
  })
  return { gateway, backend }
}

/** Log events of state changes as "level: event, from -> to". */
function changes(gateway: EndpointGateway): readonly string[] {
  return gateway.reports
    .filter(({ fields }) => fields.ENDPOINT !== undefined)
    .map(({ level, event, fields }) => `${level}: ${event}, ${fields.FROM} -> ${fields.TO}`)
}

test('a request to a suspended endpoint gets 303001 and does not reach the backend', async t => {
  const { gateway, backend } = await begin(t, { suspensionMs: LONG_MS, suspensionMaxMs: LONG_MS })
  await backend.stop()
  assert.equal(await outcome(gateway), 101503)
  await backend.listen()
  const response = await sendRequest(gateway, 'POST', 'x')
  assert.equal(response.status, 503)
  assert.equal(
    response.body,
    '{"fault":{"code":303001,"type":"Status report","message":"Endpoint suspended","description":"The endpoint is suspended or switched off"}}',
  )
  assert.ok(Number(response.fields.get('retry-after')?.[0]) > 3500)
  assert.deepEqual(backend.requests, [])
  assert.equal(gateway.metrics().counts.refusedSuspended, 1)
})

test('Retry-After of one response is not repeated in the next response of the connection', async t => {
  const { gateway, backend } = await begin(t, { suspensionMs: LONG_MS })
  gateway.table.failed(0, gateway.settings[0]!, false, 101503, 0)
  const client = await connectPeer(gateway.port)
  const request = async (path: string): ReturnType<typeof takeResponse> => {
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
    return takeResponse(client)
  }
  assert.ok((await request('/t/')).fields.has('retry-after'))
  const other = await request('/nothing-there')
  assert.deepEqual([other.status, other.fields.has('retry-after')], [404, false])
  assert.deepEqual(backend.requests, [])
  client.destroy()
})

test('a failure suspends the endpoint, and the first success makes it ACTIVE, each with a log event', async t => {
  const { gateway, backend } = await begin(t, { suspensionMs: 200 })
  await backend.stop()
  assert.equal(await outcome(gateway), 101503)
  await backend.listen()
  await untilOutcome(gateway, 'ok')
  assert.deepEqual(gateway.states, ['ACTIVE'])
  assert.deepEqual(changes(gateway), [
    'warn: endpoint suspended, ACTIVE -> SUSPENDED',
    'debug: endpoint is tried again, SUSPENDED -> SUSPENDED',
    'info: endpoint is active again, SUSPENDED -> ACTIVE',
  ])
  const { fields } = gateway.reports.find(({ event }) => event === 'endpoint suspended')!
  assert.deepEqual(fields, {
    ENDPOINT: `http://127.0.0.1:${backend.port}`,
    FROM: 'ACTIVE',
    TO: 'SUSPENDED',
    CAUSE_OF_ERROR: 'ECONNREFUSED',
    ERROR_CODE: 101503,
    RETRY_IN_MS: 200,
  })
  const { failures, suspensions, recoveries } = gateway.table.read(0)
  assert.deepEqual([failures, suspensions, recoveries], [1, 1, 1])
})

test('each failed probe suspends the endpoint for longer, up to the maximum', async t => {
  const { gateway, backend } = await begin(t, { suspensionMs: 100, suspensionFactor: 3, suspensionMaxMs: 500 })
  await backend.stop()
  for (let i = 0; i < 4; i++) await untilOutcome(gateway, 101503)
  const waits = gateway.reports.filter(({ event }) => event === 'endpoint suspended')
  assert.deepEqual(
    waits.map(({ fields }) => fields.RETRY_IN_MS),
    [100, 300, 500, 500],
  )
})

test('with suspension duration 0 the endpoint stays ACTIVE', async t => {
  const { gateway, backend } = await begin(t, { suspensionMs: 0 })
  await backend.stop()
  for (let i = 0; i < 3; i++) assert.equal(await outcome(gateway), 101503)
  await backend.listen()
  assert.equal(await outcome(gateway), 'ok')
  assert.deepEqual([changes(gateway), gateway.table.read(0).failures], [[], 3])
})

test('with retries before suspension a timeout makes the endpoint TIMEOUT, and the next one SUSPENDED', async t => {
  const { gateway, backend } = await begin(t, { retriesBeforeSuspension: 1, suspensionMs: LONG_MS }, TIMEOUT_MS)
  backend.behaviour = 'hangs'
  assert.equal(await outcome(gateway), 101507)
  assert.deepEqual(gateway.states, ['TIMEOUT'])
  assert.equal(await outcome(gateway), 101507)
  assert.deepEqual(gateway.states, ['SUSPENDED'])
  assert.equal(await outcome(gateway), 303001)
})

test('the first success makes an endpoint in TIMEOUT ACTIVE', async t => {
  const { gateway, backend } = await begin(t, { retriesBeforeSuspension: 1, suspensionMs: LONG_MS }, TIMEOUT_MS)
  backend.behaviour = 'hangs'
  assert.equal(await outcome(gateway), 101507)
  backend.behaviour = 'responds'
  assert.equal(await outcome(gateway), 'ok')
  assert.deepEqual(gateway.states, ['ACTIVE'])
})

test('an endpoint in TIMEOUT gets no request during the retry delay', async t => {
  const settings = { retriesBeforeSuspension: 1, retryDelayMs: 1000, suspensionMs: LONG_MS }
  const { gateway, backend } = await begin(t, settings, TIMEOUT_MS)
  backend.behaviour = 'hangs'
  assert.equal(await outcome(gateway), 101507)
  backend.behaviour = 'responds'
  assert.equal(await outcome(gateway), 303001)
  assert.equal(backend.requests.length, 1)
  await untilOutcome(gateway, 'ok')
})

test('with retries, a backend that closes without a response counts as a time-out', async t => {
  const { gateway, backend } = await begin(t, { retriesBeforeSuspension: 1, suspensionMs: LONG_MS })
  backend.behaviour = 'closes'
  assert.equal(await outcome(gateway), 101508)
  assert.deepEqual(gateway.states, ['TIMEOUT'])
})

test('a response with status 500 is a success of the endpoint', async t => {
  const { gateway, backend } = await begin(t, { suspensionMs: LONG_MS })
  backend.behaviour = 'fails with 500'
  for (let i = 0; i < 3; i++) assert.equal((await sendRequest(gateway)).status, 500)
  assert.deepEqual(gateway.states, ['ACTIVE'])
})

const LISTS: readonly (readonly [string, Partial<EndpointSettings>, string])[] = [
  ['suspend codes without 101503', { suspendCodes: [101508] }, 'ACTIVE'],
  ['suspend codes with 101503', { suspendCodes: [101503, 101508] }, 'SUSPENDED'],
  ['timeout codes with 101503', { timeoutCodes: [101503], retriesBeforeSuspension: 1 }, 'TIMEOUT'],
  ['-1 as timeout codes and suspend codes', { timeoutCodes: [-1], suspendCodes: [-1] }, 'ACTIVE'],
]

for (const [what, settings, state] of LISTS) {
  test(`a refused connection makes an endpoint with ${what} ${state}`, async t => {
    const { gateway, backend } = await begin(t, { suspensionMs: LONG_MS, ...settings })
    await backend.stop()
    assert.equal(await outcome(gateway), 101503)
    assert.deepEqual(gateway.states, [state])
  })
}

test('a reset of the client does not count as a failure of the endpoint', async t => {
  const { gateway, backend } = await begin(t, { suspensionMs: LONG_MS })
  backend.behaviour = 'hangs'
  const client = await connectPeer(gateway.port)
  client.send('GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('the request at the backend', () => backend.held === 1)
  client.reset()
  await eventually('the end of the exchange', () => gateway.metrics().counts.targetsOpen === 0)
  assert.deepEqual([gateway.states, gateway.table.read(0).failures], [['ACTIVE'], 0])
})

test('the loss of a pooled connection does not count as a failure, even for a POST that is not retried', async t => {
  const { gateway, backend } = await begin(t, { suspensionMs: LONG_MS })
  assert.equal(await outcome(gateway), 'ok')
  backend.behaviour = 'resets'
  assert.equal(await outcome(gateway, 'POST', 'x'), 101504)
  assert.equal(gateway.table.read(0).failures, 0)
  assert.equal(await outcome(gateway, 'POST', 'x'), 101504)
  assert.equal(gateway.table.read(0).failures, 1, 'the loss of a new connection counts')
})

test('the loss of the new connection of a retry counts as a failure', async t => {
  const { gateway, backend } = await begin(t, { suspensionMs: LONG_MS })
  assert.equal(await outcome(gateway), 'ok')
  backend.behaviour = 'resets'
  assert.equal(await outcome(gateway), 101504)
  assert.deepEqual([backend.requests.length, gateway.table.read(0).failures], [3, 1])
})

test('while a probe is pending other requests get 303001', async t => {
  const { gateway, backend } = await begin(t, { suspensionMs: 100 })
  await backend.stop()
  assert.equal(await outcome(gateway), 101503)
  await backend.listen()
  backend.behaviour = 'hangs'
  await eventually('the end of the suspension', () => gateway.table.isReady(0))
  const probe = outcome(gateway)
  await eventually('the request at the backend', () => backend.held === 1)
  assert.equal(await outcome(gateway), 303001)
  backend.respondToHeld()
  assert.equal(await probe, 'ok')
  assert.deepEqual(gateway.states, ['ACTIVE'])
})

test('a late response to a request sent before the suspension makes the endpoint ACTIVE', async t => {
  const { gateway, backend } = await begin(t, { suspensionMs: LONG_MS, suspendCodes: [101504] })
  backend.behaviour = 'hangs'
  const slow = outcome(gateway)
  await eventually('the request at the backend', () => backend.held === 1)
  backend.behaviour = 'resets'
  assert.equal(await outcome(gateway), 101504)
  assert.deepEqual(gateway.states, ['SUSPENDED'])
  backend.respondToHeld()
  assert.equal(await slow, 'ok')
  assert.deepEqual(gateway.states, ['ACTIVE'])
})

test('an endpoint that is OFF gets no request until the operator switches it on', async t => {
  const { gateway, backend } = await begin(t, {})
  gateway.table.switchTo(0, gateway.settings[0]!, false)
  const response = await sendRequest(gateway)
  assert.equal(response.status, 503)
  assert.equal(response.fields.get('retry-after'), undefined)
  assert.deepEqual(backend.requests, [])
  gateway.table.switchTo(0, gateway.settings[0]!, true)
  assert.equal(await outcome(gateway), 'ok')
})

test('actionDuration: a response that takes longer gets 504 and counts as a timeout of the endpoint', async t => {
  const backend = await UnreliableBackend.start('slow')
  backend.behaviour = 'hangs'
  const settings = { responseTimeoutMs: 200, suspensionMs: LONG_MS, timeoutCodes: [101504] }
  const gateway = await startEndpoints({ kind: 'single', ports: [backend.port], settings })
  t.after(async () => {
    gateway.stop()
    await backend.stop()
  })
  assert.equal((await sendRequest(gateway)).status, 504)
  assert.deepEqual([gateway.states, gateway.table.read(0).lastBase], [['SUSPENDED'], 101504])
})
