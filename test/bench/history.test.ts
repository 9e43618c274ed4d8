/** The history of published runs: ratios, the picture and the page. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { addHistory, historyChart, historyPoints, historyText } from '../../bench/report/history.ts'
import type { Results } from '../../bench/results.ts'

function run(startedAt: string, scenario: string, figures: Readonly<Record<string, object>>): Results {
  const peers = Object.fromEntries(Object.entries(figures).map(([peer, median]) => [peer, { median }]))
  return { schema: 1, scenarios: { [scenario]: { startedAt, environment: { commit: 'c0ffee' }, peers } } } as never
}

const FIRST = run('2026-01-01T00:00', 'bare', {
  sluice: { cpuMicrosPerRequest: 12 },
  nginx: { cpuMicrosPerRequest: 10 },
  haproxy: { cpuMicrosPerRequest: 24 },
})

test('a run leaves the ratio of the gateway to each reference', () => {
  const ratios = historyPoints(FIRST).map(({ candidate, reference, ratio }) => [candidate, reference, ratio])
  assert.deepEqual(ratios, [
    ['sluice', 'nginx', 1.2],
    ['sluice', 'haproxy', 0.5],
  ])
})

test('a run without the gateway, a reference or a figure leaves nothing', () => {
  const none = [
    { nginx: { cpuMicrosPerRequest: 1 } },
    { sluice: {}, nginx: {} },
    { sluice: { cpuMicrosPerRequest: 1 } },
  ]
  for (const figures of none) assert.deepEqual(historyPoints(run('2026', 'bare', figures)), [])
})

test('a metric that one of both lacks is not compared', () => {
  const lacking = run('2026', 'mediation-delay', {
    'sluice-mediated': { idleLoopP99Ms: 0.5, besideP99Ms: 12 },
    nginx: { idleLoopP99Ms: null, besideP99Ms: 24 },
    haproxy: { idleLoopP99Ms: Number.NaN },
  })
  const points = historyPoints(lacking).map(({ reference, metric, ratio }) => [reference, metric, ratio])
  assert.deepEqual(points, [['nginx', 'besideP99Ms', 0.5]])
})

test('a file keeps runs in the order of time, and a run once', t => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-history-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'history.json')
  const second = run('2026-02-02T00:00', 'bare', {
    sluice: { cpuMicrosPerRequest: 8 },
    nginx: { cpuMicrosPerRequest: 10 },
  })
  addHistory(file, historyPoints(second))
  addHistory(file, historyPoints(FIRST))
  const all = addHistory(file, historyPoints(FIRST))
  assert.deepEqual(
    all.map(({ ratio }) => ratio),
    [1.2, 0.5, 0.8],
  )
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), all)
  const svg = historyChart(all)!
  assert.match(svg, /0\.80 × nginx/)
  assert.match(svg, /0\.50 × haproxy/)
  assert.equal(historyChart(historyPoints(FIRST)), undefined)
  assert.match(
    historyText(all),
    /^\| bare \| sluice \/ nginx \| CPU µs\/req \| 1\.20 \(2026-01-01 c0ffee\), 0\.80 \(2026-02-02 c0ffee\) \|$/m,
  )
})

test('the picture names the line of equal cost, its scale, and the days of the first and the last run', () => {
  const figures = { sluice: { cpuMicrosPerRequest: 21 }, nginx: { cpuMicrosPerRequest: 10 } }
  const svg = historyChart([...historyPoints(FIRST), ...historyPoints(run('2026-02-02T00:00', 'bare', figures))])!
  const texts = [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text)
  for (const text of ['bare: sluice', '1', '2', '2026-01-01', '2026-02-02']) assert.ok(texts.includes(text), text)
})
