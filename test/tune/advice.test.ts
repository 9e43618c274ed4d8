/** `advise` names the one limit that was made too small: gateways with real connections, pools of real threads. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { renderCounterMetrics } from '../../src/observe/counter-metrics.ts'
import { allocateMetrics, MetricsColumn, renderMetrics, snapshotMetrics } from '../../src/observe/metrics.ts'
import { PERMIT_ROWS, type PermitRow, POOL_NAMES } from '../../src/plan/worker-plan.ts'
import { PoolService } from '../../src/primary/pool-service.ts'
import type { UsageReport } from '../../src/plan/usage-report.ts'
import { advise, type Finding } from '../../src/tune/advice.ts'
import { TaskIds, WorkerPool } from '../../src/reactor/worker-pool.ts'
import type { WorkerThreads } from '../../src/reactor/worker-threads.ts'
import { type PermitLimits, SharedPermits } from '../../src/runtime/shared-permits.ts'
import { type GatewayOptions, planGateway, startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, type Peer, ScriptedBackend } from '../harness/peers.ts'

const HTTP = 'transport.passthru_http'
const PROCESSORS = 4
const clients: Peer[] = []
const gateways: TestGateway[] = []
const backend = await ScriptedBackend.listen(() => {})

after(() => {
  for (const client of clients) client.destroy()
  for (const gateway of gateways) gateway.stop()
  backend.close()
})

/** On a machine with a known number of processors. */
function hits(usage: UsageReport): readonly Finding[] {
  const machine = { ...usage.machine, processors: PROCESSORS }
  return advise({ ...usage, machine }).filter(({ verdict }) => verdict === 'hit')
}

function usageOf(plan: TestGateway['plan'], more = ''): UsageReport {
  const pools = new PoolService(plan, () => plan)
  return pools.usage(renderMetrics(snapshotMetrics(plan.metrics)) + pools.metrics() + more)
}

async function gatewayWith(options: GatewayOptions): Promise<TestGateway> {
  const gateway = await startGateway([{ context: '/t', port: backend.port }], options)
  gateways.push(gateway)
  return gateway
}

async function dial({ port }: TestGateway): Promise<Peer> {
  const client = await connectPeer(port)
  clients.push(client)
  return client
}

/** One client whose request the backend holds, and another one. */
async function twoRequests(gateway: TestGateway): Promise<void> {
  const first = await dial(gateway)
  first.send('GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n')
  while (gateway.metrics().counts.targetsOpen === 0) await new Promise(setImmediate)
  const second = await dial(gateway)
  second.send('GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n')
  await second.untilText('101600')
}

async function twoClients(gateway: TestGateway): Promise<void> {
  const first = await dial(gateway)
  first.send('GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n')
  while (gateway.metrics().counts.targetsOpen === 0) await new Promise(setImmediate)
  // The connection is reset: perhaps before the client has seen it open.
  await dial(gateway).then(
    second => second.untilEnd(),
    () => undefined,
  )
}

function request(text: string, expected: string): (gateway: TestGateway) => Promise<void> {
  return async gateway => {
    const client = await dial(gateway)
    client.send(text)
    await client.untilText(expected)
  }
}

const LONG = 'x'.repeat(600)
/** Too small a limit, load, and the key that is named with its proposal. */
const GATEWAYS: readonly (readonly [GatewayOptions, (gateway: TestGateway) => Promise<void>, string, number])[] = [
  [{ http: { max_open_connections: 1 } }, twoClients, `${HTTP}.max_open_connections`, 2],
  [{ http: { max_connections_per_client: 1 } }, twoClients, `${HTTP}.max_connections_per_client`, 2],
  [{ http: { 'http.max.connection.per.host.port': 1 } }, twoRequests, `${HTTP}.http.max.connection.per.host.port`, 2],
  [
    { http: { 'target.max_bytes': 100 } },
    request(`GET /t/${LONG} HTTP/1.1\r\nHost: a\r\n\r\n`, ' 414 '),
    `${HTTP}.target.max_bytes`,
    200,
  ],
  [
    { http: { 'header.max_bytes': 512, 'target.max_bytes': 512 } },
    request(`GET /t/ HTTP/1.1\r\nHost: a\r\nX: ${LONG}\r\n\r\n`, ' 431 '),
    `${HTTP}.header.max_bytes`,
    1024,
  ],
  [
    { http: { 'body.max_bytes': 10 } },
    request(`POST /t/ HTTP/1.1\r\nHost: a\r\nContent-Length: 600\r\n\r\n${LONG}`, '102511'),
    `${HTTP}.body.max_bytes`,
    20,
  ],
]

for (const [options, load, key, proposed] of GATEWAYS) {
  test(`${key} was made too small: ${JSON.stringify(options)}`, async () => {
    const gateway = await gatewayWith(options)
    assert.deepEqual(hits(usageOf(gateway.plan)), [])
    await load(gateway)
    const found = hits(usageOf(gateway.plan))
    assert.deepEqual(
      found.map(finding => [finding.key, finding.proposed]),
      [[key, proposed]],
    )
  })
}

test('a transport with a limit of its own that is not full is not blamed for the other one', () => {
  const http = { max_open_connections: 10, 'http.max.connection.per.host.port': 2 }
  const https = { max_open_connections: 5, 'http.max.connection.per.host.port': 8 }
  const counters = `sluice_client_connections_refused_total{limit="all"} 7
sluice_client_pool_connections_highest{transport="http"} 10
sluice_client_pool_connections_highest{transport="https"} 4
sluice_faults_total{side="target",base="101600"} 7
sluice_backend_pool_connections_highest{backend="plain:80"} 1
sluice_backend_pool_connections_limit{backend="plain:80"} 2
sluice_backend_pool_connections_highest{backend="secured:443"} 8
sluice_backend_pool_connections_limit{backend="secured:443"} 8
`
  const usage = { ...usageOf(planGateway([], { http, https }).plan), metrics: counters }
  assert.deepEqual(
    hits(usage).map(({ key, proposed }) => [key, proposed]),
    [
      [`${HTTP}.max_open_connections`, 20],
      ['transport.passthru_https.http.max.connection.per.host.port', 16],
    ],
  )
  assert.match(hits(usage)[1]!.seen, / \(secured:443\)$/)
})

test('a limit that was raised since it was hit is not proposed again', () => {
  const counters = (limit: number): string => `sluice_client_connections_refused_total{limit="all"} 7
sluice_client_pool_connections_highest{transport="http"} 10
sluice_faults_total{side="target",base="101600"} 7
sluice_backend_pool_connections_highest{backend="plain:80"} 10
sluice_backend_pool_connections_limit{backend="plain:80"} ${limit}
`
  const found = (limit: number): number => {
    const http = { max_open_connections: limit, 'http.max.connection.per.host.port': limit }
    return hits({ ...usageOf(planGateway([], { http }).plan), metrics: counters(limit) }).length
  }
  assert.deepEqual([found(10), found(20)], [2, 0])
})

test('several limits at once: each of them is named, and no other', async () => {
  const gateway = await gatewayWith({
    http: { 'target.max_bytes': 100, 'body.max_bytes': 10, max_open_connections: 1 },
  })
  await request(`GET /t/${LONG} HTTP/1.1\r\nHost: a\r\n\r\n`, ' 414 ')(gateway)
  for (const client of clients.splice(0)) client.destroy()
  while (gateway.metrics().counts.connectionsOpen > 0) await new Promise(setImmediate)
  await request(`POST /t/ HTTP/1.1\r\nHost: a\r\nContent-Length: 600\r\n\r\n${LONG}`, '102511')(gateway)
  for (const client of clients.splice(0)) client.destroy()
  while (gateway.metrics().counts.connectionsOpen > 0) await new Promise(setImmediate)
  await twoClients(gateway)
  assert.deepEqual(
    hits(usageOf(gateway.plan)).map(({ key }) => key),
    ['max_open_connections', 'target.max_bytes', 'body.max_bytes'].map(key => `${HTTP}.${key}`),
  )
})

test('descriptors of the process: ulimit -n was made too small', async () => {
  const gateway = await gatewayWith({ connectionLimits: { clients: 1, backends: 1 } })
  await twoClients(gateway)
  const [first, ...more] = hits(usageOf(gateway.plan))
  assert.deepEqual([first?.key, more], ['ulimit -n (LimitNOFILE)', []])
})

/** The row, its limits, tasks that run until all have come, and the bytes of each; the key that is named. */
const POOLS: readonly (readonly [PermitRow, Partial<PermitLimits>, tasks: number, bytes: number, string, number])[] = [
  ['plain', { core: 1, max: 1, queueLength: 2 }, 9, 0, `${HTTP}.worker_pool_size_max`, 8],
  ['plain', { core: 1, max: 1, queueLength: -1 }, 9, 0, `${HTTP}.worker_pool_size_core`, 8],
  ['plain', { core: 50, max: 50, queueLength: 2 }, 90, 0, `${HTTP}.worker_pool_queue_length`, 4],
  ['plain', { core: 50, max: 50, queueBytes: 70_000 }, 90, 10_000, `${HTTP}.worker_pool_queue_bytes`, 140_000],
  ['secured', { core: 2, max: 2, queueLength: 0 }, 9, 0, 'transport.passthru_https.worker_pool_size_max', 8],
  ['background', { core: 1, max: 1, queueLength: 1 }, 9, 0, 'mediation.synapse.max_threads', 8],
]

for (const [row, limits, tasks, bytes, key, proposed] of POOLS) {
  test(`${key} was made too small: ${JSON.stringify(limits)} for ${tasks} tasks at once`, async () => {
    const usage = await usageOfPool(row, limits, tasks, bytes)
    assert.deepEqual(
      hits(usage).map(finding => [finding.key, finding.proposed]),
      [[key, proposed]],
    )
  })
}

const DEFAULT_LIMITS = { core: 400, max: 400, queueLength: -1, queueBytes: 67_108_864 }
const KEYS = { plain: 'http', secured: 'https', background: 'background' } as const

/** A pool whose threads are scripted: permits, queue and counters are those of production. */
async function usageOfPool(
  row: PermitRow,
  changes: Partial<PermitLimits>,
  tasks: number,
  bytes: number,
): Promise<UsageReport> {
  const limits = { ...DEFAULT_LIMITS, ...changes }
  const gate = Promise.withResolvers<void>()
  const { plan } = planGateway([], { metrics: allocateMetrics(2) })
  const pool = new WorkerPool({
    kind: row === 'background' ? 'background' : 'mediation',
    name: POOL_NAMES[row],
    row: PERMIT_ROWS[row],
    permits: new SharedPermits(plan.permits, 1, 0),
    settings: () => ({ limits, timeoutMs: 0, queueWarningMs: 0 }),
    threads: () => ({ run: () => gate.promise }) as unknown as WorkerThreads,
    report: () => {},
    metrics: new MetricsColumn(plan.metrics, 0),
    ids: new TaskIds(),
  })
  const results = Array.from({ length: tasks }, async () =>
    pool.run({ api: 'x', task: { kind: 'x' }, size: 'short', transfer: [new ArrayBuffer(bytes)] }),
  )
  gate.resolve()
  await Promise.allSettled(results)
  const usage = usageOf({ ...plan, workers: { ...plan.workers, limits: { ...plan.workers.limits, [row]: limits } } })
  const section = `transport.passthru_${KEYS[row]}`
  const sized = {
    [`${section}.worker_pool_size_core`]: limits.core,
    [`${section}.worker_pool_size_max`]: limits.max,
    [`${section}.worker_pool_queue_length`]: limits.queueLength,
  }
  const bounded = { [`${HTTP}.worker_pool_queue_bytes`]: limits.queueBytes }
  return { ...usage, values: { ...usage.values, ...(row === 'background' ? {} : sized), ...bounded } }
}

test('apim.throttling.counters.max was made too small', () => {
  const { plan } = planGateway([])
  const sample = { live: 10, capacity: 10, full: 3, busy: 0, evicted: 0, rebuilt: 0 }
  const [first, ...more] = hits(usageOf(plan, renderCounterMetrics(sample, new Map())))
  assert.deepEqual([first?.key, first?.proposed, more], ['apim.throttling.counters.max', 20, []])
})

test('a pool that is never near its size is ample, and nothing is proposed', async () => {
  const findings = advise(await usageOfPool('plain', {}, 99, 0))
  assert.deepEqual(findings, [])
  const busy = advise(await usageOfPool('plain', {}, 100, 0))
  assert.deepEqual(
    busy.map(({ verdict, key, proposed }) => [verdict, key, proposed]),
    [['ample', `${HTTP}.worker_pool_size_core`, null]],
  )
})

test('connections that are never near their limit are ample', () => {
  const { plan } = planGateway([], { http: { 'http.max.connection.per.host.port': 40, max_open_connections: 100 } })
  const marks = `sluice_client_connections_accepted_total 500
sluice_backend_connections_opened_total 500
sluice_client_pool_connections_highest{transport="http"} 26
sluice_backend_pool_connections_highest{backend="all"} 90
sluice_backend_pool_connections_highest{backend="a:1"} 10
`
  assert.deepEqual(
    advise(usageOf(plan, marks)).map(({ verdict, key, seen }) => [verdict, key, seen]),
    [['ample', `${HTTP}.http.max.connection.per.host.port`, '10 connections at once at most']],
  )
})

test('workers that share few processors: no size of the pool is proposed', async () => {
  const usage = await usageOfPool('plain', { core: 50, max: 50 }, 90, 0)
  const waited = usage.metrics.replace(/^(sluice_worker_wait_seconds_total\{pool="mediation"\}) .*$/m, '$1 80')
  const [first, ...more] = hits({ ...usage, metrics: waited })
  assert.deepEqual([first?.key, first?.proposed, more], ['processors', null, []])
})

test('a status of a backend is no limit of the gateway', () => {
  const { plan } = planGateway([])
  const usage = usageOf(plan, 'sluice_responses_total{class="4xx",status="414"} 7\n')
  assert.deepEqual(hits(usage), [])
})

test('counts of one are singular', () => {
  const { plan } = planGateway([], { http: { max_open_connections: 1, 'http.max.connection.per.host.port': 1 } })
  const counters = `sluice_client_connections_refused_total{limit="all"} 1
sluice_client_connections_refused_total{limit="descriptors"} 1
sluice_faults_total{side="target",base="101600"} 1
sluice_faults_total{side="source",base="101001"} 1
sluice_faults_total{side="source",base="102511"} 1
sluice_backend_connections_opened_total 1
sluice_responses_total{status="414"} 1
sluice_timeouts_total{kind="connect"} 1
sluice_throttle_counters_full_total 1
sluice_throttle_counters_max 1
sluice_worker_failures_total{reason="memory"} 1
sluice_access_log_lines_dropped_total 1
sluice_analytics_events_total{result="dropped"} 1
`
  const found = advise({ ...usageOf(plan), metrics: counters })
  assert.ok(found.length >= 9, String(found.length))
  for (const { seen, reason } of found) assert.doesNotMatch(`${seen} ${reason}`, /(^| )1 \w+( \w+)?s( |$)/)
})
