/** Opens the registry: databases as configured, their tables up to date, and the accounts that must be there. */
import { SUPER_TENANT } from '../config/account-names.ts'
import type { Configuration } from '../config/catalogue.ts'
import { NOTHING_REMOVED, type RevokedFacts, type SubscriptionNews } from '../identity/facts.ts'
import type { EventLog } from '../observe/events.ts'
import { AccountRules } from './account-rules.ts'
import { DatabaseApplicationStore } from './application-store.ts'
import { ChangeLog } from './change-log.ts'
import { DatabaseClientStore } from './client-store.ts'
import { Database } from './database.ts'
import { databasePlan } from './database-plan.ts'
import { type GuardTerms, LoginGuard } from './login-guard.ts'
import { migrate } from './migrate.ts'
import type { Registry, RegistryListener } from './registry.ts'
import { applicationFacts, keyFacts, subscriptionFacts } from './rows.ts'
import { DatabaseSubscriptionStore } from './subscription-store.ts'
import { createSuperAdmin } from './super-admin.ts'
import { DatabaseTenantStore } from './tenant-store.ts'
import { DatabaseTokenStore } from './token-store.ts'
import { TokenVault } from './token-vault.ts'
import { DatabaseUserStore } from './user-store.ts'
import { type SecretMetrics, VerifiedSecrets } from './verified-secrets.ts'

interface RegistryOptions {
  readonly configuration: Configuration
  /** Of the embedded database and of generated secrets; it exists. */
  readonly dataDir: string
  /** `iss` of the tokens whose clients are kept here. */
  readonly issuer: string
  readonly report?: EventLog['report']
  readonly metrics?: SecretMetrics
  readonly nowMs?: () => number
  /** Milliseconds between looks at what other nodes have done. */
  readonly pollMs?: number
}

const UNCOUNTED: SecretMetrics = { add: () => {} }

/**
 * Throws ConfigurationFaults for what an operator has to put right, RegistryUnavailable where a database does not
 * answer.
 */
export async function openRegistry(options: RegistryOptions): Promise<Registry> {
  const { configuration, dataDir } = options
  const rules = new AccountRules(configuration['user_store.properties'])
  const plan = databasePlan(configuration, dataDir)
  const apim = new Database(plan.apim)
  const shared = plan.shared === plan.apim ? apim : new Database(plan.shared)
  try {
    if (shared === apim) await migrate(apim, ['shared', 'apim'])
    else await Promise.all([migrate(shared, ['shared']), migrate(apim, ['apim'])])
    const registry = new DatabaseRegistry(shared, apim, rules, options)
    await registry.begin()
    return registry
  } catch (error) {
    await Promise.all([apim.close(), shared.close()])
    throw error
  }
}

class DatabaseRegistry implements Registry {
  generatedPassword = ''
  readonly tenants: DatabaseTenantStore
  readonly users: DatabaseUserStore
  readonly applications: DatabaseApplicationStore
  readonly clients: DatabaseClientStore
  readonly subscriptions: DatabaseSubscriptionStore
  readonly tokens: DatabaseTokenStore
  readonly #options: RegistryOptions
  readonly #shared: Database
  readonly #apim: Database
  readonly #changes: ChangeLog
  readonly #guard: LoginGuard

  constructor(shared: Database, apim: Database, rules: AccountRules, options: RegistryOptions) {
    const { configuration, dataDir, issuer, nowMs = Date.now, metrics = UNCOUNTED } = options
    const keepsTokens =
      configuration['apim.oauth_config'].enable_token_encryption &&
      !configuration['apim.oauth_config'].enable_token_hashing
    this.#options = options
    this.#shared = shared
    this.#apim = apim
    this.#changes = new ChangeLog(apim, issuer, nowMs, options.pollMs)
    this.tenants = new DatabaseTenantStore(shared, nowMs)
    this.tokens = new DatabaseTokenStore(apim, this.#changes, {
      vault: keepsTokens ? TokenVault.encrypting(dataDir) : TokenVault.hashesOnly(),
      retainsForAuditing: configuration.oauth['token_cleanup.retain_access_tokens_for_auditing'],
      nowMs,
    })
    this.#guard = new LoginGuard(guardTerms(configuration), { locked: (name, place) => this.#reportLock(name, place) })
    this.users = new DatabaseUserStore(shared, this.tokens, {
      rules,
      guard: this.#guard,
      changes: this.#changes,
      verified: new VerifiedSecrets(metrics),
      superAdmin: configuration.super_admin.username,
      nowMs,
    })
    this.applications = new DatabaseApplicationStore({
      ...{ database: apim, changes: this.#changes, tokens: this.tokens, nowMs },
    })
    this.clients = new DatabaseClientStore(apim, this.#changes, this.tokens, {
      nowMs,
      verified: new VerifiedSecrets(metrics),
    })
    this.subscriptions = new DatabaseSubscriptionStore(apim, this.#changes, nowMs)
  }

  get listener(): RegistryListener | null {
    return this.#changes.listener
  }

  set listener(listener: RegistryListener | null) {
    this.#changes.listener = listener
  }

  async begin(): Promise<void> {
    const { configuration, dataDir, report } = this.#options
    await this.tenants.ensure(SUPER_TENANT)
    await this.users.compareAsConfigured()
    this.generatedPassword = await createSuperAdmin(this.users, configuration, dataDir)
    await this.#changes.begin(cause =>
      report?.('error', 'changes of other nodes are not known', { CAUSE_OF_ERROR: cause }),
    )
  }

  async facts(): Promise<{ readonly subscriptions: SubscriptionNews; readonly revoked: readonly RevokedFacts[] }> {
    const revoked = await this.tokens.revocations()
    const subscriptions = await this.#apim.read(async db => ({
      applications: (await db.selectFrom('sluice_applications').selectAll().execute()).map(applicationFacts),
      keys: (await db.selectFrom('sluice_clients').selectAll().execute()).flatMap(row =>
        keyFacts(row, this.#options.issuer),
      ),
      subscriptions: (await db.selectFrom('sluice_subscriptions').selectAll().execute()).map(subscriptionFacts),
      removed: NOTHING_REMOVED,
    }))
    return { subscriptions, revoked }
  }

  reload(configuration: Configuration): void {
    this.#guard.terms = guardTerms(configuration)
  }

  #reportLock(account: string, place: string): void {
    const end = account.indexOf('\n')
    const fields = { USER: account.slice(end + 1), TENANT: account.slice(0, end) }
    const where = place === '' ? {} : { CLIENT_ADDRESS: place }
    this.#options.report?.('warn', 'user locked out after wrong passwords', { ...fields, ...where })
  }

  async close(): Promise<void> {
    this.#changes.close()
    await this.#apim.close()
    if (this.#shared !== this.#apim) await this.#shared.close()
  }
}

function guardTerms({ oauth }: Configuration): GuardTerms {
  const failures = oauth['lockout.failures']
  return { failuresMax: Math.max(0, failures), lockMs: oauth['lockout.time'] * 1000 }
}
