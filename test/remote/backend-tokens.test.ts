/** Tokens that the gateway gets for backends. */
import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { BackendTokens } from '../../src/remote/backend-tokens.ts'
import { HttpClient } from '../../src/remote/http-client.ts'
import { json, MISBEHAVIOURS, MisbehavingServer } from './misbehaving-server.ts'

const server = await MisbehavingServer.listen()
const client = new HttpClient(
  { requestsMax: 100, perHostMax: 50, idleMax: 100, trust: {}, ownCertificates: [] },
  { requestMs: 1000 },
)
const PLAN = {
  key: 'production /orders',
  tokenUrl: `${server.origin}/token`,
  clientId: 'a client',
  clientSecret: 's:cr%t',
  scopes: ['a', 'b'],
  parameters: { audience: 'orders' },
}
let given = 0

beforeEach(() => {
  server.received.length = 0
  server.answer = (response, request) =>
    json({ access_token: `token-${++given}`, token_type: 'bearer', expires_in: 3600 })(response, request)
})

after(async () => {
  server.close()
  await client.close()
})

function tokensOf(plan = PLAN): BackendTokens {
  const tokens = new BackendTokens(client)
  tokens.renew([plan])
  return tokens
}

test('a token is got with the credentials of the project (RFC 6749 4.4), and kept', async () => {
  const tokens = tokensOf()
  const asked = await Promise.all(Array.from({ length: 50 }, () => tokens.get(PLAN.key, '')))
  assert.equal(new Set(asked.map(({ token }) => token)).size, 1)
  assert.ok(Math.abs(asked[0]!.expiresMs - Date.now() - 3_600_000) < 5000)
  await tokens.get(PLAN.key, '')
  const authorization = `Basic ${Buffer.from('a+client:s%3Acr%25t').toString('base64')}`
  const body = 'audience=orders&scope=a+b&grant_type=client_credentials'
  assert.deepEqual(server.received, [{ path: '/token', authorization, body }])
})

test('one that a backend has refused is replaced, once for all who say so', async () => {
  const tokens = tokensOf()
  const { token: first } = await tokens.get(PLAN.key, '')
  const asked = await Promise.all([1, 2, 3].map(() => tokens.get(PLAN.key, first)))
  assert.notEqual(asked[0]!.token, first)
  assert.equal(new Set(asked.map(({ token }) => token)).size, 1)
  assert.equal((await tokens.get(PLAN.key, first)).token, asked[0]!.token)
  assert.equal(server.received.length, 2)
})

test('one that is nearly over is asked for anew', async () => {
  server.answer = json({ access_token: 'short', token_type: 'Bearer', expires_in: 0 })
  const tokens = tokensOf()
  await tokens.get(PLAN.key, '')
  await tokens.get(PLAN.key, '')
  assert.equal(server.received.length, 2)
})

test('other terms after a reload mean another token; the same terms do not', async () => {
  const tokens = tokensOf()
  const { token } = await tokens.get(PLAN.key, '')
  tokens.renew([{ ...PLAN }])
  assert.equal((await tokens.get(PLAN.key, '')).token, token)
  tokens.renew([{ ...PLAN, clientSecret: 'other' }])
  assert.notEqual((await tokens.get(PLAN.key, '')).token, token)
  tokens.renew([])
  await assert.rejects(tokens.get(PLAN.key, ''), /no such backend/)
})

for (const [what, answer, cause] of [
  ...MISBEHAVIOURS,
  ['refuses', json({ error: 'invalid_client' }, 401), /status 401/],
  ['gives no token', json({ token_type: 'Bearer' }), /no token/],
  ['gives two lines', json({ access_token: 'a\r\nb', token_type: 'Bearer' }), /no token/],
  ['gives another type', json({ access_token: 'a', token_type: 'mac' }), /another type/],
  ['says nonsense of its end', json({ access_token: 'a', token_type: 'Bearer', expires_in: 'soon' }), /expires_in/],
] as const) {
  test(`a token endpoint that ${what} is a failure in bounded time, and is asked again`, async () => {
    server.answer = answer
    const tokens = tokensOf()
    await assert.rejects(tokens.get(PLAN.key, ''), { name: 'InquiryFailed', message: cause })
    server.answer = json({ access_token: 'good', token_type: 'Bearer' })
    assert.equal((await tokens.get(PLAN.key, '')).token, 'good')
  })
}
