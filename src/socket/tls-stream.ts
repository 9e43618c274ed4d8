/**
 * TLS for sockets on streams, by Node's `tls`. What a TLSSocket reads and writes goes through a stream of ours instead
 * of the TCP socket itself: a TLSSocket tells the end of TLS and a mere FIN alike, and the second cuts a message short.
 *
 * On the server's side there is no `tls.Server`, which could not be told which context to take. So two members of
 * TLSSocket are used that are not documented but as old as the class: the event `_tlsError` and `ssl.verifyError()`.
 */
import { isIP, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { connect, type PeerCertificate, TLSSocket } from 'node:tls'
import { type ByteSocket, type ConnectingOwner, type SocketOwner, WRITE, type Written } from './byte-socket.ts'
import { serverNameIn } from './client-hello.ts'
import { ignore } from './nobody.ts'
import { releaseStream, resetStream, StreamSocket } from './stream-socket.ts'
import { ServedHosts, type TermsInForce } from './served-hosts.ts'
import type { TlsLevel } from './tls.ts'
import { APPLICATION_PROTOCOL, type ClientContext, type HostContext, type KeptSession } from './tls-contexts.ts'
import { tlsLevel } from './tls-level.ts'
import {
  backendFault,
  brokenOffFault,
  clientFault,
  handshakeFault,
  lossOf,
  thumbprintOf,
  TRUNCATED,
} from './tls-verdict.ts'

export const streamTls: TlsLevel = tlsLevel(
  (socket, listener) => new AcceptedTls(socket, listener),
  (socket, context, host, owner, view) => new DialledTls(socket, context, host, owner, view),
)

/** The encrypted side: what TCP brings, and what goes out. */
class Cipher extends Duplex {
  /** Encrypted bytes that the kernel has not taken. */
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

type Stage = 'handshake' | 'open' | 'closed'

abstract class TlsStreamSocket extends StreamSocket {
  protected tls: TLSSocket | null = null
  protected readonly cipher: Cipher
  protected stage: Stage = 'handshake'
  readonly #tcp: Socket
  /** Written before the handshake was done. */
  #early: Uint8Array[] = []
  #endsEarly = false
  #hasFin = false

  constructor(socket: ByteSocket) {
    super()
    const tcp = releaseStream(socket, bytes => this.encrypted(bytes))
    this.#tcp = tcp
    this.cipher = new Cipher(tcp)
    this.cipher.on('error', ignore)
    tcp.on('end', () => this.#finished())
    tcp.on('error', (error: NodeJS.ErrnoException) => this.#broken(error.code ?? 'ERROR'))
    tcp.on('close', () => this.#gone())
  }

  protected override get socket(): Socket {
    return this.tls ?? this.#tcp
  }

  override get remoteAddress(): string {
    return this.#tcp.remoteAddress ?? ''
  }

  /** Bytes of TCP. */
  protected encrypted(bytes: Buffer): void {
    this.cipher.feed(bytes)
  }

  protected abstract fault(tls: TLSSocket): string | null
  protected abstract opened(): void

  protected secure(tls: TLSSocket): void {
    this.tls = tls
    const failed = (error: NodeJS.ErrnoException) => {
      const code = error.code ?? 'ERR_SSL_UNKNOWN'
      if (this.stage === 'handshake')
        this.refuse(code.startsWith('ERR_SSL') ? handshakeFault(code) : brokenOffFault(code))
      else this.lost(lossOf(code))
    }
    tls.on('error', failed)
    tls.on('_tlsError', failed)
    tls.on('end', () => this.ended())
    tls.on('close', () => this.#broken('ECONNRESET'))
  }

  // ---- the handshake ----------------------------------------------------------------------------------------------

  protected shaken(): void {
    const tls = this.tls!
    if (this.stage !== 'handshake') return
    const fault = this.fault(tls)
    if (fault !== null) {
      this.refuse(fault)
      return
    }
    this.stage = 'open'
    tls.on('data', (bytes: Buffer) => this.#decrypted(bytes))
    if (!this.backlog.isReading) tls.pause()
    this.guarded(() => {
      this.opened()
      for (const bytes of this.#early) super.write(bytes)
      this.#early = []
      if (this.#endsEarly) super.end()
    })
  }

  protected refuse(cause: string): void {
    if (this.stage !== 'handshake' || this.isClosed) return
    this.guarded(owner => {
      this.#drop()
      owner.onHandshakeFailed(cause)
    })
  }

  #broken(code: string): void {
    if (this.stage === 'handshake') this.refuse(brokenOffFault(code === 'ECONNRESET' && this.#hasFin ? '' : code))
    else if (!this.backlog.owesEnd) this.lost(code)
  }

  /** TCP is gone. After the end of both sides that is in order, and what came may still have to be read. */
  #gone(): void {
    if (this.stage === 'open' && this.#hasFin) this.#awaitEnd()
    else this.#broken('ECONNRESET')
  }

  // ---- reading ----------------------------------------------------------------------------------------------------

  #decrypted(bytes: Buffer): void {
    this.arrived(bytes)
    if (this.#hasFin) this.#awaitEnd()
  }

  /** TCP has ended. Unless TLS has as well, by what came before, it was cut short. */
  #finished(): void {
    this.#hasFin = true
    this.#awaitEnd()
  }

  /** By the second turn from now the end of TLS was told, if it came and the owner reads. */
  #awaitEnd(): void {
    setImmediate(() => setImmediate(() => this.#judgeEnd()))
  }

  #judgeEnd(): void {
    if (this.stage === 'handshake') this.refuse(brokenOffFault(''))
    const { tls } = this
    if (this.stage !== 'open' || tls === null || tls.readableEnded || this.backlog.owesEnd) return
    const isRead = this.backlog.isClear && this.cipher.readableLength === 0 && tls.readableLength === 0
    if (isRead) this.lost(TRUNCATED)
  }

  override setReading(on: boolean): void {
    super.setReading(on)
    if (on && this.#hasFin) this.#awaitEnd()
  }

  override resume(): void {
    if (this.stage === 'open') super.resume()
    if (this.#hasFin) this.#awaitEnd()
  }

  // ---- writing and ending -----------------------------------------------------------------------------------------

  override write(bytes: Uint8Array): Written {
    if (this.stage === 'closed' || this.#endsEarly) return WRITE.FAILED
    // Encrypted when it returns: the memory of the owner is never held.
    if (this.stage === 'open') return super.write(bytes)
    this.#early.push(new Uint8Array(bytes))
    return WRITE.PENDING
  }

  override end(): void {
    if (this.stage === 'open') super.end()
    else this.#endsEarly = true
  }

  /** An open connection ends as TLS does, so that what the peer has looks whole to it; unless something still waits. */
  override destroy(): void {
    const { tls, stage } = this
    this.detach()
    if (stage === 'open' && tls?.writable === true && tls.writableLength === 0) tls.destroySoon()
    else this.#drop()
  }

  override reset(): void {
    this.detach()
    resetStream(this.#tcp)
  }

  protected override detach(): void {
    super.detach()
    this.stage = 'closed'
  }

  #drop(): void {
    this.detach()
    this.tls?.destroy()
    this.cipher.destroy()
  }

  protected override lost(code: string): void {
    if (this.isClosed) return
    this.guarded(owner => {
      this.#drop()
      owner.onLost(code)
    })
  }
}

class AcceptedTls extends TlsStreamSocket {
  readonly #hosts: ServedHosts
  #host: HostContext | null
  /** Null until somebody asks. */
  #thumbprint: string | null = null
  #hello: Buffer = Buffer.alloc(0)

  constructor(socket: ByteSocket, listener: TermsInForce) {
    super(socket)
    this.#hosts = new ServedHosts(listener)
    this.#host = this.#hosts.only
  }

  override attach(owner: SocketOwner, view: Uint8Array): void {
    super.attach(owner, view)
    if (this.#host !== null && this.tls === null) this.#accept(this.#host)
  }

  override serves(authority: string): boolean {
    return this.#hosts.serves(authority)
  }

  override get peerThumbprint(): string {
    // What a client shows that was not asked is not looked at.
    const isVerified = this.stage === 'open' && this.#host!.verifyClient !== 'none'
    this.#thumbprint ??= isVerified ? thumbprintOf(certificateOf(this.tls!)) : ''
    return this.#thumbprint
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
    this.#host = host
    const tls = new TLSSocket(this.cipher, {
      isServer: true,
      secureContext: host.context,
      requestCert: host.verifyClient !== 'none',
      rejectUnauthorized: host.verifyClient === 'require',
      ALPNProtocols: [APPLICATION_PROTOCOL],
    })
    tls.on('secure', () => this.shaken())
    this.secure(tls)
  }

  protected override fault(tls: TLSSocket): string | null {
    const { verifyClient } = this.#host!
    if (verifyClient === 'none') return null
    const { ssl } = tls as TLSSocket & { readonly ssl: { verifyError(): NodeJS.ErrnoException | null } }
    return clientFault(verifyClient, { certificate: certificateOf(tls), chainError: ssl.verifyError()?.code ?? '' })
  }

  protected override opened(): void {}
}

function certificateOf(tls: TLSSocket): PeerCertificate | null {
  const certificate = tls.getPeerCertificate()
  return certificate?.subject === undefined ? null : certificate
}

class DialledTls extends TlsStreamSocket {
  readonly #context: ClientContext
  readonly #host: string
  readonly #offered: KeptSession | null
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
      ALPNProtocols: [APPLICATION_PROTOCOL],
      // Chain and name are judged below, for resumed sessions too.
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
    })
    tls.on('secureConnect', () => this.shaken())
    // Told of TLS 1.2 too once the connection is made.
    tls.on('session', (session: Buffer) => {
      const certificate = this.#certificate
      if (this.stage === 'open' && certificate !== null) context.keepSession(this.#host, { session, certificate })
    })
    this.secure(tls)
  }

  protected override fault(tls: TLSSocket): string | null {
    const error: unknown = tls.authorizationError
    this.#certificate = tls.isSessionReused() ? (this.#offered?.certificate ?? null) : certificateOf(tls)
    const facts = { certificate: this.#certificate, chainError: error ? String(error) : '' }
    return backendFault(this.#context.plan, this.#host, facts)
  }

  protected override opened(): void {
    const owner = this.owner as ConnectingOwner
    owner.onConnected()
  }
}
