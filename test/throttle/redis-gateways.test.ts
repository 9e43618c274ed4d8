/** Gateways that count in one Redis: requests over real sockets, and the fail mode of each policy in an outage. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApplicationPolicy, Quota, SubscriptionPolicy } from '../../src/throttle/policy.ts'
import { CounterTable } from '../../src/throttle/counter-table.ts'
import type { RedisPlan } from '../../src/throttle/redis-counters.ts'
import { RedisServer, WITHOUT_REDIS } from '../harness/redis-server.ts'
import { application, securedApi, subscription, ThrottledGateway } from '../harness/throttled-gateway.ts'
import { listing } from './counting.ts'

const skip = WITHOUT_REDIS || false
const PER_YEAR = { type: 'requests', unit: 'month', units: 12, window: 'tumbling' } as const
const THROTTLED = 900_804
const FAIL_MODES = ['open', 'closed', 'local'] as const

let redis: RedisServer
let gateways: readonly ThrottledGateway[]

function perYear(limit: number): Quota {
  return { ...PER_YEAR, limit }
}

function shared(name: string, limit: number, failMode: SubscriptionPolicy['failMode']): SubscriptionPolicy {
  return subscription(name, perYear(limit), { scope: 'redis', failMode })
}

const POLICIES: readonly (SubscriptionPolicy | ApplicationPolicy)[] = [
  shared('Exact', 50, 'closed'),
  ...FAIL_MODES.map(failMode => shared(failMode, 4, failMode)),
  application('OnePerYear', perYear(1)),
]

if (skip === false) {
  redis = await RedisServer.start()
  gateways = [await startGateway('gateway-1'), await startGateway('gateway-2')]
  after(() => redis.remove())
}

async function startGateway(gateway: string): Promise<ThrottledGateway> {
  const plan = { redis: redis.plan({ gateway, timeoutMs: 200 }) }
  const started = await ThrottledGateway.start(port => [securedApi(port, 'echo')], {}, plan)
  started.apply(POLICIES)
  for (const tier of ['Exact', ...FAIL_MODES]) started.token(tier, { subscription: tier }, 'echo')
  started.token('strict', { subscription: 'Exact', application: 'OnePerYear' }, 'echo')
  return started
}

/** How often each fault code was the answer to so many concurrent requests on both gateways. */
async function codes(count: number, caller: string): Promise<Readonly<Record<number, number>>> {
  const asked = Array.from({ length: count }, (_, index) => gateways[index % 2]!.request('/echo', caller))
  const found: Record<number, number> = {}
  for (const { code } of await Promise.all(asked)) found[code] = (found[code] ?? 0) + 1
  return found
}

test('two gateways admit the limit of a policy together, to the request', { skip }, async () => {
  assert.deepEqual(await codes(200, 'Exact'), { 0: 50, [THROTTLED]: 150 })
  const refused = gateways.map(({ gateway: { plan } }) =>
    listing(new CounterTable(plan.counters, Date.now, 99))
      .refusals()
      .get('subscription:Exact'),
  )
  assert.equal(refused[0]! + refused[1]!, 150, 'refusals by the policy in the metrics')
})

test('a request that a counter of the machine refuses goes back to the shared counter', { skip }, async () => {
  const gateway = gateways[0]!
  const found = await gateway.codes(3, '/echo', 'strict')
  assert.deepEqual(found, [0, 900_803, 900_803])
  // The subscription of this application has a counter of its own: 1 of 50 is used, and 49 are left.
  const keys = (await redis.command('KEYS', '*strict*')) as readonly string[]
  assert.deepEqual(await Promise.all(keys.map(key => redis.command('HGET', key, 'c'))), ['1'])
})

test('an outage: open passes, closed refuses, local grants the share of each gateway', { skip }, async () => {
  // A warm share needs both gateways to know of each other.
  for (let tries = 0; tries < 300 && !(await knowsBoth()); tries++) await sleep(20)
  await redis.kill()
  const [open, closed, local] = [await codes(20, 'open'), await codes(20, 'closed'), await codes(20, 'local')]
  assert.deepEqual(open, { 0: 20 })
  assert.deepEqual(closed, { [THROTTLED]: 20 })
  assert.deepEqual(local, { 0: 4, [THROTTLED]: 16 })
  await redis.restart()
  for (let tries = 0; tries < 300; tries++) {
    const { code } = await gateways[tries % 2]!.request('/echo', 'closed')
    if (code === 0) return
    await sleep(20)
  }
  assert.fail('requests are never counted in Redis again')
})

/** Both gateways have said that they are there, and each has had a probe since. */
async function knowsBoth(): Promise<boolean> {
  if ((await redis.command('ZCARD', 'test:gateways')) !== 2) return false
  await sleep(1100)
  return true
}

test('a reload replaces the connection: another prefix counts anew, no Redis leaves it to fail modes', {
  skip,
}, async () => {
  const [gateway] = gateways as [ThrottledGateway]
  const use = async (plan: RedisPlan | null, isReached: (code: number) => boolean) => {
    await gateway.gateway.deploy({ redis: plan })
    for (let tries = 0; !isReached((await gateway.request('/echo', 'closed')).code); tries++) {
      assert.ok(tries < 300, 'the reload has no effect')
      await sleep(20)
    }
  }
  assert.equal((await gateway.codes(5, '/echo', 'closed')).at(-1), THROTTLED)
  await use(redis.plan({ keyPrefix: 'other:' }), code => code === 0)
  assert.deepEqual(await gateway.codes(4, '/echo', 'closed'), [0, 0, 0, THROTTLED])
  await use(null, code => code === THROTTLED)
  // Alone, the share is the whole limit, of which the outage before has used two.
  assert.deepEqual(await gateway.codes(3, '/echo', 'local'), [0, 0, THROTTLED])
})
