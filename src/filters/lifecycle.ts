/** Lifecycle filters: refuse requests to a blocked API, and announce a deprecated one. */
import type { FilterResult } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { refusal } from '../proxy/exchange/outcome.ts'
import type { DescribedFilter } from './filter-chain.ts'

const BLOCKED = refusal(700700)

export class BlockedFilter implements DescribedFilter {
  readonly name = 'lifecycle'
  readonly about = 'BLOCKED: 503 with 700700'

  request(): FilterResult {
    return BLOCKED
  }
}

export class DeprecationFilter implements DescribedFilter {
  readonly name = 'lifecycle'
  readonly #lines: string

  /** Dates in milliseconds since 1970; 0 for an unknown date. */
  constructor(deprecatedAtMs: number, sunsetMs: number) {
    // RFC 9745 2 takes a structured date in seconds, RFC 8594 3 an HTTP date.
    const deprecation = deprecatedAtMs === 0 ? '' : `Deprecation: @${Math.floor(deprecatedAtMs / 1000)}\r\n`
    const sunset = sunsetMs === 0 ? '' : `Sunset: ${new Date(sunsetMs).toUTCString()}\r\n`
    this.#lines = deprecation + sunset
  }

  get about(): string {
    return `DEPRECATED: ${this.#lines.trimEnd().replaceAll('\r\n', ', ')}`
  }

  request(exchange: Exchange): FilterResult {
    exchange.responseLines += this.#lines
    return undefined
  }
}
