/**
 * Preflight requests (WHATWG Fetch, "CORS-preflight request"): which OPTIONS requests the gateway responds to, before
 * lifecycle and resources are checked, and which CORS fields the response has.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { CorsDefinition } from '../../src/apis/api-definition.ts'
import type { ApiPlan } from '../../src/plan/reactor-plan.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { sendRequest, OPEN_CORS, operation, PUBLISHED, corsFields, withVaryAccept } from '../harness/filter-chain.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'

const backend = await StrictBackend.listen()
const A = 'https://a.example'

const OPERATIONS = ['GET /pets', 'POST /pets', 'DELETE /pets/{id}', 'TRACK /odd', 'GET /own', 'OPTIONS /own'].map(
  operation,
)

function api(context: string, cors: Partial<CorsDefinition> | null, overrides: Partial<ApiPlan> = {}) {
  const whole = cors === null ? null : { ...OPEN_CORS, ...cors }
  return { context, port: backend.port, overrides: { resources: OPERATIONS, cors: whole, ...overrides } }
}

const gateway = await startGateway(
  [
    api('/open', {}),
    api('/few', { origins: [A, 'https://*.x.example'], credentials: true, headers: ['X-A', 'X-B'], maxAgeS: 600 }),
    api('/exposing', { exposedHeaders: ['ETag'] }),
    api('/two-methods', { methods: ['get', 'POST'] }),
    api('/star-methods', { methods: ['*'] }),
    api('/no-lists', { methods: [], headers: [] }),
    api('/off', null),
    api('/all', {}, { resources: [] }),
    api('/all-few', { origins: [A] }, { resources: [] }),
    api('/blocked', {}, { lifecycle: { ...PUBLISHED, state: 'BLOCKED' } }),
    api('/deprecated', {}, { lifecycle: { state: 'DEPRECATED', deprecatedAtMs: 1, sunsetMs: 2 } }),
    api('/secured', {}, { transports: ['https'] }),
    api('/retired', {}, { lifecycle: { ...PUBLISHED, state: 'RETIRED' } }),
  ],
  { hasFilterChain: true },
)
after(() => {
  gateway.stop()
  backend.close()
})

const HEADERS = 'access-control-allow-headers: authorization, Content-Type'
const ANY = 'access-control-allow-origin: *'
const CREDENTIALS = 'access-control-allow-credentials: true'
const VARY = 'vary: Origin'

function methods(list: string): string {
  return `access-control-allow-methods: ${list}`
}

function preflight(origin: string): string {
  return `Origin: ${origin}\r\nAccess-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: x-a\r\n`
}

interface Case {
  readonly name: string
  readonly path: string
  readonly fields: string
  readonly status: number
  readonly expected: readonly string[]
}

const SERVED: readonly Case[] = [
  {
    name: 'the configured methods that the resource has, and OPTIONS, are allowed',
    path: '/open/pets',
    fields: preflight(A),
    status: 200,
    expected: [HEADERS, methods('GET, POST, OPTIONS'), ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
  {
    name: 'another resource allows other methods',
    path: '/open/pets/7?x=1',
    fields: preflight(A),
    status: 200,
    expected: [HEADERS, methods('DELETE, OPTIONS'), ANY, 'allow: DELETE, OPTIONS'],
  },
  {
    name: 'a method that is not configured is not allowed',
    path: '/open/odd',
    fields: preflight(A),
    status: 200,
    expected: [HEADERS, methods('OPTIONS'), ANY, 'allow: TRACK, OPTIONS'],
  },
  {
    name: 'configured methods may be in lower case',
    path: '/two-methods/pets',
    fields: preflight(A),
    status: 200,
    expected: [HEADERS, methods('GET, POST'), ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
  {
    name: 'the method * allows every method of the resource',
    path: '/star-methods/pets',
    fields: preflight(A),
    status: 200,
    expected: [HEADERS, methods('GET, HEAD, POST'), ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
  {
    name: 'without configured methods and headers their fields are absent',
    path: '/no-lists/pets',
    fields: preflight(A),
    status: 200,
    expected: [ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
  {
    name: 'a configured origin gets credentials, headers and a maximum age',
    path: '/few/pets',
    fields: preflight(A),
    status: 200,
    expected: [
      CREDENTIALS,
      'access-control-allow-headers: X-A, X-B',
      methods('GET, POST, OPTIONS'),
      `access-control-allow-origin: ${A}`,
      'access-control-max-age: 600',
      'allow: GET, HEAD, POST, OPTIONS',
      VARY,
    ],
  },
  {
    name: 'an origin that matches a pattern is named, because credentials forbid *',
    path: '/few/pets/7',
    fields: preflight('https://b.x.example'),
    status: 200,
    expected: [
      CREDENTIALS,
      'access-control-allow-headers: X-A, X-B',
      methods('DELETE, OPTIONS'),
      'access-control-allow-origin: https://b.x.example',
      'access-control-max-age: 600',
      'allow: DELETE, OPTIONS',
      VARY,
    ],
  },
  ...[
    'https://evil.example',
    'https://evil.example#.x.example',
    'https://evil.example/.x.example',
    'https://b.x.example.evil.example',
    'https://x.example',
    'http://b.x.example',
    'null',
    '*',
    `https://${'b'.repeat(8000)}.x.example`,
    `${A}, https://evil.example`,
    `${A}\u00ff`,
    `${A}.`,
    `${A}:443`,
  ].map(origin => ({
    name: `the origin ${origin.slice(0, 60)} is granted nothing`,
    path: '/few/pets',
    fields: preflight(origin),
    status: 200,
    expected: ['allow: GET, HEAD, POST, OPTIONS', VARY],
  })),
  {
    name: 'two Origin fields are granted nothing, even if one is configured',
    path: '/few/pets',
    fields: `Origin: https://evil.example\r\n${preflight(A)}`,
    status: 200,
    expected: ['allow: GET, HEAD, POST, OPTIONS', VARY],
  },
  {
    name: 'Access-Control-Expose-Headers is absent',
    path: '/exposing/pets',
    fields: preflight(A),
    status: 200,
    expected: [HEADERS, methods('GET, POST, OPTIONS'), ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
  {
    name: 'an OPTIONS request without preflight fields gets the same response',
    path: '/open/pets',
    fields: '',
    status: 200,
    expected: [HEADERS, methods('GET, POST, OPTIONS'), ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
  {
    name: 'an API without declared resources gets a response of the gateway',
    path: '/all/x',
    fields: preflight(A),
    status: 200,
    expected: [
      HEADERS,
      methods('GET, PUT, POST, DELETE, PATCH, OPTIONS'),
      ANY,
      'allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS',
      'vary: Origin, Access-Control-Request-Method',
    ],
  },
  {
    name: 'a blocked API responds, so that the page can read the fault later',
    path: '/blocked/pets',
    fields: preflight(A),
    status: 200,
    expected: [HEADERS, methods('GET, POST, OPTIONS'), ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
  {
    name: 'a deprecated API responds',
    path: '/deprecated/pets',
    fields: preflight(A),
    status: 200,
    expected: [HEADERS, methods('GET, POST, OPTIONS'), ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
]

for (const { name, path, fields, status, expected } of SERVED) {
  test(`preflight: ${name}`, async t => {
    const before = backend.requests.length
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const response = await sendRequest(client, `OPTIONS ${path}`, fields)
    assert.equal(response.status, status)
    assert.deepEqual(corsFields(response), expected)
    assert.equal(response.body, '')
    assert.deepEqual(response.fields.get('content-length'), ['0'])
    assert.equal(response.fields.has('deprecation'), false)
    assert.equal(backend.requests.length, before, 'the backend gets no request')
  })
}

const REFUSED: readonly (Case & { readonly code: number })[] = [
  {
    name: 'an unknown resource gets 900906',
    path: '/open/none',
    fields: preflight(A),
    status: 403,
    code: 900906,
    expected: [ANY],
  },
  {
    name: 'an unknown resource gets 900906 without a grant to another origin',
    path: '/few/none',
    fields: preflight('https://evil.example'),
    status: 403,
    code: 900906,
    expected: [VARY],
  },
  {
    name: 'an unknown resource of a blocked API gets 700700',
    path: '/blocked/none',
    fields: preflight(A),
    status: 503,
    code: 700700,
    expected: [ANY],
  },
  {
    name: 'an API without CORS gets 405',
    path: '/off/pets',
    fields: preflight(A),
    status: 405,
    code: 405,
    expected: ['allow: GET, HEAD, POST'],
  },
  {
    name: 'an API that is not offered on this listener gets 404',
    path: '/secured/pets',
    fields: preflight(A),
    status: 404,
    code: 404,
    expected: [],
  },
  { name: 'a retired API gets 404', path: '/retired/pets', fields: preflight(A), status: 404, code: 404, expected: [] },
]

for (const { name, path, fields, status, code, expected } of REFUSED) {
  test(`OPTIONS is refused: ${name}`, async t => {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const response = await sendRequest(client, `OPTIONS ${path}`, fields)
    assert.equal(response.status, status)
    assert.equal(JSON.parse(response.body).fault.code, code)
    assert.deepEqual(corsFields(response), withVaryAccept(status, expected))
  })
}

interface ForwardedCase {
  readonly name: string
  readonly path: string
  readonly fields: string
  readonly expected: readonly string[]
}

const FORWARDED: readonly ForwardedCase[] = [
  {
    name: 'a declared OPTIONS operation is forwarded, and the response gets the missing CORS fields',
    path: '/open/own',
    fields: preflight(A),
    expected: [HEADERS, methods('GET, OPTIONS'), ANY],
  },
  {
    name: 'a declared OPTIONS operation with a configured origin gets the missing CORS fields',
    path: '/few/own',
    fields: preflight(A),
    expected: [
      CREDENTIALS,
      'access-control-allow-headers: X-A, X-B',
      methods('GET, OPTIONS'),
      `access-control-allow-origin: ${A}`,
      'access-control-max-age: 600',
      VARY,
    ],
  },
  {
    name: 'a declared OPTIONS operation with another origin gets only Vary',
    path: '/few/own',
    fields: preflight('https://b'),
    expected: [VARY],
  },
  {
    name: 'a declared OPTIONS operation of an API without CORS gets no CORS field',
    path: '/off/own',
    fields: preflight(A),
    expected: [],
  },
  {
    name: 'OPTIONS without Access-Control-Request-Method is forwarded by an API without declared resources',
    path: '/all-few/x',
    fields: `Origin: ${A}\r\n`,
    expected: [
      HEADERS,
      methods('GET, PUT, POST, DELETE, PATCH, OPTIONS'),
      `access-control-allow-origin: ${A}`,
      'vary: Origin, Access-Control-Request-Method',
    ],
  },
  {
    name: 'OPTIONS without Origin is forwarded by an API without declared resources',
    path: '/all-few/x',
    fields: 'Access-Control-Request-Method: GET\r\n',
    expected: ['vary: Origin, Access-Control-Request-Method'],
  },
]

for (const { name, path, fields, expected } of FORWARDED) {
  test(`RFC 9110 9.3.7: ${name}`, async t => {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const before = backend.requests.length
    const response = await sendRequest(client, `OPTIONS ${path}`, fields)
    assert.equal(response.body, 'ok')
    assert.equal(backend.requests.length, before + 1)
    assert.deepEqual(corsFields(response), expected)
  })
}
