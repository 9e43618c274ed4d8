/** Charges behind the decision on a request: bytes of bodies, bytes and messages of a tunnel. */
import type { Exchange } from './exchange.ts'
import type { MessageGate } from './websocket-frames.ts'

export interface LateCharges {
  /** The exchange is over. */
  settle(exchange: Exchange): void
  /** Counts what a tunnel carries. */
  meter(exchange: Exchange): TunnelMeter
}

/** Counts the bytes and messages of one tunnel, in both directions. */
export interface TunnelMeter extends MessageGate {
  /** The tunnel carries WebSocket frames. */
  readonly hasMessages: boolean
  /** Text of the close frame, and its status (RFC 6455 7.4). */
  readonly closeReason: string
  readonly closeStatus: number
  /** Charges bytes that were read. False: a tunnel without messages must be cut. */
  charge(bytes: number): boolean
}
