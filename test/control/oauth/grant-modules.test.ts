/** Issue 14, item 7: grant handlers and validators are modules of the operator. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type RunningKeyManager, startKeyManager, USER } from './running-key-manager.ts'

const TABLE = 'oauth.grant_type'
const FILES = {
  'pin.js': `export function handleGrant({ grantType, client, parameters }) {
    if (parameters.pin === 'broken') throw new Error('the secret 4711')
    if (parameters.pin === 'wrong') return { user: 5 }
    if ('client_secret' in parameters || client === '' || grantType === '') throw new Error('not given as documented')
    const users = { 1: 'alice', 2: 'stranger', 3: undefined }
    return parameters.pin in users ? { user: users[parameters.pin] } : null
  }`,
  'check.js':
    "export function validateGrant({ parameters }) { return parameters.device === 'known' || 'unknown device' }",
}

/** [grant type, its name in the file, its settings] */
const GRANTS: readonly (readonly [grantType: string, sets: readonly string[]])[] = [
  ['pin_code', [`${TABLE}.pin_code.enable=true`, `${TABLE}.pin_code.grant_handler=pin.js`]],
  ['urn:ietf:params:oauth:grant-type:saml2-bearer', [`${TABLE}.saml_bearer.grant_handler=pin.js`]],
  ['iwa:ntlm', [`${TABLE}.iwa_ntlm.grant_handler=pin.js`]],
  ['kerberos', [`${TABLE}.kerberos.enable=true`, `${TABLE}.kerberos.grant_handler=pin.js`]],
  ['password', [`${TABLE}.password.grant_handler=pin.js`]],
  ['client_credentials', [`${TABLE}.client_credentials.grant_handler=pin.js`]],
]

async function ask(running: RunningKeyManager, grantType: string, more: Readonly<Record<string, string>>) {
  const { client, secret } = await running.client({ grants: [grantType] })
  const fields = { grant_type: grantType, client_id: client.consumerKey, client_secret: secret, ...more }
  const { status, body } = await running.post('/oauth2/token', fields)
  const [, claims = 'e30'] = String(body.access_token ?? '').split('.')
  return { status, body, claims: JSON.parse(Buffer.from(claims, 'base64url').toString()) }
}

for (const [grantType, sets] of GRANTS) {
  test(`a module handles the grant ${grantType}`, async () => {
    await using running = await startKeyManager({ files: FILES, sets })
    const user = await ask(running, grantType, { pin: '1', scope: 'orders:read orders:write' })
    assert.equal(user.status, 200, JSON.stringify(user.body))
    assert.deepEqual(
      [user.claims.sub, user.claims.aut, user.body.scope],
      [`${USER.name}@carbon.super`, 'APPLICATION_USER', 'orders:read'],
    )
    const stranger = await ask(running, grantType, { pin: '2' })
    assert.match(stranger.claims.sub, /^federated:.*\|stranger@carbon\.super$/)
    const application = await ask(running, grantType, { pin: '3' })
    assert.equal(application.claims.aut, 'APPLICATION')
    for (const [pin, status, error] of [
      ['9', 400, 'invalid_grant'],
      ['broken', 500, 'server_error'],
      ['wrong', 500, 'server_error'],
    ]) {
      const refused = await ask(running, grantType, { pin: String(pin) })
      assert.deepEqual([refused.status, refused.body.error], [status, error])
      assert.doesNotMatch(JSON.stringify(refused.body), /4711/)
    }
    assert.match(running.logged.join(), /handleGrant: the secret 4711/)
    const metadata = await running.fetch(`${running.origin}/.well-known/openid-configuration`)
    const { grant_types_supported: supported } = (await metadata.json()) as { grant_types_supported: string[] }
    assert.ok(supported.includes(grantType))
  })
}

test('a validator refuses requests before the grant, with its reason', async () => {
  const sets = [
    `${TABLE}.pin.enable=true`,
    `${TABLE}.pin.grant_handler=pin.js`,
    `${TABLE}.pin.grant_validator=check.js`,
  ]
  await using running = await startKeyManager({ files: FILES, sets })
  const refused = await ask(running, 'pin', { pin: '1' })
  assert.deepEqual(
    [refused.status, refused.body],
    [400, { error: 'invalid_request', error_description: 'unknown device' }],
  )
  assert.equal((await ask(running, 'pin', { pin: '1', device: 'known' })).status, 200)
})

test('a grant without a handler, or that is off, is not supported', async () => {
  const sets = [`${TABLE}.off.enable=false`, `${TABLE}.off.grant_handler=pin.js`, `${TABLE}.bare.enable=true`]
  await using running = await startKeyManager({ files: FILES, sets })
  for (const grantType of ['off', 'bare', 'kerberos', 'urn:ietf:params:oauth:grant-type:saml2-bearer']) {
    const { status, body } = await ask(running, grantType, { pin: '1' })
    assert.deepEqual([status, body.error], [400, 'unsupported_grant_type'])
  }
})

test('a module that is missing, or exports no such function, refuses the start', async () => {
  const sets = [`${TABLE}.pin.enable=true`]
  for (const [file, said] of [
    ['gone.js', /gone\.js is not there/],
    ['check.js', /exports no function handleGrant/],
  ] as const) {
    await assert.rejects(startKeyManager({ files: FILES, sets: [...sets, `${TABLE}.pin.grant_handler=${file}`] }), said)
  }
})

for (const [grantType, sets] of [
  ['own', [`${TABLE}.own.enable=true`, `${TABLE}.own.grant_handler=org.example.Handler`]],
  ['password', [`${TABLE}.password.grant_handler=org.example.Handler`]],
  ['client_credentials', [`${TABLE}.client_credentials.grant_handler=org.example.oauth.Handler`]],
  ['urn:ietf:params:oauth:grant-type:jwt-bearer', [`${TABLE}.jwt_bearer.grant_validator=org.example.Validator`]],
] as const) {
  test(`the grant ${grantType} is refused where its module is a Java class`, async () => {
    await using running = await startKeyManager({ files: FILES, sets })
    const refused = await ask(running, grantType, { username: USER.name, password: USER.password, assertion: 'a' })
    assert.deepEqual([refused.status, refused.body.error], [400, 'unsupported_grant_type'])
  })
}
