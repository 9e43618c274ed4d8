/**
 * Events of `[apim.analytics]`: one line of JSON for each exchange that has a request, collected in batches and handed
 * to the control thread, which publishes them.
 */
import { transportCode } from '../protocol/failure-table.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { escapeJson } from './escape.ts'
import { redactUrl } from './redact.ts'

export interface AnalyticsSettings {
  readonly hasSizes: boolean
  readonly address: 'full' | 'network' | 'none'
}

interface AnalyticsOptions extends AnalyticsSettings {
  /** Unix time less the monotonic clock of the exchanges, in milliseconds. */
  readonly wallOffsetMs: () => number
  /** Hands over a batch; rejects where the control thread does not take it. */
  readonly publish: (batch: AnalyticsBatch) => Promise<unknown>
  /** Called with the number of events that nobody takes. */
  readonly onDropped: (events: number) => void
}

/** Lines of JSON, each with its line feed. */
export interface AnalyticsBatch {
  readonly lines: string
  readonly events: number
}

/** A batch goes at the next tick, or when it has so many events. */
const BATCH_EVENTS = 500
/** Batches that the control thread has not taken; further events are dropped. */
const PENDING_MAX = 16
const TEXT_CHARS_MAX = 512

/** Kinds of failures in events. */
type ErrorType = 'AUTH' | 'THROTTLED' | 'TARGET_CONNECTIVITY' | 'OTHER'

export class AnalyticsEvents {
  readonly #options: AnalyticsOptions
  #lines = ''
  #events = 0
  #pending = 0

  constructor(options: AnalyticsOptions) {
    this.#options = options
  }

  append(exchange: Exchange): void {
    if (exchange.method === '') return
    this.#lines += eventLine(exchange, this.#options, this.#options.wallOffsetMs())
    this.#events++
    if (this.#events >= BATCH_EVENTS) this.flush()
  }

  /** Called at each tick of the reactor, about every 100 ms, and at its end. */
  flush(): void {
    if (this.#events === 0) return
    const batch = { lines: this.#lines, events: this.#events }
    this.#lines = ''
    this.#events = 0
    const { publish, onDropped } = this.#options
    if (this.#pending >= PENDING_MAX) {
      onDropped(batch.events)
      return
    }
    this.#pending++
    publish(batch)
      .catch(() => onDropped(batch.events))
      .finally(() => this.#pending--)
  }
}

/** The form of an event is documented in conf/guide/operate.md. */
function eventLine(exchange: Exchange, { hasSizes, address }: AnalyticsSettings, offsetMs: number): string {
  const { api, caller, startedMs, doneMs, sentMs, firstByteMs, requestDoneMs, errorBase, errorState } = exchange
  const application = caller?.application ?? null
  const code = transportCode(errorBase, errorState)
  const backendMs = sentMs > 0 && firstByteMs > 0 ? Math.max(0, firstByteMs - sentMs) : null
  const sizes = hasSizes
    ? `,"request_bytes":${exchange.requestBodyBytes},"response_bytes":${exchange.responseBodyBytes}`
    : ''
  return `{"time":"${new Date(startedMs + offsetMs).toISOString()}","correlation_id":"${text(exchange.correlationId)}",\
"trace_id":${named(exchange.trace?.isStarted ? exchange.trace.traceId : '')},\
"api":${named(api?.name)},"api_version":${named(api?.version)},"resource":${named(exchange.resource?.template)},\
"method":"${text(exchange.method)}","path":"${text(pathOf(exchange.requestTarget))}","status":${exchange.status},\
"error_code":${code},"error_type":${code === 0 ? 'null' : `"${errorType(code)}"`},"key_type":"${exchange.keyType}",\
"application_id":${named(application?.id)},"application":${named(application?.name)},\
"application_owner":${named(application?.owner)},"user":${named(caller?.user)},\
"client_address":${addressOf(exchange.clientAddress, address)},"user_agent":"${text(exchange.userAgent)}",\
"backend":${named(exchange.backend)},"total_ms":${millis(span(startedMs, doneMs))},\
"backend_ms":${millis(backendMs)},"request_read_ms":${millis(span(startedMs, requestDoneMs))}${sizes}}\n`
}

function text(value: string): string {
  return escapeJson(value.slice(0, TEXT_CHARS_MAX))
}

/** Null for '' and for what the exchange does not have. */
function named(value: string | undefined): string {
  return value === undefined || value === '' ? 'null' : `"${text(value)}"`
}

/** Queries may hold what concerns nobody else. */
function pathOf(target: string): string {
  return redactUrl(target).split(/[?#]/, 1)[0]!
}

function span(fromMs: number, toMs: number): number | null {
  return fromMs > 0 && toMs >= fromMs ? toMs - fromMs : null
}

function millis(ms: number | null): string {
  return ms === null ? 'null' : String(Math.round(ms * 1000) / 1000)
}

/** By the documented ranges of codes. */
function errorType(code: number): ErrorType {
  if (code >= 900_900 && code < 901_000) return 'AUTH'
  if (code >= 900_800 && code < 900_900) return 'THROTTLED'
  return (code >= 101_500 && code < 102_000) || (code >= 303_000 && code < 304_000) ? 'TARGET_CONNECTIVITY' : 'OTHER'
}

/** `network`: the first three bytes of IPv4, the first 48 bits of IPv6. */
function addressOf(address: string, form: AnalyticsSettings['address']): string {
  if (form === 'none') return 'null'
  if (form === 'full') return named(address)
  const four = /^(?:::ffff:)?(\d+\.\d+\.\d+)\.\d+$/i.exec(address)
  if (four !== null) return `"${four[1]}.0"`
  return `"${text(sixGroups(address).slice(0, 3).join(':'))}::"`
}

/** The groups of an IPv6 address, `::` written out. */
function sixGroups(address: string): readonly string[] {
  const [before = '', after] = address.split('%', 1)[0]!.split('::')
  const head = before === '' ? [] : before.split(':')
  if (after === undefined) return head
  const tail = after === '' ? [] : after.split(':')
  return [...head, ...new Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0'), ...tail]
}
