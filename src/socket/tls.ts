/**
 * TLS on top of sockets, seen from above: what a listener or a route is to be secured with (plain data, made by the
 * primary), and how a socket is wrapped. Two implementations, one per socket level.
 */
import type { ByteSocket, ConnectingOwner } from './byte-socket.ts'

export type TlsVersion = 'TLSv1.2' | 'TLSv1.3'

/** A certificate with its chain, leaf first, and its key; both PEM. */
export interface TlsIdentity {
  readonly cert: string
  readonly key: string
}

/** What both sides of TLS agree on. */
export interface TlsTerms {
  readonly minVersion: TlsVersion
  readonly maxVersion: TlsVersion
  /** OpenSSL cipher list, TLS 1.3 suites included; '' takes the default of the gateway. */
  readonly ciphers: string
}

/** How the clients of one listener, or of one of its virtual hosts, are dealt with. */
export interface TlsHost {
  readonly identity: TlsIdentity
  /** `optional`: a certificate is asked for, and one that is shown must be valid. */
  readonly verifyClient: 'none' | 'optional' | 'require'
  /** Certificates (PEM, one each) that client certificates must lead to. */
  readonly ca: readonly string[]
}

export interface TlsServerPlan extends TlsHost, TlsTerms {
  /** Virtual hosts by SNI: exact names in lower case, or `*.` and a domain. The first that fits. */
  readonly hosts: readonly (TlsHost & { readonly names: readonly string[] })[]
  /** 48 bytes, the same in all reactors, so that each resumes the sessions of the others. */
  readonly ticketKeys: Uint8Array
}

export interface TlsClientPlan extends TlsTerms {
  /** Certificates (PEM, one each) that a backend's must lead to; null takes the roots that Node carries. */
  readonly ca: readonly string[] | null
  /** Shown to backends that ask for a certificate. */
  readonly identity: TlsIdentity | null
  /** `none`: any name will do, the chain is checked all the same. */
  readonly hostname: 'strict' | 'none'
}

/** The server's side of a listener. Replaced contexts serve new handshakes; open connections keep theirs. */
export interface TlsServer {
  /** Throws when OpenSSL refuses the plan. Nothing is changed then. */
  replace(plan: TlsServerPlan): void
  /**
   * Wraps a socket just accepted. The owner attached to the answer hears nothing until the handshake is done, or
   * `onHandshakeFailed`; what is written before waits.
   */
  wrap(socket: ByteSocket): ByteSocket
}

/** The client's side of a route. */
export interface TlsClient {
  /** Throws when OpenSSL refuses the plan. Nothing is changed then. */
  replace(plan: TlsClientPlan): void
  /**
   * Starts TLS on a connected socket whose owner reads no more. `host`: name or address that the certificate must be
   * for, sent as SNI where it is a name. `onConnected` or `onHandshakeFailed` follows, never before this returns.
   */
  wrap(socket: ByteSocket, host: string, owner: ConnectingOwner, view: Uint8Array): ByteSocket
}

/** What a socket level offers for TLS; loaded only where a listener or a route needs it. */
export interface TlsLevel {
  server(plan: TlsServerPlan): TlsServer
  client(plan: TlsClientPlan): TlsClient
}
