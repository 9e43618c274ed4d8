/** Exporters of traces: what receivers get, by the published definitions; receivers that refuse, are slow or down. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { Ajv } from 'ajv'
// The definitions of opentelemetry-proto, as OpenTelemetry for JavaScript generates them.
import definitions from '@opentelemetry/otlp-transformer/build/src/generated/root.js'
import type { Configuration } from '../../src/config/catalogue.ts'
import { HttpClient } from '../../src/control/remote/http-client.ts'
import { Traces } from '../../src/control/traces.ts'
import { allocateMetrics, METRIC, MetricsColumn } from '../../src/observe/metrics.ts'
import type { ExchangeRecord } from '../../src/observe/trace-records.ts'
import { eventually } from '../harness/peers.ts'

interface Message {
  toJSON(): Readonly<Record<string, unknown>>
}
interface MessageType {
  decode(bytes: Uint8Array): Message
  encode(message: object): { finish(): Uint8Array }
  verify(message: object): string | null
  fromObject(message: object): Message
}
const { ExportTraceServiceRequest, ExportTraceServiceResponse } = (
  definitions as unknown as {
    opentelemetry: { proto: { collector: { trace: { v1: Record<string, MessageType> } } } }
  }
).opentelemetry.proto.collector.trace.v1 as Record<
  'ExportTraceServiceRequest' | 'ExportTraceServiceResponse',
  MessageType
>

/** Spans of Zipkin's API, version 2 (zipkin2-api.yaml), and no other members. */
const ENDPOINT = {
  type: 'object',
  additionalProperties: false,
  properties: {
    serviceName: { type: 'string', pattern: '^[^A-Z]*$' },
    ipv4: { type: 'string', pattern: '^\\d+(\\.\\d+){3}$' },
    ipv6: { type: 'string', pattern: ':' },
    port: { type: 'integer', minimum: 1, maximum: 65_535 },
  },
} as const
const ID = { type: 'string', pattern: '^[0-9a-f]{16}$' } as const
const ZIPKIN_SPANS = {
  type: 'array',
  items: {
    type: 'object',
    additionalProperties: false,
    required: ['traceId', 'id'],
    properties: {
      traceId: { type: 'string', pattern: '^[0-9a-f]{16}([0-9a-f]{16})?$' },
      id: ID,
      parentId: ID,
      name: { type: 'string', pattern: '^[^A-Z]*$' },
      kind: { enum: ['CLIENT', 'SERVER', 'PRODUCER', 'CONSUMER'] },
      timestamp: { type: 'integer', minimum: 1 },
      duration: { type: 'integer', minimum: 1 },
      debug: { type: 'boolean' },
      shared: { type: 'boolean' },
      localEndpoint: ENDPOINT,
      remoteEndpoint: ENDPOINT,
      annotations: {
        type: 'array',
        items: {
          type: 'object',
          additionalProperties: false,
          properties: { timestamp: { type: 'integer' }, value: { type: 'string' } },
        },
      },
      tags: { type: 'object', additionalProperties: { type: 'string' } },
    },
  },
} as const
const isZipkin = new Ajv().compile(ZIPKIN_SPANS)

const NOW_MS = 1_795_000_000_123.456
const RECORD: ExchangeRecord = {
  isCall: false,
  ...{ traceId: '0af7651916cd43dd8448eb211c80319c', parentId: 'b7ad6b7169203331', spanId: '00f067aa0ba902b7' },
  ...{ backendId: '1112131415161718', flags: 3, state: 'a=1,b=2' },
  ...{ startedMs: NOW_MS, doneMs: NOW_MS + 20.5 },
  phases: [NOW_MS + 1, NOW_MS + 2, NOW_MS + 2, NOW_MS + 3, 0, 0, NOW_MS + 3, NOW_MS + 4],
  ...{ connectedFromMs: NOW_MS + 4, sentMs: NOW_MS + 5, firstByteMs: NOW_MS + 19 },
  ...{ method: 'GET', isSecured: true, host: 'api.example:8253', path: '/orders/1.0.0/items/7', query: 'a=b' },
  ...{ minorVersion: 1, route: '/orders/1.0.0/items/{id}', status: 200, errorCode: 0, clientAddress: '192.0.2.7' },
  ...{ userAgent: 'curl/8', api: 'Orders', apiVersion: '1.0.0', application: 'Shöp ☃', keyType: 'PRODUCTION' },
  ...{ correlationId: 'x-1', backend: '10.0.0.7:9000', backendUrl: 'https://10.0.0.7:9000/items/7?a=b' },
  backendMethod: 'GET',
}
const SPANS = 6
const PLAIN: ExchangeRecord = {
  ...RECORD,
  ...{
    parentId: '',
    state: '',
    phases: [],
    connectedFromMs: 0,
    sentMs: 0,
    firstByteMs: 0,
    backend: '',
    backendUrl: '',
  },
}

/** A receiver of traces: a status, or a way to break. */
type Answer = number | 'drops' | 'hangs' | { readonly status: number; readonly type: string; readonly body: Uint8Array }

interface Received {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

class Receiver {
  readonly received: Received[] = []
  /** By request, the last one for all others. */
  answers: Answer[] = [200]
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async listen(t: TestContext): Promise<Receiver> {
    const server = createServer()
    const receiver = new Receiver(server)
    server.on('request', async (request, response) => {
      const pieces: Buffer[] = []
      for await (const piece of request) pieces.push(piece as Buffer)
      receiver.received.push({ url: request.url!, headers: request.headers, body: Buffer.concat(pieces) })
      const answer = receiver.answers.length > 1 ? receiver.answers.shift()! : receiver.answers[0]!
      if (answer === 'drops') request.socket.destroy()
      else if (typeof answer === 'object') {
        response.writeHead(answer.status, { 'Content-Type': answer.type }).end(answer.body)
      } else if (answer !== 'hangs') response.writeHead(answer).end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => receiver.close())
    return receiver
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}

const CONFIGURED = {
  tracing: {
    ...{ 'otlp.endpoint': '', 'otlp.protocol': 'http/protobuf', 'otlp.headers': '', service_name: 'Edge' },
    ...{ sampling_ratio: 1, parent_based: true, faults_per_second: 1 },
    ...{ queue_max_spans: 64, batch_max_spans: 12, batch_interval: 20 },
  },
  'apim.open_tracer': {
    ...{ 'remote_tracer.enable': false, 'remote_tracer.name': 'zipkin', 'log_tracer.enable': false },
    ...{ 'remote_tracer.properties.hostname': 'localhost', 'remote_tracer.properties.port': 9411 },
  },
} as const satisfies Pick<Configuration, 'tracing' | 'apim.open_tracer'>

type Count = 'traceSpansExported' | 'traceSpansFailed' | 'traceSpansDropped' | 'traceSpansWaiting'

interface Opened {
  readonly traces: Traces
  readonly events: (readonly [event: string, fields: Readonly<Record<string, string | number>>])[]
  count(name: Count): number
}

function open(
  t: TestContext,
  tracing: Partial<Configuration['tracing']>,
  openTracer: Partial<Configuration['apim.open_tracer']> = {},
): Opened {
  const events: Opened['events'] = []
  const limits = { requestsMax: 10, perHostMax: 10, idleMax: 10, waitingMax: 100, trust: {}, ownCertificates: [] }
  const client = new HttpClient(limits, { requestMs: 500 })
  const metrics = new MetricsColumn(allocateMetrics(1), 0)
  const traces = new Traces({
    configuration: {
      tracing: { ...CONFIGURED.tracing, ...tracing },
      'apim.open_tracer': { ...CONFIGURED['apim.open_tracer'], ...openTracer },
    },
    send: request => client.send(request),
    report: (_level, event, fields) => void events.push([event, fields]),
    metrics,
  })
  t.after(async () => {
    await traces.close()
    await client.close()
  })
  return { traces, events, count: name => metrics.read(METRIC[name]) }
}

function otlp(port: number, changes: Partial<Configuration['tracing']> = {}): Partial<Configuration['tracing']> {
  return { 'otlp.endpoint': `http://127.0.0.1:${port}/v1/traces`, ...changes }
}

/** The request as JSON with ids in hexadecimal digits, whatever its encoding. */
function decodedRequest({ headers, body }: Received): unknown {
  if (headers['content-type'] === 'application/json') return JSON.parse(body.toString())
  const message = ExportTraceServiceRequest.decode(body).toJSON()
  const hex = (_key: string, value: unknown) =>
    ['traceId', 'spanId', 'parentSpanId'].includes(_key) ? Buffer.from(String(value), 'base64').toString('hex') : value
  const enums: Readonly<Record<string, number>> = {
    ...{ SPAN_KIND_INTERNAL: 1, SPAN_KIND_SERVER: 2, SPAN_KIND_CLIENT: 3, STATUS_CODE_ERROR: 2 },
  }
  const numbers = (_key: string, value: unknown) => (typeof value === 'string' ? (enums[value] ?? value) : value)
  return JSON.parse(JSON.stringify(JSON.parse(JSON.stringify(message), numbers), hex))
}

test('both encodings of OTLP decode with the published definitions, to the same message', async t => {
  const receiver = await Receiver.listen(t)
  for (const protocol of ['http/protobuf', 'http/json'] as const) {
    const headers = { 'otlp.headers': 'Api-Key=s3%20cret,X-Tenant=one' }
    const { traces, count } = open(t, otlp(receiver.port, { 'otlp.protocol': protocol, ...headers }))
    traces.add(JSON.stringify([RECORD, PLAIN]))
    await eventually('the export', () => count('traceSpansExported') === SPANS + 1)
    assert.equal(count('traceSpansWaiting'), 0)
  }
  const [binary, json] = receiver.received
  assert.deepEqual(
    [binary!.url, binary!.headers['content-type'], json!.headers['content-type']],
    ['/v1/traces', 'application/x-protobuf', 'application/json'],
  )
  assert.deepEqual([json!.headers['api-key'], json!.headers['x-tenant']], ['s3 cret', 'one'])
  const [one, two] = [decodedRequest(binary!), decodedRequest(json!)] as [Request, Request]
  for (const { resourceSpans } of [one, two]) {
    const [{ resource, scopeSpans }] = resourceSpans
    assert.deepEqual(resource, { attributes: [{ key: 'service.name', value: { stringValue: 'Edge' } }] })
    assert.equal(scopeSpans[0].spans.length, SPANS + 1)
  }
  // Ids of children are random.
  const plain = (request: Request) => request.resourceSpans[0].scopeSpans[0].spans.map(withoutOwnIds)
  assert.deepEqual(plain(one), plain(two))
  // The JSON is one of the published message: every name is known, and no value has another type.
  const known = { ...two, resourceSpans: JSON.parse(JSON.stringify(two.resourceSpans), base64Ids) as unknown }
  const message = ExportTraceServiceRequest.fromObject(known)
  assert.equal(JSON.stringify(message.toJSON()).length > 0, true)
  const [server] = two.resourceSpans[0].scopeSpans[0].spans
  assert.deepEqual(
    [server!.traceId, server!.spanId, server!.parentSpanId, server!.traceState, server!.flags, server!.kind],
    [RECORD.traceId, RECORD.spanId, RECORD.parentId, 'a=1,b=2', 0x303, 2],
  )
  assert.deepEqual([server!.startTimeUnixNano, server!.endTimeUnixNano], ['1795000000123456000', '1795000000143956000'])
  assert.ok(
    JSON.stringify(server!.attributes).includes('{"key":"sluice.application.name","value":{"stringValue":"Shöp ☃"'),
  )
})

interface Request {
  readonly resourceSpans: readonly [
    { readonly resource: object; readonly scopeSpans: readonly [{ readonly spans: Record<string, unknown>[] }] },
  ]
}

function withoutOwnIds({ spanId, kind, events, attributes, status, ...rest }: Record<string, unknown>): object {
  const lists = { events: events ?? [], attributes: attributes ?? [] }
  return { ...rest, kind, ...lists, spanId: kind === 1 ? '' : spanId, status: status ?? {} }
}

function base64Ids(key: string, value: unknown): unknown {
  const isId = ['traceId', 'spanId', 'parentSpanId'].includes(key)
  return isId ? Buffer.from(String(value), 'hex').toString('base64') : value
}

test('what Zipkin gets is valid by its API, version 2', async t => {
  const receiver = await Receiver.listen(t)
  receiver.answers = [202]
  const remote = { 'remote_tracer.enable': true, 'remote_tracer.properties.port': receiver.port }
  const { traces, count } = open(t, {}, { ...remote, 'remote_tracer.properties.hostname': '127.0.0.1' })
  const failed = { ...RECORD, status: 502, errorCode: 101503, firstByteMs: 0, sentMs: 0, method: 'PROPFIND' }
  const six = { ...RECORD, clientAddress: '2001:db8::7', backend: '[::1]:9000', doneMs: NOW_MS }
  traces.add(JSON.stringify([RECORD, PLAIN, failed, six]))
  await eventually('the export', () => count('traceSpansExported') === 3 * SPANS + 1)
  const [{ url, headers }] = receiver.received as [Received]
  assert.deepEqual([url, headers['content-type']], ['/api/v2/spans', 'application/json'])
  const spans = receiver.received.flatMap(({ body }) => JSON.parse(body.toString()) as Record<string, unknown>[])
  assert.ok(isZipkin(spans), JSON.stringify(isZipkin.errors))
  const [server, , , , client] = spans
  assert.deepEqual(
    [server!.kind, server!.name, server!.timestamp, server!.duration, server!.remoteEndpoint],
    ['SERVER', 'get /orders/1.0.0/items/{id}', 1_795_000_000_123_456, 20_500, { ipv4: '192.0.2.7' }],
  )
  assert.deepEqual([client!.kind, client!.remoteEndpoint], ['CLIENT', { ipv4: '10.0.0.7', port: 9000 }])
  assert.ok(spans.some(({ remoteEndpoint }) => JSON.stringify(remoteEndpoint) === '{"ipv6":"::1","port":9000}'))
  assert.ok(spans.some(({ tags }) => (tags as Record<string, string>).error === '101503'))
})

test('the log tracer writes each span as an event, at most 100 a second', async t => {
  const { traces, events, count } = open(t, {}, { 'log_tracer.enable': true })
  traces.add(JSON.stringify(new Array(40).fill(RECORD)))
  assert.equal(events.length, Math.floor(100 / SPANS) * SPANS)
  assert.equal(count('traceSpansDropped'), 40 * SPANS - events.length)
  const [[event, fields]] = events as [Opened['events'][number]]
  assert.equal(event, 'span')
  const { TRACE_ID, PARENT_SPAN_ID, NAME, DURATION_MS, STATUS, HTTP_RESPONSE_STATUS_CODE } = fields
  assert.deepEqual(
    [TRACE_ID, PARENT_SPAN_ID, NAME, DURATION_MS, STATUS, HTTP_RESPONSE_STATUS_CODE],
    [RECORD.traceId, RECORD.parentId, 'GET /orders/1.0.0/items/{id}', 20.5, 'ok', 200],
  )
})

test('what a receiver refuses for good is counted as failed; the rest of a partial success is exported', async t => {
  const receiver = await Receiver.listen(t)
  const partial = { partialSuccess: { rejectedSpans: 2, errorMessage: 'no room' } }
  const binary = ExportTraceServiceResponse.encode(partial).finish()
  const type = 'application/x-protobuf'
  receiver.answers = [{ status: 200, type, body: binary }, 400, { status: 200, type, body: Buffer.from('ff', 'hex') }]
  const { traces, events, count } = open(t, otlp(receiver.port))
  const counts = () => [count('traceSpansExported'), count('traceSpansFailed'), count('traceSpansWaiting')]
  traces.add(JSON.stringify([RECORD]))
  await eventually('the partial success', () => count('traceSpansFailed') === 2)
  assert.deepEqual(counts(), [SPANS - 2, 2, 0])
  traces.add(JSON.stringify([RECORD]))
  await eventually('the refusal', () => count('traceSpansFailed') === 2 + SPANS)
  traces.add(JSON.stringify([RECORD]))
  await eventually('the broken response', () => count('traceSpansExported') === 2 * SPANS - 2)
  assert.deepEqual(
    events.map(([event]) => event),
    ['traces refused by their receiver'],
    'once a minute',
  )
  assert.match(String(events[0]![1].CAUSE_OF_ERROR), /refuses spans: no room$/)
  const json = { ...partial, partialSuccess: { rejectedSpans: '3' } }
  receiver.answers = [{ status: 200, type: 'application/json', body: Buffer.from(JSON.stringify(json)) }]
  const other = open(t, otlp(receiver.port, { 'otlp.protocol': 'http/json' }))
  other.traces.add(JSON.stringify([RECORD]))
  await eventually('the partial success in JSON', () => other.count('traceSpansFailed') === 3)
})

test('the end sends what waits to a receiver that works', async t => {
  const receiver = await Receiver.listen(t)
  const { traces, count } = open(t, otlp(receiver.port, { batch_interval: 60_000, batch_max_spans: 4 }))
  traces.add(JSON.stringify([PLAIN, PLAIN, PLAIN]))
  await traces.close()
  assert.deepEqual([receiver.received.length, count('traceSpansExported'), count('traceSpansWaiting')], [1, 3, 0])
})

test('receivers that drop, hang or are overloaded cost the bound of their queue, and work again later', async t => {
  for (const broken of ['drops', 'hangs', 503, 429] as const) {
    const receiver = await Receiver.listen(t)
    receiver.answers = [broken]
    const { traces, count, events } = open(t, otlp(receiver.port))
    for (let i = 0; i < 50; i++) traces.add(JSON.stringify([RECORD]))
    await eventually('the failure', () => events.length > 0)
    assert.ok(count('traceSpansWaiting') <= 64 + 12, `${broken}: ${count('traceSpansWaiting')}`)
    assert.equal(count('traceSpansDropped') + count('traceSpansWaiting'), 50 * SPANS)
    assert.match(String(events[0]![1].CAUSE_OF_ERROR), /127\.0\.0\.1/)
    receiver.answers = [200]
    await eventually('the exports', () => count('traceSpansWaiting') === 0)
    assert.equal(count('traceSpansExported') + count('traceSpansDropped'), 50 * SPANS)
  }
})
