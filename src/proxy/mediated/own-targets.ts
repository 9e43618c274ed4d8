/** Endpoints of APIs, with the gateway's credentials, for messages that tasks send without an endpoint of their own. */
import { DESTINATION_URL } from '../../mediation/endpoint-plan.ts'
import type { Target } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'

type OwnTarget = Pick<Exchange, 'callerLines' | 'ownCredential'> & { readonly target: Target }

export class OwnTargets {
  /** As many as there are such tasks, which the pool limits. */
  readonly #byNumber = new Map<number, OwnTarget>()
  #last = 0

  /** Returns the number by which calls of the task name the endpoint. `target`: null for none. */
  add({ callerLines, ownCredential }: Exchange, target: Target | null): number {
    const number = ++this.#last
    if (target !== null && target.name !== DESTINATION_URL) {
      this.#byNumber.set(number, { target, callerLines, ownCredential })
    }
    return number
  }

  /** Undefined: the API has no endpoint, or nobody waits for the task any more. */
  get(number: number): OwnTarget | undefined {
    return this.#byNumber.get(number)
  }

  delete(number: number): void {
    this.#byNumber.delete(number)
  }
}
