/**
 * Contract of TLS on top of sockets: the plans of listeners and routes (plain data, made by the primary), and the
 * wrapping of a socket, which each socket level implements.
 */
import type { CacheUsage } from '../runtime/cache-usage.ts'
import type { ByteSocket, ConnectingOwner } from './byte-socket.ts'

export type TlsVersion = 'TLSv1.2' | 'TLSv1.3'

/** A certificate with its chain, leaf first, and its key; both PEM. */
export interface TlsIdentity {
  readonly cert: string
  readonly key: string
}

/** Versions and ciphers, of clients and servers. */
export interface TlsProtocolSettings {
  readonly minVersion: TlsVersion
  readonly maxVersion: TlsVersion
  /** OpenSSL cipher list, TLS 1.3 suites included; '' means the default of the gateway. */
  readonly ciphers: string
}

/** A listener, or one of its virtual hosts: certificate, and verification of clients. */
export interface TlsHost {
  readonly identity: TlsIdentity
  /** `optional`: clients are asked for a certificate, and a certificate that they show must be valid. */
  readonly verifyClient: 'none' | 'optional' | 'require'
  /** Trusted certificates (PEM, one each) for the chains of clients. */
  readonly ca: readonly string[]
}

export interface TlsServerPlan extends TlsHost, TlsProtocolSettings {
  /** Virtual hosts by SNI: exact names in lower case, or `*.` and a domain. The first match counts. */
  readonly hosts: readonly (TlsHost & { readonly names: readonly string[] })[]
  /** 48 bytes, equal in all reactors, so that each resumes the sessions of the others. */
  readonly ticketKeys: Uint8Array
}

export interface TlsClientPlan extends TlsProtocolSettings {
  /** Trusted certificates (PEM, one each) for the chains of backends; null: Node's own roots. */
  readonly ca: readonly string[] | null
  /** Shown to backends that ask for a certificate. */
  readonly identity: TlsIdentity | null
  /** `none`: names are not checked; chains are. */
  readonly hostname: 'strict' | 'none'
}

/** TLS of a listener. Replaced contexts serve new handshakes; open connections keep theirs. */
export interface TlsServer {
  /** Throws when OpenSSL refuses the plan; the old contexts stay then. */
  replace(plan: TlsServerPlan): void
  /**
   * Wraps an accepted socket. The owner attached to the result hears nothing until the handshake is done, or
   * `onTlsFailed`; earlier writes wait. `first`: bytes of the client that were read already; the memory is kept.
   */
  wrap(socket: ByteSocket, first?: Uint8Array): ByteSocket
}

/** TLS of a route to backends. */
export interface TlsClient {
  /** Throws when OpenSSL refuses the plan; the old contexts stay then. */
  replace(plan: TlsClientPlan): void
  /** Usage of the cache of sessions. */
  usage(): CacheUsage
  /**
   * Starts TLS on a connected socket whose owner reads no more. `host`: name or address that the certificate must be
   * for; a name is sent as SNI. `onConnected` or `onTlsFailed` follows, never before this returns.
   */
  wrap(socket: ByteSocket, host: string, owner: ConnectingOwner, view: Uint8Array): ByteSocket
}

/** TLS of a socket level; loaded only where a listener or a route needs it. */
export interface TlsLevel {
  server(plan: TlsServerPlan): TlsServer
  client(plan: TlsClientPlan): TlsClient
}
