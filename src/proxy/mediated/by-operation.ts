/** The flows of an API by operation: those of the operation where it has its own, else those of the whole API. */
import type { ApiMediationPlan, FlowsPlan } from '../../mediation/flow-plan.ts'
import type { Resource } from '../exchange/resource.ts'

export class ByOperation<Flows> {
  readonly #ofApi: Flows
  /** By `VERB template`. */
  readonly #ofOperations: ReadonlyMap<string, Flows>
  /** By resource, once a request has asked for them: the key costs a string. */
  readonly #known = new Map<Resource | null, Flows>()

  constructor({ flows, byOperation }: ApiMediationPlan, make: (plan: FlowsPlan) => Flows) {
    this.#ofApi = make(flows)
    this.#ofOperations = new Map(Object.entries(byOperation).map(([key, plan]) => [key, make(plan)]))
  }

  of(resource: Resource | null): Flows {
    if (this.#ofOperations.size === 0) return this.#ofApi
    let flows = this.#known.get(resource)
    if (flows === undefined) {
      const key = resource === null ? '' : `${resource.verb} ${resource.template}`
      flows = this.#ofOperations.get(key) ?? this.#ofApi
      this.#known.set(resource, flows)
    }
    return flows
  }
}
