/**
 * Contracts between the phases of a request. The source side knows a backend only as `Target` and `TargetSide`, the
 * target side knows the client only as `SourceSide`; neither imports the other.
 */
import type { BodySpans } from '../../http1/body.ts'
import type { Head } from '../../http1/head.ts'
import type { TlsFailureKind, Written } from '../../socket/byte-socket.ts'
import type { ConnectionAddresses } from '../../socket/proxy-header.ts'
import type { Exchange } from './exchange.ts'
import type { ReadBuffer } from './read-buffer.ts'
import type { KeptResponse, Outcome } from './outcome.ts'
import type { BackendTunnelPeer } from './tunnel-peer.ts'

/** undefined: the request goes on. A promise holds the request back until it settles. */
export type FilterResult = Outcome | undefined | Promise<Outcome | undefined>

/** One step between routing and the target. The filter chain of an API is an array, built at deployment. */
export interface Filter {
  readonly name: string
  request(exchange: Exchange): FilterResult
}

/** The backends of an API: one endpoint or a group. */
export interface Target {
  readonly name: string
  /** The target reads properties that flows leave (`exchange.mediation`); left out: it reads none. */
  readonly readsState?: true
  /**
   * Takes the exchange: sets `exchange.target` before it returns, or fails it, and responds through `exchange.source`,
   * during the call or later. The request head is valid only during the call.
   */
  send(exchange: Exchange): void
}

/**
 * Body bytes of one read, handed to the other side. One per reactor (`ConnectionContext.part`): the receiver uses it
 * before it returns.
 */
export interface BodyPart {
  /** Offsets of the bytes, of which the first `count` pairs belong to this part. */
  readonly spans: BodySpans
  readonly count: number
  /** First byte in front of the spans that may be overwritten. */
  readonly floor: number
  /** The message is complete with this part. */
  readonly last: boolean
  /** Trailer section, read only when `last`. */
  readonly trailers: Head
  readonly buffer: ReadBuffer
}

/** Target side of an exchange: takes the rest of a request. */
export interface TargetSide {
  /** The target takes no bytes now; `resumeRequest` follows. */
  readonly isBlocked: boolean
  /** Body bytes, or the end of the body. Called once for a request without a body too, with no spans and `last`. */
  requestBody(part: BodyPart): Written
  /** The client takes bytes again: reading may go on. */
  resumeResponse(): void
  /** The exchange is given up: the client is gone, or gets no more. `cause`: for the log, in place of the client. */
  abort(cause?: string): void
  /** The client has sent FIN behind its request: it waits for the response, or has left. May be called again. */
  clientEnded?(): void
}

/**
 * Sort of failure: decides the client's description and the level of the log line. `transport`: base and state say all.
 * `memory`: the gateway has no memory for the message. `descriptors`: no descriptor is left for a connection. `proxy`:
 * the forward proxy refused the request. `peer-certificate`: the certificate of the peer is missing or not accepted.
 * `own-certificate`: the peer misses or refuses ours in the handshake. `handshake`: the TLS handshake failed for
 * another reason. `tls`: TLS failed after its handshake.
 */
export type FailureKind = 'transport' | 'memory' | 'descriptors' | 'proxy' | TlsFailureKind

/** A failed connection to a backend, or a failed response. */
export interface Failure {
  readonly base: number
  /** Documented state number of the target connection, 0 to 8. */
  readonly state: number
  readonly kind: FailureKind
  /** Part of the cause that a client may read: status of the proxy, code of OpenSSL or Node; '' for none. */
  readonly code: string
  /** For the log: errno name, rule, or sentence; may name backends. */
  readonly cause: string
  /** Status of the fault; 0: that of the base code. */
  readonly status: number
}

/** Source side of an exchange: takes the response. */
export interface SourceSide {
  /** The client takes no bytes now; `resumeResponse` follows. */
  readonly isBlocked: boolean
  /** Both ends of the client's connection; null where they are not known any more. */
  readonly addresses: ConnectionAddresses | null
  /** A 1xx head whose first byte is at `at`. */
  interimResponse(head: Head, at: number): void
  /**
   * The final head, whose first byte is at `at`, with a body of that framing. Parts follow. Follows `readConnection`.
   */
  responseHead(head: Head, at: number, framing: number): void
  /** Body bytes, or the end of the body. Called at least once after `responseHead`, with `last`. */
  responseBody(part: BodyPart): Written
  /**
   * A 101 to a requested protocol, whose first byte is at `at`. A tunnel takes the sockets of both sides, unless the
   * client gets another response: then the backend's socket is closed.
   */
  switchProtocols(head: Head, at: number, backend: BackendTunnelPeer): void
  /** The target takes bytes again: reading may go on. */
  resumeRequest(): void
  /** A whole response of the gateway itself; `lines` are response lines, each with its CRLF. */
  sendLocalResponse(status: number, reason: string, lines: string, body: string): void
  /** A response that was composed for an earlier request; date, correlation id and Connection are this one's. */
  sendKeptResponse(response: KeptResponse): void
  /** The target failed: the client gets a fault, or a reset when a response has begun. */
  fail(failure: Failure): void
}
