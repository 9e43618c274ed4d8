import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { compared, ratiosByStart } from '../../bench/contest/contest.ts'
import { API_COUNTS, CONTESTS, askOf, spreadPaths } from '../../bench/contest/contests.ts'
import { type PairedRatio, pairedRatio, verdictOf } from '../../bench/contest/paired-ratio.ts'
import { edited } from '../../bench/contest/reload.ts'
import { exportedDefinition } from '../../bench/peers/exported-project.ts'
import { writeHome } from '../../bench/peers/sluice.ts'
import { scenarioTable } from '../../bench/report/markdown.ts'
import { type ScenarioResult, summarize } from '../../bench/results.ts'
import { ApiProjects } from '../../src/config/api-definitions.ts'
import { Random } from '../harness/random.ts'

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))

/** Rounds of programs of which one costs `factor` as much, on a machine whose speed and whose starts vary. */
function rounds(factor: number, starts: number, perStart: number): number[][] {
  const random = new Random(7)
  const around = (spread: number) => 1 + (random.next() / 2 ** 32 - 0.5) * 2 * spread
  return Array.from({ length: starts }, () => {
    const start = around(0.005)
    return Array.from({ length: perStart }, () => factor * start * around(0.02))
  })
}

for (const factor of [0.97, 1, 1.02, 1.1]) {
  test(`the ratio of programs of which one costs ${factor} of the other is found within its bounds`, () => {
    const { ratio, low, high, pairs, starts } = pairedRatio(rounds(factor, 6, 4))
    assert.ok(low <= factor && factor <= high, `${low} to ${high}`)
    assert.ok(low <= ratio && ratio <= high)
    assert.ok(high - low < 0.03)
    assert.deepEqual([pairs, starts], [24, 6])
  })
}

test('the same rounds give the same bounds', () => {
  assert.deepEqual(pairedRatio(rounds(1, 5, 3)), pairedRatio(rounds(1, 5, 3)))
})

test('starts that differ widen the bounds more than rounds that do', () => {
  const differing = [1, 1.04, 1.08, 1.12]
  const byStart = pairedRatio(differing.map(ratio => [ratio, ratio, ratio, ratio]))
  const byRound = pairedRatio(differing.map(() => differing))
  assert.ok(byStart.high - byStart.low > byRound.high - byRound.low)
})

test('one disturbed round does not move the median', () => {
  const quiet = rounds(1.01, 5, 4)
  const disturbed = quiet.map((ratios, start) => (start === 2 ? [...ratios.slice(1), 1.9] : ratios))
  assert.ok(Math.abs(pairedRatio(disturbed).ratio - pairedRatio(quiet).ratio) < 0.01)
})

test('starts without a round count for nothing', () => {
  const { pairs, starts } = pairedRatio([[1, 1.1], []])
  assert.deepEqual([pairs, starts], [2, 1])
})

const VERDICTS: readonly (readonly [PairedRatio, string])[] = [
  [{ ratio: 1.02, low: 1.01, high: 1.029, pairs: 24, starts: 6 }, 'met'],
  [{ ratio: 1.02, low: 1.01, high: 1.03, pairs: 24, starts: 6 }, 'met'],
  [{ ratio: 1.03, low: 1.02, high: 1.04, pairs: 24, starts: 6 }, 'not decided by this run'],
  [{ ratio: 1.04, low: 1.031, high: 1.05, pairs: 24, starts: 6 }, 'missed'],
  [{ ratio: 1, low: 1, high: 1, pairs: 4, starts: 1 }, 'not decided: that takes 4 starts'],
]
for (const [bounds, verdict] of VERDICTS) {
  test(`${bounds.low} to ${bounds.high} in ${bounds.starts} starts, at most 1.03: ${verdict}`, () => {
    assert.equal(verdictOf(bounds, 1.03), verdict)
  })
}

test('each round is set against the round of the other beside it, start by start', () => {
  assert.deepEqual(ratiosByStart([2, 3, 4], [1, 2, 4, 9], 2), [[2, 1.5], [1]])
})

const ROUND = { cpuMicrosPerRequest: 20, requestsPerSecond: 50_000, errors: 0 }

test('a contest answers its questions, but for those about somebody who took no part', () => {
  const dearer = summarize([{ ...ROUND, cpuMicrosPerRequest: 22 }])
  const answers = compared(CONTESTS['chain-get']!, { sluice: dearer, 'sluice-core': summarize([ROUND]) })
  assert.deepEqual(
    answers.map(({ of, to, ratio, limit }) => ({ of, to, ratio, limit })),
    [{ of: 'sluice', to: 'sluice-core', ratio: 1.1, limit: 1.03 }],
  )
})

test('the table of a contest gives ratios to its own reference, and the answer below', () => {
  const result: ScenarioResult = {
    title: 'Full chain',
    command: 'npm run bench -- --scenario chain-get',
    startedAt: '2026-01-02T03:04:05.678Z',
    secondsPerRound: 2,
    loadGenerator: 'wrk',
    backend: 'nginx',
    surroundings: { processor: 'p', processors: 2, kernel: 'k', node: 'v26', commit: 'c', versions: {} },
    probeMs: [30],
    peers: { sluice: summarize([{ ...ROUND, cpuMicrosPerRequest: 20.4 }]), 'sluice-core': summarize([ROUND]) },
    compared: [
      { of: 'sluice', to: 'sluice-core', ratio: 1.02, low: 1.011, high: 1.028, pairs: 24, starts: 6, limit: 1.03 },
    ],
    skipped: {},
  }
  const table = scenarioTable('chain-get', result)
  assert.match(table, /^\| sluice \| 20\.4 \(1\.02×\)/m)
  assert.match(
    table,
    /sluice \/ sluice-core.* \*\*1\.020\*\* \(95 %: 1\.011 to 1\.028\).* 24 pairs .* At most 1\.03: met\.$/m,
  )
})

for (const apis of Object.values(API_COUNTS)) {
  test(`requests spread over ${apis} APIs have as many paths, of the same lengths, as over one`, () => {
    const paths = spreadPaths(apis)
    const lengths = (list: readonly string[]) => list.map(path => path.length).sort((a, b) => a - b)
    assert.equal(new Set(paths).size, 10_000)
    assert.equal(new Set(paths.map(path => path.slice(0, '/apis/00000'.length))).size, apis)
    assert.deepEqual(lengths(paths), lengths(spreadPaths(1)))
  })
}

test('contestants are asked for the APIs that they have', () => {
  const contest = CONTESTS['apis-spread']!
  assert.deepEqual(askOf(contest, 'sluice-100-apis').paths, spreadPaths(100))
  assert.equal(askOf(CONTESTS['apis-same']!, 'sluice-100-apis').paths.length, 1)
})

for (const exported of ['operations', 'document'] as const) {
  test(`an exported project of the bench is read without a fault: ${exported}`, t => {
    const home = mkdtempSync(join(tmpdir(), 'bench-home-'))
    t.after(() => rmSync(home, { recursive: true, force: true }))
    writeHome(home, [{ name: 'Chain', context: '/chain', ports: [1234], exported }])
    const { apis, faults, warnings } = new ApiProjects(home).load()
    assert.deepEqual([faults, warnings], [[], []])
    assert.deepEqual(
      apis.map(({ context, endpoints }) => [context, endpoints.endpoints[0]?.url]),
      [['/chain', 'http://127.0.0.1:1234']],
    )
  })
}

test('a reload is made to see another endpoint, and then the one before', () => {
  const definition = exportedDefinition({ name: 'A', context: '/a', url: 'http://127.0.0.1:1234' })
  const other = edited(definition)
  assert.match(other, /^ +url: http:\/\/127\.0\.0\.1:1234\/chain$/m)
  assert.equal(edited(other), definition)
})

test('a gateway without its chain is the same program with an empty one', () => {
  const asked = `const { chainOf } = await import(${JSON.stringify(pathToFileURL(file('src/chain-of.ts')).href)})
process.stdout.write(JSON.stringify(chainOf()))`
  const words = ['--import', file('bench/peers/without-chain.js'), '--input-type=module', '--eval', asked]
  assert.equal(execFileSync(process.execPath, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }), '[]')
})
