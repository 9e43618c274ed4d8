/** Plans of APIs across reloads: slots that stay, slots that are reused, and the changes that reactors get. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiPlanner, diffApis, type PlannedApis, OutOfSlots } from '../../src/plan/api-planning.ts'
import { type ApiDefinition, DEFAULT_ENDPOINT_SETTINGS } from '../../src/apis/api-definition.ts'
import type { EndpointAddress, SequenceEndpoint } from '../../src/mediation/endpoint-plan.ts'
import type { ForwardProxies } from '../../src/plan/forward-proxies.ts'
import { monotonicMs } from '../../src/runtime/monotonic-clock.ts'
import { SharedGauge } from '../../src/runtime/shared-gauge.ts'
import { EndpointTable } from '../../src/proxy/target/endpoint-table.ts'
import { API_ROWS_END, ApiMetrics, FIRST_API_ROW, OTHER_APIS_ROW, readApiRow } from '../../src/observe/api-metrics.ts'
import { PLAIN_DEFINITION } from '../harness/api-plan.ts'
import { OPEN_CORS } from '../harness/filter-chain.ts'

const DIRECT: ForwardProxies = { proxyFor: () => null, errors: [], warnings: [] }

function api(context: string, ...urls: readonly string[]): ApiDefinition {
  const endpoints = urls.map(url => ({ url, settings: DEFAULT_ENDPOINT_SETTINGS }))
  return {
    ...PLAIN_DEFINITION,
    ...{ name: context, context: `/${context}`, version: '1', isDefaultVersion: false },
    endpoints: { kind: 'load_balance', algorithm: 'round_robin', failsOver: true, endpoints },
  }
}

const NO_EXCHANGE = {
  ...{ method: 'GET', status: 200, requestBodyBytes: 0, responseBodyBytes: 0, errorBase: 0, queueMs: 0 },
  ...{ startedMs: 1, sentMs: 0, requestSentMs: 0, firstByteMs: 0, doneMs: 2, mediationMs: 0 },
}
type Input = Parameters<ApiPlanner['plan']>[0]

function planned(planner: ApiPlanner, definitions: Input['definitions'], more: Partial<Input> = {}): PlannedApis {
  return planner.plan({ definitions, proxies: DIRECT, cors: OPEN_CORS, allowedScopes: [], ...more })
}

/** Slots of endpoints and of their routes, in order. Routes begin at slot 3, behind clients and all backends. */
function slotsOf({ apis }: PlannedApis): readonly (readonly [endpoint: number, route: number])[] {
  return apis.flatMap(({ endpoints }) => endpoints.endpoints.map(({ slot, route }) => [slot, route.slot] as const))
}

test('endpoints keep their slots by API, URL and rank among equal URLs, routes by scheme, host and port', () => {
  const planner = new ApiPlanner(1, 3)
  const first = planned(planner, [api('a', 'http://h/1', 'http://h/2'), api('b', 'https://h/1')])
  assert.deepEqual(slotsOf(first), [
    [0, 3],
    [1, 3],
    [2, 4],
  ])
  const definitions = [api('b', 'https://h/1'), api('a', 'http://h:80/2', 'http://h/2', 'http://h/2', 'http://h/1')]
  const second = planned(planner, definitions, { before: first })
  assert.deepEqual(slotsOf(second), [
    [2, 4],
    [3, 3],
    [1, 3],
    [4, 3],
    [0, 3],
  ])
})

test('an unchanged definition keeps its plan, unless its proxy changes', () => {
  const planner = new ApiPlanner(1, 1)
  const definition = api('a', 'http://h')
  const first = planned(planner, [definition])
  assert.equal(planned(planner, [definition], { before: first }).apis[0], first.apis[0])
  const proxy = { host: 'p', port: 1, authorization: '' }
  const second = planned(planner, [definition], { proxies: { ...DIRECT, proxyFor: () => proxy }, before: first })
  assert.equal(second.apis[0]!.endpoints.endpoints[0]!.route.proxy, proxy)
  assert.deepEqual(slotsOf(second), slotsOf(first))
})

test('a slot is reused only without activity, and starts with a fresh state', () => {
  const planner = new ApiPlanner(1, 1, 1)
  const states = new EndpointTable(planner.endpoints, 0, monotonicMs)
  const connections = new SharedGauge(planner.gauge, 1, 0)
  const first = planned(planner, [api('a', 'http://h')])
  states.failed(0, DEFAULT_ENDPOINT_SETTINGS, false, 101_503, 0)
  const exchange = { pendingSlot: -1 }
  states.requestStarted(0, exchange)
  connections.acquire(3, -1)
  const second = planned(planner, [api('b', 'http://i')], { before: first })
  planner.release(second)
  assert.deepEqual(slotsOf(second), [[1, 4]])
  const third = [api('b', 'http://i'), api('c', 'http://j')]
  assert.throws(() => planned(planner, third, { before: second }), OutOfSlots)
  planner.release(second)
  states.requestEnded(exchange)
  connections.release(3)
  assert.deepEqual(slotsOf(planned(planner, third, { before: second })), [
    [1, 4],
    [0, 3],
  ])
  const { state, failures, suspensions, lastBase } = states.read(0)
  assert.deepEqual([state, failures, suspensions, lastBase], ['ACTIVE', 0, 0, 0])
})

test('slots allocated for a refused reload are freed', () => {
  const planner = new ApiPlanner(1, 1, 1)
  const first = planned(planner, [api('a', 'http://h')])
  for (let i = 0; i < 5; i++) {
    planned(planner, [api('a', 'http://h'), api(`b${i}`, 'http://h')], { before: first })
    planner.release(first)
  }
})

test('reactors get new, changed and removed APIs, and nothing else', () => {
  const planner = new ApiPlanner(1, 3)
  const [a, b, c] = [api('a', 'http://h'), api('b', 'http://h'), api('c', 'http://h')]
  const first = planned(planner, [a, b, c])
  const second = planned(planner, [a, api('b', 'http://h'), api('c', 'http://h/x'), api('d', 'http://h')], {
    before: first,
  })
  const { removed, deployed } = diffApis(first.apis, second.apis)
  assert.deepEqual([removed, deployed.map(({ name }) => name)], [[], ['c', 'd']])
  assert.deepEqual(diffApis(second.apis, first.apis).removed, ['/d/1'])
})

/** [CORS of the API, result with OPEN_CORS as `[apim.cors]`, result with `[apim.cors]` disabled]. */
const CORS: readonly (readonly [own: ApiDefinition['cors'], enabled: unknown, disabled: unknown])[] = [
  [null, OPEN_CORS, null],
  [{ enabled: false, origins: ['https://a'] }, null, null],
  [{ enabled: true }, OPEN_CORS, { ...OPEN_CORS }],
  [
    { enabled: true, origins: ['https://a'] },
    { ...OPEN_CORS, origins: ['https://a'] },
    { ...OPEN_CORS, origins: ['https://a'] },
  ],
]

test('CORS settings of an API win, and those that it omits come from [apim.cors]', () => {
  const planner = new ApiPlanner(1, 10)
  for (const [cors, enabled, disabled] of CORS) {
    const definitions = [{ ...api('a', 'http://h'), cors }]
    assert.deepEqual(planned(planner, definitions).apis[0]!.cors, enabled)
    assert.deepEqual(planned(planner, definitions, { cors: { ...OPEN_CORS, enabled: false } }).apis[0]!.cors, disabled)
  }
})

test('APIs with equal CORS settings share one object, and get another one when [apim.cors] changes', () => {
  const planner = new ApiPlanner(1, 10)
  const own = { enabled: true, origins: ['https://a'] }
  const definitions = [
    api('a', 'http://h'),
    api('b', 'http://h'),
    { ...api('c', 'http://h'), cors: own },
    { ...api('d', 'http://h'), cors: { ...own } },
  ]
  const first = planned(planner, definitions)
  const [a, b, c, d] = first.apis.map(({ cors }) => cors)
  assert.equal(a, b)
  assert.equal(c, d)
  assert.equal(a, first.cors)
  const same = planned(planner, definitions, { cors: { ...OPEN_CORS }, before: first })
  assert.deepEqual(diffApis(first.apis, same.apis).deployed, [])
  assert.equal(same.apis[0], first.apis[0])
  const second = planned(planner, definitions, { cors: { ...OPEN_CORS, origins: ['https://b'] }, before: first })
  assert.deepEqual(
    diffApis(first.apis, second.apis).deployed.map(({ name }) => name),
    ['a', 'b'],
  )
  assert.deepEqual(slotsOf(second), slotsOf(first))
})

test('a resource with an allowed scope is planned without scopes, and planned again when allowed scopes change', () => {
  const resource = { template: '/x', verb: 'GET', authType: 'None', tier: 'Unlimited' } as const
  const scoped = [
    { ...resource, scopes: ['device_1', 'other'] },
    { ...resource, verb: 'PUT', scopes: ['other'] },
    { ...resource, verb: 'POST', scopes: [] },
  ]
  const definitions = [{ ...api('a', 'http://h'), resources: scoped }, api('b', 'http://h')]
  const scopesOf = ({ apis }: PlannedApis) => apis[0]!.resources.map(({ scopes }) => scopes)
  const planner = new ApiPlanner(1, 10)
  const first = planned(planner, definitions, { allowedScopes: ['^device_.*', 'openid'] })
  assert.deepEqual(scopesOf(first), [[], ['other'], []])
  assert.equal(
    planned(planner, definitions, { allowedScopes: ['^device_.*', 'openid'], before: first }).apis[0],
    first.apis[0],
  )
  const second = planned(planner, definitions, { allowedScopes: ['(other|openid)'], before: first })
  assert.deepEqual(scopesOf(second), [[], [], []])
  assert.deepEqual(
    diffApis(first.apis, second.apis).deployed.map(({ name }) => name),
    ['a'],
  )
  assert.deepEqual(scopesOf(planned(planner, definitions, { before: second })), [['device_1', 'other'], ['other'], []])
})

const NO_NAMES = { request: [], response: [], fault: [] }

/** An API with one sequence that holds these endpoints. */
function callingApi(...endpoints: readonly SequenceEndpoint[]): ApiDefinition {
  const plan = { name: 's', label: 's.xml', steps: [], onError: '', requestFields: [], calls: [], isDefault: false }
  const sequences = [{ ...plan, endpoints }]
  const mediation = { sequences, extensions: NO_NAMES, policies: NO_NAMES, byOperation: {} }
  return { ...api('a', 'http://h'), mediation }
}

function addressed(name: string, ...urls: readonly string[]): SequenceEndpoint {
  const endpoints = urls.map(url => ({ url, settings: DEFAULT_ENDPOINT_SETTINGS }))
  const kind = urls.length === 1 ? 'single' : 'failover'
  const group = { kind, algorithm: 'round_robin', failsOver: true, endpoints } as const
  return { name, form: { method: '', format: 'kept', appendsPath: true, address: { kind: 'urls', endpoints: group } } }
}

const slotsOfSequences = ({ ofSequences }: PlannedApis) =>
  Object.entries(ofSequences.plans).map(([name, { address }]) => [
    name,
    address.kind === 'urls'
      ? address.endpoints.endpoints.map(({ slot, route }) => [slot, route.slot])
      : address.kind === 'dynamic'
        ? [address.slot, address.routeSlot]
        : [address.endpoint.slot, address.endpoint.route.slot],
  ])

test('endpoints of sequences keep their slots over reloads, and share routes with those of APIs', () => {
  const planner = new ApiPlanner(1, 4)
  const one = addressed('one', 'http://h/1')
  const two = addressed('two', 'http://i', 'http://j')
  const first = planned(planner, [callingApi(one, two)])
  assert.deepEqual(slotsOfSequences(first), [
    ['one', [[1, 3]]],
    [
      'two',
      [
        [2, 4],
        [3, 5],
      ],
    ],
  ])
  const second = planned(planner, [callingApi(two)], { before: first })
  planner.release(second)
  assert.deepEqual(slotsOfSequences(second), slotsOfSequences(first).slice(1))
})

test('addresses that messages choose share one slot of each table', () => {
  const settings = DEFAULT_ENDPOINT_SETTINGS
  const dynamic = (name: string, address: EndpointAddress): SequenceEndpoint => ({
    name,
    form: { method: '', format: 'kept', appendsPath: true, address },
  })
  const made = planned(new ApiPlanner(1, 4), [
    callingApi(
      dynamic('to', { kind: 'message', settings }),
      dynamic('any', { kind: 'template', origin: '', pieces: [{ name: 'uri.var.url', keeps: true }], settings }),
      dynamic('one', { kind: 'template', origin: 'https://h', pieces: ['/x'], settings }),
    ),
  ])
  assert.deepEqual(slotsOfSequences(made), [
    ['to', [1, 4]],
    ['any', [1, 4]],
    ['one', [2, 5]],
  ])
  assert.equal(made.usesTls, true)
})

test('an API keeps its row of metrics over reloads, a freed row is cleared, further APIs share one', () => {
  const planner = new ApiPlanner(1, 10)
  const first = planned(planner, [api('a', 'http://h'), api('b', 'http://h')])
  const rows = ({ apis }: PlannedApis) => apis.map(({ metricsRow }) => metricsRow)
  assert.deepEqual(rows(first), [FIRST_API_ROW, FIRST_API_ROW + 1])
  const exchange = { ...NO_EXCHANGE, api: { metricsRow: FIRST_API_ROW } }
  new ApiMetrics(planner.metrics, 0).count(exchange)
  const second = planned(planner, [api('b', 'http://other'), api('c', 'http://h')], { before: first })
  assert.deepEqual(rows(second), [FIRST_API_ROW + 1, FIRST_API_ROW + 2])
  planner.release(second)
  const names = Array.from({ length: API_ROWS_END - FIRST_API_ROW }, (_, index) => `n${index}`)
  const many = planned(planner, [api('c', 'http://h'), ...names.map(name => api(name, 'http://h'))], { before: second })
  const used = rows(many)
  assert.equal(new Set(used).size, API_ROWS_END - FIRST_API_ROW, 'every named row but that of b, and the shared one')
  assert.ok(used.includes(OTHER_APIS_ROW) && used.includes(FIRST_API_ROW))
  assert.deepEqual(readApiRow(planner.metrics, FIRST_API_ROW), [])
})
