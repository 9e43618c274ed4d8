/** Endpoints of APIs, with the gateway's credentials, for messages that tasks send without an endpoint of their own. */
import { DESTINATION_URL } from '../../mediation/endpoint-plan.ts'
import type { Target } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'

type OwnTarget = Pick<Exchange, 'callerLines' | 'ownCredential'> & { readonly target: Target }

/** `tasks`: those that may send to it: of a flow, and of its copies in the background. */
interface Entry {
  readonly own: OwnTarget
  tasks: number
}

export class OwnTargets {
  /** As many as there are such tasks, which the pools limit. */
  readonly #byNumber = new Map<number, Entry>()
  #last = 0

  /** Returns the number by which calls of the task name the endpoint. `target`: null for none. */
  add({ callerLines, ownCredential }: Exchange, target: Target | null): number {
    const number = ++this.#last
    if (target !== null && target.name !== DESTINATION_URL) {
      this.#byNumber.set(number, { own: { target, callerLines, ownCredential }, tasks: 1 })
    }
    return number
  }

  /** Undefined: the API has no endpoint, or nobody waits for the task any more. */
  get(number: number): OwnTarget | undefined {
    return this.#byNumber.get(number)?.own
  }

  /** Lets a further task send to the endpoint, until it is deleted once more. */
  share(number: number): void {
    const entry = this.#byNumber.get(number)
    if (entry !== undefined) entry.tasks++
  }

  delete(number: number): void {
    const entry = this.#byNumber.get(number)
    if (entry !== undefined && --entry.tasks === 0) this.#byNumber.delete(number)
  }
}
