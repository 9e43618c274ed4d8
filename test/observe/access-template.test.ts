/** Access log lines by template: variables of nginx, directives of Apache, escapes, sampling. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readLogTemplate, readStatusShare } from '../../src/config/log-template.ts'
import { type AccessRecord, LINE_BYTES_MAX } from '../../src/observe/access-line.ts'
import { AccessSampling } from '../../src/observe/access-sampling.ts'
import { templateFields, templateLines } from '../../src/observe/access-template.ts'
import { CorrelationId } from '../../src/proxy/exchange/correlation-id.ts'

const ID = new CorrelationId('')
ID.take('c0ffee')
const RECORD: AccessRecord = {
  ...{ method: 'GET', requestTarget: '/echo/1.0/x?page=2&access_token=s3cret', minorVersion: 1, status: 200 },
  ...{ clientAddress: '192.0.2.7', sourceId: 12, targetId: 3, sourceState: 6, targetState: 0 },
  ...{ requestBodyBytes: 5, responseBodyBytes: 1024, startedMs: 1000.25, requestDoneMs: 1000.5, sentMs: 1001 },
  ...{ connectMs: 0.5, firstByteMs: 1003.0625, doneMs: 2004.25, correlation: ID, apiName: 'Echo', backend: 'b:9000' },
  ...{ errorBase: 101_500, errorState: 3, userAgent: 'curl/8.0', referer: 'https://a.example/b', host: 'gw.example' },
  ...{ isSecured: true, persists: true, captured: ['x-forwarded-for', '198.51.100.9'], caller: { user: 'ann' } },
  trace: { isStarted: true, isSampled: true, traceId: '0af7651916cd43dd8448eb211c80319c', ownId: 'b7ad6b7169203331' },
}
const WALL_MS = Date.UTC(2026, 10, 21, 3, 56, 0, 7)

function lineOf(template: string, record: Partial<AccessRecord> = {}, escapes: 'default' | 'json' = 'default'): string {
  const line = templateLines(readLogTemplate(template)!, escapes)({ ...RECORD, ...record }, WALL_MS)
  assert.equal(line.at(-1), '\n')
  return line.slice(0, -1)
}

const WORDED: readonly (readonly [template: string, line: string])[] = [
  [
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"',
    '192.0.2.7 - ann [21/Nov/2026:03:56:00 +0000] "GET /echo/1.0/x?page=2&access_token=*** HTTP/1.1" 200 1024 ' +
      '"https://a.example/b" "curl/8.0"',
  ],
  [`$time_iso8601 $msec $\u{7b}request_time}s`, '2026-11-21T03:56:00+00:00 1795233360.007 1.004s'],
  ['$request_method $uri $args $server_protocol', 'GET /echo/1.0/x page=2&access_token=*** HTTP/1.1'],
  ['$scheme $host $http_host $connection $request_id $api', 'https gw.example gw.example 12 c0ffee Echo'],
  ['$upstream_addr $upstream_connect_time $upstream_header_time', 'b:9000 0.001 0.002'],
  ['$upstream_response_time $request_body_bytes $error_code', '1.003 5 101503'],
  ['$source_state $target_state', 'RESPONSE_DONE REQUEST_READY'],
  ['$trace_id $span_id', '0af7651916cd43dd8448eb211c80319c b7ad6b7169203331'],
  ['$otel_trace_id $otel_span_id', '0af7651916cd43dd8448eb211c80319c b7ad6b7169203331'],
  ['$http_x_forwarded_for $http_x_absent', '198.51.100.9 -'],
  ['$http_authorization $http_x_api_key', '*** ***'],
  ['100% $status', '100% 200'],
  [
    '%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"',
    '192.0.2.7 - ann [21/Nov/2026:03:56:00 +0000] "GET /echo/1.0/x?page=2&access_token=*** HTTP/1.1" 200 1024 ' +
      '"https://a.example/b" "curl/8.0"',
  ],
  ['%a %m %U %q %H %s %B', '192.0.2.7 GET /echo/1.0/x ?page=2&access_token=*** HTTP/1.1 200 1024'],
  ['%D %T %{ms}T %{us}T %{s}T', '1004000 1 1004 1004000 1'],
  ['%{sec}t %{msec}t %L %v %V %X %%', '1795233360 1795233360007 c0ffee gw.example gw.example + %'],
  ['%{X-Forwarded-For}i %{Host}i', '198.51.100.9 gw.example'],
]

test('a template of nginx or Apache words a line as they do', () => {
  for (const [template, line] of WORDED) assert.equal(lineOf(template), line, template)
})

test('a line has no trace id without tracing, and no span id of a trace that is not sampled', () => {
  const { trace } = RECORD
  assert.equal(lineOf('$trace_id $span_id', { trace: null }), '- -')
  assert.equal(lineOf('$trace_id $span_id', { trace: { ...trace!, isStarted: false } }), '- -')
  assert.equal(lineOf('$trace_id $span_id', { trace: { ...trace!, isSampled: false } }), `${trace!.traceId} -`)
})

test('a template with an unknown variable or directive is refused', () => {
  const refused = ['', '$unknown', '${status', '$request_seconds', '%Z', '%', 'a % b %h', '%{a}n', '%{x y}i']
  for (const template of [...refused, '$status '.repeat(200)])
    assert.equal(readLogTemplate(template), undefined, template)
})

test('values that an exchange does not have are dashes', () => {
  const none = { method: '', requestTarget: '', backend: '', caller: null, sentMs: 0, firstByteMs: 0, targetState: -1 }
  const template = '"$request" $upstream_addr $remote_user $upstream_connect_time $upstream_header_time $target_state'
  assert.equal(lineOf(template, none), '"-" - - - - -')
  assert.equal(lineOf('%b', { responseBodyBytes: 0 }), '-')
})

test('a client starts no line and ends no field', () => {
  const hostile = { userAgent: 'a"\n\\b\x1b[0mü', captured: ['x-forwarded-for', 'x" evil="1'] }
  assert.equal(lineOf('"$http_user_agent"', hostile), '"a\\x22\\x0a\\x5cb\\x1b[0m\\xfc"')
  const json = lineOf('{"agent":"$http_user_agent","for":"$http_x_forwarded_for"}', hostile, 'json')
  assert.deepEqual(JSON.parse(json), { agent: 'a"\n\\b\x1b[0mü', for: 'x" evil="1' })
})

test('a line has a greatest length', () => {
  const line = lineOf('$http_user_agent'.repeat(60), { userAgent: '\u00fc'.repeat(1024) })
  assert.equal(line.length, LINE_BYTES_MAX - 1)
})

test('a template names the fields that it reads, but for secrets and those that every log has', () => {
  const parts = readLogTemplate('$http_x_a $http_user_agent $http_authorization $status')!
  assert.deepEqual(templateFields(parts), ['x-a'])
})

test('the share of a status wins over that of its class', () => {
  const shares = ['2xx=0.25', '204=0', '404=1.0', '4xx=0'].map(text => readStatusShare(text)!)
  let calls = 0
  const sampling = new AccessSampling(shares, 0, () => (calls++ % 100) / 100)
  const taken = (status: number): number =>
    Array.from({ length: 100 }, () => sampling.takes(status, 0)).filter(isTaken => isTaken).length
  assert.deepEqual([200, 204, 304, 404, 405, 500].map(taken), [25, 0, 100, 100, 0, 100])
})

test('a malformed share is refused', () => {
  for (const text of ['2xx', '2xx=2', '2xx=-1', '6xx=0', '2x=0.5', '200=.5', '200=1.5']) {
    assert.equal(readStatusShare(text), undefined, text)
  }
})

test('a second has at most so many lines', () => {
  const sampling = new AccessSampling([], 3)
  const times = [0, 1, 2, 3, 999, 1000, 1001]
  assert.deepEqual(
    times.map(ms => sampling.takes(200, ms)),
    [true, true, true, false, false, true, true],
  )
})
