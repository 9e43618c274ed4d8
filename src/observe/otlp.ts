/**
 * Requests of OTLP over HTTP for `/v1/traces` (opentelemetry-proto 1.x), in its two encodings: Protocol Buffers, and
 * JSON with hexadecimal ids.
 */
import {
  bytesField,
  type EncodedField,
  fixed32Field,
  fixed64Field,
  integerField,
  messageField,
  readBytes,
  readInteger,
  textField,
} from './protobuf.ts'
import type { Span, SpanAttributes } from './spans.ts'

/** SpanKind and StatusCode. */
const KINDS = { internal: 1, server: 2, client: 3 } as const
const ERROR = 2
/** SpanFlags beside those of W3C: it is known whether the parent is remote; it is. */
const KNOWS_REMOTE = 0x100
const IS_REMOTE = 0x200
const SCOPE = 'sluice'

export function otlpJson(spans: readonly Span[], resource: SpanAttributes): string {
  const scopeSpans = [{ scope: { name: SCOPE }, spans: spans.map(jsonSpan) }]
  return JSON.stringify({ resourceSpans: [{ resource: { attributes: jsonAttributes(resource) }, scopeSpans }] })
}

function jsonSpan(span: Span): object {
  return {
    traceId: span.traceId,
    spanId: span.id,
    ...(span.state === '' ? {} : { traceState: span.state }),
    ...(span.parentId === '' ? {} : { parentSpanId: span.parentId }),
    flags: flagsOf(span),
    name: span.name,
    kind: KINDS[span.kind],
    startTimeUnixNano: String(nanoseconds(span.startMs)),
    endTimeUnixNano: String(nanoseconds(span.endMs)),
    attributes: jsonAttributes(span.attributes),
    events: span.events.map(({ name, ms }) => ({ timeUnixNano: String(nanoseconds(ms)), name })),
    status: span.isError ? { code: ERROR } : {},
  }
}

/** 64-bit numbers are texts in the JSON of Protocol Buffers. */
function jsonAttributes(attributes: SpanAttributes): readonly object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }))
}

/** Numbers of fields, by message. */
const REQUEST = { resourceSpans: 1 } as const
const RESOURCE_SPANS = { resource: 1, scopeSpans: 2 } as const
const RESOURCE = { attributes: 1 } as const
const SCOPE_SPANS = { scope: 1, spans: 2 } as const
const INSTRUMENTATION_SCOPE = { name: 1 } as const
const SPAN = {
  ...{ traceId: 1, spanId: 2, traceState: 3, parentSpanId: 4, name: 5, kind: 6, start: 7, end: 8 },
  ...{ attributes: 9, events: 11, status: 15, flags: 16 },
} as const
const EVENT = { time: 1, name: 2 } as const
const STATUS = { code: 3 } as const
const KEY_VALUE = { key: 1, value: 2 } as const
const ANY_VALUE = { text: 1, integer: 3 } as const
const RESPONSE = { partialSuccess: 1, rejectedSpans: 1, errorMessage: 2 } as const

export function otlpProtobuf(spans: readonly Span[], resource: SpanAttributes): Uint8Array {
  const scope = messageField(SCOPE_SPANS.scope, [textField(INSTRUMENTATION_SCOPE.name, SCOPE)])
  return messageField(REQUEST.resourceSpans, [
    messageField(RESOURCE_SPANS.resource, attributeFields(RESOURCE.attributes, resource)),
    messageField(RESOURCE_SPANS.scopeSpans, [
      scope,
      ...spans.map(span => messageField(SCOPE_SPANS.spans, spanFields(span))),
    ]),
  ])
}

function spanFields(span: Span): readonly EncodedField[] {
  return [
    bytesField(SPAN.traceId, Buffer.from(span.traceId, 'hex')),
    bytesField(SPAN.spanId, Buffer.from(span.id, 'hex')),
    ...(span.state === '' ? [] : [textField(SPAN.traceState, span.state)]),
    ...(span.parentId === '' ? [] : [bytesField(SPAN.parentSpanId, Buffer.from(span.parentId, 'hex'))]),
    textField(SPAN.name, span.name),
    integerField(SPAN.kind, KINDS[span.kind]),
    fixed64Field(SPAN.start, nanoseconds(span.startMs)),
    fixed64Field(SPAN.end, nanoseconds(span.endMs)),
    ...attributeFields(SPAN.attributes, span.attributes),
    ...span.events.map(({ name, ms }) =>
      messageField(SPAN.events, [fixed64Field(EVENT.time, nanoseconds(ms)), textField(EVENT.name, name)]),
    ),
    messageField(SPAN.status, span.isError ? [integerField(STATUS.code, ERROR)] : []),
    fixed32Field(SPAN.flags, flagsOf(span)),
  ]
}

function attributeFields(field: number, attributes: SpanAttributes): readonly EncodedField[] {
  return Object.entries(attributes).map(([key, value]) =>
    messageField(field, [
      textField(KEY_VALUE.key, key),
      messageField(KEY_VALUE.value, [
        typeof value === 'number' ? integerField(ANY_VALUE.integer, value) : textField(ANY_VALUE.text, value),
      ]),
    ]),
  )
}

interface PartialSuccess {
  readonly rejected: number
  /** Words of the receiver. */
  readonly message: string
}

/** How many spans the receiver of a response has refused although it has accepted the request. */
export function partialSuccess(body: Uint8Array, mediaType: string): PartialSuccess {
  if (mediaType !== 'application/json') {
    const partial = readBytes(body, RESPONSE.partialSuccess)
    const message = Buffer.from(readBytes(partial, RESPONSE.errorMessage)).toString()
    return { rejected: countOf(readInteger(partial, RESPONSE.rejectedSpans)), message }
  }
  try {
    const { partialSuccess: partial } = JSON.parse(Buffer.from(body).toString()) as {
      partialSuccess?: { rejectedSpans?: unknown; errorMessage?: unknown }
    }
    return { rejected: countOf(partial?.rejectedSpans), message: String(partial?.errorMessage ?? '') }
  } catch {
    return { rejected: 0, message: '' }
  }
}

/** 64-bit integers are strings in JSON. */
function countOf(given: unknown): number {
  const count = Number(given ?? 0)
  return Number.isSafeInteger(count) && count > 0 ? count : 0
}

function flagsOf({ flags, hasRemoteParent }: Span): number {
  return flags | KNOWS_REMOTE | (hasRemoteParent ? IS_REMOTE : 0)
}

/** Times have microseconds. */
function nanoseconds(ms: number): bigint {
  return BigInt(Math.round(ms * 1000)) * 1000n
}
