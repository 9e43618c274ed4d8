/**
 * One endpoint of an API: lets requests through as its state allows, hears what became of them, and says what that
 * means for its state. Where it belongs to a group, a request that failed here may go to the next.
 */
import type { EndpointSettings } from '../config/endpoint-settings.ts'
import { transportCode } from '../errors/transport-code.ts'
import type { Failure, Target } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import { METRIC } from '../observe/metrics.ts'
import { tracer } from '../protocol/tracer.ts'
import { describeChange } from './endpoint-change.ts'
import { ENDPOINT_STATE } from './endpoint-states.ts'
import { blameOf } from './endpoint-blame.ts'
import type { EndpointChange, EndpointTable } from './endpoint-table.ts'
import type { SavedRequest } from './saved-request.ts'
import type { Sender } from './sender.ts'
import type { HttpUpstream } from './upstream.ts'

/** What the primary has planned. */
interface EndpointIdentity {
  readonly row: number
  readonly url: string
  readonly settings: EndpointSettings
}

const TRIAL: EndpointChange = { from: ENDPOINT_STATE.SUSPENDED, to: ENDPOINT_STATE.TRIED, waitTenths: -1 }

/** Who else could answer. */
interface Siblings {
  readonly failsOver: boolean
  /** One that is ready and has not had the exchange; null: none. It counts as tried. */
  next(exchange: Exchange): Endpoint | null
}

export class Endpoint implements Target, Sender {
  /** URL. */
  readonly name: string
  readonly #row: number
  readonly #settings: EndpointSettings
  readonly #upstream: HttpUpstream
  readonly #states: EndpointTable
  readonly #around: Surroundings
  /** null: it answers alone. */
  siblings: Siblings | null = null
  /** Its pending requests are counted. */
  countsPending = false

  constructor(plan: EndpointIdentity, upstream: HttpUpstream, states: EndpointTable, around: Surroundings) {
    this.name = plan.url
    this.#row = plan.row
    this.#settings = plan.settings
    this.#upstream = upstream
    this.#states = states
    this.#around = around
  }

  get weight(): number {
    return this.#settings.weight
  }

  get responseMs(): number {
    return this.#settings.responseMs
  }

  get hasAlternative(): boolean {
    return this.siblings?.failsOver ?? false
  }

  get isReady(): boolean {
    return this.#states.isReady(this.#row)
  }

  /** A request that could not be sent again had better not be the one that tries it, unless no other comes. */
  get isDoubtful(): boolean {
    return this.#states.isDoubtful(this.#row) && !this.#states.isOverdue(this.#row)
  }

  /** Requests under way to it, of all reactors. */
  get pending(): number {
    return this.#states.pending(this.#row)
  }

  /** Milliseconds until it may be used; -1: not by waiting. */
  get waitMs(): number {
    return this.#states.waitMs(this.#row)
  }

  /** It may be used, and the next exchange that it takes is the one that was asked for. */
  admit(): boolean {
    if (this.#states.isActive(this.#row)) return true
    const admitted = this.#states.admit(this.#row, this.#settings)
    if (admitted && this.#states.isTried(this.#row)) this.#tell(TRIAL, 'its time is up', 0)
    return admitted
  }

  /** As the only endpoint of an API. */
  send(exchange: Exchange): void {
    if (this.admit()) this.#upstream.send(exchange, this)
    else {
      this.#around.metrics.add(METRIC.refusedSuspended, 1)
      refuseUnready(exchange, 303001, `${this.name} is suspended or switched off`, this.waitMs, this.#around)
    }
  }

  /** As one of a group, which has admitted it. */
  take(exchange: Exchange): void {
    tracer?.noted(exchange, 'endpoint', this.name)
    if (this.countsPending) this.#states.entered(this.#row, exchange)
    this.#upstream.send(exchange, this)
  }

  /** What another endpoint could not do; `saved` is this one's from now on. */
  #takeOver(exchange: Exchange, saved: SavedRequest): void {
    tracer?.noted(exchange, 'endpoint', `${this.name}, taking over`)
    this.#around.metrics.add(METRIC.handovers, 1)
    if (this.countsPending) this.#states.entered(this.#row, exchange)
    this.#upstream.resend(exchange, saved, this)
  }

  answered(): void {
    const change = this.#states.succeeded(this.#row, this.#settings)
    if (change !== null) this.#tell(change, 'it has answered', 0)
  }

  failed(exchange: Exchange, failure: Failure, saved: SavedRequest | null): boolean {
    const blame = blameOf(failure, this.#settings, exchange.reusesConnection)
    if (blame !== 'none') {
      const { base, state } = failure
      const change = this.#states.failed(this.#row, this.#settings, blame === 'timeout', base, state)
      if (change !== null) this.#tell(change, failure.cause, transportCode(base, state))
    }
    const next = saved !== null && this.hasAlternative ? this.siblings!.next(exchange) : null
    if (next === null) saved?.release()
    else next.#takeOver(exchange, saved!)
    return next !== null
  }

  #tell(change: EndpointChange, cause: string, code: number): void {
    const { level, event, fields } = describeChange(change, this.name, cause, code)
    this.#around.report(level, event, fields)
  }
}

/** Nobody is there to answer: 303000 or 303001. What took the endpoints out of service has its own lines in the log. */
export function refuseUnready(
  exchange: Exchange,
  base: 303000 | 303001,
  cause: string,
  waitMs: number,
  { report }: Surroundings,
): void {
  exchange.retryAfterS = waitMs < 0 ? 0 : Math.max(1, Math.ceil(waitMs / 1000))
  report('debug', 'no endpoint is ready', {
    ERROR_CODE: base,
    CAUSE_OF_ERROR: cause,
    HTTP_URL: exchange.requestTarget,
    HTTP_METHOD: exchange.method,
    CORRELATION_ID: exchange.correlationId,
    CONNECTION: `http-incoming-${exchange.sourceId}`,
  })
  exchange.downstream.fail({ base, state: 0, cause, status: 0 })
}
