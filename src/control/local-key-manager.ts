/** The key manager that runs on this node: registry, OAuth endpoints, admin API, and the listener that serves them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type AccountName, resolveAccountName } from '../auth/account-names.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { ControlPlan, PrimaryCall, PrimaryCallResults } from '../plan/control-messages.ts'
import type { DeclaredApplications, IssuerKeys, RevocationRecord } from '../auth/records.ts'
import { type AuthenticatedUser, ControlCallFailed, type IntrospectionResult } from '../auth/control-protocol.ts'
import { KeyManager, type VerifiedAssertion } from './oauth/key-manager.ts'
import type { ManagementCommand, ManagementCommands } from './admin-api/commands.ts'
import type { AdminServices, ApiCatalogue } from './admin-api/admin-services.ts'
import { NEW_SOCKET } from '../socket/byte-socket.ts'
import { ManagementListener } from './management-listener.ts'
import type { MountedApp } from './management-options.ts'
import type { EventLog } from '../observe/events.ts'
import { CacheWatch } from '../observe/cache-metrics.ts'
import { MetricsColumn } from '../observe/metrics.ts'
import { Registry, type RegistryListener } from './registry/registry.ts'
import { RegistryUnavailable } from './registry/registry-errors.ts'
import type { HttpClient } from './remote/http-client.ts'
import type { PlatformMails } from './platform-mails.ts'
import { portalSettings } from './portal-settings.ts'
import { LocalDashboard } from './local-dashboard.ts'
import { HEALTH_PATH, HealthChecks } from './health-checks.ts'
import { tokenService } from './token-service.ts'
import { WorkflowEngine, workflowEngineSettings } from './workflow-engine.ts'

/** A change is posted to every reactor before its method returns. */
export interface LocalKeyManagerContext extends Required<Omit<RegistryListener, 'signingKeysChanged'>> {
  readonly report: EventLog['report']
  /** An inherited socket for the management listener; NEW_SOCKET: it binds one. */
  readonly listenerFd: number
  readonly publishKeys: (keys: IssuerKeys) => void
  readonly verifyAssertion: (assertion: string) => Promise<VerifiedAssertion | null>
  /** Sends a request to another server. */
  readonly send: HttpClient['send']
  /** Rejects with an error whose message may be shown to clients. */
  callPrimary<One extends PrimaryCall>(call: One): Promise<PrimaryCallResults[One['kind']]>
}

const KEY_MANAGER_PATHS = [
  '/oauth2',
  '/oidc',
  '/.well-known/openid-configuration',
  '/.well-known/oauth-authorization-server',
  '/client-registration',
]

export class LocalKeyManager {
  readonly #context: LocalKeyManagerContext
  readonly #registry: Registry
  readonly #manager: KeyManager
  readonly #workflowEngine: WorkflowEngine
  /** Further path of the workflow callback; '' for none. */
  readonly #callback: string
  readonly #dashboard: LocalDashboard
  #listener: ManagementListener | null = null
  /** Null before the first command. */
  #commands: ManagementCommands | null = null
  /** Null without a mail server. */
  #mails: PlatformMails | null = null
  #healthChecks: HealthChecks
  #plan: ControlPlan
  readonly #cacheTimer: NodeJS.Timeout

  private constructor(
    plan: ControlPlan,
    registry: Registry,
    manager: KeyManager,
    healthChecks: HealthChecks,
    context: LocalKeyManagerContext,
  ) {
    this.#healthChecks = healthChecks
    this.#plan = plan
    this.#registry = registry
    this.#manager = manager
    this.#context = context
    const { callback_endpoint: callback } = plan.configuration['apim.workflow']
    this.#callback = callback.startsWith('/') ? callback : ''
    const callPrimary: LocalKeyManagerContext['callPrimary'] = call => context.callPrimary(call)
    this.#dashboard = new LocalDashboard({ manager, plan: () => this.#plan, callPrimary })
    this.#workflowEngine = new WorkflowEngine({
      workflows: registry.workflows,
      send: context.send,
      settings: () => workflowEngineSettings(this.#plan.configuration, this.#plan.dataDir, this.#origin),
      report: context.report,
      nowMs: Date.now,
    })
    this.#cacheTimer = CacheWatch.start(new MetricsColumn(plan.metrics, plan.column), {
      introspection: () => manager.introspectionCache.usage(),
      verified_secret: () => registry.secretsUsage(),
      assertion: () => manager.replayCache.usage(),
    })
    registry.listener = {
      ...context,
      signingKeysChanged: () => void this.refreshKeys().catch(() => {}),
      changesMissed: () => {
        void this.refreshKeys().catch(() => {})
        context.changesMissed()
      },
      tokensRevoked: tokens => {
        // The cache may hold introspections of these tokens, whoever has revoked them.
        manager.introspectionCache.clear()
        context.tokensRevoked(tokens)
      },
    }
  }

  /** Rejects with why not: then nothing is left open. */
  static async open(plan: ControlPlan, context: LocalKeyManagerContext): Promise<LocalKeyManager> {
    const { configuration, dataDir, home, ownIssuer: issuer, takesIssuer } = plan
    const { report } = context
    const metrics = new MetricsColumn(plan.metrics, plan.column)
    const open = () => Registry.open({ configuration, dataDir, issuer, takesIssuer, report, metrics })
    const registry = await openWaiting(open, plan.databaseWaitMs, report)
    try {
      await refuseConflicts(plan.declared, registry, issuer)
      let local: LocalKeyManager | null = null
      const options = {
        registry,
        folder: home,
        dataDir,
        // Read once the port is known.
        get origin() {
          return local === null ? '' : local.#origin
        },
        rolesOfScope: (scope: string) => rolesFor(local === null ? plan : local.#plan, scope),
        verifyAssertion: context.verifyAssertion,
        publishKeys: context.publishKeys,
        report: context.report,
        metrics,
        nowMs: Date.now,
      }
      const manager = await KeyManager.open(options, configuration)
      const healthChecks = await HealthChecks.load(configuration, home)
      local = new LocalKeyManager(plan, registry, manager, healthChecks, context)
      // Another node may have changed them before there was a listener.
      await manager.refreshKeys()
      const mails = await local.#openMails(configuration)
      await local.#listen().catch(error => Promise.resolve(mails?.close()).then(() => Promise.reject(error)))
      local.#workflowEngine.wake()
      return local
    } catch (error) {
      await registry.close()
      throw error
    }
  }

  /** Port of the management listener; 0: none. */
  get port(): number {
    return this.#listener?.port ?? 0
  }

  /** Password of the super admin, where this start has generated it; else ''. */
  get generatedPassword(): string {
    return this.#registry.generatedPassword
  }

  get keys(): IssuerKeys {
    return this.#manager.issuerKeys
  }

  /** Revokes a JWT until it would have expired. */
  async revoke(token: RevocationRecord, consumerKey: string): Promise<void> {
    await this.#registry.tokens.addRevocation(token, consumerKey)
  }

  /** Everything that reactors have to know. */
  snapshot(): ReturnType<Registry['snapshot']> {
    return this.#registry.snapshot()
  }

  /** All throttling policies of the registry. */
  policies(): ReturnType<Registry['policies']['snapshot']> {
    return this.#registry.policies.snapshot()
  }

  /** Rejects with why not: then nothing has changed. */
  async reload(plan: ControlPlan): Promise<void> {
    await refuseConflicts(plan.declared, this.#registry, plan.ownIssuer)
    const healthChecks = await HealthChecks.load(plan.configuration, plan.home)
    await this.#openMails(plan.configuration)
    const renewManager = await this.#manager.prepare(plan.configuration)
    if (plan.management !== null) this.#listener?.replace(plan.management)
    renewManager()
    this.#healthChecks = healthChecks
    this.#registry.reload(plan.configuration)
    this.#plan = plan
    this.#mails?.wake()
  }

  /** Reads the signing keys of the database again. Rejects with ControlCallFailed. */
  async refreshKeys(): Promise<void> {
    try {
      await this.#manager.refreshKeys()
    } catch (error) {
      const { message } = error as Error
      this.#context.report('error', 'signing keys not read', { CAUSE_OF_ERROR: message })
      throw new ControlCallFailed(message)
    }
  }

  /** Runs a management command of the command line. Rejects with an error whose message is for the operator. */
  async manage(request: ManagementCommand): Promise<object> {
    const { ManagementCommands: Commands } = await import('./admin-api/commands.ts')
    this.#commands ??= new Commands(() => this.#adminServices())
    return this.#commands.run(request)
  }

  /**
   * Introspects a token that this key manager has issued; null: it is not active. Reactors judge its end with each
   * request. Rejects with ControlCallFailed.
   */
  async introspect(token: string): Promise<IntrospectionResult> {
    const found = await available(() => this.#registry.tokens.find(token))
    if (found === null || found.issued.kind !== 'access' || found.issued.state !== 'ACTIVE') return null
    const { consumerKey, user, tenant, isApplication, scopes, expiresMs } = found.issued
    const { issuer } = this.keys
    return { issuer, consumerKey, user, isApplication, scopes, notBeforeMs: 0, expiresMs, claims: { tenant } }
  }

  /** Null: name or password are wrong, or the account is locked. Rejects with ControlCallFailed. */
  async authenticate(given: string, password: string, address: string): Promise<AuthenticatedUser | null> {
    const { name, tenant } = await this.#account(given)
    const user = await available(() => this.#registry.users.authenticate(name, tenant, password, address))
    if (user === null || user === 'locked') return null
    return { name: user.name, tenant: user.tenant, roles: user.roles }
  }

  /** Claims and roles of a user; none where there is no such user. Rejects with ControlCallFailed. */
  async claims(name: string, tenant: string): Promise<Readonly<Record<string, unknown>>> {
    const user = await available(() => this.#registry.users.find(name, tenant))
    return user === null ? {} : { ...user.claims, role: user.roles.join(',') }
  }

  /** Descriptor of the management listener; NEW_SOCKET: none. */
  get listenerFd(): number {
    return this.#listener?.fd ?? NEW_SOCKET
  }

  async closeListener(): Promise<void> {
    const listener = this.#listener
    this.#listener = null
    await this.#dashboard.close()
    await listener?.close()
  }

  async close(): Promise<void> {
    clearInterval(this.#cacheTimer)
    this.#workflowEngine.close()
    await this.#dashboard.close()
    await this.#listener?.close()
    this.#manager.close()
    await this.#mails?.close()
    await this.#registry.close()
  }

  get #origin(): string {
    const plan = this.#plan.management
    if (plan === null) return ''
    const url = new URL(plan.origin)
    // Port 0 stands for any free one.
    if (plan.port === 0) url.port = String(this.port)
    return url.origin
  }

  /** Loads what sends mails where a mail server is configured for the first time. */
  async #openMails(configuration: Configuration): Promise<PlatformMails | null> {
    if (this.#mails !== null || configuration['apim.notification'].hostname === '') return this.#mails
    const { PlatformMails: Mails } = await import('./platform-mails.ts')
    this.#mails = await Mails.open({
      registry: this.#registry,
      settings: () => this.#plan.configuration['apim.notification'],
      apis: () => this.#context.callPrimary({ kind: 'apis' }),
      report: this.#context.report,
    })
    return this.#mails
  }

  async #listen(): Promise<void> {
    const plan = this.#plan.management
    if (plan === null) return
    const { report, listenerFd: fd } = this.#context
    this.#listener = await ManagementListener.open(plan, { apps: () => this.#apps(), events: { report }, fd })
  }

  /** Loads the apps of the listener. */
  async #apps(): Promise<readonly MountedApp[]> {
    const [{ keyManagerApp }, { adminApps }] = await Promise.all([
      import('./oauth/app.ts'),
      import('./admin-api/admin-api.ts'),
    ])
    const { report } = this.#context
    const { fetch } = keyManagerApp(this.#manager)
    const respond = () => this.#healthChecks.respond(this.#registry, report)
    return [
      { paths: KEY_MANAGER_PATHS, area: 'web', fetch },
      { paths: [HEALTH_PATH], area: 'web', fetch: respond },
      this.#dashboard,
      ...adminApps(() => this.#adminServices(), this.#callback),
    ]
  }

  #adminServices(): AdminServices {
    const { configuration, declared } = this.#plan
    const workflow = configuration['apim.workflow']
    return {
      registry: this.#registry,
      apis: apiCatalogue(this.#context),
      tokens: tokenService(this.#manager),
      declared,
      throttling: this.#plan.throttling,
      approvals: {
        subscriptions: workflow.enable && workflow.approve_subscriptions,
        applications: workflow.enable && workflow.approve_applications,
        keys: workflow.enable && workflow.approve_keys,
        callsEngine: workflow.call_engine,
        wake: () => this.#workflowEngine.wake(),
      },
      // A reload may take the mail server away; what waits stays stored.
      notices: configuration['apim.notification'].hostname === '' ? null : this.#mails,
      portal: portalSettings(configuration, this.#origin),
      hasScim: configuration['user_store.properties'].SCIMEnabled,
      adminName: configuration.super_admin.username,
      origin: this.#origin,
      report: this.#context.report,
      nowMs: Date.now,
    }
  }

  #account(given: string): Promise<AccountName> {
    return resolveAccountName(given, () => available(() => this.#registry.tenants.list()))
  }
}

function apiCatalogue(context: LocalKeyManagerContext): ApiCatalogue {
  return {
    list: () => context.callPrimary({ kind: 'apis' }),
    change: async ({ name, action }) => (await context.callPrimary({ kind: 'lifecycle', name, action })).state,
  }
}

/**
 * Refuses applications and keys that both a file of the home and the database define, because it would be unclear which
 * definition holds. Rejects with the first one. `issuer`: of the tokens whose clients are in the registry.
 */
async function refuseConflicts(
  { applications, keys }: DeclaredApplications,
  registry: Registry,
  issuer: string,
): Promise<void> {
  for (const key of keys) {
    if (key.issuer !== issuer || (await registry.clients.get(key.consumerKey))?.applicationId == null) continue
    throw new Error(`the key ${key.consumerKey}, which a file in applications/ declares, is in the database too`)
  }
  for (const { tenant, owner, name } of applications) {
    const found = await registry.applications.list({ tenant, owner, name }, { offset: 0, limit: 1000 })
    if (!found.applications.some(one => one.name === name)) continue
    throw new Error(
      `the application ${name} of ${owner}, which a file in applications/ declares, is in the database too`,
    )
  }
}

/** Milliseconds between attempts to reach the database, and between events that say so. */
const ATTEMPT_PAUSE_MS = 1000
const WAITING_REPORT_MS = 10_000

/** Tries again for `waitMs` where a database cannot be reached. Rejects as `open` does. */
async function openWaiting(
  open: () => Promise<Registry>,
  waitMs: number,
  report: EventLog['report'],
): Promise<Registry> {
  const endMs = performance.now() + waitMs
  for (let reportedMs = Number.NEGATIVE_INFINITY; ; ) {
    try {
      return await open()
    } catch (error) {
      if (!(error instanceof RegistryUnavailable && error.isUnreachable)) throw error
      const nowMs = performance.now()
      if (nowMs >= endMs) {
        const hint = waitMs === 0 ? '--wait SECONDS lets the start wait for it' : `--wait was ${waitMs / 1000} s`
        throw new RegistryUnavailable(
          `${error.message}; start the database, or check where its section points (${hint})`,
        )
      }
      if (nowMs - reportedMs >= WAITING_REPORT_MS) {
        reportedMs = nowMs
        report('warn', 'waiting for the database', {
          CAUSE_OF_ERROR: error.message,
          LEFT_S: Math.ceil((endMs - nowMs) / 1000),
        })
      }
      await sleep(Math.min(ATTEMPT_PAUSE_MS, endMs - nowMs))
    }
  }
}

/** One set of roles per API that binds the scope to roles; null: no API has the scope. */
function rolesFor({ apis }: ControlPlan, scope: string): readonly (readonly string[])[] | null {
  const found = apis.flatMap(({ scopes }) => scopes.filter(({ name }) => name === scope))
  return found.length === 0 ? null : found.map(({ roles }) => roles).filter(roles => roles.length > 0)
}

/** A database that does not answer becomes ControlCallFailed. */
async function available<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw error instanceof RegistryUnavailable ? new ControlCallFailed(error.message) : error
  }
}
