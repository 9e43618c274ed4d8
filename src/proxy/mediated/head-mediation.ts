/**
 * Mediation of an API whose flows need nothing but heads. The request flow runs before the target gets the request, the
 * response flow before the client gets the head of the response; bodies stream past both.
 */
import { type ApiMediation, type ExchangeMediation, type PendingFault, takeOnError } from '../exchange/api-mediation.ts'
import type { BodyPart, Failure, SourceSide, Target } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { KeptResponse } from '../exchange/outcome.ts'
import { type BackendTunnelPeer, declineTunnel } from '../exchange/tunnel-peer.ts'
import { type FlowContext, HeadFlow, type HeadOutcome } from './head-flows.ts'
import { hasNoContent } from './message-edit.ts'
import { ByOperation } from './by-operation.ts'
import type { Head } from '../../http1/head.ts'
import type { CompiledSequences } from '../../mediation/compiled-sequences.ts'
import type { ApiMediationPlan } from '../../mediation/flow-plan.ts'
import type { FormattedResponse } from '../../mediation/formatter.ts'
import { type MessageState, NO_STATE, type RaisedFault } from '../../mediation/worker-task.ts'
import type { ConnectionAddresses } from '../../socket/proxy-header.ts'
import { WRITE, type Written } from '../../socket/byte-socket.ts'

/** Answers that a flow gives in place of a message. */
export interface HeadAnswers {
  respond(exchange: Exchange, response: FormattedResponse): void
  fault(exchange: Exchange, fault: RaisedFault): void
}

/** The rest of a longer body is not waited for when the client gets another response: its connection is closed. */
const DISCARDED_MAX = 65_536

/** The flows of an operation. */
interface Flows {
  readonly request: HeadFlow
  readonly response: HeadFlow
}

/** Whether flows need no worker and word no faults. */
export function needsOnlyHeads({ flows, byOperation }: ApiMediationPlan): boolean {
  return [flows, ...Object.values(byOperation)].every(
    ({ request, response, fault }) =>
      request.needs !== 'worker' && response.needs !== 'worker' && fault.sequences.length === 0,
  )
}

/** Answers by the onError of a `<send>` whose endpoint has failed; false where that leaves no response. */
type RunOnError = (exchange: Exchange, fault: PendingFault, name: string, state: MessageState) => boolean

export class HeadMediation implements ApiMediation {
  readonly #flows: ByOperation<Flows>
  readonly #answers: HeadAnswers
  readonly #runOnError: RunOnError

  /** `api`: name and version, for the log. `sequences`: those of the API. */
  constructor(
    plan: ApiMediationPlan,
    api: string,
    sequences: CompiledSequences,
    context: FlowContext,
    answers: HeadAnswers,
    runOnError: RunOnError,
  ) {
    this.#runOnError = runOnError
    this.#flows = new ByOperation(plan, ({ request, response }) => ({
      request: new HeadFlow(request, 'request', api, sequences, context),
      response: new HeadFlow(response, 'response', api, sequences, context),
    }))
    this.#answers = answers
  }

  send(exchange: Exchange, target: Target): void {
    const { request, response } = this.#flows.of(exchange.resource)
    const readsState = target.readsState === true
    let state = NO_STATE
    let onError = ''
    if (request.plan.needs !== 'nothing') {
      const outcome = request.request(exchange, state, readsState || response.plan.needs === 'heads')
      if (outcome.kind !== 'continues') {
        answer(exchange, outcome, this.#answers)
        return
      }
      exchange.requestEdit = outcome.edit
      if (outcome.state !== null) state = outcome.state
      onError = outcome.onError
    }
    const mediation = prepareResponse(exchange, response, state, this.#answers)
    if (mediation !== null) {
      mediation.onError = onError
      exchange.mediation = mediation
      exchange.source = mediation
    } else if (onError !== '' || readsState) exchange.mediation = { state, onError, ended: nothing }
    target.send(exchange)
  }

  refuse(exchange: Exchange, fault: PendingFault): boolean {
    const onError = takeOnError(exchange, fault)
    return onError !== '' && this.#runOnError(exchange, fault, onError, exchange.mediation!.state)
  }
}

function nothing(): void {}

/**
 * Readies an exchange for the response flow of heads. Returns what runs it in front of the client; null where nothing
 * runs: a constant flow is an edit. A flow that needs a worker is none of heads.
 */
export function prepareResponse(
  exchange: Exchange,
  flow: HeadFlow,
  state: MessageState,
  answers: HeadAnswers,
): ResponseMediation | null {
  const { needs } = flow.plan
  if (needs === 'nothing' || needs === 'worker') return null
  const constant = needs === 'constant' ? flow.constant : null
  if (constant?.kind !== 'continues') return new ResponseMediation(exchange, flow, state, answers)
  flow.traceConstant(exchange, constant)
  exchange.responseEdit = constant.edit
  return null
}

function answer(exchange: Exchange, outcome: Exclude<HeadOutcome, { kind: 'continues' }>, answers: HeadAnswers): void {
  if (outcome.kind === 'responds') answers.respond(exchange, outcome.response)
  else answers.fault(exchange, outcome.fault)
}

/**
 * Takes the response of a target in place of the client's connection, and runs the response flow on its head. `passes`:
 * the client gets the response. `bodiless`: without its body. `replaced`: the client gets the answer of the flow when
 * the response has ended.
 */
class ResponseMediation implements SourceSide, ExchangeMediation {
  state: MessageState
  onError = ''
  readonly #exchange: Exchange
  readonly #flow: HeadFlow
  readonly #answers: HeadAnswers
  #mode: 'passes' | 'bodiless' | { readonly replaced: Exclude<HeadOutcome, { kind: 'continues' }> } = 'passes'

  constructor(exchange: Exchange, flow: HeadFlow, state: MessageState, answers: HeadAnswers) {
    this.#exchange = exchange
    this.#flow = flow
    this.state = state
    this.#answers = answers
  }

  get isBlocked(): boolean {
    return this.#exchange.client.isBlocked
  }

  get addresses(): ConnectionAddresses | null {
    return this.#exchange.client.addresses
  }

  interimResponse(head: Head, at: number): void {
    this.#exchange.client.interimResponse(head, at)
  }

  responseHead(head: Head, at: number, framing: number): void {
    const exchange = this.#exchange
    this.onError = ''
    const outcome = this.#flow.response(exchange, head, this.state)
    if (outcome.kind !== 'continues') {
      this.#replace(outcome, framing)
      return
    }
    exchange.responseEdit = outcome.edit
    const status = outcome.edit?.status ?? 0
    const isBodiless = framing !== 0 && status !== 0 && hasNoContent(status)
    if (isBodiless) this.#mode = 'bodiless'
    exchange.client.responseHead(head, at, isBodiless ? 0 : framing)
  }

  /** A short body is read to its end, so that the connection of the backend can be used again. */
  #replace(outcome: Exclude<HeadOutcome, { kind: 'continues' }>, framing: number): void {
    this.#mode = { replaced: outcome }
    if (framing >= 0 && framing <= DISCARDED_MAX) return
    const { target } = this.#exchange
    this.#exchange.target = null
    target?.abort('the response flow has replaced the response')
    this.#answer(outcome)
  }

  #answer(outcome: Exclude<HeadOutcome, { kind: 'continues' }>): void {
    this.#exchange.source = this.#exchange.client
    answer(this.#exchange, outcome, this.#answers)
  }

  responseBody(part: BodyPart): Written {
    const { client } = this.#exchange
    if (this.#mode === 'passes') return client.responseBody(part)
    if (!part.last) return WRITE.DONE
    if (this.#mode === 'bodiless') return client.responseBody({ ...part, count: 0 })
    this.#answer(this.#mode.replaced)
    return WRITE.DONE
  }

  switchProtocols(head: Head, at: number, backend: BackendTunnelPeer): void {
    const exchange = this.#exchange
    const outcome = this.#flow.response(exchange, head, this.state)
    if (outcome.kind === 'continues') {
      exchange.responseEdit = outcome.edit
      exchange.client.switchProtocols(head, at, backend)
      return
    }
    declineTunnel(exchange, backend)
    this.#answer(outcome)
  }

  resumeRequest(): void {
    this.#exchange.client.resumeRequest()
  }

  sendLocalResponse(status: number, reason: string, lines: string, body: string): void {
    this.#exchange.client.sendLocalResponse(status, reason, lines, body)
  }

  sendKeptResponse(response: KeptResponse): void {
    this.#exchange.client.sendKeptResponse(response)
  }

  fail(failure: Failure): void {
    this.#exchange.client.fail(failure)
  }

  ended(): void {}
}
