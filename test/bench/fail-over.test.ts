import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { failOverSample } from '../../bench/fail-over.ts'
import type { RecordingOutcome, RecordingPlan, RequestRecord } from '../../bench/load/load-plan.ts'
import type { Sample } from '../../bench/metric.ts'

const GENERATOR = fileURLToPath(new URL('../../bench/load/recording-generator.ts', import.meta.url))

const FAILED_MS = 1000
const RECOVERED_MS = 3000
const LAST_MS = 4000

/** A request every 10 ms with a successful response of the second backend after 5 ms, except for the changes. */
function sampleOf(change: (intendedMs: number) => Partial<RequestRecord>): Sample {
  const records = Array.from({ length: LAST_MS / 10 }, (_, index): RequestRecord => {
    const intendedMs = index * 10
    return { intendedMs, answeredMs: intendedMs + 5, status: 200, server: 'second', ...change(intendedMs) }
  })
  return failOverSample({ due: records.length, records }, { failedMs: FAILED_MS, recoveredMs: RECOVERED_MS })
}

const during = (from: number, to: number, change: Partial<RequestRecord>) => (intendedMs: number) =>
  intendedMs >= from && intendedMs < to ? change : {}

const FAIL_OVERS: readonly (readonly [string, (intendedMs: number) => Partial<RequestRecord>, number | undefined])[] = [
  ['at once without errors', () => ({}), 0],
  ['after the last of errors for 300 ms', during(1000, 1300, { status: 502 }), 290],
  ['after the last response of the failing backend', during(1000, 1200, { server: 'first' }), 190],
  ['at once despite a slow response a second later', during(2000, 2010, { answeredMs: 3100 }), 0],
  ['never without a stable period', intendedMs => (intendedMs % 400 === 0 ? { status: 0 } : {}), undefined],
  ['never with errors until the recovery', during(1000, 3000, { status: 504 }), undefined],
]

for (const [name, change, expected] of FAIL_OVERS) {
  test(`failed over: ${name}`, () => assert.equal(sampleOf(change).takenOverMs, expected))
}

test('used again: at the first response of the failing backend to a request after its recovery', () => {
  const early = during(2990, 3000, { server: 'first', answeredMs: 3020 })
  assert.equal(sampleOf(early).usedAgainMs, undefined)
  assert.equal(sampleOf(during(3200, 3300, { server: 'first' })).usedAgainMs, 205)
})

test('every request counts once: as success, error response or no response', () => {
  const sample = sampleOf(intendedMs =>
    intendedMs === 0 ? { status: 503, answeredMs: 700 } : intendedMs === 10 ? { status: 0 } : {},
  )
  assert.deepEqual(
    [sample.askedCount, sample.answeredCount, sample.refusedCount, sample.unansweredCount, sample.slowestMs],
    [400, 398, 1, 1, 700],
  )
})

test('the recording generator records responding backends, and connections that end without a response', async () => {
  let requests = 0
  const server = createServer((request, response) => {
    if (++requests % 5 === 0) request.socket.destroy()
    else response.writeHead(200, { 'Content-Length': 2, 'X-Served-By': 'me' }).end('ok')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const plan: RecordingPlan = { port, path: '/', connections: 4, ratePerSecond: 100, seconds: 0.5 }
  const { stdout } = await promisify(execFile)(process.execPath, [GENERATOR, JSON.stringify(plan)])
  server.close()
  const outcome = JSON.parse(stdout.slice('started\n'.length)) as RecordingOutcome
  const count = (status: number, server: string): number =>
    outcome.records.filter(record => record.status === status && record.server === server).length
  assert.deepEqual([outcome.due, count(200, 'me'), count(0, '')], [50, 40, 10])
})
