/**
 * Spans of a traced exchange: one of the request, and children for the phases whose times it has. Attributes have the
 * names of OpenTelemetry's stable semantic conventions for HTTP; those that begin with `sluice.` are of the gateway.
 */
import { randomSpanId } from '../http1/trace-parent.ts'
import { TRACE_PHASES } from '../proxy/exchange/trace-context.ts'
import type { ExchangeRecord } from './trace-records.ts'

export type SpanAttributes = Readonly<Record<string, string | number>>

export interface Span {
  readonly traceId: string
  readonly id: string
  /** '' without a parent. */
  readonly parentId: string
  /** The parent is a span of the client. */
  readonly hasRemoteParent: boolean
  /** W3C flags. */
  readonly flags: number
  /** `tracestate`. */
  readonly state: string
  readonly name: string
  readonly kind: 'internal' | 'server' | 'client'
  /** Milliseconds since 1970. */
  readonly startMs: number
  readonly endMs: number
  readonly attributes: SpanAttributes
  readonly events: readonly { readonly name: string; readonly ms: number }[]
  /** The work of the span failed. */
  readonly isError: boolean
}

/** Methods that the semantic conventions name; the value for all others is `_OTHER`. */
const METHODS = ['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'TRACE']
const SWITCHED = 101
/** Lowest status that clients take for a failure of a backend. */
const CLIENT_ERROR = 400
const SERVER_ERROR = 500

/** The spans of an exchange, that of the request first; of a request of a sequence those of its backend. */
export function spansOf(record: ExchangeRecord): readonly Span[] {
  if (record.isCall) return backendSpans(record)
  return [serverSpan(record), ...phaseSpans(record), ...backendSpans(record)]
}

function serverSpan(record: ExchangeRecord): Span {
  const { status, errorCode, route, method } = record
  const [address, port] = hostAndPort(record.host, record.isSecured ? 443 : 80)
  const name = METHODS.includes(method) ? method : 'HTTP'
  return {
    ...commonOf(record),
    id: record.spanId,
    parentId: record.parentId,
    hasRemoteParent: record.parentId !== '',
    name: route === '' ? name : `${name} ${route}`,
    kind: 'server',
    startMs: record.startedMs,
    endMs: Math.max(record.doneMs, record.startedMs),
    attributes: known({
      ...methodOf(method),
      'url.scheme': record.isSecured ? 'https' : 'http',
      'url.path': record.path,
      'url.query': record.query,
      'http.route': route,
      'http.response.status_code': status,
      'error.type': errorTypeOf(record, SERVER_ERROR),
      'client.address': record.clientAddress,
      'server.address': address,
      'server.port': address === '' ? 0 : port,
      'network.protocol.version': `1.${record.minorVersion}`,
      'user_agent.original': record.userAgent,
      'sluice.api.name': record.api,
      'sluice.api.version': record.apiVersion,
      'sluice.application.name': record.application,
      'sluice.key_type': record.api === '' ? '' : record.keyType,
      'sluice.error.code': errorCode,
      'sluice.correlation_id': record.correlationId,
    }),
    // A refusal with 4xx is no error of the gateway (semantic conventions for HTTP servers).
    isError: status === 0 || status >= SERVER_ERROR,
  }
}

/** Phases that a sampled request has gone through; one that never ended has ended with the exchange. */
function phaseSpans(record: ExchangeRecord): readonly Span[] {
  return TRACE_PHASES.flatMap((name, index) => {
    const startMs = record.phases[index * 2] ?? 0
    if (startMs === 0) return []
    // The clock of the exchange stands still during an event, that of the phases does not.
    const endMs = Math.min(record.phases[index * 2 + 1]! || record.doneMs, record.doneMs)
    return [{ ...childOf(record, record.spanId), name, startMs: Math.min(startMs, endMs), endMs }]
  })
}

/** The request to the backend, and the opening of its connection; of an API that runs in the gateway its work. */
function backendSpans(record: ExchangeRecord): readonly Span[] {
  const { connectedFromMs, sentMs, firstByteMs, doneMs, backendUrl, status, errorCode, backend } = record
  if (connectedFromMs === 0 && sentMs === 0) return []
  const startMs = Math.min(...[connectedFromMs, sentMs].filter(ms => ms > 0))
  const common = { ...childOf(record, record.spanId), startMs, endMs: Math.max(startMs, doneMs) }
  if (backend === '') return [{ ...common, name: 'mounted API' }]
  const [address, port] = hostAndPort(backend, backendUrl.startsWith('https:') ? 443 : 80)
  const hasResponse = firstByteMs > 0 && errorCode === 0
  const attributes = known({
    ...methodOf(record.backendMethod),
    'url.full': backendUrl,
    'server.address': address,
    'server.port': port,
    'network.protocol.version': '1.1',
    'http.response.status_code': hasResponse ? status : 0,
    'error.type': errorTypeOf(record, CLIENT_ERROR),
  })
  const span: Span = {
    ...common,
    id: record.backendId,
    name: METHODS.includes(record.backendMethod) ? record.backendMethod : 'HTTP',
    kind: 'client',
    attributes,
    events: firstByteMs > 0 ? [{ name: 'first byte of the response', ms: Math.max(startMs, firstByteMs) }] : [],
    isError: !hasResponse || (status >= CLIENT_ERROR && status !== SWITCHED),
  }
  if (connectedFromMs === 0) return [span]
  const connected = Math.max(startMs, sentMs || doneMs)
  return [span, { ...childOf(record, span.id), name: 'connect', startMs, endMs: connected, isError: sentMs === 0 }]
}

function commonOf({ traceId, flags, state }: ExchangeRecord) {
  return { traceId, flags, state, hasRemoteParent: false, events: [], attributes: {}, isError: false } as const
}

function childOf(record: ExchangeRecord, parentId: string): Omit<Span, 'name' | 'startMs' | 'endMs'> {
  return { ...commonOf(record), id: randomSpanId(), parentId, kind: 'internal' }
}

function methodOf(method: string): SpanAttributes {
  if (method === '' || METHODS.includes(method)) return { 'http.request.method': method }
  return { 'http.request.method': '_OTHER', 'http.request.method_original': method }
}

/** Code of the gateway's own fault, or the status from `from` on; '' for none. */
function errorTypeOf({ errorCode, status }: ExchangeRecord, from: number): string {
  if (errorCode !== 0) return String(errorCode)
  if (status === 0) return 'aborted'
  return status >= from ? String(status) : ''
}

/** Without what the exchange does not have. */
function known(attributes: SpanAttributes): SpanAttributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== '' && value !== 0))
}

function hostAndPort(authority: string, standardPort: number): readonly [host: string, port: number] {
  const [, host = authority, port] = /^(.*?)(?::(\d{1,5}))?$/.exec(authority) ?? []
  const isAddress = host.startsWith('[') && host.endsWith(']')
  return [isAddress ? host.slice(1, -1) : host, port === undefined ? standardPort : Number(port)]
}
