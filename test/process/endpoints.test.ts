/** Endpoints of a running gateway: one state for all reactors, listed and switched by the command line. */
import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import { sendRequest, outcome, UnreliableBackend, untilOutcome } from '../harness/unreliable-backend.ts'
import { openProject } from '../harness/open-project.ts'
import { home, leave, sluice, start } from '../harness/operator.ts'
import { ask, freePort, type Home, type RunningGateway } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'

after(leave)

const LONG = { suspendDuration: '3600000' }

let shared: RunningGateway | undefined

/** Gives the API `/t` of the gateway of all tests, which has two reactors, these endpoints. */
async function gatewayOf(endpointConfig: object): Promise<RunningGateway> {
  const at = shared?.home ?? home()
  put(at, 'apis/Test/api.yaml', openProject({ name: 'Test', context: '/t', endpointConfig }))
  if (shared !== undefined) {
    assert.equal((await reload(shared)).outcome, 'applied')
    return shared
  }
  const port = await freePort()
  const sets = ['transport.passthru_http.reactors=2', `transport.passthru_http.listener.parameters.port=${port}`]
  shared = await start(at, sets)
  return shared
}

async function patients(t: TestContext, ...names: readonly string[]): Promise<readonly UnreliableBackend[]> {
  const all = await Promise.all(names.map(name => UnreliableBackend.start(name)))
  t.after(async () => {
    for (const patient of all) await patient.stop()
  })
  return all
}

const urlOf = ({ port }: UnreliableBackend): string => `http://127.0.0.1:${port}`

interface Row {
  readonly name: string
  readonly state: string
  readonly failures: number
  readonly suspensions: number
  readonly lastError: number
  readonly url: string
}

async function listed(at: Home, ...words: string[]): Promise<readonly Row[]> {
  const { code, out, err } = await sluice(at, 'endpoints', ...words, '--json')
  assert.deepEqual([code, err], [0, ''])
  return JSON.parse(out)
}

test('endpoint settings that the gateway does not support are warnings at the start', async t => {
  const [a] = (await patients(t, 'a')) as [UnreliableBackend]
  const url = urlOf(a)
  const config = { endpoint_type: 'http', production_endpoints: { url, config: { actionSelect: 'discard' } } }
  const gateway = await gatewayOf(config)
  await gateway.program.err.until(/actionSelect = .*discard.*: the client gets a fault all the same/)
  assert.equal(await outcome(gateway), 'a')
})

test('an endpoint that one reactor suspends is suspended for all reactors', async t => {
  const [a, b] = (await patients(t, 'a', 'b')) as [UnreliableBackend, UnreliableBackend]
  const config = {
    endpoint_type: 'failover',
    production_endpoints: { url: urlOf(a), config: LONG },
    production_failovers: [{ url: urlOf(b), config: LONG }],
  }
  const gateway = await gatewayOf(config)
  assert.equal(await outcome(gateway), 'a')
  await a.stop()
  // The kernel spreads new connections over the reactors.
  for (let i = 0; i < 40; i++) assert.equal(await outcome(gateway), 'b')
  const [first, second] = await listed(gateway.home)
  assert.deepEqual([first!.state, first!.failures, first!.suspensions, first!.lastError], ['SUSPENDED', 1, 1, 101503])
  assert.deepEqual([second!.state, second!.failures], ['ACTIVE', 0])
})

test('endpoints are listed, and switched off and on by name or URL', async t => {
  const [a, b] = (await patients(t, 'a', 'b')) as [UnreliableBackend, UnreliableBackend]
  const config = {
    endpoint_type: 'load_balance',
    production_endpoints: [{ url: urlOf(a), config: LONG }, { url: urlOf(b) }],
  }
  const gateway = await gatewayOf(config)
  const at = gateway.home
  const { out } = await sluice(at, 'endpoints')
  assert.match(out, /^endpoint +API +state +URL\n/)
  assert.match(out, new RegExp(`\nt/1\\.0\\.0:1 +Test +ACTIVE +${urlOf(a)}\n`))
  assert.deepEqual(
    (await listed(at, 'off', 't/1.0.0:1')).map(({ state }) => state),
    ['OFF', 'ACTIVE'],
  )
  for (let i = 0; i < 20; i++) assert.equal(await outcome(gateway), 'b')
  await listed(at, 'off', urlOf(b))
  const refused = await sendRequest(gateway)
  assert.equal(refused.status, 503)
  assert.match(refused.body, /"code":303000,/)
  assert.deepEqual(
    (await listed(at, 'on', urlOf(b))).map(({ state }) => state),
    ['OFF', 'ACTIVE'],
  )
  await listed(at, 'on', 't/1.0.0:1')
  await untilOutcome(gateway, 'a')
  assert.match(gateway.program.err.text, /"msg":"endpoint switched off"/)
})

test('an unknown endpoint and an unknown word are refused', async t => {
  const [a] = (await patients(t, 'a')) as [UnreliableBackend]
  const gateway = await gatewayOf({ endpoint_type: 'http', production_endpoints: { url: urlOf(a) } })
  const { code, out, err } = await sluice(gateway.home, 'endpoints', 'off', 'nobody')
  assert.deepEqual([code, out], [1, ''])
  assert.match(err, /there is no endpoint nobody; there is t\/1\.0\.0/)
  for (const words of [['off'], ['on'], ['away', 'x'], ['off', 'x', 'y']]) {
    assert.equal((await sluice(gateway.home, 'endpoints', ...words)).code, 2, words.join(' '))
  }
})

test('the state of each endpoint is a metric', async t => {
  const [a, b] = (await patients(t, 'a', 'b')) as [UnreliableBackend, UnreliableBackend]
  const config = {
    endpoint_type: 'failover',
    production_endpoints: { url: urlOf(a), config: LONG },
    production_failovers: [{ url: urlOf(b) }],
  }
  const gateway = await gatewayOf(config)
  const count = /^sluice_endpoint_failovers_total (\d+)$/m
  const before = Number(count.exec(await ask(gateway.healthPort, 'GET', '/metrics'))![1])
  await a.stop()
  assert.equal(await outcome(gateway), 'b')
  const metrics = await ask(gateway.healthPort, 'GET', '/metrics')
  const labels = (n: number, patient: UnreliableBackend): string =>
    `api="Test",endpoint="t/1.0.0:${n}",url="${urlOf(patient)}"`
  for (const line of [
    '# TYPE sluice_endpoint_state gauge',
    `sluice_endpoint_state{${labels(1, a)},state="ACTIVE"} 0`,
    `sluice_endpoint_state{${labels(1, a)},state="SUSPENDED"} 1`,
    `sluice_endpoint_state{${labels(2, b)},state="ACTIVE"} 1`,
    `sluice_endpoint_suspensions_total{${labels(1, a)}} 1`,
    `sluice_endpoint_failures_total{${labels(2, b)}} 0`,
    `sluice_endpoint_failovers_total ${before + 1}`,
  ]) {
    assert.ok(metrics.split('\n').includes(line), `${line} is not in ${metrics}`)
  }
})

test('a health check takes an endpoint out before a request fails, and brings it back', async t => {
  const [a, b] = (await patients(t, 'a', 'b')) as [UnreliableBackend, UnreliableBackend]
  const check = { path: '/health', interval: 100, timeout: 1000, unhealthy_after: 2, healthy_after: 2 }
  const config = {
    endpoint_type: 'failover',
    production_endpoints: { url: urlOf(a), config: { health_check: check } },
    production_failovers: [{ url: urlOf(b) }],
  }
  a.behaviour = 'fails with 500'
  if (shared !== undefined) shared.program.err.text = ''
  const gateway = await gatewayOf(config)
  await gateway.program.err.until(/"msg":"endpoint suspended by its health check"/)
  assert.equal(await outcome(gateway), 'b')
  assert.ok(a.requests.every(request => request.startsWith('GET /health ')))
  assert.deepEqual(b.requests.length, 1)
  await a.stop()
  await a.listen()
  await gateway.program.err.until(/"msg":"endpoint is active again"/)
  assert.equal(await outcome(gateway), 'a')
})
