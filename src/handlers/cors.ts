/**
 * CORS of an API: every answer to it says from here on what its policy grants, faults as well, and what asks for that
 * alone is answered at once. It stands in front of lifecycle and authentication: a browser sends no credentials with a
 * preflight request, and shows the page no fault that comes without a grant.
 */
import type { Verdict } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { fieldNamed } from '../http1/field-kinds.ts'
import { arena } from '../http1/llhttp.ts'
import { allowOf } from './allow.ts'
import type { ExplainedHandler } from './chain.ts'
import { bytesOf, type CorsPolicy } from './cors-policy.ts'

export class CorsHandler implements ExplainedHandler {
  readonly name = 'cors'
  readonly #policy: CorsPolicy

  constructor(policy: CorsPolicy) {
    this.#policy = policy
  }

  get about(): string {
    return this.#policy.about
  }

  request(exchange: Exchange): Verdict {
    exchange.grant = this.#policy.grant(exchange.origin)
    return exchange.method === 'OPTIONS' ? this.#elect(exchange) : undefined
  }

  /**
   * Where OPTIONS is declared the backend answers it, where every method is, what is no preflight request; everywhere
   * else the gateway.
   */
  #elect(exchange: Exchange): Verdict {
    const { place, resource, origin } = exchange
    if (place === null) return undefined
    const passesOthers = resource !== null && resource.verb !== 'OPTIONS'
    const goesOn = resource !== null && (!passesOthers || !isPreflight(exchange))
    const lines = this.#policy.preflightLines(origin, place, passesOthers)
    if (!goesOn) return { code: 0, status: 200, lines: `Allow: ${allowOf(place, true)}\r\n${lines}` }
    // The backend's answer says it unless it speaks of CORS itself.
    exchange.grant = { ...exchange.grant!, lines, bytes: bytesOf(lines) }
    return undefined
  }
}

/** WHATWG Fetch, "CORS-preflight request". Looked for in the head, because nobody else wants to know. */
function isPreflight({ origin, head }: Exchange): boolean {
  return origin !== '' && head !== null && fieldNamed(arena.bytes, head, 'access-control-request-method') >= 0
}
