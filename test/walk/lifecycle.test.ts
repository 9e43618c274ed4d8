/** States of an API, as its clients notice them, from one request to the next. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { LifecycleState } from '../../src/config/api-definition.ts'
import type { ApiPlan } from '../../src/plan.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { ask, operation } from '../harness/chained.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'

const backend = await AnsweringBackend.listen()
/** 21 November 2026 and a second, and 22 November, noon. */
const DATES = { deprecatedAtMs: 1795262401999, sunsetMs: 1795348800000 }
const DEPRECATION = '@1795262401'
const SUNSET = 'Sun, 22 Nov 2026 12:00:00 GMT'

function api(context: string, state: LifecycleState, more: Partial<ApiPlan['lifecycle']> = {}) {
  const lifecycle = { state, deprecatedAtMs: 0, sunsetMs: 0, ...more }
  return { context, port: backend.port, unlike: { lifecycle, resources: [operation('GET /x')] } }
}

const APIS = [
  api('/published', 'PUBLISHED', DATES),
  api('/prototyped', 'PROTOTYPED'),
  api('/blocked', 'BLOCKED'),
  api('/deprecated', 'DEPRECATED', DATES),
  api('/no-end', 'DEPRECATED', { ...DATES, sunsetMs: 0 }),
  api('/no-begin', 'DEPRECATED', { ...DATES, deprecatedAtMs: 0 }),
  api('/no-dates', 'DEPRECATED'),
  api('/created', 'CREATED', DATES),
  api('/retired', 'RETIRED', DATES),
]
const gateway = await startGateway(APIS, {}, null, [], { isChained: true })
after(() => {
  gateway.stop()
  backend.close()
})

/** Path, status, code of the fault or 0, Deprecation or '', Sunset or ''. */
type State = readonly [path: string, status: number, code: number, deprecation: string, sunset: string]

const STATES: readonly State[] = [
  ['/published/x', 200, 0, '', ''],
  ['/prototyped/x', 200, 0, '', ''],
  ['/blocked/x', 503, 700700, '', ''],
  ['/blocked/none', 503, 700700, '', ''],
  ['/deprecated/x', 200, 0, DEPRECATION, SUNSET],
  ['/deprecated/none', 403, 900906, DEPRECATION, SUNSET],
  ['/no-end/x', 200, 0, DEPRECATION, ''],
  ['/no-begin/x', 200, 0, '', SUNSET],
  ['/no-dates/x', 200, 0, '', ''],
  ['/created/x', 404, 404, '', ''],
  ['/retired/x', 404, 404, '', ''],
]

for (const [path, status, code, deprecation, sunset] of STATES) {
  test(`${path}: ${code === 0 ? 'passes' : code}`, async t => {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const answer = await ask(client, `GET ${path}`)
    assert.equal(answer.status, status)
    assert.deepEqual(answer.fields.get('deprecation') ?? [], deprecation === '' ? [] : [deprecation])
    assert.deepEqual(answer.fields.get('sunset') ?? [], sunset === '' ? [] : [sunset])
    if (code === 0) assert.equal(answer.body, 'ok')
    else assert.equal(JSON.parse(answer.body).fault.code, code)
  })
}

test('what is said of one API is not said of the next, on one connection', async t => {
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
    const { fields } = await ask(client, `GET ${path}`)
    assert.equal(fields.has('deprecation'), path.startsWith('/deprecated'))
    assert.equal(fields.get('sunset')?.length ?? 0, path.startsWith('/deprecated') ? 1 : 0)
  }
})

test('another state holds from the next request on, for connections that are open', async t => {
  const life: readonly (readonly [state: LifecycleState, status: number])[] = [
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
  for (const [state, status] of life) {
    await gateway.deploy({ apis: [api('/life', state, DATES)] })
    const { fields, ...answer } = await ask(client, 'GET /life/x')
    assert.equal(answer.status, status, state)
    assert.equal(fields.has('deprecation'), state === 'DEPRECATED')
  }
})

test('while an API is created only or retired, its paths are those of others', async t => {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  t.after(() => gateway.deploy({ removed: ['/shop', '/shop/admin'] }))
  const shop = { context: '/shop', port: backend.port }
  for (const state of ['CREATED', 'RETIRED'] as const) {
    await gateway.deploy({ apis: [shop, api('/shop/admin', state)] })
    await ask(client, 'GET /shop/admin/x')
    assert.equal(backend.requests.at(-1)!.target, '/admin/x')
  }
  await gateway.deploy({ apis: [api('/shop/admin', 'PUBLISHED')] })
  await ask(client, 'GET /shop/admin/x')
  assert.equal(backend.requests.at(-1)!.target, '/x')
})

test('an API that is retired keeps no connection to its backend', async t => {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  const other = await AnsweringBackend.listen()
  t.after(() => other.close())
  const held = gateway.heldRows()
  await gateway.deploy({ apis: [{ ...api('/last', 'PUBLISHED'), port: other.port }] })
  await ask(client, 'GET /last/x')
  assert.equal(gateway.heldRows(), held + 1)
  await gateway.deploy({ apis: [{ ...api('/last', 'RETIRED'), port: other.port }] })
  assert.equal(gateway.heldRows(), held)
})
