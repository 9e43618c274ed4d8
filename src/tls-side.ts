/** TLS in one reactor: the contexts of its secured listeners and routes, and their replacement while it runs. */
import type { ReactorPlan } from './plan.ts'
import type { TlsClient, TlsClientPlan, TlsLevel, TlsServer, TlsServerPlan } from './socket/tls.ts'
import type { Route } from './target/route.ts'

export class TlsSide {
  readonly #level: TlsLevel | null
  readonly server: TlsServer | null
  readonly #clients = new Map<string, TlsClient>()
  /** What each of them was made of. */
  readonly #plans = new Map<string, string>()

  /** `level`: null where nothing in the plan is secured. */
  constructor(level: TlsLevel | null, plan: Pick<ReactorPlan, 'tlsServer' | 'tlsClients'>) {
    this.#level = level
    this.server = level === null || plan.tlsServer === null ? null : level.server(plan.tlsServer)
    for (const [name, client] of Object.entries(plan.tlsClients)) this.#put(name, client)
  }

  /**
   * Serves new handshakes from now on. Answers whether anything is different for backends. Throws when OpenSSL refuses
   * it; what was refused is not in force then.
   */
  replace(server: TlsServerPlan | null, clients: ReactorPlan['tlsClients']): boolean {
    if (server !== null) this.server?.replace(server)
    let isDifferent = false
    for (const [name, client] of Object.entries(clients)) isDifferent = this.#put(name, client) || isDifferent
    for (const name of this.#clients.keys()) {
      if (name in clients) continue
      this.#clients.delete(name)
      this.#plans.delete(name)
      isDifferent = true
    }
    return isDifferent
  }

  /** What has not changed keeps its sessions. */
  #put(name: string, plan: TlsClientPlan): boolean {
    const text = JSON.stringify(plan)
    if (this.#level === null || this.#plans.get(name) === text) return false
    const known = this.#clients.get(name)
    if (known !== undefined) known.replace(plan)
    else this.#clients.set(name, this.#level.client(plan))
    this.#plans.set(name, text)
    return true
  }

  /** A profile for this very backend, or what the route names. */
  clientFor({ host, port, tlsClient }: Route): TlsClient {
    const client = this.#clients.get(`${host}:${port}`) ?? this.#clients.get(tlsClient)
    if (client === undefined) throw new Error(`no TLS terms for ${host}:${port}`)
    return client
  }
}
