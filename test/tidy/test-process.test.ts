/** The limit of a process that runs test files (`test/harness/test-process.ts`). */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, mock, test } from 'node:test'
import { ENTRY } from '../harness/test-files.ts'
import { type Report, TestProcess } from '../harness/test-process.ts'

const LIMIT_MS = 600_000
const FILES = ['test/a.test.ts', 'test/b.test.ts', 'test/c.test.ts'] as const
const [A, B, C] = FILES

beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
afterEach(() => mock.timers.reset())

function lineOf(report: Report): string {
  return `test process reports ${JSON.stringify(report)}\n`
}

test('a process whose tests go on is not ended, however many files and tests it runs', () => {
  const process = new TestProcess(FILES, LIMIT_MS)
  for (const file of FILES) {
    for (const test of [undefined, 'one', 'other']) {
      process.hear(lineOf({ file, test }))
      mock.timers.tick(LIMIT_MS - 1)
    }
  }
  assert.equal(process.signal.aborted, false)
  mock.timers.tick(1)
  assert.equal(process.signal.aborted, true)
})

/** What a process reports before nothing goes on, the file that is named, the files after it, the reason. */
const HANGING: readonly (readonly [string, readonly Report[], file: string, left: readonly string[], RegExp])[] = [
  ['a process that begins no file', [], FILES.join(' '), [], /no test has begun$/],
  ['a file that never loads', [{ file: A, test: 'one' }, { file: B }], B, [C], /no test has begun$/],
  [
    'a test that never ends',
    [
      { file: A, test: 'one' },
      { file: A, test: 'other' },
    ],
    A,
    [B, C],
    /begun: other$/,
  ],
  [
    'a process that never ends',
    [
      { file: C, test: 'one' },
      { file: C, processorMs: 9 },
    ],
    C,
    [],
    /all its tests have ended$/,
  ],
]
for (const [name, reports, file, left, reason] of HANGING) {
  test(`${name} is ended and named`, () => {
    const process = new TestProcess(FILES, LIMIT_MS)
    for (const report of reports) process.hear(lineOf(report))
    mock.timers.tick(LIMIT_MS)
    assert.match((process.signal.reason as Error).message, reason)
    assert.equal(process.file, file)
    assert.deepEqual(process.left, left)
  })
}

test('output that comes in pieces counts', () => {
  const process = new TestProcess(FILES, LIMIT_MS)
  const line = lineOf({ file: A, processorMs: 9 })
  assert.deepEqual(process.hear(`a test prints\n${line.slice(0, 30)}`), [])
  assert.deepEqual(process.hear(`${line.slice(30)}${line}`), [
    [A, 9],
    [A, 9],
  ])
  process.ended()
  mock.timers.tick(LIMIT_MS)
  assert.equal(process.signal.aborted, false)
})

test('a test that never gives way is reported before', async () => {
  mock.timers.reset()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-limits-'))
  const file = join(folder, 'spins.mjs')
  writeFileSync(file, `import { test } from 'node:test'\ntest('spins', () => { for (;;); })\n`)
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const child = spawn(process.execPath, [ENTRY], { env: { ...env, SLUICE_TEST_FILES: file } })
  const runs = new TestProcess([file], LIMIT_MS)
  try {
    for await (const output of child.stdout.setEncoding('utf8')) {
      runs.hear(output as string)
      if (runs.last.includes(':')) break
    }
    assert.equal(runs.last, 'the last test that has begun: spins')
  } finally {
    runs.ended()
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
})
