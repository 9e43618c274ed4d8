/**
 * What a client connection gets from outside of its room: the hallway, through which its requests go, and the client
 * that it serves.
 */
import type { Failure } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Refusal } from '../exchange/outcome.ts'
import type { BackendParty } from '../exchange/tunnel.ts'
import type { Head } from '../http1/head.ts'
import type { RequestIntake } from './request-intake.ts'
import type { SourceConnection } from './source-connection.ts'

/** What the hallway does for a client connection. */
export interface Hall {
  /** One request through the rooms. A promise of the way on when some step has to wait. */
  walk(exchange: Exchange): Promise<() => void> | undefined
  /** Renders the fault of an outcome and answers it through `answer`. */
  refuse(exchange: Exchange, outcome: Refusal, failure: Failure | null): void
  /** What answers in place of the tunnel that a 101 agrees to, once the backend is given up; null: the tunnel. */
  insteadOfTunnel(exchange: Exchange, head: Head, kind: BackendParty['kind']): (() => void) | null
  /** The exchange is over, whatever became of it. */
  done(exchange: Exchange): void
  closed(connection: SourceConnection): void
}

/** Who is at the other end, and through which door. One per listener and client address, shared by its connections. */
export interface Client {
  readonly address: string
  /** Prefix of the correlation ids of this thread. */
  readonly idPrefix: string
  readonly intake: RequestIntake
  readonly scheme: 'http' | 'https'
  /** What the listener takes: on `ws` and `wss` nothing but WebSocket. */
  readonly kind: 'http' | 'https' | 'ws' | 'wss'
}
