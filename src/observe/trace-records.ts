/**
 * Records of traced exchanges: what an exchange has at its end, collected in batches and handed to the control thread,
 * which makes spans of them. Whether an exchange is recorded is decided at its end, so that faults are never missed.
 */
import { transportCode } from '../protocol/failure-table.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { type TraceContext, TRACE_PHASES, type TraceSampling } from '../proxy/exchange/trace-context.ts'
import { redactUrl } from './redact.ts'

export interface TraceSettings extends TraceSampling {
  /** Faults of one second that are recorded although their trace is not sampled. */
  readonly faultsPerSecond: number
}

interface TraceRecordsOptions extends TraceSettings {
  /** Unix time less the monotonic clock of the exchanges, in milliseconds. */
  readonly wallOffsetMs: () => number
  /** Hands over a batch; rejects where the control thread does not take it. */
  readonly publish: (batch: TraceBatch) => Promise<unknown>
  /** Called with the number of exchanges that nobody takes. */
  readonly onDropped: (exchanges: number) => void
}

/** Records as a list in JSON. */
export interface TraceBatch {
  readonly records: string
}

/**
 * One traced exchange, or a request of its sequences; times in milliseconds since 1970, 0: the exchange did not reach
 * that step.
 */
export interface ExchangeRecord {
  /** A request that a sequence has made within the span `spanId`. */
  readonly isCall: boolean
  readonly traceId: string
  /** Span of the client; '' without one. */
  readonly parentId: string
  readonly spanId: string
  /** Span of the request to the backend. */
  readonly backendId: string
  readonly flags: number
  readonly state: string
  readonly startedMs: number
  readonly doneMs: number
  /** Start and end of each phase by `TRACE_PHASES`; 0 where the request was not sampled. */
  readonly phases: readonly number[]
  readonly connectedFromMs: number
  readonly sentMs: number
  readonly firstByteMs: number
  readonly method: string
  readonly isSecured: boolean
  readonly host: string
  readonly path: string
  /** '' for none. */
  readonly query: string
  readonly minorVersion: number
  /** Template with the context of the API; '' where the request has no resource. */
  readonly route: string
  readonly status: number
  readonly errorCode: number
  readonly clientAddress: string
  readonly userAgent: string
  readonly api: string
  readonly apiVersion: string
  readonly application: string
  readonly keyType: string
  readonly correlationId: string
  /** Host and port of the last backend; '' without one. */
  readonly backend: string
  /** Address that the backend got; '' without one. */
  readonly backendUrl: string
  readonly backendMethod: string
}

/** A batch goes at the next tick, or when it has so many records. */
const BATCH_RECORDS = 200
/** Batches that the control thread has not taken; further ones are dropped. */
const PENDING_MAX = 16
/** Ticks of a reactor in a second. */
const TICKS_PER_SECOND = 10
const TEXT_CHARS_MAX = 512
const URL_CHARS_MAX = 2048
const SERVER_ERROR = 500

export class TraceRecords {
  readonly sampling: TraceSampling
  readonly #options: TraceRecordsOptions
  #records: ExchangeRecord[] = []
  #pending = 0
  #ticks = 0
  #faultsLeft: number

  constructor(options: TraceRecordsOptions) {
    this.sampling = options
    this.#options = options
    this.#faultsLeft = options.faultsPerSecond
  }

  /** Takes an exchange that is over. */
  done(exchange: Exchange, trace: TraceContext): void {
    if (!trace.isSampled && (!isFault(exchange) || !trace.isStarted || this.#faultsLeft-- <= 0)) return
    this.#add({ ...recordOf(exchange, trace, this.#options.wallOffsetMs()), isCall: false })
  }

  /** Takes a request of a sequence that is over. */
  called(exchange: Exchange, trace: TraceContext): void {
    if (!trace.isSampled) return
    const record = recordOf(exchange, trace, this.#options.wallOffsetMs())
    this.#add({ ...record, isCall: true, spanId: trace.parentId })
  }

  #add(record: ExchangeRecord): void {
    this.#records.push(record)
    if (this.#records.length >= BATCH_RECORDS) this.flush()
  }

  /** Called at each tick of the reactor, about every 100 ms. */
  tick(): void {
    if (++this.#ticks % TICKS_PER_SECOND === 0) this.#faultsLeft = this.#options.faultsPerSecond
    this.flush()
  }

  flush(): void {
    const { length } = this.#records
    if (length === 0) return
    const { publish, onDropped } = this.#options
    const records = this.#records
    this.#records = []
    if (this.#pending >= PENDING_MAX) {
      onDropped(length)
      return
    }
    this.#pending++
    publish({ records: JSON.stringify(records) })
      .catch(() => onDropped(length))
      .finally(() => this.#pending--)
  }
}

function isFault({ errorBase, status }: Exchange): boolean {
  return errorBase !== 0 || status >= SERVER_ERROR
}

function recordOf(exchange: Exchange, trace: TraceContext, offsetMs: number): Omit<ExchangeRecord, 'isCall'> {
  const { api, caller, requestTarget, pathAt, sentMs, connectMs } = exchange
  const wall = (ms: number): number => (ms > 0 ? ms + offsetMs : 0)
  const [path, query] = pathAndQuery(requestTarget.slice(pathAt))
  const isSent = sentMs > 0
  // Before the connection is open, `connectMs` is when it began to open; then how long that took.
  const connectedFromMs = connectMs === 0 ? 0 : isSent ? sentMs - connectMs : connectMs
  return {
    traceId: trace.traceId,
    parentId: trace.parentId,
    spanId: trace.ownId,
    backendId: trace.spanId,
    flags: trace.flags,
    state: trace.state,
    startedMs: wall(exchange.startedMs),
    doneMs: wall(exchange.doneMs),
    phases: Array.from(trace.isSampled ? trace.times.subarray(0, TRACE_PHASES.length * 2) : [], wall),
    connectedFromMs: wall(connectedFromMs),
    sentMs: isSent ? Math.max(wall(sentMs), wall(trace.isSampled ? trace.composedMs : 0)) : 0,
    firstByteMs: wall(exchange.firstByteMs),
    method: exchange.method,
    isSecured: exchange.isSecured,
    host: cut(exchange.host),
    path,
    query,
    minorVersion: exchange.minorVersion,
    route: routeOf(exchange),
    status: exchange.status,
    errorCode: transportCode(exchange.errorBase, exchange.errorState),
    clientAddress: exchange.clientAddress,
    userAgent: cut(exchange.userAgent),
    api: api === null ? '' : api.name,
    apiVersion: api === null ? '' : api.version,
    application: caller?.application?.name ?? '',
    keyType: exchange.keyType,
    correlationId: exchange.correlationId,
    backend: exchange.backend,
    backendUrl: trace.endpoint === '' ? '' : trace.endpoint + pathOfBackend(exchange),
    backendMethod: exchange.sentMethod,
  }
}

function routeOf({ api, resource, resourcePath }: Exchange): string {
  const template = resource?.template ?? resourcePath?.template
  return api === null || template === undefined ? '' : api.path + template
}

/** Calls of sequences, which belong to no API, have masked the path that was requested. */
function pathOfBackend({ api, requestEdit, requestTarget, canonicalTarget, backendPathAt }: Exchange): string {
  const path = requestEdit?.shownTarget ?? (api === null ? requestTarget : canonicalTarget.slice(backendPathAt))
  return redactUrl(path).slice(0, URL_CHARS_MAX)
}

function pathAndQuery(target: string): readonly [path: string, query: string] {
  const redacted = redactUrl(target).slice(0, URL_CHARS_MAX)
  const at = redacted.indexOf('?')
  return at < 0 ? [redacted, ''] : [redacted.slice(0, at), redacted.slice(at + 1)]
}

function cut(text: string): string {
  return text.slice(0, TEXT_CHARS_MAX)
}
