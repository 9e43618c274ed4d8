/**
 * Times shared counters on a Redis of its own: `npx node bench/micro/shared-counters.ts`. Requests per second and time
 * per request of one reactor, by requests that wait at once (pipelining) and by levels. Redis shares the machine.
 */
import { allocateMetrics, MetricsColumn } from '../../src/observe/metrics.ts'
import { monotonicMs } from '../../src/runtime/monotonic-clock.ts'
import type { Quota } from '../../src/throttle/policy.ts'
import { RedisCounters } from '../../src/throttle/redis-counters.ts'
import { MeasuredTable } from '../measured-table.ts'
import { RedisServer, WITHOUT_REDIS } from '../../test/harness/redis-server.ts'

const QUOTA: Quota = { type: 'requests', limit: 1_000_000_000, unit: 'min', units: 1, window: 'tumbling' }
const MS = 2000

if (WITHOUT_REDIS !== '') throw new Error(WITHOUT_REDIS)
const redis = await RedisServer.start()
const counters = new RedisCounters(redis.plan(), {
  report: (_level, event, fields) => console.error(event, fields),
  metrics: new MetricsColumn(allocateMetrics(1), 0),
  nowMs: monotonicMs,
  wallMs: Date.now,
  sharesChanged: () => {},
})
await counters.start()

/** Requests per second, CPU microseconds per request of this thread, median and 99th percentile of the wait in ms. */
async function measure(levels: number, waiting: number): Promise<readonly [number, number, number, number]> {
  const waits: number[] = []
  const endsMs = monotonicMs() + MS
  const cpu = process.cpuUsage()
  const demand = async (caller: number) => {
    const shared = Array.from({ length: levels }, (_, level) => ({ key: `${levels}:${caller}:${level}`, quota: QUOTA }))
    for (let nowMs = monotonicMs(); nowMs < endsMs; ) {
      await counters.admit(shared)
      const laterMs = monotonicMs()
      waits.push(laterMs - nowMs)
      nowMs = laterMs
    }
  }
  await Promise.all(Array.from({ length: waiting }, (_, caller) => demand(caller)))
  const { user, system } = process.cpuUsage(cpu)
  waits.sort((one, other) => one - other)
  const at = (part: number) => waits[Math.floor(waits.length * part)]!
  return [(waits.length / MS) * 1000, (user + system) / waits.length, at(0.5), at(0.99)]
}

await measure(1, 64)
const columns = { 'requests/s': 0, 'CPU µs': 1, 'wait p50 ms': 2, 'wait p99 ms': 2 }
const table = new MeasuredTable('Counters on Redis', columns)
for (const levels of [1, 5]) {
  for (const waiting of [1, 8, 64, 256]) {
    table.row(`${levels} levels, ${waiting} at once`, ...(await measure(levels, waiting)))
  }
}
counters.close()
await redis.remove()
