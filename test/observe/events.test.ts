/** Event log of a reactor: levels, redaction, and the rate limit. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventLog, type LogEvent } from '../../src/observe/events.ts'

/** An event log with a clock that the test sets. */
function scripted(level = 'debug') {
  const posted: LogEvent[] = []
  const clock = { nowMs: 0 }
  let kept = 0
  const log = new EventLog(event => posted.push(event), {
    level,
    nowMs: () => clock.nowMs,
    onSuppressed: () => kept++,
  })
  return { log, posted, clock, suppressed: () => kept }
}

/** A failure of the target side with every documented field. */
const FAILURE = {
  STATE_DESCRIPTION: 'request sent, no response yet',
  INTERNAL_STATE: 'REQUEST_DONE',
  DIRECTION: 'RESPONSE',
  CAUSE_OF_ERROR: 'no data for 180000 ms',
  HTTP_URL: '/echo/1.0?page=2',
  HTTP_METHOD: 'GET',
  SOCKET_TIMEOUT: 180000,
  CLIENT_ADDRESS: '192.0.2.7',
  CORRELATION_ID: 'c0ffee',
  CONNECTION: 'http-outgoing-3',
  ERROR_CODE: 101507,
  TARGET_HOST: 'orders.example',
  TARGET_PORT: 9000,
  REMOTE_ADDRESS: '10.0.0.7:9000',
}

test('an event is posted with its fields', () => {
  const { log, posted } = scripted()
  log.report('warn', 'backend timed out', FAILURE)
  assert.deepEqual(posted, [{ level: 'warn', event: 'backend timed out', fields: FAILURE }])
})

const LEVELS = [
  ['trace', ['debug', 'info', 'warn', 'error']],
  ['debug', ['debug', 'info', 'warn', 'error']],
  ['info', ['info', 'warn', 'error']],
  ['warn', ['warn', 'error']],
  ['error', ['error']],
  ['fatal', []],
  ['silent', []],
] as const
for (const [level, expected] of LEVELS) {
  test(`level ${level} posts ${expected.join(', ') || 'nothing'}`, () => {
    const { log, posted } = scripted(level)
    for (const each of ['debug', 'info', 'warn', 'error'] as const) log.report(each, 'x', {})
    assert.deepEqual(
      posted.map(event => event.level),
      expected,
    )
  })
}

const SANITISED = [
  ['HTTP_URL', '/a?%61pikey=s3cr3t&x=1', '/a?%61pikey=***&x=1'],
  ['HTTP_URL', 'http://ada:s3cr3t@b/', 'http://***@b/'],
  ['CAUSE_OF_ERROR', 'bad field Authorization: Bearer s3cr3t', 'bad field Authorization: ***'],
  ['CORRELATION_ID', 'a\r\nb\x1b[2J\x7f\x9b', 'a\\x0d\\x0ab\\x1b[2J\\x7f\\x9b'],
  ['HTTP_METHOD', 'G\u2028\u202eET', 'G\\u2028\\u202eET'],
  ['CORRELATION_ID', 'x'.repeat(5000), 'x'.repeat(2048)],
] as const
for (const [name, value, shown] of SANITISED) {
  test(`${name} ${JSON.stringify(value.slice(0, 40))} is redacted and escaped`, () => {
    const { log, posted } = scripted()
    log.report('warn', 'x', { [name]: value })
    assert.equal(posted[0]!.fields[name], shown)
  })
}

test('events beyond 200 per second are counted, and one event reports the count', () => {
  const { log, posted, clock, suppressed } = scripted()
  for (let i = 0; i < 1000; i++) log.report('warn', 'x', { i })
  assert.equal(posted.length, 200)
  assert.equal(suppressed(), 800)
  clock.nowMs = 999
  log.report('warn', 'x', {})
  assert.equal(posted.length, 200)
  clock.nowMs = 1000
  log.report('warn', 'next', {})
  assert.deepEqual(
    posted.slice(200).map(({ event, fields }) => [event, fields]),
    [
      ['log lines suppressed', { SUPPRESSED: 801 }],
      ['next', {}],
    ],
  )
})

test('tick() reports suppressed events once, also without later events', () => {
  const { log, posted, clock } = scripted()
  for (let i = 0; i < 201; i++) log.report('warn', 'x', {})
  log.tick()
  assert.equal(posted.length, 200)
  for (const nowMs of [1000, 2000, 3000]) {
    clock.nowMs = nowMs
    log.tick()
  }
  assert.deepEqual(posted.slice(200), [{ level: 'warn', event: 'log lines suppressed', fields: { SUPPRESSED: 1 } }])
})

test('setLevel() applies from the next event on', () => {
  const { log, posted } = scripted('error')
  log.report('warn', 'below the level', {})
  log.setLevel('debug')
  log.report('debug', 'posted', {})
  log.setLevel('silent')
  log.report('error', 'below the level', {})
  assert.deepEqual(
    posted.map(({ event }) => event),
    ['posted'],
  )
})
