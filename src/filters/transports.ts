/**
 * Transport filter of an API that only http or only https serves. On other listeners a request gets the fault of an
 * unknown API, so the filter runs before all others: not even a preflight response may show that the API exists.
 */
import type { Transport } from '../apis/api-definition.ts'
import type { FilterResult } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { NO_SUCH_API } from '../proxy/exchange/outcome.ts'
import type { DescribedFilter } from './filter-chain.ts'

export class TransportFilter implements DescribedFilter {
  readonly name = 'transports'
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  get about(): string {
    return `${this.#transport} only, elsewhere 404 as for an unknown API`
  }

  /** The ws listener counts as http, the wss listener as https. */
  request({ isSecured }: Exchange): FilterResult {
    return isSecured === (this.#transport === 'https') ? undefined : NO_SUCH_API
  }
}
