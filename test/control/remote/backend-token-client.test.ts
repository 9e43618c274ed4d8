/** Access tokens for backends (RFC 6749 4.4): caching, renewal, and token endpoints that misbehave. */
import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import type { BackendTokenPlan } from '../../../src/auth/auth-plan.ts'
import { BackendTokenClient } from '../../../src/control/remote/backend-token-client.ts'
import { HttpClient } from '../../../src/control/remote/http-client.ts'
import { json, MISBEHAVIOURS, MisbehavingServer } from './misbehaving-server.ts'

const server = await MisbehavingServer.listen()
const SETTINGS = { requestsMax: 100, perHostMax: 50, idleMax: 100, waitingMax: 1024, trust: {}, ownCertificates: [] }
/** No request of a test takes as long as this limit, on any machine. */
const client = new HttpClient(SETTINGS, { requestMs: 60_000 })
/** For servers that send no whole response. */
const impatient = new HttpClient(SETTINGS, { requestMs: 500 })
const PLAN: BackendTokenPlan = {
  key: 'production /orders',
  tokenUrl: `${server.origin}/token`,
  clientId: 'a client',
  clientSecret: 's:cr%t',
  scopes: ['a', 'b'],
  parameters: { audience: 'orders' },
}
let issuedCount = 0

beforeEach(() => {
  server.received.length = 0
  server.answer = (response, request) =>
    json({ access_token: `token-${++issuedCount}`, token_type: 'bearer', expires_in: 3600 })(response, request)
})

after(async () => {
  server.close()
  await Promise.all([client.close(), impatient.close()])
})

function tokensOf(plan = PLAN, http: Pick<HttpClient, 'send'> = client): BackendTokenClient {
  const tokens = new BackendTokenClient(http)
  tokens.configure([plan])
  return tokens
}

test('RFC 6749 4.4: one request serves all callers, and its token is cached', async () => {
  const tokens = tokensOf()
  const issued = await Promise.all(Array.from({ length: 50 }, () => tokens.get(PLAN.key, '')))
  assert.equal(new Set(issued.map(({ token }) => token)).size, 1)
  assert.ok(Math.abs(issued[0]!.expiresMs - Date.now() - 3_600_000) < 5000)
  await tokens.get(PLAN.key, '')
  const authorization = `Basic ${Buffer.from('a+client:s%3Acr%25t').toString('base64')}`
  const body = 'audience=orders&scope=a+b&grant_type=client_credentials'
  assert.deepEqual(server.received, [{ path: '/token', authorization, body }])
})

test('a token that a backend rejected is replaced once for all callers that report it', async () => {
  const tokens = tokensOf()
  const { token: first } = await tokens.get(PLAN.key, '')
  const issued = await Promise.all([1, 2, 3].map(() => tokens.get(PLAN.key, first)))
  assert.notEqual(issued[0]!.token, first)
  assert.equal(new Set(issued.map(({ token }) => token)).size, 1)
  assert.equal((await tokens.get(PLAN.key, first)).token, issued[0]!.token)
  assert.equal(server.received.length, 2)
})

test('a token that is about to expire is requested again', async () => {
  server.answer = json({ access_token: 'short', token_type: 'Bearer', expires_in: 0 })
  const tokens = tokensOf()
  await tokens.get(PLAN.key, '')
  await tokens.get(PLAN.key, '')
  assert.equal(server.received.length, 2)
})

test('a reload drops the token of an endpoint whose settings changed and keeps the others', async () => {
  const tokens = tokensOf()
  const { token } = await tokens.get(PLAN.key, '')
  tokens.configure([{ ...PLAN }])
  assert.equal((await tokens.get(PLAN.key, '')).token, token)
  tokens.configure([{ ...PLAN, clientSecret: 'other' }])
  assert.notEqual((await tokens.get(PLAN.key, '')).token, token)
  tokens.configure([])
  await assert.rejects(tokens.get(PLAN.key, ''), /the backend is unknown/)
})

for (const [what, answer, cause] of [
  ...MISBEHAVIOURS,
  ['rejects the credentials', json({ error: 'invalid_client' }, 401), /status 401/],
  ['returns no token', json({ token_type: 'Bearer' }), /no valid access_token/],
  ['returns a token of two lines', json({ access_token: 'a\r\nb', token_type: 'Bearer' }), /no valid access_token/],
  ['returns another token type', json({ access_token: 'a', token_type: 'mac' }), /other than Bearer/],
  [
    'returns an expires_in that is no number',
    json({ access_token: 'a', token_type: 'Bearer', expires_in: 'soon' }),
    /expires_in/,
  ],
] as const) {
  test(`a token endpoint that ${what} fails the request in bounded time, and is asked again`, async () => {
    server.answer = answer
    let http = cause.test('no response within') ? impatient : client
    const tokens = tokensOf(PLAN, { send: request => http.send(request) })
    await assert.rejects(tokens.get(PLAN.key, ''), { name: 'ControlCallFailed', message: cause })
    server.answer = json({ access_token: 'good', token_type: 'Bearer' })
    http = client
    assert.equal((await tokens.get(PLAN.key, '')).token, 'good')
  })
}

test('RFC 6749 6: a replaced refresh token is used from then on, and forgotten with its endpoint', async () => {
  server.answer = (response, request) =>
    json({
      ...{ access_token: `token-${++issuedCount}`, token_type: 'bearer', expires_in: 0 },
      refresh_token: `r-${server.received.length + 1}`,
    })(response, request)
  const plan = { ...PLAN, scopes: [], parameters: {}, grant: { kind: 'refresh_token', refreshToken: 'r-1' } as const }
  const tokens = tokensOf(plan)
  await tokens.get(PLAN.key, '')
  await tokens.get(PLAN.key, '')
  tokens.configure([])
  tokens.configure([plan])
  await tokens.get(PLAN.key, '')
  const sent = server.received.map(({ body }) => new URLSearchParams(body).get('refresh_token'))
  assert.deepEqual(sent, ['r-1', 'r-2', 'r-1'])
})
