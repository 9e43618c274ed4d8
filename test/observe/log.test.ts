/** Event log of the process: JSON lines, the short form for terminals, and exit. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { logEvent, openLog, ShortLines } from '../../src/observe/log.ts'

const EVENT = {
  level: 'warn',
  event: 'backend timed out',
  fields: { HTTP_URL: '/echo?x=1', TARGET_PORT: 9000, CAUSE_OF_ERROR: 'no data for "180" s' },
} as const

function lines(level: string): { written: string[]; log: ReturnType<typeof openLog> } {
  const written: string[] = []
  return { written, log: openLog(level, { write: line => void written.push(line) }) }
}

test('an event of a reactor becomes one JSON line', () => {
  const { written, log } = lines('info')
  logEvent(log, 1, EVENT)
  assert.equal(written.length, 1)
  const { time, ...rest } = JSON.parse(written[0]!)
  assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.deepEqual(rest, { level: 'warn', REACTOR: 1, ...EVENT.fields, msg: 'backend timed out' })
})

test('an event below the configured level is not written', () => {
  const { written, log } = lines('error')
  logEvent(log, 1, EVENT)
  assert.deepEqual(written, [])
})

const SHORT = [
  ['plain', {}, 'ready', /^\d\d:\d\d:\d\d\.\d{3} INFO {2}ready\n$/],
  ['fields', { port: 8290, host: '::' }, 'listening', /INFO {2}listening {2}port=8290 host=::\n$/],
  ['quoted fields', { cause: 'a b', empty: '', sum: 'a=b' }, 'x', /x {2}cause="a b" empty="" sum="a=b"\n$/],
  ['nested fields', { list: [1, 2] }, 'x', /x {2}list=\[1,2\]\n$/],
  ['control characters', { a: '\x1b[2J' }, 'x\x1b[2J\ny', /x\\x1b\[2J\\x0ay {2}a=\\x1b\[2J\n$/],
  ['an error', { err: new Error('broken\x1b') }, 'x', /x\nError: broken\\x1b\n {4}at /],
] as const
for (const [title, fields, text, expected] of SHORT) {
  test(`terminal form: ${title}`, () => {
    const printed: string[] = []
    openLog('info', new ShortLines(line => printed.push(line))).info(fields, text)
    assert.equal(printed.length, 1)
    assert.match(printed[0]!, expected)
  })
}

test('lines logged right before exit reach stderr', () => {
  const url = new URL('../../src/observe/log.ts', import.meta.url).href
  const program = `import { openLog } from ${JSON.stringify(url)}
    const log = openLog('info')
    for (let i = 0; i < 100; i++) log.info({ i }, 'x')
    process.exit(3)`
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
  })
  assert.equal(status, 3)
  assert.equal(stdout, '')
  const logged = stderr
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).i as number)
  // Another thread may finish the first write last.
  assert.deepEqual(
    logged.sort((one, other) => one - other),
    Array.from({ length: 100 }, (_, i) => i),
  )
})
