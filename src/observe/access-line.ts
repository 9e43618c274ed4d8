/**
 * The two forms of an access log line, as pure ASCII strings that end in a line feed. Whatever comes from the network
 * passes through redaction and escaping here, and is cut to a length. One template per line: measured at 0.8
 * microseconds, where copying the same pieces byte by byte into the buffer took 1.5 (`bench/micro/access-log.ts`).
 */
import { STATE_NAMES } from '../protocol/states.ts'
import type { AccessRecord } from './access-record.ts'
import { escapeHex, escapeJson } from './escape.ts'
import { redactUrl } from './redact.ts'

/** Characters of a field that are logged. */
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

/** Names, numbers and the times of a line together stay below this. */
const FIXED_BYTES_MAX = 2048
/** What one character can become: `\u00ff`. */
const ESCAPED_BYTES_MAX = 6
export const LINE_BYTES_MAX =
  FIXED_BYTES_MAX + ESCAPED_BYTES_MAX * Object.values(CHARS_MAX).reduce((sum: number, chars) => sum + chars, 0)

/** State names by documented number; -1, no such connection, is null. */
const STATES = STATE_NAMES.map(name => `"${name}"`)

/** `time` is the ISO form of the record's first byte. Every line has every field, in this order. */
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

/** Apache's `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i"`; `time` as its `%t`, without the brackets. */
export function combinedLine(record: AccessRecord, time: string): string {
  const { clientAddress, status, responseBodyBytes, referer, userAgent } = record
  return `${hex(clientAddress, CHARS_MAX.address)} - - [${time}] "${requestLine(record)}" ${status} \
${responseBodyBytes > 0 ? responseBodyBytes : '-'} "${hex(redactUrl(referer), CHARS_MAX.referer) || '-'}" \
"${hex(userAgent, CHARS_MAX.userAgent) || '-'}"\n`
}

/** Just `-` when none could be read. */
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

/** A stage that was never reached is null, never 0: zeros would flatter an average. */
function span(fromMs: number, toMs: number): string | null {
  if (fromMs <= 0 || toMs <= 0) return null
  return millis(toMs > fromMs ? toMs - fromMs : 0)
}

/** To the microsecond, without the noise of binary fractions. */
function millis(ms: number): string {
  const micros = Math.round(ms * 1000)
  const whole = Math.floor(micros / 1000)
  return `${whole}.${thousandths(micros - whole * 1000)}`
}

export function thousandths(value: number): string {
  return value < 10 ? `00${value}` : value < 100 ? `0${value}` : `${value}`
}
