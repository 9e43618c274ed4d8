/**
 * Preflight requests (WHATWG Fetch, "CORS-preflight request"): who answers OPTIONS, and with what, before lifecycle and
 * resources have a say.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { CorsDefinition } from '../../src/config/api-definition.ts'
import type { ApiPlan } from '../../src/plan.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { ask, OPEN_CORS, operation, PUBLISHED, saidOfCors, withAccept } from '../harness/chained.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'

const backend = await AnsweringBackend.listen()
const A = 'https://a.example'

const OPERATIONS = ['GET /pets', 'POST /pets', 'DELETE /pets/{id}', 'TRACK /odd', 'GET /own', 'OPTIONS /own'].map(
  operation,
)

function api(context: string, cors: Partial<CorsDefinition> | null, unlike: Partial<ApiPlan> = {}) {
  const whole = cors === null ? null : { ...OPEN_CORS, ...cors }
  return { context, port: backend.port, unlike: { resources: OPERATIONS, cors: whole, ...unlike } }
}

const gateway = await startGateway(
  [
    api('/open', {}),
    api('/few', { origins: [A, 'https://*.x.example'], credentials: true, headers: ['X-A', 'X-B'], maxAgeS: 600 }),
    api('/exposing', { exposedHeaders: ['ETag'] }),
    api('/two-methods', { methods: ['get', 'POST'] }),
    api('/star-methods', { methods: ['*'] }),
    api('/silent', { methods: [], headers: [] }),
    api('/off', null),
    api('/all', {}, { resources: [] }),
    api('/all-few', { origins: [A] }, { resources: [] }),
    api('/blocked', {}, { lifecycle: { ...PUBLISHED, state: 'BLOCKED' } }),
    api('/deprecated', {}, { lifecycle: { state: 'DEPRECATED', deprecatedAtMs: 1, sunsetMs: 2 } }),
    api('/secured', {}, { transports: ['https'] }),
    api('/retired', {}, { lifecycle: { ...PUBLISHED, state: 'RETIRED' } }),
  ],
  {},
  null,
  [],
  { isChained: true },
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

function asks(origin: string): string {
  return `Origin: ${origin}\r\nAccess-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: x-a\r\n`
}

interface Case {
  readonly name: string
  readonly path: string
  readonly fields: string
  readonly status: number
  readonly said: readonly string[]
}

const ANSWERED: readonly Case[] = [
  {
    name: 'it is granted what the place has of the configured methods, and OPTIONS',
    path: '/open/pets',
    fields: asks(A),
    status: 200,
    said: [HEADERS, methods('GET, POST, OPTIONS'), ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
  {
    name: 'another place has others',
    path: '/open/pets/7?x=1',
    fields: asks(A),
    status: 200,
    said: [HEADERS, methods('DELETE, OPTIONS'), ANY, 'allow: DELETE, OPTIONS'],
  },
  {
    name: 'a method that is not configured is not granted',
    path: '/open/odd',
    fields: asks(A),
    status: 200,
    said: [HEADERS, methods('OPTIONS'), ANY, 'allow: TRACK, OPTIONS'],
  },
  {
    name: 'configured methods may be written small',
    path: '/two-methods/pets',
    fields: asks(A),
    status: 200,
    said: [HEADERS, methods('GET, POST'), ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
  {
    name: 'every method is every one that the place has',
    path: '/star-methods/pets',
    fields: asks(A),
    status: 200,
    said: [HEADERS, methods('GET, HEAD, POST'), ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
  {
    name: 'no methods and no headers: no line without a value',
    path: '/silent/pets',
    fields: asks(A),
    status: 200,
    said: [ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
  {
    name: 'an origin by name, with credentials, headers and an age',
    path: '/few/pets',
    fields: asks(A),
    status: 200,
    said: [
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
    name: 'an origin by pattern is named, never the star beside credentials',
    path: '/few/pets/7',
    fields: asks('https://b.x.example'),
    status: 200,
    said: [
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
    name: `nothing is granted to ${origin.slice(0, 60)}`,
    path: '/few/pets',
    fields: asks(origin),
    status: 200,
    said: ['allow: GET, HEAD, POST, OPTIONS', VARY],
  })),
  {
    name: 'nor to two origins in two lines, of which one is granted',
    path: '/few/pets',
    fields: `Origin: https://evil.example\r\n${asks(A)}`,
    status: 200,
    said: ['allow: GET, HEAD, POST, OPTIONS', VARY],
  },
  {
    name: 'what may be exposed is said of responses alone',
    path: '/exposing/pets',
    fields: asks(A),
    status: 200,
    said: [HEADERS, methods('GET, POST, OPTIONS'), ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
  {
    name: 'OPTIONS that is no preflight request is answered as well',
    path: '/open/pets',
    fields: '',
    status: 200,
    said: [HEADERS, methods('GET, POST, OPTIONS'), ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
  {
    name: "every path and method: a preflight request is the gateway's",
    path: '/all/x',
    fields: asks(A),
    status: 200,
    said: [
      HEADERS,
      methods('GET, PUT, POST, DELETE, PATCH, OPTIONS'),
      ANY,
      'allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS',
      'vary: Origin, Access-Control-Request-Method',
    ],
  },
  {
    name: 'a blocked API answers it: the page is to see the fault',
    path: '/blocked/pets',
    fields: asks(A),
    status: 200,
    said: [HEADERS, methods('GET, POST, OPTIONS'), ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
  {
    name: 'a deprecated API answers it',
    path: '/deprecated/pets',
    fields: asks(A),
    status: 200,
    said: [HEADERS, methods('GET, POST, OPTIONS'), ANY, 'allow: GET, HEAD, POST, OPTIONS'],
  },
]

for (const { name, path, fields, status, said } of ANSWERED) {
  test(`preflight: ${name}`, async t => {
    const before = backend.requests.length
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const answer = await ask(client, `OPTIONS ${path}`, fields)
    assert.equal(answer.status, status)
    assert.deepEqual(saidOfCors(answer), said)
    assert.equal(answer.body, '')
    assert.deepEqual(answer.fields.get('content-length'), ['0'])
    assert.equal(answer.fields.has('deprecation'), false)
    assert.equal(backend.requests.length, before, 'no backend sees it')
  })
}

const REFUSED: readonly (Case & { readonly code: number })[] = [
  {
    name: 'a path that the API does not have',
    path: '/open/none',
    fields: asks(A),
    status: 403,
    code: 900906,
    said: [ANY],
  },
  {
    name: 'the same, to an origin that is not granted anything',
    path: '/few/none',
    fields: asks('https://evil.example'),
    status: 403,
    code: 900906,
    said: [VARY],
  },
  {
    name: 'a blocked API and a path that it does not have',
    path: '/blocked/none',
    fields: asks(A),
    status: 503,
    code: 700700,
    said: [ANY],
  },
  {
    name: 'an API without CORS has no OPTIONS',
    path: '/off/pets',
    fields: asks(A),
    status: 405,
    code: 405,
    said: ['allow: GET, HEAD, POST'],
  },
  {
    name: 'an API that is not for this listener',
    path: '/secured/pets',
    fields: asks(A),
    status: 404,
    code: 404,
    said: [],
  },
  { name: 'an API that is retired', path: '/retired/pets', fields: asks(A), status: 404, code: 404, said: [] },
]

for (const { name, path, fields, status, code, said } of REFUSED) {
  test(`no preflight: ${name}`, async t => {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const answer = await ask(client, `OPTIONS ${path}`, fields)
    assert.equal(answer.status, status)
    assert.equal(JSON.parse(answer.body).fault.code, code)
    assert.deepEqual(saidOfCors(answer), withAccept(status, said))
  })
}

interface Passed {
  readonly name: string
  readonly path: string
  readonly fields: string
  readonly said: readonly string[]
}

const PASSED: readonly Passed[] = [
  {
    name: 'where it is declared, and the answer says what was left out',
    path: '/open/own',
    fields: asks(A),
    said: [HEADERS, methods('GET, OPTIONS'), ANY],
  },
  {
    name: 'the same by name',
    path: '/few/own',
    fields: asks(A),
    said: [
      CREDENTIALS,
      'access-control-allow-headers: X-A, X-B',
      methods('GET, OPTIONS'),
      `access-control-allow-origin: ${A}`,
      'access-control-max-age: 600',
      VARY,
    ],
  },
  {
    name: 'the same to an origin that is not granted anything',
    path: '/few/own',
    fields: asks('https://b'),
    said: [VARY],
  },
  { name: 'where it is declared, without CORS', path: '/off/own', fields: asks(A), said: [] },
  {
    name: 'every path and method: without a method that is asked for',
    path: '/all-few/x',
    fields: `Origin: ${A}\r\n`,
    said: [
      HEADERS,
      methods('GET, PUT, POST, DELETE, PATCH, OPTIONS'),
      `access-control-allow-origin: ${A}`,
      'vary: Origin, Access-Control-Request-Method',
    ],
  },
  {
    name: 'every path and method: without an origin',
    path: '/all-few/x',
    fields: 'Access-Control-Request-Method: GET\r\n',
    said: ['vary: Origin, Access-Control-Request-Method'],
  },
]

for (const { name, path, fields, said } of PASSED) {
  test(`OPTIONS goes on: ${name}`, async t => {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const before = backend.requests.length
    const answer = await ask(client, `OPTIONS ${path}`, fields)
    assert.equal(answer.body, 'ok')
    assert.equal(backend.requests.length, before + 1)
    assert.deepEqual(saidOfCors(answer), said)
  })
}
