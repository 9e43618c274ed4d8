import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type PairedRatio, pairedRatio, verdictOf } from '../../bench/paired/paired-ratio.ts'
import { comparisonsOf, ratiosByStart, withOtherEndpoint } from '../../bench/paired/paired-rounds.ts'
import { API_COUNTS, PAIRED_SCENARIOS, requestFor, spreadPaths } from '../../bench/paired/paired-scenarios.ts'
import { exportedApiYaml } from '../../bench/peers/exported-project.ts'
import { writeHome } from '../../bench/peers/sluice.ts'
import { scenarioTable } from '../../bench/report/markdown.ts'
import { type ScenarioResult, summarize } from '../../bench/results.ts'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { Random } from '../harness/random.ts'

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))

/** Cost ratios of two programs by start: around `factor`, with random variation of starts and rounds. */
function rounds(factor: number, starts: number, perStart: number): number[][] {
  const random = new Random(7)
  const around = (spread: number) => 1 + (random.next() / 2 ** 32 - 0.5) * 2 * spread
  return Array.from({ length: starts }, () => {
    const start = around(0.005)
    return Array.from({ length: perStart }, () => factor * start * around(0.02))
  })
}

for (const factor of [0.97, 1, 1.02, 1.1]) {
  test(`a true cost ratio of ${factor} lies within the confidence interval`, () => {
    const { ratio, low, high, pairs, starts } = pairedRatio(rounds(factor, 6, 4))
    assert.ok(low <= factor && factor <= high, `${low} to ${high}`)
    assert.ok(low <= ratio && ratio <= high)
    assert.ok(high - low < 0.03)
    assert.deepEqual([pairs, starts], [24, 6])
  })
}

test('the same rounds give the same confidence interval', () => {
  assert.deepEqual(pairedRatio(rounds(1, 5, 3)), pairedRatio(rounds(1, 5, 3)))
})

test('variation between starts widens the confidence interval more than variation between rounds', () => {
  const differing = [1, 1.04, 1.08, 1.12]
  const byStart = pairedRatio(differing.map(ratio => [ratio, ratio, ratio, ratio]))
  const byRound = pairedRatio(differing.map(() => differing))
  assert.ok(byStart.high - byStart.low > byRound.high - byRound.low)
})

test('one outlier round does not move the median', () => {
  const undisturbed = rounds(1.01, 5, 4)
  const disturbed = undisturbed.map((ratios, start) => (start === 2 ? [...ratios.slice(1), 1.9] : ratios))
  assert.ok(Math.abs(pairedRatio(disturbed).ratio - pairedRatio(undisturbed).ratio) < 0.01)
})

test('starts without rounds are not counted', () => {
  const { pairs, starts } = pairedRatio([[1, 1.1], []])
  assert.deepEqual([pairs, starts], [2, 1])
})

const VERDICTS: readonly (readonly [PairedRatio, string])[] = [
  [{ ratio: 1.02, low: 1.01, high: 1.029, pairs: 24, starts: 6 }, 'met'],
  [{ ratio: 1.02, low: 1.01, high: 1.03, pairs: 24, starts: 6 }, 'met'],
  [{ ratio: 1.03, low: 1.02, high: 1.04, pairs: 24, starts: 6 }, 'not decided by this run'],
  [{ ratio: 1.04, low: 1.031, high: 1.05, pairs: 24, starts: 6 }, 'missed'],
  [{ ratio: 1, low: 1, high: 1, pairs: 4, starts: 1 }, 'not decided, needs 4 starts'],
]
for (const [bounds, verdict] of VERDICTS) {
  test(`limit 1.03, interval ${bounds.low} to ${bounds.high}, ${bounds.starts} starts: ${verdict}`, () => {
    assert.equal(verdictOf(bounds, 1.03), verdict)
  })
}

test('ratios compare the same rounds of two peers and are grouped by start', () => {
  assert.deepEqual(ratiosByStart([2, 3, 4], [1, 2, 4, 9], 2), [[2, 1.5], [1]])
})

const ROUND = { cpuMicrosPerRequest: 20, requestsPerSecond: 50_000, errors: 0 }

test('comparisons with a peer that was not measured are left out', () => {
  const slower = summarize([{ ...ROUND, cpuMicrosPerRequest: 22 }])
  const peers = { sluice: slower, 'sluice-core': summarize([ROUND]) }
  assert.deepEqual(
    comparisonsOf(PAIRED_SCENARIOS['chain-get']!, peers).map(({ candidate, baseline, ratio, limit }) => {
      return { candidate, baseline, ratio, limit }
    }),
    [{ candidate: 'sluice', baseline: 'sluice-core', ratio: 1.1, limit: 1.03 }],
  )
})

test('the table of a paired scenario has ratios to its reference, and comparisons below', () => {
  const result: ScenarioResult = {
    title: 'Full filter chain',
    command: 'npm run bench -- --scenario chain-get',
    startedAt: '2026-01-02T03:04:05.678Z',
    secondsPerRound: 2,
    loadGenerator: 'wrk',
    backend: 'nginx',
    environment: { processor: 'p', processors: 2, kernel: 'k', node: 'v26', commit: 'c', versions: {} },
    probeMs: [30],
    peers: { sluice: summarize([{ ...ROUND, cpuMicrosPerRequest: 20.4 }]), 'sluice-core': summarize([ROUND]) },
    comparisons: [
      {
        ...{ candidate: 'sluice', baseline: 'sluice-core', limit: 1.03 },
        ...{ ratio: 1.02, low: 1.011, high: 1.028, pairs: 24, starts: 6 },
      },
    ],
    skipped: {},
  }
  const table = scenarioTable('chain-get', result)
  assert.match(table, /^\| sluice \| 20\.4 \(1\.02×\)/m)
  assert.match(
    table,
    /sluice \/ sluice-core.* \*\*1\.020\*\* \(95 %: 1\.011 to 1\.028\).* 24 pairs .* Target at most 1\.03: met\.$/m,
  )
})

for (const apis of Object.values(API_COUNTS)) {
  test(`paths spread over ${apis} APIs are as many and as long as those of one API`, () => {
    const paths = spreadPaths(apis)
    const lengths = (list: readonly string[]) => list.map(path => path.length).sort((a, b) => a - b)
    assert.equal(new Set(paths).size, 10_000)
    assert.equal(new Set(paths.map(path => path.slice(0, '/apis/00000'.length))).size, apis)
    assert.deepEqual(lengths(paths), lengths(spreadPaths(1)))
  })
}

test('requests are spread over the APIs of the peer', () => {
  const scenario = PAIRED_SCENARIOS['apis-spread']!
  assert.deepEqual(requestFor(scenario, 'sluice-100-apis').paths, spreadPaths(100))
  assert.equal(requestFor(PAIRED_SCENARIOS['apis-same']!, 'sluice-100-apis').paths.length, 1)
})

for (const exported of ['operations', 'document'] as const) {
  test(`an exported project of the bench loads without errors: ${exported}`, t => {
    const home = mkdtempSync(join(tmpdir(), 'bench-home-'))
    t.after(() => rmSync(home, { recursive: true, force: true }))
    writeHome(home, [{ name: 'Chain', context: '/chain', ports: [1234], exported }])
    const { apis, errors, warnings } = new ApiProjects(home).load()
    assert.deepEqual([errors, warnings], [[], []])
    assert.deepEqual(
      apis.map(({ context, endpoints }) => [context, endpoints.endpoints[0]?.url]),
      [['/chain', 'http://127.0.0.1:1234']],
    )
  })
}

test('an API for the reload scenario gets another endpoint, and then its first one again', () => {
  const definition = exportedApiYaml({ name: 'A', context: '/a', url: 'http://127.0.0.1:1234' })
  const other = withOtherEndpoint(definition)
  assert.match(other, /^ +url: http:\/\/127\.0\.0\.1:1234\/chain$/m)
  assert.equal(withOtherEndpoint(other), definition)
})

test('without-chain.js replaces filter chains by empty ones', () => {
  const chain = JSON.stringify(pathToFileURL(file('src/filters/build-chain.ts')).href)
  const program = `const { buildFilterChain } = await import(${chain})
process.stdout.write(JSON.stringify(buildFilterChain()))`
  const words = ['--import', file('bench/peers/without-chain.js'), '--input-type=module', '--eval', program]
  assert.equal(execFileSync(process.execPath, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }), '[]')
})
