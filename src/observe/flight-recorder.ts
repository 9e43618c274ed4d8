/**
 * Flight recorder of a reactor: keeps the last exchanges that failed or were slow, each with its timeline. Rings with
 * limits: one for failures of backends and of the gateway, one for what clients cause, so that no flood of refused
 * requests displaces a failed backend.
 */
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { CODE_MEANINGS } from '../protocol/code-meanings.ts'
import { transportCode } from '../protocol/failure-table.ts'
import { STATE } from '../protocol/states.ts'
import {
  copySteps,
  NO_TIMELINE,
  type RecordedSteps,
  readTimeline,
  recordTimelines,
  releaseTimeline,
  type Timeline,
} from '../protocol/timelines.ts'
import { escapeControls } from './escape.ts'
import { redactText, redactUrl } from './redact.ts'

export interface RecorderSettings {
  /** Exchanges that each ring keeps; 0: the recorder is off. */
  readonly size: number
  /** Milliseconds from which on an exchange counts as slow; 0: none does. */
  readonly slowMs: number
}

/** Where the cause of a failure lies. */
type FailureSide = 'source' | 'target' | 'gateway'
export const FAILURE_SIDES: readonly FailureSide[] = ['source', 'target', 'gateway']

/**
 * `fault`: the client got a fault of the gateway. `reset`: the client got no complete response. `error`: the response
 * has a status of 500 or more. `slow`: none of these.
 */
type FailureKind = 'fault' | 'reset' | 'error' | 'slow'

/** One exchange that the recorder has kept. */
export interface RecordedFailure extends Timeline {
  /** Number of the reactor and count of the exchange there. */
  readonly id: string
  readonly kind: FailureKind
  readonly side: FailureSide
  /** Milliseconds since 1970 at the first byte of the request and at the end of the exchange. */
  readonly startedMs: number
  readonly endedMs: number
  /** Microseconds from the first byte of the request to the end. */
  readonly durationUs: number
  readonly correlationId: string
  /** '' without an API, as of a path that no API has. */
  readonly api: string
  readonly apiVersion: string
  readonly method: string
  /** Request target, redacted. */
  readonly path: string
  readonly host: string
  readonly scheme: 'http' | 'https'
  readonly client: string
  /** Connections, as the logs name them; '' without a backend connection. */
  readonly source: string
  readonly target: string
  /** Host and port of the backend; '' without one. */
  readonly backend: string
  /** 0 without a response. */
  readonly status: number
  /** Base code and state in one, as clients see it; 0: none. */
  readonly code: number
  readonly errorBase: number
  readonly errorState: number
  /** Cause in words, without secrets; '' where status and code say all. */
  readonly cause: string
  readonly requestBodyBytes: number
  readonly responseBodyBytes: number
}

/** A filter; what is left out does not matter. */
export interface FailureQuery {
  /** Id, or correlation id. */
  readonly id?: string
  /** Name, or name:version. */
  readonly api?: string
  /** Code or base code. */
  readonly code?: number
  /** A status, or a digit for its class. */
  readonly status?: number
  readonly side?: FailureSide
  /** Milliseconds since 1970: exchanges that ended later. */
  readonly since?: number
  /** By reactor, for a client that asks again: exchanges that ended then or later; it knows some of them. */
  readonly sinceOf?: readonly number[]
  /** Newest exchanges of one API, code and status: further ones are omitted, because they hide the others. */
  readonly perSort?: number
  readonly limit: number
}

export interface FailureList {
  /** Newest first. */
  readonly rows: readonly RecordedFailure[]
  /** Exchanges that match and are beyond the limit. */
  readonly omitted: number
  /** Exchanges since the start that were not kept, because more failed within a second than a ring holds. */
  readonly skipped: number
}

type Entry = Omit<RecordedFailure, keyof Timeline> & { readonly recorded: RecordedSteps }

const TEXT_CHARS_MAX = 512
const ID_CHARS_MAX = 128
const SECOND_MS = 1000
const OFFSET_JITTER_MS = 5
const SERVER_ERROR = 500
const CLASS_MAX = 9
const CLASS_SIZE = 100

const SIDE_OF_BASE = new Map(CODE_MEANINGS.map(({ base, side }) => [base, side]))
/** Bits of the states in which the response of the source is complete. */
const ENDED = (1 << STATE.RESPONSE_DONE) | (1 << STATE.CLOSING)

/** The last exchanges of one sort, at most `size`. */
class Ring {
  readonly entries: Entry[] = []
  /** Exchanges that were kept in this second. */
  kept = 0

  add(entry: Entry, size: number): void {
    this.entries.push(entry)
    this.trim(size)
    this.kept++
  }

  trim(size: number): void {
    if (this.entries.length > size) this.entries.splice(0, this.entries.length - size)
  }
}

export class FlightRecorder {
  readonly #reactor: number
  #settings: RecorderSettings = { size: 0, slowMs: 0 }
  readonly #failed = new Ring()
  readonly #refused = new Ring()
  #count = 0
  #skipped = 0
  /** Monotonic milliseconds at which the counts of the rings begin anew. */
  #nextSecondMs = 0
  /** Unix time less the monotonic clock. */
  #offsetMs = 0

  constructor(reactor: number, settings: RecorderSettings) {
    this.#reactor = reactor
    this.update(settings)
  }

  update(settings: RecorderSettings): void {
    this.#settings = settings
    recordTimelines(settings.size > 0)
    for (const ring of [this.#failed, this.#refused]) ring.trim(settings.size)
    this.#nextSecondMs = 0
  }

  /** Called once for each exchange that is over. */
  done(exchange: Exchange): void {
    const id = exchange.timeline
    if (id === NO_TIMELINE) return
    if (this.#isKept(exchange)) this.#keep(exchange, id)
    releaseTimeline(id)
  }

  #isKept({ errorBase, status, sourceState, startedMs, doneMs }: Exchange): boolean {
    if (errorBase !== 0 || status >= SERVER_ERROR || ((1 << sourceState) & ENDED) === 0) return true
    const { slowMs } = this.#settings
    // The peers of a tunnel decide how long it lasts.
    return slowMs > 0 && doneMs - startedMs >= slowMs && status !== 101
  }

  #keep(exchange: Exchange, id: number): void {
    const { size } = this.#settings
    if (size === 0) return
    const nowMs = exchange.doneMs
    if (nowMs >= this.#nextSecondMs) {
      this.#nextSecondMs = nowMs + SECOND_MS
      this.#failed.kept = 0
      this.#refused.kept = 0
    }
    const kind = kindOf(exchange)
    const recorded = copySteps(id)
    const side = sideOf(exchange, kind, recorded)
    const isOfClient = side === 'source' || (kind === 'fault' && exchange.status < SERVER_ERROR)
    const ring = isOfClient ? this.#refused : this.#failed
    if (ring.kept >= size) this.#skipped++
    else ring.add(this.#entry(exchange, kind, side, recorded), size)
  }

  #entry(exchange: Exchange, kind: FailureKind, side: FailureSide, recorded: RecordedSteps): Entry {
    const { api, errorBase, errorState, status, targetId, requestBodyBytes, responseBodyBytes, doneMs } = exchange
    const [startMs = doneMs] = recorded.times
    const wallMs = this.#wallOffsetMs()
    return {
      id: `${this.#reactor}-${++this.#count}`,
      kind,
      side,
      startedMs: startMs + wallMs,
      endedMs: doneMs + wallMs,
      durationUs: Math.max(0, Math.round((doneMs - startMs) * 1000)),
      correlationId: shown(exchange.correlationId.slice(0, ID_CHARS_MAX)),
      api: api?.name ?? '',
      apiVersion: api?.version ?? '',
      method: shown(exchange.method.slice(0, ID_CHARS_MAX)),
      path: shown(redactUrl(exchange.requestTarget.slice(0, TEXT_CHARS_MAX))),
      host: shown(redactUrl(exchange.host.slice(0, TEXT_CHARS_MAX))),
      scheme: exchange.isSecured ? 'https' : 'http',
      client: exchange.clientAddress,
      source: `http-incoming-${exchange.sourceId}`,
      target: targetId === 0 ? '' : `http-outgoing-${targetId}`,
      backend: exchange.backend,
      status,
      code: transportCode(errorBase, errorState),
      errorBase,
      errorState,
      cause: shown(redactText(exchange.errorCause.slice(0, TEXT_CHARS_MAX))),
      requestBodyBytes,
      responseBodyBytes,
      recorded,
    }
  }

  /** Steady, so that what ends later has the later time: `Date.now` has whole milliseconds. */
  #wallOffsetMs(): number {
    const offsetMs = Date.now() - performance.now()
    if (Math.abs(offsetMs - this.#offsetMs) > OFFSET_JITTER_MS) this.#offsetMs = offsetMs
    return this.#offsetMs
  }

  list(query: FailureQuery): FailureList {
    const { since = 0, sinceOf = [] } = query
    const from = sinceOf[this.#reactor] ?? 0
    const matching = [...this.#failed.entries, ...this.#refused.entries]
      .filter(({ endedMs }) => endedMs > since && endedMs >= from)
      .filter(entry => matches(entry, query))
      .sort((one, other) => other.endedMs - one.endedMs)
    const rows = newestOfSorts(matching, query.perSort ?? Infinity)
      .slice(0, query.limit)
      .map(({ recorded, ...entry }) => ({ ...entry, ...readTimeline(recorded) }))
    return { rows, omitted: matching.length - rows.length, skipped: this.#skipped }
  }
}

function matches(entry: Entry, { id, api, code, status, side }: FailureQuery): boolean {
  if (id !== undefined && id !== entry.id && id !== entry.correlationId) return false
  if (api !== undefined && api !== entry.api && api !== `${entry.api}:${entry.apiVersion}`) return false
  if (code !== undefined && code !== entry.code && code !== entry.errorBase) return false
  if (side !== undefined && side !== entry.side) return false
  if (status === undefined) return true
  return status === (status <= CLASS_MAX ? Math.floor(entry.status / CLASS_SIZE) : entry.status)
}

function newestOfSorts(newestFirst: readonly Entry[], most: number): readonly Entry[] {
  if (most === Infinity) return newestFirst
  const counts = new Map<string, number>()
  return newestFirst.filter(({ api, apiVersion, code, errorBase, status, kind }) => {
    const sort = `${api}:${apiVersion} ${code} ${errorBase} ${status} ${kind}`
    const count = (counts.get(sort) ?? 0) + 1
    counts.set(sort, count)
    return count <= most
  })
}

function kindOf({ errorBase, status, sourceState }: Exchange): FailureKind {
  if (((1 << sourceState) & ENDED) === 0) return 'reset'
  if (errorBase !== 0) return 'fault'
  return status >= SERVER_ERROR ? 'error' : 'slow'
}

/** Returns the side that failed; of a slow exchange, the side that took over half of the time, else the gateway. */
function sideOf(exchange: Exchange, kind: FailureKind, recorded: RecordedSteps): FailureSide {
  const { errorBase, startedMs, requestDoneMs, sentMs, connectMs, doneMs, targetId } = exchange
  const side = SIDE_OF_BASE.get(errorBase)
  if (side !== undefined) return side
  if (kind === 'error') return targetId === 0 ? 'gateway' : 'target'
  if (kind !== 'slow') return 'gateway'
  const halfMs = (doneMs - startedMs) / 2
  if (sentMs > 0 && doneMs - sentMs + connectMs > halfMs) return 'target'
  if (requestDoneMs - startedMs <= halfMs) return 'gateway'
  // The body of a request is not read before its filters have decided.
  return readTimeline(recorded).steps.some(({ event }) => event === 'FILTERS_WAIT') ? 'gateway' : 'source'
}

/** Whole, and without what a terminal obeys. A copy, because a part of a string keeps the whole in memory. */
function shown(text: string): string {
  return Buffer.from(escapeControls(text)).toString()
}
