/** Spans as JSON of Zipkin, version 2, for `/api/v2/spans`. */
import type { Span } from './spans.ts'

const IPV4 = /^\d+(?:\.\d+){3}$/
const KINDS = { internal: undefined, server: 'SERVER', client: 'CLIENT' } as const

export function zipkinJson(spans: readonly Span[], serviceName: string): string {
  return JSON.stringify(spans.map(span => zipkinSpan(span, serviceName)))
}

/** Times are microseconds, and no span is shorter than one. */
function zipkinSpan(span: Span, serviceName: string): object {
  const { attributes, isError } = span
  const error = isError ? { error: String(attributes['error.type'] ?? 'true') } : {}
  return {
    traceId: span.traceId,
    id: span.id,
    ...(span.parentId === '' ? {} : { parentId: span.parentId }),
    name: span.name.toLowerCase(),
    ...(span.kind === 'internal' ? {} : { kind: KINDS[span.kind] }),
    timestamp: microseconds(span.startMs),
    duration: Math.max(1, microseconds(span.endMs) - microseconds(span.startMs)),
    localEndpoint: { serviceName: serviceName.toLowerCase() },
    ...remoteOf(span),
    annotations: span.events.map(({ name, ms }) => ({ timestamp: microseconds(ms), value: name })),
    tags: { ...Object.fromEntries(Object.entries(attributes).map(([key, value]) => [key, String(value)])), ...error },
  }
}

/** Only addresses: the name of a service at the other side is not known. */
function remoteOf({ kind, attributes }: Span): object {
  const address = String(attributes[kind === 'server' ? 'client.address' : 'server.address'] ?? '')
  const family = IPV4.test(address) ? 'ipv4' : address.includes(':') ? 'ipv6' : ''
  const port = kind === 'client' ? { port: attributes['server.port'] } : {}
  if (kind === 'internal' || family === '') return {}
  return { remoteEndpoint: { [family]: address, ...port } }
}

function microseconds(ms: number): number {
  return Math.round(ms * 1000)
}
