/** Limits of every level, through real requests: codes, order, keys, and what a refused request is charged to. */
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import type { ThrottlingPolicy } from '../../src/throttle/policy.ts'
import {
  advanced,
  application,
  custom,
  MIDNIGHT,
  openApi,
  operation,
  quota,
  securedApi,
  subscription,
  ThrottledGateway,
} from '../harness/throttled-gateway.ts'

const MINUTE = 60_000
const ONE = quota(1)

const running = await ThrottledGateway.start(port => [
  securedApi(port, 'plain'),
  securedApi(port, 'tiered', { tier: 'ApiTier', resources: [operation('/a', 'ResourceTier')] }),
  securedApi(port, 'unlimited', { tier: 'Unlimited', resources: [operation('/a', 'ResourceTier')] }),
  securedApi(port, 'resources', {
    resources: [operation('/a', 'ResourceTier'), operation('/b', 'ResourceTier'), operation('/free')],
  }),
  securedApi(port, 'users', { tier: 'PerUser' }),
  securedApi(port, 'hard', {
    hardLimits: { production: { limit: 2, unit: 'sec' }, sandbox: { limit: 1, unit: 'min' } },
  }),
  openApi(port, 'open', { tier: 'ApiTier' }),
])

let minutes = 0

beforeEach(() => {
  running.clock.ms = MIDNIGHT + ++minutes * 60 * MINUTE
  running.apply([])
})

interface LevelCase {
  readonly code: number
  readonly status: number
  readonly message: string
  readonly description: string
  readonly policies: readonly ThrottlingPolicy[]
  readonly tiers: { readonly application?: string; readonly subscription?: string }
  readonly api: string
  readonly path?: string
  readonly passes?: number
}

const EXCEEDED = 'You have exceeded your quota'

const LEVELS: readonly LevelCase[] = [
  {
    ...{ code: 900800, status: 429, message: 'Message throttled out', description: EXCEEDED },
    ...{ policies: [advanced('ApiTier', ONE)], tiers: {}, api: 'tiered', path: '/a' },
  },
  {
    ...{ code: 900801, status: 503, message: 'Hard limit exceeded', description: 'API not accepting requests' },
    ...{ policies: [], tiers: {}, api: 'hard', passes: 2 },
  },
  {
    ...{ code: 900802, status: 429, message: 'Resource level throttle out', description: EXCEEDED },
    ...{ policies: [advanced('ResourceTier', ONE)], tiers: {}, api: 'resources', path: '/a' },
  },
  {
    ...{ code: 900803, status: 429, message: 'Application level throttle out', description: EXCEEDED },
    ...{ policies: [application('Small', ONE)], tiers: { application: 'Small' }, api: 'plain' },
  },
  {
    ...{ code: 900804, status: 429, message: 'Subscription level throttled out', description: EXCEEDED },
    ...{ policies: [subscription('Copper', ONE)], tiers: { subscription: 'Copper' }, api: 'plain' },
  },
  {
    ...{ code: 900806, status: 429, message: 'Custom policy throttled out', description: EXCEEDED },
    ...{ policies: [custom('ByUser', '$userId:$apiContext:$apiVersion', ONE)], tiers: {}, api: 'plain' },
  },
  {
    ...{ code: 900807, status: 429, message: 'Message throttled out', description: EXCEEDED },
    ...{ policies: [subscription('Bursty', null, { burst: ONE })], tiers: { subscription: 'Bursty' }, api: 'plain' },
  },
]

for (const { code, status, message, description, policies, tiers, api, path = '/x', passes = 1 } of LEVELS) {
  test(`${code} ${message}: a real request beyond the limit gets it, and the next window admits again`, async () => {
    running.apply([advanced('ApiTier', null), advanced('ResourceTier', null), ...policies])
    running.token(`level-${code}`, tiers, api)
    const before = await running.codes(passes, `/${api}${path}`, `level-${code}`)
    const refused = await running.request(`/${api}${path}`, `level-${code}`)
    assert.deepEqual([...before, refused.code, refused.status], [...before.map(() => 0), code, status])
    const { fault } = JSON.parse(refused.body)
    assert.deepEqual([fault.type, fault.message, fault.description], ['Status report', message, description])
    assert.match(fault.nextAccessTime, /^2026-Nov-\d\d \d\d:\d\d:\d\d\+0000 UTC$/)
    running.clock.ms += MINUTE
    assert.equal((await running.request(`/${api}${path}`, `level-${code}`)).code, 0)
  })
}

test('the documented default tiers hold their numbers: N pass in a minute, and no more', async () => {
  running.token('ten', { application: '10PerMin' }, 'plain')
  running.token('twenty', { application: '20PerMin' }, 'plain')
  assert.deepEqual(await running.codes(12, '/plain/x', 'ten'), [...Array(10).fill(0), 900803, 900803])
  assert.deepEqual(await running.codes(21, '/plain/x', 'twenty'), [...Array(20).fill(0), 900803])
})

test('limits decide in the documented order: the first that is used up gives the code', async () => {
  running.apply([
    advanced('ApiTier', quota(7)),
    subscription('Copper', quota(6), { burst: quota(5) }),
    application('Small', quota(4)),
    custom('All', '$apiContext', quota(3)),
  ])
  running.token('ordered', { application: 'Small', subscription: 'Copper' }, 'tiered')
  assert.deepEqual(await running.codes(5, '/tiered/a', 'ordered'), [0, 0, 0, 900806, 900806])
  const policies = [custom('All', '$apiContext', quota(99))]
  for (const [code, policy] of [
    [900803, application('Small', quota(3))],
    [900807, subscription('Copper', quota(6), { burst: quota(3) })],
    [900804, subscription('Copper', quota(3), { burst: quota(3) })],
    [900800, advanced('ApiTier', quota(3))],
  ] as const) {
    policies.push(policy as never)
    running.apply(policies)
    assert.deepEqual(await running.codes(1, '/tiered/a', 'ordered'), [code])
  }
})

test('a request that one level refuses is counted by none', async () => {
  running.apply([subscription('Copper', quota(3)), application('Small', quota(2))])
  running.token('refused', { application: 'Small', subscription: 'Copper' }, 'plain')
  assert.deepEqual(await running.codes(9, '/plain/x', 'refused'), [0, 0, ...Array(7).fill(900803)])
  running.apply([subscription('Copper', quota(3)), application('Small', quota(99))])
  assert.deepEqual(await running.codes(2, '/plain/x', 'refused'), [0, 900804])
})

test('a tier of the API replaces those of its resources, the tier Unlimited too', async () => {
  running.apply([advanced('ApiTier', quota(5)), advanced('ResourceTier', ONE)])
  running.token('replaced', {}, 'tiered', 'unlimited')
  assert.deepEqual(await running.codes(6, '/tiered/a', 'replaced'), [0, 0, 0, 0, 0, 900800])
  assert.deepEqual(await running.codes(3, '/unlimited/a', 'replaced'), [0, 0, 0])
})

test('each resource counts for itself, over all callers; another resource is not limited', async () => {
  running.apply([advanced('ResourceTier', ONE)])
  running.token('first', {}, 'resources')
  running.token('second', {}, 'resources')
  assert.deepEqual(await running.codes(1, '/resources/a', 'first'), [0])
  assert.deepEqual(await running.codes(1, '/resources/a', 'second'), [900802])
  assert.deepEqual(await running.codes(1, '/resources/b', 'second'), [0])
  assert.deepEqual(await running.codes(3, '/resources/free', 'second'), [0, 0, 0])
})

test('a policy of the user level counts each user for himself', async () => {
  running.apply([advanced('PerUser', ONE, { userLevel: 'PER_USER' })])
  running.token('anne', {}, 'users')
  const others = running.control.token('anne', { sub: 'bob' })
  assert.deepEqual(await running.codes(2, '/users/x', 'anne'), [0, 900800])
  assert.deepEqual(await running.codes(2, '/users/x', '', `Authorization: Bearer ${others}\r\n`), [0, 900800])
})

test('subscriptions of an application count by API; the application counts over all of them, by user', async () => {
  running.apply([subscription('Copper', quota(2)), application('Small', quota(3))])
  running.token('buyer', { application: 'Small', subscription: 'Copper' }, 'plain', 'tiered')
  assert.deepEqual(await running.codes(3, '/plain/x', 'buyer'), [0, 0, 900804])
  assert.deepEqual(await running.codes(2, '/tiered/a', 'buyer'), [0, 900803])
})

test('the hard limit counts all callers together, by key type', async () => {
  running.token('live', {}, 'hard')
  running.token('live-too', {}, 'hard')
  running.token('test', {}, 'hard')
  running.control.update({
    keys: [
      { issuer: 'https://localhost:9443/oauth2/token', consumerKey: 'test', applicationId: 'test', keyType: 'SANDBOX' },
    ],
  })
  assert.deepEqual(await running.codes(1, '/hard/x', 'live'), [0])
  assert.deepEqual(await running.codes(2, '/hard/x', 'live-too'), [0, 900801])
  running.clock.ms += 1000
  assert.deepEqual(await running.codes(1, '/hard/x', 'live'), [0])
  // The API has no sandbox endpoint; the limit decides first.
  assert.deepEqual(await running.codes(2, '/hard/x', 'test'), [900901, 900801])
})

test('a quota that does not stop lets pass, and marks the response', async () => {
  running.apply([subscription('Soft', ONE, { stopOnQuotaReach: false })])
  running.token('soft', { subscription: 'Soft' }, 'plain')
  const within = await running.request('/plain/x', 'soft')
  assert.deepEqual([within.code, within.fields.get('ratelimit')], [0, undefined])
  const before = running.gateway.metrics().counts.throttleMarked
  const beyond = await running.request('/plain/x', 'soft')
  assert.deepEqual([beyond.code, beyond.fields.get('ratelimit')], [0, ['"Soft";r=0;t=60']])
  assert.equal(running.gateway.metrics().counts.throttleMarked - before, 1)
})

test('a changed policy is in force with the next request; counters of what did not change go on', async () => {
  running.apply([subscription('Copper', quota(2)), application('Small', quota(5))])
  running.token('changed', { application: 'Small', subscription: 'Copper' }, 'plain')
  assert.deepEqual(await running.codes(3, '/plain/x', 'changed'), [0, 0, 900804])
  running.apply([subscription('Copper', quota(99)), application('Small', quota(5))])
  assert.deepEqual(await running.codes(4, '/plain/x', 'changed'), [0, 0, 0, 900803])
})

test('a limit is in force with the next request of a caller that had none, and is gone with the next one', async () => {
  running.token('free', { application: 'Small' }, 'plain')
  const [free, limited] = [[application('Small', null)], [application('Small', quota(1))]]
  for (const [policies, codes] of [
    [free, [0, 0, 0]],
    [limited, [0, 900803]],
    [free, [0, 0]],
  ] as const) {
    running.apply(policies)
    assert.deepEqual(await running.codes(codes.length, '/plain/x', 'free'), codes)
  }
})

test('a reload in the middle keeps every count', async () => {
  running.apply([application('Small', quota(4))])
  running.token('reloaded', { application: 'Small' }, 'plain')
  assert.deepEqual(await running.codes(2, '/plain/x', 'reloaded'), [0, 0])
  await running.gateway.deploy({ apis: [securedApi(running.backend.port, 'plain')] })
  assert.deepEqual(await running.codes(3, '/plain/x', 'reloaded'), [0, 0, 900803])
})

test('each level counts passes and refusals in the metrics', async () => {
  running.apply([application('Small', ONE)])
  running.token('counted', { application: 'Small' }, 'plain')
  const { throttlePassedApplication: passed, throttleRefusedApplication: refused } = running.gateway.metrics().counts
  await running.codes(3, '/plain/x', 'counted')
  const { counts } = running.gateway.metrics()
  assert.equal(counts.throttlePassedApplication - passed, 1)
  assert.equal(counts.throttleRefusedApplication - refused, 2)
})

test('limits decide in the documented order, whether this machine or a traffic manager decides them', async () => {
  const own = await ThrottledGateway.start(port => [securedApi(port, 'tiered', { tier: 'ApiTier' })], {
    reportMs: 1000,
  })
  own.apply([advanced('ApiTier', ONE), application('Small', quota(5))])
  own.token('told', { application: 'Small' }, 'tiered')
  const untilMs = Math.max(own.clock.ms, Date.now()) + MINUTE
  const decide = (isThrottled: boolean) =>
    own.gateway.authState.apply({
      kind: 'decisions',
      decisions: [{ key: 'application:told:alice', isThrottled, untilMs }],
    })
  decide(true)
  assert.deepEqual(await own.codes(1, '/tiered/x', 'told'), [900803])
  decide(false)
  assert.deepEqual(await own.codes(2, '/tiered/x', 'told'), [0, 900800])
  decide(true)
  assert.deepEqual(await own.codes(1, '/tiered/x', 'told'), [900800])
})
