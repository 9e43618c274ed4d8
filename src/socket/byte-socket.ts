/**
 * Contract of a socket level: sockets and their owners, dialling, listening. Two levels implement it: libuv handles
 * (fast, internals of Node) and public streams. A socket reads into a view that its owner chooses, so that bytes are
 * parsed where they land.
 */

import type { ListenOptions as NodeListenOptions, Server } from 'node:net'
import type { ConnectionAddresses } from './proxy-header.ts'

/** How TLS failed; `FailureKind` of proxy/exchange/contract.ts describes each kind. */
export type TlsFailureKind = 'peer-certificate' | 'own-certificate' | 'handshake' | 'tls'

/** A failure of TLS, worded for the operator. */
export interface TlsFailure {
  readonly kind: TlsFailureKind
  /** Code of OpenSSL or Node, '' without one. Holds no name of a peer, so a client may read it. */
  readonly code: string
  /** For the log: what is wrong, with names and dates of certificates. */
  readonly cause: string
}

/** The connection behind a socket. The event loop makes every call, never a call of the owner's own. */
export interface SocketOwner {
  /**
   * `length` bytes were read into the current view. Returns the view for the next read, or undefined to keep the
   * current one. The bytes are the owner's only until it returns, unless it keeps the memory to itself.
   */
  onBytes(length: number): Uint8Array | undefined
  /** The peer sends no more (FIN). Writing may go on. */
  onEnd(): void
  /**
   * The connection is lost and the socket is closed. `code` is an errno name, or `ERR_TLS_TRUNCATED` for an end of TCP
   * without the end of TLS.
   */
  onLost(code: string): void
  /**
   * TLS failed and the socket is closed: in the handshake, so that there was never a connection, or (kind `tls`) after
   * it. Never called for a socket without TLS.
   */
  onTlsFailed(failure: TlsFailure): void
  /**
   * A pending write failed, and none will succeed. What the peer sent before may still be read; the owner closes the
   * socket. The streams level reports this as `onLost`.
   */
  onWriteFailed(code: string): void
  /** Bytes of a gathered write, for which `write` has returned DONE, wait for the peer; `onDrained` follows. */
  onBlocked(): void
  /** Every pending write has left. */
  onDrained(): void
  /** A callback of the owner threw. This connection alone is given up for it, not the thread with all the others. */
  onError(error: unknown): void
}

/** The owner of a socket that is being connected. */
export interface ConnectingOwner extends SocketOwner {
  onConnected(): void
}

/** Results of `write`. */
export const WRITE = {
  /** All bytes are with the kernel, or gathered; their memory is free. */
  DONE: 0,
  /** Some bytes wait; their memory must stay untouched until `onDrained`. */
  PENDING: 1,
  /** The write failed as a whole. No callback follows; bytes of the peer may still be read. */
  FAILED: 2,
} as const
export type Written = (typeof WRITE)[keyof typeof WRITE]

export interface ByteSocket {
  /** Numeric address of the peer, '' when the peer is gone already. */
  readonly remoteAddress: string
  /** Both ends of the TCP connection; null when the peer is gone already. */
  readonly addresses: ConnectionAddresses | null
  /**
   * Hands the socket to an owner and starts reading into `view`; replaces the owner before. An owner that is replaced
   * inside its `onBytes` returns there what the new owner returns for the bytes that it has taken, or undefined.
   */
  attach(owner: SocketOwner, view: Uint8Array): void
  /**
   * True if requests for this authority (as in Host) may come over the connection: not where TLS asks clients of that
   * host for other certificates than it did here. For accepted sockets, once there are bytes.
   */
  serves(authority: string): boolean
  /**
   * SHA-256 of the verified certificate of the peer, in this handshake or the one that it resumes, as base64url
   * (RFC 8705 3.1); '' without one. For accepted sockets, once there are bytes.
   */
  readonly peerThumbprint: string
  /**
   * `gathers`: the bytes may wait, in memory of the socket, until this turn of the event loop ends. They leave before
   * the owner hears anything else, and before any other write or end. If they cannot, `onBlocked` or `onWriteFailed`
   * follows. Only the handles level without TLS gathers (D183).
   */
  write(bytes: Uint8Array, gathers?: boolean): Written
  /** Starts or stops reading; a repeated call changes nothing. While stopped, `onBytes` is not called. */
  setReading(on: boolean): void
  /** Sends FIN behind the pending writes. */
  end(): void
  /** Closes; nothing is called back afterwards. */
  destroy(): void
  /** Closes with RST, so that the peer cannot take what it has for the whole. */
  reset(): void
}

/** Opens connections; one per level. */
export interface Dialer {
  /** Connects to a numeric address. `onConnected` or `onLost` follows, never before this returns. */
  dial(address: string, port: number, owner: ConnectingOwner, view: Uint8Array): ByteSocket
}

/** A listening socket: its port, and how to stop it. */
export interface Listening {
  readonly port: number
  /** Descriptor of the socket, for another process; negative where the system has none. */
  readonly fd: number
  /** Stops accepting; open connections go on. */
  close(): void
}

export interface ListenOptions {
  /** Numeric address, or '' for all. */
  readonly host: string
  readonly port: number
  readonly reusePort: boolean
  /** A socket that listens already, from another process. Left out: NEW_SOCKET. */
  readonly fd?: number | undefined
}

export const NEW_SOCKET = -1

/** Descriptor of a listening server; negative where the system has none. */
export function descriptorOf(server: Server): number {
  const { _handle: handle } = server as unknown as { readonly _handle: { readonly fd: number } | null }
  return handle?.fd ?? NEW_SOCKET
}

/** Address that Node listens on. */
export function listenTarget(
  { host, port, reusePort, fd = NEW_SOCKET }: ListenOptions,
  backlog: number,
): NodeListenOptions {
  if (fd !== NEW_SOCKET) return { fd, backlog } as NodeListenOptions
  return { port, ...(host === '' ? {} : { host }), backlog, reusePort }
}

/** True if an error says that the process, or the system, has no descriptor left; it says nothing about the peer. */
export function lacksDescriptor(code: string): boolean {
  return code === 'EMFILE' || code === 'ENFILE'
}

/** Listening and dialling at one level. */
export interface SocketLevel extends Dialer {
  readonly name: 'handles' | 'streams'
  listen(options: ListenOptions, onConnection: (socket: ByteSocket) => void): Promise<Listening>
}
