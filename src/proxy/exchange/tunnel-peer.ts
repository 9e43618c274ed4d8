/** Contract of a tunnel with the two connections that it joins. */
import type { Loss } from '../../protocol/failure-table.ts'
import type { Machine } from '../../protocol/machine.ts'
import type { ByteSocket } from '../../socket/byte-socket.ts'
import type { Exchange } from './exchange.ts'
import type { ReadBuffer } from './read-buffer.ts'
import type { WriteBuffer } from './write-buffer.ts'

/** A connection that becomes one side of a tunnel, with the parts that the tunnel takes over. */
export interface TunnelPeer {
  readonly socket: ByteSocket
  readonly machine: Machine
  /** Holds the bytes that were read behind the head. */
  readonly readBuffer: ReadBuffer
  readonly writeBuffer: WriteBuffer
  /** Metric of the bytes that are read. */
  readonly bytesRead: number
  /** The peer is lost; the tunnel resets both sides next. */
  failed(loss: Loss, cause: string): void
  /** Code of the gateway threw. */
  threw(error: unknown): void
  /** No byte moved for `tunnel.idle_timeout`. */
  expired(): void
  /** Closes the socket and releases the memory; a second call changes nothing. */
  close(mode: CloseMode): void
}

/** The backend's side of a tunnel. */
export interface BackendTunnelPeer extends TunnelPeer {
  /** Scheme of the endpoint's URL; http includes https. */
  readonly kind: 'http' | 'ws' | 'wss'
}

/** `reset` tells the peer that what it has is not the whole. */
export type CloseMode = 'close' | 'reset'

/** Closes a backend connection that has switched protocols when the client gets no tunnel. */
export function declineTunnel(exchange: Exchange, backend: TunnelPeer): void {
  exchange.target = null
  exchange.targetState = backend.machine.reported
  backend.close('close')
}
