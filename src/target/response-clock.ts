/** How long a backend may take: for its response, and for each further move. */
import type { Exchange } from '../exchange/exchange.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import { STATE, type State } from '../protocol/states.ts'
import type { Sender } from './sender.ts'

/** A backend that broke off the request may still say why; it gets so long for that. */
export const LAST_WORD_MS = 1000

export class ResponseClock {
  readonly #around: Surroundings

  constructor(around: Surroundings) {
    this.#around = around
  }

  /** Milliseconds: `http.socket.timeout`, and for a response at most what is set for that. */
  waitMs(state: State, exchange: Exchange, sender: Sender): number {
    const { socketTimeoutMs, responseMs } = this.#around.settings
    const limitMs = state === STATE.REQUEST_DONE ? sender.responseMs || responseMs : 0
    if (limitMs === 0) return socketTimeoutMs
    return Math.max(1, Math.min(socketTimeoutMs, limitMs - (this.#around.now() - exchange.requestSentMs)))
  }

  /** What took too long. */
  lateness(state: State, exchange: Exchange, sender: Sender): string {
    const { socketTimeoutMs } = this.#around.settings
    const isForAll = this.waitMs(state, exchange, sender) === socketTimeoutMs
    return isForAll ? `no input within ${socketTimeoutMs} ms` : 'no response within the time for one'
  }
}
