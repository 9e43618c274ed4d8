/**
 * Refuses addresses and APIs that a deny policy names, before anything is spent on credentials. Without such a policy
 * the filter compares two numbers.
 */
import type { DescribedFilter } from '../filters/filter-chain.ts'
import type { FilterResult } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { countedAddress } from './denials.ts'
import type { Throttle } from './throttle.ts'

export class DenyFilter implements DescribedFilter {
  readonly name = 'denial'
  readonly about = 'addresses and APIs of deny policies: 429 with 900805'
  readonly #throttle: Throttle | null
  readonly #path: string
  #version = 0
  #deniesApi = false
  #asksAddress = false

  /** `throttle`: null where the chain is only described. `path`: context with version. */
  constructor(throttle: Throttle | null, path: string) {
    this.#throttle = throttle
    this.#path = path
  }

  request(exchange: Exchange): FilterResult {
    const throttle = this.#throttle!
    throttle.auth.state.catchUp()
    const { policies } = throttle
    if (policies.version !== this.#version) {
      this.#version = policies.version
      this.#deniesApi = policies.denied.denies('API', this.#path)
      this.#asksAddress = !policies.denied.isOpenToAllAddresses
    }
    // A tunnel needs its address later, when the head is gone.
    if (exchange.upgrade !== '') countedAddress(exchange)
    if (this.#deniesApi) return throttle.deny(exchange)
    if (!this.#asksAddress) return undefined
    return policies.denied.deniesAddress(countedAddress(exchange)) ? throttle.deny(exchange) : undefined
  }
}
