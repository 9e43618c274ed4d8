/** What the authority asks of others: key sets of issuers, another node's key manager, tokens for backends. */
import type { AuthorityPlan } from '../authority-messages.ts'
import type { IssuerKeys } from '../identity/facts.ts'
import type { EventLog } from '../observe/events.ts'
import { withSuperAdmin } from '../registry/super-admin.ts'
import { BackendTokens } from '../remote/backend-tokens.ts'
import { HttpClient } from '../remote/http-client.ts'
import { Introspector } from '../remote/introspection.ts'
import { KeySets } from '../remote/key-sets.ts'

interface RemoteOutlets {
  publish(keys: IssuerKeys): void
  readonly report: EventLog['report']
}

export class RemotePart {
  readonly keySets: KeySets
  readonly backendTokens: BackendTokens
  readonly #outlets: RemoteOutlets
  /** Asks as it is configured now. */
  #introspector: Introspector
  #introspection: string
  #client: HttpClient
  #settings: string

  constructor(plan: AuthorityPlan, outlets: RemoteOutlets) {
    this.#outlets = outlets
    this.#client = clientOf(plan)
    this.#settings = settingsText(plan)
    const client = this.#asConfigured()
    this.keySets = new KeySets({ client, ...outlets })
    this.backendTokens = new BackendTokens(client)
    const terms = introspectionTerms(plan)
    this.#introspection = JSON.stringify(terms)
    this.#introspector = this.#newIntrospector(terms)
    this.#renewSources(plan)
  }

  get introspector(): Introspector {
    return this.#introspector
  }

  renew(plan: AuthorityPlan): void {
    const settings = settingsText(plan)
    if (settings !== this.#settings) {
      // What is under way on the old one fails, and is asked for again.
      void this.#client.close()
      this.#client = clientOf(plan)
      this.#settings = settings
    }
    const terms = introspectionTerms(plan)
    const introspection = JSON.stringify(terms)
    // It remembers that its credentials were refused.
    if (introspection !== this.#introspection) this.#introspector = this.#newIntrospector(terms)
    this.#introspection = introspection
    this.#renewSources(plan)
  }

  async close(): Promise<void> {
    this.keySets.stop()
    await this.#client.close()
  }

  #asConfigured(): Pick<HttpClient, 'send'> {
    return { send: request => this.#client.send(request) }
  }

  #newIntrospector(terms: ConstructorParameters<typeof Introspector>[0]): Introspector {
    const { report } = this.#outlets
    return new Introspector(terms, { client: this.#asConfigured(), report, nowMs: () => performance.now() })
  }

  #renewSources(plan: AuthorityPlan): void {
    this.backendTokens.renew(plan.backends)
    this.keySets.renew(keySources(plan))
  }
}

/** Keys of a key manager of its own need not be fetched; those of another node's stand beside its other endpoints. */
function keySources({ configuration, runsKeyManager, ownIssuer }: AuthorityPlan) {
  const rows = configuration['apim.jwt.issuer'].filter(row => row['jwks.url'] !== '')
  const sources = rows.map(row => ({ issuer: row.name, url: row['jwks.url'] }))
  if (runsKeyManager) return sources.filter(({ issuer }) => issuer !== ownIssuer)
  if (sources.some(({ issuer }) => issuer === ownIssuer)) return sources
  const services = configuration['apim.key_manager'].service_url.replace(/\/?$/, '/')
  const url = URL.parse('../oauth2/jwks', services)?.href ?? ''
  return [...sources, { issuer: ownIssuer, url }]
}

function introspectionTerms({ configuration, dataDir, ownIssuer }: AuthorityPlan) {
  const given = {
    username: configuration['apim.key_manager'].username,
    password: configuration['apim.key_manager'].password,
  }
  const account = withSuperAdmin(given, configuration, dataDir)
  return { serviceUrl: configuration['apim.key_manager'].service_url, ...account, issuer: ownIssuer }
}

function clientOf(plan: AuthorityPlan): HttpClient {
  return new HttpClient(clientSettings(plan))
}

function clientSettings({ configuration, trust, management }: AuthorityPlan) {
  const requestsMax = configuration['apim.http_client'].max_total
  const perHostMax = configuration['apim.http_client'].default_max_per_route
  const idleMax = configuration['apim.key_manager']['pool.max_idle']
  const ownCertificates = management === null ? [] : [management.tls.identity.cert]
  return { requestsMax, perHostMax, idleMax, trust, ownCertificates }
}

function settingsText(plan: AuthorityPlan): string {
  return JSON.stringify(clientSettings(plan))
}
