/**
 * Who is let in, and what those are told who are not: every code of authentication over real sockets, with an authority
 * that says what the test has it say.
 */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { ResourceDefinition } from '../../src/config/api-definition.ts'
import type { AccessPlan } from '../../src/identity/identity-plan.ts'
import type { ApiPlan } from '../../src/plan.ts'
import { forgedTokens } from '../identity/forged-tokens.ts'
import { tokenSigner } from '../identity/token-maker.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { NO_ACCESS } from '../harness/api-plan.ts'
import { ask, OPEN_CORS } from '../harness/chained.ts'
import { startGateway, type TestApi } from '../harness/gateway.ts'
import { connectPeer, eventually } from '../harness/peers.ts'
import { OWN_ISSUER, ScriptedAuthority } from '../harness/scripted-authority.ts'

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

const backend = await AnsweringBackend.listen()

function api(context: string, access: Partial<AccessPlan>, unlike: Partial<ApiPlan> = {}): TestApi {
  const subject = `${context.slice(1)}:1.0.0`
  return {
    context,
    port: backend.port,
    unlike: { access: { ...NO_ACCESS, subject, schemes: ['oauth2'], ...access }, resources: OPERATIONS, ...unlike },
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
  {},
  null,
  [],
  { isChained: true, identityChanges: { issuers: [OWN_ISSUER] } },
)
const authority = new ScriptedAuthority(gateway.identity)
for (const name of ['pets', 'own', 'keys', 'both', 'everything', 'page']) authority.subscribe('shop', `${name}:1.0.0`)
after(() => {
  gateway.stop()
  backend.close()
})

/** The answer, its code (0 where it is the backend's), and what the backend saw. */
async function outcome(target: string, fields = '') {
  const client = await connectPeer(gateway.port)
  const before = backend.requests.length
  const answer = await ask(client, target.includes(' ') ? target : `GET ${target}`, fields)
  client.destroy()
  const { fault = { code: 0, description: '' } } = answer.body === 'ok' ? {} : JSON.parse(answer.body)
  const seen = backend.requests.slice(before).at(0)
  const challenge = answer.fields.get('www-authenticate')?.join() ?? ''
  return {
    status: answer.status,
    code: fault.code as number,
    description: fault.description as string,
    challenge,
    seen,
  }
}

function bearer(token: string, field = 'Authorization'): string {
  return `${field}: Bearer ${token}\r\n`
}

async function assertCode(target: string, fields: string, code: number, status: number): Promise<void> {
  const { code: got, status: gotStatus, challenge, seen } = await outcome(target, fields)
  assert.deepEqual([got, gotStatus], [code, status], `${target} ${fields.slice(0, 60)}`)
  assert.equal(challenge !== '', status === 401 || code === 900910)
  assert.equal(seen === undefined, code !== 0)
}

/** [name, target, fields, code, status]. */
type Row = readonly [name: string, target: string, fields: () => string, code: number, status: number]

const ROWS: readonly Row[] = [
  ['a good token', '/pets/any', () => bearer(authority.token('shop')), 0, 200],
  ['the scheme in any case', '/pets/any', () => `authorization: bEaReR   ${authority.token('shop')} \r\n`, 0, 200],
  ['no credentials', '/pets/any', () => '', 900902, 401],
  ['another scheme', '/pets/any', () => 'Authorization: Basic YTpi\r\n', 900902, 401],
  ['no scheme at all', '/pets/any', () => `Authorization: ${authority.token('shop')}\r\n`, 900902, 401],
  ['Bearer and nothing', '/pets/any', () => 'Authorization: Bearer\r\n', 900901, 401],
  ['two words behind Bearer', '/pets/any', () => bearer('a b'), 900901, 401],
  ['two fields', '/pets/any', () => bearer(authority.token('shop')).repeat(2), 900901, 401],
  ['a token that has expired', '/pets/any', () => bearer(authority.token('shop', { exp: 1 })), 900901, 401],
  ['a key that is no access token', '/pets/any', () => bearer(authority.apiKey('shop')), 900901, 401],
  ['an opaque token, and nobody to ask', '/pets/any', () => bearer('0123456789abcdef'), 900900, 500],
  [
    "an application at a user's",
    '/pets/user',
    () => bearer(authority.token('shop', { aut: 'APPLICATION' })),
    900905,
    401,
  ],
  ["a user at an application's", '/pets/application', () => bearer(authority.token('shop')), 900905, 401],
  [
    'an application at its own',
    '/pets/application',
    () => bearer(authority.token('shop', { aut: 'APPLICATION' })),
    0,
    200,
  ],
  ['a client without a key mapping', '/pets/any', () => bearer(authority.token('nobody')), 900908, 403],
  ['one of two scopes', '/pets/scoped', () => bearer(authority.token('shop', { scope: 'write other' })), 0, 200],
  ['none of two scopes', '/pets/scoped', () => bearer(authority.token('shop', { scope: 'other' })), 900910, 403],
  ['scopes as a list', '/pets/scoped', () => bearer(authority.token('shop', { scope: ['read'] })), 0, 200],
  ['a scope that is asked of nobody', '/pets/free', () => bearer(authority.token('shop')), 0, 200],
  ['an unknown resource', '/pets/nothing', () => '', 900906, 403],
  ['an unknown method', 'PUT /pets/any', () => '', 405, 405],
  ["a field of the API's own", '/own/any', () => bearer(authority.token('shop'), 'X-Own-Auth'), 0, 200],
  ['the usual field where there is one of its own', '/own/any', () => bearer(authority.token('shop')), 900902, 401],
  ['every path of an API without operations', '/everything/at/all', () => '', 900902, 401],
  ['the same with a token', '/everything/at/all', () => bearer(authority.token('shop')), 0, 200],
]

describe('codes 900900 to 900911', () => {
  for (const [name, target, fields, code, status] of ROWS) {
    test(`${name}: ${code === 0 ? 'passes' : code}`, () => assertCode(target, fields(), code, status))
  }

  for (const [status, code, http] of [
    ['BLOCKED', 900907, 401],
    ['PROD_ONLY_BLOCKED', 900907, 401],
    ['ON_HOLD', 900909, 401],
    ['REJECTED', 900909, 401],
    ['ACTIVE', 0, 200],
  ] as const) {
    test(`a subscription that becomes ${status} is noticed at once, with a token that is known`, async () => {
      authority.subscribe('moody', 'pets:1.0.0')
      const fields = bearer(authority.token('moody'))
      await assertCode('/pets/any', fields, 0, 200)
      authority.subscribe('moody', 'pets:1.0.0', status)
      await assertCode('/pets/any', fields, code, http)
    })
  }

  test('a token that is revoked is refused at once', async () => {
    const fields = bearer(authority.token('shop', { jti: 'gone' }))
    await assertCode('/pets/any', fields, 0, 200)
    authority.revoke('gone')
    await assertCode('/pets/any', fields, 900901, 401)
  })

  test('a sandbox key at an API without sandbox endpoints is 900901 with 403', async () => {
    authority.subscribe('sandbox', 'pets:1.0.0', 'ACTIVE', 'SANDBOX' as 'PRODUCTION')
    const { code, status, description } = await outcome('/pets/any', bearer(authority.token('sandbox')))
    assert.deepEqual([code, status, description], [900901, 403, 'The API has no endpoint for keys of this type'])
  })
})

test('RFC 6750 3.1: a challenge names an error where there were credentials, and none where none were', async () => {
  const missing = await outcome('/pets/any')
  assert.equal(missing.challenge, 'Bearer realm="Sluice"')
  assert.match(missing.description, /has a header: 'Authorization: Bearer ACCESS_TOKEN'$/)
  const invalid = await outcome('/pets/any', bearer(`${authority.token('shop')}A`))
  assert.match(invalid.challenge, /^Bearer realm="Sluice", error="invalid_token", error_description="[^"\\]+"$/)
  const scope = await outcome('/pets/scoped', bearer(authority.token('shop')))
  assert.match(scope.challenge, /error="insufficient_scope"/)
  assert.match((await outcome('/own/any')).description, /'X-Own-Auth: Bearer ACCESS_TOKEN'/)
  assert.match((await outcome('/keys/any')).description, /has a header: 'apikey: API_KEY'/)
  assert.equal((await outcome('/basic/any')).challenge, 'Basic realm="Sluice", charset="UTF-8"')
  assert.match((await outcome('/both/any')).challenge, /^Bearer realm="Sluice", Basic realm/)
})

test('no forged token passes, known or not, and the genuine one still does', async () => {
  const claims = authority.claims('shop')
  const world = {
    claims,
    signer: authority.signer,
    otherIssuer: 'https://other',
    otherSigner: tokenSigner('ES256', 'key-2'),
  }
  const genuine = bearer(authority.token('shop', claims))
  await assertCode('/pets/any', genuine, 0, 200)
  // Opaque ones are asked about, and nobody has given them.
  authority.answers = { introspect: () => null, key: () => true }
  const client = await connectPeer(gateway.port)
  const before = backend.requests.length
  for (const { name, token } of forgedTokens({ ...world, hasAudience: false, lowS: true, nowMs: Date.now() })) {
    const answer = await ask(client, 'GET /pets/any', bearer(token))
    assert.deepEqual([answer.status, JSON.parse(answer.body).fault.code], [401, 900901], name)
  }
  client.destroy()
  authority.answers = {}
  assert.equal(backend.requests.length, before)
  await assertCode('/pets/any', genuine, 0, 200)
})

test('a thousand first calls with one new token cause one introspection', async () => {
  const wait = Promise.withResolvers<void>()
  authority.asked.length = 0
  const expiresMs = Date.now() + 60_000
  authority.answers = {
    introspect: async () => {
      await wait.promise
      const known = { issuer: OWN_ISSUER.issuer, consumerKey: 'shop', user: 'alice', isApplication: false }
      return { ...known, scopes: [], expiresMs, claims: {} }
    },
  }
  const clients = await Promise.all(Array.from({ length: 100 }, () => connectPeer(gateway.port)))
  const request = `GET /pets/any HTTP/1.1\r\nHost: h\r\n${bearer('opaque-and-new')}\r\n`
  for (const client of clients) client.send(request.repeat(10))
  await eventually('it is asked', () => authority.asked.length > 0)
  wait.resolve()
  await Promise.all(
    clients.map(client => eventually('ten answers', () => client.text.split('\r\n\r\nok').length === 11)),
  )
  assert.deepEqual(
    authority.asked.map(({ kind }) => kind),
    ['introspect'],
  )
  for (const client of clients) client.destroy()
  authority.answers = {}
})

describe('what the backend sees', () => {
  const named = (request: Awaited<ReturnType<typeof outcome>>['seen'], name: string) =>
    request!.lines.filter(line => line.toLowerCase().startsWith(`${name}:`)).map(line => line.slice(name.length + 2))

  test('Authorization ends here, on a resource that asks for nothing as well', async () => {
    const { seen } = await outcome('/pets/any', `${bearer(authority.token('shop'))}X-Other: 1\r\n`)
    assert.deepEqual([named(seen, 'authorization'), named(seen, 'x-other')], [[], ['1']])
    const open = await outcome('/pets/none', bearer('secret').repeat(2))
    assert.deepEqual([open.status, named(open.seen, 'authorization')], [200, []])
  })

  test("where nothing of an API is asked for it is the backend's", async () => {
    const { seen } = await outcome('/open/any', 'Authorization: Basic YTpi\r\n')
    assert.deepEqual(named(seen, 'authorization'), ['Basic YTpi'])
  })

  test('a prototype asks nobody, and its backend gets no credentials', async () => {
    const { seen } = await outcome('/prototype/user', bearer('whatever'))
    assert.deepEqual(named(seen, 'authorization'), [])
  })

  test("the field of an API's own ends here, and Authorization passes", async () => {
    const { seen } = await outcome(
      '/own/any',
      `${bearer(authority.token('shop'), 'x-own-auth')}Authorization: mine\r\n`,
    )
    assert.deepEqual([named(seen, 'x-own-auth'), named(seen, 'authorization')], [[], ['mine']])
  })

  test('enable_outbound_auth_header passes it as it came, from the next request on', async () => {
    const fields = bearer(authority.token('shop'))
    const passing = { issuers: [OWN_ISSUER], passesAuthField: true }
    const { identity } = gateway.plan
    await gateway.deploy({ identity: { ...identity, ...passing } })
    const { seen } = await outcome('/pets/any', fields)
    assert.deepEqual(named(seen, 'authorization'), [fields.trim().slice('Authorization: '.length)])
    await gateway.deploy({ identity })
    assert.deepEqual(named((await outcome('/pets/any', fields)).seen, 'authorization'), [])
  })
})

test('a preflight request needs no credentials, and faults say what CORS grants', async () => {
  const client = await connectPeer(gateway.port)
  const preflight = await ask(
    client,
    'OPTIONS /page/any',
    'Origin: https://a\r\nAccess-Control-Request-Method: GET\r\n',
  )
  assert.equal(preflight.status, 200)
  const refused = await ask(client, 'GET /page/any', 'Origin: https://a\r\n')
  assert.deepEqual([refused.status, refused.fields.get('access-control-allow-origin')], [401, ['*']])
  client.destroy()
})
