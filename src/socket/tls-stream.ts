/**
 * TLS for sockets on streams, by Node's `tls`. A TLSSocket reads and writes a stream of our own instead of the TCP
 * socket. It reports the end of TLS and a mere FIN alike, but a FIN alone means that the message was cut short.
 *
 * The server side has no `tls.Server`, which cannot be given a context per connection. So two undocumented members of
 * TLSSocket are used, both as old as the class: the event `_tlsError` and `ssl.verifyError()`.
 */
import { isIP, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { connect, type PeerCertificate, TLSSocket } from 'node:tls'
import {
  type ByteSocket,
  type ConnectingOwner,
  type SocketOwner,
  type TlsFailure,
  WRITE,
  type Written,
} from './byte-socket.ts'
import { serverNameIn } from './client-hello.ts'
import { ignore } from './null-owner.ts'
import { type ConnectionAddresses, connectionAddresses } from './proxy-header.ts'
import { ServedHosts } from './served-hosts.ts'
import { releaseStream, resetStream, StreamSocket } from './stream-socket.ts'
import type { TlsLevel } from './tls.ts'
import { ALPN_PROTOCOL, type ClientContext, type HostContext, type TlsSession } from './tls-contexts.ts'
import { type ListenerTls, tlsLevel } from './tls-level.ts'
import {
  backendCertificateError,
  handshakeAborted,
  handshakeError,
  isTlsCode,
  tlsError,
  TRUNCATED,
} from './tls-errors.ts'

export const streamTls: TlsLevel = tlsLevel(
  (socket, listener, first) => new AcceptedTls(socket, listener, first),
  (socket, context, host, owner, view) => new DialledTls(socket, context, host, owner, view),
)

/** The encrypted side of a TLSSocket: reads from TCP and writes to it. */
class CipherStream extends Duplex {
  readonly #tcp: Socket

  constructor(tcp: Socket) {
    super({ allowHalfOpen: true })
    this.#tcp = tcp
  }

  override _read(): void {
    this.#tcp.resume()
  }

  feed(bytes: Buffer): void {
    if (!this.push(bytes)) this.#tcp.pause()
  }

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#tcp.write(bytes, done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#tcp.end(done)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#tcp.destroy()
    done(error)
  }
}

abstract class TlsStreamSocket extends StreamSocket {
  protected tls: TLSSocket | null = null
  protected readonly cipher: CipherStream
  readonly #tcp: Socket
  /** Written before the handshake was done. */
  #earlyWrites: Uint8Array[] = []

  constructor(socket: ByteSocket) {
    super('HANDSHAKE')
    const tcp = releaseStream(socket, bytes => this.encrypted(bytes))
    this.#tcp = tcp
    this.cipher = new CipherStream(tcp)
    this.cipher.on('error', ignore)
    tcp.on('end', () => this.#awaitEnd())
    tcp.on('error', (error: NodeJS.ErrnoException) => this.#tcpFailed(error.code ?? 'ERROR'))
    tcp.on('close', () => this.#tcpClosed())
  }

  protected override get socket(): Socket {
    return this.tls ?? this.#tcp
  }

  override get remoteAddress(): string {
    return this.#tcp.remoteAddress ?? ''
  }

  override get addresses(): ConnectionAddresses | null {
    const { remoteAddress, remotePort, localAddress, localPort } = this.#tcp
    return connectionAddresses(remoteAddress, remotePort, localAddress, localPort)
  }

  get #isShaking(): boolean {
    return this.state === 'HANDSHAKE' || this.state === 'HANDSHAKE_ENDING'
  }

  protected get isOpen(): boolean {
    return !this.#isShaking && this.state !== 'CLOSED'
  }

  /** The peer's FIN was read. */
  get #hasFin(): boolean {
    return this.#tcp.readableEnded
  }

  /** Takes bytes of TCP. */
  protected encrypted(bytes: Buffer): void {
    this.cipher.feed(bytes)
  }

  /** Why the peer of a finished handshake is not accepted, or null. */
  protected abstract peerFailure(tls: TLSSocket): TlsFailure | null
  /** The handshake is done, and writing is allowed. */
  protected abstract opened(): void

  protected startTls(tls: TLSSocket): void {
    this.tls = tls
    const failed = (error: NodeJS.ErrnoException) => this.#tlsFailed(error.code ?? 'ERR_SSL_UNKNOWN')
    tls.on('error', failed)
    tls.on('_tlsError', failed)
    tls.on('end', () => this.ended())
    tls.on('close', () => this.#tcpFailed('ECONNRESET'))
  }

  // ---- the handshake ----------------------------------------------------------------------------------------------

  protected handshakeDone(): void {
    const tls = this.tls!
    if (!this.#isShaking) return
    const failure = this.peerFailure(tls)
    if (failure !== null) {
      this.refuse(failure)
      return
    }
    const ends = this.state === 'HANDSHAKE_ENDING'
    this.advance('OPEN')
    tls.on('data', (bytes: Buffer) => this.#decrypted(bytes))
    if (!this.queue.isReading) tls.pause()
    this.guarded(() => {
      this.opened()
      for (const bytes of this.#earlyWrites) super.write(bytes)
      this.#earlyWrites = []
      if (ends) super.end()
    })
  }

  /** The handshake has failed, or its peer is not accepted. */
  protected refuse(failure: TlsFailure): void {
    if (this.#isShaking) this.#fail(owner => owner.onTlsFailed(failure))
  }

  #tlsFailed(code: string): void {
    if (this.#isShaking) this.refuse(isTlsCode(code) ? handshakeError(code) : handshakeAborted(code))
    else if (isTlsCode(code)) this.#fail(owner => owner.onTlsFailed(tlsError(code)))
    else this.lost(code)
  }

  #tcpFailed(code: string): void {
    if (this.#isShaking) this.refuse(handshakeAborted(code === 'ECONNRESET' && this.#hasFin ? '' : code))
    else if (!this.queue.hasPendingEnd) this.lost(code)
  }

  /** After the end of both sides nothing is lost, and what came may still have to be read. */
  #tcpClosed(): void {
    if (this.isOpen && this.#hasFin) this.#awaitEnd()
    else this.#tcpFailed('ECONNRESET')
  }

  // ---- reading ----------------------------------------------------------------------------------------------------

  #decrypted(bytes: Buffer): void {
    this.arrived(bytes)
    if (this.#hasFin) this.#awaitEnd()
  }

  /** TCP has ended. By the second turn from now the end of TLS is reported, if it came and the owner reads. */
  #awaitEnd(): void {
    setImmediate(() => setImmediate(() => this.#checkEnd()))
  }

  /** An end of TCP without the end of TLS cuts short what came before it (D34). */
  #checkEnd(): void {
    if (this.#isShaking) this.refuse(handshakeAborted(''))
    const { tls } = this
    if (!this.isOpen || tls === null || tls.readableEnded || this.queue.hasPendingEnd) return
    const isRead = this.queue.isClear && this.cipher.readableLength === 0 && tls.readableLength === 0
    if (isRead) this.lost(TRUNCATED)
  }

  override setReading(on: boolean): void {
    super.setReading(on)
    if (on && this.#hasFin) this.#awaitEnd()
  }

  override resume(): void {
    if (this.isOpen) super.resume()
    if (this.#hasFin) this.#awaitEnd()
  }

  // ---- writing and ending -----------------------------------------------------------------------------------------

  /** Bytes are encrypted when it returns, so the memory of the owner is never held. */
  override write(bytes: Uint8Array): Written {
    if (this.isOpen) return super.write(bytes)
    if (this.state !== 'HANDSHAKE') return WRITE.FAILED
    this.#earlyWrites.push(new Uint8Array(bytes))
    return WRITE.PENDING
  }

  override end(): void {
    if (this.isOpen) super.end()
    else if (this.state === 'HANDSHAKE') this.advance('END')
  }

  /** An open connection ends as TLS does, so that what the peer has looks whole to it; unless something still waits. */
  override destroy(): void {
    const { tls, isOpen } = this
    this.detach()
    if (isOpen && tls?.writable === true && tls.writableLength === 0) tls.destroySoon()
    else this.#destroyStreams()
  }

  override reset(): void {
    this.detach()
    resetStream(this.#tcp)
  }

  #destroyStreams(): void {
    this.tls?.destroy()
    this.cipher.destroy()
  }

  protected override lost(code: string): void {
    this.#fail(owner => owner.onLost(code))
  }

  /** Closes the socket, and tells its owner why. */
  #fail(tell: (owner: SocketOwner) => void): void {
    if (this.state === 'CLOSED') return
    this.guarded(owner => {
      this.detach()
      this.#destroyStreams()
      tell(owner)
    })
  }
}

class AcceptedTls extends TlsStreamSocket {
  readonly #hosts: ServedHosts
  #hello: Buffer = Buffer.alloc(0)
  readonly #first: Buffer

  constructor(socket: ByteSocket, listener: ListenerTls, first: Uint8Array) {
    super(socket)
    this.#first = Buffer.from(first)
    this.#hosts = new ServedHosts(listener)
  }

  override attach(owner: SocketOwner, view: Uint8Array): void {
    const isFirst = !this.hasOwner
    super.attach(owner, view)
    if (!isFirst) return
    const { host } = this.#hosts
    if (host !== null && this.tls === null) this.#accept(host)
    if (this.#first.length > 0) this.encrypted(this.#first)
  }

  override serves(authority: string): boolean {
    return this.#hosts.serves(authority)
  }

  override get peerThumbprint(): string {
    return this.#hosts.clientThumbprint
  }

  protected override encrypted(bytes: Buffer): void {
    if (this.tls !== null) {
      super.encrypted(bytes)
      return
    }
    this.#hello = Buffer.concat([this.#hello, bytes])
    const name = serverNameIn(this.#hello)
    if (name === null) return
    this.#accept(this.#hosts.choose(name))
    super.encrypted(this.#hello)
  }

  #accept(host: HostContext): void {
    const tls = new TLSSocket(this.cipher, {
      isServer: true,
      secureContext: host.context,
      requestCert: host.verifyClient !== 'none',
      rejectUnauthorized: host.verifyClient === 'require',
      ALPNProtocols: [ALPN_PROTOCOL],
    })
    tls.on('secure', () => this.handshakeDone())
    this.startTls(tls)
  }

  protected override peerFailure(tls: TLSSocket): TlsFailure | null {
    return this.#hosts.checkClient(certificateOf(tls), chainErrorOf(tls))
  }

  protected override opened(): void {}
}

function certificateOf(tls: TLSSocket): PeerCertificate | null {
  const certificate = tls.getPeerCertificate()
  return certificate?.subject === undefined ? null : certificate
}

function chainErrorOf(tls: TLSSocket): string {
  const { ssl } = tls as TLSSocket & { readonly ssl: { verifyError(): NodeJS.ErrnoException | null } }
  return ssl.verifyError()?.code ?? ''
}

class DialledTls extends TlsStreamSocket {
  readonly #context: ClientContext
  readonly #host: string
  readonly #offered: TlsSession | null
  #certificate: PeerCertificate | null = null

  constructor(socket: ByteSocket, context: ClientContext, host: string, owner: ConnectingOwner, view: Uint8Array) {
    super(socket)
    this.#context = context
    this.#host = host.startsWith('[') ? host.slice(1, -1) : host
    super.attach(owner, view)
    const offered = context.takeSession(this.#host)
    this.#offered = offered
    const tls = connect({
      socket: this.cipher,
      secureContext: context.context,
      host: this.#host,
      ...(isIP(this.#host) === 0 ? { servername: this.#host } : {}),
      ...(offered === null ? {} : { session: offered.session }),
      ALPNProtocols: [ALPN_PROTOCOL],
      // Chain and name are checked below, for resumed sessions too.
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
    })
    tls.on('secureConnect', () => this.handshakeDone())
    // TLS 1.2 reports its session too once the connection is made.
    tls.on('session', (session: Buffer) => {
      const certificate = this.#certificate
      if (this.isOpen && certificate !== null) context.storeSession(this.#host, { session, certificate })
    })
    this.startTls(tls)
  }

  protected override peerFailure(tls: TLSSocket): TlsFailure | null {
    const error: unknown = tls.authorizationError
    this.#certificate = tls.isSessionReused() ? (this.#offered?.certificate ?? null) : certificateOf(tls)
    return backendCertificateError(this.#context.plan, this.#host, this.#certificate, error ? String(error) : '')
  }

  protected override opened(): void {
    const owner = this.owner as ConnectingOwner
    owner.onConnected()
  }
}
