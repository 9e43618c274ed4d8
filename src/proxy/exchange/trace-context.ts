/**
 * Trace context of the exchanges of one connection (W3C Trace Context): made or continued with each request, and sent
 * to the backend with an id of the gateway. A connection has one, used again for each request, so a request allocates
 * nothing. Only a sampled request reads further times.
 */
import { KIND } from '../../http1/field-kinds.ts'
import type { Head } from '../../http1/head.ts'
import { trimmedEnd } from '../../http1/head-rules.ts'
import {
  boundedTraceState,
  IdSource,
  putFlags,
  randomSpanId,
  RANDOM,
  randomBitsOf,
  readTraceParent,
  SAMPLED,
  SAMPLED_BITS,
  SPAN_ID_DIGITS,
  TRACE_ID_DIGITS,
  WORD_DIGITS,
} from '../../http1/trace-parent.ts'
import { putBlock, putLineEnd, putText } from '../../http1/writer.ts'
import type { HeadEdit } from './head-edit.ts'

export interface TraceSampling {
  /** Share of the traces that are recorded, from 0 to 1. */
  readonly ratio: number
  /** The decision of the client's `traceparent` holds, where there is one. */
  readonly parentBased: boolean
}

/** Trace that requests within an exchange continue: plain data, for workers and for tasks beside the exchange. */
export interface TraceLink {
  readonly traceId: string
  /** Span of the exchange. */
  readonly parentId: string
  readonly flags: number
  /** `tracestate`; '' for none. */
  readonly state: string
}

/** Phases whose times a sampled request keeps. */
export const TRACE_PHASES = ['route', 'authentication', 'throttling', 'mediation', 'response mediation'] as const
type TracePhase = (typeof TRACE_PHASES)[number]

const NAME = 'traceparent'
const LINE_START = `${NAME}: 00-`
const TRACE_ID_AT = LINE_START.length
const SPAN_ID_AT = TRACE_ID_AT + TRACE_ID_DIGITS + 1
const FLAGS_AT = SPAN_ID_AT + SPAN_ID_DIGITS + 1

const ONE = 49

export class TraceContext {
  /** The request is recorded, whatever becomes of it. */
  isSampled = false
  /** A request has begun. */
  isStarted = false
  /** The parent is a span of the client. */
  hasParent = false
  /** `tracestate` of the client; '' without one. */
  state = ''
  /** Address of the endpoint that the request was sent to; '' without one. */
  endpoint = ''
  /** Start and end of each phase by `TRACE_PHASES`, then when the head for the backend was composed; 0: not. */
  readonly times = new Float64Array(TRACE_PHASES.length * 2 + 1)
  readonly #parentBased: boolean
  /** Least random bits of a sampled trace. */
  readonly #threshold: number
  /** `traceparent` for the backend. */
  readonly #line = Buffer.from(`${LINE_START}${'0'.repeat(TRACE_ID_DIGITS)}-${'0'.repeat(SPAN_ID_DIGITS)}-00\r\n`)
  readonly #ids = new IdSource()
  readonly #parentId = Buffer.alloc(SPAN_ID_DIGITS)
  /** First half of the trace ids that are made here; level 2 wants only the last 56 bits to be new each time. */
  readonly #half = new Uint8Array(TRACE_ID_DIGITS / 2)
  /** The line has the half. */
  #hasHalf = false
  /** Id of the exchange's own span; '' until somebody asks for it. */
  #ownId = ''

  constructor(sampling: TraceSampling) {
    this.#parentBased = sampling.parentBased
    this.#threshold = Math.round((1 - sampling.ratio) * 2 ** SAMPLED_BITS)
    for (let at = 0; at < this.#half.length; at += WORD_DIGITS) this.#ids.put(this.#half, at)
    this.#ids.put(this.#line, SPAN_ID_AT)
    // An id is never 0.
    this.#half[0] = ONE
    this.#line[SPAN_ID_AT] = ONE
  }

  get traceId(): string {
    return this.#digits(TRACE_ID_AT, TRACE_ID_DIGITS)
  }

  /** Id that the backend takes for its parent. */
  get spanId(): string {
    return this.#digits(SPAN_ID_AT, SPAN_ID_DIGITS)
  }

  /** '' without one. */
  get parentId(): string {
    return this.hasParent ? this.#parentId.latin1Slice(0, SPAN_ID_DIGITS) : ''
  }

  /** Id of the span of the exchange itself. */
  get ownId(): string {
    if (this.#ownId === '') this.#ownId = randomSpanId()
    return this.#ownId
  }

  /** For requests that the exchange makes beside that to its backend. */
  get link(): TraceLink {
    return { traceId: this.traceId, parentId: this.ownId, flags: this.flags, state: this.state }
  }

  /** Flags as the backend gets them. */
  get flags(): number {
    return Number.parseInt(this.#digits(FLAGS_AT, 2), 16)
  }

  /** When the head for the backend was composed; 0: not, or not recorded. */
  get composedMs(): number {
    return this.times[TRACE_PHASES.length * 2]!
  }

  #digits(at: number, length: number): string {
    return this.#line.latin1Slice(at, at + length)
  }

  /** No request has begun. */
  clear(): void {
    this.isStarted = false
    this.isSampled = false
    this.endpoint = ''
    this.#ownId = ''
    if (this.state !== '') this.state = ''
  }

  /** Continues the trace of a request, or makes one. */
  start(bytes: Buffer, head: Head): void {
    const line = this.#line
    let flags = head.has(KIND.TRACE_PARENT) ? this.#readParent(bytes, head) : -1
    this.hasParent = flags >= 0
    this.isStarted = true
    if (this.hasParent) {
      if (head.has(KIND.TRACE_STATE)) this.state = boundedTraceState(head.list(bytes, KIND.TRACE_STATE))
    } else {
      this.#makeTraceId(line)
      flags = RANDOM
    }
    // The first half of the id stays: it must differ within one trace.
    this.#ids.put(line, SPAN_ID_AT + WORD_DIGITS)
    this.isSampled =
      this.hasParent && this.#parentBased ? (flags & SAMPLED) !== 0 : randomBitsOf(line, TRACE_ID_AT) >= this.#threshold
    putFlags(line, FLAGS_AT, this.isSampled ? flags | SAMPLED : flags & RANDOM)
    if (this.isSampled) this.times.fill(0)
  }

  /** Continues the trace of an exchange, of which the request is a part. */
  startWithin({ traceId, parentId, flags, state }: TraceLink): void {
    const line = this.#line
    line.latin1Write(traceId, TRACE_ID_AT)
    this.#ids.put(line, SPAN_ID_AT + WORD_DIGITS)
    putFlags(line, FLAGS_AT, flags)
    this.#parentId.latin1Write(parentId, 0)
    this.#hasHalf = false
    this.hasParent = true
    this.isStarted = true
    this.isSampled = (flags & SAMPLED) !== 0
    this.state = state
    this.times.fill(0)
  }

  #makeTraceId(line: Uint8Array): void {
    if (!this.#hasHalf) line.set(this.#half, TRACE_ID_AT)
    this.#hasHalf = true
    this.#ids.put(line, TRACE_ID_AT + this.#half.length)
    this.#ids.put(line, SPAN_ID_AT - 1 - WORD_DIGITS)
  }

  /** -1: no valid parent, as with two fields. */
  #readParent(bytes: Buffer, head: Head): number {
    if (head.isRepeated(KIND.TRACE_PARENT)) return -1
    const field = head.find(KIND.TRACE_PARENT)
    const at = head.valueAt(field)
    const length = trimmedEnd(bytes, head, field) - at
    this.#hasHalf = false
    return readTraceParent(bytes, at, length, this.#line, TRACE_ID_AT, this.#parentId)
  }

  /** Writes the fields for the backend, unless a flow has set its own; returns the position behind them. */
  put(bytes: Buffer, at: number, edit: HeadEdit | null): number {
    if (edit?.removed.names.includes(NAME) === true) return at
    const position = putBlock(bytes, at, this.#line)
    if (this.state === '') return position
    return putLineEnd(bytes, putText(bytes, putText(bytes, position, 'tracestate: '), this.state))
  }

  /** The request goes to an endpoint; the first one ends the mediation of the request. */
  sent(endpoint: string): void {
    this.endpoint = endpoint
    const { times } = this
    if (!this.isSampled || this.composedMs !== 0) return
    times[times.length - 1] = performance.now()
    const mediation = TRACE_PHASES.indexOf('mediation') * 2
    if (times[mediation] !== 0) times[mediation + 1] = this.composedMs
  }

  /** A phase of a sampled request begins, or goes on. */
  begin(phase: TracePhase): void {
    const at = TRACE_PHASES.indexOf(phase) * 2
    if (this.times[at] === 0) this.times[at] = performance.now()
  }

  end(phase: TracePhase): void {
    this.times[TRACE_PHASES.indexOf(phase) * 2 + 1] = performance.now()
  }
}
