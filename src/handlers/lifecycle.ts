/** States of an API that its requests notice: it is blocked, or on its way out. */
import type { Verdict } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { refusal } from '../exchange/outcome.ts'
import type { ExplainedHandler } from './chain.ts'

const BLOCKED = refusal(700700)

export class BlockedHandler implements ExplainedHandler {
  readonly name = 'lifecycle'
  readonly about = 'BLOCKED: 503 with 700700'

  request(): Verdict {
    return BLOCKED
  }
}

export class DeprecatedHandler implements ExplainedHandler {
  readonly name = 'lifecycle'
  readonly #lines: string

  /** Milliseconds since 1970, 0 where a date is not known. */
  constructor(deprecatedAtMs: number, sunsetMs: number) {
    // RFC 9745 2: a structured date, in seconds. RFC 8594 3: a date as of HTTP.
    const deprecation = deprecatedAtMs === 0 ? '' : `Deprecation: @${Math.floor(deprecatedAtMs / 1000)}\r\n`
    const sunset = sunsetMs === 0 ? '' : `Sunset: ${new Date(sunsetMs).toUTCString()}\r\n`
    this.#lines = deprecation + sunset
  }

  get about(): string {
    return `DEPRECATED: ${this.#lines.trimEnd().replaceAll('\r\n', ', ')}`
  }

  request(exchange: Exchange): Verdict {
    exchange.replyLines += this.#lines
    return undefined
  }
}
