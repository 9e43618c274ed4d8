/** What a client library that others have written makes of the key manager, over TLS. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createRemoteJWKSet, customFetch as joseFetch, jwtVerify } from 'jose'
import * as library from 'openid-client'
import { Browser, type RunningKeyManager, startKeyManager } from './running-key-manager.ts'

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

test('an application gets a token of its own that the published keys verify', async () => {
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
  assert.equal(protectedHeader.kid, at.manager.keys.keys[0]!.kid)
  const { sub, azp, client_id, aut, scope, nbf, iat, exp } = payload
  assert.deepEqual(
    { sub, azp, client_id, aut, scope, nbf },
    {
      sub: client.consumerKey,
      azp: client.consumerKey,
      client_id: client.consumerKey,
      aut: 'APPLICATION',
      scope: 'orders:any',
      nbf: iat,
    },
  )
  assert.equal(exp! - iat!, 3600)
})

test('metadata are found as RFC 8414 has them', async () => {
  const { client, secret } = await at.client()
  const found = await discovered(client.consumerKey, library.ClientSecretPost(secret), 'oauth2')
  assert.equal(found.serverMetadata().issuer, String(issuer))
  await library.clientCredentialsGrant(found)
})

test('a public client goes from code and PKCE to user info, refresh, introspection and revocation', async () => {
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
