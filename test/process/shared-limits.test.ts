/** Two gateways as real programs, with two reactors each, count a limit in one Redis. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { takeResponse } from '../harness/responses.ts'
import { dial, home, leave, start } from '../harness/operator.ts'
import { freePort, type RunningGateway } from '../harness/program.ts'
import { put } from '../harness/reloading.ts'
import { RedisServer, WITHOUT_REDIS } from '../harness/redis-server.ts'

const LIMIT = 1000
const REQUESTS = 4000
const CLIENTS_EACH = 16

const POLICY = `
data:
  policyName: Shared
  scope: redis
  failMode: closed
  defaultLimit:
    type: REQUESTCOUNTLIMIT
    requestCount: { timeUnit: months, unitTime: 12, requestCount: ${LIMIT} }
`

after(leave)

async function startGateway(redis: RedisServer): Promise<RunningGateway> {
  const at = home()
  put(at, 'policies/subscription/Shared.yaml', POLICY)
  const port = await freePort()
  return start(at, [
    ...['transport.passthru_http.reactors=2', `transport.passthru_http.listener.parameters.port=${port}`],
    ...['apim.throttling.unauthenticated_tier=Shared', 'apim.throttling.redis.timeout=5s'],
    `apim.throttling.redis.url=redis://127.0.0.1:${redis.port}`,
  ])
}

test('a limit admits exactly its number of requests over four reactors of two gateways', {
  skip: WITHOUT_REDIS || false,
}, async () => {
  const redis = await RedisServer.start()
  try {
    const gateways = await Promise.all([startGateway(redis), startGateway(redis)])
    const statuses = new Map<number, number>()
    let left = REQUESTS
    const demand = async (gateway: RunningGateway) => {
      const client = await dial(gateway)
      while (left-- > 0) {
        client.send('GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n')
        const { status } = await takeResponse(client)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }
    const demands = gateways.flatMap(gateway => Array.from({ length: CLIENTS_EACH }, () => demand(gateway)))
    await redis.command('SCRIPT', 'FLUSH')
    await Promise.all(demands)
    assert.deepEqual(Object.fromEntries(statuses), { 200: LIMIT, 429: REQUESTS - LIMIT })
  } finally {
    await redis.remove()
  }
})
