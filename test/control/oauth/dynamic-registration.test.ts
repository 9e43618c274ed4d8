/** Dynamic client registration (RFC 7591) and its management (RFC 7592), over TLS. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ADMIN_PASSWORD, basic, type RunningKeyManager, startKeyManager, USER } from './running-key-manager.ts'

const PATH = '/oauth2/register'
const BACK = 'https://shop.example/back'
const OWN = basic(USER.name, USER.password)

let at: RunningKeyManager
before(async () => {
  at = await startKeyManager({ sets: ['oauth.lockout.failures=3'] })
})
after(() => at[Symbol.asyncDispose]())

type Body = Record<string, unknown>

async function ask(
  method: string,
  path: string,
  fields: object | null,
  headers: Readonly<Record<string, string>> = {},
) {
  const response = await at.fetch(path.startsWith('https') ? path : `${at.origin}${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(fields !== null && { body: JSON.stringify(fields) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: (text === '' ? {} : JSON.parse(text)) as Body }
}

function bearer(token: unknown): { readonly authorization: string } {
  return { authorization: `Bearer ${String(token)}` }
}

async function registered(fields: object = { redirect_uris: [BACK] }): Promise<Body> {
  const { status, body } = await ask('POST', PATH, fields, OWN)
  assert.equal(status, 201, JSON.stringify(body))
  return body
}

test('the metadata that is omitted has the defaults of RFC 7591 2, and the response lists all of it', async () => {
  const { status, headers, body } = await ask('POST', PATH, { redirect_uris: [BACK], unknown_member: 1 }, OWN)
  assert.equal(status, 201)
  assert.match(headers.get('cache-control')!, /no-store/)
  const { client_id, client_secret, client_id_issued_at, registration_access_token, registration_client_uri, ...rest } =
    body
  assert.deepEqual(rest, {
    client_secret_expires_at: 0,
    client_name: 'client',
    redirect_uris: [BACK],
    grant_types: ['authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: 'client_secret_basic',
    post_logout_redirect_uris: [],
  })
  assert.equal(registration_client_uri, `${at.origin}${PATH}/${String(client_id)}`)
  for (const secret of [client_secret, registration_access_token]) assert.match(String(secret), /^[\w-]{43}$/)
  assert.ok(Math.abs(Number(client_id_issued_at) - Date.now() / 1000) < 60)
})

test('a confidential client uses its secret, a public one has none', async () => {
  const { client_id, client_secret } = await registered({
    grant_types: ['client_credentials'],
    token_endpoint_auth_method: 'client_secret_post',
  })
  const form = { grant_type: 'client_credentials', client_id: String(client_id), client_secret: String(client_secret) }
  assert.equal((await at.post('/oauth2/token', form)).status, 200)
  const open = await registered({ redirect_uris: ['com.shop.app:/back'], token_endpoint_auth_method: 'none' })
  assert.deepEqual([open.client_secret, open.client_secret_expires_at], [undefined, undefined])
  assert.equal(open.token_endpoint_auth_method, 'none')
})

const REFUSED: readonly (readonly [what: string, fields: Body, error: string])[] = [
  ['no redirect URI for the code grant', {}, 'invalid_redirect_uri'],
  ['a redirect URI over http', { redirect_uris: ['http://shop.example/back'] }, 'invalid_redirect_uri'],
  ['a redirect URI with a fragment', { redirect_uris: [`${BACK}#a`] }, 'invalid_redirect_uri'],
  ['21 redirect URIs', { redirect_uris: Array.from({ length: 21 }, (_, i) => `${BACK}${i}`) }, 'invalid_redirect_uri'],
  ['redirect URIs that are no list', { redirect_uris: BACK }, 'invalid_client_metadata'],
  [
    'a logout URI with a script',
    { redirect_uris: [BACK], post_logout_redirect_uris: ['javascript:a'] },
    'invalid_redirect_uri',
  ],
  ['unknown grants alone', { redirect_uris: [BACK], grant_types: ['implicit'] }, 'invalid_client_metadata'],
  ['the implicit response type', { redirect_uris: [BACK], response_types: ['token'] }, 'invalid_client_metadata'],
  [
    'response types without the grant',
    { grant_types: ['client_credentials'], response_types: ['code'] },
    'invalid_client_metadata',
  ],
  [
    'private_key_jwt',
    { redirect_uris: [BACK], token_endpoint_auth_method: 'private_key_jwt' },
    'invalid_client_metadata',
  ],
  [
    'client credentials without a secret',
    { grant_types: ['client_credentials'], token_endpoint_auth_method: 'none' },
    'invalid_client_metadata',
  ],
  ['pairwise subjects', { redirect_uris: [BACK], subject_type: 'pairwise' }, 'invalid_client_metadata'],
  ['unsigned ID tokens', { redirect_uris: [BACK], id_token_signed_response_alg: 'none' }, 'invalid_client_metadata'],
  ['a name that is no text', { redirect_uris: [BACK], client_name: 7 }, 'invalid_client_metadata'],
  ['a name with a line end', { redirect_uris: [BACK], client_name: 'a\nb' }, 'invalid_client_metadata'],
]

for (const [what, fields, error] of REFUSED) {
  test(`${what}: ${error}`, async () => {
    const { status, body } = await ask('POST', PATH, fields, OWN)
    assert.deepEqual([status, body.error], [400, error])
    assert.match(String(body.error_description), /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/)
  })
}

test('registration needs an account with a role, or a token of its user with the scope', async () => {
  const fields = { redirect_uris: [BACK] }
  const nobody = await ask('POST', PATH, fields)
  assert.deepEqual([nobody.status, nobody.body.error], [401, 'invalid_client'])
  assert.equal((await ask('POST', PATH, fields, basic(USER.name, 'wrong'))).status, 401)
  const forged = await ask('POST', PATH, fields, bearer('a'.repeat(43)))
  assert.deepEqual([forged.status, forged.body.error], [401, 'invalid_token'])
  assert.match(forged.headers.get('www-authenticate')!, /^Bearer .*error="invalid_token"/)
  const { client, secret } = await at.client()
  const client_ = basic(client.consumerKey, secret)
  const tokenOf = async (form: Readonly<Record<string, string>>) =>
    (await at.post('/oauth2/token', form, client_)).body.access_token
  const asUser = { grant_type: 'password', username: USER.name, password: USER.password }
  const unscoped = await ask('POST', PATH, fields, bearer(await tokenOf({ ...asUser, scope: 'openid' })))
  assert.deepEqual([unscoped.status, unscoped.body.error], [403, 'insufficient_scope'])
  const application = await tokenOf({ grant_type: 'client_credentials', scope: 'apim:app_manage' })
  assert.equal((await ask('POST', PATH, fields, bearer(application))).status, 401)
  const token = await tokenOf({ ...asUser, scope: 'apim:app_manage' })
  const made = await ask('POST', PATH, fields, bearer(token))
  assert.equal(made.status, 201)
  assert.equal((await at.registry.clients.get(String(made.body.client_id)))?.owner, USER.name)
})

test('RFC 7592: the registration access token reads, replaces and removes its client alone', async () => {
  const made = await registered({
    redirect_uris: [BACK],
    client_name: 'one',
    grant_types: ['authorization_code', 'refresh_token'],
  })
  const { client_id, client_secret, registration_client_uri: uri, registration_access_token: token } = made
  const read = await ask('GET', String(uri), null, bearer(token))
  const { client_secret: _secret, client_secret_expires_at: _at, ...known } = made
  assert.deepEqual(read.body, known)
  const change = { client_id, client_secret, redirect_uris: [`${BACK}2`], client_name: 'two' }
  const changed = await ask('PUT', String(uri), change, bearer(token))
  assert.equal(changed.status, 200, JSON.stringify(changed.body))
  // What an update omits is back at its default.
  assert.deepEqual(
    [changed.body.client_name, changed.body.redirect_uris, changed.body.grant_types],
    ['two', [`${BACK}2`], ['authorization_code']],
  )
  assert.deepEqual((await ask('GET', String(uri), null, bearer(token))).body, changed.body)
  const other = await registered()
  for (const method of ['GET', 'DELETE']) {
    const refused = await ask(method, String(uri), null, bearer(other.registration_access_token))
    assert.deepEqual([refused.status, refused.body.error], [401, 'invalid_token'])
  }
  assert.equal((await ask('DELETE', String(uri), null, bearer(token))).status, 204)
  const gone = await ask('GET', String(uri), null, bearer(token))
  assert.deepEqual([gone.status, gone.body.error], [401, 'invalid_token'])
  assert.equal(await at.registry.clients.get(String(client_id)), null)
})

test('RFC 7592 2.2: an update that names another client or secret, or fields of the server, is refused', async () => {
  const { client_id, registration_client_uri: uri, registration_access_token: token } = await registered()
  const good = { client_id, redirect_uris: [BACK] }
  for (const [fields, error] of [
    [{ redirect_uris: [BACK] }, 'invalid_request'],
    [{ ...good, client_id: 'another' }, 'invalid_request'],
    [{ ...good, client_secret: 'another' }, 'invalid_request'],
    [{ ...good, client_secret: 7 }, 'invalid_request'],
    [{ ...good, registration_access_token: 'mine' }, 'invalid_request'],
    [{ ...good, client_id_issued_at: 1 }, 'invalid_request'],
    [{ ...good, token_endpoint_auth_method: 'none' }, 'invalid_client_metadata'],
  ] as const) {
    const { status, body } = await ask('PUT', String(uri), fields, bearer(token))
    assert.deepEqual([status, body.error], [400, error], JSON.stringify(fields))
  }
})

test('wrong registration access tokens lock the client out for their address', async () => {
  const { registration_client_uri: uri, registration_access_token: token } = await registered()
  const from = (address: string) => ({ 'x-forwarded-for': address })
  for (let i = 0; i < 3; i++) {
    const wrong = await ask('GET', String(uri), null, { ...bearer('wrong'), ...from('192.0.2.9') })
    assert.equal(wrong.status, 401)
  }
  assert.equal((await ask('GET', String(uri), null, { ...bearer(token), ...from('192.0.2.9') })).status, 429)
  assert.equal((await ask('GET', String(uri), null, { ...bearer(token), ...from('192.0.2.10') })).status, 200)
})

test('a client of the platform form has no registration access token', async () => {
  const form = { clientName: 'old', callbackUrl: BACK, grantType: 'authorization_code', owner: 'admin' }
  const { body } = await ask('POST', '/client-registration/v0.17/register', form, basic('admin', ADMIN_PASSWORD))
  for (const token of ['', 'a'])
    assert.equal((await ask('GET', `${PATH}/${String(body.clientId)}`, null, bearer(token))).status, 401)
})
