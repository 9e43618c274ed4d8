/** Publication: pages, markers, targets, and what may replace an earlier result. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { MeasuredTable, measuredNote } from '../../bench/measured-table.ts'
import { PROGRAM_NAMES } from '../../bench/parts.ts'
import { type ProgramRecord, readPrograms, tableOfLines, tablesOf } from '../../bench/program-records.ts'
import { indexText, pagesOf, targetsText } from '../../bench/report/pages.ts'
import {
  type Places,
  publish,
  publishPrograms,
  replaceSection,
  renderPublished,
  scenarioGaps,
} from '../../bench/report/publish.ts'
import { readResults, type Results, type ScenarioResult, summarize } from '../../bench/results.ts'
import { SCENARIOS } from '../../bench/scenarios.ts'

const BENCH = fileURLToPath(new URL('../../bench/', import.meta.url))
const README = `# Page

<!-- targets: begin, written by npm run bench:all -->
old targets
<!-- targets: end -->

By hand.

<!-- results: begin, written by npm run bench:all -->
old results
<!-- results: end -->
`
const ENVIRONMENT = { processor: 'p', processors: 2, kernel: 'k', node: 'v26', commit: 'c0ffee', versions: {} }

function placesOf(t: TestContext): Places {
  const folder = `${mkdtempSync(join(tmpdir(), 'sluice-publish-'))}/`
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const readme = `${folder}README.md`
  writeFileSync(readme, README)
  writeFileSync(`${folder}published.json`, JSON.stringify({ schema: 1, scenarios: {} }))
  return { folder, readme }
}

function scenario(peers: Readonly<Record<string, number>>, differences: Partial<ScenarioResult> = {}): ScenarioResult {
  const measured = Object.entries(peers).map(([peer, cpuMicrosPerRequest]) => {
    return [peer, summarize([{ cpuMicrosPerRequest, requestsPerSecond: 1000 }])]
  })
  const common = { title: 'Bare', command: 'npm run bench', startedAt: '2026-01-02T03:04:05.678Z', secondsPerRound: 3 }
  const load = { loadGenerator: 'wrk', backend: 'nginx', environment: ENVIRONMENT, probeMs: [30], skipped: {} }
  return { ...common, ...load, peers: Object.fromEntries(measured), ...differences }
}

function resultsOf(scenarios: Results['scenarios']): Results {
  return { schema: 1, scenarios }
}

test('a section is replaced between its markers, and all else stays', () => {
  const text = replaceSection(README, 'results', 'new results')
  assert.match(text, /written by npm run bench:all -->\n\nnew results\n\n<!-- results: end -->/)
  assert.doesNotMatch(text, /old results/)
  assert.match(text, /old targets\n<!-- targets: end -->\n\nBy hand\./)
  assert.equal(replaceSection(text, 'results', 'new results'), text)
})

test('a page without the markers of a section is refused', () => {
  assert.throws(() => replaceSection('# Page', 'results', ''), /lacks the markers of its section results/)
  const reversed = '<!-- results: end -->\n<!-- results: begin, written by npm run bench:all -->'
  assert.throws(() => replaceSection(reversed, 'results', ''), /lacks the markers/)
})

test('a published scenario has a table on its page, a verdict, and a place in the index', t => {
  const places = placesOf(t)
  publish(resultsOf({ bare: scenario({ sluice: 18, nginx: 20, haproxy: 19 }) }), places)
  const [page, readme] = [`${places.folder}published-proxies.md`, places.readme].map(file => readFileSync(file, 'utf8'))
  assert.match(page!, /<a id="bare"><\/a>\n\n### Bare\n/)
  assert.match(page!, /^\| sluice \| 18\.0 \(0\.90×\)/m)
  const row =
    /^\| \[bare\]\(results\/published-proxies\.md#bare\) \| CPU µs\/req of sluice at most 1 × haproxy \| (.*) \|$/m
  assert.equal(row.exec(readme!)?.[1], '0.947 × haproxy | met | 2026-01-02, c0ffee')
  assert.match(readme!, /req\/s of sluice at least 1\.1 × nginx \| 1\.000 × nginx \| missed/)
  assert.match(readme!, /\[Beside other proxies\]\(results\/published-proxies\.md\) \| bare \| 2026-01-02 \|/)
  assert.match(readme!, /Without a published result: bare-512, .*, dashboard\./)
  assert.match(readme!, /By hand\./)
})

test('a result without the gateway, or without any peer, replaces none', t => {
  const places = placesOf(t)
  const whole = scenario({ sluice: 18, nginx: 20 }, { skipped: { haproxy: 'not installed' } })
  publish(resultsOf({ bare: whole, tls: whole }), places)
  const broken = scenario({ nginx: 21 }, { skipped: { sluice: 'returned status 502' } })
  publish(resultsOf({ bare: broken, tls: scenario({}) }), places)
  assert.deepEqual(readResults(`${places.folder}published.json`), resultsOf({ bare: whole, tls: whole }))
})

test('what a run lacks is told by peer, and a scenario without any result is an error', () => {
  const partly = resultsOf({ bare: scenario({ sluice: 18 }, { skipped: { nginx: 'not\n  installed' } }) })
  assert.deepEqual(scenarioGaps(partly), ['nginx was not measured: not installed'])
  const none = resultsOf({ bare: scenario({}, { skipped: { sluice: 'ended' } }) })
  assert.throws(() => scenarioGaps(none), /bare has no result; sluice was not measured: ended/)
})

function recordOf(measured: Pick<ProgramRecord, 'tables' | 'notes'>): ProgramRecord {
  const run = { startedAt: '2026-01-02T03:04:05.678Z', tookSeconds: 9, environment: ENVIRONMENT, loadBefore: 0.25 }
  return { title: 'Counters', command: 'npx node bench/micro/throttle.ts', ...run, ...measured }
}

test('rows that a program prints become a table of its record, its page and its targets', t => {
  const places = placesOf(t)
  const file = `${places.folder}throttle.rows`
  const { BENCH_RECORD } = process.env
  t.after(() => {
    if (BENCH_RECORD === undefined) delete process.env.BENCH_RECORD
    else process.env.BENCH_RECORD = BENCH_RECORD
  })
  process.env.BENCH_RECORD = file
  const printed = t.mock.method(console, 'log', () => {})
  const table = new MeasuredTable('admit, ns of processor time beyond the clock', { ns: 0, bytes: 1 })
  table.row('one counter', 86.4, 105)
  table.row('five counters', 460.04321, undefined)
  measuredNote('Done.')
  const lines = printed.mock.calls.flatMap(({ arguments: words }) => words.join(' '))
  assert.match(lines[0]!, /admit, ns .* ns {2,}bytes$/)
  assert.match(lines[2]!, /^ {2}five counters +460 +–$/)

  const measured = tablesOf(file)
  assert.deepEqual(measured.notes, ['Done.'])
  assert.deepEqual(measured.tables[0]!.rows[1], { name: 'five counters', cells: [460.043, null] })
  publishPrograms({ throttle: recordOf(measured) }, places)
  const page = readFileSync(`${places.folder}published-programs.md`, 'utf8')
  assert.match(page, /<a id="throttle"><\/a>\n\n### Counters\n\n {4}npx node bench\/micro\/throttle\.ts\n/)
  assert.match(page, /^\| five counters \| 460 \| – \|$/m)
  assert.match(
    page,
    /Done\. {2}\n2026-01-02T03:04Z, commit c0ffee, 9 s, .* {2}\nLoad average of the machine before: 0\.3\./,
  )
  const readme = readFileSync(places.readme, 'utf8')
  assert.match(readme, /\[throttle\]\(results\/published-programs\.md#throttle\) \| ns .* at most 405 \| 460 \| missed/)
})

test('lines of the form what: figure become a table, and other lines notes', () => {
  const output = 'two rounds\n\nbytes per second: 18,760\ntime: 1.3 ms, 95 % 2.0 ms\n'
  assert.deepEqual(tableOfLines('Dashboard', output), {
    tables: [
      {
        title: 'Dashboard',
        columns: { '': 0 },
        rows: [
          { name: 'bytes per second', cells: ['18,760'] },
          { name: 'time', cells: ['1.3 ms, 95 % 2.0 ms'] },
        ],
      },
    ],
    notes: ['two rounds.'],
  })
  assert.deepEqual(tableOfLines('Dashboard', 'nothing'), { tables: [], notes: ['nothing.'] })
})

test('every scenario has a page, and a target without a published figure says so', () => {
  const results = resultsOf(Object.fromEntries(Object.keys(SCENARIOS).map(name => [name, scenario({ sluice: 1 })])))
  const pages = Object.values(pagesOf({ results, programs: { schema: 1, programs: {} } })).join('\n')
  for (const name of Object.keys(SCENARIOS)) assert.equal(pages.split(`<a id="${name}">`).length, 2, name)
  const none = { results: resultsOf({}), programs: { schema: 1, programs: {} } } as const
  assert.match(
    targetsText(none),
    /^\| bare \| CPU µs\/req of sluice at most 1 × haproxy \| – \| not measured \| – \|$/m,
  )
})

test('the pages of the repository are those of its published records and targets', t => {
  const published = {
    results: readResults(`${BENCH}results/published.json`),
    programs: readPrograms(`${BENCH}results/published-programs.json`),
  }
  for (const [file, text] of Object.entries(pagesOf(published))) {
    assert.equal(readFileSync(`${BENCH}results/${file}`, 'utf8'), text, `${file}: npm run bench:all -- --pages`)
  }
  const readme = readFileSync(`${BENCH}README.md`, 'utf8')
  const hint = 'npm run bench:all -- --pages'
  assert.ok(readme.includes(targetsText(published)), hint)
  assert.ok(readme.includes(indexText(published, PROGRAM_NAMES)), hint)
  const places = placesOf(t)
  renderPublished(places)
  assert.doesNotMatch(readFileSync(places.readme, 'utf8'), /old results|old targets/)
})

test('bench:all without a tool says so, lists the part, and ends with 1', () => {
  const all = `${BENCH}all.ts`
  const { status, stderr } = spawnSync(process.execPath, [all, '--quick', '--part', 'dashboard'], {
    encoding: 'utf8',
    env: { ...process.env, PATH: '', SLUICE_BROWSER: '' },
  })
  assert.equal(status, 1, stderr)
  const reason = 'chromium is not installed: apt-get install chromium'
  assert.match(stderr, new RegExp(`^1 of 1: dashboard is left out: ${reason}$`, 'm'))
  assert.match(stderr, new RegExp(`Not complete:\\n {2}dashboard: left out: ${reason}$`, 'm'))
})
