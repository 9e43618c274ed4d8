/** TLS of one socket level: contexts that can be replaced, and the two ways in which the level secures a socket. */
import type { CacheUsage } from '../runtime/cache-usage.ts'
import type { ByteSocket, ConnectingOwner } from './byte-socket.ts'
import type { TlsClient, TlsClientPlan, TlsLevel, TlsServer, TlsServerPlan } from './tls.ts'
import { ClientContext, ServerContexts } from './tls-contexts.ts'

const NO_BYTES = new Uint8Array(0)

type Accept = (socket: ByteSocket, listener: ListenerTls, first: Uint8Array) => ByteSocket
type Dial = (
  socket: ByteSocket,
  context: ClientContext,
  host: string,
  owner: ConnectingOwner,
  view: Uint8Array,
) => ByteSocket

export function tlsLevel(accept: Accept, dial: Dial): TlsLevel {
  return { server: plan => new ListenerTls(plan, accept), client: plan => new RouteTls(plan, dial) }
}

/** TLS of a listener. */
export class ListenerTls implements TlsServer {
  readonly #accept: Accept
  #contexts: ServerContexts

  constructor(plan: TlsServerPlan, accept: Accept) {
    this.#contexts = new ServerContexts(plan)
    this.#accept = accept
  }

  /** The contexts for new handshakes. */
  get contexts(): ServerContexts {
    return this.#contexts
  }

  replace(plan: TlsServerPlan): void {
    this.#contexts = new ServerContexts(plan)
  }

  wrap(socket: ByteSocket, first = NO_BYTES): ByteSocket {
    return this.#accept(socket, this, first)
  }
}

/** TLS of a route to a backend. */
class RouteTls implements TlsClient {
  readonly #dial: Dial
  #context: ClientContext

  constructor(plan: TlsClientPlan, dial: Dial) {
    this.#context = new ClientContext(plan)
    this.#dial = dial
  }

  replace(plan: TlsClientPlan): void {
    this.#context = new ClientContext(plan)
  }

  usage(): CacheUsage {
    return this.#context.usage()
  }

  wrap(socket: ByteSocket, host: string, owner: ConnectingOwner, view: Uint8Array): ByteSocket {
    return this.#dial(socket, this.#context, host, owner, view)
  }
}
