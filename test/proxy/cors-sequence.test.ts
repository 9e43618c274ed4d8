/** An edited `_cors_request_handler_` sets the CORS fields of backend responses, preflight responses and faults. */
import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import type { CorsDefinition } from '../../src/apis/api-definition.ts'
import { DEFAULT_FAULTS, faultsWith } from '../harness/default-sequences.ts'
import { corsFields, OPEN_CORS, operation, sendRequest } from '../harness/filter-chain.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, type Peer } from '../harness/peers.ts'
import { StrictBackend } from '../harness/strict-backend.ts'

const A = 'https://a.example'
let backendFields = ''
const backend = await StrictBackend.listen(() => `HTTP/1.1 200 OK\r\n${backendFields}Content-Length: 2\r\n\r\nok`)
after(() => backend.close())

const OPERATIONS = ['GET /pets', 'DELETE /pets/{id}', 'GET /own', 'OPTIONS /own'].map(operation)

function api(context: string, cors: Partial<CorsDefinition>) {
  return {
    context,
    port: backend.port,
    overrides: { resources: OPERATIONS, cors: { ...OPEN_CORS, ...cors } },
  }
}

const APIS = [
  api('/open', {}),
  api('/named', { origins: [A], credentials: true, exposedHeaders: ['ETag'], maxAgeS: 60 }),
  api('/patterns', { origins: ['https://*.example'], methods: ['*'] }),
  api('/no-origins', { origins: [] }),
]

const SEQUENCE = '_cors_request_handler_'

async function start(t: TestContext, content: string): Promise<{ gateway: TestGateway; client: Peer }> {
  const faults = await faultsWith({ [SEQUENCE]: content })
  return startWith(t, faults)
}

async function startWith(t: TestContext, faults: typeof DEFAULT_FAULTS) {
  const gateway = await startGateway(APIS, { hasFilterChain: true, faults, cors: OPEN_CORS })
  const client = await connectPeer(gateway.port)
  t.after(() => {
    client.destroy()
    gateway.stop()
  })
  return { gateway, client }
}

const PREFLIGHT = `Origin: ${A}\r\nAccess-Control-Request-Method: GET\r\n`

/** Requests of every kind: to a backend, preflights, and faults with and without an API. */
const REQUESTS: readonly (readonly [start: string, fields: string])[] = APIS.flatMap(({ context }) => [
  [`GET ${context}/pets`, `Origin: ${A}\r\n`],
  [`GET ${context}/pets`, ''],
  [`OPTIONS ${context}/pets`, PREFLIGHT],
  [`OPTIONS ${context}/own`, PREFLIGHT],
  [`GET ${context}/none`, `Origin: ${A}\r\n`],
  ['GET /nowhere', `Origin: ${A}\r\n`],
  [`GET ${context}/pets`, `Origin: https://other.test\r\n`],
])

test('the default sequence, when it runs, sets the same fields as the policy', async t => {
  const asEdited = DEFAULT_FAULTS.sequences.map(plan => ({
    ...plan,
    isDefault: plan.isDefault && plan.name !== SEQUENCE,
  }))
  const composed = await startWith(t, DEFAULT_FAULTS)
  const run = await startWith(t, { ...DEFAULT_FAULTS, sequences: asEdited })
  for (const [line, fields] of REQUESTS) {
    const expected = await sendRequest(composed.client, line, fields)
    const response = await sendRequest(run.client, line, fields)
    assert.equal(response.status, expected.status)
    assert.deepEqual(corsFields(response), corsFields(expected), `${line} ${fields}`)
  }
})

test('with an empty sequence no response has CORS fields', async t => {
  const { client } = await start(t, '')
  for (const [line, fields] of REQUESTS) {
    const { fields: sent } = await sendRequest(client, line, fields)
    assert.deepEqual(
      [...sent.keys()].filter(name => name.startsWith('access-control-')),
      [],
      line,
    )
  }
})

const FIXED =
  '<property name="Access-Control-Allow-Origin" value="https://fixed.test" scope="transport"/>' +
  '<property name="Timing-Allow-Origin" value="*" scope="transport"/>'

test('backend responses, preflight responses and faults have the fields that a sequence sets', async t => {
  const { client } = await start(t, FIXED)
  for (const [line, fields] of REQUESTS) {
    const { fields: sent, status } = await sendRequest(client, line, fields)
    assert.deepEqual(sent.get('access-control-allow-origin'), ['https://fixed.test'], `${line} ${status}`)
    assert.deepEqual(sent.get('timing-allow-origin'), ['*'])
    assert.equal(sent.get('access-control-allow-methods'), undefined)
    assert.equal(sent.get('access-control-allow-credentials'), undefined)
  }
})

test('fields of a backend are not replaced by those of the sequence', async t => {
  const { client } = await start(t, FIXED)
  t.after(() => {
    backendFields = ''
  })
  backendFields = 'Access-Control-Allow-Origin: https://own.test\r\nTiming-Allow-Origin: https://own.test\r\n'
  const { fields } = await sendRequest(client, 'GET /open/pets', `Origin: ${A}\r\n`)
  assert.deepEqual(fields.get('access-control-allow-origin'), ['https://own.test'])
  assert.deepEqual(fields.get('timing-allow-origin'), ['https://own.test'])
  backendFields = 'Access-Control-Allow-Origin: https://own.test\r\n'
  const { fields: others } = await sendRequest(client, 'GET /open/pets', `Origin: ${A}\r\n`)
  assert.deepEqual(others.get('timing-allow-origin'), ['*'])
})

test('HTTP_SC of the sequence sets the status of preflight responses only', async t => {
  const { client } = await start(t, '<property name="HTTP_SC" value="204" scope="axis2"/>')
  const preflight = await sendRequest(client, 'OPTIONS /open/pets', PREFLIGHT)
  assert.deepEqual([preflight.status, preflight.reason], [204, 'No Content'])
  assert.deepEqual(preflight.fields.get('content-length'), undefined)
  assert.equal((await sendRequest(client, 'GET /open/pets', `Origin: ${A}\r\n`)).status, 200)
  assert.equal((await sendRequest(client, 'OPTIONS /open/own', PREFLIGHT)).status, 200)
})

const BY_TENANT =
  '<filter source="$trp:X-Tenant" regex="blue"><then>' +
  '<property name="Access-Control-Allow-Origin" value="https://blue.test" scope="transport"/></then></filter>'

test('a sequence that reads a request field runs for each request, and the field is in Vary', async t => {
  const { client } = await start(t, BY_TENANT)
  for (const [tenant, origin] of [
    ['blue', ['https://blue.test']],
    ['red', undefined],
    ['blue', ['https://blue.test']],
  ] as const) {
    for (const line of ['GET /named/pets', 'OPTIONS /named/pets', 'GET /named/none']) {
      const { fields } = await sendRequest(client, line, `${PREFLIGHT}X-Tenant: ${tenant}\r\n`)
      assert.deepEqual(fields.get('access-control-allow-origin'), origin, line)
      assert.deepEqual(fields.get('vary'), ['Origin', 'x-tenant'], line)
    }
  }
})

test('a sequence can decide by the name and the context of the API', async t => {
  const content =
    '<filter source="$ctx:SYNAPSE_REST_API" regex="open:v.*"><then>' +
    '<property name="Access-Control-Allow-Origin" expression="$ctx:REST_API_CONTEXT" scope="transport"/></then></filter>'
  const { client } = await start(t, content)
  const open = await sendRequest(client, 'GET /open/pets', `Origin: ${A}\r\n`)
  assert.deepEqual(open.fields.get('access-control-allow-origin'), ['/open'])
  const named = await sendRequest(client, 'GET /named/pets', `Origin: ${A}\r\n`)
  assert.equal(named.fields.get('access-control-allow-origin'), undefined)
})

for (const [name, content, cause] of [
  ['that calls itself endlessly', `<sequence key="${SEQUENCE}"/>`, /entered more than 100 sequences/],
  [
    'with too long fields',
    `<property name="X-Long" value="${'a'.repeat(6000)}" scope="transport"/>`,
    /more than 6000 characters/,
  ],
] as const) {
  test(`a sequence ${name} is logged, and the fields of the policy are sent`, async t => {
    const { client, gateway } = await start(t, content)
    const { fields, status } = await sendRequest(client, 'GET /named/pets', `Origin: ${A}\r\n`)
    assert.equal(status, 200)
    assert.deepEqual(fields.get('access-control-allow-origin'), [A])
    const failed = gateway.reports.find(({ event }) => event === 'sequence failed')
    assert.equal(failed?.fields.SEQUENCE, SEQUENCE)
    assert.match(String(failed?.fields.CAUSE_OF_ERROR), cause)
  })
}

test('a reload activates an edited sequence, and the default one again', async t => {
  const { client, gateway } = await startWith(t, DEFAULT_FAULTS)
  const origin = async () =>
    (await sendRequest(client, 'GET /named/pets', `Origin: ${A}\r\n`)).fields.get('access-control-allow-origin')
  assert.deepEqual(await origin(), [A])
  await gateway.deploy({ faults: await faultsWith({ [SEQUENCE]: FIXED }) })
  assert.deepEqual(await origin(), ['https://fixed.test'])
  await gateway.deploy({ faults: DEFAULT_FAULTS })
  assert.deepEqual(await origin(), [A])
})
