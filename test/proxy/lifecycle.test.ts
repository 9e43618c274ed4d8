/** Lifecycle states of an API: status, fault, Deprecation and Sunset of each state, and changes by reloads. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { LifecycleState } from '../../src/apis/api-definition.ts'
import type { ApiPlan } from '../../src/plan/reactor-plan.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { sendRequest, operation } from '../harness/filter-chain.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'

const backend = await StrictBackend.listen()
/** 21 November 2026 and one second, and 22 November 2026 at noon. */
const DATES = { deprecatedAtMs: 1795262401999, sunsetMs: 1795348800000 }
const DEPRECATION = '@1795262401'
const SUNSET = 'Sun, 22 Nov 2026 12:00:00 GMT'

function api(context: string, state: LifecycleState, more: Partial<ApiPlan['lifecycle']> = {}) {
  const lifecycle = { state, deprecatedAtMs: 0, sunsetMs: 0, ...more }
  return { context, port: backend.port, overrides: { lifecycle, resources: [operation('GET /x')] } }
}

const APIS = [
  api('/published', 'PUBLISHED', DATES),
  api('/prototyped', 'PROTOTYPED'),
  api('/blocked', 'BLOCKED'),
  api('/deprecated', 'DEPRECATED', DATES),
  api('/no-sunset', 'DEPRECATED', { ...DATES, sunsetMs: 0 }),
  api('/no-deprecation', 'DEPRECATED', { ...DATES, deprecatedAtMs: 0 }),
  api('/no-dates', 'DEPRECATED'),
  api('/created', 'CREATED', DATES),
  api('/retired', 'RETIRED', DATES),
]
const gateway = await startGateway(APIS, { hasFilterChain: true })
after(() => {
  gateway.stop()
  backend.close()
})

/** Path, status, fault code (0: served), Deprecation and Sunset ('': none). */
type State = readonly [path: string, status: number, code: number, deprecation: string, sunset: string]

const STATES: readonly State[] = [
  ['/published/x', 200, 0, '', ''],
  ['/prototyped/x', 200, 0, '', ''],
  ['/blocked/x', 503, 700700, '', ''],
  ['/blocked/none', 503, 700700, '', ''],
  ['/deprecated/x', 200, 0, DEPRECATION, SUNSET],
  ['/deprecated/none', 403, 900906, DEPRECATION, SUNSET],
  ['/no-sunset/x', 200, 0, DEPRECATION, ''],
  ['/no-deprecation/x', 200, 0, '', SUNSET],
  ['/no-dates/x', 200, 0, '', ''],
  ['/created/x', 404, 404, '', ''],
  ['/retired/x', 404, 404, '', ''],
]

for (const [path, status, code, deprecation, sunset] of STATES) {
  const dates = deprecation + sunset === '' ? '' : ' with the dates of the API'
  test(`a request to ${path} ${code === 0 ? 'is served' : `gets ${code}`}${dates}`, async t => {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const response = await sendRequest(client, `GET ${path}`)
    assert.equal(response.status, status)
    assert.deepEqual(response.fields.get('deprecation') ?? [], deprecation === '' ? [] : [deprecation])
    assert.deepEqual(response.fields.get('sunset') ?? [], sunset === '' ? [] : [sunset])
    if (code === 0) assert.equal(response.body, 'ok')
    else assert.equal(JSON.parse(response.body).fault.code, code)
  })
}

test('Deprecation and Sunset of one response are not repeated in the next response of the connection', async t => {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  for (const path of [
    '/deprecated/x',
    '/published/x',
    '/deprecated/none',
    '/created/x',
    '/deprecated/x',
    '/blocked/x',
  ]) {
    const { fields } = await sendRequest(client, `GET ${path}`)
    assert.equal(fields.has('deprecation'), path.startsWith('/deprecated'))
    assert.equal(fields.get('sunset')?.length ?? 0, path.startsWith('/deprecated') ? 1 : 0)
  }
})

test('a state change by a reload applies to the next request on an open connection', async t => {
  const changes: readonly (readonly [state: LifecycleState, status: number])[] = [
    ['CREATED', 404],
    ['PUBLISHED', 200],
    ['BLOCKED', 503],
    ['PUBLISHED', 200],
    ['DEPRECATED', 200],
    ['RETIRED', 404],
    ['PROTOTYPED', 200],
  ]
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  t.after(() => gateway.deploy({ removed: ['/life'] }))
  for (const [state, status] of changes) {
    await gateway.deploy({ apis: [api('/life', state, DATES)] })
    const { fields, ...response } = await sendRequest(client, 'GET /life/x')
    assert.equal(response.status, status, state)
    assert.equal(fields.has('deprecation'), state === 'DEPRECATED')
  }
})

test('the paths of a created or retired API belong to the API of the shorter context', async t => {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  t.after(() => gateway.deploy({ removed: ['/shop', '/shop/admin'] }))
  const shop = { context: '/shop', port: backend.port }
  for (const state of ['CREATED', 'RETIRED'] as const) {
    await gateway.deploy({ apis: [shop, api('/shop/admin', state)] })
    await sendRequest(client, 'GET /shop/admin/x')
    assert.equal(backend.requests.at(-1)!.target, '/admin/x')
  }
  await gateway.deploy({ apis: [api('/shop/admin', 'PUBLISHED')] })
  await sendRequest(client, 'GET /shop/admin/x')
  assert.equal(backend.requests.at(-1)!.target, '/x')
})

test('a retired API has no backend connection', async t => {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  const other = await StrictBackend.listen()
  t.after(() => other.close())
  const before = gateway.countedTargets()
  await gateway.deploy({ apis: [{ ...api('/last', 'PUBLISHED'), port: other.port }] })
  await sendRequest(client, 'GET /last/x')
  assert.equal(gateway.countedTargets(), before + 1)
  await gateway.deploy({ apis: [{ ...api('/last', 'RETIRED'), port: other.port }] })
  assert.equal(gateway.countedTargets(), before)
})
