/** One port of a reactor: its listening socket, its TLS, and the clients seen lately. */
import { LRUCache } from 'lru-cache'
import type { ListenerPlan } from '../plan/reactor-plan.ts'
import type { ByteSocket, Listening, SocketLevel } from '../socket/byte-socket.ts'
import type { TlsServer } from '../socket/tls.ts'
import type { Client } from '../proxy/source/connection-callbacks.ts'

/** Client addresses in the cache: a returning client costs less. */
const CLIENTS_MAX = 4096

interface ListenerOptions {
  readonly level: SocketLevel
  readonly reusePort: boolean
  newClient(address: string, listener: Listener): Client
  accept(socket: ByteSocket, listener: Listener): void
  /** Accepting a connection threw. */
  threw(error: unknown): void
}

export function isSecured({ kind }: ListenerPlan): boolean {
  return kind === 'https' || kind === 'wss'
}

export class Listener {
  readonly kind: ListenerPlan['kind']
  readonly scheme: Client['scheme']
  readonly #plan: ListenerPlan
  readonly #options: ListenerOptions
  readonly #tls: TlsServer | null
  readonly #clients = new LRUCache<string, Client>({ max: CLIENTS_MAX })
  #listening: Listening | null = null

  /** `tls`: null where the port is not secured. */
  constructor(plan: ListenerPlan, tls: TlsServer | null, options: ListenerOptions) {
    this.kind = plan.kind
    this.scheme = isSecured(plan) ? 'https' : 'http'
    this.#plan = plan
    this.#tls = tls
    this.#options = options
  }

  /** Starts listening; resolves with the port. */
  async open(): Promise<number> {
    const { level, reusePort, accept, threw } = this.#options
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

  /** Puts TLS on an accepted socket where the port is secured. */
  secure(socket: ByteSocket): ByteSocket {
    return this.#tls === null ? socket : this.#tls.wrap(socket)
  }

  /** Empties the cache after a change of settings that clients depend on. */
  forgetClients(): void {
    this.#clients.clear()
  }

  client(address: string): Client {
    let client = this.#clients.get(address)
    if (client === undefined) {
      client = this.#options.newClient(address, this)
      this.#clients.set(address, client)
    }
    return client
  }
}
