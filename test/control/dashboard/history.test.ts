/** What the primary keeps for the charts of a page that is opened later: bounded, and only while the page is served. */
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { METRIC, MetricsColumn } from '../../../src/observe/metrics.ts'
import { DashboardService, type DashboardSources } from '../../../src/primary/dashboard-service.ts'
import { planGateway } from '../../harness/gateway.ts'

const SAMPLE_MS = 5000
const KEPT = 60

test('a sample comes every five seconds, the last sixty are kept, and a closed page keeps none', async t => {
  mock.timers.enable({ apis: ['setInterval', 'Date'] })
  t.after(() => mock.timers.reset())
  const { plan } = planGateway([])
  const column = new MetricsColumn(plan.metrics, 0)
  let isOpen = true
  const service = new DashboardService({
    metrics: plan.metrics,
    isOpen: () => isOpen,
    readiness: () => ({ status: 'ready', reason: '', parts: [] }),
    keys: () => [],
    apis: { list: () => assert.fail('the history lists no APIs') },
    plans: () => [],
    // The history calls no reactor.
    gateway: {
      plan,
      reactors: { call: () => assert.fail('no reactor is asked') },
    } as unknown as DashboardSources['gateway'],
  })
  const history = async () => {
    const { history: samples } = (await service.serve({ kind: 'dashboard', parts: ['history'] })) as {
      readonly history: Readonly<
        Record<string, { readonly nowMs: number; readonly counts: { readonly requests: number } }>
      >
    }
    return Object.values(samples).map(({ nowMs, counts }) => [nowMs, counts.requests])
  }
  assert.deepEqual(await history(), [])
  for (let sample = 1; sample <= KEPT + 10; sample++) {
    column.add(METRIC.requests, 2)
    mock.timers.tick(SAMPLE_MS)
  }
  const expected = Array.from({ length: KEPT }, (_, at) => [(at + 11) * SAMPLE_MS, (at + 11) * 2])
  assert.deepEqual(await history(), expected)
  isOpen = false
  mock.timers.tick(SAMPLE_MS)
  assert.deepEqual(await history(), [])
})
