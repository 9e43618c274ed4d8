/** TLS contexts of one reactor, for its secured listeners and routes, and their replacement by a reload. */
import { type CacheUsage, sumOfUsages } from '../runtime/cache-usage.ts'
import type { LivePlan } from '../plan/reactor-plan.ts'
import type { TlsClient, TlsClientPlan, TlsLevel, TlsServer, TlsServerPlan } from '../socket/tls.ts'
import type { Route } from '../proxy/target/route.ts'

type TlsPlans = Pick<LivePlan, 'tlsServer' | 'tlsClients'>

/** TLS of routes, and its plan as JSON. */
interface PlannedClient {
  readonly client: TlsClient
  readonly plan: string
}

export class ReactorTls {
  /** TLS of the secured listeners; the same object for all plans. */
  readonly server: TlsServer | null
  /** Plan of the server, as JSON. */
  #serverPlan: string
  /** By `host:port` of a backend with a profile of its own, else by `Route.tlsClient`. */
  #clients: ReadonlyMap<string, PlannedClient>

  /** `level`: null where nothing in the plan is secured. */
  constructor(level: TlsLevel | null, { tlsServer, tlsClients }: TlsPlans) {
    this.server = level === null || tlsServer === null ? null : level.server(tlsServer)
    this.#serverPlan = JSON.stringify(tlsServer)
    this.#clients = clientsFor(level, tlsClients, new Map())
  }

  /**
   * Applies new plans to new handshakes; open connections keep their contexts. Returns whether anything has changed for
   * backends. Throws, and changes nothing, when OpenSSL refuses a plan.
   */
  update(level: TlsLevel | null, { tlsServer, tlsClients }: TlsPlans): boolean {
    const clients = clientsFor(level, tlsClients, this.#clients)
    this.#replaceServer(tlsServer)
    const hasChanged =
      clients.size !== this.#clients.size || [...clients].some(([name, client]) => this.#clients.get(name) !== client)
    this.#clients = clients
    return hasChanged
  }

  #replaceServer(plan: TlsServerPlan | null): void {
    const json = JSON.stringify(plan)
    if (this.server === null || plan === null || json === this.#serverPlan) return
    this.server.replace(plan)
    this.#serverPlan = json
  }

  /** Usage of the sessions with backends. */
  usage(): CacheUsage {
    return sumOfUsages([...this.#clients.values()].map(({ client }) => client.usage()))
  }

  /** The profile of this backend, else the profile that the route names. */
  clientFor({ host, port, tlsClient }: Route): TlsClient {
    const planned = this.#clients.get(`${host}:${port}`) ?? this.#clients.get(tlsClient)
    if (planned === undefined) throw new Error(`no TLS profile for ${host}:${port}`)
    return planned.client
  }
}

/** Keeps the clients whose plan has not changed, with their sessions. */
function clientsFor(
  level: TlsLevel | null,
  plans: Readonly<Record<string, TlsClientPlan>>,
  known: ReadonlyMap<string, PlannedClient>,
): ReadonlyMap<string, PlannedClient> {
  const clients = new Map<string, PlannedClient>()
  // A pending exchange may still open a connection over a removed route, so named profiles are kept.
  for (const [name, client] of known) if (!name.includes(':')) clients.set(name, client)
  for (const [name, plan] of Object.entries(plans)) {
    const json = JSON.stringify(plan)
    const old = known.get(name)
    if (old?.plan === json) clients.set(name, old)
    else if (level === null) throw new Error('TLS is not loaded')
    else clients.set(name, { client: level.client(plan), plan: json })
  }
  return clients
}
