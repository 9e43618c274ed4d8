/** Whoever sends exchanges over backend connections, and hears what became of them. */
import type { Failure } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { SavedRequest } from './saved-request.ts'

export interface Sender {
  /** Longest wait for a response in milliseconds, 0: only that of all endpoints. */
  readonly responseMs: number
  /** Somebody else could answer in its place: the request is worth keeping until it is answered. */
  readonly hasAlternative: boolean
  /** A final response has begun, or the backend has switched protocols. */
  answered(exchange: Exchange): void
  /**
   * The exchange failed before a byte of a response came. `saved`: the request, where it may be sent once more; it is
   * the sender's then, and what the client still sends follows to whom it is given. True: somebody has taken over.
   */
  failed(exchange: Exchange, failure: Failure, saved: SavedRequest | null): boolean
}
