/**
 * Opens one connection over a route: the addresses of a name in turn, then a tunnel where a proxy is in between, then
 * what secures it. Owns the socket until it is ready to carry requests, and the time that may take
 * (`http.connection.timeout` for all of it). A cause says which hop failed.
 */
import type { Surroundings } from '../exchange/surroundings.ts'
import { CONNECT_FAILED, CONNECT_TIMED_OUT } from '../protocol/fate.ts'
import type { ByteSocket, ConnectingOwner } from '../socket/byte-socket.ts'
import { Deadline } from '../structure/deadline-wheel.ts'
import { ProxyTunnel } from './proxy-tunnel.ts'
import { hopOf, isTunnelled, nameOfProxy, type Paths, type ForwardProxy, type Route } from './route.ts'

/** Whoever waits for the connection. */
interface Taker {
  /** The socket is ready and owned by the connector still: to be attached before this returns. */
  connected(socket: ByteSocket, address: string): void
  notConnected(base: number, cause: string, address: string): void
  onBug(error: unknown): void
}

export class Connector extends Deadline implements ConnectingOwner {
  readonly #route: Route
  readonly #paths: Paths
  readonly #around: Surroundings
  readonly #taker: Taker
  #socket: ByteSocket | null = null
  /** While it owns the socket. */
  #tunnel: ProxyTunnel | null = null
  /** Addresses not tried yet, and the one that is. */
  #addresses: readonly string[] = []
  #address = ''
  /** What happens when the socket of now is connected; null once this is over. */
  #next: (() => void) | null = () => this.#dialled()
  /** What did not come in time, if it does not. */
  #awaited: string
  #shareMs = 0
  #dueMs = 0

  constructor(route: Route, paths: Paths, around: Surroundings, taker: Taker) {
    super()
    this.#route = route
    this.#paths = paths
    this.#around = around
    this.#taker = taker
    this.#awaited = route.proxy === null ? 'connection' : `connection to ${nameOfProxy(route.proxy)}`
  }

  /** `turn`: which address comes first, so that connections spread over all of them. */
  start(turn: number): void {
    const { connectTimeoutMs } = this.#around.settings
    this.#dueMs = this.#around.now() + connectTimeoutMs
    this.#around.wheel.set(this, connectTimeoutMs)
    this.#paths.addresses.find(hopOf(this.#route).host, (error, found) => {
      try {
        if (this.#next === null) return
        if (error !== null) this.#fail(CONNECT_FAILED, this.#ofHop(error))
        else this.#found(found, turn)
      } catch (bug) {
        this.onBug(bug)
      }
    })
  }

  /** Nobody waits any more. */
  cancel(): void {
    this.#next = null
    this.#around.wheel.clear(this)
    this.#tunnel?.dispose()
    this.#socket?.destroy()
  }

  /** What is wrong with whom the connection is made to. */
  #ofHop(cause: string): string {
    const { proxy } = this.#route
    return proxy === null ? cause : `${nameOfProxy(proxy)}: ${cause}`
  }

  /** What is wrong behind the proxy, if there is one. */
  #ofBackend(cause: string): string {
    const { proxy } = this.#route
    return proxy === null ? cause : `${cause}, through ${nameOfProxy(proxy)}`
  }

  #found(found: readonly string[], turn: number): void {
    const first = found.length === 0 ? 0 : turn % found.length
    this.#addresses = first === 0 ? found : [...found.slice(first), ...found.slice(0, first)]
    // Each address has its share of the time, so that one that swallows connections does not hide the others.
    this.#shareMs = Math.ceil(this.#around.settings.connectTimeoutMs / Math.max(1, found.length))
    this.#dialNext('EADDRNOTAVAIL')
  }

  #dialNext(lastError: string): void {
    const [address, ...others] = this.#addresses
    if (address === undefined) {
      this.#fail(CONNECT_FAILED, this.#ofHop(lastError))
      return
    }
    this.#addresses = others
    this.#address = address
    this.#around.wheel.set(this, this.#shareMs)
    this.#socket = this.#paths.dialer.dial(address, hopOf(this.#route).port, this, this.#view)
  }

  onConnected(): void {
    this.#next?.()
  }

  #dialled(): void {
    this.#addresses = []
    this.#around.wheel.set(this, Math.max(1, this.#dueMs - this.#around.now()))
    const { proxy } = this.#route
    if (proxy !== null && isTunnelled(this.#route)) this.#askFor(proxy)
    else this.#reached()
  }

  #askFor(proxy: ForwardProxy): void {
    this.#awaited = `answer of ${nameOfProxy(proxy)} to CONNECT`
    const tunnel = ProxyTunnel.make(this.#route, proxy, this.#around, this)
    this.#tunnel = tunnel
    if (tunnel === null) this.#fail(CONNECT_FAILED, 'no memory for a tunnel through a proxy')
    else tunnel.open(this.#socket!)
  }

  opened(): void {
    this.#tunnel = null
    this.#reached()
  }

  refused(cause: string): void {
    this.#fail(CONNECT_FAILED, cause)
  }

  /** What is written to the socket reaches the backend, or a proxy that reads requests. */
  #reached(): void {
    if (this.#route.secured) this.#secure()
    else this.#ready()
  }

  #secure(): void {
    this.#awaited = 'end of the TLS handshake'
    this.#next = () => this.#ready()
    this.#socket = this.#paths.tlsFor(this.#route).wrap(this.#socket!, this.#route.host, this, this.#view)
  }

  #ready(): void {
    this.#next = null
    this.#around.wheel.clear(this)
    this.#taker.connected(this.#socket!, this.#address)
  }

  #fail(base: number, cause: string): void {
    const address = this.#address
    this.cancel()
    this.#taker.notConnected(base, cause, address)
  }

  // ---- what the socket says ---------------------------------------------------------------------------------------

  /** A backend that speaks first does not speak HTTP. */
  onBytes(): undefined {
    this.#fail(CONNECT_FAILED, this.#ofHop('bytes before any request'))
  }

  onEnd(): void {
    this.#fail(CONNECT_FAILED, this.#ofHop('connection closed while it was being set up'))
  }

  onLost(code: string): void {
    if (this.#next === null) return
    if (this.#addresses.length > 0) this.#dialNext(code)
    else this.#fail(CONNECT_FAILED, this.#ofHop(code))
  }

  onHandshakeFailed(cause: string): void {
    this.#fail(CONNECT_FAILED, this.#ofBackend(cause))
  }

  onWriteFailed(code: string): void {
    this.#fail(CONNECT_FAILED, this.#ofHop(code))
  }

  onDrained(): void {}

  onBug(error: unknown): void {
    this.cancel()
    this.#taker.onBug(error)
  }

  override onDeadline(): void {
    if (this.#addresses.length > 0) {
      this.#socket?.destroy()
      this.#dialNext('ETIMEDOUT')
      return
    }
    this.#fail(CONNECT_TIMED_OUT, `no ${this.#awaited} within ${this.#around.settings.connectTimeoutMs} ms`)
  }

  get #view(): Uint8Array {
    return this.#around.memory.shared.view
  }
}
