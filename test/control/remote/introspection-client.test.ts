/** Introspection of tokens at another key manager (RFC 7662), and responses that are refused. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { HttpClient } from '../../../src/control/remote/http-client.ts'
import { IntrospectionClient } from '../../../src/control/remote/introspection-client.ts'
import { json, MISBEHAVIOURS, MisbehavingServer } from './misbehaving-server.ts'

const server = await MisbehavingServer.listen()
const client = new HttpClient(
  { requestsMax: 100, perHostMax: 50, idleMax: 100, waitingMax: 1024, trust: {}, ownCertificates: [] },
  { requestMs: 1000 },
)
const settings = {
  serviceUrl: `${server.origin}/services/`,
  username: 'admin',
  password: 'pass:wörd',
  issuer: 'https://own.example',
}
const introspection = new IntrospectionClient(settings, { client, report: assert.fail, nowMs: () => 0 })

after(async () => {
  server.close()
  await client.close()
})

test('a token is introspected with the credentials of the gateway', async () => {
  server.answer = json({ active: true, client_id: 'key', username: 'anna', scope: 'a b', exp: 4_000_000_000, n: 1 })
  assert.deepEqual(await introspection.introspect('a-token'), {
    issuer: 'https://own.example',
    consumerKey: 'key',
    user: 'anna',
    isApplication: false,
    scopes: ['a', 'b'],
    notBeforeMs: 0,
    expiresMs: 4_000_000_000_000,
    claims: { n: 1 },
  })
  const authorization = `Basic ${Buffer.from('admin:pass:wörd').toString('base64')}`
  const body = 'token=a-token&token_type_hint=access_token'
  assert.deepEqual(server.received, [{ path: '/oauth2/introspect', authorization, body }])
})

for (const [what, answer, isApplication] of [
  ['the user is the client', { client_id: 'key', sub: 'key' }, true],
  ['there is no user', { client_id: 'key' }, true],
  ['aut is APPLICATION', { client_id: 'key', username: 'owner', aut: 'APPLICATION' }, true],
  ['aut is APPLICATION_USER', { client_id: 'key', sub: 'key', aut: 'APPLICATION_USER' }, false],
] as const) {
  test(`a token belongs to ${isApplication ? 'an application' : 'a user'} where ${what}`, async () => {
    server.answer = json({ active: true, ...answer })
    assert.equal((await introspection.introspect(what))!.isApplication, isApplication)
  })
}

test('{"active":false} means an inactive token', async () => {
  server.answer = json({ active: false })
  assert.equal(await introspection.introspect('other'), null)
})

test('nbf is passed on, because the gateway judges it with each request', async () => {
  server.answer = json({ active: true, nbf: 4_000_000_000 })
  assert.equal((await introspection.introspect('early'))!.notBeforeMs, 4_000_000_000_000)
})

for (const [what, answer, cause] of [
  ...MISBEHAVIOURS,
  ['responds with 503', json({ active: true }, 503), /status 503/],
  ['sends active as a string', json({ active: 'true' }), /whether the token is active/],
  ['sends active as a number', json({ active: 1 }), /whether the token is active/],
  ['omits active', json({}), /whether the token is active/],
  ['sends a list of scopes', json({ active: true, scope: ['a'] }), /scope is not a string/],
  ['sends exp as a string', json({ active: true, exp: '4000000000' }), /exp is not a number/],
  ['sends a negative exp', json({ active: true, exp: -1 }), /exp is not a number/],
] as const) {
  test(`a key manager that ${what} fails the call in bounded time, and no token is accepted`, async () => {
    server.answer = answer
    const begun = performance.now()
    await assert.rejects(introspection.introspect('secret-token'), (error: Error) => {
      assert.equal(error.name, 'ControlCallFailed')
      assert.match(error.message, cause)
      assert.doesNotMatch(error.message, /secret-token|pass/)
      return true
    })
    assert.ok(performance.now() - begun < 2000)
  })
}

test('a failed introspection is not cached', async () => {
  server.answer = json({}, 503)
  await assert.rejects(introspection.introspect('again'))
  server.answer = json({ active: true })
  assert.equal((await introspection.introspect('again'))!.user, '')
})

test('credentials that the key manager rejects (401) are tried once in 30 s, however many tokens wait', async () => {
  const reports: string[] = []
  let nowMs = 1000
  const held = new IntrospectionClient(settings, {
    client,
    report: (level, event, fields) => reports.push(`${level} ${event} ${JSON.stringify(fields)}`),
    nowMs: () => nowMs,
  })
  const askMany = () => Promise.allSettled(Array.from({ length: 20 }, (_, at) => held.introspect(`token-${at}`)))
  server.answer = json({ active: true }, 401)
  server.received.length = 0
  for (const one of [...(await askMany()), ...(await askMany())]) {
    assert.match(String(one.status === 'rejected' && one.reason), /rejects apim\.key_manager\.username/)
  }
  assert.equal(server.received.length, 1)
  assert.equal(reports.length, 1)
  assert.match(reports[0]!, /^error .*apim\.key_manager\.username and apim\.key_manager\.password/)
  assert.doesNotMatch(reports[0]!, /pass:w|token-/)
  server.answer = json({ active: true })
  nowMs += 29_999
  await assert.rejects(held.introspect('early'))
  nowMs += 1
  assert.ok((await askMany()).every(({ status }) => status === 'fulfilled'))
  assert.equal(server.received.length, 21)
  server.answer = json({}, 401)
  await assert.rejects(held.introspect('later'))
  await assert.rejects(held.introspect('later still'))
  assert.deepEqual([server.received.length, reports.length], [22, 2])
})
