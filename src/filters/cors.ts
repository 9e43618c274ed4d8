/**
 * CORS filter: sets the CORS grant of every response of the API, faults included, and answers preflight requests; the
 * pipeline adds the grant's lines. It runs before lifecycle and authentication, because browsers send preflight
 * requests without credentials and hide responses without a grant from the page.
 */
import type { FilterResult } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { fieldNamed } from '../http1/field-kinds.ts'
import { arena } from '../http1/llhttp.ts'
import type { DescribedFilter } from './filter-chain.ts'
import type { CorsPolicy } from './cors-policy.ts'
import { allowOf } from './resources.ts'

export class CorsFilter implements DescribedFilter {
  readonly name = 'cors'
  readonly #policy: CorsPolicy

  constructor(policy: CorsPolicy) {
    this.#policy = policy
  }

  get about(): string {
    return this.#policy.about
  }

  request(exchange: Exchange): FilterResult {
    if (exchange.method === 'OPTIONS') return this.#options(exchange)
    exchange.corsGrant = this.#policy.grant(exchange.origin)
    return undefined
  }

  /**
   * The backend gets OPTIONS where the resource declares it. Where the resource declares every method, the backend gets
   * it unless it is a preflight request. The gateway answers all other OPTIONS requests.
   */
  #options(exchange: Exchange): FilterResult {
    const { resourcePath, resource, origin } = exchange
    if (resourcePath === null) {
      exchange.corsGrant = this.#policy.grant(origin)
      return undefined
    }
    const declaresEveryMethod = resource !== null && resource.verb !== 'OPTIONS'
    const isForBackend = resource !== null && (!declaresEveryMethod || !isPreflight(exchange))
    exchange.corsGrant = this.#policy.preflightGrant(origin, resourcePath, declaresEveryMethod, isForBackend)
    return isForBackend ? undefined : { code: 0, status: 200, lines: `Allow: ${allowOf(resourcePath, true)}\r\n` }
  }
}

/** WHATWG Fetch, "CORS-preflight request". */
function isPreflight({ origin, head }: Exchange): boolean {
  return origin !== '' && head !== null && fieldNamed(arena.bytes, head, 'access-control-request-method') >= 0
}
