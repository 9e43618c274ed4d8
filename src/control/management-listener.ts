/**
 * The listener of admin API and key manager. At a start it binds the port and checks identity and access rules. The
 * HTTPS server and its apps load with the first connection, because most nodes get none for a long time.
 */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createSecureContext } from 'node:tls'
import { AccessControl } from './access-control.ts'
import { BACKLOG, type ListenerOptions, secureContext } from './management-options.ts'
import type { ManagementServer } from './management-server.ts'
import type { ManagementPlan } from '../plan/management-plan.ts'
import { descriptorOf, listenTarget } from '../socket/byte-socket.ts'

export class ManagementListener {
  /** Accepts connections until the HTTPS server takes over its socket. */
  readonly #server: Server
  readonly #options: ListenerOptions
  /** Connections that wait for the HTTPS server. */
  readonly #waiting = new Set<Socket>()
  #plan: ManagementPlan
  #access: AccessControl
  /** Null before the first connection. */
  #loading: Promise<void> | null = null
  #https: ManagementServer | null = null

  private constructor(plan: ManagementPlan, options: ListenerOptions) {
    this.#plan = plan
    this.#options = options
    this.#access = new AccessControl(plan)
    // `node:https` has the same options for its sockets.
    this.#server = createServer({ noDelay: true }, socket => this.#accept(socket))
    this.#server.maxConnections = plan.connectionsMax
  }

  /** Rejects with an errno error where the port cannot be listened on, or with OpenSSL's for a bad identity. */
  static async open(plan: ManagementPlan, options: ListenerOptions): Promise<ManagementListener> {
    createSecureContext(secureContext(plan))
    const listener = new ManagementListener(plan, options)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    listener.#server.once('error', reject)
    listener.#server.listen(listenTarget({ ...plan, reusePort: false, fd: options.fd }, BACKLOG), resolve)
    await promise
    listener.#server.removeListener('error', reject)
    listener.#server.on('error', error => listener.#failed(error))
    return listener
  }

  get fd(): number {
    return descriptorOf(this.#server)
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /**
   * Replaces identity and access rules, not the address. Throws, without a change, where OpenSSL refuses the identity.
   */
  replace(plan: ManagementPlan): void {
    const access = new AccessControl(plan)
    if (this.#https === null) createSecureContext(secureContext(plan))
    else {
      this.#https.setIdentity(plan)
      this.#https.access = access
    }
    this.#plan = plan
    this.#access = access
  }

  async close(): Promise<void> {
    await this.#loading
    if (this.#https !== null) return this.#https.close()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#server.close(() => resolve())
    await promise
  }

  #accept(socket: Socket): void {
    this.#waiting.add(socket)
    // The client may reset the connection while the server loads.
    const forget = (): void => void this.#waiting.delete(socket)
    socket.on('error', () => {}).once('close', forget)
    this.#loading ??= this.#load()
  }

  /** A failure closes the connections that wait; the next connection tries again. */
  async #load(): Promise<void> {
    try {
      const [{ ManagementServer: HttpsServer }, apps] = await Promise.all([
        import('./management-server.ts'),
        this.#options.apps(),
      ])
      const server = new HttpsServer(this.#plan, this.#access, apps, this.#options)
      server.takeOver(this.#server, this.#waiting)
      this.#https = server
    } catch (error) {
      this.#failed(error as Error)
      for (const socket of this.#waiting) socket.destroy()
      this.#loading = null
    }
    this.#waiting.clear()
  }

  #failed(error: Error): void {
    this.#options.events.report('error', 'management listener failed', { CAUSE_OF_ERROR: error.message })
  }
}
