/**
 * Access log lines in the two formats, as pure ASCII that ends in a line feed. Fields from the network are redacted,
 * escaped and cut to a maximum length. A line of JSON is written as bytes, without a string: what is constant for a
 * connection is worded once (`bench/micro/access-log.ts`).
 */
import { STATE_NAMES } from '../protocol/states.ts'
import type { CorrelationId } from '../proxy/exchange/correlation-id.ts'
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
  readonly correlation: Pick<CorrelationId, 'text' | 'isGenerated' | 'put'>
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

function block(text: string): Uint8Array {
  return Buffer.from(text, 'latin1')
}

const CORRELATION = block('Z","correlation_id":"')
const REQUEST_TARGET = block('","request_target":"')
const REQUEST_BODY = block(',"request_body_bytes":')
const NO_REQUEST_BODY = block(',"request_body_bytes":0,"response_body_bytes":')
const RESPONSE_BODY = block(',"response_body_bytes":')
const CLIENT_READ = block(',"client_read_ms":')
const CONNECT = block(',"connect_ms":')
/** A request that was read at once and sent on a connection that was open. */
const AT_ONCE = block(',"client_read_ms":0.000,"connect_ms":0.000,"backend_ms":')
const BACKEND = block(',"backend_ms":')
const CLIENT_WRITE = block(',"client_write_ms":')
const TOTAL = block(',"total_ms":')
const NULL = block('null')

const DIGIT_0 = 48
const POINT = 46
/** Larger numbers are rare and worded by `String`. */
const INTEGER_MAX = 0x7fffffff

/** What a byte means in a field: 0 is copied, the others take the way of whole strings. */
const PLAIN = 0
const DELIMITER = 1
const ESCAPED = 2
const MEANING = new Uint8Array(256).fill(ESCAPED)
for (let code = 0x20; code < 0x7f; code++) MEANING[code] = PLAIN
for (const char of '?;#&@') MEANING[char.charCodeAt(0)] = DELIMITER
for (const char of '"\\') MEANING[char.charCodeAt(0)] = ESCAPED

/** Connections whose constant part of a line is remembered, by their number. */
const REMEMBERED = 256

/** The part of a line that is constant for a connection, and the values that it is made from. */
interface ConnectionBlocks {
  readonly sourceId: number
  /** From the end of the correlation id to the number of the target, or its null. */
  readonly source: Uint8Array
  readonly noTarget: Uint8Array
  ending: Ending | null
}

/** The last fields of a line, and the texts that they are made from. */
interface Ending {
  readonly clientAddress: string
  readonly apiName: string
  readonly backend: string
  readonly userAgent: string
  readonly referer: string
  readonly bytes: Uint8Array
}

/** Writes lines in the JSON format: every line has every field, in this order. */
export class JsonLines {
  readonly #connections: (ConnectionBlocks | null)[] = new Array<ConnectionBlocks | null>(REMEMBERED).fill(null)
  /** From `,"source_state"` to the value of `method`, by the states and whether a target is named. */
  readonly #states = new Map<number, Uint8Array>()
  /** From the end of the request target to the value of the status, by version and status. */
  readonly #statuses = new Map<number, Uint8Array>()

  /**
   * Writes a line at `at`, where LINE_BYTES_MAX bytes have room; returns the position behind it. `second`: the line up
   * to the point of the seconds; `millisecond` follows.
   */
  put(bytes: Buffer, at: number, record: AccessRecord, second: Uint8Array, millisecond: number): number {
    const { startedMs, requestDoneMs, sentMs, firstByteMs, doneMs } = record
    const connection = this.#connectionOf(record)
    let to = putThousandths(bytes, putBlock(bytes, at, second), millisecond)
    to = putCorrelation(bytes, putBlock(bytes, to, CORRELATION), record.correlation)
    if (record.targetId > 0) to = putInteger(bytes, putBlock(bytes, to, connection.source), record.targetId)
    else to = putBlock(bytes, to, connection.noTarget)
    to = putBlock(bytes, to, this.#statesOf(record))
    to = putText(bytes, to, record.method, CHARS_MAX.method)
    to = putUrl(bytes, putBlock(bytes, to, REQUEST_TARGET), record.requestTarget, CHARS_MAX.target)
    to = putBlock(bytes, to, this.#statusOf(record))
    if (record.requestBodyBytes === 0) to = putBlock(bytes, to, NO_REQUEST_BODY)
    else {
      to = putInteger(bytes, putBlock(bytes, to, REQUEST_BODY), record.requestBodyBytes)
      to = putBlock(bytes, to, RESPONSE_BODY)
    }
    to = putInteger(bytes, to, record.responseBodyBytes)
    if (startedMs > 0 && requestDoneMs === startedMs && sentMs > 0 && record.connectMs === 0) {
      to = putBlock(bytes, to, AT_ONCE)
    } else {
      to = putSpan(bytes, putBlock(bytes, to, CLIENT_READ), startedMs, requestDoneMs)
      to = putBlock(bytes, to, CONNECT)
      to = sentMs > 0 ? putMillis(bytes, to, record.connectMs) : putBlock(bytes, to, NULL)
      to = putBlock(bytes, to, BACKEND)
    }
    to = putSpan(bytes, to, sentMs, firstByteMs)
    to = putSpan(bytes, putBlock(bytes, to, CLIENT_WRITE), firstByteMs, doneMs)
    to = putSpan(bytes, putBlock(bytes, to, TOTAL), startedMs, doneMs)
    return putEnding(bytes, to, record, connection)
  }

  #connectionOf({ sourceId }: AccessRecord): ConnectionBlocks {
    const slot = sourceId & (REMEMBERED - 1)
    const known = this.#connections[slot]!
    if (known !== null && known.sourceId === sourceId) return known
    const start = `","source":"http-incoming-${sourceId}","target":`
    const source = block(`${start}"http-outgoing-`)
    const connection = { sourceId, source, noTarget: block(`${start}null`), ending: null }
    this.#connections[slot] = connection
    return connection
  }

  #statusOf({ minorVersion, status }: AccessRecord): Uint8Array {
    const key = (status << 8) | (minorVersion & 0xff)
    let text = this.#statuses.get(key)
    if (text === undefined) {
      const version = minorVersion < 0 ? 'null' : `"1.${minorVersion}"`
      text = block(`","version":${version},"status":${status}`)
      this.#statuses.set(key, text)
    }
    return text
  }

  #statesOf({ targetId, sourceState, targetState }: AccessRecord): Uint8Array {
    const key = ((sourceState + 1) << 8) | ((targetState + 1) << 1) | (targetId > 0 ? 1 : 0)
    let states = this.#states.get(key)
    if (states === undefined) {
      const quote = targetId > 0 ? '"' : ''
      states = block(`${quote},"source_state":${name(sourceState)},"target_state":${name(targetState)},"method":"`)
      this.#states.set(key, states)
    }
    return states
  }
}

function putEnding(bytes: Buffer, at: number, record: AccessRecord, connection: ConnectionBlocks): number {
  const { clientAddress, apiName, backend, userAgent, referer, errorBase, errorState } = record
  if (errorBase !== 0 || errorState !== 0) return at + bytes.latin1Write(endingText(record), at)
  let { ending } = connection
  if (
    ending === null ||
    ending.clientAddress !== clientAddress ||
    ending.apiName !== apiName ||
    ending.backend !== backend ||
    ending.userAgent !== userAgent ||
    ending.referer !== referer
  ) {
    ending = { clientAddress, apiName, backend, userAgent, referer, bytes: block(endingText(record)) }
    connection.ending = ending
  }
  return putBlock(bytes, at, ending.bytes)
}

/** A state by its documented number. */
function name(state: number): string {
  return state in STATE_NAMES ? `"${STATE_NAMES[state]}"` : 'null'
}

function endingText(record: AccessRecord): string {
  return `,"client_address":"${json(record.clientAddress, CHARS_MAX.address)}",\
"api":"${json(record.apiName, CHARS_MAX.api)}",\
"backend":"${json(record.backend, CHARS_MAX.backend)}",\
"error_base":${record.errorBase},\
"error_state":${record.errorState},\
"user_agent":"${json(record.userAgent, CHARS_MAX.userAgent)}",\
"referer":"${json(redactUrl(record.referer), CHARS_MAX.referer)}"}\n`
}

function putBlock(bytes: Buffer, at: number, text: Uint8Array): number {
  bytes.set(text, at)
  return at + text.length
}

function putCorrelation(bytes: Buffer, at: number, correlation: AccessRecord['correlation']): number {
  if (correlation.isGenerated) return correlation.put(bytes, at)
  return putText(bytes, at, correlation.text, CHARS_MAX.correlationId)
}

/** Writes plain text byte by byte, and other text escaped. */
function putText(bytes: Buffer, at: number, text: string, charsMax: number): number {
  const length = Math.min(text.length, charsMax)
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i)
    if (code > 255 || MEANING[code] === ESCAPED) return at + bytes.latin1Write(json(text, charsMax), at)
    bytes[at + i] = code
  }
  return at + length
}

/** As `putText`, redacted. Without a delimiter nothing in a URL is secret; one may stand behind what is logged. */
function putUrl(bytes: Buffer, at: number, url: string, charsMax: number): number {
  const { length } = url
  if (length > charsMax) return at + bytes.latin1Write(json(redactUrl(url), charsMax), at)
  for (let i = 0; i < length; i++) {
    const code = url.charCodeAt(i)
    if (code > 255 || MEANING[code] !== PLAIN) return at + bytes.latin1Write(json(redactUrl(url), charsMax), at)
    bytes[at + i] = code
  }
  return at + length
}

/** An integer from 0 up. */
function putInteger(bytes: Buffer, at: number, value: number): number {
  if (value > INTEGER_MAX) return at + bytes.latin1Write(String(value), at)
  let digits = 1
  for (let limit = 10; value >= limit; limit *= 10) digits++
  let rest = value
  for (let i = at + digits - 1; i >= at; i--) {
    const next = (rest / 10) | 0
    bytes[i] = DIGIT_0 + rest - next * 10
    rest = next
  }
  return at + digits
}

function putThousandths(bytes: Buffer, at: number, value: number): number {
  const hundreds = (value / 100) | 0
  const tens = ((value - hundreds * 100) / 10) | 0
  bytes[at] = DIGIT_0 + hundreds
  bytes[at + 1] = DIGIT_0 + tens
  bytes[at + 2] = DIGIT_0 + value - hundreds * 100 - tens * 10
  return at + 3
}

/** Null, not 0, where a moment was not reached: zeros would falsify averages. */
function putSpan(bytes: Buffer, at: number, fromMs: number, toMs: number): number {
  if (fromMs <= 0 || toMs <= 0) return putBlock(bytes, at, NULL)
  return putMillis(bytes, at, toMs > fromMs ? toMs - fromMs : 0)
}

/** Formats with three decimals, without the noise of binary fractions. */
function putMillis(bytes: Buffer, at: number, ms: number): number {
  const micros = Math.round(ms * 1000)
  const whole = Math.floor(micros / 1000)
  const point = putInteger(bytes, at, whole)
  bytes[point] = POINT
  return putThousandths(bytes, point + 1, micros - whole * 1000)
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
