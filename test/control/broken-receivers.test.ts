/**
 * Receivers of traces that break in every way a server can: one line of the log names the cause, spans beyond the queue
 * are dropped and counted, and the same receiver works again later.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { suite, test, type TestContext } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import type { Configuration } from '../../src/config/catalogue.ts'
import { HttpClient } from '../../src/control/remote/http-client.ts'
import { Traces } from '../../src/control/traces.ts'
import { allocateMetrics, METRIC, MetricsColumn } from '../../src/observe/metrics.ts'
import type { ExchangeRecord } from '../../src/observe/trace-records.ts'
import { SERVER } from '../harness/certificates.ts'
import { eventually, GUARD_MS } from '../harness/peers.ts'

/** A record of a single span. */
const RECORD = {
  ...{ isCall: false, traceId: '0af7651916cd43dd8448eb211c80319c', parentId: '', spanId: '00f067aa0ba902b7' },
  ...{ backendId: '', flags: 1, state: '', startedMs: 1e12, doneMs: 1e12 + 5, phases: [], connectedFromMs: 0 },
  ...{ sentMs: 0, firstByteMs: 0, method: 'GET', isSecured: false, host: 'a', path: '/', query: '', minorVersion: 1 },
  ...{ route: '', status: 200, errorCode: 0, clientAddress: '', userAgent: '', api: '', apiVersion: '' },
  ...{ application: '', keyType: 'PRODUCTION', correlationId: '', backend: '', backendUrl: '', backendMethod: '' },
} as const satisfies ExchangeRecord
const REQUEST_MS = 2000
const QUEUE = 8
const BATCH = 4

type Reaction = (socket: Socket) => void

const OK: Reaction = socket => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
const says = (status: string, fields = '', body = '') =>
  `HTTP/1.1 ${status}\r\n${fields}Content-Length: ${body.length}\r\n\r\n${body}`

/** A server of bytes: reacts once for each request. */
class Collector {
  react: Reaction = OK
  requests = 0
  readonly #sockets = new Set<Socket>()
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async listen(t: TestContext): Promise<Collector> {
    const server = createServer()
    const collector = new Collector(server)
    server.on('connection', socket => collector.#serve(socket))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => collector.close())
    return collector
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    let text = ''
    socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket))
    socket.setEncoding('latin1').on('data', (piece: string) => {
      text += piece
      for (;;) {
        const end = text.indexOf('\r\n\r\n')
        const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)
        if (end < 0 || text.length < end + 4 + length) return
        text = text.slice(end + 4 + length)
        this.requests++
        this.react(socket)
      }
    })
  }
}

type Count = 'traceSpansExported' | 'traceSpansFailed' | 'traceSpansDropped' | 'traceSpansWaiting'

function open(t: TestContext, kind: 'protobuf' | 'json' | 'zipkin', url: URL, requestMs = REQUEST_MS) {
  const lines: string[] = []
  const limits = { requestsMax: 10, perHostMax: 10, idleMax: 10, waitingMax: 100, trust: {}, ownCertificates: [] }
  const client = new HttpClient(limits, { requestMs, connectMs: requestMs })
  const metrics = new MetricsColumn(allocateMetrics(1), 0)
  const configuration = {
    tracing: {
      ...{ 'otlp.endpoint': kind === 'zipkin' ? '' : url.href, 'otlp.protocol': `http/${kind}`, 'otlp.headers': '' },
      ...{ service_name: 'edge', queue_max_spans: QUEUE, batch_max_spans: BATCH, batch_interval: 10 },
    },
    'apim.open_tracer': {
      ...{ 'remote_tracer.enable': kind === 'zipkin', 'remote_tracer.name': 'zipkin', 'log_tracer.enable': false },
      'remote_tracer.properties.hostname': url.hostname,
      'remote_tracer.properties.port': Number(url.port),
    },
  } as unknown as Pick<Configuration, 'tracing' | 'apim.open_tracer'>
  const traces = new Traces({
    ...{ configuration, metrics, send: request => client.send(request) },
    report: (_level, event, fields) => void lines.push(`${event} ${JSON.stringify(fields)}`),
  })
  t.after(async () => {
    await traces.close()
    await client.close()
  })
  const count = (name: Count) => metrics.read(METRIC[name])
  const add = (spans: number) => traces.add(JSON.stringify(new Array(spans).fill(RECORD)))
  return { add, lines, count }
}

/** [what, reaction, cause in the log, spans: kept until it works, or refused for good]. */
const BREAKS: readonly (readonly [string, Reaction, RegExp, 'kept' | 'refused'])[] = [
  ['hangs', () => undefined, /no response within \d+ ms/, 'kept'],
  ['closes before its response', socket => socket.destroy(), /closed|ECONNRESET|socket/, 'kept'],
  ['closes within the head', socket => socket.end('HTTP/1.1 200 OK\r\nCont'), /closed|ECONNRESET|socket/, 'kept'],
  ['speaks no HTTP', socket => socket.write('220 ready\r\n\r\n'), /Expected HTTP|Parse|Invalid/i, 'kept'],
  ['redirects', socket => socket.write(says('302 Found', 'Location: /x\r\n')), /redirect \(302\)/, 'kept'],
  ['is overloaded', socket => socket.write(says('503 -')), /status 503/, 'kept'],
  ['fails', socket => socket.write(says('500 -')), /status 500/, 'refused'],
  ['wants credentials', socket => socket.write(says('401 -')), /status 401/, 'refused'],
  ['has heads without an end', socket => socket.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(1e6)}`), /overflow/i, 'kept'],
]

suite('receivers that break, and work again', { concurrency: true }, () => {
  for (const kind of ['protobuf', 'json', 'zipkin'] as const) {
    for (const [what, react, cause, fate] of BREAKS) {
      test(`${kind}: a receiver that ${what}`, async t => {
        const collector = await Collector.listen(t)
        collector.react = react
        // Only one that hangs meets the limit, also on a busy machine.
        const requestMs = what === 'hangs' ? REQUEST_MS : GUARD_MS
        const url = new URL(`http://127.0.0.1:${collector.port}/v1/traces`)
        const { add, lines, count } = open(t, kind, url, requestMs)
        for (let n = 0; n < 50; n++) add(BATCH)
        assert.ok(count('traceSpansWaiting') <= QUEUE + BATCH)
        await eventually('the cause', () => lines.length > 0)
        assert.match(lines[0]!, cause)
        if (fate === 'kept') assert.equal(count('traceSpansFailed'), 0)
        else await eventually('the refusals', () => count('traceSpansWaiting') === 0)
        const { length } = lines
        assert.equal(length, 1, lines.join('\n'))
        collector.react = OK
        add(1)
        await eventually('the recovery', () => count('traceSpansWaiting') === 0)
        const [exported, failed, dropped] = (['Exported', 'Failed', 'Dropped'] as const).map(name =>
          count(`traceSpans${name}`),
        )
        assert.equal(exported! + failed! + dropped!, 50 * BATCH + 1)
        assert.ok(exported! >= 1)
        assert.equal(lines.length, fate === 'kept' ? 2 : 1, lines.join('\n'))
        if (fate === 'kept') assert.match(lines[1]!, /^traces are exported again /)
      })
    }
  }
})

/** Bodies of a status that accepts the spans. */
const ACCEPTING: readonly (readonly [string, Reaction])[] = [
  ['sends 10 MB', socket => socket.write(says('200 OK', '', 'x'.repeat(10_000_000)))],
  ['stops within its body', socket => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{')],
  ['closes within its body', socket => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{')],
  ['compresses', socket => socket.write(says('200 OK', 'Content-Encoding: gzip\r\n', '\x1f\x8b\x08'))],
]

test('a receiver that accepts spans gets them once, whatever its body is', async t => {
  const sent = (['protobuf', 'json', 'zipkin'] as const).flatMap(kind =>
    ACCEPTING.map(async ([what, react]) => {
      const collector = await Collector.listen(t)
      collector.react = react
      const { add, lines, count } = open(t, kind, new URL(`http://127.0.0.1:${collector.port}/v1/traces`))
      add(BATCH)
      await eventually('the export', () => count('traceSpansExported') === BATCH)
      assert.deepEqual([collector.requests, lines], [1, []], `${kind}: ${what}`)
    }),
  )
  await Promise.all(sent)
})

test('an address that is no receiver, has no TLS, no trust or no name is told', async t => {
  const page = await Collector.listen(t)
  page.react = socket => socket.write(says('200 OK', 'Content-Type: text/html\r\n', '<html>'))
  const plain = createServer(socket => socket.on('error', () => undefined).end('HTTP/1.1 400 -\r\n\r\n'))
  const untrusted = createTlsServer({ cert: SERVER.cert, key: SERVER.key }, socket => socket.end())
  const ports = [plain, untrusted].map(async server => {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    return (server.address() as AddressInfo).port
  })
  const [plainPort, untrustedPort] = await Promise.all(ports)
  const rows = [
    [`http://127.0.0.1:${page.port}/`, /responds with text\/html/],
    [`https://127.0.0.1:${plainPort}/`, /SSL|TLS|wrong version|EPROTO|ECONNRESET/i],
    [`https://127.0.0.1:${untrustedPort}/`, /certificate/],
    ['http://no-such-host.invalid:4318/', /ENOTFOUND|EAI_AGAIN|no response|[Tt]imeout/],
    ['http://127.0.0.1:1/', /ECONNREFUSED/],
  ] as const
  const told = rows.map(async ([url, cause]) => {
    const { add, lines, count } = open(t, 'protobuf', new URL(url))
    add(1)
    await eventually(url, () => lines.length > 0)
    assert.match(lines[0]!, cause)
    assert.equal(count('traceSpansWaiting'), 1)
  })
  await Promise.all(told)
})
