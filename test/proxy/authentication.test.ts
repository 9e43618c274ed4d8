/** Authentication by OAuth 2 access tokens: every fault code, the challenge, and the fields that the backend gets. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { ResourceDefinition } from '../../src/apis/api-definition.ts'
import type { AccessPlan } from '../../src/auth/auth-plan.ts'
import { withoutAllowedScopes } from '../../src/plan/auth-planning.ts'
import type { ApiPlan } from '../../src/plan/reactor-plan.ts'
import { forgedTokens } from '../auth/forged-tokens.ts'
import { tokenSigner } from '../auth/token-maker.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { NO_ACCESS } from '../harness/api-plan.ts'
import { sendRequest, OPEN_CORS } from '../harness/filter-chain.ts'
import { startGateway, type TestApi } from '../harness/gateway.ts'
import { connectPeer, eventually } from '../harness/peers.ts'
import { OWN_ISSUER, ScriptedControl } from '../harness/scripted-control.ts'

type AuthType = ResourceDefinition['authType']

function operation(template: string, authType: AuthType, scopes: readonly string[] = []): ResourceDefinition {
  return { template, verb: 'GET', authType, tier: 'Unlimited', scopes }
}

const OPERATIONS = [
  operation('/any', 'Application & Application User'),
  operation('/application', 'Application'),
  operation('/user', 'Application User'),
  operation('/none', 'None'),
  operation('/scoped', 'Application & Application User', ['read', 'write']),
  operation('/free', 'Application & Application User', ['device_x']),
]

/** Resources as the primary plans them. */
const PLANNED = withoutAllowedScopes(OPERATIONS, ['^device_.*'])

const backend = await StrictBackend.listen()

function api(context: string, access: Partial<AccessPlan>, overrides: Partial<ApiPlan> = {}): TestApi {
  const api = `${context.slice(1)}:1.0.0`
  return {
    context,
    port: backend.port,
    overrides: { access: { ...NO_ACCESS, api, schemes: ['oauth2'], ...access }, resources: PLANNED, ...overrides },
  }
}

const gateway = await startGateway(
  [
    api('/pets', {}),
    api('/own', { authField: 'x-own-auth' }),
    api('/keys', { schemes: ['api_key'] }),
    api('/both', { schemes: ['oauth2', 'basic', 'api_key'], scopeRoles: { read: ['clerk'], write: ['boss'] } }),
    api('/basic', { schemes: ['basic'] }),
    api('/open', { schemes: [] }),
    api('/prototype', {}, { lifecycle: { state: 'PROTOTYPED', deprecatedAtMs: 0, sunsetMs: 0 } }),
    api('/everything', {}, { resources: [] }),
    api('/page', {}, { cors: OPEN_CORS }),
  ],
  { hasFilterChain: true, authChanges: { issuers: [OWN_ISSUER] } },
)
const control = new ScriptedControl(gateway.authState)
for (const name of ['pets', 'own', 'keys', 'both', 'everything', 'page']) control.subscribe('shop', `${name}:1.0.0`)
after(() => {
  gateway.stop()
  backend.close()
})

/** Status, fault code (0 for a response of the backend), and the request that reached the backend. */
async function outcome(target: string, fields = '') {
  const client = await connectPeer(gateway.port)
  const before = backend.requests.length
  const response = await sendRequest(client, target.includes(' ') ? target : `GET ${target}`, fields)
  client.destroy()
  const { fault = { code: 0, description: '' } } = response.body === 'ok' ? {} : JSON.parse(response.body)
  const forwarded = backend.requests.slice(before).at(0)
  const challenge = response.fields.get('www-authenticate')?.join() ?? ''
  return {
    status: response.status,
    code: fault.code as number,
    description: fault.description as string,
    challenge,
    forwarded,
  }
}

function bearer(token: string, field = 'Authorization'): string {
  return `${field}: Bearer ${token}\r\n`
}

async function assertCode(target: string, fields: string, code: number, status: number): Promise<void> {
  const { code: actualCode, status: actualStatus, challenge, forwarded } = await outcome(target, fields)
  assert.deepEqual([actualCode, actualStatus], [code, status], `${target} ${fields.slice(0, 60)}`)
  assert.equal(challenge !== '', status === 401 || code === 900910)
  assert.equal(forwarded === undefined, code !== 0)
}

/** [name, target, fields, code, status]. */
type Case = readonly [name: string, target: string, fields: () => string, code: number, status: number]

const CASES: readonly Case[] = [
  ['a valid token', '/pets/any', () => bearer(control.token('shop')), 0, 200],
  [
    'the scheme bEaReR in mixed case',
    '/pets/any',
    () => `authorization: bEaReR   ${control.token('shop')} \r\n`,
    0,
    200,
  ],
  ['a request without credentials', '/pets/any', () => '', 900902, 401],
  ['the scheme Basic', '/pets/any', () => 'Authorization: Basic YTpi\r\n', 900902, 401],
  ['a token without a scheme', '/pets/any', () => `Authorization: ${control.token('shop')}\r\n`, 900902, 401],
  ['Bearer without a token', '/pets/any', () => 'Authorization: Bearer\r\n', 900901, 401],
  ['Bearer with two words', '/pets/any', () => bearer('a b'), 900901, 401],
  ['two Authorization fields', '/pets/any', () => bearer(control.token('shop')).repeat(2), 900901, 401],
  ['an expired token', '/pets/any', () => bearer(control.token('shop', { exp: 1 })), 900901, 401],
  ['an API key as an access token', '/pets/any', () => bearer(control.apiKey('shop')), 900901, 401],
  ['an opaque token without a control thread', '/pets/any', () => bearer('0123456789abcdef'), 900900, 500],
  [
    'an application token at a user resource',
    '/pets/user',
    () => bearer(control.token('shop', { aut: 'APPLICATION' })),
    900905,
    401,
  ],
  ['a user token at an application resource', '/pets/application', () => bearer(control.token('shop')), 900905, 401],
  [
    'an application token at an application resource',
    '/pets/application',
    () => bearer(control.token('shop', { aut: 'APPLICATION' })),
    0,
    200,
  ],
  ['a consumer key without an application', '/pets/any', () => bearer(control.token('unsubscribed')), 900908, 403],
  [
    'a token with one of two scopes',
    '/pets/scoped',
    () => bearer(control.token('shop', { scope: 'write other' })),
    0,
    200,
  ],
  [
    'a token without any of two scopes',
    '/pets/scoped',
    () => bearer(control.token('shop', { scope: 'other' })),
    900910,
    403,
  ],
  ['a token with a list of scopes', '/pets/scoped', () => bearer(control.token('shop', { scope: ['read'] })), 0, 200],
  ['a resource with a scope that needs no grant', '/pets/free', () => bearer(control.token('shop')), 0, 200],
  ['an unknown resource', '/pets/nothing', () => '', 900906, 403],
  ['an unknown method', 'PUT /pets/any', () => '', 405, 405],
  [
    'a token in the field that the API configures',
    '/own/any',
    () => bearer(control.token('shop'), 'X-Own-Auth'),
    0,
    200,
  ],
  [
    'a token in Authorization of an API with another field',
    '/own/any',
    () => bearer(control.token('shop')),
    900902,
    401,
  ],
  ['a request without credentials to an API without operations', '/everything/at/all', () => '', 900902, 401],
  ['a valid token for an API without operations', '/everything/at/all', () => bearer(control.token('shop')), 0, 200],
]

describe('fault codes 900900 to 900911', () => {
  for (const [name, target, fields, code, status] of CASES) {
    test(`${name} ${code === 0 ? 'is served' : `gets ${code}`}`, () => assertCode(target, fields(), code, status))
  }

  for (const [status, code, http] of [
    ['BLOCKED', 900907, 401],
    ['PROD_ONLY_BLOCKED', 900907, 401],
    ['ON_HOLD', 900909, 401],
    ['REJECTED', 900909, 401],
    ['ACTIVE', 0, 200],
  ] as const) {
    test(`a subscription that becomes ${status} takes effect with the next request, for a cached token`, async () => {
      control.subscribe('moody', 'pets:1.0.0')
      const fields = bearer(control.token('moody'))
      await assertCode('/pets/any', fields, 0, 200)
      control.subscribe('moody', 'pets:1.0.0', status)
      await assertCode('/pets/any', fields, code, http)
    })
  }

  test('a revoked token is refused with the next request', async () => {
    const fields = bearer(control.token('shop', { jti: 'revoked' }))
    await assertCode('/pets/any', fields, 0, 200)
    control.revoke('revoked')
    await assertCode('/pets/any', fields, 900901, 401)
  })

  test('a sandbox key for an API without sandbox endpoints gets 401 with 900901', async () => {
    control.subscribe('sandbox', 'pets:1.0.0', 'ACTIVE', 'SANDBOX' as 'PRODUCTION')
    const { code, status, description, challenge } = await outcome('/pets/any', bearer(control.token('sandbox')))
    assert.deepEqual([code, status, description], [900901, 401, 'The API has no endpoint for keys of this type'])
    assert.match(challenge, /^Bearer realm="Sluice", error="invalid_token"/)
  })
})

test('RFC 6750 3.1: a challenge names an error only if the request had credentials', async () => {
  const missing = await outcome('/pets/any')
  assert.equal(missing.challenge, 'Bearer realm="Sluice"')
  assert.match(missing.description, /has a header: 'Authorization: Bearer ACCESS_TOKEN'$/)
  const invalid = await outcome('/pets/any', bearer(`${control.token('shop')}A`))
  assert.match(invalid.challenge, /^Bearer realm="Sluice", error="invalid_token", error_description="[^"\\]+"$/)
  const scope = await outcome('/pets/scoped', bearer(control.token('shop')))
  assert.match(scope.challenge, /error="insufficient_scope"/)
  assert.match((await outcome('/own/any')).description, /'X-Own-Auth: Bearer ACCESS_TOKEN'/)
  assert.match((await outcome('/keys/any')).description, /has a header: 'apikey: API_KEY'/)
  assert.equal((await outcome('/basic/any')).challenge, 'Basic realm="Sluice", charset="UTF-8"')
  assert.match((await outcome('/both/any')).challenge, /^Bearer realm="Sluice", Basic realm/)
})

test('every forged token gets 900901, and the genuine token is still served', async () => {
  const claims = control.claims('shop')
  const genuineParts = {
    claims,
    signer: control.signer,
    otherIssuer: 'https://other',
    otherSigner: tokenSigner('ES256', 'key-2'),
  }
  const genuine = bearer(control.token('shop', claims))
  await assertCode('/pets/any', genuine, 0, 200)
  // The control thread knows no opaque token.
  control.handlers = { introspect: () => null, key: () => true }
  const client = await connectPeer(gateway.port)
  const before = backend.requests.length
  for (const { name, token } of forgedTokens({ ...genuineParts, hasAudience: false, lowS: true, nowMs: Date.now() })) {
    const response = await sendRequest(client, 'GET /pets/any', bearer(token))
    assert.deepEqual([response.status, JSON.parse(response.body).fault.code], [401, 900901], name)
  }
  client.destroy()
  control.handlers = {}
  assert.equal(backend.requests.length, before)
  await assertCode('/pets/any', genuine, 0, 200)
})

/** Enough requests with the same fields for the gateway to keep them. */
const REPEATS = 6

test('a token in fields that a client repeats ends with its revocation and its subscription', async () => {
  const ends: readonly (readonly [name: string, jti: string, end: () => void, code: number])[] = [
    ['revoked', 'memo-1', () => control.revoke('memo-1'), 900901],
    ['blocked', 'memo-2', () => control.subscribe('shop', 'pets:1.0.0', 'BLOCKED'), 900907],
  ]
  for (const [name, jti, end, code] of ends) {
    const fields = bearer(control.token('shop', { ...control.claims('shop'), jti }))
    const client = await connectPeer(gateway.port)
    const status = async (target: string) => {
      const response = await sendRequest(client, `GET ${target}`, fields)
      return response.status === 200 ? 0 : JSON.parse(response.body).fault.code
    }
    for (let i = 0; i < REPEATS; i++) assert.equal(await status('/pets/any'), 0, name)
    // The same fields at an API that takes tokens in another field.
    assert.equal(await status('/own/any'), 900902, name)
    assert.equal(await status('/pets/any'), 0, name)
    end()
    assert.equal(await status('/pets/any'), code, name)
    client.destroy()
    control.subscribe('shop', 'pets:1.0.0')
  }
})

test('1000 concurrent requests with one new opaque token cause one introspection', async () => {
  const wait = Promise.withResolvers<void>()
  control.calls.length = 0
  const expiresMs = Date.now() + 60_000
  control.handlers = {
    introspect: async () => {
      await wait.promise
      const result = { issuer: OWN_ISSUER.issuer, consumerKey: 'shop', user: 'alice', isApplication: false }
      return { ...result, scopes: [], notBeforeMs: 0, expiresMs, claims: {} }
    },
  }
  const clients = await Promise.all(Array.from({ length: 100 }, () => connectPeer(gateway.port)))
  const request = `GET /pets/any HTTP/1.1\r\nHost: h\r\n${bearer('opaque-and-new')}\r\n`
  for (const client of clients) client.send(request.repeat(10))
  await eventually('the introspection', () => control.calls.length > 0)
  wait.resolve()
  await Promise.all(
    clients.map(client => eventually('ten responses', () => client.text.split('\r\n\r\nok').length === 11)),
  )
  assert.deepEqual(
    control.calls.map(({ kind }) => kind),
    ['introspect'],
  )
  for (const client of clients) client.destroy()
  control.handlers = {}
})

test('interleaved requests of two connections each get the grant of their own token', async () => {
  const wait = Promise.withResolvers<void>()
  control.calls.length = 0
  const expiresMs = Date.now() + 60_000
  control.handlers = {
    introspect: async () => {
      await wait.promise
      const result = { issuer: OWN_ISSUER.issuer, consumerKey: 'shop', user: 'alice', isApplication: false }
      return { ...result, scopes: ['read'], notBeforeMs: 0, expiresMs, claims: {} }
    },
  }
  const [waiting, passing] = await Promise.all([connectPeer(gateway.port), connectPeer(gateway.port)])
  const reader = bearer('opaque-reader')
  const withoutScope = bearer(control.token('shop'))
  const target = 'GET /pets/scoped'
  const first = sendRequest(waiting, target, reader)
  await eventually('the introspection', () => control.calls.length > 0)
  for (let turn = 0; turn < REPEATS; turn++) {
    assert.equal((await sendRequest(passing, target, withoutScope)).status, 403)
    assert.equal((await sendRequest(passing, 'GET /pets/any', withoutScope)).status, 200)
  }
  wait.resolve()
  assert.equal((await first).status, 200)
  for (let turn = 0; turn < REPEATS; turn++) {
    const fields = turn % 2 === 0 ? [reader, withoutScope] : [withoutScope, reader]
    const responses = [sendRequest(waiting, target, fields[0]!), sendRequest(passing, target, fields[1]!)]
    const expected = fields.map(one => (one === reader ? 200 : 403))
    assert.deepEqual(
      (await Promise.all(responses)).map(({ status }) => status),
      expected,
    )
  }
  waiting.destroy()
  passing.destroy()
  control.handlers = {}
})

describe('fields at the backend', () => {
  const named = (request: Awaited<ReturnType<typeof outcome>>['forwarded'], name: string) =>
    request!.lines.filter(line => line.toLowerCase().startsWith(`${name}:`)).map(line => line.slice(name.length + 2))

  test('Authorization is stripped, also for a resource without authentication', async () => {
    const { forwarded } = await outcome('/pets/any', `${bearer(control.token('shop'))}X-Other: 1\r\n`)
    assert.deepEqual([named(forwarded, 'authorization'), named(forwarded, 'x-other')], [[], ['1']])
    const open = await outcome('/pets/none', bearer('secret').repeat(2))
    assert.deepEqual([open.status, named(open.forwarded, 'authorization')], [200, []])
  })

  test('Authorization is forwarded by an API without authentication schemes', async () => {
    const { forwarded } = await outcome('/open/any', 'Authorization: Basic YTpi\r\n')
    assert.deepEqual(named(forwarded, 'authorization'), ['Basic YTpi'])
  })

  test('a prototype API requires no credentials, and Authorization is stripped', async () => {
    const { forwarded } = await outcome('/prototype/user', bearer('whatever'))
    assert.deepEqual(named(forwarded, 'authorization'), [])
  })

  test('the configured field of an API is stripped, and Authorization is forwarded', async () => {
    const { forwarded } = await outcome(
      '/own/any',
      `${bearer(control.token('shop'), 'x-own-auth')}Authorization: mine\r\n`,
    )
    assert.deepEqual([named(forwarded, 'x-own-auth'), named(forwarded, 'authorization')], [[], ['mine']])
  })

  test('enable_outbound_auth_header forwards Authorization from the next request on', async () => {
    const fields = bearer(control.token('shop'))
    const passing = { issuers: [OWN_ISSUER], forwardsAuthField: true }
    const { auth } = gateway.plan
    await gateway.deploy({ auth: { ...auth, ...passing } })
    const { forwarded } = await outcome('/pets/any', fields)
    assert.deepEqual(named(forwarded, 'authorization'), [fields.trim().slice('Authorization: '.length)])
    await gateway.deploy({ auth })
    assert.deepEqual(named((await outcome('/pets/any', fields)).forwarded, 'authorization'), [])
  })
})

test('a preflight request needs no credentials, and the fault has CORS fields', async () => {
  const client = await connectPeer(gateway.port)
  const preflight = await sendRequest(
    client,
    'OPTIONS /page/any',
    'Origin: https://a\r\nAccess-Control-Request-Method: GET\r\n',
  )
  assert.equal(preflight.status, 200)
  const refused = await sendRequest(client, 'GET /page/any', 'Origin: https://a\r\n')
  assert.deepEqual([refused.status, refused.fields.get('access-control-allow-origin')], [401, ['*']])
  client.destroy()
})
