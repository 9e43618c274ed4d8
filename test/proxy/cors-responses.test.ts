/**
 * CORS fields of responses: the fields that the gateway adds to responses of backends and to faults. A page can read a
 * fault only with these fields. Where no API matches, `[apim.cors]` applies.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { CorsDefinition } from '../../src/apis/api-definition.ts'
import type { ApiPlan } from '../../src/plan/reactor-plan.ts'
import { takeResponse } from '../harness/responses.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { corsFields, OPEN_CORS, operation, PUBLISHED, sendRequest, withVaryAccept } from '../harness/filter-chain.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'

const A = 'https://a.example'
const B = 'https://b.example'
let backendFields = ''
const backend = await StrictBackend.listen(() => `HTTP/1.1 200 OK\r\n${backendFields}Content-Length: 2\r\n\r\nok`)

function api(context: string, cors: Partial<CorsDefinition> | null) {
  return { context, port: backend.port, overrides: { cors: cors === null ? null : { ...OPEN_CORS, ...cors } } }
}

const APIS = [
  api('/open', {}),
  api('/named', { origins: [A] }),
  api('/credentials', { origins: [A, 'https://*.x.example'], credentials: true }),
  api('/both', { credentials: true }),
  api('/exposing', { origins: [A], exposedHeaders: ['ETag', 'Link'] }),
  api('/no-origins', { origins: [] }),
  api('/off', null),
]
const gateway = await startGateway(APIS, { hasFilterChain: true })
after(() => {
  gateway.stop()
  backend.close()
})

const ANY = 'access-control-allow-origin: *'
const CREDENTIALS = 'access-control-allow-credentials: true'
const VARY = 'vary: Origin'

function allow(origin: string): string {
  return `access-control-allow-origin: ${origin}`
}

/** Path, origin ('' for none), CORS fields of the backend, and the CORS fields of the response. */
type Case = readonly [path: string, origin: string, backend: string, expected: readonly string[]]

const CASES: readonly Case[] = [
  ['/open', A, '', [ANY]],
  ['/open', '', '', [ANY]],
  ['/open', 'null', '', [ANY]],
  // Two Origin fields grant nothing: no browser sends them, and the backend sees both.
  ['/credentials', `${A}\r\nOrigin: ${B}`, '', [VARY]],
  ['/credentials', `${B}\r\nOrigin: ${A}`, '', [VARY]],
  ['/named', A, '', [allow(A), VARY]],
  ['/named', B, '', [VARY]],
  ['/named', '', '', [VARY]],
  ['/named', 'null', '', [VARY]],
  ['/credentials', A, '', [CREDENTIALS, allow(A), VARY]],
  ['/credentials', 'https://c.x.example', '', [CREDENTIALS, allow('https://c.x.example'), VARY]],
  ['/credentials', 'https://x.example', '', [VARY]],
  ['/credentials', 'https://evil.example#.x.example', '', [VARY]],
  ['/both', A, '', [ANY]],
  ['/exposing', A, '', [allow(A), 'access-control-expose-headers: ETag, Link', VARY]],
  ['/exposing', B, '', [VARY]],
  ['/no-origins', A, '', []],
  ['/off', A, '', []],
  // A grant of the backend is forwarded unchanged, and replaces that of the gateway.
  ['/open', A, `Access-Control-Allow-Origin: ${B}\r\n`, [allow(B)]],
  ['/open', A, `ACCESS-CONTROL-ALLOW-ORIGIN: ${B}\r\n`, [allow(B)]],
  ['/named', A, 'Access-Control-Allow-Origin: *\r\n', [ANY, VARY]],
  ['/credentials', A, 'Access-Control-Allow-Origin: *\r\n', [ANY, VARY]],
  ['/named', A, 'Access-Control-Allow-Credentials: true\r\n', [CREDENTIALS, VARY]],
  ['/named', A, 'Access-Control-Allow-Methods: GET\r\n', ['access-control-allow-methods: GET', VARY]],
  ['/named', A, 'Access-Control-Allow-Headers: X-A\r\n', ['access-control-allow-headers: X-A', VARY]],
  ['/off', A, `Access-Control-Allow-Origin: ${B}\r\nVary: Origin\r\n`, [allow(B), VARY]],
  // Fields of the backend that grant nothing by themselves are sent beside those of the gateway.
  [
    '/exposing',
    A,
    'Access-Control-Expose-Headers: X-B\r\n',
    [allow(A), 'access-control-expose-headers: ETag, Link', 'access-control-expose-headers: X-B', VARY],
  ],
  ['/named', A, 'Vary: Accept-Encoding\r\n', [allow(A), 'vary: Accept-Encoding', VARY]],
]

for (const [path, origin, fields, expected] of CASES) {
  const from = origin === '' ? 'no origin' : `origin ${origin.replace('\r\n', ', ')}`
  const own = fields === '' ? '' : ` and ${fields.trim().replaceAll('\r\n', ', ')} of the backend`
  test(`a response of ${path} to ${from}${own} has ${expected.join(', ') || 'no CORS field'}`, async t => {
    backendFields = fields
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const response = await sendRequest(client, `GET ${path}/x`, origin === '' ? '' : `Origin: ${origin}\r\n`)
    assert.equal(response.body, 'ok', 'the request is forwarded in any case')
    assert.deepEqual(corsFields(response), [...expected].sort())
  })
}

test('CORS fields of one response are not repeated in the next response of the connection', async t => {
  backendFields = ''
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  const from = (origin: string): string => `Origin: ${origin}\r\n`
  const requests: readonly (readonly [path: string, fields: string, expected: readonly string[]])[] = [
    ['/credentials/x', from(A), [CREDENTIALS, allow(A), VARY]],
    ['/credentials/x', from(B), [VARY]],
    ['/credentials/x', '', [VARY]],
    ['/open/x', from(A), [ANY]],
    ['/off/x', from(A), []],
    ['/none', from(A), ['vary: Accept']],
    ['/credentials/x', from(A), [CREDENTIALS, allow(A), VARY]],
    ['/off/x', '', []],
  ]
  for (const [path, fields, expected] of requests)
    assert.deepEqual(corsFields(await sendRequest(client, `GET ${path}`, fields)), expected)
  // The same requests pipelined.
  client.send(requests.map(([path, fields]) => `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`).join(''))
  for (const [, , expected] of requests) assert.deepEqual(corsFields(await takeResponse(client)), expected)
})

test('responses in chunks, to HEAD and without a body have CORS fields', async t => {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  backend.respond = ({ method }) =>
    method === 'HEAD' ? 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n' : 'HTTP/1.1 204 No Content\r\n\r\n'
  t.after(() => {
    backend.respond = () => `HTTP/1.1 200 OK\r\n${backendFields}Content-Length: 2\r\n\r\nok`
  })
  for (const method of ['HEAD', 'DELETE']) {
    client.send(`${method} /named/x HTTP/1.1\r\nHost: a\r\nOrigin: ${A}\r\n\r\n`)
    await client.untilText('\r\n\r\n')
    assert.match(client.take(), /\r\nAccess-Control-Allow-Origin: https:\/\/a\.example\r\nVary: Origin\r\n/)
  }
  backend.respond = () => 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'
  client.send(`GET /named/x HTTP/1.1\r\nHost: a\r\nOrigin: ${A}\r\n\r\n`)
  await client.untilText('0\r\n\r\n')
  assert.match(client.take(), /\r\nAccess-Control-Allow-Origin: https:\/\/a\.example\r\nVary: Origin\r\n/)
})

test('interim responses and 101 have no CORS field', async t => {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  backend.respond = ({ lines }) =>
    lines.some(line => /^upgrade:/i.test(line))
      ? 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
      : 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'
  t.after(() => {
    backend.respond = () => `HTTP/1.1 200 OK\r\n${backendFields}Content-Length: 2\r\n\r\nok`
  })
  client.send(`GET /named/x HTTP/1.1\r\nHost: a\r\nOrigin: ${A}\r\n\r\n`)
  await client.untilText('200 OK')
  await client.until('both heads', ({ text }) => text.split('\r\n\r\n').length === 3)
  const [interim, final] = client.take().split('\r\n\r\n')
  assert.doesNotMatch(interim!, /access-control|vary/i)
  assert.match(final!, /Access-Control-Allow-Origin/)
  client.send(`GET /named/x HTTP/1.1\r\nHost: a\r\nOrigin: ${A}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
  await client.untilText('\r\n\r\n')
  assert.match(client.text, /^HTTP\/1\.1 101 /)
  assert.doesNotMatch(client.text, /access-control|vary/i)
})

test('a reload of an API changes the CORS fields on open connections', async t => {
  backendFields = ''
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  const fieldsOf = async (): Promise<readonly string[]> =>
    corsFields(await sendRequest(client, 'GET /open/x', `Origin: ${A}\r\n`))
  assert.deepEqual(await fieldsOf(), [ANY])
  await gateway.deploy({ apis: [api('/open', { origins: [A], credentials: true })] })
  assert.deepEqual(await fieldsOf(), [CREDENTIALS, allow(A), VARY])
  await gateway.deploy({ apis: [api('/open', null)] })
  assert.deepEqual(await fieldsOf(), [])
  await gateway.deploy({ apis: [api('/open', {})] })
  assert.deepEqual(await fieldsOf(), [ANY])
})

// ---- faults ------------------------------------------------------------------------------------------------------

const CONFIGURED: CorsDefinition = { ...OPEN_CORS, origins: [A], credentials: true, exposedHeaders: ['ETag'] }
const faulty = await StrictBackend.listen(({ target }) =>
  target === '/bad' ? 'no HTTP\r\n\r\n' : 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
)

function apiWithResources(context: string, cors: CorsDefinition | null, overrides: Partial<ApiPlan> = {}) {
  const resources = ['GET /x', 'GET /bad'].map(operation)
  return { context, port: faulty.port, overrides: { cors, resources, ...overrides } }
}

const faultGateway = await startGateway(
  [
    apiWithResources('/named', CONFIGURED),
    apiWithResources('/open', OPEN_CORS),
    apiWithResources('/off', null),
    apiWithResources('/blocked', CONFIGURED, { lifecycle: { ...PUBLISHED, state: 'BLOCKED' } }),
    apiWithResources('/retired', OPEN_CORS, { lifecycle: { ...PUBLISHED, state: 'RETIRED' } }),
    apiWithResources('/secured', OPEN_CORS, { transports: ['https'] }),
    apiWithResources('/sandbox', CONFIGURED, { keyType: 'SANDBOX' }),
  ],
  { hasFilterChain: true, cors: { ...OPEN_CORS, origins: [B] } },
)
after(() => {
  faultGateway.stop()
  faulty.close()
})

const GRANT_TO_A = [
  'access-control-allow-credentials: true',
  `access-control-allow-origin: ${A}`,
  'access-control-expose-headers: ETag',
  VARY,
]
const GRANT_TO_B = [`access-control-allow-origin: ${B}`, VARY]

/** Start of the request, origin or '', status, fault code, and the CORS fields of the fault. */
type FaultCase = readonly [request: string, origin: string, status: number, code: number, expected: readonly string[]]

const FAULTS: readonly FaultCase[] = [
  ['GET /named/none', A, 403, 900906, GRANT_TO_A],
  ['GET /named/none', B, 403, 900906, [VARY]],
  ['GET /named/none', '', 403, 900906, [VARY]],
  ['PUT /named/x', A, 405, 405, ['allow: GET, HEAD, OPTIONS', ...GRANT_TO_A]],
  ['GET /named/bad', A, 502, 101509, GRANT_TO_A],
  ['GET /blocked/x', A, 503, 700700, GRANT_TO_A],
  ['GET /sandbox/x', A, 401, 900901, GRANT_TO_A],
  ['GET /open/none', A, 403, 900906, [ANY]],
  ['GET /open/bad', '', 502, 101509, [ANY]],
  ['GET /off/none', A, 403, 900906, []],
  ['GET /off/bad', B, 502, 101509, []],
  // Without a matching API `[apim.cors]` applies, also for an API that is retired or not offered on this listener.
  ['GET /none', B, 404, 404, GRANT_TO_B],
  ['GET /none', A, 404, 404, [VARY]],
  ['OPTIONS /none', B, 404, 404, GRANT_TO_B],
  ['GET /retired/x', B, 404, 404, GRANT_TO_B],
  ['GET /retired/x', A, 404, 404, [VARY]],
  ['GET /secured/x', B, 404, 404, GRANT_TO_B],
  ['GET /secured/x', A, 404, 404, [VARY]],
]

for (const [request, origin, status, code, expected] of FAULTS) {
  for (const media of ['application/json', 'application/xml']) {
    const grant = expected.some(line => line.startsWith('access-control')) ? 'the' : 'no'
    test(`the fault ${code} of ${request} to ${origin || 'no origin'} as ${media} has ${grant} grant`, async t => {
      const client = await connectPeer(faultGateway.port)
      t.after(() => client.destroy())
      const from = origin === '' ? '' : `Origin: ${origin}\r\n`
      const response = await sendRequest(client, request, `${from}Accept: ${media}\r\n`)
      assert.equal(response.status, status)
      assert.match(response.fields.get('content-type')![0]!, new RegExp(`^${media}`))
      assert.match(response.body, media === 'application/xml' ? new RegExp(`>${code}<`) : new RegExp(`"code":${code},`))
      assert.deepEqual(corsFields(response), withVaryAccept(status, expected))
    })
  }
}

test('a reload of [apim.cors] changes the CORS fields of a fault without an API on open connections', async t => {
  const client = await connectPeer(faultGateway.port)
  t.after(() => client.destroy())
  const fieldsOf = async (): Promise<readonly string[]> =>
    corsFields(await sendRequest(client, 'GET /none', `Origin: ${B}\r\n`))
  assert.deepEqual(await fieldsOf(), withVaryAccept(404, GRANT_TO_B))
  await faultGateway.deploy({ cors: OPEN_CORS })
  assert.deepEqual(await fieldsOf(), withVaryAccept(404, [ANY]))
  await faultGateway.deploy({ cors: null })
  assert.deepEqual(await fieldsOf(), withVaryAccept(404, []))
  await faultGateway.deploy({ cors: { ...OPEN_CORS, origins: [B] } })
  assert.deepEqual(await fieldsOf(), withVaryAccept(404, GRANT_TO_B))
})
