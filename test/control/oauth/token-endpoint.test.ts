/** `/oauth2/token`, `/oauth2/introspect` and `/oauth2/revoke`: errors, replay, forms, scopes, lockout. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { PUBLISHED_AHEAD_MS } from '../../../src/control/oauth/signing-keys.ts'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { acceptedToken, validityError } from '../../../src/auth/jwt-claims.ts'
import { parseJwt, type ParsedJwt } from '../../../src/auth/jwt-parser.ts'
import type { AcceptedToken } from '../../../src/auth/token-result.ts'
import { authPlan } from '../../../src/plan/auth-planning.ts'
import { ADMIN_PASSWORD, basic, type RunningKeyManager, startKeyManager, USER } from './running-key-manager.ts'

const TOKEN = '/oauth2/token'
const CREDENTIALS = { grant_type: 'client_credentials' }
const PASSWORD = { grant_type: 'password', username: USER.name, password: USER.password }
const ASSERTION = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

/** Only one of the two caches may be on. */
const GATEWAY_OFF = 'apim.cache.gateway_token.enable=false'

let at: RunningKeyManager
let id: string
let secret: string

/** Milliseconds by which the key manager's clock is ahead. */
let aheadMs = 0

before(async () => {
  at = await startKeyManager({
    now: () => Date.now() + aheadMs,
    sets: [
      'oauth.lockout.failures=3',
      'oauth.rate_limit.per_address=-1',
      'apim.cache.km_token.enable=true',
      GATEWAY_OFF,
    ],
    // Signatures are tested with the verifier itself.
    verifyAssertion: async assertion =>
      assertion.startsWith('trusted.') ? { issuer: 'https://idp.example', claims: claimsOf(assertion) } : null,
  })
  const started = await at.client()
  id = started.client.consumerKey
  secret = started.secret
})
after(() => at[Symbol.asyncDispose]())

function claimsOf(assertion: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(assertion.split('.')[1]!, 'base64url').toString()) as Record<string, unknown>
}

interface Row {
  readonly name: string
  readonly body?: Readonly<Record<string, string>> | string
  readonly headers?: Readonly<Record<string, string>>
  readonly path?: string
  readonly status?: number
  readonly error: string
}

test('RFC 6749 5.2: every error has its code and status, and responses are not cacheable', async () => {
  const own = basic(id, secret)
  const publicOne = (await at.client({ isPublic: true })).client.consumerKey
  const narrow = await at.client({ grants: ['password'] })
  const rows: readonly Row[] = [
    { name: 'no credentials', error: 'invalid_client', status: 401 },
    { name: 'wrong secret', headers: basic(id, 'wrong'), error: 'invalid_client', status: 401 },
    { name: 'unknown client', headers: basic('nobody', secret), error: 'invalid_client', status: 401 },
    { name: 'no secret', body: { ...CREDENTIALS, client_id: id }, error: 'invalid_client', status: 401 },
    { name: 'padding left out', headers: { authorization: 'Basic YTpi=' }, error: 'invalid_client', status: 401 },
    { name: 'Basic and body', headers: own, body: { ...CREDENTIALS, client_secret: secret }, error: 'invalid_request' },
    { name: 'two clients', headers: own, body: { ...CREDENTIALS, client_id: publicOne }, error: 'invalid_request' },
    { name: 'no grant', headers: own, body: {}, error: 'invalid_request' },
    { name: 'unknown grant', headers: own, body: { grant_type: 'toString' }, error: 'unsupported_grant_type' },
    { name: 'SAML', headers: own, body: { grant_type: 'saml_bearer' }, error: 'unsupported_grant_type' },
    {
      name: 'grant not registered',
      headers: basic(narrow.client.consumerKey, narrow.secret),
      error: 'unauthorized_client',
    },
    { name: 'public client', body: { ...CREDENTIALS, client_id: publicOne }, error: 'unauthorized_client' },
    { name: 'scope', headers: own, body: { ...CREDENTIALS, scope: 'a"b' }, error: 'invalid_scope' },
    { name: 'twice', headers: own, body: 'grant_type=client_credentials&scope=a&scope=b', error: 'invalid_request' },
    { name: 'twice, one empty', headers: own, body: 'grant_type=&grant_type=password', error: 'invalid_request' },
    { name: 'not UTF-8', headers: own, body: 'grant_type=%ff', error: 'invalid_request' },
    { name: 'half an escape', headers: own, body: 'grant_type=%4', error: 'invalid_request' },
    { name: 'in the address', headers: own, path: `${TOKEN}?grant_type=client_credentials`, error: 'invalid_request' },
    { name: 'JSON', headers: { ...own, 'content-type': 'application/json' }, body: '{}', error: 'invalid_request' },
    { name: 'too long', headers: own, body: `a=${'x'.repeat(65_536)}`, error: 'invalid_request', status: 413 },
    { name: 'wrong password', headers: own, body: { ...PASSWORD, password: 'wrong-Pass-1' }, error: 'invalid_grant' },
    { name: 'no such user', headers: own, body: { ...PASSWORD, username: 'bob' }, error: 'invalid_grant' },
    {
      name: 'unknown code',
      headers: own,
      body: { grant_type: 'authorization_code', code: 'x' },
      error: 'invalid_grant',
    },
    {
      name: 'refresh',
      headers: own,
      body: { grant_type: 'refresh_token', refresh_token: 'x' },
      error: 'invalid_grant',
    },
    { name: 'assertion', headers: own, body: { grant_type: ASSERTION, assertion: 'a.b.c' }, error: 'invalid_grant' },
  ]
  for (const { name, body = CREDENTIALS, headers = {}, path = TOKEN, status = 400, error } of rows) {
    const answer = await at.post(path, body, headers)
    assert.deepEqual([answer.status, answer.body.error], [status, error], `${name}: ${answer.text}`)
    assert.equal(answer.headers.get('cache-control'), 'no-store', name)
    const challenge = answer.headers.get('www-authenticate')
    assert.equal(challenge?.startsWith('Basic ') ?? false, status === 401, name)
  }
})

test('RFC 6749 2.3.1: credentials in Basic are form-decoded', async () => {
  const pair = `${id.replaceAll('-', '%2D')}:${encodeURIComponent(secret)}`
  const authorization = `Basic ${Buffer.from(pair).toString('base64')}`
  assert.equal((await at.post(TOKEN, CREDENTIALS, { authorization })).status, 200)
  assert.equal((await at.post(TOKEN, { ...CREDENTIALS, client_id: id, client_secret: secret })).status, 200)
})

test('RFC 9700 4.14.2: a replayed refresh token revokes all tokens of its authorisation', async () => {
  const own = basic(id, secret)
  const first = await at.post(TOKEN, PASSWORD, own)
  const refresh = { grant_type: 'refresh_token', refresh_token: String(first.body.refresh_token) }
  const other = await at.client()
  const stolen = await at.post(TOKEN, refresh, basic(other.client.consumerKey, other.secret))
  assert.equal(stolen.body.error, 'invalid_grant')
  const second = await at.post(TOKEN, refresh, own)
  assert.equal(second.status, 200, 'an attempt by another client does not consume it')
  const revoked: string[] = []
  at.registry.listener = {
    subscriptionsChanged: () => {},
    tokensRevoked: tokens => void revoked.push(...tokens.map(({ key }) => key)),
  }
  assert.equal((await at.post(TOKEN, refresh, own)).body.error, 'invalid_grant')
  const last = { ...refresh, refresh_token: String(second.body.refresh_token) }
  assert.equal((await at.post(TOKEN, last, own)).body.error, 'invalid_grant')
  const given = [first, second].map(({ body }) => decodeJwt(String(body.access_token)).jti!)
  assert.deepEqual(revoked.toSorted(), given.toSorted())
  assert.match(at.logged.join('\n'), /refresh token replayed/)
})

test('of two concurrent uses of a refresh token at most one succeeds', async () => {
  const own = basic(id, secret)
  const first = await at.post(TOKEN, PASSWORD, own)
  const refresh = { grant_type: 'refresh_token', refresh_token: String(first.body.refresh_token) }
  const both = await Promise.all([at.post(TOKEN, refresh, own), at.post(TOKEN, refresh, own)])
  assert.ok(both.filter(({ status }) => status === 200).length <= 1)
})

test('a refresh never grants more scopes than the original grant', async () => {
  const own = basic(id, secret)
  const first = await at.post(TOKEN, { ...PASSWORD, scope: 'orders:any' }, own)
  const refresh = { grant_type: 'refresh_token', refresh_token: String(first.body.refresh_token) }
  const more = await at.post(TOKEN, { ...refresh, scope: 'orders:any orders:read' }, own)
  assert.equal(more.body.error, 'invalid_scope')
  assert.equal((await at.post(TOKEN, refresh, own)).body.scope, 'orders:any')
})

test('scopes are granted by role, and patterns never override role bindings of APIs', async () => {
  const own = basic(id, secret)
  const asked = 'orders:read orders:write device_7 nonsense apim:admin'
  assert.equal((await at.post(TOKEN, { ...PASSWORD, scope: asked }, own)).body.scope, 'orders:read device_7')
  const application = await at.post(TOKEN, { ...CREDENTIALS, scope: asked }, own)
  assert.equal(application.body.scope, 'orders:write device_7 apim:admin')
  assert.equal((await at.post(TOKEN, CREDENTIALS, own)).body.scope, 'default')
})

test('an opaque token can be introspected by its client and administrators, and revoked by its client', async () => {
  const opaque = await at.client({ tokenType: 'OPAQUE', validityS: 60 })
  const own = basic(opaque.client.consumerKey, opaque.secret)
  const given = await at.post(TOKEN, PASSWORD, own)
  assert.match(String(given.body.access_token), /^[\w-]{43}$/)
  assert.equal(given.body.expires_in, 60)
  const ask = { token: String(given.body.access_token) }
  const told = await at.post('/oauth2/introspect', ask, basic('admin', ADMIN_PASSWORD))
  const { active, username, aut, client_id, token_type } = told.body
  assert.deepEqual(
    { active, username, aut, client_id, token_type },
    {
      active: true,
      username: 'alice@carbon.super',
      aut: 'APPLICATION_USER',
      client_id: opaque.client.consumerKey,
      token_type: 'Bearer',
    },
  )
  const wrong = { token: String(given.body.refresh_token) }
  assert.deepEqual((await at.post('/oauth2/introspect', wrong, own)).body, { active: false })
  assert.deepEqual((await at.post('/oauth2/introspect', wrong, basic('admin', ADMIN_PASSWORD))).body, { active: false })
  assert.equal((await at.post('/oauth2/introspect', ask)).status, 401)
  assert.equal((await at.post('/oauth2/introspect', ask, basic(USER.name, USER.password))).status, 401)
  const other = await at.client()
  const foreign = await at.post('/oauth2/revoke', ask, basic(other.client.consumerKey, other.secret))
  assert.equal(foreign.status, 200)
  assert.equal((await at.post('/oauth2/introspect', ask, own)).body.active, true)
  assert.equal((await at.post('/oauth2/revoke', ask, own)).status, 200)
  assert.deepEqual((await at.post('/oauth2/introspect', ask, own)).body, { active: false })
  assert.equal((await at.post('/oauth2/revoke', { token: 'never-given' }, own)).status, 200)
})

test('RFC 7523 3: an assertion needs our audience, a current time, and is accepted once', async t => {
  const own = basic(id, secret)
  const nowS = Math.floor(Date.now() / 1000)
  const good = { sub: 'carol', aud: `${at.origin}/oauth2/token`, exp: nowS + 60 }
  const show = (claims: object) => {
    const assertion = `trusted.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.signature`
    return at.post(TOKEN, { grant_type: ASSERTION, assertion, scope: 'orders:read orders:any' }, own)
  }
  const given = await show(good)
  assert.equal(given.body.scope, 'orders:any', 'a user of another issuer has no local role')
  assert.equal(decodeJwt(String(given.body.access_token)).sub, 'federated:https://idp.example|carol@carbon.super')
  const refused = [
    good,
    { ...good, aud: 'else' },
    { ...good, exp: nowS - 1 },
    { ...good, sub: '' },
    { ...good, nbf: nowS + 99 },
  ]
  for (const claims of refused) assert.equal((await show(claims)).body.error, 'invalid_grant', JSON.stringify(claims))
  t.mock.method(at.manager.replayCache, 'add', () => 'full')
  const full = await show({ ...good, sub: 'dave' })
  assert.deepEqual([full.status, full.body.error], [503, 'temporarily_unavailable'])
  assert.match(at.logged.join('\n'), /assertion refused: replay cache full[^\n]*https:\/\/idp\.example/)
})

test('access tokens, id tokens and API keys differ in typ', async () => {
  const given = await at.post(TOKEN, { ...PASSWORD, scope: 'openid' }, basic(id, secret))
  assert.equal(decodeProtectedHeader(String(given.body.access_token)).typ, 'at+jwt')
  assert.equal(decodeProtectedHeader(String(given.body.id_token)).typ, 'JWT')
  const application = { id: 'a-1', name: 'Shop', owner: 'alice', tenant: 'carbon.super', tier: 'Gold' }
  const terms = { application, keyType: 'SANDBOX', permittedIps: ['10.0.0.0/8'], permittedReferers: [] } as const
  const { key, jti } = await at.manager.issueApiKey({ ...terms, validityS: 60 })
  const claims = decodeJwt(key)
  assert.deepEqual(
    [claims.jti, claims.token_type, claims.keytype, claims.permittedIP, claims.application],
    [jti, 'apiKey', 'SANDBOX', '10.0.0.0/8', { id: 'a-1', uuid: 'a-1', name: 'Shop', owner: 'alice', tier: 'Gold' }],
  )
  const { access_token } = await at.manager.issueApplicationToken(id)
  assert.equal(decodeJwt(access_token).aut, 'APPLICATION')
})

test('a gateway separates user name and tenant, and refuses id tokens', async () => {
  const terms = authPlan(at.configuration).issuers[0]!
  const { body } = await at.post(TOKEN, { ...PASSWORD, scope: 'openid orders:any' }, basic(id, secret))
  const [access, identity] = [body.access_token, body.id_token].map(token => parseJwt(String(token)) as ParsedJwt)
  assert.equal(validityError(access!, terms), undefined)
  const accepted = acceptedToken(access!, terms) as AcceptedToken
  const { user, tenant, isApplication, consumerKey, scopes, apiKey } = accepted
  assert.deepEqual([user, tenant, isApplication, consumerKey, apiKey], ['alice', 'carbon.super', false, id, null])
  assert.deepEqual([...scopes], ['openid', 'orders:any'])
  assert.equal(validityError(identity!, terms), 'not an access token')
})

test('after a rotation the new key is published first, then signs, and the old key stays published', async () => {
  const before = await at.manager.issueApplicationToken(id)
  const told = at.keysTold.length
  await at.manager.rotateKeys()
  const kids = at.manager.issuerKeys.keys.map(({ kid }) => kid)
  const between = await at.manager.issueApplicationToken(id)
  aheadMs = PUBLISHED_AHEAD_MS
  const fresh = await at.manager.issueApplicationToken(id)
  aheadMs = 0
  assert.equal(at.keysTold.length, told + 1)
  assert.deepEqual(
    [fresh, between, before].map(({ access_token }) => decodeProtectedHeader(access_token).kid),
    [kids[0], kids[1], kids[1]],
  )
})

test('wrong secrets lock a client out for their address only', async () => {
  const { client, secret: right } = await at.client()
  const from = (address: string) => ({ 'x-forwarded-for': address })
  for (let failure = 0; failure < 3; failure++) {
    const answer = await at.post(TOKEN, CREDENTIALS, { ...basic(client.consumerKey, 'wrong'), ...from('192.0.2.1') })
    assert.equal(answer.status, 401)
  }
  const locked = await at.post(TOKEN, CREDENTIALS, { ...basic(client.consumerKey, right), ...from('192.0.2.1') })
  assert.equal(locked.status, 429)
  assert.match(locked.headers.get('retry-after') ?? '', /^(299|300)$/)
  const elsewhere = { ...basic(client.consumerKey, right), ...from('192.0.2.2') }
  assert.equal((await at.post(TOKEN, CREDENTIALS, elsewhere)).status, 200)
})

test('wrong secrets lock a client out for the whole IPv6 network of its address', async () => {
  const { client, secret: right } = await at.client()
  const from = (address: string) => ({ 'x-forwarded-for': address })
  for (let failure = 1; failure <= 3; failure++) {
    const answer = await at.post(TOKEN, CREDENTIALS, {
      ...basic(client.consumerKey, 'wrong'),
      ...from(`2001:db8:1:2::${failure}`),
    })
    assert.equal(answer.status, 401)
  }
  const statusFrom = async (address: string) =>
    (await at.post(TOKEN, CREDENTIALS, { ...basic(client.consumerKey, right), ...from(address) })).status
  assert.deepEqual([await statusFrom('2001:db8:1:2:3::'), await statusFrom('2001:db8:1:3::')], [429, 200])
})

test('a login under a user name that is locked for all addresses is logged', async () => {
  const { client, secret: right } = await at.client({ grants: ['password'] })
  const guess = (address: string) => {
    const fields = { grant_type: 'password', username: 'ghost', password: 'a-wrong-password' }
    return at.post(TOKEN, fields, { ...basic(client.consumerKey, right), 'x-forwarded-for': address })
  }
  const statuses: number[] = []
  for (let at = 0; at < 16; at++) statuses.push((await guess(`192.0.2.${100 + at}`)).status)
  assert.deepEqual(statuses, [...Array(15).fill(400), 429])
  assert.match(at.logged.at(-1) ?? '', /^warn login refused: user name locked .*"192\.0\.2\.115".*"ghost"/)
})

test('no log line contains a secret', () => {
  const all = at.logged.join('\n')
  assert.ok(all.length > 0)
  for (const planted of [secret, USER.password, ADMIN_PASSWORD]) assert.ok(!all.includes(planted))
})
