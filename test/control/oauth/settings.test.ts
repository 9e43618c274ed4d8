/** Effects of the keys of `[oauth]`: each is set to a value other than its default. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose'
import { RegistryUnavailable } from '../../../src/control/registry/registry-errors.ts'
import { ADMIN_PASSWORD, Browser, basic, type RunningKeyManager, startKeyManager, USER } from './running-key-manager.ts'

const PASSWORD = { grant_type: 'password', username: USER.name, password: USER.password }
const CREDENTIALS = { grant_type: 'client_credentials' }

let at: RunningKeyManager
let nowMs = Date.now()

before(async () => {
  at = await startKeyManager({
    now: () => nowMs,
    sets: [
      'apim.cache.gateway_token.enable=false',
      'apim.cache.km_token.enable=true',
      'apim.cache.km_token.expiry_time=60',
      'oauth.grant_type.authorization_code.enable=false',
      'oauth.grant_type.jwt_bearer.enable=false',
      'oauth.grant_type.client_credentials.allow_refresh_tokens=true',
      'oauth.grant_type.client_credentials.allow_id_token=true',
      'oauth.token_validation.app_access_token_validity=100',
      'oauth.token_validation.user_access_token_validity=200',
      'oauth.token_validation.refresh_token_validity=300',
      'oauth.oidc.token_validation.id_token_validity=400',
      'oauth.oidc.user_info.response_type=jwt',
      'oauth.oidc.id_token.redirect_error_page=false',
      'oauth.additional_params_from_error_url=true',
      'oauth.oidc.claims.enable_unmapped_user_attributes=true',
      'oauth.signing_key.lifetime=1h',
      'oauth.allowed_scopes=shop_.*',
      'oauth.rate_limit.per_client=8',
      'oauth.rate_limit.per_address=40',
    ],
  })
})
after(() => at[Symbol.asyncDispose]())

async function given(fields: Readonly<Record<string, string>>) {
  const { client, secret } = await at.client()
  const own = basic(client.consumerKey, secret)
  return { own, body: (await at.post('/oauth2/token', fields, own)).body }
}

test('token lives are configured per kind of token and subject', async () => {
  const application = await given({ ...CREDENTIALS, scope: 'openid shop_floor' })
  assert.deepEqual([application.body.expires_in, application.body.scope], [100, 'openid shop_floor'])
  const identity = decodeJwt(String(application.body.id_token))
  assert.equal(identity.exp! - identity.iat!, 400)
  const user = await given(PASSWORD)
  assert.equal(user.body.expires_in, 200)
  const refresh = { grant_type: 'refresh_token', refresh_token: String(user.body.refresh_token) }
  nowMs += 299_000
  const renewed = await at.post('/oauth2/token', refresh, user.own)
  assert.equal(renewed.status, 200, renewed.text)
  nowMs += 300_000
  const late = { ...refresh, refresh_token: String(renewed.body.refresh_token) }
  assert.equal((await at.post('/oauth2/token', late, user.own)).body.error, 'invalid_grant')
})

test('a scope with a space within does not pass for one that a pattern allows', async () => {
  const { client } = await at.client()
  const { access_token, scope } = await at.manager.issueApplicationToken(client.consumerKey, ['shop_a other', 'shop_b'])
  assert.deepEqual([scope, decodeJwt(access_token).scope], ['shop_a shop_b', 'shop_a shop_b'])
  const malformed = at.manager.issueApplicationToken(client.consumerKey, ['shop_"'])
  await assert.rejects(malformed, { code: 'invalid_scope' })
})

test('client_credentials.allow_refresh_tokens lets an application refresh its token', async () => {
  const { own, body } = await given(CREDENTIALS)
  const refresh = { grant_type: 'refresh_token', refresh_token: String(body.refresh_token) }
  const renewed = await at.post('/oauth2/token', refresh, own)
  assert.equal(decodeJwt(String(renewed.body.access_token)).aut, 'APPLICATION')
})

test('user info can be a signed JWT with the attribute names of the user store', async () => {
  const { body } = await given({ ...PASSWORD, scope: 'openid profile' })
  const headers = { authorization: `Bearer ${body.access_token}` }
  const answer = await at.fetch(`${at.origin}/oauth2/userinfo`, { headers })
  assert.equal(answer.headers.get('content-type'), 'application/jwt')
  const keys = createLocalJWKSet({ keys: [...at.manager.issuerKeys.keys] })
  const { payload } = await jwtVerify(await answer.text(), keys, { currentDate: new Date(nowMs) })
  const { sub, 'http://wso2.org/claims/department': department, 'http://wso2.org/claims/givenname': name } = payload
  assert.deepEqual([sub, department, name], ['alice@carbon.super', 'Sales', 'Alice'])
  assert.equal(payload.constructor, 'Daimler')
})

test('a disabled grant is unsupported and absent from the metadata', async () => {
  const { client, secret } = await at.client()
  const asked = { grant_type: 'authorization_code', code: 'x' }
  const answer = await at.post('/oauth2/token', asked, basic(client.consumerKey, secret))
  assert.equal(answer.body.error, 'unsupported_grant_type')
  const found = await (await at.fetch(`${at.origin}/.well-known/openid-configuration`)).json()
  const { grant_types_supported } = found as { readonly grant_types_supported: readonly string[] }
  assert.deepEqual(grant_types_supported, ['client_credentials', 'password', 'refresh_token'])
})

test('without redirect_error_page an unverifiable request gets the error page directly', async () => {
  const shown = await new Browser(at).open(`${at.origin}/oauth2/authorize?client_id=nobody&state=s`)
  assert.deepEqual([shown.status, shown.location], [400, ''])
  assert.match(shown.text, /Application: nobody/)
})

test('introspection responses are cached until any revocation', async () => {
  const { own, body } = await given(PASSWORD)
  const ask = { token: String(body.access_token) }
  const account = basic('admin', ADMIN_PASSWORD)
  const { find } = at.registry.tokens
  assert.equal((await at.post('/oauth2/introspect', ask, account)).body.active, true)
  let asked = 0
  at.registry.tokens.find = token => {
    asked++
    return find.call(at.registry.tokens, token)
  }
  assert.equal((await at.post('/oauth2/introspect', ask, account)).body.active, true)
  assert.equal(asked, 0)
  await at.post('/oauth2/revoke', ask, own)
  assert.equal((await at.post('/oauth2/introspect', ask, account)).body.active, false)
})

test('a token that is revoked during its introspection is not cached as active', async () => {
  const { own, body } = await given(PASSWORD)
  const ask = { token: String(body.access_token) }
  const account = basic('admin', ADMIN_PASSWORD)
  const { find } = at.registry.tokens
  const found = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  at.registry.tokens.find = async token => {
    at.registry.tokens.find = find
    const known = await find.call(at.registry.tokens, token)
    found.resolve()
    await goOn.promise
    return known
  }
  const slow = at.post('/oauth2/introspect', ask, account)
  await found.promise
  await at.post('/oauth2/revoke', ask, own)
  goOn.resolve()
  await slow
  assert.equal((await at.post('/oauth2/introspect', ask, account)).body.active, false)
})

test('an inactive introspection response is cached for at most ten seconds', async () => {
  const account = basic('admin', ADMIN_PASSWORD)
  const ask = { token: 'nobody-has-made-it' }
  const { find } = at.registry.tokens
  let asked = 0
  at.registry.tokens.find = token => {
    asked++
    return find.call(at.registry.tokens, token)
  }
  for (const passedMs of [0, 9_999, 1]) {
    nowMs += passedMs
    assert.equal((await at.post('/oauth2/introspect', ask, account)).body.active, false)
  }
  Reflect.deleteProperty(at.registry.tokens, 'find')
  assert.equal(asked, 2)
})

test('maintenance removes expired tokens and rotates an old signing key', async () => {
  const { body } = await given(CREDENTIALS)
  const [before] = at.manager.issuerKeys.keys
  // Maintenance by its timer may have published the first key.
  const told = at.keysTold.filter(({ keys }) => keys.length > 1).length
  nowMs += 3_700_000
  await at.manager.runMaintenance()
  assert.equal(await at.registry.tokens.find(String(body.access_token)), null)
  const kids = at.manager.issuerKeys.keys.map(({ kid }) => kid)
  assert.notEqual(kids[0], before!.kid)
  assert.equal(kids[1], before!.kid)
  const fresh = () => at.keysTold.filter(({ keys }) => keys.length > 1).length - told
  assert.equal(fresh(), 1)
  await at.manager.runMaintenance()
  assert.equal(fresh(), 1)
})

test('an unavailable registry is a 503 that does not reveal the cause', async () => {
  at.registry.clients.get = async () => Promise.reject(new RegistryUnavailable('planted-cause'))
  for (const path of ['/oauth2/authorize?client_id=x', '/oauth2/authorize?client_id=y']) {
    const answer = await at.fetch(`${at.origin}${path}`)
    assert.equal(answer.status, 503)
    assert.ok(!(await answer.text()).includes('planted-cause'))
  }
  const answer = await at.post('/oauth2/token', { ...CREDENTIALS, client_id: 'x' })
  assert.deepEqual([answer.status, answer.body.error], [503, 'temporarily_unavailable'])
  assert.match(at.logged.join('\n'), /the registry is unavailable.*planted-cause/)
  Reflect.deleteProperty(at.registry.clients, 'get')
})

test('requests beyond the limit of a client or an address get 429 with Retry-After', async () => {
  const { own } = await given(CREDENTIALS)
  const statuses: number[] = []
  for (let request = 0; request < 8; request++) statuses.push((await at.post('/oauth2/token', CREDENTIALS, own)).status)
  assert.deepEqual(statuses, [200, 200, 200, 200, 200, 200, 200, 429])
  const asks = () => at.post('/oauth2/introspect', { token: 'x' }, own)
  for (let request = 0; request < 50; request++)
    assert.equal((await asks()).status, 200, 'introspection has no limit per client')
  let refused = await at.post('/oauth2/introspect', { token: 'x' })
  for (let request = 0; request < 40 && refused.status === 401; request++) {
    refused = await at.post('/oauth2/introspect', { token: 'x' })
  }
  assert.equal(refused.status, 429)
  let last = await at.post('/oauth2/token', {})
  for (let request = 0; request < 40 && last.status !== 429; request++) last = await at.post('/oauth2/token', {})
  assert.equal(last.status, 429)
  assert.match(last.headers.get('retry-after') ?? '', /^\d+$/)
})
