/** Metrics of the parts beside traffic: caches, the key manager, key sets of issuers, worker and script threads. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { spawnSync } from 'node:child_process'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { json, MisbehavingServer } from '../control/remote/misbehaving-server.ts'
import { sendRequest } from '../harness/filter-chain.ts'
import { basicOf, KeyManagerClient } from '../harness/key-manager-client.ts'
import { openProject } from '../harness/open-project.ts'
import { backend, home, leave, start } from '../harness/operator.ts'
import { connectPeer, GUARD_MS } from '../harness/peers.ts'
import { ask, freePort } from '../harness/program.ts'
import { put } from '../harness/reloading.ts'

const SEQUENCE = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="WSO2AM--Ext--In">
  <script language="js">mc.setProperty('a', 'b')</script>
  <cache collector="false" timeout="60"/>
</sequence>`
const SEQUENCE_OUT = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="WSO2AM--Ext--Out">
  <cache collector="true"/>
</sequence>`
const CACHES = [
  ...[
    'token',
    'refused_token',
    'password',
    'backend_jwt',
    'user_claims',
    'anonymous_caller',
    'head',
    'resource',
    'dns',
  ],
  ...['tls_session', 'dynamic_endpoint', 'kept_response', 'introspection', 'verified_secret', 'assertion'],
]
/** Their hits would cost every request, or they have none. */
const WITHOUT_LOOKUPS = ['refused_token', 'anonymous_caller', 'head', 'assertion']
const WITH_BYTES = ['token', 'refused_token', 'backend_jwt', 'user_claims', 'head', 'kept_response', 'introspection']

const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })
const issuer = await MisbehavingServer.listen()
issuer.answer = json({ keys: [{ ...keys.publicKey.export({ format: 'jwk' }), kid: 'a' }] })
const at = home()
const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://localhost:${backend.port}` } }
put(at, 'apis/Test/api.yaml', openProject({ name: 'Test', context: '/t', endpointConfig }))
put(
  at,
  'apis/Closed/api.yaml',
  openProject({ name: 'Closed', context: '/c', endpointConfig, securityScheme: ['oauth2'] }),
)
put(at, 'synapse-configs/default/sequences/WSO2AM--Ext--In.xml', SEQUENCE)
put(at, 'synapse-configs/default/sequences/WSO2AM--Ext--Out.xml', SEQUENCE_OUT)
const issuers = [
  ['good', issuer.origin],
  ['down', 'http://127.0.0.1:1'],
].map(([name, url]) => `[[apim.jwt.issuer]]\nname = "${name}"\njwks.url = "${url}/jwks"\n`)
const OPEN = { authType: 'None', throttlingPolicy: 'Unlimited' }
const NOTES = openProject({
  ...{ name: 'Notes', context: '/n/{tenant}', isUnversioned: true },
  endpointConfig: { endpoint_type: 'mounted', module: 'sluice:sample' },
  operations: [{ ...OPEN, target: '/notes/{id}', verb: 'GET' }],
})
put(at, 'apis/Notes/api.yaml', NOTES)
put(at, 'handlers/wait.mjs', 'export const request = () => true')
/** Receivers that nobody is. */
const GONE = `[apim.analytics]
enable = true
receiver_username = "a"
receiver_password = "b"
[[apim.analytics.url_group]]
analytics_url = ["tcp://127.0.0.1:1"]
analytics_auth_url = ["tcp://127.0.0.1:1"]
[tracing]
otlp.endpoint = "http://127.0.0.1:1/v1/traces"
sampling_ratio = 1.0
[access_log]
target = "syslog"
syslog.url = "tcp://127.0.0.1:1"
`
const handler = '[[synapse_handlers]]\nname = "wait"\nclass = "handlers/wait.mjs"\n'
put(at, 'deployment.toml', `enabled_global_handlers = ["wait"]\n${issuers.join('')}\n${handler}${GONE}`)
const port = await freePort()
const gateway = await start(at, [
  'management.enable=true',
  `management.port=${port}`,
  'apim.cache.km_token.enable=true',
  'apim.cache.gateway_token.enable=false',
  'mediation.synapse.script_mediator_pool_size=2',
])
after(async () => {
  issuer.close()
  await leave()
})

async function metrics(): Promise<(name: string, labels?: string) => number | undefined> {
  const text = await ask(gateway.healthPort, 'GET', '/metrics')
  const samples = new Map(
    Array.from(text.matchAll(/^sluice_(\S+) (\S+)$/gm), ([, key, value]) => [key!, Number(value)]),
  )
  return (name, labels = '') => samples.get(labels === '' ? name : `${name}{${labels}}`)
}

/** Reads metrics until they say so; the figures of caches and threads are those of the last second. */
async function untilMetrics(holds: (read: Awaited<ReturnType<typeof metrics>>) => boolean): Promise<void> {
  const until = Date.now() + GUARD_MS
  while (!holds(await metrics())) {
    assert.ok(Date.now() < until, 'the metrics never said so')
    await sleep(50)
  }
}

async function statusOf(path: string, fields = ''): Promise<number> {
  const client = await connectPeer(gateway.port)
  const { status } = await sendRequest(client, `GET ${path}`, fields)
  client.destroy()
  return status
}

const client = new KeyManagerClient(at, port)
const REFUSED = /40[01]/

test('the key manager counts tokens by grant and result, introspections, and times', async () => {
  const app = await client.register('OPAQUE')
  const token = await client.tokenOf(app)
  await client.tokenOf(app)
  const form = (fields: string, authorization = app.authorization) =>
    client.post('/oauth2/token', authorization, fields)
  await assert.rejects(form('grant_type=client_credentials', basicOf('nobody', 'x')), REFUSED)
  await assert.rejects(form('grant_type=password&username=admin&password=wrong'), REFUSED)
  await assert.rejects(form('grant_type=unheard_of'), REFUSED)
  const introspect = (of: string, authorization = app.authorization) =>
    client.post('/oauth2/introspect', authorization, `token=${of}`)
  await introspect(token)
  await introspect(token)
  await introspect('no-such-token')
  await assert.rejects(introspect(token, basicOf('nobody', 'x')), REFUSED)
  const read = await metrics()
  const tokens = (grant: string, result: string) =>
    read('key_manager_tokens_total', `grant="${grant}",result="${result}"`)
  assert.deepEqual([tokens('client_credentials', 'issued'), tokens('client_credentials', 'refused')], [2, 1])
  assert.deepEqual([tokens('password', 'issued'), tokens('password', 'refused')], [0, 1])
  assert.deepEqual([tokens('other', 'refused'), tokens('refresh_token', 'failed')], [1, 0])
  const introspections = ['active', 'inactive', 'refused', 'failed'].map(result =>
    read('key_manager_introspections_total', `result="${result}"`),
  )
  assert.deepEqual(introspections, [2, 1, 1, 0])
  assert.equal(read('key_manager_request_duration_seconds_count', 'endpoint="token"'), 5)
  assert.equal(read('key_manager_request_duration_seconds_count', 'endpoint="introspect"'), 4)
  assert.ok(read('key_manager_request_duration_seconds_sum', 'endpoint="token"')! > 0)
  assert.equal(read('cache_lookups_total', 'cache="introspection",result="hit"'), 1)
})

test('fetches of the key sets of issuers are counted by result, with their times', async () => {
  await untilMetrics(read => read('key_set_fetches_total', 'result="failed"')! > 0)
  const read = await metrics()
  const [fetched, failed] = ['fetched', 'failed'].map(result => read('key_set_fetches_total', `result="${result}"`))
  assert.equal(fetched, 1)
  assert.equal(read('key_set_fetch_duration_seconds_count'), fetched! + failed!)
})

test('every cache has entries, evictions, and lookups or bytes where it counts them', async () => {
  assert.equal(await statusOf('/t/1.0.0/x'), 200)
  assert.equal(await statusOf('/t/1.0.0/x'), 200)
  assert.equal(await statusOf('/c/1.0.0/x', 'Authorization: Bearer no-token\r\n'), 401)
  await untilMetrics(read => read('cache_lookups_total', 'cache="kept_response",result="hit"')! > 0)
  const read = await metrics()
  for (const cache of CACHES) {
    const label = `cache="${cache}"`
    assert.ok(read('cache_entries', label)! >= 0, cache)
    if (cache !== 'assertion') assert.equal(read('cache_evictions_total', label), 0, cache)
    assert.equal(read('cache_size_bytes', label) !== undefined, WITH_BYTES.includes(cache), cache)
    const lookups = ['hit', 'miss'].map(result => read('cache_lookups_total', `${label},result="${result}"`))
    assert.equal(lookups.includes(undefined), WITHOUT_LOOKUPS.includes(cache), cache)
  }
  assert.equal(read('cache_lookups_total', 'cache="dns",result="miss"'), 1)
  const kept = ['hit', 'miss'].map(result => read('cache_lookups_total', `cache="kept_response",result="${result}"`))
  assert.deepEqual([...kept, read('cache_entries', 'cache="kept_response"')], [1, 1, 1])
  assert.ok(read('cache_lookups_total', 'cache="token",result="miss"')! >= 1)
  assert.ok(read('cache_entries', 'cache="verified_secret"')! >= 1)
})

test('memory of worker and script threads is there while they live, and asks no thread', async () => {
  const of = (read: Awaited<ReturnType<typeof metrics>>, kind: string) =>
    Array.from({ length: 64 }, (_, row) => read('thread_heap_used_bytes', `thread="reactor-0/${kind}-${row}"`)).filter(
      bytes => bytes !== undefined,
    )
  await untilMetrics(read => of(read, 'script').length > 0)
  const read = await metrics()
  const worker = Array.from({ length: 64 }, (_, row) => `thread="reactor-0/mediation-${row}"`).find(
    thread => read('event_loop_delay_seconds_count', thread) !== undefined,
  )
  assert.ok(worker !== undefined && read('event_loop_delay_seconds_sum', worker)! < 10)
  for (const kind of ['mediation', 'script']) {
    for (const bytes of of(read, kind)) assert.ok(bytes > 1e6, `${kind}: ${bytes}`)
  }
  assert.ok(of(read, 'mediation').length >= 1)
  assert.equal(read('worker_threads'), of(read, 'mediation').length)
})

test('the pools of scripts, handlers and mounted APIs have size, use, high-water mark and waits', async () => {
  assert.equal(await statusOf('/n/one/notes/1'), 404)
  const read = await metrics()
  for (const pool of ['script', 'handler'].map(name => `pool="${name}"`)) {
    assert.ok(read('thread_pool_limit', pool)! >= 1, pool)
    assert.ok(read('thread_pool_highest', pool)! >= 1, pool)
    assert.ok(read('thread_pool_waits_total', pool)! >= 1, pool)
    assert.ok(read('thread_pool_wait_seconds_total', pool)! > 0, pool)
    assert.equal(read('thread_pool_failures_total', `${pool},reason="late"`), 0, pool)
  }
  assert.ok(read('mounted_database_connections_limit')! >= 1)
  assert.equal(read('mounted_database_connections_highest'), 1)
  assert.equal(read('mounted_database_failures_total'), 0)
  await untilMetrics(now => {
    const used = [now('thread_pool_in_use', 'pool="script"'), now('thread_pool_in_use', 'pool="handler"')]
    return [...used, now('mounted_database_connections_in_use')].every(count => count === 0)
  })
})

test('promtool finds nothing to say about a gateway with all parts, whose receivers are gone', async t => {
  await untilMetrics(read => read('analytics_groups_down') === 1 && read('trace_spans_waiting')! > 0)
  await untilMetrics(read => read('access_log_failing') === 1)
  const text = await ask(gateway.healthPort, 'GET', '/metrics')
  const input = text.slice(text.indexOf('\r\n\r\n') + 4)
  const { error, status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input })
  if (error !== undefined) return t.skip('promtool is not installed (package prometheus of Debian)')
  assert.deepEqual([status, String(stdout), String(stderr)], [0, '', ''])
})
