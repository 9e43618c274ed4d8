/** Metrics: cells, sums over threads, and the text format of Prometheus. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import {
  allocateMetrics,
  clearGauges,
  faultCell,
  METRIC,
  MetricsColumn,
  renderMetrics,
  SIDES,
  sizeCell,
  snapshotMetrics,
  statusCell,
} from '../../src/observe/metrics.ts'

const K = 1024
const SIZES = [
  [0, 0],
  [K - 1, 0],
  [K, 1],
  [10 * K - 1, 1],
  [10 * K, 2],
  [100 * K - 1, 2],
  [100 * K, 3],
  [K * K - 1, 3],
  [K * K, 4],
  [10 * K * K - 1, 4],
  [10 * K * K, 5],
  [2 ** 40, 5],
] as const

test('every metric has a cell of its own', () => {
  const cells = new Set<number>(Object.values(METRIC))
  let expected = cells.size
  for (let status = 99; status <= 599; status++) cells.add(statusCell(status))
  expected += 501
  for (const side of SIDES) {
    for (const base of [0, 101000, 101001, 101500, 101501, 101503, 101504, 101505, 101506, 101507, 101508, 101509]) {
      for (let state = 0; state <= 8; state++) cells.add(faultCell(side, base, state))
      expected += 9
    }
  }
  for (const [bytes] of SIZES) cells.add(sizeCell('request', bytes)).add(sizeCell('response', bytes))
  assert.equal(cells.size, expected + 12)
  assert.ok(Math.max(...cells) < allocateMetrics(1).byteLength / 8)
})

for (const [bytes, bucket] of SIZES) {
  test(`a message of ${bytes} bytes counts in size bucket ${bucket}`, () => {
    for (const message of ['request', 'response'] as const) {
      const shared = allocateMetrics(1)
      new MetricsColumn(shared, 0).add(sizeCell(message, bytes), 1)
      assert.deepEqual(
        snapshotMetrics(shared).sizes[message],
        [0, 1, 2, 3, 4, 5].map(at => (at === bucket ? 1 : 0)),
      )
    }
  })
}

test('a snapshot sums all columns', () => {
  const shared = allocateMetrics(3)
  const columns = [0, 1, 2].map(reactor => new MetricsColumn(shared, reactor))
  for (const [i, column] of columns.entries()) {
    column.add(METRIC.requests, 10 ** i)
    column.add(METRIC.connectionsOpen, 2)
    column.add(statusCell(200), 1)
    column.add(faultCell('target', 101504, 3), 1)
  }
  columns[1]!.add(METRIC.connectionsOpen, -1)
  columns[2]!.add(statusCell(0), 1)
  columns[2]!.add(statusCell(1000), 1)
  columns[0]!.add(METRIC.bytesFromClients, 2 ** 50)
  columns[0]!.add(METRIC.bytesFromClients, 1)
  const snapshot = snapshotMetrics(shared)
  assert.equal(snapshot.counts.requests, 111)
  assert.equal(snapshot.counts.connectionsOpen, 5)
  assert.equal(snapshot.counts.bytesFromClients, 2 ** 50 + 1)
  assert.deepEqual(
    [...snapshot.statuses],
    [
      [200, 3],
      [0, 2],
    ],
  )
  assert.deepEqual(snapshot.faults, [{ side: 'target', base: 101504, state: 3, count: 3 }])
})

test('failures with the same code but other base and state count separately', () => {
  const shared = allocateMetrics(1)
  const column = new MetricsColumn(shared, 0)
  column.add(faultCell('target', 101504, 3), 1)
  column.add(faultCell('target', 101507, 0), 1)
  column.add(faultCell('source', 102511, 2), 1)
  column.add(faultCell('source', 900800, 0), 1)
  assert.deepEqual(
    snapshotMetrics(shared).faults.map(({ side, base, state }) => [side, base, state]),
    [
      ['source', 0, 0],
      ['source', 102511, 2],
      ['target', 101504, 3],
      ['target', 101507, 0],
    ],
  )
})

test('clearGauges() clears the gauges of a dead reactor and keeps its counters', () => {
  const shared = allocateMetrics(2)
  for (const reactor of [0, 1]) {
    const column = new MetricsColumn(shared, reactor)
    column.add(METRIC.requests, 5)
    column.add(METRIC.connectionsOpen, 5)
    column.add(METRIC.targetsOpen, 5)
  }
  clearGauges(shared, 1)
  const { counts } = snapshotMetrics(shared)
  assert.deepEqual([counts.requests, counts.connectionsOpen, counts.targetsOpen], [10, 5, 5])
})

test('a thread counts in shared memory without a message', async () => {
  const shared = allocateMetrics(2)
  const url = new URL('../../src/observe/metrics.ts', import.meta.url)
  const program = `
    const { workerData } = require('node:worker_threads')
    import(${JSON.stringify(url)}).then(({ MetricsColumn, METRIC }) => {
      const column = new MetricsColumn(workerData, 1)
      for (let i = 0; i < 100000; i++) column.add(METRIC.requests, 1)
    })`
  const worker = new Worker(program, { eval: true, workerData: shared })
  const column = new MetricsColumn(shared, 0)
  for (let i = 0; i < 100_000; i++) column.add(METRIC.requests, 1)
  await new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject))
  assert.equal(snapshotMetrics(shared).counts.requests, 200_000)
})

test('renderMetrics() writes the text format of Prometheus', () => {
  const shared = allocateMetrics(1)
  const column = new MetricsColumn(shared, 0)
  column.add(METRIC.requests, 3)
  column.add(METRIC.timeoutConnect, 1)
  column.add(statusCell(200), 2)
  column.add(statusCell(504), 1)
  column.add(faultCell('target', 101504, 3), 1)
  for (const bytes of [10, 2000, 2000]) {
    column.add(sizeCell('response', bytes), 1)
    column.add(METRIC.responseBytes, bytes)
  }
  const text = renderMetrics(snapshotMetrics(shared))
  for (const line of [
    '# TYPE sluice_requests_total counter',
    'sluice_requests_total 3',
    '# TYPE sluice_client_connections_open gauge',
    'sluice_client_connections_open 0',
    'sluice_timeouts_total{kind="connect"} 1',
    'sluice_timeouts_total{kind="backend"} 0',
    'sluice_responses_total{class="2xx",status="200"} 2',
    'sluice_responses_total{class="5xx",status="504"} 1',
    'sluice_faults_total{side="target",base="101504",state="3"} 1',
    '# TYPE sluice_response_size_bytes histogram',
    'sluice_response_size_bytes_bucket{le="1023"} 1',
    'sluice_response_size_bytes_bucket{le="10239"} 3',
    'sluice_response_size_bytes_bucket{le="+Inf"} 3',
    'sluice_response_size_bytes_sum 4010',
    'sluice_response_size_bytes_count 3',
  ]) {
    assert.ok(text.split('\n').includes(line), line)
  }
  // Every series has one heading before its first sample, and every line is well-formed.
  const announced = new Set<string>()
  for (const line of text.trimEnd().split('\n')) {
    const heading = /^# (HELP|TYPE) (sluice_\w+) \S/.exec(line)
    if (heading !== null) {
      if (heading[1] === 'TYPE') assert.ok(!announced.has(heading[2]!), `${heading[2]} has two headings`)
      if (heading[1] === 'TYPE') announced.add(heading[2]!)
      continue
    }
    const sample = /^(sluice_\w+?)(_bucket|_sum|_count)?(\{\w+="[^"]*"(,\w+="[^"]*")*\})? \d+$/.exec(line)
    assert.ok(sample !== null && announced.has(sample[1]!), line)
  }
})
