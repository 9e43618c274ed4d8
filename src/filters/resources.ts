/** Resource filter: refuses paths that match no template, and methods that the resource does not declare. */
import type { FilterResult } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { type Refusal, refusal } from '../proxy/exchange/outcome.ts'
import type { ResourcePath } from '../proxy/exchange/resource.ts'
import type { DescribedFilter } from './filter-chain.ts'

const NO_RESOURCE = refusal(900906)

export class ResourceFilter implements DescribedFilter {
  readonly name = 'resources'
  readonly about = 'other paths 403 with 900906, other methods 405'
  readonly #answersOptions: boolean
  /** One refusal per path, because floods of refused requests must not allocate. */
  readonly #refusals = new WeakMap<ResourcePath, Refusal>()

  /** `answersOptions`: the gateway answers OPTIONS itself. */
  constructor(answersOptions: boolean) {
    this.#answersOptions = answersOptions
  }

  request({ resource, resourcePath }: Exchange): FilterResult {
    if (resource !== null) return undefined
    return resourcePath === null ? NO_RESOURCE : this.#refusalAt(resourcePath)
  }

  /** A 405 carries Allow (RFC 9110 15.5.6). */
  #refusalAt(path: ResourcePath): Refusal {
    let outcome = this.#refusals.get(path)
    if (outcome === undefined) {
      outcome = Object.freeze({ ...refusal(405), lines: `Allow: ${allowOf(path, this.#answersOptions)}\r\n` })
      this.#refusals.set(path, outcome)
    }
    return outcome
  }
}

/** Value of Allow (RFC 9110 10.2.1). `answersOptions`: the gateway answers OPTIONS itself. */
export function allowOf(path: ResourcePath, answersOptions: boolean): string {
  const isDeclared = path.resource('OPTIONS') !== undefined
  return isDeclared || !answersOptions ? path.allow : `${path.allow}, OPTIONS`
}
