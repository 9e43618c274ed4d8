/** `bench:all`: which parts there are, failures, missing tools, interruptions, and processes that stay behind. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { selectParts } from '../../bench/all.ts'
import { readOptions } from '../../bench/options.ts'
import { duration, runParts, shortcomings } from '../../bench/part-runner.ts'
import { type Part, partsOf, PROGRAM_NAMES } from '../../bench/parts.ts'
import { SCENARIOS } from '../../bench/scenarios.ts'

const SILENT = { write: () => true }
const POLL_MS = 20

test('every scenario and every program is a part, with options and files that exist', () => {
  for (const isQuick of [false, true]) {
    const parts = partsOf(isQuick, '21000')
    const scenarios = parts
      .filter(({ kind }) => kind === 'scenario')
      .map(({ words }) => readOptions(words.slice(1)) ?? assert.fail('no options'))
    const names = new Set(scenarios.flatMap(options => options.scenarios))
    assert.deepEqual([...names].sort(), Object.keys(SCENARIOS).sort())
    assert.ok(scenarios.every(({ write, basePort }) => !write && basePort === 21_000))
    const programs = parts.filter(({ kind }) => kind === 'program')
    assert.deepEqual(
      programs.map(({ name }) => name),
      PROGRAM_NAMES,
    )
    for (const { words } of programs) assert.ok(existsSync(words.find(word => word.endsWith('.ts'))!), words.join(' '))
    assert.ok(parts.every(({ seconds }) => seconds > 0))
  }
})

test('every program that measures is a part', () => {
  const page = readFileSync(new URL('../../bench/README.md', import.meta.url), 'utf8')
  const own = new Set(partsOf(false).flatMap(({ words }) => words.flatMap(word => /micro\/.*\.ts$/.exec(word) ?? [])))
  // all.ts runs two parts, and exchange.ts is the program of the scenario hot-path-replay.
  const named = [...page.matchAll(/node (?:--expose-gc )?bench\/(micro\/[\w-]+\.ts)/g)].map(([, file]) => file!)
  const lacking = named.filter(file => !own.has(file) && !['micro/all.ts', 'micro/exchange.ts'].includes(file))
  assert.deepEqual(lacking, [])
})

test('--part selects by name, else by the beginning of names, and refuses names that fit none', () => {
  const names = (text: string) => selectParts(partsOf(true), text).map(({ name }) => name)
  assert.deepEqual(names('bare,fail-over'), ['bare', 'fail-over-dies', 'fail-over-hangs', 'fail-over-flaps'])
  assert.throws(() => names('bare,nonsense'), /there is no nonsense/)
})

test('durations are told in seconds, minutes or hours', () => {
  assert.deepEqual([40, 700, 12_000].map(duration), ['40 s', '12 min', '3 h 20 min'])
})

function part(name: string, script: string, differences: Partial<Part> = {}): Part {
  const words = ['--input-type=module', '--eval', script]
  const common = { kind: 'program', title: name, command: name, needs: [], seconds: 1, printsLines: false } as const
  return { name, words, ...common, ...differences }
}

interface Outcomes {
  readonly told: readonly string[]
  readonly kinds: readonly string[]
  readonly short: readonly string[]
  readonly files: readonly string[]
}

async function run(t: TestContext, parts: readonly Part[], signal = new AbortController().signal): Promise<Outcomes> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-parts-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const told: string[] = []
  const files: string[] = []
  const outcomes = await runParts(parts, {
    folder,
    signal,
    lacking: async ({ needs }) => needs.map(tool => `${tool} is not installed: apt-get install ${tool}`),
    keep: ({ name }, { file }) => {
      if (!existsSync(file)) throw new Error('it printed no figures')
      files.push(readFileSync(file, 'utf8'))
      return name === 'partly' ? ['nginx was not measured: not installed'] : []
    },
    tell: line => void told.push(line),
    output: { stdout: SILENT, stderr: SILENT },
  })
  return { told, kinds: outcomes.map(({ kind }) => kind), short: shortcomings(parts, outcomes), files }
}

const WRITES = `import { appendFileSync } from 'node:fs'; appendFileSync(process.env.BENCH_RECORD, 'figures')`

test('a part that fails or lacks a tool is told and listed, and the others run', async t => {
  const { told, kinds, short, files } = await run(t, [
    part('broken', `throw new TypeError('no such thing')`),
    part('toolless', WRITES, { needs: ['chromium'] }),
    part('empty', ''),
    part('partly', WRITES),
    part('whole', WRITES),
  ])
  assert.deepEqual(kinds, ['failed', 'left out', 'failed', 'measured', 'measured'])
  assert.deepEqual(files, ['figures', 'figures'])
  assert.deepEqual(short, [
    'broken: failed: exit code 1: TypeError: no such thing',
    'toolless: left out: chromium is not installed: apt-get install chromium',
    'empty: failed: it printed no figures',
    'partly: incomplete: nginx was not measured: not installed',
  ])
  assert.match(told[0]!, /^1 of 5: broken, about 1 s; 5 s left\. broken$/)
  assert.ok(told.some(line => line.startsWith('2 of 5: toolless is left out: chromium is not installed')))
})

test('files of a part in the temporary folder are removed with it', async t => {
  const script = `import { appendFileSync, mkdtempSync } from 'node:fs'; import { tmpdir } from 'node:os'
    appendFileSync(process.env.BENCH_RECORD, mkdtempSync(tmpdir() + '/own-'))`
  const { files } = await run(t, [part('careless', script)])
  assert.match(files[0]!, /own-/)
  assert.equal(existsSync(files[0]!), false)
})

/** Starts a process that ignores SIGTERM and outlives its parent, and writes the id of that process. */
const LEAVES_A_PROCESS = `
  import { spawn } from 'node:child_process'
  import { appendFileSync } from 'node:fs'
  const script = 'process.on("SIGTERM", () => {}); console.log("ready"); setInterval(() => {}, 1000)'
  const child = spawn(process.execPath, ['--eval', script], { stdio: ['ignore', 'pipe', 'ignore'] })
  await new Promise(resolve => child.stdout.once('data', resolve))
  appendFileSync(process.env.BENCH_RECORD, String(child.pid))`

function isRunning(pid: number): boolean {
  try {
    // A zombie waits for its parent, and runs no more.
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

test('a process that a part leaves behind is ended', async t => {
  const { told, kinds, files } = await run(t, [part('untidy', `${LEAVES_A_PROCESS}\nprocess.exit(0)`)])
  assert.deepEqual(kinds, ['measured'])
  assert.equal(isRunning(Number(files[0])), false)
  assert.ok(told.includes('untidy left 1 processes behind, which have been ended.'), told.join('\n'))
})

test('an interruption ends the part with its processes, and what was measured stays', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-pid-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const place = join(folder, 'pid')
  const interruption = new AbortController()
  const script = LEAVES_A_PROCESS.replace('process.env.BENCH_RECORD', JSON.stringify(place))
  const parts = [part('first', WRITES), part('endless', `${script}\nsetInterval(() => {}, 1000)`), part('last', WRITES)]
  const running = run(t, parts, interruption.signal)
  while (!existsSync(place)) await sleep(POLL_MS)
  interruption.abort()
  const { kinds, short, files } = await running
  assert.deepEqual(kinds, ['measured', 'interrupted'])
  assert.deepEqual(files, ['figures'])
  assert.deepEqual(short, ['endless: interrupted', 'last: not reached'])
  assert.equal(isRunning(Number(readFileSync(place, 'utf8'))), false)
})

test('bench:all that is interrupted lists the part, and ends with 130', async () => {
  const all = fileURLToPath(new URL('../../bench/all.ts', import.meta.url))
  const child = spawn(process.execPath, [all, '--quick', '--part', 'machine'], { stdio: ['ignore', 'ignore', 'pipe'] })
  let told = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    told += text
  })
  // The first line names the part. Another signal could end the command itself at its end.
  child.stderr.once('data', () => child.kill('SIGINT'))
  const [code] = await once(child, 'close')
  assert.equal(code, 130, told)
  assert.match(told, /\n0 of 1 parts measured in .*\nNot complete:\n {2}machine: interrupted\n$/s)
})
