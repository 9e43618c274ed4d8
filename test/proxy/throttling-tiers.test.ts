/** Issue 16: every default tier from real requests: N requests of one minute pass, and not one more. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectPeer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { openApi, operation, securedApi, ThrottledGateway } from '../harness/throttled-gateway.ts'

const MINUTE = 60_000
const BATCH = 500
/** Requests beyond every limit of the level, which pass where the tier has none. */
const UNLIMITED = Number.POSITIVE_INFINITY

interface TierCase {
  readonly level: 'application' | 'subscription' | 'api' | 'resource' | 'anonymous'
  readonly tier: string
  /** Requests per minute (facts, section 5). */
  readonly limit: number
  readonly code: number
  readonly target: string
}

function cases(level: TierCase['level'], code: number, of: Readonly<Record<string, number>>): readonly TierCase[] {
  return Object.entries(of).map(([tier, limit]) => ({ level, tier, limit, code, target: `/${targetOf(level, tier)}` }))
}

function targetOf(level: TierCase['level'], tier: string): string {
  if (level === 'api' || level === 'resource') return `${level}-${tier}/x`
  return level === 'anonymous' ? 'open/x' : 'plain/x'
}

const OF_APIS = { '50KPerMin': 50_000, '20KPerMin': 20_000, '10KPerMin': 10_000, Unlimited: UNLIMITED }
const CASES: readonly TierCase[] = [
  ...cases('subscription', 900804, {
    Gold: 5000,
    Silver: 2000,
    Bronze: 1000,
    Unauthenticated: 500,
    Unlimited: UNLIMITED,
  }),
  ...cases('application', 900803, { '50PerMin': 50, '20PerMin': 20, '10PerMin': 10, Unlimited: UNLIMITED }),
  ...cases('api', 900800, OF_APIS),
  ...cases('resource', 900802, { '10KPerMin': 10_000 }),
  ...cases('anonymous', 900804, { Unauthenticated: 500 }),
]

const running = await ThrottledGateway.start(port => [
  securedApi(port, 'plain'),
  ...Object.keys(OF_APIS).map(tier => openApi(port, `api-${tier}`, { tier })),
  openApi(port, 'resource-10KPerMin', { resources: [operation('/x', '10KPerMin', 'None')] }),
])
const anonymous = await ThrottledGateway.start(port => [openApi(port, 'open')], {
  unauthenticatedTier: 'Unauthenticated',
})

/** Statuses of so many requests on one connection, by how often they come. */
async function pipelined(on: ThrottledGateway, count: number, target: string, caller: string) {
  const client = await connectPeer(on.gateway.port)
  const credentials = caller === '' ? '' : `Authorization: Bearer ${caller}\r\n`
  const request = `GET ${target} HTTP/1.1\r\nHost: a\r\n${credentials}\r\n`
  const counts = new Map<number, number>()
  for (let sent = 0; sent < count; sent += BATCH) {
    const batch = Math.min(BATCH, count - sent)
    client.send(request.repeat(batch))
    for (let at = 0; at < batch; at++) {
      const { status } = await takeResponse(client)
      counts.set(status, (counts.get(status) ?? 0) + 1)
    }
    on.backend.requests.length = 0
  }
  client.destroy()
  return Object.fromEntries(counts)
}

for (const { level, tier, limit, code, target } of CASES) {
  const shown =
    limit === UNLIMITED ? 'no request is refused' : `${limit} requests of a minute pass, the next gets ${code}`
  test(`default tier ${tier} of the level ${level}: ${shown}`, async () => {
    const on = level === 'anonymous' ? anonymous : running
    on.clock.ms += 60 * MINUTE
    const isOfCaller = level === 'application' || level === 'subscription'
    const caller = isOfCaller ? on.token(`${level}-${tier}`, { [level]: tier }, 'plain') : ''
    if (limit === UNLIMITED) {
      assert.deepEqual(await pipelined(on, 1500, target, caller), { 200: 1500 })
      return
    }
    assert.deepEqual(await pipelined(on, limit + 3, target, caller), { 200: limit, 429: 3 })
    const refused = await on.request(target, isOfCaller ? `${level}-${tier}` : '')
    assert.deepEqual([refused.status, refused.code], [429, code])
    on.clock.ms += MINUTE
    assert.equal((await on.request(target, isOfCaller ? `${level}-${tier}` : '')).status, 200)
  })
}
