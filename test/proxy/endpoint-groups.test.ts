/** Endpoint groups: choice of the endpoint, failover and load balancing. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { EndpointsPlan } from '../../src/plan/reactor-plan.ts'
import { takeResponse } from '../harness/responses.ts'
import { deafListener } from '../harness/deaf-listener.ts'
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
const LONG_MS = 3_600_000

interface Options {
  readonly kind?: EndpointsPlan['kind']
  readonly algorithm?: EndpointsPlan['algorithm']
  readonly failsOver?: boolean
  readonly names?: readonly string[]
  readonly settings?: Parameters<typeof startEndpoints>[0]['settings']
  /** `http.socket.timeout`; too long to expire by default. */
  readonly timeoutMs?: number
  readonly http?: Readonly<Record<string, unknown>>
}

async function begin(
  t: TestContext,
  options: Options = {},
): Promise<{ gateway: EndpointGateway; backends: readonly UnreliableBackend[] }> {
  const { kind = 'failover', names = ['a', 'b', 'c'], settings = { suspensionMs: LONG_MS } } = options
  const { timeoutMs = 60_000, http = {}, ...group } = options
  const backends = await Promise.all(names.map(name => UnreliableBackend.start(name)))
  const ports = backends.map(({ port }) => port)
  const gateway = await startEndpoints(
    { ...group, kind, ports, settings },
    { 'http.socket.timeout': timeoutMs, ...http },
  )
  t.after(async () => {
    gateway.stop()
    for (const backend of backends) await backend.stop()
  })
  return { gateway, backends }
}

/** Sends `count` requests; returns their outcomes in order. */
async function outcomes(gateway: EndpointGateway, count: number): Promise<string> {
  const results: (string | number)[] = []
  for (let i = 0; i < count; i++) results.push(await outcome(gateway))
  return results.join(' ')
}

// ---- failing over ---------------------------------------------------------------------------------------------------

test('failover: the first endpoint gets every request while it is available', async t => {
  const { gateway, backends } = await begin(t)
  assert.equal(await outcomes(gateway, 4), 'a a a a')
  assert.deepEqual([backends[1]!.requests.length, gateway.metrics().counts.failovers], [0, 0])
})

/** A failure of the first endpoint, and the outcome of a GET and of a POST: the second endpoint, or a fault code. */
const FAILURES: readonly {
  readonly what: string
  readonly fail: (backend: UnreliableBackend) => Promise<void> | void
  readonly get: string | number
  readonly post: string | number
}[] = [
  { what: 'refuses connections', fail: backend => backend.stop(), get: 'b', post: 'b' },
  { what: 'closes without a response', fail: backend => setBehaviour(backend, 'closes'), get: 'b', post: 101508 },
  { what: 'resets without a response', fail: backend => setBehaviour(backend, 'resets'), get: 'b', post: 101504 },
  { what: 'does not respond in time', fail: backend => setBehaviour(backend, 'hangs'), get: 'b', post: 101507 },
]

function setBehaviour(backend: UnreliableBackend, behaviour: UnreliableBackend['behaviour']): void {
  backend.behaviour = behaviour
}

for (const { what, fail, get, post } of FAILURES) {
  test(`failover: a GET to an endpoint that ${what} is sent to the next endpoint`, async t => {
    const { gateway, backends } = await begin(t, { timeoutMs: TIMEOUT_MS })
    await fail(backends[0]!)
    assert.equal(await outcome(gateway), get)
    assert.deepEqual(gateway.states, ['SUSPENDED', 'ACTIVE', 'ACTIVE'])
    assert.deepEqual(backends[1]!.requests, [`GET /it 127.0.0.1:${backends[1]!.port}`])
    assert.equal(await outcomes(gateway, 2), 'b b')
    assert.equal(gateway.metrics().counts.failovers, 1)
  })

  const result = post === 'b' ? 'is sent to the next endpoint' : `gets ${post}`
  test(`failover: a POST, which is not idempotent, to an endpoint that ${what} ${result}`, async t => {
    const { gateway, backends } = await begin(t, { timeoutMs: TIMEOUT_MS })
    await fail(backends[0]!)
    assert.equal(await outcome(gateway, 'POST', 'the body'), post)
    assert.deepEqual(backends[1]!.bodies, post === 'b' ? ['the body'] : [])
    assert.equal(await outcome(gateway, 'POST', 'another'), 'b')
  })
}

test('failover: a POST whose connection is not accepted is sent to the next endpoint with its body', async t => {
  const deaf = await deafListener()
  const backend = await UnreliableBackend.start('b')
  const settings = { suspensionMs: LONG_MS }
  const group = { kind: 'failover', ports: [deaf.port, backend.port], settings } as const
  const gateway = await startEndpoints(group, { 'http.connection.timeout': TIMEOUT_MS })
  t.after(async () => {
    gateway.stop()
    deaf.close()
    await backend.stop()
  })
  assert.equal(await outcome(gateway, 'POST', 'the body'), 'b')
  assert.deepEqual(backend.bodies, ['the body'])
  assert.equal(gateway.table.read(0).lastBase, 101508)
})

const BODIES: readonly (readonly [string, string, readonly string[], string])[] = [
  ['with Content-Length', 'Content-Length: 10', ['hello', 'world'], 'helloworld'],
  ['in chunks', 'Transfer-Encoding: chunked', ['5\r\nhello\r\n', '5\r\nworld\r\n', '0\r\n\r\n'], 'helloworld'],
]

for (const [what, framing, pieces, body] of BODIES) {
  test(`failover: the rest of a body ${what} is sent to the next endpoint`, async t => {
    const { gateway, backends } = await begin(t)
    await backends[0]!.stop()
    await backends[1]!.stop()
    const client = await connectPeer(gateway.port)
    client.send(`POST /t/it HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n${pieces[0]}`)
    await eventually('the second failover', () => gateway.metrics().counts.failovers === 2)
    for (const piece of pieces.slice(1)) client.send(piece)
    assert.equal((await takeResponse(client)).body, 'c')
    assert.deepEqual(backends[2]!.bodies, [body])
    client.destroy()
  })
}

test('failover: each endpoint is tried at most once, and the client gets the fault of the last one', async t => {
  const { gateway, backends } = await begin(t, { settings: { suspensionMs: 0 } })
  for (const backend of backends) await backend.stop()
  assert.equal(await outcome(gateway), 101503)
  assert.equal(gateway.metrics().counts.failovers, 2)
  assert.deepEqual(
    backends.map((_, row) => gateway.table.read(row).failures),
    [1, 1, 1],
  )
})

for (const kind of ['failover', 'load_balance'] as const) {
  test(`${kind}: a request without a ready endpoint gets 303000 with the shortest Retry-After`, async t => {
    const settings = [{ suspensionMs: LONG_MS }, { suspensionMs: 60_000 }, { suspensionMs: LONG_MS }]
    const { gateway, backends } = await begin(t, { kind, settings })
    for (const backend of backends) await backend.stop()
    assert.equal(await outcome(gateway), 101503)
    const response = await sendRequest(gateway)
    assert.equal(response.status, 503)
    assert.equal(
      response.body,
      '{"fault":{"code":303000,"type":"Status report","message":"No endpoint is ready","description":"Every endpoint of the API is suspended or switched off"}}',
    )
    const retryAfter = Number(response.fields.get('retry-after')?.[0])
    assert.ok(retryAfter > 50 && retryAfter <= 61, String(retryAfter))
    assert.equal(gateway.metrics().counts.refusedNoneReady, 1)
  })
}

test('failover: a request over the connection limit is sent to the next endpoint, and not counted', async t => {
  const { gateway, backends } = await begin(t, {
    http: { 'http.max.connection.per.host.port': 1 },
  })
  backends[0]!.behaviour = 'hangs'
  const first = outcome(gateway)
  await eventually('the first request', () => backends[0]!.held === 1)
  assert.equal(await outcome(gateway), 'b')
  assert.deepEqual([gateway.states[0], gateway.table.read(0).failures], ['ACTIVE', 0])
  backends[0]!.respondToHeld()
  assert.equal(await first, 'a')
})

test('failover: an endpoint whose suspension has ended is first again', async t => {
  const { gateway, backends } = await begin(t, { settings: { suspensionMs: 200 } })
  await backends[0]!.stop()
  assert.equal(await outcomes(gateway, 3), 'b b b')
  await backends[0]!.listen()
  await untilOutcome(gateway, 'a')
  assert.equal(await outcomes(gateway, 3), 'a a a')
})

test('probe: a suspended endpoint is probed by a request that can be retried', async t => {
  const { gateway, backends } = await begin(t, { settings: { suspensionMs: 200 }, timeoutMs: TIMEOUT_MS })
  backends[0]!.behaviour = 'hangs'
  assert.equal(await outcome(gateway), 'b')
  await eventually('the end of the suspension', () => gateway.table.isReady(0))
  assert.equal(await outcome(gateway, 'POST', 'x'), 'b')
  const before = backends[0]!.requests.length
  assert.equal(await outcome(gateway), 'b')
  assert.equal(backends[0]!.requests.length, before + 1, 'the GET is the probe')
})

test('probe: without requests that can be retried, any request is the probe', async t => {
  const { gateway, backends } = await begin(t, { settings: { suspensionMs: 100 } })
  await backends[0]!.stop()
  assert.equal(await outcome(gateway, 'POST', 'x'), 'b')
  await backends[0]!.listen()
  await eventually('an overdue probe', () => gateway.table.isOverdue(0))
  assert.equal(await outcome(gateway, 'POST', 'x'), 'a')
  assert.deepEqual(gateway.states[0], 'ACTIVE')
})

test('failover: the next endpoint gets the same request with its own path and Host', async t => {
  const { gateway, backends } = await begin(t)
  await backends[0]!.stop()
  const client = await connectPeer(gateway.port)
  client.send('GET /t/a%20b?x=1 HTTP/1.1\r\nHost: front.example\r\nX-Own: 1\r\n\r\n')
  assert.equal((await takeResponse(client)).body, 'b')
  assert.deepEqual(backends[1]!.requests, [`GET /a%20b?x=1 127.0.0.1:${backends[1]!.port}`])
  client.destroy()
})

// ---- load balancing -----------------------------------------------------------------------------------------------

test('round robin: endpoints get requests in turn', async t => {
  const { gateway } = await begin(t, { kind: 'load_balance' })
  assert.equal(await outcomes(gateway, 7), 'a b c a b c a')
})

test('round robin: the requests of one connection go to the endpoints in turn', async t => {
  const { gateway } = await begin(t, { kind: 'load_balance' })
  const client = await connectPeer(gateway.port)
  const names: string[] = []
  for (let i = 0; i < 7; i++) {
    client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
    names.push((await takeResponse(client)).body)
  }
  assert.equal(names.join(' '), 'a b c a b c a')
  client.destroy()
})

test('round robin: an endpoint that is OFF is skipped, and the others keep equal shares', async t => {
  const { gateway, backends } = await begin(t, { kind: 'load_balance' })
  gateway.table.switchTo(1, gateway.settings[1]!, false)
  assert.equal(await outcomes(gateway, 6), 'a c a c a c')
  gateway.table.switchTo(1, gateway.settings[1]!, true)
  assert.equal(await outcomes(gateway, 3), 'a b c')
  assert.equal(backends[1]!.requests.length, 1)
})

test('load balancing without failover: the client gets the fault of the endpoint', async t => {
  const { gateway, backends } = await begin(t, { kind: 'load_balance', failsOver: false, names: ['a', 'b'] })
  await backends[0]!.stop()
  assert.equal(await outcomes(gateway, 3), '101503 b b')
})

test('load balancing with failover: every request succeeds while one endpoint is available', async t => {
  const { gateway, backends } = await begin(t, { kind: 'load_balance' })
  await backends[0]!.stop()
  backends[1]!.behaviour = 'closes'
  assert.equal(await outcomes(gateway, 4), 'c c c c')
})

/** Weights of the endpoints, and the outcomes of one cycle. */
const WEIGHTS: readonly (readonly [readonly number[], string])[] = [
  [[1, 1, 1], 'a b c'],
  [[2, 1, 1], 'a b c a'],
  [[5, 1, 1], 'a a b a c a a'],
]

for (const [weights, cycle] of WEIGHTS) {
  test(`weights ${weights.join(', ')}: a cycle has exact shares in the order ${cycle}`, async t => {
    const settings = weights.map(weight => ({ weight, suspensionMs: LONG_MS }))
    const { gateway } = await begin(t, { kind: 'load_balance', algorithm: 'weighted', settings })
    const length = weights.reduce((sum, weight) => sum + weight)
    assert.equal(await outcomes(gateway, 2 * length), `${cycle} ${cycle}`)
  })
}

test('weights: the remaining endpoints share the load by their own weights', async t => {
  const settings = [5, 2, 1].map(weight => ({ weight, suspensionMs: LONG_MS }))
  const { gateway } = await begin(t, { kind: 'load_balance', algorithm: 'weighted', settings })
  gateway.table.switchTo(0, gateway.settings[0]!, false)
  assert.equal(await outcomes(gateway, 6), 'b c b b c b')
})

test('least pending: an endpoint with a pending request gets no further request', async t => {
  const { gateway, backends } = await begin(t, {
    kind: 'load_balance',
    algorithm: 'least_pending',
  })
  backends[0]!.behaviour = 'hangs'
  const pendingOutcome = outcome(gateway)
  await eventually('the pending request', () => backends[0]!.held === 1)
  assert.equal(await outcomes(gateway, 6), 'b c b c b c')
  backends[0]!.behaviour = 'responds'
  backends[0]!.respondToHeld()
  assert.equal(await pendingOutcome, 'a')
  assert.equal(await outcomes(gateway, 3), 'a b c')
})

test('least pending: an exchange that has ended in any way is not pending', async t => {
  const { gateway, backends } = await begin(t, {
    kind: 'load_balance',
    algorithm: 'least_pending',
    settings: { suspensionMs: 0 },
  })
  const pending = (): readonly number[] => backends.map((_, row) => gateway.table.pending(row))
  const client = await connectPeer(gateway.port)
  for (const backend of backends) backend.behaviour = 'hangs'
  client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('a pending request', () => pending().includes(1))
  client.reset()
  await eventually('the end of the exchange', () => pending().every(count => count === 0))
  for (const backend of backends) backend.behaviour = 'resets'
  assert.equal(await outcome(gateway), 101504)
  for (const backend of backends) backend.behaviour = 'responds'
  await outcomes(gateway, 3)
  assert.deepEqual(pending(), [0, 0, 0])
})
