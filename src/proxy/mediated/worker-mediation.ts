/**
 * Mediation of an API of which a flow needs a worker, or which words its faults. Flows that need only heads run on the
 * reactor beside it, with the same state.
 */
import { apiIdentity, type ApiPlan } from '../../plan/reactor-plan.ts'
import type { CompiledSequences } from '../../mediation/compiled-sequences.ts'
import type { FlowsPlan } from '../../mediation/flow-plan.ts'
import { type MessageState, NO_STATE } from '../../mediation/worker-task.ts'
import { type ApiMediation, type PendingFault, takeOnError } from '../exchange/api-mediation.ts'
import type { SourceSide, Target } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { ByOperation } from './by-operation.ts'
import { type FlowContext, HeadFlow } from './head-flows.ts'
import { type HeadAnswers, prepareResponse } from './head-mediation.ts'
import { MediatedExchange } from './mediated-exchange.ts'
import { offersSubscriptions } from './subscription-messages.ts'
import type { Admission, MediationServices, OperationFlows } from './mediation-services.ts'

/** Words a fault by sequences on the reactor; false where they leave no response. */
type WordFault = (exchange: Exchange, fault: PendingFault, names: readonly string[], state: MessageState) => boolean

export class WorkerMediation implements ApiMediation {
  readonly #flows: ByOperation<Flows>
  readonly #services: MediationServices
  readonly #answers: HeadAnswers
  readonly #wordFault: WordFault

  /** `sequences`: those of the API that run on the reactor. */
  constructor(
    api: ApiPlan,
    sequences: CompiledSequences,
    context: FlowContext,
    services: MediationServices,
    answers: HeadAnswers,
    wordFault: WordFault,
    admission: Admission | null,
  ) {
    const identity = apiIdentity(api)
    const label = `${api.name}:${api.version}`
    this.#flows = new ByOperation(
      api.mediation!,
      plan => new Flows(identity, label, plan, sequences, context, answers, admission),
    )
    this.#services = services
    this.#answers = answers
    this.#wordFault = wordFault
  }

  send(exchange: Exchange, target: Target): void {
    const flows = this.#flows.of(exchange.resource)
    const { needs } = flows.plan.request
    if (needs === 'nothing' && flows.passesResponse(exchange)) {
      target.send(exchange)
      return
    }
    const { admission } = flows
    const opens = admission !== null && exchange.upgrade !== ''
    const isChecked = opens && offersSubscriptions(exchange.head!)
    const refused = opens && !isChecked ? admission.admitConnection(exchange) : undefined
    if (refused !== undefined) {
      this.#services.refuseAtOnce(exchange, { refusal: refused, failure: null, sequence: null })
      return
    }
    const mediated = new MediatedExchange(exchange, flows, this.#services, target)
    if (opens && flows.plan.request.sequences.length === 0) {
      mediated.forwardRequest()
      return
    }
    if (needs === 'worker') {
      mediated.mediateRequest()
      return
    }
    const outcome = needs === 'nothing' ? null : flows.request.request(exchange, mediated.state)
    if (outcome !== null && outcome.state !== null) mediated.state = outcome.state
    if (outcome?.kind === 'responds') this.#answers.respond(exchange, outcome.response)
    else if (outcome?.kind === 'faults') this.#answers.fault(exchange, outcome.fault)
    else {
      if (outcome !== null) {
        exchange.requestEdit = outcome.edit
        mediated.onError = outcome.onError
      }
      mediated.forwardRequest()
    }
  }

  refuse(exchange: Exchange, fault: PendingFault): boolean {
    const flows = this.#flows.of(exchange.resource)
    const { sequences, needs } = flows.plan.fault
    const { mediation } = exchange
    const onError = takeOnError(exchange, fault)
    if (onError !== '' && mediation instanceof MediatedExchange) {
      mediation.runOnError(fault, onError)
      return true
    }
    if (sequences.length === 0) return false
    if (needs !== 'worker') {
      return this.#wordFault(exchange, fault, sequences, mediation?.state ?? NO_STATE)
    }
    const mediated =
      mediation instanceof MediatedExchange ? mediation : new MediatedExchange(exchange, flows, this.#services, null)
    mediated.wordFault(fault)
    return true
  }
}

/** The flows of one operation. */
class Flows implements OperationFlows {
  readonly admission: Admission | null
  readonly api: string
  readonly plan: FlowsPlan
  hasToldOfStream = false
  readonly request: HeadFlow
  readonly #response: HeadFlow
  readonly #answers: HeadAnswers

  constructor(
    api: string,
    label: string,
    plan: FlowsPlan,
    sequences: CompiledSequences,
    context: FlowContext,
    answers: HeadAnswers,
    admission: Admission | null,
  ) {
    this.admission = admission
    this.api = api
    this.plan = plan
    this.request = new HeadFlow(plan.request, 'request', label, sequences, context)
    this.#response = new HeadFlow(plan.response, 'response', label, sequences, context)
    this.#answers = answers
  }

  /** Whether the response goes to the client without a flow that runs; a constant flow is an edit. */
  passesResponse(exchange: Exchange): boolean {
    const { needs } = this.plan.response
    if (needs !== 'nothing' && needs !== 'constant') return false
    return this.prepareResponse(exchange, NO_STATE) === exchange.client
  }

  prepareResponse(exchange: Exchange, state: MessageState): SourceSide {
    return prepareResponse(exchange, this.#response, state, this.#answers) ?? exchange.client
  }
}
