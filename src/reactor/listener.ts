/** One port of a reactor: its listening sockets, its TLS, and a cache of the clients that connected last. */
import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'
import { LRUCache } from 'lru-cache'
import { type SocketTable, socketName } from '../plan/listening-sockets.ts'
import type { ListenerPlan } from '../plan/reactor-plan.ts'
import {
  type ByteSocket,
  lacksDescriptor,
  type Listening,
  NEW_SOCKET,
  type SocketLevel,
} from '../socket/byte-socket.ts'
import { growingTo } from '../runtime/lru-options.ts'
import { CidrList } from '../runtime/ip-address.ts'
import type { TlsServer } from '../socket/tls.ts'
import type { Client } from '../proxy/source/connection-callbacks.ts'

/** Client addresses in the cache: a returning client costs less. */
const CLIENTS_MAX = 4096
/** Time between two tries to listen again. */
const PAUSE_MS = 1000

interface ListenerOptions {
  readonly level: SocketLevel
  readonly reusePort: boolean
  newClient(address: string, listener: Listener): Client
  accept(socket: ByteSocket, listener: Listener): void
  /** Accepting a connection threw. */
  threw(error: unknown): void
}

export function isSecured({ kind }: Pick<ListenerPlan, 'kind'>): boolean {
  return kind === 'https' || kind === 'wss'
}

export class Listener {
  readonly kind: ListenerPlan['kind']
  readonly scheme: Client['scheme']
  /** Networks whose connections begin with a PROXY header; null: the listener asks for none. */
  readonly proxies: CidrList | null
  readonly #plan: ListenerPlan
  readonly #options: ListenerOptions
  readonly #tls: TlsServer | null
  readonly #clients = new LRUCache<string, Client>(growingTo(CLIENTS_MAX))
  /** The client that connected last: a new text of its address needs no hash. */
  #last: Client | null = null
  /** Several where a predecessor had more reactors than there are now. */
  #listening: readonly Listening[] = []
  /** The port in use; 0 before the start. */
  #port = 0
  /** Ends the pause. */
  #timer: NodeJS.Timeout | null = null

  /** `tls`: null where the port is not secured. */
  constructor(plan: ListenerPlan, tls: TlsServer | null, options: ListenerOptions) {
    this.kind = plan.kind
    this.scheme = isSecured(plan) ? 'https' : 'http'
    this.proxies = plan.proxies === null ? null : new CidrList(plan.proxies)
    this.#plan = plan
    this.#tls = tls
    this.#options = options
  }

  /** Starts listening; resolves with the port. */
  async open(): Promise<number> {
    const { level, reusePort } = this.#options
    const { host, port, fds = [] } = this.#plan
    const where = { host, port: this.#port || port, reusePort }
    const accept = (socket: ByteSocket): void => this.#accept(socket)
    // An inherited socket is there for the first time only.
    const sockets = this.#port === 0 && fds.length > 0 ? fds : [NEW_SOCKET]
    this.#listening = await Promise.all(sockets.map(fd => level.listen({ ...where, fd }, accept)))
    this.#port = this.#listening[0]!.port
    return this.#port
  }

  #accept(socket: ByteSocket): void {
    const { accept, threw } = this.#options
    try {
      accept(socket, this)
    } catch (error) {
      threw(error)
      socket.reset()
    }
  }

  /** The listening sockets by name, for another process. */
  get sockets(): SocketTable {
    const { kind, host, port } = this.#plan
    return { [socketName(kind, host, port)]: this.#listening.map(({ fd }) => fd) }
  }

  get isOpen(): boolean {
    return this.#listening.length > 0 || this.#timer !== null
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#closeSockets()
  }

  #closeSockets(): void {
    for (const listening of this.#listening) listening.close()
    this.#listening = []
  }

  /**
   * Closes the listening sockets, and opens one again once a descriptor is free. A connection that waits for a
   * descriptor would keep the event loop busy (D168). Returns false where the listener is closed already.
   */
  pause(): boolean {
    if (this.#listening.length === 0) return false
    this.#closeSockets()
    this.#resumeLater()
    return true
  }

  #resumeLater(): void {
    this.#timer = setTimeout(() => {
      if (missingDescriptor() !== '') {
        this.#resumeLater()
        return
      }
      this.open().then(
        () => this.#resumed(),
        () => {
          if (this.#timer !== null) this.#resumeLater()
        },
      )
    }, PAUSE_MS)
  }

  /** The listener may have been closed while its socket was opened. */
  #resumed(): void {
    if (this.#timer === null) this.close()
    this.#timer = null
  }

  /** Puts TLS on an accepted socket where the port is secured. `first`: bytes of the client that were read already. */
  secure(socket: ByteSocket, first: Uint8Array): ByteSocket {
    return this.#tls === null ? socket : this.#tls.wrap(socket, first)
  }

  /** Empties the cache after a change of settings that clients depend on. */
  forgetClients(): void {
    this.#last = null
    this.#clients.clear()
  }

  client(address: string): Client {
    if (this.#last !== null && this.#last.address === address) return this.#last
    let client = this.#clients.get(address)
    if (client === undefined) {
      client = this.#options.newClient(address, this)
      this.#clients.set(address, client)
    }
    this.#last = client
    return client
  }
}

/** Error of a process, or a system, without a free descriptor; '' where there is one. libuv does not report it. */
export function missingDescriptor(): string {
  try {
    closeSync(openSync(devNull, 'r'))
    return ''
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    return lacksDescriptor(code) ? code : ''
  }
}
