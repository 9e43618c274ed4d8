/** The history of published runs: ratios, pictures, and the command that publishes everything. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { commandLines } from '../../bench/all.ts'
import { readOptions } from '../../bench/options.ts'
import { addHistory, historyChart, historyPoints } from '../../bench/report/history.ts'
import type { Results } from '../../bench/results.ts'
import { SCENARIOS } from '../../bench/scenarios.ts'

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
})

test('one command runs and publishes every scenario with options that exist', () => {
  const lines = commandLines(false)
  const scenarios = new Set(lines.flatMap(words => readOptions(words)!.scenarios))
  assert.deepEqual([...scenarios].sort(), Object.keys(SCENARIOS).sort())
  assert.ok(lines.every(words => readOptions(words)!.write))
  assert.ok(commandLines(true).every(words => !readOptions(words)!.write))
})
