/** Access log lines: both formats, escaping, redaction, and batches. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AccessLog, type AccessLogFormat } from '../../src/observe/access-log.ts'
import type { AccessRecord } from '../../src/observe/access-line.ts'
import { CorrelationId } from '../../src/proxy/exchange/correlation-id.ts'

function correlation(given: string): CorrelationId {
  const id = new CorrelationId('')
  id.take(given)
  return id
}

const RECORD: AccessRecord = {
  method: 'GET',
  requestTarget: '/echo/1.0/x?page=2',
  minorVersion: 1,
  clientAddress: '192.0.2.7',
  sourceId: 12,
  targetId: 3,
  sourceState: 6,
  targetState: 0,
  status: 200,
  requestBodyBytes: 0,
  responseBodyBytes: 4_294_967_296,
  startedMs: 1000.25,
  requestDoneMs: 1000.5,
  sentMs: 1001,
  connectMs: 0.125,
  firstByteMs: 1003.0625,
  doneMs: 1004.25,
  correlation: correlation('c0ffee'),
  apiName: 'Echo',
  backend: '127.0.0.1:9000',
  errorBase: 0,
  errorState: 0,
  userAgent: 'curl/8.0',
  referer: 'https://a.example/b',
  host: 'gw.example',
  isSecured: true,
  persists: true,
  captured: ['x-forwarded-for', '198.51.100.9'],
  caller: { user: 'ann' },
  trace: null,
}
/** 2026-11-21T03:56:00.000Z less the record's 1000 ms. */
const OFFSET_MS = Date.UTC(2026, 10, 21, 3, 56) - 1000

function linesOf(format: AccessLogFormat, records: readonly Partial<AccessRecord>[], offsetMs = OFFSET_MS): string[] {
  let written = ''
  const log = new AccessLog(format, batch => (written += Buffer.from(batch).toString('latin1')), {
    wallOffsetMs: () => offsetMs,
  })
  for (const record of records) log.append({ ...RECORD, ...record })
  log.flush()
  assert.match(written, /\n$/)
  return written.slice(0, -1).split('\n')
}

function fieldsOf(record: Partial<AccessRecord>): Record<string, unknown> {
  const lines = linesOf('json', [record])
  assert.equal(lines.length, 1)
  return JSON.parse(lines[0]!)
}

const sharedLines: string[] = []
const sharedLog = new AccessLog('json', batch => sharedLines.push(Buffer.from(batch).toString()), {
  wallOffsetMs: () => OFFSET_MS,
})

/** As `fieldsOf`, with one log for all lines. */
function fieldsOfShared(record: Partial<AccessRecord>): Record<string, unknown> {
  sharedLog.append({ ...RECORD, ...record })
  sharedLog.flush()
  return JSON.parse(sharedLines.pop()!)
}

test('a JSON line has every field in a fixed order', () => {
  assert.equal(
    linesOf('json', [{}])[0],
    '{"time":"2026-11-21T03:56:00.000Z","correlation_id":"c0ffee","source":"http-incoming-12",' +
      '"target":"http-outgoing-3","source_state":"RESPONSE_DONE","target_state":"REQUEST_READY","method":"GET",' +
      '"request_target":"/echo/1.0/x?page=2","version":"1.1","status":200,"request_body_bytes":0,' +
      '"response_body_bytes":4294967296,"client_read_ms":0.250,"connect_ms":0.125,"backend_ms":2.063,' +
      '"client_write_ms":1.188,"total_ms":4.000,"client_address":"192.0.2.7","api":"Echo",' +
      '"backend":"127.0.0.1:9000","error_base":0,"error_state":0,"user_agent":"curl/8.0",' +
      '"referer":"https://a.example/b"}',
  )
})

test('a combined line is in the format of Apache', () => {
  assert.equal(
    linesOf('combined', [{}])[0],
    '192.0.2.7 - - [21/Nov/2026:03:56:00 +0000] "GET /echo/1.0/x?page=2 HTTP/1.1" 200 4294967296 ' +
      '"https://a.example/b" "curl/8.0"',
  )
})

/** Exchanges without some parts, and their fields. */
const ABSENT = [
  [
    'no backend connection',
    { targetId: 0, targetState: -1, backend: '' },
    { target: null, target_state: null, backend: '' },
  ],
  [
    'no start line',
    { method: '', requestTarget: '', minorVersion: -1 },
    { method: '', request_target: '', version: null },
  ],
  ['a request that never finished', { requestDoneMs: 0 }, { client_read_ms: null, total_ms: 4 }],
  [
    'a request that was never sent',
    { sentMs: 0, firstByteMs: 0 },
    { connect_ms: null, backend_ms: null, client_write_ms: null },
  ],
  ['times out of order', { requestDoneMs: 999 }, { client_read_ms: 0 }],
  ['a failure', { errorBase: 101504, errorState: 3, status: 504 }, { error_base: 101504, error_state: 3, status: 504 }],
] as const
for (const [title, record, expected] of ABSENT) {
  test(`JSON: ${title}`, () => assert.partialDeepStrictEqual(fieldsOf(record), expected))
}

test('combined: a missing part is a dash', () => {
  const record = { method: '', requestTarget: '', responseBodyBytes: 0, referer: '', userAgent: '', status: 400 }
  assert.equal(linesOf('combined', [record])[0], '192.0.2.7 - - [21/Nov/2026:03:56:00 +0000] "-" 400 - "-" "-"')
  assert.match(linesOf('combined', [{ minorVersion: -1 }])[0]!, /"GET \/echo\/1\.0\/x\?page=2" 200/)
})

const NETWORK_FIELDS = [
  'method',
  'requestTarget',
  'clientAddress',
  'correlation',
  'backend',
  'userAgent',
  'referer',
] as const
const EVERY_BYTE = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte))

for (const field of NETWORK_FIELDS) {
  test(`no byte of ${field} escapes its field in either format`, () => {
    for (const byte of EVERY_BYTE) {
      const text = `/a${byte}b`
      const record = { [field]: field === 'correlation' ? correlation(text) : text }
      const [json, ...more] = linesOf('json', [record])
      assert.equal(more.length, 0)
      assert.match(json!, /^[ -~]*$/)
      assert.equal(Object.keys(JSON.parse(json!)).length, 24)
      assert.ok(Object.values(JSON.parse(json!)).includes(`/a${byte}b`), `${field} ${byte.charCodeAt(0)}`)
      const [combined, ...rest] = linesOf('combined', [record])
      assert.equal(rest.length, 0)
      assert.match(combined!, /^[ -~]*$/)
      assert.equal(combined!.split('"').length, 7, 'three quoted fields')
    }
  })
}

test('escapes are \\u00HH in JSON and \\xHH in the combined format', () => {
  const record = { userAgent: 'a"b\\c\n\x1b[31m\x7f\xe9' }
  assert.match(linesOf('json', [record])[0]!, /"user_agent":"a\\u0022b\\u005cc\\u000a\\u001b\[31m\\u007f\\u00e9"/)
  assert.match(linesOf('combined', [record])[0]!, /"a\\x22b\\x5cc\\x0a\\x1b\[31m\\x7f\\xe9"$/)
})

test('a generated correlation id and numbers of every length are written in full', () => {
  const id = new CorrelationId('prefix-')
  for (let exponent = 0; exponent <= 15; exponent++) {
    for (const number of [10 ** exponent - 1, 10 ** exponent, 10 ** exponent + 1]) {
      id.generate(number + 1)
      const ms = (number % 10_000_000) / 1000
      const numbers = { requestBodyBytes: number, responseBodyBytes: number, connectMs: ms, correlation: id }
      const fields = fieldsOf(numbers)
      const read = [fields.request_body_bytes, fields.response_body_bytes, fields.connect_ms, fields.correlation_id]
      assert.deepEqual(read, [number, number, ms, `prefix-${(number + 1).toString(32)}`])
    }
  }
})

test('the last fields of a line are those of its exchange, also when its connection serves others', () => {
  const records = [
    {},
    { apiName: 'Other' },
    { userAgent: 'wget' },
    { sourceId: RECORD.sourceId + 256 },
    { errorBase: 101503 },
  ]
  for (const record of [...records, ...records]) {
    const [line] = linesOf('json', [{}, record])
    assert.equal(line, linesOf('json', [{}])[0])
  }
  const lines = linesOf('json', [...records, ...records]).map(line => JSON.parse(line))
  assert.deepEqual(
    lines.map(({ api, user_agent, error_base }) => [api, user_agent, error_base]),
    [...records, ...records].map(record => {
      const { apiName, userAgent, errorBase } = { ...RECORD, ...record }
      return [apiName, userAgent, errorBase]
    }),
  )
})

test('an API name beyond latin1 is escaped', () => {
  assert.equal(fieldsOf({ apiName: 'Ω\u{1f600}' }).api, 'Ω\u{1f600}')
})

test('secrets in request target and referer are masked in both formats', () => {
  const record = { requestTarget: '/a?%61pikey=s3cr3t&x=1', referer: 'http://ada:s3cr3t@b/?access_token=s3cr3t' }
  for (const format of ['json', 'combined'] as const) {
    const line = linesOf(format, [record])[0]!
    assert.doesNotMatch(line, /s3cr3t/)
    assert.match(line, /\/a\?%61pikey=\*\*\*&x=1/)
    assert.match(line, /http:\/\/\*\*\*@b\/\?access_token=\*\*\*/)
  }
})

test('user information is masked in a target that is longer than its field', () => {
  for (const requestTarget of [`http://ada:s3cr3t${'a'.repeat(8192)}@b/`, `//ada:s3cr3t${'a'.repeat(8192)}@b`]) {
    for (const format of ['json', 'combined'] as const) {
      assert.ok(!linesOf(format, [{ requestTarget }])[0]!.includes('s3cr3t'), format)
    }
  }
})

test('the time of a line is that of its record, and a flush reads the clock anew', () => {
  const times = linesOf('json', [
    { startedMs: 1000 },
    { startedMs: 1999.999 },
    { startedMs: 2000 },
    { startedMs: 1500 },
  ])
  assert.deepEqual(
    times.map(line => JSON.parse(line).time),
    ['2026-11-21T03:56:00.000Z', '2026-11-21T03:56:00.999Z', '2026-11-21T03:56:01.000Z', '2026-11-21T03:56:00.500Z'],
  )
  let offsetMs = OFFSET_MS
  const batches: string[] = []
  const log = new AccessLog('json', batch => batches.push(Buffer.from(batch).toString()), {
    wallOffsetMs: () => offsetMs,
  })
  offsetMs += 3_600_000
  log.append(RECORD)
  log.flush()
  log.append(RECORD)
  log.flush()
  assert.match(batches[0]!, /T03:56:00/)
  assert.match(batches[1]!, /T04:56:00/)
})

test('a batch is written at a flush or when full, and never when empty', () => {
  const batches: Uint8Array[] = []
  const log = new AccessLog('json', batch => batches.push(batch), { wallOffsetMs: () => OFFSET_MS })
  log.flush()
  log.append(RECORD)
  assert.equal(batches.length, 0)
  log.flush()
  log.flush()
  assert.equal(batches.length, 1)
})

test('a batch holds whole lines only, however long', () => {
  const batches: string[] = []
  const log = new AccessLog('json', batch => batches.push(Buffer.from(batch).toString()), {
    wallOffsetMs: () => OFFSET_MS,
  })
  const huge = '\x00'.repeat(100_000)
  const records = [
    RECORD,
    { ...RECORD, requestTarget: huge, referer: huge, userAgent: huge, correlation: correlation(huge) },
  ]
  for (let i = 0; i < 300; i++) log.append({ ...records[i % 7 === 0 ? 1 : 0]!, sourceId: i })
  log.flush()
  assert.ok(batches.length > 1)
  const lines = batches.flatMap(batch => {
    assert.match(batch, /^\{.*\}\n$/s)
    return batch.slice(0, -1).split('\n')
  })
  assert.deepEqual(
    lines.map(line => JSON.parse(line).source),
    lines.map((_, i) => `http-incoming-${i}`),
  )
})

test('write() owns its batch', () => {
  const batches: Uint8Array[] = []
  const log = new AccessLog('combined', batch => batches.push(batch), { wallOffsetMs: () => OFFSET_MS })
  log.append({ ...RECORD, userAgent: 'first' })
  log.flush()
  log.append({ ...RECORD, userAgent: 'other' })
  log.flush()
  assert.match(Buffer.from(batches[0]!).toString(), /first/)
  assert.equal(batches[0]!.buffer.byteLength, batches[0]!.byteLength)
})

test('a batch that is lent keeps its bytes until it is given back, however many follow', () => {
  const lent: { readonly batch: Uint8Array; readonly text: string; readonly written: () => void }[] = []
  const write = (batch: Uint8Array, written: () => void): void => {
    lent.push({ batch, text: Buffer.from(batch).toString(), written })
  }
  const log = new AccessLog('json', write, { wallOffsetMs: () => OFFSET_MS, lends: true })
  const flushed = (sourceId: number): void => {
    log.append({ ...RECORD, sourceId })
    log.flush()
    for (const { batch, text } of lent) assert.equal(Buffer.from(batch).toString(), text)
  }
  for (let sourceId = 1; sourceId <= 10; sourceId++) flushed(sourceId)
  for (let sourceId = 11; sourceId <= 100; sourceId++) {
    lent.splice(sourceId % lent.length, 1)[0]!.written()
    flushed(sourceId)
    assert.match(lent.at(-1)!.text, new RegExp(`"http-incoming-${sourceId}"`))
  }
})

test('lines are right for more connections, methods, states and statuses than are remembered', () => {
  for (let i = 0; i < 3000; i++) {
    const sourceId = 1 + ((i * 7) % 700)
    const states = { sourceState: (i % 10) - 1, targetState: (i % 9) - 1, targetId: i % 3 }
    const values = { method: `M${i}`, status: 100 + (i % 900), requestBodyBytes: i % 2, minorVersion: (i % 3) - 1 }
    const userAgent = 'u'.repeat(i % 1500)
    const line = fieldsOfShared({ sourceId, ...states, ...values, userAgent })
    assert.deepEqual(
      [line.source, line.method, line.status, line.request_body_bytes, line.user_agent],
      [`http-incoming-${sourceId}`, values.method, values.status, values.requestBodyBytes, userAgent.slice(0, 1024)],
    )
    assert.equal(line.target, states.targetId === 0 ? null : `http-outgoing-${states.targetId}`)
    assert.equal(line.version, values.minorVersion < 0 ? null : `1.${values.minorVersion}`)
  }
})
