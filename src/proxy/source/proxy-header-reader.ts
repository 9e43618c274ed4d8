/**
 * Reads the PROXY header of an accepted connection, before TLS and before any request: until then its client is not
 * known. The bytes behind the header are the client's.
 */
import { METRIC } from '../../observe/metrics.ts'
import { Deadline } from '../../runtime/deadline-wheel.ts'
import type { ByteSocket, SocketOwner } from '../../socket/byte-socket.ts'
import { type ConnectionAddresses, readProxyHeader } from '../../socket/proxy-header.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'

interface HeaderCallbacks {
  /**
   * The header is complete: the client, null where the proxy speaks for itself. `rest`: bytes of the client, at the
   * start of the shared read buffer. The socket gets another owner. Returns the view for the next read.
   */
  read(addresses: ConnectionAddresses | null, rest: number): Uint8Array | undefined
  /** The connection ended, or was reset, before its header was complete. */
  closed(): void
}

export class ProxyHeaderReader extends Deadline implements SocketOwner {
  readonly #socket: ByteSocket
  readonly #proxy: string
  readonly #context: ConnectionContext
  readonly #callbacks: HeaderCallbacks
  #received: Buffer = Buffer.alloc(0)

  /** `proxy`: address of the peer. */
  constructor(socket: ByteSocket, proxy: string, context: ConnectionContext, callbacks: HeaderCallbacks) {
    super()
    this.#socket = socket
    this.#proxy = proxy
    this.#context = context
    this.#callbacks = callbacks
  }

  open(): void {
    const { wheel, settings, memory } = this.#context
    wheel.set(this, settings.headerReadMs)
    this.#socket.attach(this, memory.shared.view)
  }

  onBytes(length: number): Uint8Array | undefined {
    const { view } = this.#context.memory.shared
    this.#received = Buffer.concat([this.#received, view.subarray(0, length)])
    const header = readProxyHeader(this.#received)
    if (header === null) return undefined
    if (typeof header === 'string') {
      this.#refuse(header)
      return undefined
    }
    const rest = this.#received.length - header.length
    view.copyWithin(0, length - rest, length)
    this.#context.wheel.clear(this)
    return this.#callbacks.read(header.addresses, rest)
  }

  /** A check of a load balancer may connect and send nothing. */
  onEnd(): void {
    if (this.#received.length === 0) {
      this.#socket.destroy()
      this.#leave()
    } else this.#refuse('the connection ended within its header')
  }

  onLost(): void {
    this.#leave()
  }

  /** Never called: TLS begins behind the header. */
  onTlsFailed(): void {
    this.#leave()
  }

  onWriteFailed(): void {}

  onBlocked(): void {}

  onDrained(): void {}

  onError(error: unknown): void {
    this.#context.report('error', 'bug', { CAUSE_OF_ERROR: String(error) })
    this.close()
  }

  override onDeadline(): void {
    this.#refuse(`no complete header within ${this.#context.settings.headerReadMs} ms`)
  }

  #refuse(cause: string): void {
    refuseProxy(this.#socket, this.#proxy, cause, this.#context)
    this.#leave()
  }

  close(): void {
    this.#socket.reset()
    this.#leave()
  }

  #leave(): void {
    this.#context.wheel.clear(this)
    this.#callbacks.closed()
  }
}

/** Resets a connection whose PROXY header cannot be used. */
export function refuseProxy(socket: ByteSocket, proxy: string, cause: string, context: ConnectionContext): void {
  context.metrics.add(METRIC.proxyHeadersRefused, 1)
  context.report('warn', 'PROXY header refused', { CLIENT_ADDRESS: proxy, CAUSE_OF_ERROR: cause })
  socket.reset()
}
