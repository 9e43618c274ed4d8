/** Approval of subscriptions, applications and keys (`[apim.workflow]`): REST, the callback, and commands. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, test } from 'node:test'
import { startAdminApi } from './running-admin-api.ts'

let admin: Awaited<ReturnType<typeof startAdminApi>>
before(async () => {
  admin = await startAdminApi()
  for (const name of ['alice', 'robert']) {
    const user = { name, tenant: 'carbon.super', roles: ['Internal/subscriber'], claims: {} }
    await admin.registry.users.create(user, 'a-password-of-theirs')
  }
})
after(() => admin.close())
beforeEach(() => Object.assign(admin.approvals, { subscriptions: true, applications: true, keys: true, woken: 0 }))

const PORTAL = '/api/am/devportal/v3'
const PUBLISHER = '/api/am/publisher/v4'
const ADMIN = '/api/am/admin/v4'
const CALLBACK = '/api/am/publisher/v0.15/workflows/update-workflow-status'

type Body = Record<string, unknown>

/** A request of the developer alice. */
async function ask(method: string, path: string, body?: Body) {
  const authorization = `Bearer ${await admin.tokenOf('alice')}`
  return admin.fetch(method, `${PORTAL}${path}`, { ...(body === undefined ? {} : { body }), authorization })
}

async function pending(kind = ''): Promise<readonly Body[]> {
  const { json } = await admin.fetch('GET', `${ADMIN}/workflows?limit=1000&workflowType=${kind}`)
  return json.list as unknown as Body[]
}

async function decide(id: unknown, status: string, path = `${ADMIN}/workflows/update-workflow-status`, headers = {}) {
  const body = { status, attributes: {}, description: 'because' }
  return admin.fetch('POST', `${path}?workflowReferenceId=${String(id)}`, { body, ...headers })
}

async function application(isApproved = true): Promise<{ readonly id: string; readonly name: string }> {
  const name = `Shop ${randomUUID()}`
  const { status, json } = await ask('POST', '/applications', { name, throttlingPolicy: '10PerMin' })
  assert.deepEqual([status, json.status], [201, 'CREATED'])
  const id = String(json.applicationId)
  if (isApproved) {
    const waiting = (await pending('AM_APPLICATION_CREATION')).find(
      ({ properties }) => (properties as Body).applicationName === name,
    )
    assert.equal((await decide(waiting?.referenceId, 'APPROVED')).status, 200)
  }
  return { id, name }
}

test('the list of workflows is in the format of the reference platform', async () => {
  const { name } = await application(false)
  assert.equal(admin.approvals.woken, 1)
  const { status, json } = await admin.fetch('GET', `${ADMIN}/workflows?workflowType=AM_APPLICATION_CREATION&limit=1`)
  assert.equal(status, 200)
  assert.deepEqual([json.count, json.list.length, json.pagination.limit], [1, 1, 1])
  const found = (await pending()).find(({ properties }) => (properties as Body).applicationName === name)!
  const { createdTime, updatedTime, referenceId, ...rest } = found
  assert.deepEqual(rest, {
    workflowType: 'AM_APPLICATION_CREATION',
    workflowStatus: 'CREATED',
    properties: { applicationName: name, tier: '10PerMin', description: '', requester: 'alice' },
    description: 'AM_APPLICATION_CREATION of alice',
  })
  for (const time of [createdTime, updatedTime]) assert.match(String(time), /^\d{4}-\d\d-\d\dT/)
  const one = await admin.fetch('GET', `${ADMIN}/workflows/${String(referenceId)}`)
  assert.deepEqual(Object(one.json), found)
})

test('an application that waits, or was rejected, gets neither keys nor subscriptions', async () => {
  const { id } = await application(false)
  const refused = async () => [
    (await ask('POST', `/applications/${id}/generate-keys`, { keyType: 'PRODUCTION' })).status,
    (await ask('POST', '/subscriptions', { applicationId: id, apiId: 'Orders:1.0.0', throttlingPolicy: 'Gold' }))
      .status,
    (await ask('POST', `/applications/${id}/api-keys/PRODUCTION/generate`, {})).status,
    (await ask('POST', `/applications/${id}/map-keys`, { consumerKey: 'a', consumerSecret: 'b', keyType: 'SANDBOX' }))
      .status,
  ]
  assert.deepEqual(await refused(), [409, 409, 409, 409])
  const waiting = (await pending('AM_APPLICATION_CREATION')).at(-1)!
  assert.equal((await decide(waiting.referenceId, 'REJECTED')).json.workflowStatus, 'REJECTED')
  assert.deepEqual(await refused(), [409, 409, 409, 409])
  assert.equal((await ask('GET', `/applications/${id}`)).json.status, 'REJECTED')
  assert.equal((await ask('DELETE', `/applications/${id}`)).status, 200)
})

async function subscribed(): Promise<{ readonly id: string; readonly request: string; readonly of: Body }> {
  const { id: applicationId } = await application()
  const of = { applicationId, apiId: 'Orders:1.0.0', throttlingPolicy: 'Gold' }
  const { status, json } = await ask('POST', '/subscriptions', of)
  assert.deepEqual([status, json.status], [201, 'ON_HOLD'])
  const request = (await pending('AM_SUBSCRIPTION_CREATION')).at(-1)!
  const { applicationName: _, ...properties } = request.properties as Body
  assert.deepEqual(properties, {
    ...{ apiName: 'Orders', apiVersion: '1.0.0', apiContext: '/Orders/1.0.0', tier: 'Gold', requester: 'alice' },
  })
  return { id: String(json.subscriptionId), request: String(request.referenceId), of }
}

test('a subscription is ON_HOLD until it is approved or rejected', async () => {
  const one = await subscribed()
  assert.deepEqual(Object((await decide(one.request, 'APPROVED')).json), {
    workflowStatus: 'APPROVED',
    jsonPayload: '',
  })
  assert.equal((await ask('GET', `/subscriptions/${one.id}`)).json.status, 'UNBLOCKED')
  const other = await subscribed()
  await decide(other.request, 'REJECTED')
  assert.equal((await ask('GET', `/subscriptions/${other.id}`)).json.status, 'REJECTED')
  const { json } = await admin.fetch('GET', `${ADMIN}/workflows/${other.request}`)
  assert.deepEqual([json.workflowStatus, json.description], ['REJECTED', 'because'])
})

test('a decision may be repeated, and not turned round', async () => {
  const { request } = await subscribed()
  for (const [status, expected] of [
    ['APPROVED', 200],
    ['APPROVED', 200],
    ['REJECTED', 409],
  ] as const)
    assert.equal((await decide(request, status)).status, expected)
})

test('publishers neither block nor unblock what waits: that would be an approval', async () => {
  const { id, request } = await subscribed()
  const block = `${PUBLISHER}/subscriptions/block-subscription?subscriptionId=${id}&blockState=BLOCKED`
  const unblock = `${PUBLISHER}/subscriptions/unblock-subscription?subscriptionId=${id}`
  assert.equal((await admin.fetch('POST', block)).status, 409)
  assert.equal((await admin.fetch('POST', unblock)).status, 409)
  await decide(request, 'REJECTED')
  assert.equal((await admin.fetch('POST', unblock)).status, 409)
  assert.equal((await ask('GET', `/subscriptions/${id}`)).json.status, 'REJECTED')
})

test('a change of the policy waits too, and the old one holds until then', async () => {
  const { id, request, of } = await subscribed()
  const change = { ...of, throttlingPolicy: 'Silver' }
  assert.equal((await ask('PUT', `/subscriptions/${id}`, change)).status, 409)
  await decide(request, 'APPROVED')
  const { json } = await ask('PUT', `/subscriptions/${id}`, change)
  assert.deepEqual(
    [json.status, json.throttlingPolicy, json.requestedThrottlingPolicy],
    ['TIER_UPDATE_PENDING', 'Gold', 'Silver'],
  )
  const listed = await ask('GET', `/subscriptions?applicationId=${String(of.applicationId)}`)
  assert.equal(listed.json.list[0].status, 'TIER_UPDATE_PENDING')
  const [update] = (await pending('AM_SUBSCRIPTION_UPDATE')).slice(-1)
  await decide(update!.referenceId, 'APPROVED')
  const changed = (await ask('GET', `/subscriptions/${id}`)).json
  assert.deepEqual([changed.status, changed.throttlingPolicy], ['UNBLOCKED', 'Silver'])
})

test('keys are generated once their request is approved, and each generation needs one', async () => {
  const { id } = await application()
  const body = { keyType: 'SANDBOX', grantTypesToBeSupported: ['client_credentials'] }
  const generate = async () => (await ask('POST', `/applications/${id}/generate-keys`, body)).json
  const first = await generate()
  assert.deepEqual([first.keyState, first.consumerKey, first.keyType], ['CREATED', null, 'SANDBOX'])
  assert.equal((await generate()).keyMappingId, first.keyMappingId)
  assert.deepEqual((await admin.registry.clients.listForApplication(id)).length, 0)
  await decide(first.keyMappingId, 'REJECTED')
  const again = await generate()
  assert.notEqual(again.keyMappingId, first.keyMappingId)
  await decide(again.keyMappingId, 'APPROVED')
  const approved = (await ask('GET', `/applications/${id}/oauth-keys`)).json.list[0]
  assert.deepEqual([approved.keyState, approved.consumerKey], ['APPROVED', null])
  const made = await generate()
  assert.equal(made.keyState, 'APPROVED')
  assert.match(String(made.consumerSecret), /^[\w-]{43}$/)
  assert.deepEqual((await ask('GET', `/applications/${id}/oauth-keys`)).json.count, 1)
  await ask('DELETE', `/applications/${id}/oauth-keys/${String(made.keyMappingId)}`)
  assert.equal((await generate()).keyState, 'CREATED')
})

test('an approval holds for the keys that were asked for, and for no others', async () => {
  const { id } = await application()
  const generate = async (more: Body) =>
    (await ask('POST', `/applications/${id}/generate-keys`, { keyType: 'PRODUCTION', ...more })).json
  const plain = { grantTypesToBeSupported: ['client_credentials'] }
  const wider = { grantTypesToBeSupported: ['client_credentials', 'refresh_token'] }
  const first = await generate(plain)
  const second = await generate(wider)
  assert.notEqual(second.keyMappingId, first.keyMappingId)
  assert.equal((await decide(first.keyMappingId, 'APPROVED')).status, 404)
  await decide(second.keyMappingId, 'APPROVED')
  const third = await generate(plain)
  assert.deepEqual([third.keyState, third.consumerKey], ['CREATED', null])
  await decide(third.keyMappingId, 'APPROVED')
  assert.deepEqual(Object(await generate(plain)).supportedGrantTypes, ['client_credentials'])
})

test('an OAuth client is mapped to an application with an approval alone', async () => {
  const { id } = await application()
  const { client, secret } = await admin.registry.clients.create({
    ...{ name: 'own', applicationId: null, keyType: 'PRODUCTION', owner: 'alice', tenant: 'carbon.super' },
    ...{ grants: ['password'], redirectUris: [], isPublic: false, tokenType: 'JWT', validityS: 0 },
  })
  const body = { consumerKey: client.consumerKey, consumerSecret: secret, keyType: 'PRODUCTION' }
  const first = (await ask('POST', `/applications/${id}/map-keys`, body)).json
  assert.deepEqual([first.keyState, first.consumerKey], ['CREATED', null])
  assert.equal((await admin.registry.clients.get(client.consumerKey))?.applicationId, null)
  await decide(first.keyMappingId, 'APPROVED')
  assert.equal((await ask('POST', `/applications/${id}/map-keys`, body)).json.consumerKey, client.consumerKey)
})

test('what needs no approval is there at once', async () => {
  Object.assign(admin.approvals, { subscriptions: false, applications: false, keys: false })
  const created = await ask('POST', '/applications', { name: 'At once' })
  assert.equal(created.json.status, 'APPROVED')
  const of = { applicationId: created.json.applicationId, apiId: 'Orders:1.0.0', throttlingPolicy: 'Gold' }
  assert.equal((await ask('POST', '/subscriptions', of)).json.status, 'UNBLOCKED')
  const keys = await ask('POST', `/applications/${String(of.applicationId)}/generate-keys`, { keyType: 'PRODUCTION' })
  assert.equal(keys.json.keyState, 'APPROVED')
  assert.equal(admin.approvals.woken, 0)
})

test('keys that waited are generated at once when approvals are switched off, and nothing is left over', async () => {
  const { id } = await application()
  const generate = () => ask('POST', `/applications/${id}/generate-keys`, { keyType: 'PRODUCTION' })
  assert.equal((await generate()).json.keyState, 'CREATED')
  admin.approvals.keys = false
  assert.notEqual((await generate()).json.consumerKey, null)
  assert.deepEqual(await pending('AM_APPLICATION_REGISTRATION_PRODUCTION'), [])
})

test('the callback of an engine decides at each path, with an account that may', async () => {
  for (const path of [CALLBACK, CALLBACK.replace('v0.15', 'v0.14'), '/own/callback']) {
    const { request } = await subscribed()
    assert.equal((await decide(request, 'APPROVED', path)).status, 200, path)
  }
  const { request } = await subscribed()
  const alice = { authorization: `Bearer ${await admin.tokenOf('alice')}` }
  assert.equal((await decide(request, 'APPROVED', CALLBACK, alice)).status, 403)
  assert.equal((await decide(request, 'APPROVED', CALLBACK, { authorization: '' })).status, 401)
  assert.equal((await admin.fetch('GET', `${ADMIN}/workflows`, alice)).status, 403)
  assert.equal((await decide(request, 'CREATED', CALLBACK)).status, 400)
  assert.equal((await decide('unknown', 'APPROVED', CALLBACK)).status, 404)
})

test('administrators of another tenant neither see nor decide a request', async () => {
  const { request } = await subscribed()
  await admin.registry.tenants.create('other.example')
  const boss = { name: 'boss-1', tenant: 'other.example', roles: ['admin'], claims: {} }
  await admin.registry.users.create(boss, 'a-password-of-theirs')
  const of = { authorization: `Bearer ${await admin.tokenOf('boss-1', undefined, { tenant: 'other.example' })}` }
  const { json } = await admin.fetch('GET', `${ADMIN}/workflows`, of)
  assert.equal(json.count, 0)
  assert.equal((await decide(request, 'APPROVED', CALLBACK, of)).status, 404)
})

test('commands approve and reject subscriptions, applications and keys', async () => {
  const run = (action: string, members: Body = {}) => admin.commands.run({ action, ...members }) as Promise<Body>
  const made = await run('application create', { name: 'By command', owner: 'alice' })
  assert.equal(made.status, 'CREATED')
  const owned = { application: 'By command', owner: 'alice' }
  await assert.rejects(run('key generate', owned), { status: 409, message: /By command waits for approval/ })
  await assert.rejects(run('key api', owned), { status: 409 })
  assert.equal((await run('application approve', { ...owned, reason: 'fine' })).status, 'APPROVED')
  await assert.rejects(run('application approve', owned), { status: 409, message: /nothing waits/ })
  const request = await run('key generate', owned)
  assert.deepEqual([request.status, request.keyType], ['CREATED', 'PRODUCTION'])
  await assert.rejects(run('key approve', { ...owned, type: 'SANDBOX' }), { status: 409 })
  assert.equal((await run('key approve', owned)).status, 'APPROVED')
  assert.deepEqual((await run('key list', owned)).keys, [])
  assert.match(String((await run('key generate', owned)).secret), /^[\w-]{43}$/)
  const pair = { ...owned, api: 'Orders:1.0.0' }
  assert.equal((await run('subscription add', pair)).status, 'ON_HOLD')
  await assert.rejects(run('subscription unblock', pair), { status: 409 })
  assert.equal((await run('subscription reject', pair)).status, 'REJECTED')
  await run('subscription remove', pair)
  await run('subscription add', pair)
  assert.equal((await run('subscription approve', pair)).status, 'ACTIVE')
  const reports = admin.reports.filter(line => /^request (?:approved|rejected) /.test(line))
  assert.match(reports.at(-1)!, /"USER":"admin".*"WORKFLOW_TYPE":"AM_SUBSCRIPTION_CREATION","REQUESTER":"admin"/)
})
