/** Resources, transports and key types: the requests that an API serves, and the faults of the others. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { ApiPlan, ListenerPlan } from '../../src/plan/reactor-plan.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { sendRequest, OPEN_CORS, operation } from '../harness/filter-chain.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, type Peer } from '../harness/peers.ts'
import { connectSecured, serverPlan } from '../harness/secured-peers.ts'

const backend = await StrictBackend.listen()
const OPERATIONS = ['GET /pets', 'POST /pets', 'DELETE /pets/{id}', '* /any'].map(operation)
const KINDS = ['http', 'https', 'ws', 'wss'] as const

function api(context: string, overrides: Partial<ApiPlan>) {
  return { context, port: backend.port, overrides }
}

const gateway = await startGateway(
  [
    api('/shop', { resources: OPERATIONS }),
    api('/page', { resources: OPERATIONS, cors: OPEN_CORS }),
    api('/http', { transports: ['http'] }),
    api('/https', { transports: ['https'], isAi: true, resources: OPERATIONS }),
    api('/both', {}),
    api('/sandbox', { keyType: 'SANDBOX' }),
  ],
  { hasFilterChain: true, kinds: KINDS, tlsServer: serverPlan() },
)
after(() => {
  gateway.stop()
  backend.close()
})

async function dial(kind: ListenerPlan['kind']): Promise<Peer> {
  const port = gateway.ports[KINDS.indexOf(kind)]!
  return kind === 'https' || kind === 'wss' ? (await connectSecured(port)).peer : connectPeer(port)
}

// ---- resources -----------------------------------------------------------------------------------------------------

/** Start of a request, status, fault code (0: served), and Allow ('': none). */
type Resource = readonly [request: string, status: number, code: number, allow: string]

const RESOURCES: readonly Resource[] = [
  ['GET /shop/pets', 200, 0, ''],
  ['POST /shop/pets', 200, 0, ''],
  ['DELETE /shop/pets/7', 200, 0, ''],
  ['PURGE /shop/any', 200, 0, ''],
  ['OPTIONS /shop/any', 200, 0, ''],
  ['GET /shop/none', 403, 900906, ''],
  ['GET /shop', 403, 900906, ''],
  ['PUT /shop/pets', 405, 405, 'GET, HEAD, POST'],
  ['PROPFIND /shop/pets', 405, 405, 'GET, HEAD, POST'],
  ['OPTIONS /shop/pets', 405, 405, 'GET, HEAD, POST'],
  ['GET /shop/pets/7', 405, 405, 'DELETE'],
  // With CORS the gateway responds to OPTIONS, so OPTIONS is allowed.
  ['PUT /page/pets', 405, 405, 'GET, HEAD, POST, OPTIONS'],
  ['GET /page/none', 403, 900906, ''],
]

for (const [request, status, code, allow] of RESOURCES) {
  test(`RFC 9110 15.5.6: ${request} ${code === 0 ? 'is served' : `gets ${code}`}`, async t => {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const before = backend.requests.length
    // The second request finds the resource in the cache.
    for (let i = 0; i < 2; i++) {
      const response = await sendRequest(client, request)
      assert.equal(response.status, status)
      assert.deepEqual(response.fields.get('allow') ?? [], allow === '' ? [] : [allow])
      if (code === 0) assert.equal(response.body, 'ok')
      else assert.equal(JSON.parse(response.body).fault.code, code)
    }
    assert.equal(backend.requests.length, before + (code === 0 ? 2 : 0))
  })
}

// ---- transports ----------------------------------------------------------------------------------------------------

const OFFERED: Readonly<Record<string, readonly ListenerPlan['kind'][]>> = {
  '/http': ['http', 'ws'],
  '/https': ['https', 'wss'],
  '/both': KINDS,
}
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'

for (const [path, kinds] of Object.entries(OFFERED)) {
  for (const kind of KINDS) {
    const isOffered = kinds.includes(kind)
    test(`the API ${path} ${isOffered ? 'is served' : 'does not exist'} on a listener of kind ${kind}`, async t => {
      const client = await dial(kind)
      t.after(() => client.destroy())
      const fields = kind === 'ws' || kind === 'wss' ? UPGRADE : ''
      const resource = path === '/https' ? '/pets' : '/x'
      const response = await sendRequest(client, `GET ${path}${resource}`, fields)
      assert.equal(response.status, isOffered ? 200 : 404)
    })
  }
}

test('an API that is not offered on a listener responds exactly like an unknown API', async t => {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  const id = 'activityid: same\r\n'
  for (const start of ['GET /https/pets', 'GET /https/none', 'PUT /https/pets', 'OPTIONS /https/pets']) {
    const hidden = withoutDate(await sendRequest(client, start, id))
    assert.equal(hidden.status, 404)
    assert.deepEqual(hidden, withoutDate(await sendRequest(client, start.replace('/https', '/nothing'), id)))
  }
})

function withoutDate({ fields, ...response }: Awaited<ReturnType<typeof sendRequest>>) {
  return { ...response, fields: [...fields].filter(([name]) => name !== 'date') }
}

// ---- keys ----------------------------------------------------------------------------------------------------------

test('a request with a sandbox key for an API without sandbox endpoints gets 900901', async t => {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  for (const [path, status] of [
    ['/sandbox/x', 401],
    ['/both/x', 200],
    ['/sandbox/x', 401],
  ] as const) {
    assert.equal((await sendRequest(client, `GET ${path}`)).status, status)
  }
})
