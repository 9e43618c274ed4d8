/**
 * `npm test`: runs the tests on both socket levels, the second also when the first fails, and prints a summary.
 *
 *     npm test                         all tests
 *     npm test -- http1 proxy/splits.test.ts   one room, one file
 *     npm test -- --level streams      one socket level
 *     npm test -- --verbose            every test with its time
 *     npm test -- --long               long random runs
 *
 * Exit code 0 if every test has passed, else 1.
 */
import { relative, resolve } from 'node:path'
import { run } from 'node:test'
import type { EventData } from 'node:test'
import { inspect, parseArgs, styleText } from 'node:util'
import { filesBelow, isolatedFiles, LEVELS, type Level, nearestTo } from '../test/harness/test-files.ts'

const ROOT = resolve(import.meta.dirname, '..')
const CONCURRENCY = 4
/** For a file that hangs; the longest takes a minute on a machine with nothing else to do, three on a busy one. */
const FILE_TIMEOUT_MS = 300_000
const LONG_TIMEOUT_MS = 3_600_000
const SLOWEST_SHOWN = 5
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
  /** Last lines of standard error, by file. */
  readonly stderr: Map<string, string>
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
  if (positionals.length === 0) return isolatedFiles(level)
  const chosen = positionals.flatMap(filesBelow)
  // A file that is the same on both levels runs once.
  return level === 'handles' || options.level === 'streams'
    ? chosen
    : chosen.filter(file => isolatedFiles(level).includes(file))
}

async function runLevel(level: Level, files: readonly string[]): Promise<Summary> {
  process.env.SLUICE_LEVEL = level
  const summary: Summary = { level, passed: 0, failed: 0, skipped: [], fileMs: new Map(), stderr: new Map() }
  const timeout = options.long ? LONG_TIMEOUT_MS : FILE_TIMEOUT_MS
  const stream = run({ files: files.map(file => resolve(ROOT, file)), concurrency: CONCURRENCY, timeout })
  for await (const { type, data } of stream) {
    if (type === 'test:pass') passed(summary, data)
    else if (type === 'test:fail') failed(summary, data)
    else if (type === 'test:stderr') keepStderr(summary, data)
  }
  return summary
}

function keepStderr({ stderr }: Summary, { file, message }: EventData.TestStderr): void {
  if (options.verbose) process.stderr.write(message)
  const lines = `${stderr.get(file) ?? ''}${message}`.split('\n')
  stderr.set(file, lines.slice(-STDERR_LINES - 1).join('\n'))
}

/** Suites and files are no tests of their own, but a file has a time. */
function isTest(summary: Summary, { nesting, name, file, details }: EventData.TestPass | EventData.TestFail): boolean {
  const isFile = nesting === 0 && file !== undefined && resolve(ROOT, name) === file
  if (file !== undefined && nesting === 0) {
    const path = relative(ROOT, file)
    summary.fileMs.set(path, (summary.fileMs.get(path) ?? 0) + details.duration_ms)
  }
  return !isFile && details.type !== 'suite'
}

function passed(summary: Summary, data: EventData.TestPass): void {
  if (!isTest(summary, data)) return
  if (data.skip === undefined || data.skip === false) summary.passed++
  else summary.skipped.push(`${data.name}${typeof data.skip === 'string' ? `: ${data.skip}` : ''}`)
  if (options.verbose) {
    process.stdout.write(`${'  '.repeat(data.nesting)}${data.name} (${data.details.duration_ms.toFixed(0)} ms)\n`)
  } else progress(summary)
}

function failed(summary: Summary, data: EventData.TestFail): void {
  const cause = data.details.error.cause ?? data.details.error
  // A suite or a file fails when a test of it fails; that test has told it already.
  const isEcho = (data.details.error as Error & { failureType?: string }).failureType === 'subtestsFailed'
  const isOfTest = isTest(summary, data)
  if (isEcho) return
  summary.failed++
  const { file = '' } = data
  const path = file === '' ? '' : relative(ROOT, file)
  const place = file === '' ? '' : `${path}:${data.line ?? 1}`
  // A file fails by itself when it cannot be loaded, or its process ends.
  const said = isOfTest ? '' : (summary.stderr.get(file) ?? '')
  const isShown = summary.failed <= CAUSES_SHOWN || options.verbose
  const shown = isShown ? causeOf(cause, path === LISTS ? Number.POSITIVE_INFINITY : CAUSE_LINES) + said : ''
  process.stdout.write(`${clear()}${paint('red', 'failed')}  ${data.name}\n  ${place}\n${shown}`)
}

/** The cause without the frames of Node's own test runner. */
function causeOf(cause: unknown, linesMax: number): string {
  const lines = inspect(cause)
    .split('\n')
    .filter(line => !/\(node:internal|^\s+at (?:async )?(?:Test|Suite)\./.test(line))
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

function tell({ level, passed: done, failed: wrong, skipped, fileMs }: Summary, seconds: number): void {
  const verdict = wrong === 0 ? paint('green', 'passed') : paint('red', 'failed')
  const counts = `${done} passed, ${wrong} failed, ${skipped.length} skipped`
  process.stdout.write(`${clear()}${verdict}  ${level}: ${counts}, ${seconds.toFixed(0)} s\n`)
  for (const test of skipped) process.stdout.write(`  skipped  ${test}\n`)
  if (!options.verbose) return
  const slowest = [...fileMs].sort((one, other) => other[1] - one[1]).slice(0, SLOWEST_SHOWN)
  for (const [file, ms] of slowest) process.stdout.write(`  ${(ms / 1000).toFixed(1).padStart(6)} s  ${file}\n`)
}

if (options.long) process.env.SLUICE_LONG = '1'
process.env.NODE_COMPILE_CACHE ??= resolve(ROOT, 'node_modules/.cache/test')
for (const path of positionals.filter(path => filesBelow(path).length === 0)) {
  process.stderr.write(`no such test: ${path}; nearest: ${nearestTo(path) || 'none'}\n`)
  failures++
}
for (const level of levels()) {
  const files = filesOf(level)
  if (files.length === 0) continue
  const begunMs = performance.now()
  const summary = await runLevel(level, files)
  tell(summary, (performance.now() - begunMs) / 1000)
  failures += summary.failed
}
process.exitCode = failures === 0 ? 0 : 1
