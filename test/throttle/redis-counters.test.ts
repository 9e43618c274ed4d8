/** Counters that gateways share: exact on one Redis, and what an outage of Redis does. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, afterEach, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { allocateMetrics, MetricsColumn, snapshotMetrics } from '../../src/observe/metrics.ts'
import { monotonicMs } from '../../src/runtime/monotonic-clock.ts'
import type { Quota } from '../../src/throttle/policy.ts'
import { RedisCounters, type RedisPlan } from '../../src/throttle/redis-counters.ts'
import type { SharedCounter, SharedVerdict } from '../../src/throttle/shared-counters.ts'
import { CA, OTHER_CA, SERVER, VIRTUAL } from '../harness/certificates.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import { RedisServer, WITHOUT_REDIS } from '../harness/redis-server.ts'

const skip = WITHOUT_REDIS || false
const HOUR: Quota = { type: 'requests', limit: 5, unit: 'hour', units: 1, window: 'tumbling' }
const PER_SECOND: Quota = { type: 'requests', limit: 100, unit: 'sec', units: 1, window: 'tumbling' }

interface Client {
  readonly counters: RedisCounters
  readonly events: string[]
  readonly metrics: SharedArrayBuffer
}

let redis: RedisServer
const open: RedisCounters[] = []

function client(plan: RedisPlan, wallMs: () => number = Date.now): Client {
  const metrics = allocateMetrics(1)
  const events: string[] = []
  const counters = new RedisCounters(plan, {
    report: (level, event, fields) => events.push(`${level} ${event}: ${fields.CAUSE_OF_ERROR ?? ''}`),
    metrics: new MetricsColumn(metrics, 0),
    nowMs: monotonicMs,
    wallMs,
    sharesChanged: () => {},
  })
  void counters.start()
  open.push(counters)
  return { counters, events, metrics }
}

async function isTrue(what: string, holds: () => boolean): Promise<void> {
  for (let tries = 0; !holds(); tries++) {
    if (tries === 3000) assert.fail(`never: ${what}`)
    await sleep(10)
  }
}

async function connected(plan: RedisPlan, wallMs?: () => number): Promise<Client> {
  const made = client(plan, wallMs)
  await isTrue('Redis answers', () => made.counters.isUp)
  return made
}

function counts({ metrics }: Client) {
  return snapshotMetrics(metrics).counts
}

let keys = 0
function counter(quota: Quota): SharedCounter {
  return { key: `counter-${++keys}`, quota }
}

before(async () => {
  if (skip === false) redis = await RedisServer.start()
})
afterEach(() => {
  for (const counters of open.splice(0)) counters.close()
})
after(() => (skip === false ? redis.remove() : undefined))

test('a request is charged to all counters of its levels, or to none', { skip }, async () => {
  const { counters } = await connected(redis.plan())
  const wide = counter({ ...HOUR, limit: 10 })
  const narrow = counter({ ...HOUR, limit: 2 })
  const found: (SharedVerdict | null)[] = []
  for (let times = 0; times < 4; times++) found.push(await counters.admit([wide, narrow]))
  assert.deepEqual(
    found.map(verdict => [verdict?.refusedBy, ...(verdict?.remaining ?? [])]),
    [
      [-1, 9, 1],
      [-1, 8, 0],
      [1, 8, 0],
      [1, 8, 0],
    ],
  )
})

test('bandwidth is checked by admit and charged by charge, on the other gateway too', { skip }, async () => {
  const [one, other] = [await connected(redis.plan()), await connected(redis.plan({ gateway: 'gateway-2' }))]
  const bytes = counter({ ...HOUR, type: 'bandwidth', limit: 1000 })
  assert.equal((await other.counters.admit([bytes]))?.refusedBy, -1)
  assert.equal(one.counters.charge(bytes, 600), true)
  assert.equal(one.counters.charge(bytes, 600), true)
  await isTrue('the charge arrives', () => counts(one).throttleRedisReplies > 0)
  assert.equal((await other.counters.admit([bytes]))?.refusedBy, 0)
  assert.equal(one.counters.charge(bytes, 1), false, 'this gateway knows that the window is used up')
})

test('a refund lets exactly one more request in, and leaves bandwidth alone', { skip }, async () => {
  const { counters } = await connected(redis.plan())
  const all = [counter({ ...HOUR, limit: 1 }), counter({ ...HOUR, type: 'bandwidth', limit: 9 })]
  const verdict = (await counters.admit(all))!
  assert.equal((await counters.admit(all))?.refusedBy, 0)
  counters.refund(all, verdict)
  assert.deepEqual(
    [await counters.admit(all), await counters.admit(all)].map(it => [it?.refusedBy, it?.remaining]),
    [
      [-1, [0, 9]],
      [0, [0, 9]],
    ],
  )
})

test('two gateways at full rate: a window with demand to its end admits exactly its limit', { skip }, async () => {
  const gateways = [await connected(redis.plan()), await connected(redis.plan({ gateway: 'gateway-2' }))]
  const WIDE = 1_000_000
  const shared = [counter(PER_SECOND), counter({ ...PER_SECOND, unit: 'month', units: 12, limit: WIDE })]
  const admitted = new Map<number, number>()
  let requests = 0
  // Demand ends when the fourth window begins, so that two whole windows lie between the first and the last.
  const first = (await gateways[0]!.counters.admit(shared))!.windows[0]!
  const demand = async ({ counters }: Client) => {
    for (let last = first; last < first + 3; ) {
      const verdict = (await counters.admit(shared))!
      requests++
      last = verdict.windows[0]!
      if (verdict.refusedBy === -1) admitted.set(last, (admitted.get(last) ?? 0) + 1)
    }
  }
  await Promise.all(gateways.flatMap(gateway => Array.from({ length: 32 }, () => demand(gateway))))
  assert.deepEqual([admitted.get(first + 1), admitted.get(first + 2)], [PER_SECOND.limit, PER_SECOND.limit])
  assert.ok(requests > 10 * PER_SECOND.limit, `only ${requests} requests asked`)
  const last = (await gateways[1]!.counters.admit(shared))!
  // The first and the last request are not in the map.
  const charged = [...admitted.values()].reduce((sum, count) => sum + count, last.refusedBy === -1 ? 2 : 1)
  assert.equal(WIDE - last.remaining[1]!, charged, 'what one level refused, the other has not charged')
})

test('gateways whose clocks are hours apart count in one window, and tell its end by their clock', {
  skip,
}, async () => {
  const hours = 5 * 3_600_000
  const [right, wrong] = [await connected(redis.plan()), await connected(redis.plan(), () => Date.now() - hours)]
  const day = [counter({ ...HOUR, unit: 'day', limit: 2 })]
  const [one, two, three] = [
    (await right.counters.admit(day))!,
    (await wrong.counters.admit(day))!,
    (await right.counters.admit(day))!,
  ]
  assert.deepEqual([one.refusedBy, two.refusedBy, three.refusedBy], [-1, -1, 0])
  assert.deepEqual(one.windows, two.windows)
  assert.ok(Math.abs(one.endsMs[0]! - two.endsMs[0]! - hours) < 60_000, `${one.endsMs[0]} and ${two.endsMs[0]}`)
})

test('scripts that Redis has forgotten are loaded again, and every request counts once', { skip }, async () => {
  const { counters } = await connected(redis.plan())
  const many = [counter({ ...HOUR, limit: 500 })]
  await redis.command('SCRIPT', 'FLUSH')
  const verdicts = await Promise.all(Array.from({ length: 700 }, () => counters.admit(many)))
  assert.equal(verdicts.filter(verdict => verdict?.refusedBy === -1).length, 500)
  assert.equal(verdicts.filter(verdict => verdict?.refusedBy === 0).length, 200)
})

test('a killed Redis: waiting and later requests are undecided at once; it comes back', { skip }, async () => {
  const own = await RedisServer.start()
  const gateway = await connected(own.plan({ timeoutMs: 60_000 }))
  const any = [counter(HOUR)]
  own.pause()
  const waiting = [gateway.counters.admit(any), gateway.counters.admit(any)]
  await sleep(20)
  await own.kill()
  assert.deepEqual(await Promise.all(waiting), [null, null])
  assert.equal(gateway.counters.isUp, false)
  assert.equal(await gateway.counters.admit(any), null)
  assert.equal(counts(gateway).throttleRedisDown, 1)
  assert.equal(counts(gateway).throttleRedisUndecidedDown, 3)
  await isTrue('the gateway tries again', () => gateway.events.length > 0)
  await own.restart()
  await isTrue('Redis answers again', () => gateway.counters.isUp)
  assert.equal((await gateway.counters.admit(any))?.refusedBy, -1)
  assert.equal(gateway.events.length, 2, gateway.events.join())
  assert.match(gateway.events[0]!, /^error redis does not answer: ./)
  assert.match(gateway.events[1]!, /^info redis answers again/)
  assert.equal(counts(gateway).throttleRedisDown, 0)
  gateway.counters.close()
  await own.remove()
})

test('a Redis that is paused: the time limit holds, then requests wait no more; it comes back', { skip }, async () => {
  const own = await RedisServer.start()
  const gateway = await connected(own.plan({ timeoutMs: 50 }))
  const any = [counter(HOUR)]
  own.pause()
  assert.deepEqual(await Promise.all([gateway.counters.admit(any), gateway.counters.admit(any)]), [null, null])
  assert.equal(gateway.counters.isUp, false, 'one time-out without any reply ends the connection')
  assert.equal(await gateway.counters.admit(any), null)
  assert.deepEqual(gateway.events, ['error redis does not answer: no reply within 50 ms'])
  const { throttleRedisUndecidedTimeout, throttleRedisUndecidedDown } = counts(gateway)
  assert.equal(throttleRedisUndecidedTimeout + throttleRedisUndecidedDown, 3)
  own.resume()
  await isTrue('Redis answers again', () => gateway.counters.isUp)
  assert.equal(gateway.events.length, 2, gateway.events.join())
  assert.equal((await gateway.counters.admit(any))?.refusedBy, -1)
  gateway.counters.close()
  await own.remove()
})

test('an idle gateway notices an outage by itself', { skip }, async () => {
  const own = await RedisServer.start()
  const gateway = await connected(own.plan({ timeoutMs: 50 }))
  own.pause()
  await isTrue('the outage is noticed', () => !gateway.counters.isUp)
  gateway.counters.close()
  await own.remove()
})

test('commands beyond pending_max are undecided at once', { skip }, async () => {
  const own = await RedisServer.start()
  const gateway = await connected(own.plan({ timeoutMs: 60_000, pendingMax: 10 }))
  const any = [counter({ ...HOUR, limit: 1000 })]
  own.pause()
  const asked = Array.from({ length: 15 }, () => gateway.counters.admit(any))
  assert.deepEqual(await Promise.all(asked.slice(10)), [null, null, null, null, null])
  assert.equal(counts(gateway).throttleRedisUndecidedPending, 5)
  own.resume()
  assert.equal((await Promise.all(asked.slice(0, 10))).filter(verdict => verdict?.refusedBy === -1).length, 10)
  gateway.counters.close()
  await own.remove()
})

test('a Redis that refuses to write is an outage, and its error is logged', { skip }, async () => {
  const own = await RedisServer.start()
  const gateway = await connected(own.plan())
  await own.command('CONFIG', 'SET', 'min-replicas-to-write', '1')
  assert.equal(await gateway.counters.admit([counter(HOUR)]), null)
  assert.equal(gateway.counters.isUp, false)
  assert.match(gateway.events.join(), /^error redis does not answer: NOREPLICAS/)
  await own.command('CONFIG', 'SET', 'min-replicas-to-write', '0')
  await isTrue('Redis answers again', () => gateway.counters.isUp)
  gateway.counters.close()
  await own.remove()
})

test('a wrong password is reported once, without the password', { skip }, async () => {
  const own = await RedisServer.start(['--requirepass', 'right-secret'])
  const gateway = client(own.plan({ password: 'wrong-secret' }))
  await isTrue('the refusal is logged', () => gateway.events.length > 0)
  await sleep(500)
  assert.equal(gateway.events.length, 1, gateway.events.join())
  assert.match(gateway.events[0]!, /WRONGPASS/)
  assert.doesNotMatch(gateway.events[0]!, /secret/)
  const right = await connected(own.plan({ password: 'right-secret', database: 3 }))
  assert.equal((await right.counters.admit([counter(HOUR)]))?.refusedBy, -1)
  gateway.counters.close()
  right.counters.close()
  await own.remove()
})

const TRUSTED = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers: '', ca: [CA.cert], identity: null } as const

test('rediss verifies the certificate against the trusted ones', { skip }, async () => {
  const own = await RedisServer.start([], SERVER)
  const trusted = await connected(own.plan({ tls: { ...TRUSTED, hostname: 'strict' } }))
  assert.equal((await trusted.counters.admit([counter(HOUR)]))?.refusedBy, -1)
  const untrusted = client(own.plan({ tls: { ...TRUSTED, ca: [OTHER_CA.cert], hostname: 'strict' } }))
  await isTrue('the certificate is refused', () => untrusted.events.length > 0)
  assert.match(untrusted.events[0]!, /certificate/)
  trusted.counters.close()
  untrusted.counters.close()
  await own.remove()
})

const NAMES: readonly (readonly ['strict' | 'none', boolean])[] = [
  ['strict', false],
  ['none', true],
]
for (const [hostname, accepts] of NAMES) {
  test(`a certificate for another name is ${accepts ? 'accepted' : 'refused'} by hostname ${hostname}`, {
    skip,
  }, async () => {
    const own = await RedisServer.start([], VIRTUAL)
    const gateway = client(own.plan({ tls: { ...TRUSTED, hostname } }))
    await isTrue('the handshake ends', () => gateway.events.length > 0 || gateway.counters.isUp)
    assert.equal(gateway.counters.isUp, accepts, gateway.events.join())
    gateway.counters.close()
    await own.remove()
  })
}

test('a local share is the limit divided by the gateways that Redis knew, at least 1', { skip }, async () => {
  const own = await RedisServer.start()
  const gateways: Client[] = []
  for (let number = 1; number <= 3; number++) gateways.push(await connected(own.plan({ gateway: `gateway-${number}` })))
  const limits = () => [10, 2].map(limit => gateways[0]!.counters.localShare({ ...HOUR, limit }).limit)
  await isTrue('the first gateway knows of the others', () => limits()[0] === 3)
  await own.kill()
  await isTrue('the outage is noticed', () => !gateways[0]!.counters.isUp)
  assert.deepEqual(limits(), [3, 1])
  const { counters } = client(own.plan({ gatewaysMin: 4 }))
  assert.equal(counters.localShare({ ...HOUR, limit: 10 }).limit, 2, 'before Redis has answered')
  for (const gateway of gateways) gateway.counters.close()
  await own.remove()
})

test('a gateway that closes is no longer one of those that share', { skip }, async () => {
  const own = await RedisServer.start()
  const [one, other] = [await connected(own.plan()), await connected(own.plan({ gateway: 'gateway-2' }))]
  const limit = () => one.counters.localShare({ ...HOUR, limit: 10 }).limit
  await isTrue('both are known', () => limit() === 5)
  other.counters.close()
  await isTrue('one has left', () => limit() === 10)
  one.counters.close()
  await own.remove()
})

test('an account with the rights that the guide names is enough', { skip }, async () => {
  const guide = readFileSync(new URL('../../conf/guide/throttling.md', import.meta.url), 'utf8')
  const rights = guide.match(/\+[a-z]+(?=[\s`])/g)!
  const own = await RedisServer.start()
  await own.command('ACL', 'SETUSER', 'gateway', 'on', '>right-secret', '~test:*', ...rights)
  const account = { username: 'gateway', password: 'right-secret' }
  const { counters } = await connected(own.plan({ ...account }))
  const sliding = [counter({ ...HOUR, window: 'sliding' }), counter({ ...HOUR, type: 'bandwidth' })]
  const verdict = (await counters.admit(sliding))!
  counters.charge(sliding[1]!, 3)
  counters.refund(sliding, verdict)
  assert.deepEqual((await counters.admit(sliding))?.remaining, [4, 5])
  await isTrue('the charge arrives', () => !counters.charge(sliding[1]!, 2))
  assert.equal(counters.isUp, true)
  counters.close()
  await own.remove()
})

test('keys begin with the prefix; a long key is hashed', { skip }, async () => {
  const own = await RedisServer.start()
  const { counters } = await connected(own.plan({ keyPrefix: '{sluice}:' }))
  await counters.admit([{ key: 'short', quota: HOUR }])
  await counters.admit([{ key: 'x'.repeat(5000), quota: HOUR }])
  const names = (await own.command('KEYS', '*')) as readonly string[]
  assert.equal(names.length, 3)
  assert.ok(
    names.every(name => name.startsWith('{sluice}:') && name.length < 80),
    names.join(),
  )
  assert.ok(names.includes('{sluice}:requests:1hour:short'))
  counters.close()
  await own.remove()
})

test('random outages: never more than the limit is admitted, and what Redis counts covers it', { skip }, async () => {
  const random = new Random(SEED)
  const own = await RedisServer.start()
  const plans = ['gateway-1', 'gateway-2'].map(gateway => own.plan({ gateway, timeoutMs: 20, pendingMax: 50 }))
  const gateways = [await connected(plans[0]!), await connected(plans[1]!)]
  const limit = 20_000
  const shared = [
    counter({ ...PER_SECOND, unit: 'month', units: 12, limit }),
    counter({ ...PER_SECOND, unit: 'month', units: 12, limit: 1_000_000 }),
  ]
  let [admitted, undecided, isOver] = [0, 0, false]
  const demand = async ({ counters }: Client) => {
    while (!isOver) {
      const verdict = await counters.admit(shared)
      if (verdict === null) {
        undecided++
        await sleep(1)
      } else if (verdict.refusedBy === -1) admitted++
    }
  }
  const demands = gateways.flatMap(gateway => Array.from({ length: 16 }, () => demand(gateway)))
  for (let round = 0; round < (IS_LONG ? 100 : 8); round++) {
    await sleep(random.between(20, 200))
    const disturbance = random.below(3)
    if (disturbance === 0) await own.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    else if (disturbance === 1) await own.command('SCRIPT', 'FLUSH')
    else {
      own.pause()
      await sleep(random.between(1, 100))
      own.resume()
    }
  }
  await isTrue('both answer again', () => gateways.every(({ counters }) => counters.isUp))
  isOver = true
  await Promise.all(demands)
  const key = `test:requests:12month:${shared[0]!.key}`
  const counted = Number(await own.command('HGET', key, 'c'))
  assert.ok(admitted > 0 && undecided > 0, `${admitted} admitted, ${undecided} undecided: nothing was disturbed`)
  assert.ok(admitted <= counted && counted <= limit, `${admitted} admitted, ${counted} counted, ${limit} allowed`)
  assert.equal(Number(await own.command('HGET', `test:requests:12month:${shared[1]!.key}`, 'c')), counted)
  for (const { counters } of gateways) counters.close()
  await own.remove()
})
