/** Admin API: representations, authorisation, and refusals. */
import assert from 'node:assert/strict'
import { after, before, mock, test } from 'node:test'
import type { RevocationRecord } from '../../../src/auth/records.ts'
import { RegistryUnavailable } from '../../../src/control/registry/registry-errors.ts'
import { startAdminApi } from './running-admin-api.ts'

let admin: Awaited<ReturnType<typeof startAdminApi>>
before(async () => {
  admin = await startAdminApi()
  const everybody = ['alice', 'robert']
  for (const name of everybody) {
    const user = { name, tenant: 'carbon.super', roles: ['Internal/subscriber'], claims: {} }
    await admin.registry.users.create(user, 'a-password-of-theirs')
  }
})
after(() => admin.close())

const PORTAL = '/api/am/devportal/v3'
const PUBLISHER = '/api/am/publisher/v4'
const ADMIN = '/api/am/admin/v4'

async function bearer(user: string, scopes?: readonly string[], more?: object): Promise<{ authorization: string }> {
  return { authorization: `Bearer ${await admin.tokenOf(user, scopes, more)}` }
}

/** Creates an application; resolves with its id. */
async function made(name: string, owner = 'admin'): Promise<string> {
  const body = { name, throttlingPolicy: 'Unlimited' }
  const { status, json } = await admin.fetch('POST', `${PORTAL}/applications`, { body, ...(await bearer(owner)) })
  assert.equal(status, 201)
  return String(json.applicationId)
}

test('applications are created, listed, changed and removed in the format of the reference platform', async () => {
  const body = { name: 'Shop', throttlingPolicy: '10PerMin', description: 'sells', attributes: { team: 'a' } }
  const created = await admin.fetch('POST', `${PORTAL}/applications`, { body })
  assert.equal(created.status, 201)
  const id = created.json.applicationId
  assert.equal(created.headers.get('location'), `${PORTAL}/applications/${id}`)
  const shown = (await admin.fetch('GET', `${PORTAL}/applications/${id}`)).json
  assert.deepEqual(Object(shown), created.json)
  const { applicationId: _, createdTime: __, ...rest } = Object(shown)
  assert.deepEqual(rest, {
    ...{ name: 'Shop', throttlingPolicy: '10PerMin', description: 'sells', tokenType: 'JWT', status: 'APPROVED' },
    ...{ groups: [], subscriptionCount: 0, attributes: { team: 'a' }, subscriptionScopes: [], owner: 'admin' },
    hashEnabled: true,
  })
  const changed = await admin.fetch('PUT', `${PORTAL}/applications/${id}`, {
    body: { ...Object(shown), name: 'Store' },
  })
  assert.deepEqual([changed.status, changed.json.name], [200, 'Store'])
  const list = (await admin.fetch('GET', `${PORTAL}/applications?limit=1&offset=0`)).json
  assert.deepEqual([list.count, list.list.length, list.pagination.limit], [1, 1, 1])
  assert.equal((await admin.fetch('DELETE', `${PORTAL}/applications/${id}`)).status, 200)
  assert.equal((await admin.fetch('GET', `${PORTAL}/applications/${id}`)).status, 404)
})

test('an application name that exists or is declared by a file is a conflict', async () => {
  await made('Twice')
  for (const name of ['Twice', 'Declared']) {
    assert.equal((await admin.fetch('POST', `${PORTAL}/applications`, { body: { name } })).status, 409)
  }
})

const INVALID_BODIES: readonly (readonly [why: string, body: unknown, field: string])[] = [
  ['an unknown member', { name: 'x', colour: 'red' }, 'colour'],
  ['a missing member', { throttlingPolicy: 'x' }, 'name'],
  ['a wrong type', { name: 5 }, 'name'],
  ['control characters', { name: 'a\u0000b' }, 'name'],
  ['an unknown choice', { name: 'x', tokenType: 'SAML' }, 'tokenType'],
]

for (const [why, body, field] of INVALID_BODIES) {
  test(`a body with ${why} is refused, and the problem names the field`, async () => {
    const { status, json } = await admin.fetch('POST', `${PORTAL}/applications`, { body })
    assert.deepEqual([status, json.code, json.message, json.error[0].code], [400, 400, 'Bad Request', field])
  })
}

test('RFC 8259 4: a body that parsers read differently is refused', async () => {
  for (const body of ['{"name":"x","__proto__":{"isAdmin":true}}', '{"name":"x","n\\u0061me":"y"}']) {
    const { status, json } = await admin.fetch('POST', `${PORTAL}/applications`, { body })
    assert.deepEqual([status, json.description], [400, 'body: a duplicate member, or __proto__'])
  }
})

test('a body that is not JSON or too long is refused', async () => {
  const form = { body: 'name=x', headers: { 'content-type': 'application/x-www-form-urlencoded' } }
  assert.equal((await admin.fetch('POST', `${PORTAL}/applications`, form)).status, 415)
  assert.equal((await admin.fetch('POST', `${PORTAL}/applications`, { body: '{' })).status, 400)
  const long = { name: 'x', description: 'y'.repeat(70_000) }
  assert.equal((await admin.fetch('POST', `${PORTAL}/applications`, { body: long })).status, 413)
})

test('RFC 6749 3.3: a scope with a space within is refused before keys are generated', async () => {
  const path = `${PORTAL}/applications/${await made('Scopes')}`
  const body = { keyType: 'PRODUCTION', scopes: ['device_a other'] }
  const { status, json } = await admin.fetch('POST', `${path}/generate-keys`, { body })
  assert.deepEqual([status, json.error[0].code], [400, 'scopes'])
  assert.equal((await admin.fetch('GET', `${path}/oauth-keys`)).json.count, 0)
})

test('secrets are shown once: when keys are generated and when a secret is renewed', async () => {
  const id = await made('Keys')
  const body = { keyType: 'PRODUCTION', grantTypesToBeSupported: ['client_credentials'], validityTime: 60 }
  const keys = await admin.fetch('POST', `${PORTAL}/applications/${id}/generate-keys`, { body })
  assert.equal(keys.status, 200)
  const { consumerKey, consumerSecret, keyMappingId } = keys.json
  assert.equal(keys.json.token.accessToken, `token of ${consumerKey}`)
  assert.notEqual(await admin.registry.clients.authenticate(consumerKey, consumerSecret), null)
  const listed = await admin.fetch('GET', `${PORTAL}/applications/${id}/oauth-keys`)
  assert.equal(listed.json.list[0].consumerKey, consumerKey)
  assert.doesNotMatch(listed.text, new RegExp(consumerSecret))
  const path = `${PORTAL}/applications/${id}/oauth-keys/${keyMappingId}`
  const renewed = (await admin.fetch('POST', `${path}/regenerate-secret`)).json.consumerSecret
  assert.equal(await admin.registry.clients.authenticate(consumerKey, consumerSecret), null)
  assert.notEqual(await admin.registry.clients.authenticate(consumerKey, renewed), null)
  assert.ok(admin.reports.every(line => !line.includes(consumerSecret) && !line.includes(renewed)))
  assert.equal((await admin.fetch('POST', `${PORTAL}/applications/${id}/generate-keys`, { body })).status, 409)
})

test('of two requests for keys of one type at the same time one is a conflict', async () => {
  const path = `${PORTAL}/applications/${await made('TwoKeys')}`
  const body = { keyType: 'PRODUCTION', grantTypesToBeSupported: ['client_credentials'] }
  const ask = () => admin.fetch('POST', `${path}/generate-keys`, { body })
  const statuses = (await Promise.all([ask(), ask()])).map(({ status }) => status)
  assert.deepEqual(statuses.sort(), [200, 409])
  assert.equal((await admin.fetch('GET', `${path}/oauth-keys`)).json.count, 1)
})

test('an existing client can be mapped with its secret', async () => {
  const id = await made('Mapped')
  const about = { name: 'c', keyType: 'SANDBOX', owner: 'admin', tenant: 'carbon.super' } as const
  const terms = {
    grants: ['client_credentials'],
    redirectUris: [],
    isPublic: false,
    tokenType: 'JWT',
    validityS: 0,
  } as const
  const { client, secret } = await admin.registry.clients.create({ ...about, ...terms, applicationId: null })
  const map = (consumerSecret: string, consumerKey = client.consumerKey) => {
    const body = { consumerKey, consumerSecret, keyType: 'SANDBOX' }
    return admin.fetch('POST', `${PORTAL}/applications/${id}/map-keys`, { body })
  }
  assert.equal((await map('a guess')).status, 400)
  assert.deepEqual(
    [(await map(secret)).json.mode, (await admin.registry.clients.get(client.consumerKey))!.applicationId],
    ['MAPPED', id],
  )
  const declared = { ...about, ...terms, applicationId: null, consumerKey: 'declared-key' }
  const other = await admin.registry.clients.create(declared)
  await admin.fetch('DELETE', `${PORTAL}/applications/${id}/oauth-keys/${client.consumerKey}`)
  // A key in both places would prevent the next start.
  assert.equal((await map(other.secret, 'declared-key')).status, 409)
})

test('redirect URIs are absolute, and required for authorization codes', async () => {
  const id = await made('Redirects')
  const status = async (callbackUrl: string) => {
    const body = { keyType: 'SANDBOX', grantTypesToBeSupported: ['authorization_code'], callbackUrl }
    return (await admin.fetch('POST', `${PORTAL}/applications/${id}/generate-keys`, { body })).status
  }
  for (const wrong of ['', '/back', 'javascript:alert(1)', 'https://a/#b'])
    assert.equal(await status(wrong), 400, wrong)
  assert.equal(await status('https://app.example/back'), 200)
})

test('a subscription is created, blocked by a publisher, and removed', async () => {
  const applicationId = await made('Subscriber')
  const api = (await admin.fetch('GET', `${PORTAL}/apis`)).json.list[0]
  assert.equal(api.name, 'Orders')
  const subscribe = (throttlingPolicy: string, apiId: string = api.id) =>
    admin.fetch('POST', `${PORTAL}/subscriptions`, { body: { applicationId, apiId, throttlingPolicy } })
  assert.equal((await subscribe('Bronze')).status, 400)
  const { status, json } = await subscribe('Gold')
  assert.deepEqual(
    [status, json.status, json.apiInfo.name, json.throttlingPolicy],
    [201, 'UNBLOCKED', 'Orders', 'Gold'],
  )
  assert.equal((await subscribe('Gold')).status, 409)
  assert.equal((await subscribe('Gold', 'Drafts:1.0.0')).status, 409)
  const block = `${PUBLISHER}/subscriptions/block-subscription?subscriptionId=${json.subscriptionId}&blockState=BLOCKED`
  assert.equal((await admin.fetch('POST', block)).json.status, 'BLOCKED')
  assert.equal((await admin.registry.subscriptions.get(json.subscriptionId))!.status, 'BLOCKED')
  const unblock = `${PUBLISHER}/subscriptions/unblock-subscription?subscriptionId=${json.subscriptionId}`
  assert.equal((await admin.fetch('POST', unblock)).json.status, 'UNBLOCKED')
  assert.equal((await admin.fetch('GET', `${PORTAL}/subscriptions?applicationId=${applicationId}`)).json.count, 1)
  assert.equal((await admin.fetch('DELETE', `${PORTAL}/subscriptions/${json.subscriptionId}`)).status, 200)
})

test('the owner of a blocked subscription cannot replace it by a new one', async () => {
  const applicationId = await made('Blocked', 'alice')
  const alice = await bearer('alice')
  const body = { applicationId, apiId: 'Orders:1.0.0', throttlingPolicy: 'Gold' }
  const { json } = await admin.fetch('POST', `${PORTAL}/subscriptions`, { body, ...alice })
  const own = `${PORTAL}/subscriptions/${json.subscriptionId}`
  await admin.fetch(
    'POST',
    `${PUBLISHER}/subscriptions/block-subscription?subscriptionId=${json.subscriptionId}&blockState=PROD_ONLY_BLOCKED`,
  )
  assert.equal((await admin.fetch('DELETE', own, alice)).status, 409)
  assert.equal((await admin.fetch('GET', own, alice)).json.status, 'PROD_ONLY_BLOCKED')
  assert.equal((await admin.fetch('DELETE', own)).status, 200)
})

test('keys without client_credentials get no application token', async () => {
  const id = await made('Codes')
  const body = { keyType: 'PRODUCTION', grantTypesToBeSupported: ['refresh_token'] }
  const { json } = await admin.fetch('POST', `${PORTAL}/applications/${id}/generate-keys`, { body })
  const path = `${PORTAL}/applications/${id}/oauth-keys/${json.keyMappingId}/generate-token`
  assert.equal((await admin.fetch('POST', path, { body: {} })).status, 400)
})

test('an API key is generated and revoked by the owner of its application', async () => {
  const id = await made('ApiKeys')
  const path = `${PORTAL}/applications/${id}/api-keys/PRODUCTION`
  const wrong = { additionalProperties: { permittedIP: 'nowhere', permittedReferer: '' } }
  assert.equal((await admin.fetch('POST', `${path}/generate`, { body: wrong })).status, 400)
  const { apikey } = (await admin.fetch('POST', `${path}/generate`, { body: { validityPeriod: 60 } })).json
  const others = await made('Others')
  const body = { apikey }
  assert.equal(
    (await admin.fetch('POST', `${PORTAL}/applications/${others}/api-keys/PRODUCTION/revoke`, { body })).status,
    400,
  )
  const revocations: string[] = []
  admin.registry.listener = {
    subscriptionsChanged: () => {},
    tokensRevoked: tokens => void revocations.push(...tokens.map(({ key }) => key)),
  }
  assert.equal((await admin.fetch('POST', `${path}/revoke`, { body })).status, 200)
  admin.registry.listener = null
  assert.equal(revocations.length, 1)
})

test('applications of other owners are unknown to users without the admin role', async () => {
  const id = await made('Private', 'alice')
  const robert = await bearer('robert')
  assert.equal((await admin.fetch('GET', `${PORTAL}/applications/${id}`, robert)).status, 404)
  assert.equal((await admin.fetch('DELETE', `${PORTAL}/applications/${id}`, robert)).status, 404)
  assert.equal((await admin.fetch('GET', `${PORTAL}/applications`, robert)).json.pagination.total, 0)
  assert.equal((await admin.fetch('GET', `${PORTAL}/applications/${id}`)).status, 200)
})

const REFUSED: readonly (readonly [why: string, given: () => Promise<{ authorization: string }>, status: number])[] = [
  ['no credentials', async () => ({ authorization: '' }), 401],
  ['an unknown token', async () => ({ authorization: 'Bearer abc' }), 401],
  ['an expired token', () => bearer('admin', undefined, { expiresMs: Date.now() - 1 }), 401],
  ['a refresh token', () => bearer('admin', undefined, { kind: 'refresh' }), 401],
  ['the token of an application', () => bearer('admin', undefined, { isApplication: true }), 401],
  ['a token without the scope', () => bearer('admin', ['openid']), 403],
  ['a scope for which the user no longer has a role', () => bearer('alice', ['apim:admin']), 403],
  ['Basic without the admin role', async () => basic('alice', 'a-password-of-theirs'), 401],
  ['Basic with a wrong password', async () => basic('admin', 'a guess'), 401],
]

function basic(user: string, password: string): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` }
}

for (const [why, given, status] of REFUSED) {
  test(`${why} is refused`, async () => {
    const answer = await admin.fetch('GET', `${ADMIN}/key-managers`, await given())
    assert.deepEqual([answer.status, answer.json.code], [status, status])
    assert.equal(answer.headers.has('www-authenticate'), status === 401)
  })
}

test('lists and totals contain no subscriptions of other owners', async () => {
  const subscriptions = async (path: string, more: { readonly authorization: string }) =>
    (await admin.fetch('GET', `${path}/subscriptions?apiId=Orders:1.0.0&limit=1`, more)).json
  for (const owner of ['admin', 'robert']) {
    const body = { applicationId: await made('Counted', owner), apiId: 'Orders:1.0.0', throttlingPolicy: 'Gold' }
    assert.equal((await admin.fetch('POST', `${PORTAL}/subscriptions`, { body, ...(await bearer(owner)) })).status, 201)
  }
  const { list, pagination } = await subscriptions(PORTAL, await bearer('robert'))
  assert.deepEqual([list.length, pagination.total], [1, 1])
  await admin.registry.tenants.create('kitchen.example')
  const chef = { name: 'head-chef', tenant: 'kitchen.example', roles: ['admin'], claims: {} }
  await admin.registry.users.create(chef, 'a-password-of-theirs')
  const credentials = Buffer.from('head-chef@kitchen.example:a-password-of-theirs').toString('base64')
  for (const path of [PORTAL, PUBLISHER]) {
    const { pagination } = await subscriptions(path, { authorization: `Basic ${credentials}` })
    assert.equal(pagination.total, 0)
  }
})

test('an administrator may use Basic, with or without the tenant in the name', async () => {
  for (const name of ['admin', 'admin@carbon.super']) {
    const answer = await admin.fetch('GET', `${ADMIN}/key-managers`, basic(name, 'an-admin-password'))
    assert.deepEqual([answer.status, answer.json.list[0].issuer], [200, 'https://localhost:9443/oauth2/token'])
  }
})

test('requests from pages of other origins are refused', async () => {
  const id = await made('Forgery')
  for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }, { origin: 'null' }]) {
    const asked = { ...basic('admin', 'an-admin-password'), headers }
    assert.equal((await admin.fetch('DELETE', `${PORTAL}/applications/${id}`, asked)).status, 403)
  }
})

test('publishers read and change the lifecycle of an API', async () => {
  const api = (await admin.fetch('GET', `${PUBLISHER}/apis?query=name:orders`)).json.list[0]
  const state = (await admin.fetch('GET', `${PUBLISHER}/apis/${api.id}/lifecycle-state`)).json
  assert.deepEqual(state.availableTransitions[0], { event: 'Block', targetState: 'Blocked' })
  const path = `${PUBLISHER}/apis/change-lifecycle?apiId=${api.id}&action=`
  const developer = await bearer('alice', ['apim:api_publish'])
  assert.equal((await admin.fetch('POST', `${path}Block`, developer)).status, 403)
  const impossible = await admin.fetch('POST', `${path}Retire`)
  assert.deepEqual([impossible.status, impossible.json.description], [409, 'the transition is not allowed'])
  assert.equal((await admin.fetch('POST', `${path}Block`)).json.lifecycleState.state, 'Blocked')
})

test('SCIM manages users, and no response contains a password', async () => {
  const body = { userName: 'carol', password: 'carols-password', roles: [{ value: 'Internal/publisher' }] }
  const created = await admin.fetch('POST', '/scim2/Users', { body })
  assert.deepEqual([created.status, created.json.userName, created.json.active], [201, 'carol', true])
  const found = (await admin.fetch('GET', '/scim2/Users?filter=userName%20eq%20%22carol%22')).json
  assert.equal(found.Resources[0].id, created.json.id)
  const { status } = await admin.fetch('PUT', `/scim2/Users/${created.json.id}`, {
    body: { ...Object(found.Resources[0]), active: false },
  })
  assert.equal(status, 200)
  assert.equal((await admin.registry.users.find('carol', 'carbon.super'))!.isLocked, true)
  assert.doesNotMatch(created.text + JSON.stringify(found), /password/)
  assert.equal((await admin.fetch('DELETE', `/scim2/Users/${created.json.id}`)).status, 204)
})

test('a user with active false is created inactive in one step (RFC 7643 4.1.1)', async () => {
  const update = mock.method(admin.registry.users, 'update', () => Promise.reject(new RegistryUnavailable('down')))
  const reported = admin.reports.length
  const body = { userName: 'erika', password: 'password-of-erika', active: false }
  const created = await admin.fetch('POST', '/scim2/Users', { body })
  update.mock.restore()
  assert.deepEqual([created.status, created.json.active], [201, false], created.text)
  assert.equal(await admin.registry.users.authenticate('erika', 'carbon.super', body.password), 'locked')
  assert.deepEqual(
    admin.reports.slice(reported).map(line => line.split(' {')[0]),
    ['user created'],
  )
})

test('a replacement of a user whose password is refused changes nothing (RFC 7644 3.5.1)', async () => {
  const body = { userName: 'doris', password: 'password-of-doris', roles: [{ value: 'Internal/publisher' }] }
  const created = await admin.fetch('POST', '/scim2/Users', { body })
  assert.equal(created.status, 201, created.text)
  const path = `/scim2/Users/${created.json.id}`
  const replacement = { userName: 'doris', password: 'x', roles: [], active: false }
  assert.equal((await admin.fetch('PUT', path, { body: replacement })).status, 400)
  assert.deepEqual((await admin.fetch('GET', path)).json, created.json)
})

test('administrators cannot remove themselves', async () => {
  const own = (await admin.registry.users.find('admin', 'carbon.super'))!
  assert.equal((await admin.fetch('DELETE', `/scim2/Users/${own.id}`)).status, 409)
})

test('a token is revoked by its id, without an expiry for the maximum life of a token', async () => {
  const revocations: RevocationRecord[] = []
  admin.registry.listener = {
    subscriptionsChanged: () => {},
    tokensRevoked: tokens => void revocations.push(...tokens),
  }
  assert.equal((await admin.fetch('POST', `${ADMIN}/tokens/revoke`, { body: { jti: 'abc' } })).status, 200)
  admin.registry.listener = null
  assert.deepEqual(
    revocations.map(({ key }) => key),
    ['abc'],
  )
  // API keys have the longest life.
  assert.ok(revocations[0]!.expiresMs - Date.now() > 10 * 365.9 * 86_400_000)
})
