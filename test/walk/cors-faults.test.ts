/**
 * Faults say of CORS what responses do: a page that may not read the answer does not learn what went wrong. Where no
 * API is known, `[apim.cors]` holds.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { CorsDefinition } from '../../src/config/api-definition.ts'
import type { ApiPlan } from '../../src/plan.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { ask, OPEN_CORS, operation, PUBLISHED, saidOfCors, withAccept } from '../harness/chained.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'

const A = 'https://a.example'
const B = 'https://b.example'
const NAMED: CorsDefinition = { ...OPEN_CORS, origins: [A], credentials: true, exposedHeaders: ['ETag'] }
const backend = await AnsweringBackend.listen(({ target }) =>
  target === '/bad' ? 'no HTTP\r\n\r\n' : 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
)

function api(context: string, cors: CorsDefinition | null, unlike: Partial<ApiPlan> = {}) {
  const resources = ['GET /x', 'GET /bad'].map(operation)
  return { context, port: backend.port, unlike: { cors, resources, ...unlike } }
}

const gateway = await startGateway(
  [
    api('/named', NAMED),
    api('/open', OPEN_CORS),
    api('/off', null),
    api('/blocked', NAMED, { lifecycle: { ...PUBLISHED, state: 'BLOCKED' } }),
    api('/retired', OPEN_CORS, { lifecycle: { ...PUBLISHED, state: 'RETIRED' } }),
    api('/secured', OPEN_CORS, { transports: ['https'] }),
    api('/sandbox', NAMED, { keyType: 'SANDBOX' }),
  ],
  {},
  null,
  [],
  { isChained: true, cors: { ...OPEN_CORS, origins: [B] } },
)
after(() => {
  gateway.stop()
  backend.close()
})

const VARY = 'vary: Origin'
const ALL_OF_A = [
  'access-control-allow-credentials: true',
  `access-control-allow-origin: ${A}`,
  'access-control-expose-headers: ETag',
  VARY,
]
const ANY = ['access-control-allow-origin: *']
const ALL_OF_B = [`access-control-allow-origin: ${B}`, VARY]

/** Start of the request, origin or '', status, code, what is said of CORS. */
type Case = readonly [request: string, origin: string, status: number, code: number, said: readonly string[]]

const CASES: readonly Case[] = [
  ['GET /named/none', A, 403, 900906, ALL_OF_A],
  ['GET /named/none', B, 403, 900906, [VARY]],
  ['GET /named/none', '', 403, 900906, [VARY]],
  ['PUT /named/x', A, 405, 405, ['allow: GET, HEAD, OPTIONS', ...ALL_OF_A]],
  ['GET /named/bad', A, 502, 101509, ALL_OF_A],
  ['GET /blocked/x', A, 503, 700700, ALL_OF_A],
  ['GET /sandbox/x', A, 403, 900901, ALL_OF_A],
  ['GET /open/none', A, 403, 900906, ANY],
  ['GET /open/bad', '', 502, 101509, ANY],
  ['GET /off/none', A, 403, 900906, []],
  ['GET /off/bad', B, 502, 101509, []],
  // No API: that of the gateway, and none of an API that is not there.
  ['GET /none', B, 404, 404, ALL_OF_B],
  ['GET /none', A, 404, 404, [VARY]],
  ['OPTIONS /none', B, 404, 404, ALL_OF_B],
  ['GET /retired/x', B, 404, 404, ALL_OF_B],
  ['GET /retired/x', A, 404, 404, [VARY]],
  ['GET /secured/x', B, 404, 404, ALL_OF_B],
  ['GET /secured/x', A, 404, 404, [VARY]],
]

for (const [request, origin, status, code, said] of CASES) {
  for (const media of ['application/json', 'application/xml']) {
    test(`${request} from ${origin || 'nobody'}: ${status} as ${media}`, async t => {
      const client = await connectPeer(gateway.port)
      t.after(() => client.destroy())
      const from = origin === '' ? '' : `Origin: ${origin}\r\n`
      const answer = await ask(client, request, `${from}Accept: ${media}\r\n`)
      assert.equal(answer.status, status)
      assert.match(answer.fields.get('content-type')![0]!, new RegExp(`^${media}`))
      assert.match(answer.body, media === 'application/xml' ? new RegExp(`>${code}<`) : new RegExp(`"code":${code},`))
      assert.deepEqual(saidOfCors(answer), withAccept(status, said))
    })
  }
}

test('a reload changes what is said where no API is known, for connections that are open', async t => {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  const asked = async (): Promise<readonly string[]> => saidOfCors(await ask(client, 'GET /none', `Origin: ${B}\r\n`))
  assert.deepEqual(await asked(), withAccept(404, ALL_OF_B))
  await gateway.deploy({ cors: OPEN_CORS })
  assert.deepEqual(await asked(), withAccept(404, ANY))
  await gateway.deploy({ cors: null })
  assert.deepEqual(await asked(), withAccept(404, []))
  await gateway.deploy({ cors: { ...OPEN_CORS, origins: [B] } })
  assert.deepEqual(await asked(), withAccept(404, ALL_OF_B))
})
