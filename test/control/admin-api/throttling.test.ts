/** Issue 16, items 3 and 4: policies and deny policies by REST and by command. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startAdminApi } from './running-admin-api.ts'

let admin: Awaited<ReturnType<typeof startAdminApi>>
before(async () => {
  admin = await startAdminApi()
})
after(() => admin.close())

const ADMIN = '/api/am/admin/v4/throttling'
const PORTAL = '/api/am/devportal/v3'
const PUBLISHER = '/api/am/publisher/v4'

function limitOf(requestCount: number) {
  return { type: 'REQUESTCOUNTLIMIT', requestCount: { timeUnit: 'min', unitTime: 1, requestCount } }
}

/** A response: status, and a body of any shape. */
async function send(method: string, path: string, body?: object): Promise<[number, ReturnType<typeof JSON.parse>]> {
  const { status, json } = await admin.fetch(method, path, body === undefined ? {} : { body })
  return [status, json]
}

const BODIES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  application: { policyName: 'AppTier', displayName: 'App tier', description: 'small', defaultLimit: limitOf(7) },
  subscription: {
    ...{ policyName: 'SubTier', stopOnQuotaReach: true, rateLimitCount: 5, rateLimitTimeUnit: 'sec' },
    ...{ subscriberCount: 2, billingPlan: 'FREE', customAttributes: [], defaultLimit: limitOf(70) },
  },
  advanced: {
    ...{ policyName: 'ApiTier', userLevel: 'PER_USER', defaultLimit: limitOf(700) },
    conditionalGroups: [
      {
        description: 'one address',
        conditions: [{ type: 'IPCONDITION', ipCondition: { ipConditionType: 'IPSPECIFIC', specificIP: '192.0.2.1' } }],
        limit: limitOf(1),
      },
    ],
  },
  custom: { policyName: 'Rule', keyTemplate: '$userId:$apiContext', defaultLimit: limitOf(9) },
}

for (const [level, body] of Object.entries(BODIES)) {
  test(`an ${level} policy is created, listed, changed and removed in the form of the reference platform`, async () => {
    const path = `${ADMIN}/policies/${level}`
    const [status, created] = await send('POST', path, body)
    assert.equal(status, 201)
    const { policyId, isDeployed, source, ...told } = created
    assert.deepEqual([told, isDeployed, source], [body, true, 'database'])
    const [, list] = await send('GET', `${path}?limit=1000`)
    assert.equal(list.count, list.list.length)
    assert.ok(list.list.some((each: { policyId: string }) => each.policyId === policyId))
    assert.deepEqual(await send('GET', `${path}/${policyId}`), [200, created])
    assert.equal((await send('POST', path, body))[0], 409)
    const changed = { ...created, defaultLimit: limitOf(8) }
    delete changed.source
    const [putStatus, put] = await send('PUT', `${path}/${policyId}`, changed)
    assert.deepEqual([putStatus, put.defaultLimit], [200, limitOf(8)])
    assert.equal((await send('PUT', `${path}/${policyId}`, { ...body, policyName: 'Other' }))[0], 400)
    assert.equal((await send('DELETE', `${path}/${policyId}`))[0], 200)
    assert.equal((await send('GET', `${path}/${policyId}`))[0], 404)
  })
}

test('lists of policies are paged', async () => {
  const [, page] = await send('GET', `${ADMIN}/policies/subscription?limit=2&offset=1`)
  assert.deepEqual([page.count, page.pagination.limit, page.pagination.offset], [2, 2, 1])
  assert.deepEqual(
    page.list.map(({ policyName }: { policyName: string }) => policyName),
    ['Gold', 'Silver'],
  )
})

test('every default tier is listed with its body', async () => {
  const names = []
  for (const level of ['application', 'subscription', 'advanced', 'custom']) {
    const [, { list }] = await send('GET', `${ADMIN}/policies/${level}`)
    for (const { policyName, source, defaultLimit } of list)
      if (source === 'built in') names.push(`${level} ${policyName} ${defaultLimit.requestCount.requestCount}`)
  }
  assert.deepEqual(names.sort(), [
    ...['advanced 10KPerMin 10000', 'advanced 20KPerMin 20000', 'advanced 50KPerMin 50000'],
    ...['advanced Unlimited 2147483647', 'application 10PerMin 10', 'application 20PerMin 20'],
    ...['application 50PerMin 50', 'application Unlimited 2147483647', 'subscription Bronze 1000'],
    ...['subscription Gold 5000', 'subscription Silver 2000', 'subscription Unauthenticated 500'],
    'subscription Unlimited 2147483647',
  ])
})

test('a built-in tier can be changed and then removed, which brings the built-in one back', async () => {
  const path = `${ADMIN}/policies/application`
  const [, { list }] = await send('GET', path)
  const { policyId } = list.find(({ policyName }: { policyName: string }) => policyName === '10PerMin')
  assert.deepEqual(await send('DELETE', `${path}/${policyId}`).then(([status]) => status), 403)
  const [, put] = await send('PUT', `${path}/${policyId}`, { policyName: '10PerMin', defaultLimit: limitOf(11) })
  assert.deepEqual([put.source, put.defaultLimit], ['database', limitOf(11)])
  assert.equal((await send('DELETE', `${path}/${policyId}`))[0], 200)
  assert.deepEqual((await send('GET', `${path}/${policyId}`))[1].defaultLimit, limitOf(10))
})

test('a policy and a deny policy of a file are refused to change, with the reason', async () => {
  const path = `${ADMIN}/policies/application`
  const [, { policyId, source }] = await send('GET', `${path}/FromFile`)
  assert.equal(source, 'file')
  const body = { policyName: 'FromFile', defaultLimit: limitOf(1) }
  const refusals = [
    await send('POST', path, body),
    await send('PUT', `${path}/${policyId}`, body),
    await send('DELETE', `${path}/${policyId}`),
  ]
  for (const [status, { description }] of refusals) {
    assert.equal(status, 403)
    assert.match(description, /a file in policies\/application\/ has the policy FromFile: change the file and reload/)
  }
  const [, { list }] = await send('GET', `${ADMIN}/deny-policies`)
  const { conditionId } = list.find(({ conditionValue }: { conditionValue: string }) => conditionValue === 'mallory')
  assert.equal((await send('DELETE', `${ADMIN}/deny-policy/${conditionId}`))[0], 403)
  assert.equal((await send('PATCH', `${ADMIN}/deny-policy/${conditionId}`, { conditionStatus: false }))[0], 403)
  assert.equal(
    (await send('POST', `${ADMIN}/deny-policies`, { conditionType: 'USER', conditionValue: 'mallory' }))[0],
    409,
  )
})

test('a policy in use is refused to be removed, and the refusal names its users', async () => {
  for (const [level, name] of [
    ['application', 'InUse'],
    ['subscription', 'Silver'],
  ] as const)
    await send('POST', `${ADMIN}/policies/${level}`, { policyName: name, defaultLimit: limitOf(1) })
  const application = { name: 'Busy', throttlingPolicy: 'InUse' }
  assert.equal((await send('POST', `${PORTAL}/applications`, application))[0], 201)
  const [status, { description }] = await send('DELETE', `${ADMIN}/policies/application/InUse`)
  assert.deepEqual([status, description], [409, 'the policy InUse is in use: application Busy'])
})

test('a tier that no policy has is refused to applications, with the tiers that there are', async () => {
  const [status, { description }] = await send('POST', `${PORTAL}/applications`, {
    name: 'Odd',
    throttlingPolicy: 'None',
  })
  assert.equal(status, 400)
  assert.match(description, /^throttlingPolicy: is no application policy; there are 10PerMin, 20PerMin, 50PerMin, /)
})

/** [what is wrong, level, body, the member that the problem names]. */
const WRONG: readonly (readonly [why: string, level: string, body: object, member: string])[] = [
  ['no name', 'application', { defaultLimit: limitOf(1) }, 'policyName'],
  ['an unknown member', 'application', { policyName: 'A', defaultLimit: limitOf(1), window2: 1 }, 'window2'],
  ['no limit', 'subscription', { policyName: 'A' }, 'defaultLimit'],
  [
    'a limit of 0',
    'subscription',
    { policyName: 'A', defaultLimit: limitOf(0) },
    'defaultLimit.requestCount.requestCount',
  ],
  [
    'a query of another shape',
    'custom',
    { policyName: 'A', keyTemplate: '$userId', siddhiQuery: 'from X' },
    'siddhiQuery',
  ],
]

for (const [why, level, body, member] of WRONG) {
  test(`an ${level} policy with ${why} is refused, and the problem names the member`, async () => {
    const [status, { error }] = await send('POST', `${ADMIN}/policies/${level}`, body)
    assert.deepEqual([status, error[0].code], [400, member])
  })
}

/** [type, value]. */
const DENIED: readonly (readonly [type: string, value: unknown])[] = [
  ['API', '/orders/1.0.0'],
  ['APPLICATION', 'alice:Shop'],
  ['USER', 'eve'],
  ['SUBSCRIPTION', '/orders/1.0.0:alice:Shop'],
  ['IP', { fixedIp: '192.0.2.1', invert: false }],
  ['IPRANGE', { startingIp: '192.0.2.1', endingIp: '192.0.2.9', invert: true }],
]

for (const [conditionType, conditionValue] of DENIED) {
  test(`a deny policy of type ${conditionType} is created, switched and removed`, async () => {
    const body = { conditionType, conditionValue, conditionStatus: true }
    const [status, created] = await send('POST', `${ADMIN}/deny-policies`, body)
    const { conditionId, ...told } = created
    assert.deepEqual([status, told], [201, body])
    assert.equal((await send('POST', `${ADMIN}/deny-policies`, body))[0], 409)
    const one = `${ADMIN}/deny-policy/${conditionId}`
    const switched = await send('PATCH', one, { conditionStatus: false })
    assert.deepEqual(switched, [200, { ...created, conditionStatus: false }])
    assert.deepEqual(await send('GET', one), switched)
    assert.equal((await send('DELETE', one))[0], 200)
    assert.equal((await send('GET', one))[0], 404)
  })
}

test('portals list the tiers that their users choose from', async () => {
  const lists = [`${PORTAL}/throttling-policies/application`, `${PUBLISHER}/throttling-policies/api`]
  for (const path of lists) {
    const [status, { list }] = await send('GET', path)
    assert.equal(status, 200)
    assert.ok(list.length > 3 && list.every((each: { name: string }) => each.name !== ''))
  }
  const [, gold] = await send('GET', `${PORTAL}/throttling-policies/subscription/Gold`)
  assert.deepEqual(gold, {
    ...{ name: 'Gold', displayName: 'Gold', description: '', policyLevel: 'subscription', attributes: {} },
    ...{ tierPlan: 'FREE', requestCount: 5000, quotaPolicyType: 'REQUESTCOUNT', unitTime: 1, timeUnit: 'min' },
    stopOnQuotaReach: true,
  })
  assert.equal((await send('GET', `${PORTAL}/throttling-policies/api`))[0], 404)
})

test('only administrators see and change policies', async () => {
  await admin.registry.users.create(
    { name: 'subscriber', tenant: 'carbon.super', roles: ['Internal/subscriber'], claims: {} },
    'a-password-of-theirs',
  )
  const authorization = `Bearer ${await admin.tokenOf('subscriber')}`
  const paths = ['/policies/application', '/deny-policies']
  for (const path of paths)
    assert.ok([401, 403].includes((await admin.fetch('GET', `${ADMIN}${path}`, { authorization })).status))
})

test('commands do what REST does', async () => {
  const body = { type: 'throttling policy', data: { policyName: 'ByCommand', defaultLimit: limitOf(3) } }
  const applied = await admin.commands.run({ action: 'throttle policy apply', level: 'application', body })
  assert.deepEqual(applied, {
    level: 'application',
    name: 'ByCommand',
    limit: '3 requests per min',
    source: 'database',
  })
  const { policies } = Object(await admin.commands.run({ action: 'throttle policy list', level: 'application' }))
  assert.ok(policies.some(({ name }: { name: string }) => name === 'ByCommand'))
  await admin.commands.run({ action: 'throttle policy remove', level: 'application', policy: 'ByCommand' })
  await assert.rejects(
    admin.commands.run({ action: 'throttle policy show', level: 'application', policy: 'ByCommand' }),
    {
      message: 'unknown application policy',
    },
  )
  const added = Object(await admin.commands.run({ action: 'throttle deny add', type: 'ip', value: '198.51.100.0/24' }))
  assert.deepEqual([added.type, added.value, added.enabled], ['IP', '198.51.100.0/24', true])
  const disabled = Object(await admin.commands.run({ action: 'throttle deny disable', deny: '198.51.100.0/24' }))
  assert.deepEqual([disabled.id, disabled.enabled], [added.id, false])
  await admin.commands.run({ action: 'throttle deny remove', deny: added.id })
  const { denied } = Object(await admin.commands.run({ action: 'throttle deny list' }))
  assert.deepEqual(
    denied.map(({ source }: { source: string }) => source),
    ['file'],
  )
})

test('D218: a 25th custom policy is refused, and one that exists can be changed', async () => {
  const path = `${ADMIN}/policies/custom`
  const body = (name: string) => ({ ...BODIES.custom, policyName: name })
  const [, { count }] = await send('GET', path)
  const ids: string[] = []
  for (let at = count; at < 24; at++) {
    const [status, { policyId }] = await send('POST', path, body(`Rule${at}`))
    assert.equal(status, 201)
    ids.push(policyId)
  }
  const [status, { description }] = await send('POST', path, body('TooMany'))
  assert.deepEqual([status, description], [409, 'there are 24 custom policies already: remove one first'])
  assert.equal((await send('PUT', `${path}/${ids[0]}`, body(`Rule${count}`)))[0], 200)
  for (const id of ids) assert.equal((await send('DELETE', `${path}/${id}`))[0], 200)
})

test('administrators of other tenants neither read nor change what holds for every tenant', async () => {
  await admin.registry.tenants.create('other.example')
  const boss = { name: 'other-boss', tenant: 'other.example', roles: ['admin'], claims: {} }
  await admin.registry.users.create(boss, 'a-password-of-theirs')
  const token = await admin.tokenOf('other-boss', undefined, { tenant: 'other.example' })
  const statusOf = async (method: string, path: string, body?: object): Promise<number> => {
    const sent = { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { body }) }
    return (await admin.fetch(method, `${ADMIN}${path}`, sent)).status
  }
  const everybody = { conditionType: 'IP', conditionValue: { fixedIp: '0.0.0.0/0', invert: false } }
  const [, { conditionId: id }] = await send('POST', `${ADMIN}/deny-policies`, everybody)
  assert.equal(await statusOf('GET', '/deny-policies'), 403)
  assert.equal(await statusOf('POST', '/deny-policies', everybody), 403)
  assert.equal(await statusOf('PATCH', `/deny-policy/${id}`, { conditionStatus: false }), 403)
  assert.equal(await statusOf('DELETE', `/deny-policy/${id}`), 403)
  for (const [level, body] of Object.entries(BODIES)) {
    assert.equal(await statusOf('GET', `/policies/${level}`), 403)
    assert.equal(await statusOf('POST', `/policies/${level}`, body), 403)
  }
})
