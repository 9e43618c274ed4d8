/** TLS in one reactor: the contexts of its secured listeners and routes, and their replacement while it runs. */
import type { LivePlan } from '../plan.ts'
import type { TlsClient, TlsClientPlan, TlsLevel, TlsServer, TlsServerPlan } from '../socket/tls.ts'
import type { Route } from '../target/route.ts'

type TlsPlans = Pick<LivePlan, 'tlsServer' | 'tlsClients'>

/** Terms in force, and what they were made of. */
interface Terms {
  readonly client: TlsClient
  readonly made: string
}

export class TlsSide {
  /** Of the secured listeners; it stays the same, whatever plan it follows. */
  readonly server: TlsServer | null
  /** What it was made of. */
  #serverMade: string
  /** By `host:port` of a backend that has a profile of its own, else by `Route.tlsClient`. */
  #clients: ReadonlyMap<string, Terms>

  /** `level`: null where nothing in the plan is secured. */
  constructor(level: TlsLevel | null, { tlsServer, tlsClients }: TlsPlans) {
    this.server = level === null || tlsServer === null ? null : level.server(tlsServer)
    this.#serverMade = JSON.stringify(tlsServer)
    this.#clients = made(level, tlsClients, new Map())
  }

  /**
   * Serves new handshakes from now on; open connections keep what they have. Answers whether anything is different for
   * backends. Throws when OpenSSL refuses it; nothing has changed then.
   */
  replace(level: TlsLevel | null, { tlsServer, tlsClients }: TlsPlans): boolean {
    const clients = made(level, tlsClients, this.#clients)
    this.#replaceServer(tlsServer)
    const isDifferent =
      clients.size !== this.#clients.size || [...clients].some(([name, terms]) => this.#clients.get(name) !== terms)
    this.#clients = clients
    return isDifferent
  }

  #replaceServer(plan: TlsServerPlan | null): void {
    const making = JSON.stringify(plan)
    if (this.server === null || plan === null || making === this.#serverMade) return
    this.server.replace(plan)
    this.#serverMade = making
  }

  /** A profile for this very backend, or what the route names. */
  clientFor({ host, port, tlsClient }: Route): TlsClient {
    const terms = this.#clients.get(`${host}:${port}`) ?? this.#clients.get(tlsClient)
    if (terms === undefined) throw new Error(`no TLS terms for ${host}:${port}`)
    return terms.client
  }
}

/** What has not changed stays as it is, with its sessions. */
function made(
  level: TlsLevel | null,
  plans: Readonly<Record<string, TlsClientPlan>>,
  known: ReadonlyMap<string, Terms>,
): ReadonlyMap<string, Terms> {
  const clients = new Map<string, Terms>()
  // An exchange under way may still open a connection over a route that is gone; profiles have those to fall back on.
  for (const [name, terms] of known) if (!name.includes(':')) clients.set(name, terms)
  for (const [name, plan] of Object.entries(plans)) {
    const making = JSON.stringify(plan)
    const terms = known.get(name)
    if (terms?.made === making) clients.set(name, terms)
    else if (level === null) throw new Error('TLS is not loaded')
    else clients.set(name, { client: level.client(plan), made: making })
  }
  return clients
}
