/**
 * Mediation of an API where `force_json_validation` or `force_xml_validation` is set. A request with such a body goes
 * to a worker, which refuses a body that does not parse. Other requests go the way that the API's own flows need.
 */
import { listNamed } from '../../http1/field-kinds.ts'
import { arena } from '../../http1/llhttp.ts'
import { type ApiMediationPlan, type FlowsPlan, NO_FLOW } from '../../mediation/flow-plan.ts'
import { BODY_CHECK, type BodyChecks, isChecked } from '../../mediation/policies/well-formed-body.ts'
import type { ApiPlan } from '../../plan/reactor-plan.ts'
import type { ApiMediation, PendingFault } from '../exchange/api-mediation.ts'
import type { Target } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'

const NOTHING: ApiMediationPlan = {
  sequences: [],
  flows: { request: NO_FLOW, response: NO_FLOW, fault: NO_FLOW },
  byOperation: {},
}

/** The API with request flows that check the body first. */
export function withBodyCheck(api: ApiPlan): ApiPlan & { readonly mediation: ApiMediationPlan } {
  const mediation = api.mediation ?? NOTHING
  const { flows, byOperation } = mediation
  const checked = ({ request, response, fault }: FlowsPlan): FlowsPlan => ({
    request: { ...request, sequences: [BODY_CHECK.name, ...request.sequences], needs: 'worker' },
    response,
    fault,
  })
  const ofOperations = Object.entries(byOperation).map(([key, each]) => [key, checked(each)])
  return { ...api, mediation: { ...mediation, flows: checked(flows), byOperation: Object.fromEntries(ofOperations) } }
}

export class CheckedMediation implements ApiMediation {
  readonly #own: ApiMediation | null
  readonly #checked: ApiMediation
  readonly #checks: BodyChecks

  /** `own`: without the check; null where messages pass. `checked`: that of the API `withBodyCheck`. */
  constructor(own: ApiMediation | null, checked: ApiMediation, checks: BodyChecks) {
    this.#own = own
    this.#checked = checked
    this.#checks = checks
  }

  send(exchange: Exchange, target: Target): void {
    const head = exchange.head!
    const type = listNamed(arena.bytes, head, 'content-type') ?? ''
    const mediation = isChecked(type, this.#checks[exchange.isSecured ? 'secured' : 'plain'])
      ? this.#checked
      : this.#own
    if (mediation === null) target.send(exchange)
    else mediation.send(exchange, target)
  }

  /** Both word faults by the same flow. */
  refuse(exchange: Exchange, fault: PendingFault): boolean {
    return this.#checked.refuse(exchange, fault)
  }
}
