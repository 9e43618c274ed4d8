/**
 * `npm test`: runs the tests on both socket levels, the second also when the first fails, and prints a summary.
 *
 *     npm test                         all tests
 *     npm test -- http1 proxy/splits.test.ts   one room, one file
 *     npm test -- --level streams      one socket level
 *     npm test -- --verbose            every test with its time, and the files that take most
 *     npm test -- --long               long random runs
 *
 * Exit code 0 if every test has passed, else 1.
 */
import { relative, resolve } from 'node:path'
import { run } from 'node:test'
import type { EventData } from 'node:test'
import { inspect, parseArgs, styleText } from 'node:util'
import { buildProgram, COMPILE_CACHE } from '../test/harness/built-program.ts'
import {
  ENTRY,
  filesBelow,
  filesOfLevel,
  LEVELS,
  type Level,
  nearestTo,
  processesOf,
} from '../test/harness/test-files.ts'
import { makeKeptData } from '../test/harness/kept-data.ts'
import { makeTemporaryFolder } from '../test/harness/temporary-folder.ts'
import { TestProcess } from '../test/harness/test-process.ts'

const ROOT = resolve(import.meta.dirname, '..')
/** Four keep two processors busy: processes that start programs, and tests that wait for a time, idle meanwhile. */
const CONCURRENCY = 4
/** For a test that hangs; the longest takes half a minute on a machine with nothing else to do. */
const TEST_TIMEOUT_MS = 600_000
const LONG_TEST_TIMEOUT_MS = 3_600_000
/** From the time-out of a test until the next test begins or the process ends, which hangs otherwise. */
const GRACE_MS = 30_000
const FILES_SHOWN = 20
/** Failures shown with their cause; of the others the name alone. */
const CAUSES_SHOWN = 20
const CAUSE_LINES = 30
/** Its causes are lists of violations, shown whole. */
const LISTS = 'test/tidy.test.ts'
/** Last lines of standard error that are shown of a file that ends without a failed test. */
const STDERR_LINES = 20

let failures = 0

interface Summary {
  readonly level: Level
  passed: number
  failed: number
  readonly skipped: string[]
  readonly fileMs: Map<string, number>
  /** Figures of the file's process and its programs. */
  readonly processorMs: Map<string, number>
}

const { values: options, positionals } = parseArgs({
  options: {
    level: { type: 'string', default: 'both' },
    verbose: { type: 'boolean', default: false },
    long: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})

function levels(): readonly Level[] {
  if (options.level === 'both') return LEVELS
  const level = LEVELS.find(name => name === options.level)
  if (level !== undefined) return [level]
  process.stderr.write(`no such level: ${options.level}; --level is one of both, ${LEVELS.join(', ')}\n`)
  failures++
  return []
}

function filesOf(level: Level): readonly string[] {
  if (positionals.length === 0) return filesOfLevel(level)
  const chosen = positionals.flatMap(filesBelow)
  // A file that is the same on both levels runs once.
  return level === 'handles' || options.level === 'streams'
    ? chosen
    : chosen.filter(file => filesOfLevel(level).includes(file))
}

/**
 * Runs the files of all levels. The processes of a level begin after those of the level before, and need not wait for
 * its last one. Calls `ended` with each summary once its level has ended.
 */
async function runLevels(files: ReadonlyMap<Level, readonly string[]>, ended: (summary: Summary) => void) {
  const runs = [...files].map(([level, of]) => {
    const summary: Summary = { level, passed: 0, failed: 0, skipped: [], fileMs: new Map(), processorMs: new Map() }
    const processes = processesOf(of)
    return { summary, processes, left: processes.length }
  })
  const waiting = runs.flatMap(run => run.processes.map(files => ({ run, files }))).values()
  const runWaiting = async (): Promise<void> => {
    for (const { run, files } of waiting) {
      await runProcess(run.summary, files)
      if (--run.left === 0) ended(run.summary)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, runWaiting))
}

async function runProcess(summary: Summary, files: readonly string[]): Promise<void> {
  const env = { ...ENVIRONMENT, SLUICE_LEVEL: summary.level, SLUICE_TEST_FILES: files.join('\n') }
  const timeout = options.long ? LONG_TEST_TIMEOUT_MS : TEST_TIMEOUT_MS
  const child = new TestProcess(files, timeout + GRACE_MS)
  const { signal } = child
  for await (const { type, data } of run({ files: [ENTRY], env, timeout, signal })) {
    if (type === 'test:pass') passed(summary, data)
    else if (type === 'test:fail') failed(summary, child, data)
    else if (type === 'test:stderr') keepStderr(child, data)
    else if (type === 'test:stdout') keepProcessorTimes(summary, child, data)
  }
  child.ended()
  // A test that ends the process, or hangs, must not hide the files after it.
  if (child.left.length > 0) await runProcess(summary, child.left)
}

function keepStderr(child: TestProcess, { message }: EventData.TestStderr): void {
  if (options.verbose) process.stderr.write(message)
  const lines = `${child.stderr}${message}`.split('\n')
  child.stderr = lines.slice(-STDERR_LINES - 1).join('\n')
}

function keepProcessorTimes({ processorMs }: Summary, child: TestProcess, { message }: EventData.TestStdout): void {
  for (const [file, ms] of child.hear(message)) processorMs.set(file, ms)
}

/** Suites, files and processes are no tests of their own, but a file, which is a suite, has a time. */
function isTest({ fileMs }: Summary, { nesting, name, details }: EventData.TestPass | EventData.TestFail): boolean {
  const isSuite = details.type === 'suite'
  if (isSuite && nesting === 0) fileMs.set(name, (fileMs.get(name) ?? 0) + details.duration_ms)
  return !isSuite && nesting > 0
}

function passed(summary: Summary, data: EventData.TestPass): void {
  if (!isTest(summary, data)) return
  if (data.skip === undefined || data.skip === false) summary.passed++
  else summary.skipped.push(`${data.name}${typeof data.skip === 'string' ? `: ${data.skip}` : ''}`)
  if (options.verbose) {
    process.stdout.write(`${'  '.repeat(data.nesting - 1)}${data.name} (${data.details.duration_ms.toFixed(0)} ms)\n`)
  } else progress(summary)
}

function failed(summary: Summary, child: TestProcess, data: EventData.TestFail): void {
  const cause = data.details.error.cause ?? data.details.error
  // A suite or a file fails when a test of it fails; that test has told it already.
  const isEcho = (data.details.error as Error & { failureType?: string }).failureType === 'subtestsFailed'
  const isOfTest = isTest(summary, data)
  if (isEcho) return
  summary.failed++
  const path = data.file === undefined ? '' : relative(ROOT, data.file)
  const isOfProcess = data.nesting === 0 && data.details.type !== 'suite'
  const name = isOfProcess ? child.file : data.name
  // A file fails by itself when it cannot be loaded, or its process ends.
  const said = isOfTest ? '' : child.stderr
  const isShown = summary.failed <= CAUSES_SHOWN || options.verbose
  const shown = isShown ? causeOf(cause, path === LISTS ? Number.POSITIVE_INFINITY : CAUSE_LINES) + said : ''
  process.stdout.write(`${clear()}${paint('red', 'failed')}  ${name}\n  ${path}:${data.line ?? 1}\n${shown}`)
}

/** The cause without the frames of the test runner. */
function causeOf(cause: unknown, linesMax: number): string {
  const lines = inspect(cause)
    .split('\n')
    .filter(line => !/^\s+at .*(?:\(node:internal|\/test-contexts\.ts:)|^\s+at (?:async )?(?:Test|Suite)\./.test(line))
  return `${lines.slice(0, linesMax).join('\n').replace(/^/gm, '  ')}\n\n`
}

function paint(colour: 'red' | 'green' | 'dim', text: string): string {
  return styleText(colour, text, { stream: process.stdout })
}

function clear(): string {
  return process.stdout.isTTY ? '\r\u001b[K' : ''
}

function progress({ level, passed: done, failed: wrong }: Summary): void {
  if (process.stdout.isTTY) process.stdout.write(`${clear()}${level}: ${done} passed, ${wrong} failed`)
}

function tell(summary: Summary, seconds: number): void {
  const { level, passed: done, failed: wrong, skipped, fileMs, processorMs } = summary
  const verdict = wrong === 0 ? paint('green', 'passed') : paint('red', 'failed')
  const counts = `${done} passed, ${wrong} failed, ${skipped.length} skipped`
  process.stdout.write(`${clear()}${verdict}  ${level}: ${counts}, after ${seconds.toFixed(0)} s\n`)
  for (const test of skipped) process.stdout.write(`  skipped  ${test}\n`)
  if (!options.verbose) return
  const inSeconds = (ms = 0): string => (ms / 1000).toFixed(1)
  const all = [...processorMs.values()].reduce((sum, ms) => sum + ms, 0)
  const most = [...processorMs].sort((one, other) => other[1] - one[1]).slice(0, FILES_SHOWN)
  process.stdout.write(`${inSeconds(all)} s of processors; the most, with the time that passed:\n`)
  for (const [file, ms] of most) {
    process.stdout.write(`  ${inSeconds(ms).padStart(6)} s ${inSeconds(fileMs.get(file)).padStart(6)} s  ${file}\n`)
  }
}

function launcher(): string {
  try {
    return buildProgram()
  } catch (error) {
    process.stderr.write(`the program cannot be bundled, and tests start the sources: ${(error as Error).message}\n`)
    failures++
    return 'src/launch.js'
  }
}

/** The data of a program that has started before; '' where it does not start, and tests make their own. */
async function keptData(): Promise<string> {
  try {
    const { SLUICE_LAUNCHER, TMPDIR } = ENVIRONMENT
    return await makeKeptData(resolve(ROOT, SLUICE_LAUNCHER!), TMPDIR!, ENVIRONMENT)
  } catch (error) {
    process.stderr.write(`the program does not start: ${(error as Error).message}\n`)
    failures++
    return ''
  }
}

if (options.long) process.env.SLUICE_LONG = '1'
const ENVIRONMENT: NodeJS.ProcessEnv = {
  ...{ NODE_COMPILE_CACHE: COMPILE_CACHE, TMPDIR: makeTemporaryFolder() },
  ...process.env,
}
for (const path of positionals.filter(path => filesBelow(path).length === 0)) {
  process.stderr.write(`no such test: ${path}; nearest: ${nearestTo(path) || 'none'}\n`)
  failures++
}
const files = new Map(levels().map(level => [level, filesOf(level)]))
for (const [level, { length }] of files) if (length === 0) files.delete(level)
// For tests of rooms alone it would take longer than it saves.
if ([...files.values()].flat().some(file => file.startsWith('test/process/'))) {
  ENVIRONMENT.SLUICE_LAUNCHER ??= launcher()
  ENVIRONMENT.SLUICE_KEPT_DATA ??= await keptData()
}
const begunMs = performance.now()
await runLevels(files, summary => {
  tell(summary, (performance.now() - begunMs) / 1000)
  failures += summary.failed
})
process.exitCode = failures === 0 ? 0 : 1
