/** Lets through what the API has: a path that no template fits is refused, and so is a method that is not declared. */
import type { Verdict } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { type Refusal, refusal } from '../exchange/outcome.ts'
import type { ResourcePath } from '../exchange/resource.ts'
import { allowOf } from './allow.ts'
import type { ExplainedHandler } from './chain.ts'

const NO_RESOURCE = refusal(900906)

export class ResourceHandler implements ExplainedHandler {
  readonly name = 'resources'
  readonly about = 'other paths 403 with 900906, other methods 405'
  /** The gateway answers OPTIONS itself. */
  readonly #answersOptions: boolean
  /** By place: floods come of what is not there. */
  readonly #refusals = new WeakMap<ResourcePath, Refusal>()

  constructor(answersOptions: boolean) {
    this.#answersOptions = answersOptions
  }

  request({ resource, place }: Exchange): Verdict {
    if (resource !== null) return undefined
    return place === null ? NO_RESOURCE : this.#refusalAt(place)
  }

  /** RFC 9110 15.5.6: a 405 says what there is. */
  #refusalAt(place: ResourcePath): Refusal {
    let outcome = this.#refusals.get(place)
    if (outcome === undefined) {
      outcome = Object.freeze({ ...refusal(405), lines: `Allow: ${allowOf(place, this.#answersOptions)}\r\n` })
      this.#refusals.set(place, outcome)
    }
    return outcome
  }
}
