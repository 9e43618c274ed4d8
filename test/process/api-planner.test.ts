/** Plans of APIs over reloads: rows that stay, rows that go round, and what reactors are told. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiPlanner, changesBetween, type PlannedApis, RowsUsedUp } from '../../src/primary/api-planner.ts'
import type { ApiDefinition } from '../../src/config/api-definition.ts'
import { DEFAULT_SETTINGS } from '../../src/config/endpoint-settings.ts'
import type { ForwardProxies } from '../../src/primary/forward-proxies.ts'
import { monotonicMs } from '../../src/structure/monotonic-clock.ts'
import { SharedGauge } from '../../src/structure/shared-gauge.ts'
import { EndpointTable } from '../../src/target/endpoint-table.ts'
import { PLAIN_DEFINITION } from '../harness/api-plan.ts'
import { OPEN_CORS } from '../harness/chained.ts'

const DIRECT: ForwardProxies = { proxyFor: () => null, faults: [], warnings: [] }

function api(context: string, ...urls: readonly string[]): ApiDefinition {
  const endpoints = urls.map(url => ({ url, settings: DEFAULT_SETTINGS }))
  return {
    ...PLAIN_DEFINITION,
    ...{ name: context, context: `/${context}`, version: '1', isDefaultVersion: false },
    endpoints: { kind: 'load_balance', algorithm: 'round_robin', failsOver: true, endpoints },
  }
}

/** Rows of endpoints and of routes, in order. */
function rowsOf({ apis }: PlannedApis): readonly (readonly [endpoint: number, route: number])[] {
  return apis.flatMap(({ endpoints }) => endpoints.endpoints.map(({ row, route }) => [row, route.row] as const))
}

test('endpoints keep their rows by API, URL and place among equals, routes by where they lead', () => {
  const planner = new ApiPlanner(1, 3)
  const first = planner.plan([api('a', 'http://h/1', 'http://h/2'), api('b', 'https://h/1')], DIRECT, OPEN_CORS)
  assert.deepEqual(rowsOf(first), [
    [0, 1],
    [1, 1],
    [2, 2],
  ])
  const definitions = [api('b', 'https://h/1'), api('a', 'http://h:80/2', 'http://h/2', 'http://h/2', 'http://h/1')]
  const second = planner.plan(definitions, DIRECT, OPEN_CORS, first)
  assert.deepEqual(rowsOf(second), [
    [2, 2],
    [3, 1],
    [1, 1],
    [4, 1],
    [0, 1],
  ])
})

test('a definition that is the same keeps its plan, unless other proxies hold', () => {
  const planner = new ApiPlanner(1, 1)
  const definition = api('a', 'http://h')
  const first = planner.plan([definition], DIRECT, OPEN_CORS)
  assert.equal(planner.plan([definition], DIRECT, OPEN_CORS, first).apis[0], first.apis[0])
  const proxy = { host: 'p', port: 1, authorization: '' }
  const second = planner.plan([definition], { ...DIRECT, proxyFor: () => proxy }, OPEN_CORS, first)
  assert.equal(second.apis[0]!.endpoints.endpoints[0]!.route.proxy, proxy)
  assert.deepEqual(rowsOf(second), rowsOf(first))
})

test('a row that is given out again has no past, and none under way', () => {
  const planner = new ApiPlanner(1, 1, 1)
  const states = new EndpointTable(planner.endpoints, 0, monotonicMs)
  const connections = new SharedGauge(planner.gauge, 1, 0)
  const first = planner.plan([api('a', 'http://h')], DIRECT, OPEN_CORS)
  states.failed(0, DEFAULT_SETTINGS, false, 101_503, 0)
  const exchange = { pendingRow: -1 }
  states.entered(0, exchange)
  connections.take(1, -1)
  const second = planner.plan([api('b', 'http://i')], DIRECT, OPEN_CORS, first)
  planner.release(second)
  assert.deepEqual(rowsOf(second), [[1, 2]])
  const third = [api('b', 'http://i'), api('c', 'http://j')]
  assert.throws(() => planner.plan(third, DIRECT, OPEN_CORS, second), RowsUsedUp)
  planner.release(second)
  states.left(exchange)
  connections.give(1)
  assert.deepEqual(rowsOf(planner.plan(third, DIRECT, OPEN_CORS, second)), [
    [1, 2],
    [0, 1],
  ])
  const { state, failures, suspensions, lastBase } = states.read(0)
  assert.deepEqual([state, failures, suspensions, lastBase], ['ACTIVE', 0, 0, 0])
})

test('what was taken for a reload that is refused is given back', () => {
  const planner = new ApiPlanner(1, 1, 1)
  const first = planner.plan([api('a', 'http://h')], DIRECT, OPEN_CORS)
  for (let i = 0; i < 5; i++) {
    planner.plan([api('a', 'http://h'), api(`b${i}`, 'http://h')], DIRECT, OPEN_CORS, first)
    planner.release(first)
  }
})

test('reactors are told of what is new, different or gone, and of nothing else', () => {
  const planner = new ApiPlanner(1, 3)
  const [a, b, c] = [api('a', 'http://h'), api('b', 'http://h'), api('c', 'http://h')]
  const first = planner.plan([a, b, c], DIRECT, OPEN_CORS)
  const second = planner.plan(
    [a, api('b', 'http://h'), api('c', 'http://h/x'), api('d', 'http://h')],
    DIRECT,
    OPEN_CORS,
    first,
  )
  const { removed, deployed } = changesBetween(first.apis, second.apis)
  assert.deepEqual([removed, deployed.map(({ name }) => name)], [[], ['c', 'd']])
  assert.deepEqual(changesBetween(second.apis, first.apis).removed, ['/d/1'])
})

/** What an API says of CORS, what comes of it where all have `OPEN_CORS`, and where nobody has any. */
const CORS: readonly (readonly [own: ApiDefinition['cors'], open: unknown, closed: unknown])[] = [
  [null, OPEN_CORS, null],
  [{ enabled: false, origins: ['https://a'] }, null, null],
  [{ enabled: true }, OPEN_CORS, { ...OPEN_CORS }],
  [
    { enabled: true, origins: ['https://a'] },
    { ...OPEN_CORS, origins: ['https://a'] },
    { ...OPEN_CORS, origins: ['https://a'] },
  ],
]

test('what an API says of CORS wins, and what it leaves out is as for all', () => {
  const planner = new ApiPlanner(1, 10)
  for (const [cors, open, closed] of CORS) {
    const definitions = [{ ...api('a', 'http://h'), cors }]
    assert.deepEqual(planner.plan(definitions, DIRECT, OPEN_CORS).apis[0]!.cors, open)
    assert.deepEqual(planner.plan(definitions, DIRECT, { ...OPEN_CORS, enabled: false }).apis[0]!.cors, closed)
  }
})

test('APIs with the same CORS have the same object, and another one where all get another', () => {
  const planner = new ApiPlanner(1, 10)
  const own = { enabled: true, origins: ['https://a'] }
  const definitions = [
    api('a', 'http://h'),
    api('b', 'http://h'),
    { ...api('c', 'http://h'), cors: own },
    { ...api('d', 'http://h'), cors: { ...own } },
  ]
  const first = planner.plan(definitions, DIRECT, OPEN_CORS)
  const [a, b, c, d] = first.apis.map(({ cors }) => cors)
  assert.equal(a, b)
  assert.equal(c, d)
  assert.equal(a, first.cors)
  const same = planner.plan(definitions, DIRECT, { ...OPEN_CORS }, first)
  assert.deepEqual(changesBetween(first.apis, same.apis).deployed, [])
  assert.equal(same.apis[0], first.apis[0])
  const second = planner.plan(definitions, DIRECT, { ...OPEN_CORS, origins: ['https://b'] }, first)
  assert.deepEqual(
    changesBetween(first.apis, second.apis).deployed.map(({ name }) => name),
    ['a', 'b'],
  )
  assert.deepEqual(rowsOf(second), rowsOf(first))
})
