/** TLS for sockets on handles: the context of each handshake, and the check of its peer. */
import { isIP } from 'node:net'
import type { PeerCertificate } from 'node:tls'
import { getSystemErrorName } from 'node:util'
import type { ConnectingOwner, SocketOwner, TlsFailure } from './byte-socket.ts'
import { HELLO_MAX, serverNameIn } from './client-hello.ts'
import { releaseHandle, type TcpHandle } from './handle-socket.ts'
import { ServedHosts } from './served-hosts.ts'
import type { TlsLevel } from './tls.ts'
import { ALPN_PROTOCOL, type ClientContext, type HostContext, type TlsSession } from './tls-contexts.ts'
import { backendCertificateError, handshakeAborted } from './tls-errors.ts'
import { TlsHandleSocket } from './tls-handle-socket.ts'
import { type ListenerTls, tlsLevel } from './tls-level.ts'
import { bindings, type TlsHandle, wrapHandle } from './tls-wrap.ts'

/** A list of names, each behind its length (RFC 7301 3.1). */
const PROTOCOLS = Buffer.from(`${String.fromCharCode(ALPN_PROTOCOL.length)}${ALPN_PROTOCOL}`)
/** Read buffer for a ClientHello whose name selects the context. */
const HELLO = new Uint8Array(HELLO_MAX)

export function handleTls(): TlsLevel {
  return tlsLevel(
    (socket, listener, first) => new AcceptedTls(releaseHandle(socket), listener, first),
    (socket, context, host, owner, view) => new DialledTls(releaseHandle(socket), context, host, owner, view),
  )
}

function certificateOf(tls: TlsHandle): PeerCertificate | null {
  return (tls.getPeerCertificate() as PeerCertificate | undefined) ?? null
}

function chainErrorOf(tls: TlsHandle): string {
  return tls.verifyError()?.code ?? ''
}

function onhello(this: TcpHandle): undefined {
  const socket = this.socket as AcceptedTls
  try {
    socket.hello(bindings.streamState[bindings.readResult]!)
  } catch (error) {
    socket.owner.onError(error)
  }
}

class AcceptedTls extends TlsHandleSocket {
  readonly #hosts: ServedHosts
  #hello: Uint8Array = HELLO.subarray(0, 0)
  readonly #first: Uint8Array

  constructor(tcp: TcpHandle, listener: ListenerTls, first: Uint8Array) {
    super(tcp)
    this.#hosts = new ServedHosts(listener)
    this.#first = first
  }

  override attach(owner: SocketOwner, view: Uint8Array): void {
    const isFirst = this.tls === null
    super.attach(owner, view)
    if (!isFirst || this.isClosed) return
    const { host } = this.#hosts
    if (host !== null) this.#accept(host)
    else {
      this.tcp.onread = onhello
      this.tcp.useUserBuffer(HELLO)
      this.tcp.readStart()
    }
    // Not inside a call of the owner's own, and before any further read.
    if (this.#first.length > 0) queueMicrotask(() => this.#receiveFirst())
  }

  #receiveFirst(): void {
    if (this.isClosed) return
    try {
      if (this.tls === null) this.#collect(this.#first)
      else this.tls.receive(this.#first)
    } catch (error) {
      this.owner.onError(error)
    }
  }

  override serves(authority: string): boolean {
    return this.#hosts.serves(authority)
  }

  override get peerThumbprint(): string {
    return this.#hosts.clientThumbprint
  }

  /** Collects the first bytes of the client until they hold the name of the host (SNI). */
  hello(result: number): void {
    if (this.isClosed) return
    if (result < 0) {
      this.refuse(handshakeAborted(result === bindings.endOfFile ? '' : getSystemErrorName(result)))
      return
    }
    this.#collect(HELLO.subarray(0, result))
  }

  #collect(bytes: Uint8Array): void {
    this.#hello = Buffer.concat([this.#hello, bytes])
    const name = serverNameIn(this.#hello)
    if (name === null) return
    const hello = this.#hello
    this.#hello = HELLO.subarray(0, 0)
    this.#accept(this.#hosts.choose(name))
    this.tls!.receive(hello)
  }

  #accept(host: HostContext): void {
    const tls = wrapHandle(this.tcp, host.context.context, 'server')
    if (host.verifyClient !== 'none') tls.setVerifyMode(true, host.verifyClient === 'require')
    tls.setALPNProtocols(PROTOCOLS)
    this.startTls(tls)
  }

  protected override peerFailure(tls: TlsHandle): TlsFailure | null {
    return this.#hosts.checkClient(certificateOf(tls), chainErrorOf(tls))
  }

  protected override opened(): void {}
}

function onnewsession(this: TlsHandle, _id: Buffer, session: Buffer): void {
  const socket = this.socket as DialledTls
  socket.storeSession(session)
}

function start(socket: DialledTls): void {
  socket.start()
}

class DialledTls extends TlsHandleSocket {
  readonly #context: ClientContext
  readonly #host: string
  readonly #offered: TlsSession | null
  #certificate: PeerCertificate | null = null
  /** A session of TLS 1.2 that came before the peer was checked. */
  #session: Buffer | null = null

  constructor(tcp: TcpHandle, context: ClientContext, host: string, owner: ConnectingOwner, view: Uint8Array) {
    super(tcp)
    this.#context = context
    this.#host = host.startsWith('[') ? host.slice(1, -1) : host
    this.#offered = context.takeSession(this.#host)
    super.attach(owner, view)
    // From here on no byte of the peer is taken for plain text.
    this.startTls(this.#newHandle())
    // A failure must not be reported before this returns.
    process.nextTick(start, this)
  }

  #newHandle(): TlsHandle {
    const tls = wrapHandle(this.tcp, this.#context.context.context, 'client')
    if (isIP(this.#host) === 0) tls.setServername(this.#host)
    tls.setALPNProtocols(PROTOCOLS)
    tls.onnewsession = onnewsession
    tls.enableSessionCallbacks()
    if (this.#offered !== null) tls.setSession(this.#offered.session)
    return tls
  }

  start(): void {
    if (!this.isClosed) this.tls!.start()
  }

  storeSession(session: Buffer): void {
    if (!this.isOpen) this.#session = session
    else if (this.#certificate !== null) {
      this.#context.storeSession(this.#host, { session, certificate: this.#certificate })
    }
  }

  protected override peerFailure(tls: TlsHandle): TlsFailure | null {
    const resumed = tls.isSessionReused() ? this.#offered : null
    this.#certificate = resumed?.certificate ?? certificateOf(tls)
    return backendCertificateError(this.#context.plan, this.#host, this.#certificate, chainErrorOf(tls))
  }

  protected override opened(): void {
    const session = this.#session
    this.#session = null
    if (session !== null) this.storeSession(session)
    const owner = this.owner as ConnectingOwner
    owner.onConnected()
  }
}
