/** TLS for sockets on handles: who is wrapped with which context, and what is asked of the peer. */
import { isIP } from 'node:net'
import type { PeerCertificate } from 'node:tls'
import { getSystemErrorName } from 'node:util'
import type { ConnectingOwner, SocketOwner } from './byte-socket.ts'
import { HELLO_MAX, serverNameIn } from './client-hello.ts'
import { releaseHandle, type TcpHandle } from './handle-socket.ts'
import { ServedHosts, type TermsInForce } from './served-hosts.ts'
import type { TlsLevel } from './tls.ts'
import { APPLICATION_PROTOCOL, type ClientContext, type HostContext, type KeptSession } from './tls-contexts.ts'
import { TlsHandleSocket } from './tls-handle-socket.ts'
import { tlsLevel } from './tls-level.ts'
import { backendFault, brokenOffFault, clientFault, thumbprintOf } from './tls-verdict.ts'
import { bindings, type TlsHandle, wrapHandle } from './tls-wrap.ts'

/** A list of names, each behind its length (RFC 7301 3.1). */
const PROTOCOLS = Buffer.from(`${String.fromCharCode(APPLICATION_PROTOCOL.length)}${APPLICATION_PROTOCOL}`)
/** Where a ClientHello lands whose name decides about the context. */
const HELLO = new Uint8Array(HELLO_MAX)

export function handleTls(): TlsLevel {
  return tlsLevel(
    (socket, listener) => new AcceptedTls(releaseHandle(socket), listener),
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
  const sluice = this.sluice as AcceptedTls
  try {
    sluice.hello(bindings.streamState[bindings.readResult]!)
  } catch (error) {
    sluice.owner.onBug(error)
  }
}

class AcceptedTls extends TlsHandleSocket {
  readonly #hosts: ServedHosts
  #host: HostContext | null = null
  /** Null until somebody asks. */
  #thumbprint: string | null = null
  #hello: Uint8Array = HELLO.subarray(0, 0)

  constructor(tcp: TcpHandle, listener: TermsInForce) {
    super(tcp)
    this.#hosts = new ServedHosts(listener)
  }

  override attach(owner: SocketOwner, view: Uint8Array): void {
    const isFirst = this.tls === null
    super.attach(owner, view)
    if (!isFirst || this.isClosed) return
    const { only } = this.#hosts
    if (only !== null) this.#accept(only)
    else {
      this.tcp.onread = onhello
      this.tcp.useUserBuffer(HELLO)
      this.tcp.readStart()
    }
  }

  override serves(authority: string): boolean {
    return this.#hosts.serves(authority)
  }

  override get peerThumbprint(): string {
    // What a client shows that was not asked is not looked at.
    const isVerified = this.isOpen && this.#host!.verifyClient !== 'none'
    this.#thumbprint ??= isVerified ? thumbprintOf(certificateOf(this.tls!)) : ''
    return this.#thumbprint
  }

  /** The first bytes of the client, as many as it takes to know which host it wants. */
  hello(result: number): void {
    if (this.isClosed) return
    if (result < 0) {
      this.refuse(brokenOffFault(result === bindings.endOfFile ? '' : getSystemErrorName(result)))
      return
    }
    this.#hello = Buffer.concat([this.#hello, HELLO.subarray(0, result)])
    const name = serverNameIn(this.#hello)
    if (name === null) return
    const bytes = this.#hello
    this.#hello = HELLO.subarray(0, 0)
    this.#accept(this.#hosts.choose(name))
    this.tls!.receive(bytes)
  }

  #accept(host: HostContext): void {
    this.#host = host
    const tls = wrapHandle(this.tcp, host.context.context, 'server')
    if (host.verifyClient !== 'none') tls.setVerifyMode(true, host.verifyClient === 'require')
    tls.setALPNProtocols(PROTOCOLS)
    this.secure(tls)
  }

  protected override fault(tls: TlsHandle): string | null {
    const { verifyClient } = this.#host!
    if (verifyClient === 'none') return null
    return clientFault(verifyClient, { certificate: certificateOf(tls), chainError: chainErrorOf(tls) })
  }

  protected override opened(): void {}
}

function onnewsession(this: TlsHandle, _id: Buffer, session: Buffer): void {
  const sluice = this.sluice as DialledTls
  sluice.keep(session)
}

function start(sluice: DialledTls): void {
  sluice.start()
}

class DialledTls extends TlsHandleSocket {
  readonly #context: ClientContext
  readonly #host: string
  readonly #offered: KeptSession | null
  #certificate: PeerCertificate | null = null
  /** Of TLS 1.2, where it comes before the peer is known to be the right one. */
  #session: Buffer | null = null

  constructor(tcp: TcpHandle, context: ClientContext, host: string, owner: ConnectingOwner, view: Uint8Array) {
    super(tcp)
    this.#context = context
    this.#host = host.startsWith('[') ? host.slice(1, -1) : host
    this.#offered = context.takeSession(this.#host)
    super.attach(owner, view)
    // From here on no byte of the peer is taken for plain text.
    this.secure(this.#prepare())
    // What fails must not be told before this returns.
    process.nextTick(start, this)
  }

  #prepare(): TlsHandle {
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

  keep(session: Buffer): void {
    if (!this.isOpen) this.#session = session
    else if (this.#certificate !== null) {
      this.#context.keepSession(this.#host, { session, certificate: this.#certificate })
    }
  }

  protected override fault(tls: TlsHandle): string | null {
    const resumed = tls.isSessionReused() ? this.#offered : null
    this.#certificate = resumed?.certificate ?? certificateOf(tls)
    const facts = { certificate: this.#certificate, chainError: chainErrorOf(tls) }
    return backendFault(this.#context.plan, this.#host, facts)
  }

  protected override opened(): void {
    const session = this.#session
    this.#session = null
    if (session !== null) this.keep(session)
    const owner = this.owner as ConnectingOwner
    owner.onConnected()
  }
}
