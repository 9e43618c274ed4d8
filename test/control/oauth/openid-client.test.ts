/** The key manager as seen by an independent client library (openid-client), over TLS. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createRemoteJWKSet, customFetch as joseFetch, jwtVerify } from 'jose'
import * as library from 'openid-client'
import { Browser, type RunningKeyManager, startKeyManager, USER } from './running-key-manager.ts'

let at: RunningKeyManager
let issuer: URL

before(async () => {
  at = await startKeyManager({ sets: ['oauth.oidc.claims.enable_oidc_dialect=true'] })
  issuer = new URL(`${at.origin}/oauth2/token`)
})
after(() => at[Symbol.asyncDispose]())

async function discovered(id: string, authentication: library.ClientAuth, algorithm: 'oidc' | 'oauth2' = 'oidc') {
  return library.discovery(issuer, id, undefined, authentication, { [library.customFetch]: at.fetch, algorithm })
}

test('an application gets a token by client credentials that the published keys verify', async () => {
  const { client, secret } = await at.client()
  const found = await discovered(client.consumerKey, library.ClientSecretBasic(secret))
  const given = await library.clientCredentialsGrant(found, { scope: 'orders:any nonsense' })
  assert.equal(given.scope, 'orders:any')
  assert.equal(given.refresh_token, undefined)
  const keys = createRemoteJWKSet(new URL(found.serverMetadata().jwks_uri!), { [joseFetch]: at.fetch })
  const { payload, protectedHeader } = await jwtVerify(given.access_token, keys, {
    issuer: String(issuer),
    audience: client.consumerKey,
    typ: 'at+jwt',
    algorithms: ['RS256'],
  })
  assert.equal(protectedHeader.kid, at.manager.issuerKeys.keys[0]!.kid)
  const { sub, azp, client_id, aut, scope, nbf, iat, exp } = payload
  assert.deepEqual(
    { sub, azp, client_id, aut, scope, nbf },
    {
      sub: client.consumerKey,
      azp: client.consumerKey,
      client_id: client.consumerKey,
      aut: 'APPLICATION',
      scope: 'orders:any',
      // Clocks of nodes differ.
      nbf: iat! - 5,
    },
  )
  assert.equal(exp! - iat!, 3600)
})

test('RFC 8414: server metadata can be discovered', async () => {
  const { client, secret } = await at.client()
  const found = await discovered(client.consumerKey, library.ClientSecretPost(secret), 'oauth2')
  assert.equal(found.serverMetadata().issuer, String(issuer))
  await library.clientCredentialsGrant(found)
})

test('a public client uses code with PKCE, user info, refresh, introspection and revocation', async () => {
  const { client } = await at.client({ isPublic: true })
  const found = await discovered(client.consumerKey, library.None())
  const pkceCodeVerifier = library.randomPKCECodeVerifier()
  const expectedNonce = library.randomNonce()
  const expectedState = library.randomState()
  const url = library.buildAuthorizationUrl(found, {
    redirect_uri: 'https://shop.example/back',
    scope: 'openid profile email orders:read orders:write',
    code_challenge: await library.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
    nonce: expectedNonce,
    state: expectedState,
  })
  const back = await new Browser(at).allow(url)
  const given = await library.authorizationCodeGrant(found, back, { pkceCodeVerifier, expectedNonce, expectedState })
  // Alice has no role for orders:write.
  assert.equal(given.scope, 'openid profile email orders:read')
  const identity = given.claims()!
  assert.equal(identity.sub, 'alice@carbon.super')
  assert.equal(identity.email, 'alice@shop.example')
  assert.equal(typeof identity.auth_time, 'number')
  const told = await library.fetchUserInfo(found, given.access_token, identity.sub)
  assert.deepEqual(told, {
    sub: 'alice@carbon.super',
    preferred_username: 'alice',
    email: 'alice@shop.example',
    given_name: 'Alice',
  })
  const renewed = await library.refreshTokenGrant(found, given.refresh_token!)
  assert.notEqual(renewed.refresh_token, given.refresh_token)
  const other = await at.client()
  const server = await discovered(other.client.consumerKey, library.ClientSecretBasic(other.secret))
  const active = await library.tokenIntrospection(server, renewed.access_token)
  assert.equal(active.active, true)
  assert.equal(active.username, 'alice@carbon.super')
  await library.tokenRevocation(found, renewed.refresh_token!)
  assert.deepEqual(await library.tokenIntrospection(server, renewed.access_token), { active: false })
  await assert.rejects(library.refreshTokenGrant(found, renewed.refresh_token!), { error: 'invalid_grant' })
})

/** An access token of alice, who may register clients with it. */
async function initialAccessToken(): Promise<string> {
  const { client, secret } = await at.client()
  const found = await discovered(client.consumerKey, library.ClientSecretBasic(secret))
  const parameters = { username: USER.name, password: USER.password, scope: 'apim:app_manage' }
  return (await library.genericGrantRequest(found, 'password', parameters)).access_token
}

const RETURN = 'https://shop.example/bye'

test('RFC 7591: a client registers itself, and uses code, logout and its own metadata', async () => {
  const found = await library.dynamicClientRegistration(
    issuer,
    {
      client_name: 'Shop by itself',
      redirect_uris: ['https://shop.example/back'],
      post_logout_redirect_uris: [RETURN],
      grant_types: ['authorization_code', 'refresh_token'],
    },
    undefined,
    { [library.customFetch]: at.fetch, initialAccessToken: await initialAccessToken() },
  )
  const {
    client_id,
    client_name,
    registration_client_uri: uri,
    registration_access_token: key,
  } = found.clientMetadata()
  assert.equal(client_name, 'Shop by itself')
  const pkceCodeVerifier = library.randomPKCECodeVerifier()
  const expectedState = library.randomState()
  const url = library.buildAuthorizationUrl(found, {
    redirect_uri: 'https://shop.example/back',
    scope: 'openid',
    code_challenge: await library.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
    state: expectedState,
  })
  const browser = new Browser(at)
  const back = await browser.allow(url)
  const given = await library.authorizationCodeGrant(found, back, { pkceCodeVerifier, expectedState })
  const silent = new URL(url)
  silent.searchParams.set('prompt', 'none')
  assert.equal(new URL((await browser.open(silent)).location).searchParams.has('code'), true)
  // RP-Initiated Logout with the ID token of the session: nobody is asked.
  const logout = library.buildEndSessionUrl(found, {
    id_token_hint: given.id_token!,
    post_logout_redirect_uri: RETURN,
    state: 'later',
  })
  const end = await browser.open(logout)
  assert.equal(end.status, 303)
  assert.equal(end.location, `${RETURN}?state=later`)
  const after = await browser.open(silent)
  assert.equal(new URL(after.location).searchParams.get('error'), 'login_required')
  // RFC 7592: the client reads and removes its registration.
  const headers = { authorization: `Bearer ${String(key)}` }
  const read = await at.fetch(String(uri), { headers })
  assert.equal(((await read.json()) as { client_id: string }).client_id, client_id)
  assert.equal((await at.fetch(String(uri), { method: 'DELETE', headers })).status, 204)
  await assert.rejects(library.refreshTokenGrant(found, given.refresh_token!), /WWW-Authenticate/)
})
