/** TLS of one socket level: contexts that can be replaced, and the two ways in which the level secures a socket. */
import type { ByteSocket, ConnectingOwner } from './byte-socket.ts'
import type { TermsInForce } from './served-hosts.ts'
import type { TlsClient, TlsClientPlan, TlsLevel, TlsServer, TlsServerPlan } from './tls.ts'
import { ClientContext, ServerContexts } from './tls-contexts.ts'

type Accept = (socket: ByteSocket, listener: TermsInForce) => ByteSocket
type Dial = (
  socket: ByteSocket,
  context: ClientContext,
  host: string,
  owner: ConnectingOwner,
  view: Uint8Array,
) => ByteSocket

export function tlsLevel(accept: Accept, dial: Dial): TlsLevel {
  return { server: plan => new ReplaceableServer(plan, accept), client: plan => new ReplaceableClient(plan, dial) }
}

class ReplaceableServer implements TlsServer, TermsInForce {
  readonly #accept: Accept
  #contexts: ServerContexts

  constructor(plan: TlsServerPlan, accept: Accept) {
    this.#contexts = new ServerContexts(plan)
    this.#accept = accept
  }

  get contexts(): ServerContexts {
    return this.#contexts
  }

  replace(plan: TlsServerPlan): void {
    this.#contexts = new ServerContexts(plan)
  }

  wrap(socket: ByteSocket): ByteSocket {
    return this.#accept(socket, this)
  }
}

class ReplaceableClient implements TlsClient {
  readonly #dial: Dial
  #context: ClientContext

  constructor(plan: TlsClientPlan, dial: Dial) {
    this.#context = new ClientContext(plan)
    this.#dial = dial
  }

  replace(plan: TlsClientPlan): void {
    this.#context = new ClientContext(plan)
  }

  wrap(socket: ByteSocket, host: string, owner: ConnectingOwner, view: Uint8Array): ByteSocket {
    return this.#dial(socket, this.#context, host, owner, view)
  }
}
