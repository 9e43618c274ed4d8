/**
 * Exports the traces of reactors: makes spans of their records, and hands them to every configured receiver. OTLP over
 * HTTP, Zipkin, and the event log.
 */
import type { Configuration } from '../config/catalogue.ts'
import { otlpHeaders } from '../config/otlp-headers.ts'
import { ControlCallFailed } from '../auth/control-protocol.ts'
import type { EventLog } from '../observe/events.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import { otlpJson, otlpProtobuf, partialSuccess } from '../observe/otlp.ts'
import { type Span, spansOf } from '../observe/spans.ts'
import type { ExchangeRecord } from '../observe/trace-records.ts'
import { zipkinJson } from '../observe/zipkin.ts'
import type { RemoteResponse } from './remote/http-client.ts'
import type { RemoteServices } from './remote-services.ts'
import { type SpanCounts, type SpanReceiver, type SpanResult, TraceExporter } from './trace-exporter.ts'

interface TracesContext {
  readonly configuration: Pick<Configuration, 'tracing' | 'apim.open_tracer'>
  readonly send: RemoteServices['send']
  readonly report: EventLog['report']
  readonly metrics: MetricsColumn
}

/** The status says whether spans were accepted; a longer body is not needed. */
const LIMITS = { bytesMax: 65_536, cutsBody: true, allowsPlain: true } as const
const RETRYABLE = [408, 429, 502, 503, 504]
/** Spans of the log in one second: other events of the thread have room beside them. */
const LOGGED_PER_SECOND = 100

export class Traces {
  readonly #exporters: readonly TraceExporter[]
  readonly #log: SpanLog | null

  constructor({ configuration, send, report, metrics }: TracesContext) {
    const { tracing, 'apim.open_tracer': openTracer } = configuration
    const counts: SpanCounts = {
      exported: spans => metrics.add(METRIC.traceSpansExported, spans),
      failed: spans => metrics.add(METRIC.traceSpansFailed, spans),
      dropped: spans => metrics.add(METRIC.traceSpansDropped, spans),
      waiting: by => metrics.add(METRIC.traceSpansWaiting, by),
    }
    const receivers: SpanReceiver[] = []
    if (tracing['otlp.endpoint'] !== '') receivers.push(otlpReceiver(tracing, send))
    if (openTracer['remote_tracer.enable']) receivers.push(remoteTracer(configuration, send))
    const limits = {
      queueMax: tracing.queue_max_spans,
      batchMax: tracing.batch_max_spans,
      intervalMs: tracing.batch_interval,
    }
    this.#exporters = receivers.map(receiver => new TraceExporter({ receiver, ...limits, counts, report }))
    this.#log = openTracer['log_tracer.enable'] ? new SpanLog(report, counts) : null
  }

  /** Takes a list of records in JSON. */
  add(records: string): void {
    const traced = (JSON.parse(records) as readonly ExchangeRecord[]).map(spansOf)
    // All at once: a full queue is copied to make room.
    const spans = traced.flat()
    for (const exporter of this.#exporters) exporter.add(spans)
    for (const ofOne of traced) this.#log?.add(ofOne)
  }

  /** Sends what waits, for a bounded time. */
  async close(): Promise<void> {
    await Promise.all(this.#exporters.map(exporter => exporter.close()))
  }
}

function otlpReceiver(tracing: Configuration['tracing'], send: RemoteServices['send']): SpanReceiver {
  const url = tracing['otlp.endpoint']
  const headers = otlpHeaders(tracing['otlp.headers'])!
  const resource = { 'service.name': tracing.service_name }
  const isJson = tracing['otlp.protocol'] === 'http/json'
  const contentOf = (spans: readonly Span[]) =>
    isJson
      ? { type: 'application/json', body: otlpJson(spans, resource) }
      : { type: 'application/x-protobuf', body: otlpProtobuf(spans, resource) }
  return {
    name: url,
    send: async spans => {
      const content = contentOf(spans)
      const response = await send({ url, content, headers, accept: content.type, ...LIMITS })
      return response.status === 200 ? acceptedBy(response, spans, url) : resultOf(response, spans, url)
    },
  }
}

/** A rule of the configuration refuses other names. */
function remoteTracer(configuration: TracesContext['configuration'], send: RemoteServices['send']): SpanReceiver {
  const name = configuration['apim.open_tracer']['remote_tracer.name']
  if (name.toLowerCase() !== 'zipkin') throw new Error(`there is no tracer ${name}`)
  return zipkinReceiver(configuration, send)
}

function zipkinReceiver(
  { 'apim.open_tracer': openTracer, tracing }: TracesContext['configuration'],
  send: RemoteServices['send'],
): SpanReceiver {
  const host = openTracer['remote_tracer.properties.hostname']
  const port = openTracer['remote_tracer.properties.port']
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/api/v2/spans`
  return {
    name: url,
    send: async spans => {
      const content = { type: 'application/json', body: zipkinJson(spans, tracing.service_name) }
      return resultOf(await send({ url, content, ...LIMITS }), spans, url)
    },
  }
}

const ACCEPTED: SpanResult = { refused: 0, cause: '' }

/** Throws where a later attempt may succeed. */
function resultOf({ status }: RemoteResponse, spans: readonly Span[], url: string): SpanResult {
  const cause = `${url} responds with status ${status}`
  if (RETRYABLE.includes(status)) throw new ControlCallFailed(cause)
  return status >= 200 && status < 300 ? ACCEPTED : { refused: spans.length, cause }
}

/** The result of a request that an OTLP receiver has accepted, maybe without some of its spans. */
function acceptedBy({ body, mediaType }: RemoteResponse, spans: readonly Span[], url: string): SpanResult {
  // A page for people: the endpoint is no receiver, and every span would be lost in silence.
  if (mediaType === 'text/html') throw new ControlCallFailed(`${url} responds with text/html`)
  const { rejected, message } = partialSuccess(body, mediaType)
  if (rejected === 0) return ACCEPTED
  return { refused: Math.min(rejected, spans.length), cause: `${url} refuses spans: ${message || 'it names no cause'}` }
}

/** The log tracer: each span is an event. */
class SpanLog {
  readonly #report: EventLog['report']
  readonly #counts: SpanCounts
  #windowEndsMs = 0
  #logged = 0

  constructor(report: EventLog['report'], counts: SpanCounts) {
    this.#report = report
    this.#counts = counts
  }

  add(spans: readonly Span[]): void {
    const nowMs = performance.now()
    if (nowMs >= this.#windowEndsMs) {
      this.#windowEndsMs = nowMs + 1000
      this.#logged = 0
    }
    if (this.#logged + spans.length > LOGGED_PER_SECOND) {
      this.#counts.dropped(spans.length)
      return
    }
    this.#logged += spans.length
    for (const span of spans) this.#report('info', 'span', fieldsOf(span))
    this.#counts.exported(spans.length)
  }
}

function fieldsOf(span: Span): Record<string, string | number> {
  return {
    TRACE_ID: span.traceId,
    SPAN_ID: span.id,
    PARENT_SPAN_ID: span.parentId,
    NAME: span.name,
    KIND: span.kind,
    START: new Date(span.startMs).toISOString(),
    DURATION_MS: Math.round((span.endMs - span.startMs) * 1000) / 1000,
    STATUS: span.isError ? 'error' : 'ok',
    ...Object.fromEntries(Object.entries(span.attributes).map(([name, value]) => [logName(name), value])),
  }
}

/** `http.response.status_code` as HTTP_RESPONSE_STATUS_CODE. */
function logName(attribute: string): string {
  return attribute.replaceAll('.', '_').toUpperCase()
}
