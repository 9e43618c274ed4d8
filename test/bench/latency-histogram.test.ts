import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LatencyHistogram } from '../../bench/load/latency-histogram.ts'

const RELATIVE_ERROR = 1 / 100

test('an empty histogram has no percentile', () => {
  assert.equal(new LatencyHistogram().percentileMs(0.5), Number.NaN)
})

for (const milliseconds of [0.001, 0.05, 0.255, 0.256, 0.257, 1, 7.3, 100, 2500, 60_000, 1_200_000]) {
  test(`a single value of ${milliseconds} ms is every percentile within 1 %`, () => {
    const histogram = new LatencyHistogram()
    histogram.record(milliseconds)
    for (const share of [0, 0.5, 0.99, 1]) {
      const found = histogram.percentileMs(share)
      assert.ok(Math.abs(found - milliseconds) <= milliseconds * RELATIVE_ERROR, `${share}: ${found}`)
    }
    assert.equal(histogram.total, 1)
  })
}

test('percentiles of the values 1 to 10,000 ms are correct within 1 %', () => {
  const histogram = new LatencyHistogram()
  for (let value = 10_000; value >= 1; value--) histogram.record(value)
  for (const [share, expected] of [
    [0.5, 5000],
    [0.99, 9900],
    [0.999, 9990],
    [1, 10_000],
  ] as const) {
    const found = histogram.percentileMs(share)
    assert.ok(Math.abs(found - expected) <= expected * RELATIVE_ERROR, `${share}: ${found}`)
  }
  assert.equal(histogram.maxMs, 10_000)
})

test('a value beyond the range counts as the greatest one', () => {
  const histogram = new LatencyHistogram()
  histogram.record(1e12)
  assert.equal(histogram.total, 1)
  assert.ok(histogram.percentileMs(1) > 2_000_000)
})
