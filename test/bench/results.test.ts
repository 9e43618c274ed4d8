import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareResults } from '../../bench/compare.ts'
import { chart } from '../../bench/report/chart.ts'
import { scenarioTable } from '../../bench/report/markdown.ts'
import { functionCosts } from '../../bench/report/profile.ts'
import { outlierIndexes, median, type Results, type ScenarioResult, summarize } from '../../bench/results.ts'

test('the median of an even count is the mean of the two middle values', () => {
  assert.equal(median([4, 1, 3, 2]), 2.5)
  assert.equal(median([9, 1, 5]), 5)
  assert.equal(median([]), Number.NaN)
})

test('only rounds that differ from the median by more than a quarter are outliers', () => {
  assert.deepEqual(outlierIndexes([100, 110, 90, 126, 74]), [3, 4])
  assert.deepEqual(outlierIndexes([100, 124, 76]), [])
})

test('each metric has its median, but errors are added', () => {
  const { median: middle, outliers } = summarize([
    { requestsPerSecond: 100, errors: 0 },
    { requestsPerSecond: 102, errors: 3 },
    { requestsPerSecond: 50, errors: 0 },
  ])
  assert.deepEqual(middle, { requestsPerSecond: 100, errors: 3 })
  assert.deepEqual(outliers, [3])
})

test('fail-over results have the slowest round and the sum of failed requests', () => {
  const rounds = [
    { slowestMs: 20, unansweredCount: 1, askedCount: 10 },
    { slowestMs: 900, unansweredCount: 0, askedCount: 10 },
  ]
  assert.deepEqual(summarize(rounds).median, { askedCount: 20, unansweredCount: 1, slowestMs: 900 })
})

test('titles of columns contain the unit of the scenario', () => {
  assert.match(scenarioTable('ws-echo', bare(18)), /CPU µs\/message .* messages\/s/)
  assert.match(scenarioTable('bare', bare(18)), /CPU µs\/req .* req\/s/)
})

function bare(sluiceMicros: number, errors = 0): ScenarioResult {
  const round = { cpuMicrosPerRequest: 20, requestsPerSecond: 50_000, errors: 0 }
  return {
    title: 'Bare GET & <more>',
    command: 'npm run bench -- --scenario bare',
    startedAt: '2026-01-02T03:04:05.678Z',
    secondsPerRound: 3,
    loadGenerator: 'wrk',
    backend: 'nginx',
    environment: { processor: 'p', processors: 2, kernel: 'k', node: 'v26', commit: 'c', versions: {} },
    probeMs: [30, 31],
    peers: {
      sluice: summarize([{ ...round, cpuMicrosPerRequest: sluiceMicros, errors }]),
      nginx: summarize([round]),
    },
    skipped: { haproxy: 'not installed: apt-get install haproxy' },
  }
}

function results(sluiceMicros: number): Results {
  return { schema: 1, scenarios: { bare: bare(sluiceMicros) } }
}

test('a table has its command, ratios to nginx, and the peers that were not measured', () => {
  const table = scenarioTable('bare', bare(18))
  assert.match(table, /^ {4}npm run bench -- --scenario bare$/m)
  assert.match(table, /^\| sluice \| 18\.0 \(0\.90×\)/m)
  assert.match(table, /haproxy was not measured: not installed: apt-get install haproxy/)
  assert.doesNotMatch(table, /errors/)
})

test('a table has a column for errors only if there were any', () => {
  assert.match(scenarioTable('bare', bare(18, 7)), /errors \|\n.*\n\| sluice .* 7 \|/)
})

test('a chart escapes texts, and leaves out scenarios with a single peer or of another kind', () => {
  const drawn = chart(results(18), ['closed'], 'Cost')
  assert.match(drawn ?? '', /Bare GET &amp; &lt;more&gt;/)
  assert.equal(chart(results(18), ['open'], 'Latency'), undefined)
})

test('a comparison gives each metric as a ratio and says whether it is better', () => {
  const text = compareResults(results(20), results(15))
  assert.match(text, /\| CPU µs\/req \| 20\.0 \| 15\.0 \| 0\.75× \| better \|/)
  assert.match(text, /\| req\/s \| 50,000 \| 50,000 \| 1\.00× \| {2}\|/)
})

test('a comparison of records without a common scenario says so', () => {
  assert.match(compareResults({ schema: 1, scenarios: {} }, results(1)), /no scenario/)
})

test('functions of a profile have shares of the busy time by self time', () => {
  const frame = (functionName: string, url = '') => ({ functionName, url, lineNumber: 9 })
  const costs = functionCosts({
    nodes: [
      { id: 1, callFrame: frame('(idle)') },
      { id: 2, callFrame: frame('parse', 'file:///a/b/reader.ts') },
      { id: 3, callFrame: frame('', 'file:///a/b/reader.ts') },
    ],
    samples: [1, 2, 3, 2],
    timeDeltas: [1000, 30, 10, 10],
  })
  assert.deepEqual(costs, [
    { name: 'parse b/reader.ts:10', share: 0.8 },
    { name: '(anonymous) b/reader.ts:10', share: 0.2 },
  ])
})
