/** Sinks of an access log: their lines in the event log. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sinkCallbacks } from '../../src/observe/access-log-sink.ts'
import { allocateMetrics, METRIC, MetricsColumn } from '../../src/observe/metrics.ts'

test('a sink that fails and works in turn has two lines a minute, and its gauge is exact', () => {
  const metrics = new MetricsColumn(allocateMetrics(1), 0)
  const told: string[] = []
  const clock = { ms: 1 }
  const report = (level: string, event: string) => void told.push(`${level}: ${event}`)
  const sink = sinkCallbacks('access log', metrics, report, () => clock.ms)
  for (let turn = 0; turn < 600; turn++) {
    sink.onFailed(new Error('ENOSPC'))
    assert.equal(metrics.read(METRIC.accessLogFailing), 1)
    sink.onRecovered()
    assert.equal(metrics.read(METRIC.accessLogFailing), 0)
    clock.ms += 100
  }
  const outage = ['error: access log failed', 'info: access log works again']
  assert.deepEqual(told, outage)
  sink.onFailed(new Error('ENOSPC'))
  sink.onRecovered()
  assert.deepEqual(told.splice(0), [...outage, ...outage])
  sink.onFailed(new Error('EROFS'))
  sink.onDropped(1)
  assert.deepEqual(told, [])
  clock.ms += 60_000
  for (let n = 0; n < 5; n++) sink.onDropped(1)
  assert.deepEqual(told, outage.slice(0, 1), 'an outage that goes on is told once the minute is over')
})
