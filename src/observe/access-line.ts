/**
 * Access log lines in the two formats, as pure ASCII that ends in a line feed. Fields from the network are redacted,
 * escaped and cut to a maximum length. One template per line takes 0.8 microseconds, copying the pieces byte by byte
 * takes 1.5 (`bench/micro/access-log.ts`).
 */
import { STATE_NAMES } from '../protocol/states.ts'
import { escapeHex, escapeJson } from './escape.ts'
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
  readonly correlationId: string
  readonly apiName: string
  /** host:port; '' without a backend. */
  readonly backend: string
  /** Base code of the failure; 0 without a failure. */
  readonly errorBase: number
  readonly errorState: number
  readonly userAgent: string
  readonly referer: string
}

/** Longest logged text of each field, in characters. */
const CHARS_MAX = {
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

/** State names by documented number. */
const STATES = STATE_NAMES.map(name => `"${name}"`)

/** JSON format: every line has every field, in this order. `time`: the first byte of the request, in ISO form. */
export function jsonLine(record: AccessRecord, time: string): string {
  const { startedMs, requestDoneMs, sentMs, firstByteMs, doneMs } = record
  return `{"time":"${time}",\
"correlation_id":"${json(record.correlationId, CHARS_MAX.correlationId)}",\
"source":"http-incoming-${record.sourceId}",\
"target":${record.targetId > 0 ? `"http-outgoing-${record.targetId}"` : null},\
"source_state":${STATES[record.sourceState] ?? null},\
"target_state":${STATES[record.targetState] ?? null},\
"method":"${json(record.method, CHARS_MAX.method)}",\
"request_target":"${json(redactUrl(record.requestTarget), CHARS_MAX.target)}",\
"version":${record.minorVersion < 0 ? null : `"1.${record.minorVersion}"`},\
"status":${record.status},\
"request_body_bytes":${record.requestBodyBytes},\
"response_body_bytes":${record.responseBodyBytes},\
"client_read_ms":${span(startedMs, requestDoneMs)},\
"connect_ms":${sentMs > 0 ? millis(record.connectMs) : null},\
"backend_ms":${span(sentMs, firstByteMs)},\
"client_write_ms":${span(firstByteMs, doneMs)},\
"total_ms":${span(startedMs, doneMs)},\
"client_address":"${json(record.clientAddress, CHARS_MAX.address)}",\
"api":"${json(record.apiName, CHARS_MAX.api)}",\
"backend":"${json(record.backend, CHARS_MAX.backend)}",\
"error_base":${record.errorBase},\
"error_state":${record.errorState},\
"user_agent":"${json(record.userAgent, CHARS_MAX.userAgent)}",\
"referer":"${json(redactUrl(record.referer), CHARS_MAX.referer)}"}\n`
}

/** Apache's combined format: `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i"`. `time`: `%t` without `[]`. */
export function combinedLine(record: AccessRecord, time: string): string {
  const { clientAddress, status, responseBodyBytes, referer, userAgent } = record
  return `${hex(clientAddress, CHARS_MAX.address)} - - [${time}] "${requestLine(record)}" ${status} \
${responseBodyBytes > 0 ? responseBodyBytes : '-'} "${hex(redactUrl(referer), CHARS_MAX.referer) || '-'}" \
"${hex(userAgent, CHARS_MAX.userAgent) || '-'}"\n`
}

/** `-` where the request line could not be read. */
function requestLine(record: AccessRecord): string {
  if (record.method === '') return '-'
  const version = record.minorVersion < 0 ? '' : ` HTTP/1.${record.minorVersion}`
  return `${hex(record.method, CHARS_MAX.method)} ${hex(redactUrl(record.requestTarget), CHARS_MAX.target)}${version}`
}

function json(text: string, charsMax: number): string {
  return escapeJson(text.length > charsMax ? text.slice(0, charsMax) : text)
}

function hex(text: string, charsMax: number): string {
  return escapeHex(text.length > charsMax ? text.slice(0, charsMax) : text)
}

/** Null, not 0, where a moment was not reached: zeros would falsify averages. */
function span(fromMs: number, toMs: number): string | null {
  if (fromMs <= 0 || toMs <= 0) return null
  return millis(toMs > fromMs ? toMs - fromMs : 0)
}

/** Formats with three decimals, without the noise of binary fractions. */
function millis(ms: number): string {
  const micros = Math.round(ms * 1000)
  const whole = Math.floor(micros / 1000)
  return `${whole}.${thousandths(micros - whole * 1000)}`
}

export function thousandths(value: number): string {
  return value < 10 ? `00${value}` : value < 100 ? `0${value}` : `${value}`
}
