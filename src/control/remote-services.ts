/** Clients of remote services: key sets of issuers, the key manager of another node, tokens for backends. */
import type { ControlPlan } from '../plan/control-messages.ts'
import type { IssuerKeys } from '../auth/records.ts'
import type { MetricsColumn } from '../observe/metrics.ts'
import type { EventLog } from '../observe/events.ts'
import { remoteRequestLimits } from '../plan/remote-requests.ts'
import { credentialsOrSuperAdmin } from './registry/super-admin.ts'
import { BackendTokenClient } from './remote/backend-token-client.ts'
import { HttpClient } from './remote/http-client.ts'
import { IntrospectionClient } from './remote/introspection-client.ts'
import { KeySets } from './remote/key-sets.ts'

interface RemoteServicesContext {
  publish(keys: IssuerKeys): void
  readonly metrics: Pick<MetricsColumn, 'add'>
  readonly report: EventLog['report']
}

export class RemoteServices {
  readonly keySets: KeySets
  readonly backendTokens: BackendTokenClient
  readonly #context: RemoteServicesContext
  #introspection: IntrospectionClient
  #introspectionSettings: string
  #client: HttpClient
  #clientSettings: string

  constructor(plan: ControlPlan, context: RemoteServicesContext) {
    this.#context = context
    this.#client = new HttpClient(clientSettings(plan))
    this.#clientSettings = JSON.stringify(clientSettings(plan))
    const client = this.#currentClient()
    this.keySets = new KeySets({ client, ...context })
    this.backendTokens = new BackendTokenClient(client)
    this.#introspection = this.#newIntrospectionClient(plan)
    this.#introspectionSettings = JSON.stringify(introspectionSettings(plan))
    this.#configureClients(plan)
  }

  /** Another client after `renew`. */
  get introspection(): IntrospectionClient {
    return this.#introspection
  }

  /** Sends with the client that is configured now. */
  send(request: Parameters<HttpClient['send']>[0]): ReturnType<HttpClient['send']> {
    return this.#client.send(request)
  }

  renew(plan: ControlPlan): void {
    const ofClient = JSON.stringify(clientSettings(plan))
    if (ofClient !== this.#clientSettings) {
      // Requests of the old client fail; their callers retry.
      void this.#client.close()
      this.#client = new HttpClient(clientSettings(plan))
      this.#clientSettings = ofClient
    }
    const ofIntrospection = JSON.stringify(introspectionSettings(plan))
    // A client with the same settings keeps the state of refused credentials.
    if (ofIntrospection !== this.#introspectionSettings) this.#introspection = this.#newIntrospectionClient(plan)
    this.#introspectionSettings = ofIntrospection
    this.#configureClients(plan)
  }

  async close(): Promise<void> {
    this.keySets.stop()
    await this.#client.close()
  }

  /** Sends with the client that is configured at the time of the request. */
  #currentClient(): Pick<HttpClient, 'send'> {
    return { send: request => this.send(request) }
  }

  #newIntrospectionClient(plan: ControlPlan): IntrospectionClient {
    const context = { client: this.#currentClient(), report: this.#context.report, nowMs: () => performance.now() }
    return new IntrospectionClient(introspectionSettings(plan), context)
  }

  #configureClients(plan: ControlPlan): void {
    this.backendTokens.configure(plan.backends)
    this.keySets.configure(keySources(plan))
  }
}

/** The key set of a remote key manager is beside its other endpoints; the local one needs no request. */
function keySources({ configuration, runsKeyManager, runsGateway, ownIssuer }: ControlPlan) {
  const rows = configuration['apim.jwt.issuer'].filter(row => row['jwks.url'] !== '')
  const sources = rows.map(row => ({ issuer: row.name, url: row['jwks.url'] }))
  // A traffic manager validates no token.
  if (!runsKeyManager && !runsGateway) return []
  if (runsKeyManager) return sources.filter(({ issuer }) => issuer !== ownIssuer)
  if (sources.some(({ issuer }) => issuer === ownIssuer)) return sources
  const services = configuration['apim.key_manager'].service_url.replace(/\/?$/, '/')
  const url = URL.parse('../oauth2/jwks', services)?.href ?? ''
  return [...sources, { issuer: ownIssuer, url }]
}

function introspectionSettings({ configuration, dataDir, ownIssuer }: ControlPlan) {
  const given = {
    username: configuration['apim.key_manager'].username,
    password: configuration['apim.key_manager'].password,
  }
  const account = credentialsOrSuperAdmin(given, configuration, dataDir)
  return { serviceUrl: configuration['apim.key_manager'].service_url, ...account, issuer: ownIssuer }
}

function clientSettings({ configuration, trust, management }: ControlPlan) {
  const ownCertificates = management === null ? [] : [management.tls.identity.cert]
  return { ...remoteRequestLimits(configuration), trust, ownCertificates }
}
