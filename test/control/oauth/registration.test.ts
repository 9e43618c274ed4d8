/** Client registration, and modules of the operator. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { decodeJwt } from 'jose'
import { loadModule, ModuleError } from '../../../src/config/module-file.ts'
import { ADMIN_PASSWORD, basic, type RunningKeyManager, startKeyManager, USER } from './running-key-manager.ts'

const PATH = '/client-registration/v0.17/register'
const JSON_TYPE = { 'content-type': 'application/json' }
const SHOP = {
  callbackUrl: 'https://shop.example/back',
  clientName: 'shop',
  owner: USER.name,
  grantType: 'client_credentials password urn:of:something:else',
  saasApp: true,
  tokenType: 'DEFAULT',
}

let at: RunningKeyManager

before(async () => {
  at = await startKeyManager({
    sets: ['oauth.oidc.extensions.claim_callback_handler=more.mjs', 'oauth.extensions.token_generator=token.mjs'],
    files: {
      'more.mjs': `export async function moreClaims({ user }) { return { team: user.roles[0], sub: 'somebody else' } }`,
      'token.mjs': `export const tokenClaims = (claims, { client }) => ({ ...claims, shop: client, exp: 0, aut: 'x' })`,
    },
  })
})
after(() => at[Symbol.asyncDispose]())

async function ask(method: string, path: string, fields: object | null, headers: Readonly<Record<string, string>>) {
  const answer = await at.fetch(`${at.origin}${path}`, {
    method,
    headers: { ...JSON_TYPE, ...headers },
    ...(fields !== null && { body: JSON.stringify(fields) }),
  })
  const text = await answer.text()
  return { status: answer.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> }
}

test('an account registers, reads, changes and removes a client', async () => {
  const own = basic(USER.name, USER.password)
  const made = await ask('POST', PATH, SHOP, own)
  assert.equal(made.status, 200, JSON.stringify(made.body))
  const { clientId, clientSecret, clientName, callBackURL, appOwner, jsonString, tokenType } = made.body
  assert.deepEqual(
    { clientName, callBackURL, appOwner, tokenType },
    { clientName: 'shop', callBackURL: SHOP.callbackUrl, appOwner: USER.name, tokenType: 'JWT' },
  )
  assert.equal(JSON.parse(String(jsonString)).grant_types, 'client_credentials password')
  const token = await at.post(
    '/oauth2/token',
    { grant_type: 'client_credentials' },
    basic(String(clientId), String(clientSecret)),
  )
  assert.equal(token.status, 200)
  const place = `${PATH}/${clientId}`
  const read = await ask('GET', place, null, own)
  assert.deepEqual([read.body.clientId, read.body.clientSecret], [clientId, undefined])
  const changed = await ask(
    'PUT',
    place,
    { grantType: 'password', clientName: 'kiosk' },
    basic('admin', ADMIN_PASSWORD),
  )
  assert.deepEqual([changed.body.clientName, changed.body.grantType], ['kiosk', 'password'])
  const revoked: string[] = []
  at.registry.listener = {
    subscriptionsChanged: () => {},
    tokensRevoked: tokens => void revoked.push(...tokens.map(({ key }) => key)),
  }
  assert.equal((await ask('DELETE', place, null, own)).status, 204)
  assert.deepEqual(revoked, [decodeJwt(String(token.body.access_token)).jti])
  assert.equal((await ask('GET', place, null, own)).status, 404)
})

test('registration needs an account, its own owner, and safe redirect URIs', async () => {
  const own = basic(USER.name, USER.password)
  const rows: readonly (readonly [object, Readonly<Record<string, string>>, number, string])[] = [
    [SHOP, {}, 401, 'invalid_client'],
    [SHOP, basic(USER.name, 'wrong-Pass-1'), 401, 'invalid_client'],
    [{ ...SHOP, owner: 'admin' }, own, 403, 'access_denied'],
    [{ ...SHOP, owner: 'nobody' }, basic('admin', ADMIN_PASSWORD), 400, 'invalid_client_metadata'],
    [{ ...SHOP, callbackUrl: 'javascript:alert(1)' }, own, 400, 'invalid_redirect_uri'],
    [{ ...SHOP, callbackUrl: 'http://shop.example/back' }, own, 400, 'invalid_redirect_uri'],
    [{ ...SHOP, callbackUrl: 'https://shop.example/*' }, own, 400, 'invalid_redirect_uri'],
    [{ ...SHOP, callbackUrl: 'https://u:p@shop.example/' }, own, 400, 'invalid_redirect_uri'],
    [{ ...SHOP, callbackUrl: 'https://shop.example;script-src' }, own, 400, 'invalid_redirect_uri'],
    [{ ...SHOP, callbackUrl: 'blob:https://shop.example/x' }, own, 400, 'invalid_redirect_uri'],
    [{ ...SHOP, clientName: '' }, own, 400, 'invalid_client_metadata'],
    [{ ...SHOP, grantType: 'magic' }, own, 400, 'invalid_client_metadata'],
    [{ ...SHOP, grantType: 'authorization_code', callbackUrl: '' }, own, 400, 'invalid_client_metadata'],
  ]
  for (const [fields, headers, status, error] of rows) {
    const answer = await ask('POST', PATH, fields, headers)
    assert.deepEqual([answer.status, answer.body.error], [status, error], JSON.stringify(fields))
  }
  const foreign = await at.client()
  assert.equal((await ask('GET', `${PATH}/${foreign.client.consumerKey}`, null, own)).status, 404)
})

test('RFC 8259 4: a registration with a repeated member is refused', async () => {
  const body = '{"clientName":"one","clientName":"another","owner":"alice"}'
  const headers = { ...JSON_TYPE, ...basic(USER.name, USER.password) }
  const answer = await at.fetch(`${at.origin}${PATH}`, { method: 'POST', headers, body })
  const { error } = (await answer.json()) as { readonly error: string }
  assert.deepEqual([answer.status, error], [400, 'invalid_request'])
})

test('a public client can be registered', async () => {
  const fields = { ...SHOP, clientName: 'phone', grantType: 'authorization_code', ext_public_client: true }
  const app = { ...fields, clientName: 'tablet', callbackUrl: 'com.example.shop:/back, http://127.0.0.1:9000/back' }
  assert.equal((await ask('POST', PATH, app, basic(USER.name, USER.password))).status, 200)
  const { body } = await ask('POST', '/client-registration/v0.14/register', fields, basic(USER.name, USER.password))
  assert.deepEqual([body.clientSecret, body.ext_public_client], ['', true])
})

test('modules of the operator add claims and cannot change protected ones', async () => {
  const { client, secret } = await at.client()
  const fields = { grant_type: 'password', username: USER.name, password: USER.password, scope: 'openid' }
  const { body } = await at.post('/oauth2/token', fields, basic(client.consumerKey, secret))
  const token = decodeJwt(String(body.access_token))
  assert.deepEqual([token.shop, token.aut], [client.consumerKey, 'APPLICATION_USER'])
  assert.ok(token.exp! > Date.now() / 1000)
  const identity = decodeJwt(String(body.id_token))
  assert.deepEqual([identity.team, identity.sub], ['Internal/everyone', 'alice@carbon.super'])
})

test('a module must be inside the configuration folder and export the expected function', async () => {
  for (const path of ['../outside.mjs', '/etc/hostname', 'absent.mjs', 'deployment.toml']) {
    await assert.rejects(loadModule(at.folder, path, 'moreClaims'), ModuleError, path)
  }
  await assert.rejects(loadModule(at.folder, 'more.mjs', 'other'), /exports no function other/)
})

test('expired tokens are removed', async () => {
  const { client, secret } = await at.client({ validityS: 1 })
  await at.post('/oauth2/token', { grant_type: 'client_credentials' }, basic(client.consumerKey, secret))
  assert.equal(await at.registry.tokens.removeExpired(Date.now() + 2000), 1)
})
