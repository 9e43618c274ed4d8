/**
 * Times the formatting of access log lines, in microseconds: `npx node bench/micro/access-log.ts`. Batches are
 * discarded; a reactor has one `write` per 64 KiB. Target: at most 3 µs per line.
 */
import { AccessLog, type AccessLogFormat } from '../../src/observe/access-log.ts'
import type { AccessRecord } from '../../src/observe/access-line.ts'
import { CorrelationId } from '../../src/proxy/exchange/correlation-id.ts'
import { MeasuredTable } from '../measured-table.ts'

const LINES = 200_000
const CORRELATION = new CorrelationId('3k2j5h3k2j5h-')
CORRELATION.generate(123_456)
const ROUNDS = 7

const TARGETS = {
  'no query': '/orders/1.0/customers/4711/items',
  query: '/orders/1.0/customers/4711/items?page=2&size=50&sort=created%20desc',
  'masked query': '/orders/1.0/customers/4711/items?page=2&apikey=0123456789abcdef0123456789abcdef',
} as const

function recordFor(requestTarget: string, i: number): AccessRecord {
  const startedMs = 1000 + i * 0.02
  return {
    method: 'GET',
    requestTarget,
    minorVersion: 1,
    clientAddress: '192.168.17.42',
    sourceId: 1000 + (i & 63),
    targetId: 2000 + (i & 63),
    sourceState: 6,
    targetState: 6,
    status: 200,
    requestBodyBytes: 0,
    responseBodyBytes: 1024,
    startedMs,
    requestDoneMs: startedMs + 0.031,
    sentMs: startedMs + 0.055,
    connectMs: 0,
    firstByteMs: startedMs + 1.234,
    doneMs: startedMs + 1.301,
    correlation: CORRELATION,
    apiName: 'Orders',
    backend: '10.0.0.17:9000',
    errorBase: 0,
    errorState: 0,
    userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    referer: 'https://shop.example.org/orders',
    host: 'gw.example',
    isSecured: true,
    persists: true,
    captured: ['x-forwarded-for', '198.51.100.9'],
    caller: { user: 'ann' },
    trace: null,
  }
}

const table = new MeasuredTable('Formatting of one line', { µs: 2, bytes: 0 })
for (const format of ['json', 'combined'] satisfies AccessLogFormat[]) {
  for (const [title, target] of Object.entries(TARGETS)) {
    let bytes = 0
    const write = (batch: Uint8Array, written: () => void): void => {
      bytes += batch.length
      written()
    }
    const log = new AccessLog(format, write, { wallOffsetMs: () => performance.timeOrigin, lends: true })
    const records = Array.from({ length: 1024 }, (_, i) => recordFor(target, i))
    const micros: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const started = performance.now()
      for (let i = 0; i < LINES; i++) log.append(records[i & 1023]!)
      log.flush()
      micros.push(((performance.now() - started) * 1000) / LINES)
    }
    const median = micros.sort((a, b) => a - b)[ROUNDS >> 1]!
    const line = Math.round(bytes / LINES / ROUNDS)
    table.row(`${format}, ${title}`, median, line)
  }
}
