/**
 * What a connection needs of a socket, and no more. Two implementations: libuv handles (fast; internals of Node) and
 * public streams. Bytes are read into a view that the owner chooses, so that they can be parsed where they land.
 */

/** The connection behind a socket. Every call is made from the event loop, never from inside a call of ours. */
export interface SocketOwner {
  /**
   * `length` bytes were read into the view in force. Answers the view for the next read, or undefined to keep the one
   * in force. The bytes are the owner's only until it returns, unless it keeps the memory to itself.
   */
  onBytes(length: number): Uint8Array | undefined
  /** The peer will send no more (FIN). Writing may go on. */
  onEnd(): void
  /**
   * The connection is lost. `code` is an errno name, or under TLS one of OpenSSL's, or that of an end which cut short
   * what came before. The socket is closed already.
   */
  onLost(code: string): void
  /**
   * The TLS handshake failed, so there was never a connection. `cause` says what was wrong, with the certificate if it
   * was that. The socket is closed already. Never called for a socket without TLS.
   */
  onHandshakeFailed(cause: string): void
  /**
   * A pending write failed, and none will succeed. What the peer sent before may still be read; the owner closes the
   * socket. Streams report this as `onLost`.
   */
  onWriteFailed(code: string): void
  /** Every pending write has left. */
  onDrained(): void
  /** One of these calls threw. Only this connection is given up for it, not the thread with all the others. */
  onBug(error: unknown): void
}

/** The owner of a socket that is being connected. */
export interface ConnectingOwner extends SocketOwner {
  onConnected(): void
}

/** Answers of `write`. */
export const WRITE = {
  /** All bytes are with the kernel; their memory is free. */
  DONE: 0,
  /** Some bytes wait; their memory must stay untouched until `onDrained`. */
  PENDING: 1,
  /** Nothing of this was written and nothing will be. No callback follows; what the peer sent may still be read. */
  FAILED: 2,
} as const
export type Written = (typeof WRITE)[keyof typeof WRITE]

export interface ByteSocket {
  /** Numeric address of the peer, '' when it is gone already. */
  readonly remoteAddress: string
  /**
   * Takes the socket into use and starts reading into `view`; of a dialled one, in place of the owner it had. An owner
   * that is replaced inside its `onBytes` answers undefined there.
   */
  attach(owner: SocketOwner, view: Uint8Array): void
  /**
   * Whether requests for this authority, as Host has it, may come over the connection: not where TLS asks clients of
   * that host for other certificates than it did here. Of accepted sockets, once there are bytes.
   */
  serves(authority: string): boolean
  /**
   * SHA-256 of the certificate that the peer has shown and that was verified, as base64url (RFC 8705 3.1), in this
   * handshake or the one that it resumes; '' without one. Of accepted sockets, once there are bytes.
   */
  readonly peerThumbprint: string
  write(bytes: Uint8Array): Written
  /** Starts or stops reading; nothing changes when it is so already. While stopped, `onBytes` is not called. */
  setReading(on: boolean): void
  /** Sends FIN behind what is pending. */
  end(): void
  /** Closes; nothing is called back afterwards. */
  destroy(): void
  /** Closes with RST, so that the peer cannot take what it has for the whole. */
  reset(): void
}

/** Opens connections; one per implementation. */
export interface Dialer {
  /** Connects to a numeric address. `onConnected` or `onLost` follows, never before this returns. */
  dial(address: string, port: number, owner: ConnectingOwner, view: Uint8Array): ByteSocket
}

/** Where a listener stands, and how to stop it. */
export interface Listening {
  readonly port: number
  /** Accepts nothing more; open connections go on. */
  close(): void
}

export interface ListenOptions {
  /** Numeric address, or '' for all. */
  readonly host: string
  readonly port: number
  readonly reusePort: boolean
}

/** What a runtime offers to connections: listening and dialling at one level. */
export interface SocketLevel extends Dialer {
  readonly name: 'handles' | 'streams'
  listen(options: ListenOptions, onConnection: (socket: ByteSocket) => void): Promise<Listening>
}
