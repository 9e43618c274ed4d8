/**
 * Access log lines: the record of an exchange, the limits of fields, and the combined format. Lines of both formats are
 * pure ASCII and end in a line feed. Fields from the network are redacted, escaped and cut to a maximum length.
 */
import type { CapturedFields } from '../http1/captured-fields.ts'
import type { CorrelationId } from '../proxy/exchange/correlation-id.ts'
import type { TraceContext } from '../proxy/exchange/trace-context.ts'
import { escapeHex } from './escape.ts'
import { redactUrl } from './redact.ts'

/**
 * One finished exchange. `Exchange` has these fields itself, so that nothing is copied for the log. Times are
 * milliseconds of the reactor's monotonic clock; 0 where the exchange did not get so far.
 */
export interface AccessRecord {
  readonly method: string
  /** Path and query as received, one character per byte. */
  readonly requestTarget: string
  /** x of HTTP/1.x; negative where the start line could not be read. */
  readonly minorVersion: number
  readonly clientAddress: string
  /** N of http-incoming-N. */
  readonly sourceId: number
  /** N of http-outgoing-N; 0 without a backend connection. */
  readonly targetId: number
  /** Documented state numbers at the end, 0 to 8; -1 without a connection. */
  readonly sourceState: number
  readonly targetState: number
  readonly status: number
  readonly requestBodyBytes: number
  readonly responseBodyBytes: number
  /** First byte of the request read. */
  readonly startedMs: number
  readonly requestDoneMs: number
  /** Request head written to the backend. */
  readonly sentMs: number
  /** Duration of the connect; 0 on a reused connection. */
  readonly connectMs: number
  /** Response head read. */
  readonly firstByteMs: number
  readonly doneMs: number
  readonly correlation: Pick<CorrelationId, 'text' | 'isGenerated' | 'put'>
  readonly apiName: string
  /** host:port; '' without a backend. */
  readonly backend: string
  /** Base code of the failure; 0 without a failure. */
  readonly errorBase: number
  readonly errorState: number
  readonly userAgent: string
  readonly referer: string
  /** Authority of the request, '' without one. */
  readonly host: string
  readonly isSecured: boolean
  /** The connection of the client may carry another request. */
  readonly persists: boolean
  /** Fields of the request that a template names. */
  readonly captured: CapturedFields
  /** Null without authentication. */
  readonly caller: { readonly user: string } | null
  /** Null where requests are not traced. */
  readonly trace: Pick<TraceContext, 'isStarted' | 'isSampled' | 'traceId' | 'ownId'> | null
}

/** Longest logged text of each field, in characters. */
export const CHARS_MAX = {
  method: 32,
  target: 8192,
  address: 64,
  correlationId: 128,
  api: 256,
  backend: 272,
  userAgent: 1024,
  referer: 2048,
} as const

/** Upper bound for the names, numbers and times of a line. */
const FIXED_BYTES_MAX = 2048
/** Longest escape of one character: `\u00ff`. */
const ESCAPED_BYTES_MAX = 6
export const LINE_BYTES_MAX =
  FIXED_BYTES_MAX + ESCAPED_BYTES_MAX * Object.values(CHARS_MAX).reduce((sum: number, chars) => sum + chars, 0)

/** Apache's combined format: `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i"`. `time`: `%t` without `[]`. */
export function combinedLine(record: AccessRecord, time: string): string {
  const { clientAddress, status, responseBodyBytes, referer, userAgent } = record
  return `${hex(clientAddress, CHARS_MAX.address)} - - [${time}] "${escapeHex(requestLine(record))}" ${status} \
${responseBodyBytes > 0 ? responseBodyBytes : '-'} "${hex(redactUrl(referer), CHARS_MAX.referer) || '-'}" \
"${hex(userAgent, CHARS_MAX.userAgent) || '-'}"\n`
}

/** Redacted; `-` where the request line could not be read. */
export function requestLine({ method, requestTarget, minorVersion }: AccessRecord): string {
  if (method === '') return '-'
  const version = minorVersion < 0 ? '' : ` HTTP/1.${minorVersion}`
  return `${method.slice(0, CHARS_MAX.method)} ${redactUrl(requestTarget).slice(0, CHARS_MAX.target)}${version}`
}

function hex(text: string, charsMax: number): string {
  return escapeHex(text.length > charsMax ? text.slice(0, charsMax) : text)
}

/** 21/Nov/2026:03:56:00 +0000 */
export function localTime(wallMs: number): string {
  const [, day, month, year, time] = new Date(wallMs).toUTCString().split(' ')
  return `${day}/${month}/${year}:${time} +0000`
}
