import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { failOverSample } from '../../bench/fail-over.ts'
import type { SteadyOutcome, SteadyPlan, SteadyRecord } from '../../bench/load/load-plan.ts'
import type { Sample } from '../../bench/metric.ts'

const GENERATOR = fileURLToPath(new URL('../../bench/load/steady-generator.ts', import.meta.url))

const ILL_MS = 1000
const WELL_MS = 3000
const LAST_MS = 4000

/** A request every 10 ms, answered well by the second backend within 5 ms but for what is changed. */
function sampleOf(change: (askedMs: number) => Partial<SteadyRecord>): Sample {
  const records = Array.from({ length: LAST_MS / 10 }, (_, index): SteadyRecord => {
    const askedMs = index * 10
    return { askedMs, answeredMs: askedMs + 5, status: 200, server: 'second', ...change(askedMs) }
  })
  return failOverSample({ asked: records.length, records }, { illMs: ILL_MS, wellMs: WELL_MS })
}

const during = (from: number, to: number, change: Partial<SteadyRecord>) => (askedMs: number) =>
  askedMs >= from && askedMs < to ? change : {}

const TAKEN_OVER: readonly (readonly [string, (askedMs: number) => Partial<SteadyRecord>, number | undefined])[] = [
  ['nothing disturbed', () => ({}), 0],
  ['errors for 300 ms', during(1000, 1300, { status: 502 }), 290],
  ['answers of the sick one for 200 ms', during(1000, 1200, { server: 'first' }), 190],
  ['a slow answer a second later does not count against it', during(2000, 2010, { answeredMs: 3100 }), 0],
  ['never quiet for long enough', askedMs => (askedMs % 400 === 0 ? { status: 0 } : {}), undefined],
  ['errors to the end of the illness', during(1000, 3000, { status: 504 }), undefined],
]

for (const [name, change, expected] of TAKEN_OVER) {
  test(`taken over: ${name}`, () => assert.equal(sampleOf(change).takenOverMs, expected))
}

test('used again: the first answer of the sick one that was asked for after it was well', () => {
  const early = during(2990, 3000, { server: 'first', answeredMs: 3020 })
  assert.equal(sampleOf(early).usedAgainMs, undefined)
  assert.equal(sampleOf(during(3200, 3300, { server: 'first' })).usedAgainMs, 205)
})

test('every request is counted once: answered, answered with an error, or unanswered', () => {
  const sample = sampleOf(askedMs =>
    askedMs === 0 ? { status: 503, answeredMs: 700 } : askedMs === 10 ? { status: 0 } : {},
  )
  assert.deepEqual(
    [sample.askedCount, sample.answeredCount, sample.refusedCount, sample.unansweredCount, sample.slowestMs],
    [400, 398, 1, 1, 700],
  )
})

test('the steady generator records who answered, and connections that end without an answer', async () => {
  let asked = 0
  const server = createServer((request, response) => {
    if (++asked % 5 === 0) request.socket.destroy()
    else response.writeHead(200, { 'Content-Length': 2, 'X-Served-By': 'me' }).end('ok')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const plan: SteadyPlan = { port, path: '/', connections: 4, ratePerSecond: 100, seconds: 0.5 }
  const { stdout } = await promisify(execFile)(process.execPath, [GENERATOR, JSON.stringify(plan)])
  server.close()
  const outcome = JSON.parse(stdout.slice('started\n'.length)) as SteadyOutcome
  const count = (status: number, by: string): number =>
    outcome.records.filter(record => record.status === status && record.server === by).length
  assert.deepEqual([outcome.asked, count(200, 'me'), count(0, '')], [50, 40, 10])
})
