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
  /** Stands for the limits of every caller that has none at this API, in the version. */
  #none: object = {}
  /** Limits of callers that have several APIs, such as anonymous ones; those of others are in `Caller.limits`. */
  readonly #byCaller = new WeakMap<Caller, object>()

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
    const own = this.#isOwn(caller.limits) ? caller.limits : this.#limitsOf(throttle, caller)
    if (own === this.#none) return undefined
    return this.#admit(exchange, throttle, own as CallerLimits)
  }

  #admit(exchange: Exchange, throttle: Throttle, own: CallerLimits): FilterResult {
    if (own.isDenied) return throttle.deny(exchange)
    const limits = own.limitsOf(exchange)
    return limits.isEmpty ? undefined : throttle.admit(exchange, limits)
  }

  /** True if limits hold for this API and version. */
  #isOwn(limits: object | null | undefined): limits is object {
    if (limits === this.#none) return true
    return limits instanceof CallerLimits && limits.api === this.#api && limits.version === this.#version
  }

  #renew(throttle: Throttle): void {
    this.#version = throttle.policies.version
    this.#isFree = !this.#api.hasCallers && CallerLimits.areNone(throttle, this.#api, null)
    this.#none = {}
  }

  #limitsOf(throttle: Throttle, caller: Caller): object {
    const known = this.#byCaller.get(caller)
    if (this.#isOwn(known)) return known
    const isDenied = deniesCaller(throttle.policies.denied, this.#api, caller)
    const hasNone = !isDenied && CallerLimits.areNone(throttle, this.#api, caller)
    const own = hasNone ? this.#none : new CallerLimits(throttle, this.#api, caller, isDenied)
    // Another API takes the place in the caller, or an older version leaves it.
    if (caller.limits !== null) this.#byCaller.set(caller, own)
    caller.limits = own
    return own
  }
}
