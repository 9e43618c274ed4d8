/**
 * Finds the limits of a request and charges them. The limits of a caller at an API and resource are listed once per
 * version of the policies; a request costs one look-up. An API to which no limit can apply costs two comparisons.
 */
import type { DescribedFilter } from '../filters/filter-chain.ts'
import type { Caller } from '../proxy/exchange/caller.ts'
import type { FilterResult } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { countedAddress, deniesCaller } from './denials.ts'
import { CallerLimits, type LimitedApi } from './caller-limits.ts'
import type { Throttle } from './throttle.ts'

export class ThrottleFilter implements DescribedFilter {
  readonly name = 'throttling'
  readonly #throttle: Throttle | null
  readonly #api: LimitedApi
  #version = 0
  #isFree = false
  /** As long as the callers, which token table and caches of callers bound. */
  readonly #byCaller = new WeakMap<Caller, CallerLimits>()

  /** `throttle`: null where the chain is only described. */
  constructor(throttle: Throttle | null, api: LimitedApi) {
    this.#throttle = throttle
    this.#api = api
  }

  get about(): string {
    const { tier, hard } = this.#api
    const hasHard = hard.PRODUCTION !== null || hard.SANDBOX !== null
    const own = tier === '' ? 'by the tiers of resources' : `the API by ${tier}`
    return `${own}, then of subscription and application${hasHard ? '; a hard limit' : ''}`
  }

  request(exchange: Exchange): FilterResult {
    const throttle = this.#throttle!
    const { version } = throttle.policies
    if (version !== this.#version) this.#renew(throttle)
    if (this.#isFree) return undefined
    const caller = exchange.caller ?? throttle.auth.anonymous(countedAddress(exchange), exchange.keyType)
    let own = this.#byCaller.get(caller)
    if (own === undefined || own.version !== version) own = this.#list(throttle, caller)
    if (own.isDenied) return throttle.deny(exchange)
    const limits = own.limitsOf(exchange)
    return limits.isEmpty ? undefined : throttle.admit(exchange, limits)
  }

  #renew(throttle: Throttle): void {
    this.#version = throttle.policies.version
    this.#isFree = !this.#api.hasCallers && CallerLimits.areNone(throttle, this.#api)
  }

  #list(throttle: Throttle, caller: Caller): CallerLimits {
    const isDenied = deniesCaller(throttle.policies.denied, this.#api, caller)
    const own = new CallerLimits(throttle, this.#api, caller, isDenied)
    this.#byCaller.set(caller, own)
    return own
  }
}
