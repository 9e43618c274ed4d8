/**
 * One endpoint of an API: admits requests as its state allows, and keeps its state by their results. In a group, a
 * request that failed here may go to the next endpoint.
 */
import type { EndpointSettings } from '../../apis/api-definition.ts'
import { METRIC } from '../../observe/metrics.ts'
import { transportCode } from '../../protocol/failure-table.ts'
import { tracer } from '../../protocol/tracer.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import type { Failure, Target } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { describeChange } from './endpoint-change.ts'
import type { EndpointGroup } from './endpoint-group.ts'
import { ENDPOINT_STATE } from './endpoint-states.ts'
import type { EndpointTable } from './endpoint-table.ts'
import type { EndpointChange } from './endpoint-word.ts'
import { classifyFailure } from './outlier-policy.ts'
import type { RequestSender } from './request-sender.ts'
import type { RetryBuffer } from './retry-buffer.ts'

/** The part of an endpoint's plan that the endpoint itself needs. */
interface EndpointIdentity {
  readonly slot: number
  readonly url: string
  readonly settings: EndpointSettings
}

const PROBE: EndpointChange = { from: ENDPOINT_STATE.SUSPENDED, to: ENDPOINT_STATE.PROBING, waitTenths: -1 }

export class Endpoint implements Target {
  /** URL. */
  readonly name: string
  readonly #slot: number
  readonly #settings: EndpointSettings
  readonly #sender: RequestSender
  readonly #states: EndpointTable
  readonly #context: ConnectionContext
  /** null: the endpoint is the only one of its API. */
  group: EndpointGroup | null = null
  /** Pending requests are counted, for `least_pending`. */
  countsPending = false

  constructor(plan: EndpointIdentity, sender: RequestSender, states: EndpointTable, context: ConnectionContext) {
    this.name = plan.url
    this.#slot = plan.slot
    this.#settings = plan.settings
    this.#sender = sender
    this.#states = states
    this.#context = context
  }

  get weight(): number {
    return this.#settings.weight
  }

  /** Longest wait for a response in milliseconds; 0: the setting of all endpoints. */
  get responseTimeoutMs(): number {
    return this.#settings.responseTimeoutMs
  }

  /** Another endpoint may take over a failed request: the request is kept until a response begins. */
  get failsOver(): boolean {
    return this.group?.failsOver ?? false
  }

  get isReady(): boolean {
    return this.#states.isReady(this.#slot)
  }

  /** A request that cannot be retried avoids such an endpoint, unless the endpoint has waited long for a probe. */
  get isDoubtful(): boolean {
    return this.#states.isDoubtful(this.#slot) && !this.#states.isOverdue(this.#slot)
  }

  /** Pending requests of all reactors. */
  get pending(): number {
    return this.#states.pending(this.#slot)
  }

  /** Milliseconds until the endpoint may get requests; -1: waiting does not help. */
  get waitMs(): number {
    return this.#states.waitMs(this.#slot)
  }

  /** Admits one request; the next exchange must be that request. */
  admit(): boolean {
    if (this.#states.isActive(this.#slot)) return true
    const admitted = this.#states.admit(this.#slot, this.#settings)
    if (admitted && this.#states.isProbing(this.#slot)) this.#report(PROBE, 'its suspension is over', 0)
    return admitted
  }

  /** Sends a request, as the only endpoint of an API. */
  send(exchange: Exchange): void {
    if (this.admit()) this.#sender.send(exchange, this)
    else {
      this.#context.metrics.add(METRIC.refusedSuspended, 1)
      refuseUnready(exchange, 303001, `${this.name} is suspended or switched off`, this.waitMs, this.#context)
    }
  }

  /** Sends a request that the group has had admitted. */
  sendAdmitted(exchange: Exchange): void {
    tracer?.note(exchange, 'endpoint', this.name)
    if (this.countsPending) this.#states.requestStarted(this.#slot, exchange)
    this.#sender.send(exchange, this)
  }

  /** Sends a request that failed at another endpoint of the group. Takes over the buffer. */
  #takeOver(exchange: Exchange, buffer: RetryBuffer): void {
    tracer?.note(exchange, 'endpoint', `${this.name}, taking over`)
    this.#context.metrics.add(METRIC.failovers, 1)
    if (this.countsPending) this.#states.requestStarted(this.#slot, exchange)
    this.#sender.sendBuffered(exchange, buffer, this)
  }

  /** A final response has begun, or the backend has switched protocols. */
  responded(): void {
    const change = this.#states.succeeded(this.#slot, this.#settings)
    if (change !== null) this.#report(change, 'it has answered', 0)
  }

  /**
   * A request failed, before or after its response began. `buffer`: the request, where it may be sent once more; the
   * endpoint owns it from now on. Returns true when another endpoint has taken the request over.
   */
  failed(exchange: Exchange, failure: Failure, buffer: RetryBuffer | null): boolean {
    this.#judge(exchange, failure)
    const next = buffer !== null && this.failsOver ? this.group!.next(exchange) : null
    if (next === null) buffer?.release()
    else next.#takeOver(exchange, buffer!)
    return next !== null
  }

  /** Changes the state of the endpoint as the failure asks for. */
  #judge(exchange: Exchange, failure: Failure): void {
    const effect = classifyFailure(failure, this.#settings, exchange)
    if (effect === 'ignored') return
    const { base, state, cause } = failure
    const { settings } = this.#context
    const isInRow = effect === 'in-a-row'
    const change = isInRow
      ? this.#states.exchangeFailed(this.#slot, this.#settings, settings, exchange.clientAddress, base, state)
      : this.#states.failed(this.#slot, this.#settings, effect === 'timeout', base, state)
    if (change === null) return
    const why = isInRow ? `${settings.suspendFailures} failures in a row, the last: ${cause}` : cause
    this.#report(change, why, transportCode(base, state))
  }

  #report(change: EndpointChange, cause: string, code: number): void {
    const { level, event, fields } = describeChange(change, this.name, cause, code)
    this.#context.report(level, event, fields)
  }
}

/** Refuses a request with 303000 or 303001: no endpoint is ready. The changes behind it have log lines of their own. */
export function refuseUnready(
  exchange: Exchange,
  base: 303000 | 303001,
  cause: string,
  waitMs: number,
  { report }: ConnectionContext,
): void {
  exchange.errorCause = cause
  exchange.retryAfterS = waitMs < 0 ? 0 : Math.max(1, Math.ceil(waitMs / 1000))
  report('debug', 'no endpoint is ready', {
    ERROR_CODE: base,
    CAUSE_OF_ERROR: cause,
    HTTP_URL: exchange.requestTarget,
    HTTP_METHOD: exchange.method,
    CORRELATION_ID: exchange.correlationId,
    CONNECTION: `http-incoming-${exchange.sourceId}`,
  })
  exchange.source.fail({ base, state: 0, kind: 'transport', code: '', cause, status: 0 })
}
