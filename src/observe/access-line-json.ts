/**
 * Access log lines in JSON. A line is written into the arena as bytes, without a string: what is constant for a
 * connection is worded once, and copied in steps of 16 bytes (`bench/micro/access-log.ts`).
 */
import { putBytes } from '../http1/arena-copy.ts'
import { arena } from '../http1/llhttp.ts'
import { STATE_NAMES } from '../protocol/states.ts'
import { type AccessRecord, CHARS_MAX } from './access-line.ts'
import { escapeJson } from './escape.ts'
import { redactUrl } from './redact.ts'

/** A text that is kept in the arena: bytes from `from` up to `to`. */
interface Block {
  readonly from: number
  readonly to: number
}

const { bytes } = arena

/** Texts in the arena, in a stretch of fixed size. */
class TextMemory {
  readonly #start: number
  readonly #end: number
  #next: number

  constructor(size: number) {
    this.#start = arena.reserve(size)
    if (this.#start < 0) throw new RangeError('no memory for the access log')
    this.#end = this.#start + size
    this.#next = this.#start
  }

  /** Null where the text has no room. */
  keep(text: string): Block | null {
    const from = this.#next
    if (from + text.length > this.#end) return null
    this.#next += bytes.latin1Write(text, from)
    return { from, to: this.#next }
  }

  clear(): void {
    this.#next = this.#start
  }
}

const FIXED = new TextMemory(1024)

function block(text: string): Block {
  return FIXED.keep(text)!
}

const REQUEST_BODY = block(',"request_body_bytes":')
const RESPONSE_BODY = block(',"response_body_bytes":')
const CLIENT_READ = block(',"client_read_ms":')
const CONNECT = block(',"connect_ms":')
/** A request that was read at once and sent on a connection that was open. */
const AT_ONCE = block(',"client_read_ms":0.000,"connect_ms":0.000,"backend_ms":')
const BACKEND = block(',"backend_ms":')
const CLIENT_WRITE = block(',"client_write_ms":')
/** A response that came and was written in one event. */
const WRITTEN_AT_ONCE = block(',"client_write_ms":0.000,"total_ms":')
const TOTAL = block(',"total_ms":')
const NULL = block('null')

const DIGIT_0 = 48
const POINT = 46
/** Larger numbers are rare and worded by `String`. */
const INTEGER_MAX = 0x7fffffff

/** Kind of a byte in a field: 0 is copied, a field with any other is written as a whole string. */
const PLAIN = 0
const DELIMITER = 1
const ESCAPED = 2
const MEANING = new Uint8Array(256).fill(ESCAPED)
for (let code = 0x20; code < 0x7f; code++) MEANING[code] = PLAIN
for (const char of '?;#&@') MEANING[char.charCodeAt(0)] = DELIMITER
for (const char of '"\\') MEANING[char.charCodeAt(0)] = ESCAPED

/** Connections whose constant part of a line is remembered, by their number. */
const REMEMBERED = 256
/** Room for the constant part of one connection: its number, and the end of its lines. */
const SOURCE_BYTES = 64
const ENDING_BYTES = 960
/** Room for headings and statuses, some hundreds; when it is full, all of them are worded anew. */
const KEPT_BYTES = 64 * 1024

/** The part of a line that is constant for a connection, and the values that it is made from. */
class ConnectionTexts {
  readonly #sourceMemory = new TextMemory(SOURCE_BYTES)
  readonly #endingMemory = new TextMemory(ENDING_BYTES)
  sourceId = 0
  /** From the end of the correlation id to the number of the target. */
  source = NULL
  /** Where `source` names a target. */
  targetAt = 0
  headingKey = -1
  headingMethod = ''
  heading = NULL
  #clientAddress = ''
  #apiName = ''
  #backend = ''
  #userAgent = ''
  #referer = ''
  /** The last fields of a line without a failure; null before, and where they are too long. */
  #ending: Block | null = null

  moveTo(sourceId: number): void {
    const start = `","source":"http-incoming-${sourceId}","target":`
    this.sourceId = sourceId
    this.#sourceMemory.clear()
    this.source = this.#sourceMemory.keep(`${start}"http-outgoing-`)!
    this.targetAt = this.source.from + start.length
    this.#ending = null
  }

  putEnding(at: number, record: AccessRecord): number {
    const { clientAddress, apiName, backend, userAgent, referer, errorBase, errorState } = record
    if (errorBase !== 0 || errorState !== 0) return at + bytes.latin1Write(endingText(record), at)
    if (
      this.#ending === null ||
      this.#clientAddress !== clientAddress ||
      this.#apiName !== apiName ||
      this.#backend !== backend ||
      this.#userAgent !== userAgent ||
      this.#referer !== referer
    ) {
      const text = endingText(record)
      this.#endingMemory.clear()
      this.#ending = this.#endingMemory.keep(text)
      if (this.#ending === null) return at + bytes.latin1Write(text, at)
      this.#clientAddress = clientAddress
      this.#apiName = apiName
      this.#backend = backend
      this.#userAgent = userAgent
      this.#referer = referer
    }
    return putBlock(at, this.#ending)
  }
}

/**
 * Writes lines in the JSON format into the arena: every line has every field, in this order. One for all logs of a
 * thread, because its memory is never given back.
 */
class JsonLines {
  readonly #connections: (ConnectionTexts | undefined)[] = new Array<ConnectionTexts | undefined>(REMEMBERED)
  readonly #kept = new TextMemory(KEPT_BYTES)
  /** By method, states and whether a target is named: from the end of the target to the value of `request_target`. */
  readonly #headings = new Map<string, Block>()
  /** By version, status and whether a request body came: up to the value of `status`, or of `response_body_bytes`. */
  readonly #statuses = new Map<number, Block>()
  readonly #startMemory = new TextMemory(SOURCE_BYTES)
  /** Start of a line of `#second`: formatting a date per line would double the cost of a line. */
  #start = NULL
  #second = -1
  /** Where the milliseconds are in a line. */
  #millisecondAt = 0

  /** As `putJsonLine`. */
  put(at: number, record: AccessRecord, wallMs: number): number {
    const second = Math.floor(wallMs / 1000)
    if (second !== this.#second) this.#setSecond(second)
    const { startedMs, requestDoneMs, sentMs, firstByteMs, doneMs } = record
    const connection = this.#connectionOf(record)
    let to = putBlock(at, this.#start)
    putThousandths(at + this.#millisecondAt, wallMs - second * 1000)
    to = putCorrelation(to, record.correlation)
    if (record.targetId > 0) to = putInteger(putBlock(to, connection.source), record.targetId)
    else to = putBlock(putBytes(bytes, to, connection.source.from, connection.targetAt), NULL)
    to = putBlock(to, this.#headingOf(connection, record))
    to = putUrl(to, record.requestTarget, CHARS_MAX.target)
    to = putBlock(to, this.#statusOf(record))
    if (record.requestBodyBytes > 0) {
      to = putInteger(putBlock(to, REQUEST_BODY), record.requestBodyBytes)
      to = putBlock(to, RESPONSE_BODY)
    }
    to = putInteger(to, record.responseBodyBytes)
    if (startedMs > 0 && requestDoneMs === startedMs && sentMs > 0 && record.connectMs === 0) to = putBlock(to, AT_ONCE)
    else {
      to = putSpan(putBlock(to, CLIENT_READ), startedMs, requestDoneMs)
      to = putBlock(to, CONNECT)
      to = sentMs > 0 ? putMillis(to, record.connectMs) : putBlock(to, NULL)
      to = putBlock(to, BACKEND)
    }
    to = putSpan(to, sentMs, firstByteMs)
    if (firstByteMs > 0 && firstByteMs === doneMs) to = putBlock(to, WRITTEN_AT_ONCE)
    else to = putBlock(putSpan(putBlock(to, CLIENT_WRITE), firstByteMs, doneMs), TOTAL)
    to = putSpan(to, startedMs, doneMs)
    return connection.putEnding(to, record)
  }

  #setSecond(second: number): void {
    const before = `{"time":"${new Date(second * 1000).toISOString().slice(0, -4)}`
    this.#startMemory.clear()
    this.#start = this.#startMemory.keep(`${before}000Z","correlation_id":"`)!
    this.#millisecondAt = before.length
    this.#second = second
  }

  #connectionOf({ sourceId }: AccessRecord): ConnectionTexts {
    const slot = sourceId & (REMEMBERED - 1)
    const known = this.#connections[slot]
    if (known !== undefined && known.sourceId === sourceId) return known
    const connection = known ?? new ConnectionTexts()
    connection.moveTo(sourceId)
    this.#connections[slot] = connection
    return connection
  }

  #headingOf(connection: ConnectionTexts, { targetId, sourceState, targetState, method }: AccessRecord): Block {
    const key = ((sourceState + 1) << 8) | ((targetState + 1) << 1) | (targetId > 0 ? 1 : 0)
    if (connection.headingKey !== key || connection.headingMethod !== method) {
      connection.heading = this.#headings.get(`${key} ${method}`) ?? this.#newHeading(key, method, targetState)
      connection.headingKey = key
      connection.headingMethod = method
    }
    return connection.heading
  }

  #newHeading(key: number, method: string, targetState: number): Block {
    const states = `"source_state":${name((key >> 8) - 1)},"target_state":${name(targetState)}`
    const heading = this.#keep(
      `${(key & 1) === 1 ? '"' : ''},${states},"method":"${json(method, CHARS_MAX.method)}","request_target":"`,
    )
    this.#headings.set(`${key} ${method}`, heading)
    return heading
  }

  #statusOf({ minorVersion, status, requestBodyBytes }: AccessRecord): Block {
    const key = (status << 9) | ((minorVersion & 0xff) << 1) | (requestBodyBytes > 0 ? 1 : 0)
    const known = this.#statuses.get(key)
    if (known !== undefined) return known
    const version = minorVersion < 0 ? 'null' : `"1.${minorVersion}"`
    const bodies = requestBodyBytes > 0 ? '' : ',"request_body_bytes":0,"response_body_bytes":'
    const text = this.#keep(`","version":${version},"status":${status}${bodies}`)
    this.#statuses.set(key, text)
    return text
  }

  #keep(text: string): Block {
    const kept = this.#kept.keep(text)
    if (kept !== null) return kept
    this.#kept.clear()
    this.#headings.clear()
    this.#statuses.clear()
    for (const connection of this.#connections) if (connection !== undefined) connection.headingKey = -1
    return this.#kept.keep(text)!
  }
}

let jsonLines: JsonLines | null = null

/**
 * Writes a line of JSON into the arena at `at`, where LINE_BYTES_MAX bytes have room; returns the position behind it.
 * `wallMs`: start of the request in whole milliseconds since 1970.
 */
export function putJsonLine(at: number, record: AccessRecord, wallMs: number): number {
  jsonLines ??= new JsonLines()
  return jsonLines.put(at, record, wallMs)
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

function putBlock(at: number, { from, to }: Block): number {
  return putBytes(bytes, at, from, to)
}

function putCorrelation(at: number, correlation: AccessRecord['correlation']): number {
  if (correlation.isGenerated) return correlation.put(bytes, at)
  return putText(at, correlation.text, CHARS_MAX.correlationId)
}

/** Writes plain text byte by byte, and other text escaped. */
function putText(at: number, text: string, charsMax: number): number {
  const length = Math.min(text.length, charsMax)
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i)
    if (code > 255 || MEANING[code] === ESCAPED) return at + bytes.latin1Write(json(text, charsMax), at)
    bytes[at + i] = code
  }
  return at + length
}

/** As `putText`, redacted. Without a delimiter nothing in a URL is secret; one may stand behind what is logged. */
function putUrl(at: number, url: string, charsMax: number): number {
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
function putInteger(at: number, value: number): number {
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

function putThousandths(at: number, value: number): number {
  const hundreds = (value / 100) | 0
  const tens = ((value - hundreds * 100) / 10) | 0
  bytes[at] = DIGIT_0 + hundreds
  bytes[at + 1] = DIGIT_0 + tens
  bytes[at + 2] = DIGIT_0 + value - hundreds * 100 - tens * 10
  return at + 3
}

/** Null, not 0, where a moment was not reached: zeros would falsify averages. */
function putSpan(at: number, fromMs: number, toMs: number): number {
  if (fromMs <= 0 || toMs <= 0) return putBlock(at, NULL)
  return putMillis(at, toMs > fromMs ? toMs - fromMs : 0)
}

/** Formats with three decimals, without the noise of binary fractions. */
function putMillis(at: number, ms: number): number {
  const micros = Math.round(ms * 1000)
  const whole = Math.floor(micros / 1000)
  const point = putInteger(at, whole)
  bytes[point] = POINT
  return putThousandths(point + 1, micros - whole * 1000)
}

function json(text: string, charsMax: number): string {
  return escapeJson(text.length > charsMax ? text.slice(0, charsMax) : text)
}
