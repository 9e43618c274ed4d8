/** Several endpoints of one API over real sockets: who is asked, who takes over, and who shares the load how. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { EndpointsPlan } from '../../src/plan.ts'
import { takeAnswer } from '../harness/answers.ts'
import { deafListener } from '../harness/deaf-listener.ts'
import { asked, type EndpointGateway, outcome, Patient, startEndpoints, untilOutcome } from '../harness/endpoints.ts'
import { connectPeer, eventually } from '../harness/peers.ts'

const TIMEOUT_MS = 200
const LONG_MS = 3_600_000

interface Sketch {
  readonly kind?: EndpointsPlan['kind']
  readonly algorithm?: EndpointsPlan['algorithm']
  readonly failsOver?: boolean
  readonly names?: readonly string[]
  readonly settings?: Parameters<typeof startEndpoints>[0]['settings']
  readonly http?: Readonly<Record<string, unknown>>
}

async function begin(
  t: TestContext,
  { kind = 'failover', names = ['a', 'b', 'c'], settings = { initialMs: LONG_MS }, http = {}, ...more }: Sketch = {},
): Promise<{ gateway: EndpointGateway; backends: readonly Patient[] }> {
  const backends = await Promise.all(names.map(name => Patient.start(name)))
  const ports = backends.map(({ port }) => port)
  const sketch = { kind, ports, settings, ...more }
  const gateway = await startEndpoints(sketch, { 'http.socket.timeout': TIMEOUT_MS, ...http })
  t.after(async () => {
    gateway.stop()
    for (const backend of backends) await backend.die()
  })
  return { gateway, backends }
}

/** Who answered so many requests, in order. */
async function answers(gateway: EndpointGateway, count: number): Promise<string> {
  const names: (string | number)[] = []
  for (let i = 0; i < count; i++) names.push(await outcome(gateway))
  return names.join(' ')
}

// ---- failing over ---------------------------------------------------------------------------------------------------

test('fail-over tries children in order: while the first is well it has every request', async t => {
  const { gateway, backends } = await begin(t)
  assert.equal(await answers(gateway, 4), 'a a a a')
  assert.deepEqual([backends[1]!.requests.length, gateway.metrics().counts.handovers], [0, 0])
})

/** What is wrong with the first endpoint; which requests the second takes over, with whose code the others fail. */
const ILLNESSES: readonly {
  readonly what: string
  readonly fall: (backend: Patient) => Promise<void> | void
  readonly get: string | number
  readonly post: string | number
}[] = [
  { what: 'refuses connections', fall: backend => backend.die(), get: 'b', post: 'b' },
  { what: 'closes without an answer', fall: backend => fall(backend, 'closes'), get: 'b', post: 101508 },
  { what: 'resets without an answer', fall: backend => fall(backend, 'resets'), get: 'b', post: 101504 },
  { what: 'does not answer in time', fall: backend => fall(backend, 'hangs'), get: 'b', post: 101507 },
]

function fall(backend: Patient, health: Patient['health']): void {
  backend.health = health
}

for (const { what, fall, get, post } of ILLNESSES) {
  test(`an endpoint that ${what}: GET -> ${get}`, async t => {
    const { gateway, backends } = await begin(t)
    await fall(backends[0]!)
    assert.equal(await outcome(gateway), get)
    assert.deepEqual(gateway.states, ['SUSPENDED', 'ACTIVE', 'ACTIVE'])
    assert.deepEqual(backends[1]!.requests, [`GET /it 127.0.0.1:${backends[1]!.port}`])
    assert.equal(await answers(gateway, 2), 'b b')
    assert.equal(gateway.metrics().counts.handovers, 1)
  })

  test(`an endpoint that ${what}: POST, which may have had an effect once it was sent -> ${post}`, async t => {
    const { gateway, backends } = await begin(t)
    await fall(backends[0]!)
    assert.equal(await outcome(gateway, 'POST', 'the body'), post)
    assert.deepEqual(backends[1]!.bodies, post === 'b' ? ['the body'] : [])
    assert.equal(await outcome(gateway, 'POST', 'another'), 'b')
  })
}

test('a connection that never comes: POST is handed over with its body', async t => {
  const deaf = await deafListener()
  const backend = await Patient.start('b')
  const settings = { initialMs: LONG_MS }
  const sketch = { kind: 'failover', ports: [deaf.port, backend.port], settings } as const
  const gateway = await startEndpoints(sketch, { 'http.connection.timeout': TIMEOUT_MS })
  t.after(async () => {
    gateway.stop()
    deaf.close()
    await backend.die()
  })
  assert.equal(await outcome(gateway, 'POST', 'the body'), 'b')
  assert.deepEqual(backend.bodies, ['the body'])
  assert.equal(gateway.table.read(0).lastBase, 101508)
})

const BODIES: readonly (readonly [string, string, readonly string[], string])[] = [
  ['of known length', 'Content-Length: 10', ['hello', 'world'], 'helloworld'],
  ['in chunks', 'Transfer-Encoding: chunked', ['5\r\nhello\r\n', '5\r\nworld\r\n', '0\r\n\r\n'], 'helloworld'],
]

for (const [what, framing, pieces, body] of BODIES) {
  test(`a body ${what} that is still coming follows to the endpoint that takes over`, async t => {
    const { gateway, backends } = await begin(t)
    await backends[0]!.die()
    await backends[1]!.die()
    const client = await connectPeer(gateway.port)
    client.send(`POST /t/it HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n${pieces[0]}`)
    await eventually('the hand-over', () => gateway.metrics().counts.handovers === 2)
    for (const piece of pieces.slice(1)) client.send(piece)
    assert.equal((await takeAnswer(client)).body, 'c')
    assert.deepEqual(backends[2]!.bodies, [body])
    client.destroy()
  })
}

test('each child is tried at most once: when the last one fails too its fault is the answer', async t => {
  const { gateway, backends } = await begin(t, { settings: { initialMs: 0 } })
  for (const backend of backends) await backend.die()
  assert.equal(await outcome(gateway), 101503)
  assert.equal(gateway.metrics().counts.handovers, 2)
  assert.deepEqual(
    backends.map((_, row) => gateway.table.read(row).failures),
    [1, 1, 1],
  )
})

for (const kind of ['failover', 'load_balance'] as const) {
  test(`${kind} with no child ready: 303000, with the time of the first that will be`, async t => {
    const settings = [{ initialMs: LONG_MS }, { initialMs: 60_000 }, { initialMs: LONG_MS }]
    const { gateway, backends } = await begin(t, { kind, settings })
    for (const backend of backends) await backend.die()
    assert.equal(await outcome(gateway), 101503)
    const answer = await asked(gateway)
    assert.equal(answer.status, 503)
    assert.equal(
      answer.body,
      '{"fault":{"code":303000,"type":"Status report","message":"No endpoint is ready","description":"Every endpoint of the API is suspended or switched off"}}',
    )
    const retryAfter = Number(answer.fields.get('retry-after')?.[0])
    assert.ok(retryAfter > 50 && retryAfter <= 61, String(retryAfter))
    assert.equal(gateway.metrics().counts.refusedNoneReady, 1)
  })
}

test('a full pool is handed over, and is not the endpoint’s fault', async t => {
  const { gateway, backends } = await begin(t, {
    http: { 'http.max.connection.per.host.port': 1, 'http.socket.timeout': 60_000 },
  })
  backends[0]!.health = 'hangs'
  const first = outcome(gateway)
  await eventually('the first request', () => backends[0]!.held === 1)
  assert.equal(await outcome(gateway), 'b')
  assert.deepEqual([gateway.states[0], gateway.table.read(0).failures], ['ACTIVE', 0])
  backends[0]!.answerHeld()
  assert.equal(await first, 'a')
})

test('a sick child comes back by itself, and is first again', async t => {
  const { gateway, backends } = await begin(t, { settings: { initialMs: 200 } })
  await backends[0]!.die()
  assert.equal(await answers(gateway, 3), 'b b b')
  await backends[0]!.revive()
  await untilOutcome(gateway, 'a')
  assert.equal(await answers(gateway, 3), 'a a a')
})

test('a suspended endpoint is tried by a request that could be sent again, as long as there is one', async t => {
  const { gateway, backends } = await begin(t, { settings: { initialMs: 200 } })
  backends[0]!.health = 'hangs'
  assert.equal(await outcome(gateway), 'b')
  await eventually('the next try', () => gateway.table.isReady(0))
  assert.equal(await outcome(gateway, 'POST', 'x'), 'b')
  const asked = backends[0]!.requests.length
  assert.equal(await outcome(gateway), 'b')
  assert.equal(backends[0]!.requests.length, asked + 1, 'GET has tried it')
})

test('where only requests come that cannot be sent again, one of them tries', async t => {
  const { gateway, backends } = await begin(t, { settings: { initialMs: 100 } })
  await backends[0]!.die()
  assert.equal(await outcome(gateway, 'POST', 'x'), 'b')
  await backends[0]!.revive()
  await eventually('that nobody else has come', () => gateway.table.isOverdue(0))
  assert.equal(await outcome(gateway, 'POST', 'x'), 'a')
  assert.deepEqual(gateway.states[0], 'ACTIVE')
})

test('what the client asked for stays the same for every endpoint, but for start line and Host', async t => {
  const { gateway, backends } = await begin(t)
  await backends[0]!.die()
  const client = await connectPeer(gateway.port)
  client.send('GET /t/a%20b?x=1 HTTP/1.1\r\nHost: front.example\r\nX-Own: 1\r\n\r\n')
  assert.equal((await takeAnswer(client)).body, 'b')
  assert.deepEqual(backends[1]!.requests, [`GET /a%20b?x=1 127.0.0.1:${backends[1]!.port}`])
  client.destroy()
})

// ---- sharing the load -----------------------------------------------------------------------------------------------

test('round robin: one after the other', async t => {
  const { gateway } = await begin(t, { kind: 'load_balance' })
  assert.equal(await answers(gateway, 7), 'a b c a b c a')
})

test('the requests of one connection go round as well, however often', async t => {
  const { gateway } = await begin(t, { kind: 'load_balance' })
  const client = await connectPeer(gateway.port)
  const names: string[] = []
  for (let i = 0; i < 7; i++) {
    client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
    names.push((await takeAnswer(client)).body)
  }
  assert.equal(names.join(' '), 'a b c a b c a')
  client.destroy()
})

test('round robin leaves out who is not ready, and nobody has its share twice', async t => {
  const { gateway, backends } = await begin(t, { kind: 'load_balance' })
  gateway.table.switched(1, gateway.settings[1]!, false)
  assert.equal(await answers(gateway, 6), 'a c a c a c')
  gateway.table.switched(1, gateway.settings[1]!, true)
  assert.equal(await answers(gateway, 3), 'a b c')
  assert.equal(backends[1]!.requests.length, 1)
})

test('load balancing that does not fail over: the fault of the endpoint is the answer', async t => {
  const { gateway, backends } = await begin(t, { kind: 'load_balance', failsOver: false, names: ['a', 'b'] })
  await backends[0]!.die()
  assert.equal(await answers(gateway, 3), '101503 b b')
})

test('load balancing with fail-over: every request is answered while one is well', async t => {
  const { gateway, backends } = await begin(t, { kind: 'load_balance' })
  await backends[0]!.die()
  backends[1]!.health = 'closes'
  assert.equal(await answers(gateway, 4), 'c c c c')
})

/** [weights, who has how many requests of one cycle]. */
const WEIGHTS: readonly (readonly [readonly number[], string])[] = [
  [[1, 1, 1], 'a b c'],
  [[2, 1, 1], 'a b c a'],
  [[5, 1, 1], 'a a b a c a a'],
]

for (const [weights, cycle] of WEIGHTS) {
  test(`weights ${weights.join(', ')}: exact shares over a cycle, and smooth: ${cycle}`, async t => {
    const settings = weights.map(weight => ({ weight, initialMs: LONG_MS }))
    const { gateway } = await begin(t, { kind: 'load_balance', algorithm: 'weighted', settings })
    const length = weights.reduce((sum, weight) => sum + weight)
    assert.equal(await answers(gateway, 2 * length), `${cycle} ${cycle}`)
  })
}

test('weights: those that are left share the load as they would among themselves', async t => {
  const settings = [5, 2, 1].map(weight => ({ weight, initialMs: LONG_MS }))
  const { gateway } = await begin(t, { kind: 'load_balance', algorithm: 'weighted', settings })
  gateway.table.switched(0, gateway.settings[0]!, false)
  assert.equal(await answers(gateway, 6), 'b c b b c b')
})

test('least pending: a stuck backend has one request, and the others have the rest', async t => {
  const { gateway, backends } = await begin(t, {
    kind: 'load_balance',
    algorithm: 'least_pending',
    http: { 'http.socket.timeout': 60_000 },
  })
  backends[0]!.health = 'hangs'
  const stuck = outcome(gateway)
  await eventually('the stuck request', () => backends[0]!.held === 1)
  assert.equal(await answers(gateway, 6), 'b c b c b c')
  backends[0]!.health = 'well'
  backends[0]!.answerHeld()
  assert.equal(await stuck, 'a')
  assert.equal(await answers(gateway, 3), 'a b c')
})

test('least pending: what is over is not pending, however it ended', async t => {
  const { gateway, backends } = await begin(t, {
    kind: 'load_balance',
    algorithm: 'least_pending',
    settings: { initialMs: 0 },
  })
  const pending = (): readonly number[] => backends.map((_, row) => gateway.table.pending(row))
  const client = await connectPeer(gateway.port)
  for (const backend of backends) backend.health = 'hangs'
  client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('a pending request', () => pending().includes(1))
  client.reset()
  await eventually('the client that left', () => pending().every(count => count === 0))
  for (const backend of backends) backend.health = 'resets'
  assert.equal(await outcome(gateway), 101504)
  for (const backend of backends) backend.health = 'well'
  await answers(gateway, 3)
  assert.deepEqual(pending(), [0, 0, 0])
})
