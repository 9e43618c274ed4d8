/** `endpointConfig` of exported projects: endpoint groups, endpoint settings, errors and warnings. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type LoadedApis, ApiProjects } from '../../src/apis/api-projects.ts'
import { DEFAULT_ENDPOINT_SETTINGS, LONE_ENDPOINT_SETTINGS } from '../../src/apis/api-definition.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { temporaryHome } from '../config/temporary-home.ts'

/** The first line of `endpointConfig` is line 7 of the file. */
function read(t: TestContext, endpointConfig: string): LoadedApis {
  const head = 'type: api\nversion: v4.0.0\ndata:\n  name: A\n  context: /a\n  version: "1"\n'
  const home = temporaryHome(t, { 'apis/A/api.yaml': `${head}  endpointConfig: ${endpointConfig}\n` })
  return new ApiProjects(home).load()
}

const FAILOVER = `
    endpoint_type: failover
    production_endpoints: {url: "http://a", config: null}
    production_failovers:
      - {url: "http://b", config: null, template_not_supported: false}
      - {url: "http://c"}
    failOver: "True"`

const BALANCED = `
    endpoint_type: load_balance
    algoCombo: org.apache.synapse.endpoints.algorithms.RoundRobin
    algoClassName: org.apache.synapse.endpoints.algorithms.RoundRobin
    sessionManagement: ""
    sessionTimeOut: ""
    failOver: "True"
    production_endpoints:
      - {url: "http://a", config: null}
      - url: http://b`

/** [what, endpointConfig, kind, algorithm, whether it fails over, URLs]. */
const GROUPS: readonly (readonly [string, string, string, string, boolean, string])[] = [
  ['failover, in the order of the file', FAILOVER, 'failover', 'round_robin', true, 'http://a http://b http://c'],
  [
    'failover without further endpoints',
    FAILOVER.replace(/ {4}production_failovers[\s\S]*(?= {4}fail)/, ''),
    'failover',
    'round_robin',
    true,
    'http://a',
  ],
  ['a balanced list', BALANCED, 'load_balance', 'round_robin', true, 'http://a http://b'],
  [
    'a balanced list without failover',
    BALANCED.replace('"True"', '"False"'),
    'load_balance',
    'round_robin',
    false,
    'http://a http://b',
  ],
  [
    'a balanced list that does not mention failover',
    BALANCED.replace(/ *failOver: .*\n/, ''),
    'load_balance',
    'round_robin',
    true,
    'http://a http://b',
  ],
  [
    'the weighted class of the reference platform',
    BALANCED.replace(/algorithms\.RoundRobin/g, 'algorithms.WeightedRoundRobin'),
    ...(['load_balance', 'weighted', true, 'http://a http://b'] as const),
  ],
  [
    'our own key algorithm, which wins',
    BALANCED.replace('algoCombo', 'algorithm: least_pending\n    algoCombo'),
    ...(['load_balance', 'least_pending', true, 'http://a http://b'] as const),
  ],
  [
    'a class beside "other"',
    BALANCED.replace(/algoCombo: .*/, 'algoCombo: other'),
    ...(['load_balance', 'round_robin', true, 'http://a http://b'] as const),
  ],
]

for (const [what, yaml, kind, algorithm, failsOver, urls] of GROUPS) {
  test(`endpoint group: ${what}`, t => {
    const { apis, errors, warnings } = read(t, yaml)
    assert.deepEqual([...errors, ...warnings], [])
    const { endpoints } = apis[0]!
    assert.deepEqual([endpoints.kind, endpoints.algorithm, endpoints.failsOver], [kind, algorithm, failsOver])
    assert.equal(endpoints.endpoints.map(({ url }) => url).join(' '), urls)
    for (const { settings } of endpoints.endpoints) assert.deepEqual(settings, DEFAULT_ENDPOINT_SETTINGS)
  })
}

const single = (config: string): string =>
  `\n    endpoint_type: http\n    production_endpoints:\n      url: http://a\n      config: ${config}`

/** [config of an endpoint, the settings that differ from the default]. */
const SETTINGS: readonly (readonly [config: string, changes: object])[] = [
  ['null', {}],
  ['[]', {}],
  ['{}', {}],
  ['{retryErroCode: [], suspendErrorCode: [], retryTimeOut: "", retryDelay: "", suspendDuration: "", factor: ""}', {}],
  ['{suspendDuration: -1, suspendMaxDuration: "-1", retryDelay: -1}', {}],
  ['{retryTimeOut: "3", retryDelay: 5000}', { retriesBeforeSuspension: 3, retryDelayMs: 5000 }],
  ['{suspendDuration: "2000", factor: "1.5"}', { suspensionMs: 2000, suspensionFactor: 1.5 }],
  ['{suspendDuration: 0}', { suspensionMs: 0 }],
  ['{suspendMaxDuration: "60000", factor: 2}', { suspensionMaxMs: 60_000, suspensionFactor: 2 }],
  ['{actionSelect: fault, actionDuration: "30000"}', { responseTimeoutMs: 30_000 }],
  ['{retryErroCode: ["101504", "101505"]}', { timeoutCodes: [101504, 101505] }],
  ['{suspendErrorCode: [101503, "101508"]}', { suspendCodes: [101503, 101508] }],
  ['{suspendErrorCode: "101503, 101508"}', { suspendCodes: [101503, 101508] }],
  ['{retryErroCode: ["-1"], suspendErrorCode: "-1"}', { timeoutCodes: [-1], suspendCodes: [-1] }],
  ['{proxy_protocol: v2}', { sendsProxyHeader: true }],
  ['{proxy_protocol: none}', {}],
  [
    '{health_check: {path: /health}}',
    { healthCheck: { path: '/health', intervalMs: 10_000, timeoutMs: 2000, unhealthyAfter: 3, healthyAfter: 2 } },
  ],
  [
    '{health_check: {interval: 500, timeout: 100, unhealthy_after: 1, healthy_after: 5}}',
    { healthCheck: { path: '/', intervalMs: 500, timeoutMs: 100, unhealthyAfter: 1, healthyAfter: 5 } },
  ],
]

for (const [config, changes] of SETTINGS) {
  test(`endpoint settings of config: ${config}`, t => {
    const { apis, errors, warnings } = read(t, single(config))
    assert.deepEqual([...errors, ...warnings], [])
    // Without a length of its own, the suspension of the only endpoint is short.
    const isShort = !/(?:suspendDuration|suspendMaxDuration|factor): "?[1-9\d]/.test(config)
    const defaults = isShort ? LONE_ENDPOINT_SETTINGS : DEFAULT_ENDPOINT_SETTINGS
    assert.deepEqual(apis[0]!.endpoints.endpoints[0]!.settings, { ...defaults, ...changes })
  })
}

/** [config of the first endpoint of a group, whether each of its failures counts by itself]. */
const GROUP_CONFIGS: readonly (readonly [config: string, eachFailureCounts: boolean])[] = [
  ['null', false],
  ['{retryErroCode: [], suspendErrorCode: [], retryTimeOut: "", suspendDuration: -1, factor: ""}', false],
  ['{actionDuration: 5000, actionSelect: fault}', false],
  ['{suspendDuration: 5000}', true],
  ['{factor: 2}', true],
  ['{suspendMaxDuration: 60000}', true],
  ['{retryTimeOut: 0}', true],
  ['{retryDelay: 10}', true],
  ['{retryErroCode: [101504]}', true],
  ['{suspendErrorCode: -1}', true],
]

for (const [config, eachFailureCounts] of GROUP_CONFIGS) {
  const how = eachFailureCounts ? 'keeps the documented defaults of the others' : 'configures no suspension'
  test(`an endpoint of a group with config: ${config} ${how}`, t => {
    const { apis, errors, warnings } = read(t, BALANCED.replace('config: null', `config: ${config}`))
    assert.deepEqual([...errors, ...warnings], [])
    const [first, second] = apis[0]!.endpoints.endpoints.map(({ settings }) => settings)
    assert.equal(first!.eachFailureCounts, eachFailureCounts)
    assert.deepEqual(second, DEFAULT_ENDPOINT_SETTINGS)
  })
}

test('the only server of a document is a lone endpoint', t => {
  const home = temporaryHome(t, {
    'apis/a.yaml': `openapi: 3.0.0
info: {title: A, version: "1"}
servers: [{url: "http://a/a"}]
paths: {/x: {get: {responses: {default: {description: x}}}}}
`,
  })
  const { apis } = new ApiProjects(home).load()
  assert.deepEqual(apis[0]!.endpoints.endpoints[0]!.settings, LONE_ENDPOINT_SETTINGS)
})

test('each balanced endpoint has its weight', t => {
  const yaml = BALANCED.replace('url: http://b', 'url: http://b\n        weight: "3"')
  const { apis, warnings } = read(t, yaml.replace('algoCombo', 'algorithm: weighted\n    algoCombo'))
  assert.deepEqual(warnings, [])
  assert.deepEqual(
    apis[0]!.endpoints.endpoints.map(({ settings }) => settings.weight),
    [1, 3],
  )
})

const P = 'data.endpointConfig.production_endpoints'
const C = `apis/A/api.yaml:11: ${P}.config`

/** [endpointConfig, the error]. */
const INVALID: readonly (readonly [yaml: string, error: string])[] = [
  [single('{retryTimeOut: many}'), `${C}.retryTimeOut = "many": expected 0 to 255 (leave it empty for the default, 0)`],
  [single('{retryTimeOut: 256}'), `${C}.retryTimeOut = "256": expected 0 to 255 (leave it empty for the default, 0)`],
  [
    single('{suspendDuration: 1.5}'),
    `${C}.suspendDuration = "1.5": expected 0 to 31536000000 (leave it empty for the default, 30000)`,
  ],
  [
    single('{suspendMaxDuration: -2}'),
    `${C}.suspendMaxDuration = "-2": expected a whole number of at least 0 (leave it empty for the default)`,
  ],
  [
    single('{factor: 0.5}'),
    `${C}.factor = "0.5": expected a number of at least 1 (write 1 for suspensions of equal length)`,
  ],
  [
    single('{suspendErrorCode: ["101503", refused]}'),
    `${C}.suspendErrorCode[1] = "refused": expected error codes of six digits (for example 101504, or -1 for none)`,
  ],
  [
    single('{actionSelect: ignore}'),
    `${C}.actionSelect = "ignore": expected fault (or discard, for which the client gets a fault too)`,
  ],
  [
    single('{proxy_protocol: v1}'),
    `${C}.proxy_protocol = "v1": expected v2 or none (write v2: the gateway sends no other version)`,
  ],
  [
    single('{health_check: {path: health}}'),
    `${C}.health_check.path = "health": must start with "/" and hold no space (for example /health)`,
  ],
  [
    single('{health_check: {interval: 1}}'),
    `${C}.health_check.interval = "1": expected 100 to 31536000000 (leave it empty for the default, 10000)`,
  ],
  [
    BALANCED.replace(/algorithms\.RoundRobin/g, 'algorithms.Mine'),
    'apis/A/api.yaml:10: data.endpointConfig.algoClassName = "org.apache.synapse.endpoints.algorithms.Mine": there is no such algorithm (write algorithm: round_robin, weighted or least_pending)',
  ],
  [
    BALANCED.replace('sessionManagement: ""', 'sessionManagement: soap'),
    'apis/A/api.yaml:11: data.endpointConfig.sessionManagement = "soap": sticky sessions are not supported (write none if the backends share their sessions)',
  ],
  [
    BALANCED.replace(/production_endpoints:[\s\S]*/, 'production_endpoints: []'),
    `apis/A/api.yaml:14: ${P}: expected at least one endpoint (add one with its url)`,
  ],
  [
    BALANCED.replace('url: http://b', 'url: http://b#x'),
    `apis/A/api.yaml:16: ${P}[1].url = "http://b#x": must not hold a fragment (remove the "#" and what follows)`,
  ],
  [BALANCED.replace('url: http://b', 'uri: http://b'), `apis/A/api.yaml:16: ${P}[1].url: is missing (add it)`],
  [
    BALANCED.replace('"True"', 'maybe'),
    'apis/A/api.yaml:13: data.endpointConfig.failOver = "maybe": expected true or false (leave it out for true)',
  ],
  [
    BALANCED + '\n      - url: http://b'.repeat(31),
    `apis/A/api.yaml:14: ${P}: expected at most 32 endpoints (put a load balancer in front of them)`,
  ],
  [
    FAILOVER.replace(/production_failovers:[\s\S]*\n(?= {4}fail)/, 'production_failovers: http://b\n'),
    'apis/A/api.yaml:10: data.endpointConfig.production_failovers: expected a list (begin each endpoint with "-")',
  ],
]

for (const [yaml, error] of INVALID) {
  test(`invalid: ${error}`, t => {
    const { apis, errors } = read(t, yaml)
    assert.deepEqual(apis, [])
    assert.deepEqual(
      errors.map(it => formatDiagnostic(it).replace(/^.*?(?=apis\/A)/, '')),
      [error],
    )
  })
}

/** [endpointConfig, the warning]: the API is deployed. */
const WARNED: readonly (readonly [yaml: string, warning: string])[] = [
  [
    single('{actionSelect: discard}'),
    `${C}.actionSelect = "discard": the client gets a fault all the same (write fault)`,
  ],
  [
    BALANCED.replace('url: http://b', 'url: http://b\n        weight: 2'),
    `apis/A/api.yaml:17: ${P}[1].weight = 2: has no effect with this algorithm (write algorithm: weighted)`,
  ],
]

for (const [yaml, warning] of WARNED) {
  test(`warning: ${warning}`, t => {
    const { apis, errors, warnings } = read(t, yaml)
    assert.deepEqual([apis.length, errors], [1, []])
    assert.deepEqual(
      warnings.map(it => formatDiagnostic(it).replace(/^.*?(?=apis\/A)/, '')),
      [warning],
    )
  })
}

const FILLED = '{url: "http://a"}'

for (const [kind, production, sandbox, urls, error] of [
  ['http', FILLED, '{url: ""}', ['http://a', ''], ''],
  ['http', FILLED, '{url: " ", config: null}', ['http://a', ''], ''],
  ['http', '{url: ""}', FILLED, ['', 'http://a'], ''],
  ['load_balance', `[${FILLED}]`, '[]', ['http://a', ''], ''],
  ['load_balance', '[]', `[${FILLED}]`, ['', 'http://a'], ''],
  ['http', '{url: ""}', '{url: ""}', [], 'production_endpoints.url = ""'],
  ['load_balance', '[]', '[]', [], 'production_endpoints: expected at least one endpoint'],
] as const) {
  test(`${kind}, production ${production}, sandbox ${sandbox}: empty endpoints count as absent`, t => {
    const { apis, errors } = read(
      t,
      `{endpoint_type: ${kind}, production_endpoints: ${production}, sandbox_endpoints: ${sandbox}}`,
    )
    const found = apis.flatMap(api => [api.endpoints, api.sandbox].map(it => it.endpoints.map(({ url }) => url).join()))
    assert.deepEqual(found, urls)
    assert.equal(errors.length, error === '' ? 0 : 1)
    assert.ok(errors.every(it => formatDiagnostic(it).includes(error)))
  })
}

const atUrl = (url: string, sandbox = 'http://s') =>
  `{endpoint_type: http, production_endpoints: {url: "${url}"}, sandbox_endpoints: {url: "${sandbox}"}}`
const id = { name: 'uri.var.id', keeps: false }

/** [URL, URL of the endpoint, path behind it]. */
const TEMPLATES: readonly (readonly [url: string, base: string, template: readonly unknown[] | undefined])[] = [
  ['http://h/{uri.var.id}/b', 'http://h/', ['/', id, '/b']],
  ['http://h/a/b/v-{uri.var.id}', 'http://h/a/b/', ['/v-', id]],
  ['https://h:1/{uri.var.id}{uri.var.x.y}/', 'https://h:1/', ['/', id, { name: 'uri.var.x.y', keeps: false }, '/']],
  ['http://h/a', 'http://h/a', undefined],
]
for (const [url, base, template] of TEMPLATES) {
  test(`D906: the URL ${url} of an endpoint has its variables apart`, t => {
    const { apis, errors } = read(t, atUrl(url))
    assert.deepEqual(errors.map(formatDiagnostic), [])
    const [{ endpoints, sandbox }] = apis as [(typeof apis)[0]]
    assert.deepEqual([endpoints.endpoints[0]!.url, endpoints.template, sandbox.template], [base, template, undefined])
  })
}

/** [endpointConfig, part of the error]. */
const WRONG_TEMPLATES: readonly (readonly [string, RegExp])[] = [
  [atUrl('http://{uri.var.host}/a'), /has a variable that endpoints of APIs do not take/],
  [atUrl('http://h/{+uri.var.id}'), /has a variable that endpoints of APIs do not take/],
  [atUrl('http://h/{id}'), /its path would be read differently/],
  [atUrl('http://h/{uri.var.id}/../b'), /\/h\/\{uri\.var\.id\}\/\.\.\/b.* its path would be read differently/],
  [
    '{endpoint_type: load_balance, production_endpoints: [{url: "http://a/{uri.var.id}"}, {url: "http://b/x/{uri.var.id}/c"}]}',
    /has other variables than the first endpoint \(end all URLs of a key type with the same path\)/,
  ],
]
for (const [config, error] of WRONG_TEMPLATES) {
  test(`D906: ${config} is refused`, t => {
    assert.match(read(t, config).errors.map(formatDiagnostic).join('\n'), error)
  })
}
