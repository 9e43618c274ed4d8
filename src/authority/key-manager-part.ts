/** The key manager of this node: registry, endpoints, management, and the listener that they are reached by. */
import { type AccountName, accountNamed } from '../config/account-names.ts'
import type { AuthorityPlan, PrimaryQuestion } from '../authority-messages.ts'
import { refuseClashes } from './declared-clashes.ts'
import type { IssuerKeys, RevokedFacts, SubscriptionNews } from '../identity/facts.ts'
import type { Introspection, KnownUser } from '../identity/feed.ts'
import { InquiryFailed } from '../identity/identity-state.ts'
import { keyManagerApp } from '../keymanager/app.ts'
import { KeyManager, type VerifiedAssertion } from '../keymanager/key-manager.ts'
import { type Management, management } from '../management/apps.ts'
import type { ManagementRequest } from '../management/commands.ts'
import type { ApiShelf, ManagedApi, ManagementRoom } from '../management/room.ts'
import { ManagementListener, type MountedApp } from './management-listener.ts'
import type { EventLog } from '../observe/events.ts'
import { MetricsColumn } from '../observe/metrics.ts'
import { openRegistry } from '../registry/open.ts'
import { type Registry, RegistryUnavailable } from '../registry/registry.ts'
import { tokenDesk } from './token-desk.ts'

export interface KeyManagerOutlets {
  readonly report: EventLog['report']
  /** In force on all reactors when they return. */
  readonly subscriptions: (news: SubscriptionNews) => void
  readonly revoked: (tokens: readonly RevokedFacts[]) => void
  readonly users: () => void
  readonly keys: (keys: IssuerKeys) => void
  /** Changes of other nodes were missed: all facts have to be told anew. */
  readonly missed: () => void
  readonly verifyAssertion: (assertion: string) => Promise<VerifiedAssertion | null>
  /** Of the primary. Rejects with why there is no answer. */
  readonly ask: (question: PrimaryQuestion) => Promise<object>
}

const KEY_MANAGER_PATHS = [
  '/oauth2',
  '/.well-known/openid-configuration',
  '/.well-known/oauth-authorization-server',
  '/client-registration',
]

export class KeyManagerPart {
  readonly #outlets: KeyManagerOutlets
  readonly #registry: Registry
  readonly #manager: KeyManager
  readonly #management: Management
  #listener: ManagementListener | null = null
  #plan: AuthorityPlan

  private constructor(plan: AuthorityPlan, registry: Registry, manager: KeyManager, outlets: KeyManagerOutlets) {
    this.#plan = plan
    this.#registry = registry
    this.#manager = manager
    this.#outlets = outlets
    this.#management = management(() => this.#room())
    registry.listener = {
      subscriptions: news => outlets.subscriptions(news),
      revoked: tokens => {
        // Whoever has revoked them: what was remembered of introspections may be about them.
        manager.memory.clear()
        outlets.revoked(tokens)
      },
      users: () => outlets.users(),
      missed: () => outlets.missed(),
    }
  }

  /** Rejects with why not; nothing is left open then. */
  static async open(plan: AuthorityPlan, outlets: KeyManagerOutlets): Promise<KeyManagerPart> {
    const { configuration, dataDir, home, ownIssuer: issuer } = plan
    const { report } = outlets
    const metrics = new MetricsColumn(plan.metrics, plan.column)
    const registry = await openRegistry({ configuration, dataDir, issuer, report, metrics })
    try {
      await refuseClashes(plan.declared, registry, issuer)
      let part: KeyManagerPart | null = null
      const surroundings = {
        registry,
        folder: home,
        dataDir,
        // It is asked for once the port is known.
        get origin() {
          return part === null ? '' : part.#origin
        },
        rolesFor: (scope: string) => rolesFor(part === null ? plan : part.#plan, scope),
        verifyAssertion: outlets.verifyAssertion,
        keysChanged: outlets.keys,
        log: outlets.report,
        metrics,
        now: Date.now,
      }
      const manager = await KeyManager.open(surroundings, configuration)
      part = new KeyManagerPart(plan, registry, manager, outlets)
      await part.#listen()
      return part
    } catch (error) {
      await registry.close()
      throw error
    }
  }

  /** Of the management listener; 0 without one. */
  get port(): number {
    return this.#listener?.port ?? 0
  }

  /** That of the super admin, where this start has made it; else ''. */
  get generatedPassword(): string {
    return this.#registry.generatedPassword
  }

  get keys(): IssuerKeys {
    return this.#manager.keys
  }

  /** For as long as it would have been good. */
  async revoke(token: RevokedFacts, consumerKey: string): Promise<void> {
    await this.#registry.tokens.revokeFacts(token, consumerKey)
  }

  facts(): ReturnType<Registry['facts']> {
    return this.#registry.facts()
  }

  /** Rejects with why not; then everything is as it was. */
  async reload(plan: AuthorityPlan): Promise<void> {
    await refuseClashes(plan.declared, this.#registry, plan.ownIssuer)
    const renewManager = await this.#manager.prepare(plan.configuration)
    if (plan.management !== null) this.#listener?.replace(plan.management)
    renewManager()
    this.#registry.reload(plan.configuration)
    this.#plan = plan
  }

  /** For the command line. Rejects with an error whose message may be told. */
  manage(request: ManagementRequest): Promise<object> {
    return this.#management.commands.run(request)
  }

  /** Of tokens that this node has given. Rejects with InquiryFailed. */
  async introspect(token: string): Promise<Introspection> {
    const found = await available(() => this.#registry.tokens.find(token))
    if (found === null || found.issued.kind !== 'access' || found.issued.state !== 'ACTIVE') return null
    const { consumerKey, user, tenant, isApplication, scopes, expiresMs } = found.issued
    if (expiresMs <= Date.now()) return null
    const { issuer } = this.keys
    return { issuer, consumerKey, user, isApplication, scopes, expiresMs, claims: { tenant } }
  }

  /** Null: they are wrong, or the account is locked. Rejects with InquiryFailed. */
  async password(given: string, password: string, address: string): Promise<KnownUser | null> {
    const { name, tenant } = await this.#account(given)
    const user = await available(() => this.#registry.users.authenticate(name, tenant, password, address))
    if (user === null || user === 'locked') return null
    return { name: user.name, tenant: user.tenant, roles: user.roles }
  }

  /** Rejects with InquiryFailed. */
  async claims(name: string, tenant: string): Promise<Readonly<Record<string, unknown>>> {
    const user = await available(() => this.#registry.users.find(name, tenant))
    return user === null ? {} : { ...user.claims, role: user.roles.join(',') }
  }

  async close(): Promise<void> {
    await this.#listener?.close()
    this.#manager.close()
    await this.#registry.close()
  }

  get #origin(): string {
    const plan = this.#plan.management
    if (plan === null) return ''
    const url = new URL(plan.origin)
    // Any free port was asked for.
    if (plan.port === 0) url.port = String(this.port)
    return url.origin
  }

  async #listen(): Promise<void> {
    const plan = this.#plan.management
    if (plan === null) return
    const { fetch } = keyManagerApp(this.#manager)
    const keyManager: MountedApp = { paths: KEY_MANAGER_PATHS, gate: 'web', fetch }
    const { report } = this.#outlets
    this.#listener = await ManagementListener.open(plan, {
      apps: [keyManager, ...this.#management.apps],
      events: { report },
    })
  }

  #room(): ManagementRoom {
    const { configuration, declared } = this.#plan
    return {
      registry: this.#registry,
      apis: shelf(this.#outlets.ask),
      tokens: tokenDesk(this.#manager),
      declared,
      adminName: configuration.super_admin.username,
      origin: this.#origin,
      report: this.#outlets.report,
      now: Date.now,
    }
  }

  #account(given: string): Promise<AccountName> {
    return accountNamed(given, () => available(() => this.#registry.tenants.list()))
  }
}

function shelf(ask: KeyManagerOutlets['ask']): ApiShelf {
  return {
    list: async () => (await ask({ kind: 'apis' })) as readonly ManagedApi[],
    change: async ({ name, action }) => {
      const { state } = (await ask({ kind: 'lifecycle', name, action })) as { readonly state: string }
      return state
    },
  }
}

/** As those APIs bind it to roles that have the scope; null where none has it. */
function rolesFor({ apis }: AuthorityPlan, scope: string): readonly (readonly string[])[] | null {
  const found = apis.flatMap(({ scopes }) => scopes.filter(({ name }) => name === scope))
  return found.length === 0 ? null : found.map(({ roles }) => roles).filter(roles => roles.length > 0)
}

async function available<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw error instanceof RegistryUnavailable ? new InquiryFailed(error.message) : error
  }
}
