/** What a key manager says of tokens, and what is made of a bad answer. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { HttpClient } from '../../src/remote/http-client.ts'
import { Introspector } from '../../src/remote/introspection.ts'
import { json, MISBEHAVIOURS, MisbehavingServer } from './misbehaving-server.ts'

const server = await MisbehavingServer.listen()
const client = new HttpClient(
  { requestsMax: 100, perHostMax: 50, idleMax: 100, trust: {}, ownCertificates: [] },
  { requestMs: 1000 },
)
const terms = {
  serviceUrl: `${server.origin}/services/`,
  username: 'admin',
  password: 'pass:wörd',
  issuer: 'https://own.example',
}
const introspector = new Introspector(terms, { client, report: assert.fail, nowMs: () => 0 })

after(async () => {
  server.close()
  await client.close()
})

test('a token is asked about with the credentials of the gateway', async () => {
  server.answer = json({ active: true, client_id: 'key', username: 'anna', scope: 'a b', exp: 4_000_000_000, n: 1 })
  assert.deepEqual(await introspector.introspect('a-token'), {
    issuer: 'https://own.example',
    consumerKey: 'key',
    user: 'anna',
    isApplication: false,
    scopes: ['a', 'b'],
    expiresMs: 4_000_000_000_000,
    claims: { n: 1 },
  })
  const authorization = `Basic ${Buffer.from('admin:pass:wörd').toString('base64')}`
  const body = 'token=a-token&token_type_hint=access_token'
  assert.deepEqual(server.received, [{ path: '/oauth2/introspect', authorization, body }])
})

for (const [what, answer, isApplication] of [
  ['its user is the client', { client_id: 'key', sub: 'key' }, true],
  ['it has no user', { client_id: 'key' }, true],
  ['it says so', { client_id: 'key', username: 'owner', aut: 'APPLICATION' }, true],
  ['it says that it is of a user', { client_id: 'key', sub: 'key', aut: 'APPLICATION_USER' }, false],
] as const) {
  test(`a token is ${isApplication ? 'of an application' : 'of a user'} where ${what}`, async () => {
    server.answer = json({ active: true, ...answer })
    assert.equal((await introspector.introspect(what))!.isApplication, isApplication)
  })
}

for (const answer of [{ active: false }, { active: true, nbf: 4_000_000_000 }]) {
  test(`${JSON.stringify(answer)} is a token that is not good`, async () => {
    server.answer = json(answer)
    assert.equal(await introspector.introspect('other'), null)
  })
}

for (const [what, answer, cause] of [
  ...MISBEHAVIOURS,
  ['has no time for us', json({ active: true }, 503), /status 503/],
  ['says "true"', json({ active: 'true' }), /whether the token is active/],
  ['says 1', json({ active: 1 }), /whether the token is active/],
  ['says nothing', json({}), /whether the token is active/],
  ['has a list of scopes', json({ active: true, scope: ['a'] }), /scope is no text/],
  ['has a text for exp', json({ active: true, exp: '4000000000' }), /exp is no number/],
  ['has a negative exp', json({ active: true, exp: -1 }), /exp is no number/],
] as const) {
  test(`a key manager that ${what} is a failure in bounded time, and nobody is let in`, async () => {
    server.answer = answer
    const begun = performance.now()
    await assert.rejects(introspector.introspect('secret-token'), (error: Error) => {
      assert.equal(error.name, 'InquiryFailed')
      assert.match(error.message, cause)
      assert.doesNotMatch(error.message, /secret-token|pass/)
      return true
    })
    assert.ok(performance.now() - begun < 2000)
  })
}

test('a failure is not remembered', async () => {
  server.answer = json({}, 503)
  await assert.rejects(introspector.introspect('again'))
  server.answer = json({ active: true })
  assert.equal((await introspector.introspect('again'))!.user, '')
})

test('credentials that the key manager refuses (401) are tried once in 30 s, however many ask', async () => {
  const reports: string[] = []
  let nowMs = 1000
  const held = new Introspector(terms, {
    client,
    report: (level, event, fields) => reports.push(`${level} ${event} ${JSON.stringify(fields)}`),
    nowMs: () => nowMs,
  })
  const askMany = () => Promise.allSettled(Array.from({ length: 20 }, (_, at) => held.introspect(`token-${at}`)))
  server.answer = json({ active: true }, 401)
  server.received.length = 0
  for (const one of [...(await askMany()), ...(await askMany())]) {
    assert.match(String(one.status === 'rejected' && one.reason), /refuses apim\.key_manager\.username/)
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
