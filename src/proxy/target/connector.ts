/**
 * Opens one connection over a route: tries the addresses of a name in turn, then opens a tunnel where a proxy is in
 * between, then starts TLS. Owns the socket until it is ready for requests, and the deadline for all of it
 * (`http.connection.timeout`). Each cause names the hop that failed.
 */
import type { Loss } from '../../protocol/failure-table.ts'
import { Deadline } from '../../runtime/deadline-wheel.ts'
import {
  type ByteSocket,
  type ConnectingOwner,
  lacksDescriptor,
  type TlsFailure,
  WRITE,
} from '../../socket/byte-socket.ts'
import { type ConnectionAddresses, proxyHeader } from '../../socket/proxy-header.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import { ProxyTunnel } from './proxy-tunnel.ts'
import {
  type FailureCause,
  outOfDescriptors,
  outOfMemory,
  type ForwardProxy,
  isTunnelled,
  type Network,
  nextHop,
  proxyName,
  type Route,
} from './route.ts'
import type { TargetConnection } from './target-connection.ts'

const UNKNOWN_CLIENT: ConnectionAddresses = { source: '', sourcePort: 0, destination: '', destinationPort: 0 }

/** Steps in order; a step that the route does not need is left out. */
type Step = 'resolve' | 'dial' | 'tunnel' | 'tls' | 'done'

export class Connector extends Deadline implements ConnectingOwner {
  readonly #route: Route
  readonly #network: Network
  readonly #context: ConnectionContext
  readonly #connection: TargetConnection
  readonly #client: ConnectionAddresses | null
  #step: Step = 'resolve'
  #socket: ByteSocket | null = null
  /** Owns the socket during the step `tunnel`. */
  #tunnel: ProxyTunnel | null = null
  /** Addresses that are still to be tried, and the one in use. */
  #addresses: readonly string[] = []
  #address = ''
  /** Share of each address in the connect time-out. */
  #shareMs = 0
  #dueMs = 0

  /** `client`: both ends of the connection of the client, for a PROXY header. */
  constructor(
    route: Route,
    network: Network,
    context: ConnectionContext,
    connection: TargetConnection,
    client: ConnectionAddresses | null,
  ) {
    super()
    this.#client = client
    this.#route = route
    this.#network = network
    this.#context = context
    this.#connection = connection
  }

  /** `addressIndex`: number of the address that is tried first, so that connections spread over all of them. */
  start(addressIndex: number): void {
    const { connectTimeoutMs } = this.#context.settings
    this.#dueMs = this.#context.now() + connectTimeoutMs
    this.#context.wheel.set(this, connectTimeoutMs)
    this.#network.dns.resolve(nextHop(this.#route).host, (error, addresses) => {
      try {
        if (this.#step === 'done') return
        if (error !== null) this.#lost('READ_ERROR', this.#hopCause(error))
        else this.#resolved(addresses, addressIndex)
      } catch (thrown) {
        this.onError(thrown)
      }
    })
  }

  /** Gives up; the connection hears nothing more. */
  cancel(): void {
    this.#step = 'done'
    this.#context.wheel.clear(this)
    this.#disposeTunnel()
    this.#socket?.destroy()
  }

  /** A cause that lies with the next hop. */
  #hopCause(cause: string): string {
    const { proxy } = this.#route
    return proxy === null ? cause : `${proxyName(proxy)}: ${cause}`
  }

  /** A cause that lies with the backend behind the proxy, if there is one. */
  #backendCause(cause: string): string {
    const { proxy } = this.#route
    return proxy === null ? cause : `${cause}, through ${proxyName(proxy)}`
  }

  #resolved(addresses: readonly string[], addressIndex: number): void {
    const first = addresses.length === 0 ? 0 : addressIndex % addresses.length
    this.#addresses = first === 0 ? addresses : [...addresses.slice(first), ...addresses.slice(0, first)]
    // Each address has its share of the time, so that an address that drops packets does not hide the others.
    this.#shareMs = Math.ceil(this.#context.settings.connectTimeoutMs / Math.max(1, addresses.length))
    this.#step = 'dial'
    this.#dialNext('EADDRNOTAVAIL')
  }

  #dialNext(lastError: string): void {
    const [address, ...others] = this.#addresses
    if (address === undefined) {
      this.#lost('READ_ERROR', this.#hopCause(lastError))
      return
    }
    this.#addresses = others
    this.#address = address
    this.#context.wheel.set(this, this.#shareMs)
    this.#socket = this.#network.dialer.dial(address, nextHop(this.#route).port, this, this.#view)
  }

  onConnected(): void {
    if (this.#step === 'dial') this.#dialled()
    else if (this.#step === 'tls') this.#ready()
  }

  #dialled(): void {
    this.#addresses = []
    this.#context.wheel.set(this, Math.max(1, this.#dueMs - this.#context.now()))
    const { proxy } = this.#route
    if (proxy !== null && isTunnelled(this.#route)) this.#openTunnel(proxy)
    else this.#secureOrReady()
  }

  #openTunnel(proxy: ForwardProxy): void {
    this.#step = 'tunnel'
    this.#tunnel = ProxyTunnel.make(this.#route, proxy, this.#context, this)
    if (this.#tunnel === null) this.tunnelFailed(outOfMemory('no memory for a tunnel through a proxy'))
    else this.#tunnel.open(this.#socket!)
  }

  tunnelOpened(): void {
    this.#disposeTunnel()
    this.#secureOrReady()
  }

  tunnelFailed(failure: FailureCause): void {
    this.#fail('PEER_CLOSED', failure)
  }

  #disposeTunnel(): void {
    this.#tunnel?.dispose()
    this.#tunnel = null
  }

  /** Bytes on the socket reach the backend now, or a proxy that reads requests. */
  #secureOrReady(): void {
    if (this.#route.sendsProxyHeader === true && this.#socket!.write(this.#proxyHeader()) === WRITE.FAILED) {
      this.onWriteFailed('EPIPE')
      return
    }
    if (!this.#route.secured) {
      this.#ready()
      return
    }
    this.#step = 'tls'
    this.#socket = this.#network.tlsFor(this.#route).wrap(this.#socket!, this.#route.host, this, this.#view)
  }

  /** A client that is gone already has no address: the header then claims none. */
  #proxyHeader(): Uint8Array {
    return proxyHeader(this.#client ?? UNKNOWN_CLIENT)
  }

  #ready(): void {
    this.#step = 'done'
    this.#context.wheel.clear(this)
    this.#connection.connected(this.#socket!, this.#address)
  }

  #lost(loss: Loss, cause: string): void {
    this.#fail(loss, { kind: 'transport', code: '', cause })
  }

  #fail(loss: Loss, failure: FailureCause): void {
    this.cancel()
    this.#connection.notConnected(loss, failure, this.#address)
  }

  // ---- events of the socket ---------------------------------------------------------------------------------------

  /** A backend that speaks first does not speak HTTP. */
  onBytes(): undefined {
    this.#lost('UNREADABLE', this.#hopCause('bytes before any request'))
  }

  onEnd(): void {
    this.#lost('PEER_CLOSED', this.#hopCause('connection closed while it was being set up'))
  }

  onLost(code: string): void {
    if (this.#step === 'done') return
    if (lacksDescriptor(code)) this.#fail('READ_ERROR', outOfDescriptors(code))
    else if (this.#addresses.length > 0) this.#dialNext(code)
    else this.#lost('READ_ERROR', this.#hopCause(code))
  }

  onTlsFailed({ kind, code, cause }: TlsFailure): void {
    this.#fail('READ_ERROR', { kind, code, cause: this.#backendCause(cause) })
  }

  onWriteFailed(code: string): void {
    this.#lost('WRITE_ERROR', this.#hopCause(code))
  }

  onBlocked(): void {}

  onDrained(): void {}

  override onError(error: unknown): void {
    this.cancel()
    this.#connection.onError(error)
  }

  override onDeadline(): void {
    if (this.#addresses.length > 0) {
      this.#socket?.destroy()
      this.#dialNext('ETIMEDOUT')
      return
    }
    this.#lost('TIMED_OUT', `no ${this.#missing()} within ${this.#context.settings.connectTimeoutMs} ms`)
  }

  /** Names what had not happened when the deadline passed. */
  #missing(): string {
    const { proxy } = this.#route
    if (this.#step === 'tls') return 'end of the TLS handshake'
    if (proxy === null) return 'connection'
    return this.#step === 'tunnel' ? `answer of ${proxyName(proxy)} to CONNECT` : `connection to ${proxyName(proxy)}`
  }

  get #view(): Uint8Array {
    return this.#context.memory.shared.view
  }
}
