/** One port of a reactor: its listening socket, what secures it, and the clients that it knows. */
import { LRUCache } from 'lru-cache'
import type { ListenerPlan } from '../plan.ts'
import type { ByteSocket, Listening, SocketLevel } from '../socket/byte-socket.ts'
import type { TlsServer } from '../socket/tls.ts'
import type { Client } from '../source/hall.ts'

/** Client addresses remembered; a client that comes again and again costs less. */
const CLIENTS_MAX = 4096

interface ListenerOutlets {
  readonly level: SocketLevel
  readonly reusePort: boolean
  newClient(address: string, kind: ListenerPlan['kind']): Client
  accept(socket: ByteSocket, listener: Listener): void
  /** Accepting a connection threw. */
  threw(error: unknown): void
}

export class Listener {
  readonly #plan: ListenerPlan
  readonly #outlets: ListenerOutlets
  readonly #tls: TlsServer | null
  readonly #clients = new LRUCache<string, Client>({ max: CLIENTS_MAX })
  #listening: Listening | null = null

  /** `tls`: null where the port is not secured. */
  constructor(plan: ListenerPlan, tls: TlsServer | null, outlets: ListenerOutlets) {
    this.#plan = plan
    this.#tls = tls
    this.#outlets = outlets
  }

  /** Answers the port. */
  async open(): Promise<number> {
    const { level, reusePort, accept, threw } = this.#outlets
    const { host, port } = this.#plan
    this.#listening = await level.listen({ host, port, reusePort }, socket => {
      try {
        accept(socket, this)
      } catch (error) {
        threw(error)
        socket.reset()
      }
    })
    return this.#listening.port
  }

  get isOpen(): boolean {
    return this.#listening !== null
  }

  close(): void {
    this.#listening?.close()
    this.#listening = null
  }

  /** The socket as its connection sees it. */
  secure(socket: ByteSocket): ByteSocket {
    return this.#tls === null ? socket : this.#tls.wrap(socket)
  }

  /** What is known of clients has changed: those that come from now on are looked at anew. */
  forgetClients(): void {
    this.#clients.clear()
  }

  client(address: string): Client {
    let client = this.#clients.get(address)
    if (client === undefined) {
      client = this.#outlets.newClient(address, this.#plan.kind)
      this.#clients.set(address, client)
    }
    return client
  }
}
