/** Metrics of APIs: rows, classes of methods and statuses, buckets of durations, sums over reactors. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  allocateApiMetrics,
  ApiMetrics,
  type ApiSample,
  clearApiRow,
  DURATION_BOUNDS_SECONDS,
  FIRST_API_ROW,
  NO_API_ROW,
  readApiRow,
} from '../../src/observe/api-metrics.ts'

const ROW = FIRST_API_ROW + 5
const EXCHANGE = {
  api: { metricsRow: ROW },
  method: 'GET',
  status: 200,
  requestBodyBytes: 0,
  responseBodyBytes: 0,
  errorBase: 0,
  startedMs: 100,
  sentMs: 0,
  requestSentMs: 0,
  firstByteMs: 0,
  doneMs: 100.2,
  queueMs: 0,
  mediationMs: 0,
}
type Counted = Parameters<ApiMetrics['count']>[0]

function counted(...exchanges: readonly Partial<Counted>[]): SharedArrayBuffer {
  const shared = allocateApiMetrics(2)
  const columns = [0, 1].map(reactor => new ApiMetrics(shared, reactor))
  exchanges.forEach((exchange, index) => {
    columns[index % 2]!.count({ ...EXCHANGE, ...exchange })
  })
  return shared
}

function onlySample(...exchanges: readonly Partial<Counted>[]): ApiSample {
  const [sample, ...others] = readApiRow(counted(...exchanges), ROW)
  assert.equal(others.length, 0)
  return sample!
}

for (const [method, status, expected] of [
  ['GET', 200, 'read 2xx'],
  ['HEAD', 304, 'read 3xx'],
  ['POST', 404, 'write 4xx'],
  ['PUT', 503, 'write 5xx'],
  ['PATCH', 101, 'write 1xx'],
  ['DELETE', 204, 'write 2xx'],
  ['OPTIONS', 204, 'other 2xx'],
  ['BREW', 0, 'other none'],
  ['get', 600, 'other none'],
] as const) {
  test(`${method} with status ${status} counts as ${expected}`, () => {
    const { method: kind, status: hundreds, requests } = onlySample({ method, status })
    assert.equal(`${kind} ${hundreds}`, expected)
    assert.equal(requests, 1)
  })
}

test('a duration on a bound counts in the bucket of that bound, as le is inclusive', () => {
  for (const [index, bound] of DURATION_BOUNDS_SECONDS.entries()) {
    const on = onlySample({ startedMs: 0, doneMs: bound * 1000 }).durations.total!
    assert.equal(on.buckets.indexOf(1), index, `${bound} s`)
    const beyond = onlySample({ startedMs: 0, doneMs: bound * 1001 }).durations.total!
    assert.equal(beyond.buckets.indexOf(1), index + 1, `beyond ${bound} s`)
  }
})

test('each duration is taken from its own times, and only where they exist', () => {
  const times = { startedMs: 10, sentMs: 12, requestSentMs: 20, firstByteMs: 50, doneMs: 60 }
  const { durations } = onlySample({ ...times, queueMs: 3, mediationMs: 4 })
  const seconds = Object.fromEntries(Object.entries(durations).map(([name, { sumSeconds }]) => [name, sumSeconds]))
  assert.deepEqual(seconds, { total: 0.05, backend: 0.03, queue: 0.003, mediation: 0.004 })
  assert.deepEqual(Object.keys(onlySample({}).durations), ['total'])
  const early = onlySample({ ...times, requestSentMs: 55 })
  assert.equal(early.durations.backend!.sumSeconds, 0.038, 'an early response counts from the head of the request')
})

test('rows are sums over the reactors, with bytes and faults', () => {
  const bytes = { requestBodyBytes: 3, responseBodyBytes: 1000 }
  const sample = onlySample(bytes, { ...bytes, errorBase: 101503 }, bytes)
  const { requests, faults, requestBytes, responseBytes } = sample
  assert.deepEqual([requests, faults, requestBytes, responseBytes], [3, 1, 9, 3000])
  assert.equal(sample.durations.total!.count, 3)
})

test('a request to no API has a row of its own, and a cleared row is empty', () => {
  const shared = counted({ api: null }, {}, { status: 404 })
  assert.equal(readApiRow(shared, NO_API_ROW).length, 1)
  assert.equal(readApiRow(shared, ROW).length, 2)
  clearApiRow(shared, ROW)
  assert.equal(readApiRow(shared, ROW).length, 0)
  assert.equal(readApiRow(shared, NO_API_ROW).length, 1)
})
