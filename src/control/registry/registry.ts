/**
 * The registry: tenants, users, applications, clients, subscriptions, policies, requests for approval, tokens and
 * signing keys in a SQL database. It opens the databases and has one store per entity. Every method of a store is one
 * transaction; the `RegistryListener` hears of a change after the commit and before the method resolves. Names are
 * unique within their tenant.
 */
import { SUPER_TENANT } from '../../auth/account-names.ts'
import { NOTHING_REMOVED, type RevocationRecord, type SubscriptionUpdate } from '../../auth/records.ts'
import type { Configuration } from '../../config/catalogue.ts'
import type { EventLog } from '../../observe/events.ts'
import type { PolicySet } from '../../throttle/policy.ts'
import { ApplicationStore } from './application-store.ts'
import { ChangeLog } from './change-log.ts'
import { ClientStore } from './client-store.ts'
import { Database } from './database.ts'
import { DatabaseOutage } from './database-outage.ts'
import { DatabaseUsage } from './database-usage.ts'
import { databaseSettings } from '../../database/database-settings.ts'
import { AccountRules } from './field-validation.ts'
import { type LockoutSettings, LoginGuard } from './login-guard.ts'
import { migrate } from './migrate.ts'
import { NodePresence } from './node-presence.ts'
import { type SecretCacheMetrics, VerifiedSecretCache } from './password-hash.ts'
import { PolicyStore } from './policy-store.ts'
import { type CacheUsage, sumOfUsages } from '../../runtime/cache-usage.ts'
import { openCiphers } from '../../database/secret-cipher.ts'
import { SigningKeyStore } from './signing-key-store.ts'
import { SubscriptionStore } from './subscription-store.ts'
import { createSuperAdmin } from './super-admin.ts'
import { applicationRecord, keyRecords, subscriptionRecord } from './tables.ts'
import { TenantStore } from './tenant-store.ts'
import { TokenStore } from './token-store.ts'
import { UserStore } from './user-store.ts'
import { WorkflowStore } from './workflow-store.ts'

interface RegistryOptions {
  readonly configuration: Configuration
  /** Existing folder for the embedded database and generated secrets. */
  readonly dataDir: string
  /** `iss` of the tokens whose clients the registry keeps; the same on all nodes of a database server. */
  readonly issuer: string
  /** The operator has named no issuer: that of the database comes first. */
  readonly takesIssuer?: boolean
  readonly report?: EventLog['report']
  readonly metrics?: SecretCacheMetrics
  /** Milliseconds since 1970. */
  readonly nowMs?: () => number
  /** Milliseconds between polls for changes of other nodes. */
  readonly pollMs?: number
}

/** Receives changes of this node and of other nodes on the same database. */
export interface RegistryListener {
  subscriptionsChanged(update: SubscriptionUpdate): void
  tokensRevoked(tokens: readonly RevocationRecord[]): void
  /** Users were removed, locked, or got another password or other roles: cached users are invalid. */
  usersChanged?(): void
  /** Keys were added or removed. */
  signingKeysChanged?(): void
  /** All throttling policies of the registry, after one of them has changed. */
  policiesChanged?(set: PolicySet): void
  /** Changes of other nodes were missed: only a new `snapshot()` is current. */
  changesMissed?(): void
}

const NO_METRICS: SecretCacheMetrics = { add: () => {} }
/** Milliseconds between statements that find out whether the database of users answers. */
const PROBE_MS = 3000
const POLL_REPORT_MS = 30_000

export class Registry {
  readonly tenants: TenantStore
  readonly users: UserStore
  readonly applications: ApplicationStore
  readonly clients: ClientStore
  readonly subscriptions: SubscriptionStore
  readonly workflows: WorkflowStore
  readonly policies: PolicyStore
  readonly tokens: TokenStore
  readonly signingKeys: SigningKeyStore
  readonly #options: RegistryOptions
  readonly #shared: Database
  readonly #apim: Database
  readonly #changes: ChangeLog
  readonly #presence: NodePresence
  readonly #guard: LoginGuard
  readonly #secrets: { readonly users: VerifiedSecretCache; readonly clients: VerifiedSecretCache }
  #generatedPassword = ''
  #probe: NodeJS.Timeout | undefined
  #pollReportedMs = Number.NEGATIVE_INFINITY

  private constructor(shared: Database, apim: Database, rules: AccountRules, options: RegistryOptions) {
    const { configuration, dataDir, issuer, takesIssuer = false, nowMs = Date.now, metrics = NO_METRICS } = options
    const changes = new ChangeLog(apim, issuer, nowMs, options.pollMs)
    const tokens = new TokenStore(apim, {
      changes,
      retainsForAuditing: configuration.oauth['token_cleanup.retain_access_tokens_for_auditing'],
      nowMs,
    })
    this.#options = options
    this.#shared = shared
    this.#apim = apim
    this.#changes = changes
    this.#guard = new LoginGuard(lockoutSettings(configuration), {
      locked: (account, address) => this.#reportLock(account, address),
    })
    this.tokens = tokens
    this.#secrets = { users: new VerifiedSecretCache(metrics), clients: new VerifiedSecretCache(metrics) }
    const ciphers = openCiphers(configuration.encryption.key, dataDir, apim.dialect === 'sqlite')
    this.signingKeys = new SigningKeyStore(apim, changes, ciphers)
    this.#presence = new NodePresence(apim, changes, { issuer, takesIssuer, report: options.report })
    this.tenants = new TenantStore(shared, nowMs)
    this.users = new UserStore(shared, {
      changes,
      tokens,
      rules,
      guard: this.#guard,
      secrets: this.#secrets.users,
      superAdmin: configuration.super_admin.username,
      nowMs,
    })
    this.applications = new ApplicationStore(apim, { changes, tokens, nowMs })
    this.clients = new ClientStore(apim, { changes, tokens, secrets: this.#secrets.clients, nowMs })
    this.subscriptions = new SubscriptionStore(apim, { changes, nowMs })
    this.workflows = new WorkflowStore(apim, { changes, nowMs })
    const policies = new PolicyStore(apim, changes)
    this.policies = policies
    changes.readPolicies = () => policies.snapshot()
  }

  /**
   * Connects, migrates the tables, and creates the super admin and its tenant. Rejects with ConfigurationErrors for
   * invalid settings, with RegistryUnavailable where a database does not respond, with SigningKeysUnusable or
   * IssuerConflict where the node cannot work beside others, and with IssuerShared where it has to take their issuer.
   */
  static async open(options: RegistryOptions): Promise<Registry> {
    const { configuration, dataDir } = options
    const rules = new AccountRules(configuration['user_store.properties'])
    const settings = databaseSettings(configuration, dataDir)
    const apim = new Database(settings.apim)
    const shared = settings.shared === settings.apim ? apim : new Database(settings.shared)
    let registry: Registry | null = null
    try {
      await Promise.all([apim.tryValidationQuery(), shared === apim ? undefined : shared.tryValidationQuery()])
      if (shared === apim) await migrate(apim, ['shared', 'apim'])
      else await Promise.all([migrate(shared, ['shared']), migrate(apim, ['apim'])])
      registry = new Registry(shared, apim, rules, options)
      await registry.#start()
      return registry
    } catch (error) {
      await (registry === null ? Promise.all([apim.close(), shared.close()]) : registry.close())
      throw error
    }
  }

  /** Null until it is set; changes before that are not reported. */
  get listener(): RegistryListener | null {
    return this.#changes.listener
  }

  set listener(listener: RegistryListener | null) {
    this.#changes.listener = listener
  }

  /** Password of the super admin where this start generated it, to be printed once; otherwise ''. */
  get generatedPassword(): string {
    return this.#generatedPassword
  }

  /** All applications, keys, subscriptions and active revocations, as gateways need them. */
  async snapshot(): Promise<{
    readonly subscriptions: SubscriptionUpdate
    readonly revoked: readonly RevocationRecord[]
  }> {
    const revoked = await this.tokens.activeRevocations()
    const subscriptions = await this.#apim.read(async db => ({
      applications: (await db.selectFrom('sluice_applications').selectAll().execute()).map(applicationRecord),
      keys: (await db.selectFrom('sluice_clients').selectAll().execute()).flatMap(row =>
        keyRecords(row, this.#options.issuer),
      ),
      subscriptions: (await db.selectFrom('sluice_subscriptions').selectAll().execute()).map(subscriptionRecord),
      removed: NOTHING_REMOVED,
    }))
    return { subscriptions, revoked }
  }

  /** The database of the outbox of mails. */
  get outboxDatabase(): Pick<Database, 'dialect' | 'kysely'> {
    return this.#apim
  }

  /** Usage of the caches of verified passwords and client secrets. */
  secretsUsage(): CacheUsage {
    return sumOfUsages([this.#secrets.users.usage(), this.#secrets.clients.usage()])
  }

  /** Each database with the sections that name it, for health checks. */
  databases() {
    const isOne = this.#shared === this.#apim
    const healthOf = (database: Database, ...sections: readonly string[]) => ({
      sections,
      connections: database.connections,
      usedConnections: () => database.usedConnections,
      ping: () => database.ping(),
    })
    if (isOne) return [healthOf(this.#apim, 'database.apim_db', 'database.shared_db')]
    return [healthOf(this.#apim, 'database.apim_db'), healthOf(this.#shared, 'database.shared_db')]
  }

  /** Applies new lockout settings. All other settings of the registry need a restart. */
  reload(configuration: Configuration): void {
    this.#guard.settings = lockoutSettings(configuration)
  }

  async close(): Promise<void> {
    this.#changes.close()
    clearInterval(this.#probe)
    await this.#presence.leave()
    await this.#apim.close()
    if (this.#shared !== this.#apim) await this.#shared.close()
  }

  async #start(): Promise<void> {
    const { configuration, dataDir } = this.#options
    // A node that cannot take part changes nothing.
    await this.signingKeys.list()
    await this.#presence.enter()
    await this.tenants.createIfAbsent(SUPER_TENANT)
    await this.users.applyNameComparison()
    this.#generatedPassword = await createSuperAdmin(this.users, configuration, dataDir)
    await this.#changes.start(error => this.#pollFailed(error))
    this.#watchOutages()
  }

  #watchOutages(): void {
    const { report = () => {}, metrics = NO_METRICS, pollMs = PROBE_MS } = this.#options
    const watched = (database: Database, section: 'database.apim_db' | 'database.shared_db'): DatabaseOutage =>
      new DatabaseOutage({ section, description: database.description, report, metrics })
    this.#apim.outage = watched(this.#apim, 'database.apim_db')
    this.#apim.usage = new DatabaseUsage('database.apim_db', this.#apim.connections, metrics)
    if (this.#shared === this.#apim) return
    this.#shared.outage = watched(this.#shared, 'database.shared_db')
    this.#shared.usage = new DatabaseUsage('database.shared_db', this.#shared.connections, metrics)
    // The other database is polled for changes.
    if (this.#shared.dialect !== 'sqlite') {
      let isAnswered = true
      const probe = async (): Promise<void> => {
        if (!isAnswered) return
        isAnswered = false
        await this.#shared.ping().catch(() => {})
        isAnswered = true
      }
      this.#probe = setInterval(() => void probe(), pollMs).unref()
    }
  }

  /** Reports why changes of other nodes cannot be read, not more often than an outage, and not during one. */
  #pollFailed(error: Error): void {
    if (this.#apim.outage?.isDown === true) return
    const nowMs = performance.now()
    if (nowMs - this.#pollReportedMs < POLL_REPORT_MS) return
    this.#pollReportedMs = nowMs
    const fields = { CAUSE_OF_ERROR: error.message }
    this.#options.report?.('error', 'changes of other nodes cannot be read', fields)
  }

  /** `account`: tenant and name, as the user store forms it. `address`: '' for all addresses. */
  #reportLock(account: string, address: string): void {
    const end = account.indexOf('\n')
    const fields = { USER: account.slice(end + 1), TENANT: account.slice(0, end) }
    const where = address === '' ? {} : { CLIENT_ADDRESS: address }
    this.#options.report?.('warn', 'user locked out after wrong passwords', { ...fields, ...where })
  }
}

function lockoutSettings({ oauth }: Configuration): LockoutSettings {
  return { failuresMax: Math.max(0, oauth['lockout.failures']), lockMs: oauth['lockout.time'] * 1000 }
}
