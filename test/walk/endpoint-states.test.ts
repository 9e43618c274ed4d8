/** One endpoint of an API over real sockets: every state that requests, failures and operators lead it to. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { EndpointSettings } from '../../src/config/endpoint-settings.ts'
import { takeAnswer } from '../harness/answers.ts'
import { asked, type EndpointGateway, outcome, Patient, startEndpoints, untilOutcome } from '../harness/endpoints.ts'
import { connectPeer, eventually } from '../harness/peers.ts'

const TIMEOUT_MS = 200
/** Longer than any test takes. */
const LONG_MS = 3_600_000

async function begin(
  t: TestContext,
  settings: Partial<EndpointSettings>,
): Promise<{ gateway: EndpointGateway; backend: Patient }> {
  const backend = await Patient.start('well')
  const http = { 'http.socket.timeout': TIMEOUT_MS }
  const gateway = await startEndpoints({ kind: 'single', ports: [backend.port], settings }, http)
  t.after(async () => {
    gateway.stop()
    await backend.die()
  })
  return { gateway, backend }
}

/** What the log says of changes: event, from, to. */
function changes(gateway: EndpointGateway): readonly string[] {
  return gateway.reports
    .filter(({ fields }) => fields.ENDPOINT !== undefined)
    .map(({ level, event, fields }) => `${level}: ${event}, ${fields.FROM} -> ${fields.TO}`)
}

test('a suspended endpoint answers 303001, and nothing reaches the backend', async t => {
  const { gateway, backend } = await begin(t, { initialMs: LONG_MS })
  await backend.die()
  assert.equal(await outcome(gateway), 101503)
  await backend.revive()
  const answer = await asked(gateway, 'POST', 'x')
  assert.equal(answer.status, 503)
  assert.equal(
    answer.body,
    '{"fault":{"code":303001,"type":"Status report","message":"Endpoint suspended","description":"The endpoint is suspended or switched off"}}',
  )
  assert.ok(Number(answer.fields.get('retry-after')?.[0]) > 3500)
  assert.deepEqual(backend.requests, [])
  assert.equal(gateway.metrics().counts.refusedSuspended, 1)
})

test('Retry-After is of one answer, not of the next on the same connection', async t => {
  const { gateway, backend } = await begin(t, { initialMs: LONG_MS })
  gateway.table.failed(0, gateway.settings[0]!, false, 101503, 0)
  const client = await connectPeer(gateway.port)
  const ask = async (path: string): ReturnType<typeof takeAnswer> => {
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
    return takeAnswer(client)
  }
  assert.ok((await ask('/t/')).fields.has('retry-after'))
  const other = await ask('/nothing-there')
  assert.deepEqual([other.status, other.fields.has('retry-after')], [404, false])
  assert.deepEqual(backend.requests, [])
  client.destroy()
})

test('ACTIVE -> SUSPENDED -> ACTIVE on the first success, each told in the log with its cause', async t => {
  const { gateway, backend } = await begin(t, { initialMs: 200 })
  await backend.die()
  assert.equal(await outcome(gateway), 101503)
  await backend.revive()
  await untilOutcome(gateway, 'well')
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

test('a suspended endpoint that fails when it is tried is suspended for longer, up to the maximum', async t => {
  const { gateway, backend } = await begin(t, { initialMs: 100, factor: 3, maximumMs: 500 })
  await backend.die()
  for (let i = 0; i < 4; i++) await untilOutcome(gateway, 101503)
  const waits = gateway.reports.filter(({ event }) => event === 'endpoint suspended')
  assert.deepEqual(
    waits.map(({ fields }) => fields.RETRY_IN_MS),
    [100, 300, 500, 500],
  )
})

test('duration 0: failures are told to the client, and the endpoint stays active', async t => {
  const { gateway, backend } = await begin(t, { initialMs: 0 })
  await backend.die()
  for (let i = 0; i < 3; i++) assert.equal(await outcome(gateway), 101503)
  await backend.revive()
  assert.equal(await outcome(gateway), 'well')
  assert.deepEqual([changes(gateway), gateway.table.read(0).failures], [[], 3])
})

test('a time-out with retries: TIMEOUT, in which requests pass, and SUSPENDED when none is left', async t => {
  const { gateway, backend } = await begin(t, { retriesBeforeSuspension: 1, initialMs: LONG_MS })
  backend.health = 'hangs'
  assert.equal(await outcome(gateway), 101507)
  assert.deepEqual(gateway.states, ['TIMEOUT'])
  assert.equal(await outcome(gateway), 101507)
  assert.deepEqual(gateway.states, ['SUSPENDED'])
  assert.equal(await outcome(gateway), 303001)
})

test('TIMEOUT -> ACTIVE on the first success', async t => {
  const { gateway, backend } = await begin(t, { retriesBeforeSuspension: 1, initialMs: LONG_MS })
  backend.health = 'hangs'
  assert.equal(await outcome(gateway), 101507)
  backend.health = 'well'
  assert.equal(await outcome(gateway), 'well')
  assert.deepEqual(gateway.states, ['ACTIVE'])
})

test('an endpoint in TIMEOUT is not asked before the retry delay is over', async t => {
  const { gateway, backend } = await begin(t, { retriesBeforeSuspension: 1, retryDelayMs: 300, initialMs: LONG_MS })
  backend.health = 'hangs'
  assert.equal(await outcome(gateway), 101507)
  backend.health = 'well'
  assert.equal(await outcome(gateway), 303001)
  assert.equal(backend.requests.length, 1)
  await untilOutcome(gateway, 'well')
})

test('a backend that closes without an answer is a time-out: it has the retries of one', async t => {
  const { gateway, backend } = await begin(t, { retriesBeforeSuspension: 1, initialMs: LONG_MS })
  backend.health = 'closes'
  assert.equal(await outcome(gateway), 101508)
  assert.deepEqual(gateway.states, ['TIMEOUT'])
})

test('a response of the backend is a success, whatever its status', async t => {
  const { gateway, backend } = await begin(t, { initialMs: LONG_MS })
  backend.health = 'errs'
  for (let i = 0; i < 3; i++) assert.equal((await asked(gateway)).status, 500)
  assert.deepEqual(gateway.states, ['ACTIVE'])
})

const LISTS: readonly (readonly [string, Partial<EndpointSettings>, string])[] = [
  ['codes that suspend without the one that comes', { suspendCodes: [101508] }, 'ACTIVE'],
  ['codes that suspend with it', { suspendCodes: [101503, 101508] }, 'SUSPENDED'],
  ['codes for TIMEOUT with it', { timeoutCodes: [101503], retriesBeforeSuspension: 1 }, 'TIMEOUT'],
  ['-1 in both lists', { timeoutCodes: [-1], suspendCodes: [-1] }, 'ACTIVE'],
]

for (const [what, settings, state] of LISTS) {
  test(`${what}: ${state} after a connection was refused`, async t => {
    const { gateway, backend } = await begin(t, { initialMs: LONG_MS, ...settings })
    await backend.die()
    assert.equal(await outcome(gateway), 101503)
    assert.deepEqual(gateway.states, [state])
  })
}

test('the client that leaves is not the endpoint’s fault', async t => {
  const { gateway, backend } = await begin(t, { initialMs: LONG_MS })
  backend.health = 'hangs'
  const client = await connectPeer(gateway.port)
  client.send('GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('the request', () => backend.held === 1)
  client.reset()
  await eventually('the end of the exchange', () => gateway.metrics().counts.targetsOpen === 0)
  assert.deepEqual([gateway.states, gateway.table.read(0).failures], [['ACTIVE'], 0])
})

test('an idle connection that was closed is not the endpoint’s fault, even where POST cannot be repeated', async t => {
  const { gateway, backend } = await begin(t, { initialMs: LONG_MS })
  assert.equal(await outcome(gateway), 'well')
  backend.health = 'resets'
  assert.equal(await outcome(gateway, 'POST', 'x'), 101504)
  assert.deepEqual(gateway.states, ['ACTIVE'])
  assert.equal(await outcome(gateway, 'POST', 'x'), 101504)
  assert.deepEqual(gateway.states, ['SUSPENDED'], 'on a fresh connection it is')
})

test('a fresh connection that is lost after an idle one was is the endpoint’s fault', async t => {
  const { gateway, backend } = await begin(t, { initialMs: LONG_MS })
  assert.equal(await outcome(gateway), 'well')
  backend.health = 'resets'
  assert.equal(await outcome(gateway), 101504)
  assert.deepEqual([backend.requests.length, gateway.states], [3, ['SUSPENDED']])
})

test('while a suspended endpoint is tried by one request the others are answered at once', async t => {
  const { gateway, backend } = await begin(t, { initialMs: 100 })
  await backend.die()
  assert.equal(await outcome(gateway), 101503)
  await backend.revive()
  backend.health = 'hangs'
  await eventually('the next try', () => gateway.table.isReady(0))
  const tried = outcome(gateway)
  await eventually('the request', () => backend.held === 1)
  assert.equal(await outcome(gateway), 303001)
  backend.answerHeld()
  assert.equal(await tried, 'well')
  assert.deepEqual(gateway.states, ['ACTIVE'])
})

test('a late answer to a request from before its suspension makes an endpoint active', async t => {
  const { gateway, backend } = await begin(t, { initialMs: LONG_MS })
  backend.health = 'hangs'
  const slow = outcome(gateway)
  await eventually('the request', () => backend.held === 1)
  backend.health = 'resets'
  assert.equal(await outcome(gateway), 101504)
  assert.deepEqual(gateway.states, ['SUSPENDED'])
  backend.answerHeld()
  assert.equal(await slow, 'well')
  assert.deepEqual(gateway.states, ['ACTIVE'])
})

test('OFF is manual: nothing reaches the backend until it is switched on', async t => {
  const { gateway, backend } = await begin(t, {})
  gateway.table.switched(0, gateway.settings[0]!, false)
  const answer = await asked(gateway)
  assert.equal(answer.status, 503)
  assert.equal(answer.fields.get('retry-after'), undefined)
  assert.deepEqual(backend.requests, [])
  gateway.table.switched(0, gateway.settings[0]!, true)
  assert.equal(await outcome(gateway), 'well')
})

test('actionDuration: a response later than that is 504, and a time-out of the endpoint', async t => {
  const backend = await Patient.start('slow')
  backend.health = 'hangs'
  const settings = { responseMs: 200, initialMs: LONG_MS }
  const gateway = await startEndpoints({ kind: 'single', ports: [backend.port], settings })
  t.after(async () => {
    gateway.stop()
    await backend.die()
  })
  assert.equal((await asked(gateway)).status, 504)
  assert.deepEqual([gateway.states, gateway.table.read(0).lastBase], [['SUSPENDED'], 101504])
})
