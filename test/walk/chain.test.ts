/** Resources and transports: what an API lets through, and what it answers to the rest. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { ApiPlan, ListenerPlan } from '../../src/plan.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { ask, OPEN_CORS, operation } from '../harness/chained.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, type Peer } from '../harness/peers.ts'
import { connectSecured, serverPlan } from '../harness/secured-peers.ts'

const backend = await AnsweringBackend.listen()
const OPERATIONS = ['GET /pets', 'POST /pets', 'DELETE /pets/{id}', '* /any'].map(operation)
const KINDS = ['http', 'https', 'ws', 'wss'] as const

function api(context: string, unlike: Partial<ApiPlan>) {
  return { context, port: backend.port, unlike }
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
  {},
  null,
  [],
  { isChained: true, kinds: KINDS, tlsServer: serverPlan() },
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

/** Start of a request, status, code of the fault or 0, Allow or ''. */
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
  // Where the gateway answers OPTIONS, it is among what there is.
  ['PUT /page/pets', 405, 405, 'GET, HEAD, POST, OPTIONS'],
  ['GET /page/none', 403, 900906, ''],
]

for (const [request, status, code, allow] of RESOURCES) {
  test(`${request}: ${code === 0 ? 'passes' : code}`, async t => {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const before = backend.requests.length
    // The second is refused by what the first has left behind.
    for (let i = 0; i < 2; i++) {
      const answer = await ask(client, request)
      assert.equal(answer.status, status)
      assert.deepEqual(answer.fields.get('allow') ?? [], allow === '' ? [] : [allow])
      if (code === 0) assert.equal(answer.body, 'ok')
      else assert.equal(JSON.parse(answer.body).fault.code, code)
    }
    assert.equal(backend.requests.length, before + (code === 0 ? 2 : 0))
  })
}

// ---- transports ----------------------------------------------------------------------------------------------------

const REACHED: Readonly<Record<string, readonly ListenerPlan['kind'][]>> = {
  '/http': ['http', 'ws'],
  '/https': ['https', 'wss'],
  '/both': KINDS,
}
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'

for (const [path, kinds] of Object.entries(REACHED)) {
  for (const kind of KINDS) {
    const isThere = kinds.includes(kind)
    test(`${path} ${isThere ? 'is there' : 'is no API'} on ${kind}`, async t => {
      const client = await dial(kind)
      t.after(() => client.destroy())
      const fields = kind === 'ws' || kind === 'wss' ? UPGRADE : ''
      const resource = path === '/https' ? '/pets' : '/x'
      const answer = await ask(client, `GET ${path}${resource}`, fields)
      assert.equal(answer.status, isThere ? 200 : 404)
    })
  }
}

test('where an API is not there, nothing tells it from one that never was', async t => {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  const id = 'activityid: same\r\n'
  for (const start of ['GET /https/pets', 'GET /https/none', 'PUT /https/pets', 'OPTIONS /https/pets']) {
    const hidden = withoutDate(await ask(client, start, id))
    assert.equal(hidden.status, 404)
    assert.deepEqual(hidden, withoutDate(await ask(client, start.replace('/https', '/nothing'), id)))
  }
})

function withoutDate({ fields, ...answer }: Awaited<ReturnType<typeof ask>>) {
  return { ...answer, fields: [...fields].filter(([name]) => name !== 'date') }
}

// ---- keys ----------------------------------------------------------------------------------------------------------

test('specification: a request that counts as one with a sandbox key finds no sandbox endpoint, 900901', async t => {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  for (const [path, status] of [
    ['/sandbox/x', 403],
    ['/both/x', 200],
    ['/sandbox/x', 403],
  ] as const) {
    assert.equal((await ask(client, `GET ${path}`)).status, status)
  }
})
