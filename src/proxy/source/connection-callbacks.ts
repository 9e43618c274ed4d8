/** Parts that a client connection gets from its reactor: callbacks and the client, an address on a listener. */
import type { Failure } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Refusal } from '../exchange/outcome.ts'
import type { TraceSampling } from '../exchange/trace-context.ts'
import type { BackendTunnelPeer } from '../exchange/tunnel-peer.ts'
import type { Head } from '../../http1/head.ts'
import type { ExpectedSection } from '../../http1/repeated-sections.ts'
import type { DecodedFields, RequestDecoder } from './request-decoder.ts'
import type { SourceConnection } from './source-connection.ts'

/** Callbacks of client connections; the reactor implements them. */
export interface ConnectionCallbacks {
  /** Runs the pipeline for a request. A promise while a filter waits; it brings the rest of the pipeline. */
  process(exchange: Exchange): Promise<() => void> | undefined
  /** Sends the fault of an outcome through `sendLocalResponse`. */
  refuse(exchange: Exchange, outcome: Refusal, failure: Failure | null): void
  /** Response instead of the tunnel of a 101, to be sent once the backend is closed; null: the tunnel opens. */
  insteadOfTunnel(exchange: Exchange, head: Head, kind: BackendTunnelPeer['kind']): (() => void) | null
  /** The exchange is over, whatever its outcome. */
  exchangeDone(exchange: Exchange): void
  connectionClosed(connection: SourceConnection): void
}

/** A client address on a listener; its connections share it. */
export interface Client {
  readonly address: string
  /** Prefix of the correlation ids of this thread. */
  readonly idPrefix: string
  readonly decoder: RequestDecoder
  /** Head that the next connection of the client is expected to begin with. */
  readonly expected: ExpectedSection<DecodedFields>
  readonly scheme: 'http' | 'https'
  /** Kind of the listener; `ws` and `wss` take WebSocket only. */
  readonly kind: 'http' | 'https' | 'ws' | 'wss'
  /** Null: its requests are not traced. */
  readonly traces: TraceSampling | null
}
