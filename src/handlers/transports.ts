/**
 * An API that is not for every listener. On the others it is not there: nothing that it answers may tell that it is,
 * not even to a preflight request, so this stands in front of everything else.
 */
import type { Transport } from '../config/api-definition.ts'
import type { Verdict } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { NO_SUCH_API } from '../exchange/outcome.ts'
import type { ExplainedHandler } from './chain.ts'

export class TransportsHandler implements ExplainedHandler {
  readonly name = 'transports'
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  get about(): string {
    return `${this.#transport} alone, elsewhere 404 as for an unknown API`
  }

  /** A WebSocket listener counts as http, a secured one as https. */
  request({ isSecured }: Exchange): Verdict {
    return isSecured === (this.#transport === 'https') ? undefined : NO_SUCH_API
  }
}
