/**
 * The control plane of a node: joins the key manager, the clients of remote services and the operator's modules, serves
 * the calls of reactors and tells reactors every change. A part that the node does not need is never loaded.
 */
import { AuthSnapshot } from './auth-snapshot.ts'
import { AssertionVerifier } from './assertion-verifier.ts'
import type { ControlPlan, FirstAccount } from '../plan/control-messages.ts'
import { BackendModules } from './backend-modules.ts'
import type { DeclaredApplications } from '../auth/records.ts'
import { type IssuerKeys, consumerKeyId, NOTHING_REMOVED, type SubscriptionUpdate } from '../auth/records.ts'
import {
  type AuthenticatedUser,
  type AuthUpdate,
  ControlCallFailed,
  type IntrospectionResult,
} from '../auth/control-protocol.ts'
import type { MetricsColumn } from '../observe/metrics.ts'
import { timed } from '../observe/operation-times.ts'
import { isTracing } from '../plan/trace-planning.ts'
import type { LocalKeyManager, LocalKeyManagerContext } from './local-key-manager.ts'
import type { Messaging, SharedState } from './messaging.ts'
import type { Analytics } from './analytics.ts'
import type { Traces } from './traces.ts'
import type { ManagementCommand } from './admin-api/commands.ts'
import type { ControlCallHandlers, ReactorChannels } from './reactor-channels.ts'
import { PolicyDeployment } from './policy-deployment.ts'
import { RemoteServices } from './remote-services.ts'
import { RevocationNotifier } from './revocation-notifier.ts'
import { Revocations } from './revocations.ts'
import { NEW_SOCKET } from '../socket/byte-socket.ts'
import { SerialQueue } from '../runtime/serial-queue.ts'
import { SingleFlight } from '../runtime/single-flight.ts'

interface ControlPlaneContext extends Pick<LocalKeyManagerContext, 'report' | 'callPrimary'> {
  /** An inherited socket for the management listener. */
  readonly listenerFd?: number
  readonly reactors: ReactorChannels
  /** The column of the control thread. */
  readonly metrics: MetricsColumn
}

const RETRY_MS = 5000
/** Names in one line of the log. */
const NAMES_SHOWN = 20

export class ControlPlane {
  readonly #context: ControlPlaneContext
  readonly #assertions = new AssertionVerifier(issuer => this.#remote.keySets.refresh(issuer))
  readonly #remote: RemoteServices
  #plan: ControlPlan
  #modules: BackendModules
  /** Null on a node that uses the key manager of another one. */
  #keyManager: LocalKeyManager | null = null
  readonly #revocations: Revocations
  readonly #policies: PolicyDeployment
  /** Applications, keys and subscriptions as key managers of other nodes have told them; later ones win. */
  #told = new AuthSnapshot()
  /** Null: neither broker nor traffic manager is configured. */
  #messaging: Messaging | null = null
  /** Null: events are not published. */
  #analytics: Analytics | null = null
  /** Null: requests are not traced. */
  #traces: Traces | null = null
  /** One snapshot at a time: of two, the older one could be sent last and lose a change between them. */
  readonly #snapshots = new SerialQueue(() => this.#sendSnapshot())
  /** Changes that come while a snapshot is read; null while none is read. */
  #meanwhile: SubscriptionUpdate[] | null = null
  #retry: NodeJS.Timeout | undefined
  /** By token: concurrent calls of reactors share one introspection. */
  readonly #introspections = new SingleFlight<IntrospectionResult>()
  /** By user, password and address: concurrent calls of reactors share one login. */
  readonly #logins = new SingleFlight<AuthenticatedUser | null>()

  private constructor(
    plan: ControlPlan,
    modules: BackendModules,
    notifier: RevocationNotifier | null,
    context: ControlPlaneContext,
  ) {
    this.#plan = plan
    this.#modules = modules
    this.#context = context
    this.#assertions.renew(plan.issuers)
    const publish = (keys: IssuerKeys): void => this.#publish(keys)
    this.#revocations = new Revocations({
      report: context.report,
      reactors: context.reactors,
      notifier,
      keyManager: () => this.#keyManager,
      messaging: () => this.#messaging,
      revoked: () => this.#introspections.clear(),
    })
    this.#policies = new PolicyDeployment(plan.configuration, {
      broadcast: update => context.reactors.broadcast(update),
      read: async () => (this.#keyManager === null ? null : this.#keyManager.policies()),
      failed: error => context.report('error', 'policies not read', { CAUSE_OF_ERROR: error.message }),
      files: () => this.#plan.throttling.files,
      surplus: names =>
        context.report('warn', 'custom policies do not apply: 24 apply at most, those of files first', {
          POLICIES: names.slice(0, NAMES_SHOWN).join(', '),
          COUNT: names.length,
        }),
    })
    this.#remote = new RemoteServices(plan, { publish, report: context.report, metrics: context.metrics })
  }

  /** Resolves when a full snapshot is in the queue of every reactor. Rejects with why the node cannot start. */
  static async open(plan: ControlPlan, context: ControlPlaneContext): Promise<ControlPlane> {
    const modules = await BackendModules.load(plan.configuration['apim.jwt'], plan.home)
    const revocation = plan.configuration['apim.token.revocation']
    const notifier = await RevocationNotifier.load(revocation.notifier_impl, plan.home, context.report)
    const controlPlane = new ControlPlane(plan, modules, notifier, context)
    context.reactors.open(plan.authVersion, controlPlane.#handlers())
    try {
      await (plan.runsKeyManager ? controlPlane.#openKeyManager() : controlPlane.#revocations.readFile(plan))
      await controlPlane.#openMessaging()
      await controlPlane.#openAnalytics()
      await controlPlane.#openTraces()
      await controlPlane.#snapshots.run()
      return controlPlane
    } catch (error) {
      await controlPlane.close()
      throw error
    }
  }

  /** Port of the management listener; 0: none. */
  get port(): number {
    return this.#keyManager?.port ?? 0
  }

  /** Descriptor of the management listener; NEW_SOCKET: none. */
  get listenerFd(): number {
    return this.#keyManager?.listenerFd ?? NEW_SOCKET
  }

  /** Closes the management listener behind its pending requests, and the receiver of reports. */
  async closeListener(): Promise<void> {
    await this.#messaging?.closeReceiver()
    await this.#keyManager?.closeListener()
  }

  /** Null unless this start has created it with a generated password. */
  get firstAccount(): FirstAccount | null {
    const password = this.#keyManager?.generatedPassword ?? ''
    const { username } = this.#plan.configuration.super_admin
    return password === '' ? null : { username, password }
  }

  /** Rejects with why not: then nothing has changed. */
  async reload(plan: ControlPlan): Promise<void> {
    const modules = await BackendModules.load(plan.configuration['apim.jwt'], plan.home)
    await this.#keyManager?.reload(plan)
    this.#modules = modules
    const { declared } = this.#plan
    this.#plan = plan
    this.#assertions.renew(plan.issuers)
    this.#remote.renew(plan)
    this.#policies.renew(plan.configuration)
    this.#sendDeclared(declared, plan.declared)
  }

  /** Runs a management command of the command line. Rejects with an error whose message is for the operator. */
  manage(request: ManagementCommand): Promise<object> {
    if (request.action === 'token revoke') return this.#revocations.revoke(request.token)
    if (this.#keyManager === null) return Promise.reject(new ControlCallFailed('this node has no key manager'))
    return this.#keyManager.manage(request)
  }

  async close(): Promise<void> {
    clearTimeout(this.#retry)
    this.#policies.close()
    await this.#messaging?.close()
    await this.#analytics?.close()
    await this.#traces?.close()
    await this.#keyManager?.close()
    await this.#remote.close()
  }

  async #openKeyManager(): Promise<void> {
    const { LocalKeyManager: KeyManager } = await import('./local-key-manager.ts')
    const { report, callPrimary, listenerFd } = this.#context
    this.#keyManager = await KeyManager.open(this.#plan, {
      report,
      callPrimary,
      listenerFd: listenerFd ?? NEW_SOCKET,
      publishKeys: keys => this.#publish(keys),
      subscriptionsChanged: update => this.#subscriptionsChanged(update),
      tokensRevoked: tokens => this.#revocations.announce(tokens),
      usersChanged: () => this.#usersChanged(),
      policiesChanged: set => {
        this.#policies.setRegistry(set)
        this.#messaging?.publishPolicies(set)
      },
      changesMissed: () => this.#resendSnapshot(),
      verifyAssertion: assertion => this.#assertions.verify(assertion),
      send: request => this.#remote.send(request),
    })
    this.#publish(this.#keyManager.keys)
  }

  async #openMessaging(): Promise<void> {
    if (!needsMessaging(this.#plan)) return
    const { Messaging: Opened } = await import('./messaging.ts')
    const keyManager = this.#keyManager
    const { reactors, report } = this.#context
    this.#messaging = await Opened.open(this.#plan, {
      report,
      state: keyManager === null ? null : () => sharedState(keyManager),
      decided: decisions => reactors.broadcast({ kind: 'decisions', decisions }),
      revoked: tokens => this.#revocations.takeIn(tokens),
      subscriptionsChanged: update => {
        this.#told.apply({ kind: 'subscriptions', update })
        reactors.broadcast({ kind: 'subscriptions', update })
      },
      subscriptionsReplaced: updates => {
        this.#told = new AuthSnapshot()
        for (const update of updates) this.#told.apply({ kind: 'subscriptions', update })
        this.#resendSnapshot()
      },
      policiesChanged: set => this.#policies.setRegistry(set),
    })
  }

  async #openAnalytics(): Promise<void> {
    const { configuration, home, dataDir, runsGateway } = this.#plan
    if (!runsGateway || !configuration['apim.analytics'].enable) return
    const { Analytics: Opened } = await import('./analytics.ts')
    const { report, metrics } = this.#context
    const send: RemoteServices['send'] = request => this.#remote.send(request)
    this.#analytics = await Opened.open({ configuration, home, dataDir, send, report, metrics })
  }

  async #openTraces(): Promise<void> {
    const { configuration, runsGateway } = this.#plan
    if (!runsGateway || !isTracing(configuration)) return
    const { Traces: Opened } = await import('./traces.ts')
    const { report, metrics } = this.#context
    this.#traces = new Opened({ configuration, send: request => this.#remote.send(request), report, metrics })
  }

  #publish(keys: IssuerKeys): void {
    this.#assertions.setKeys(keys)
    this.#context.reactors.broadcast({ kind: 'keys', issuers: [keys] })
  }

  #usersChanged(): void {
    this.#logins.clear()
    this.#context.reactors.broadcast({ kind: 'users' })
  }

  #subscriptionsChanged(update: SubscriptionUpdate): void {
    this.#context.reactors.broadcast({ kind: 'subscriptions', update })
    this.#meanwhile?.push(update)
    this.#messaging?.publishSubscriptions(update)
  }

  /** A snapshot may be older than a change that comes while it is read: such changes are sent again behind it. */
  async #readSnapshot(): Promise<readonly AuthUpdate[]> {
    if (this.#keyManager === null) return this.#told.updates().filter(({ kind }) => kind === 'subscriptions')
    const meanwhile: SubscriptionUpdate[] = []
    this.#meanwhile = meanwhile
    try {
      const { subscriptions, revoked } = await this.#keyManager.snapshot()
      await this.#policies.refresh()
      const updates = [subscriptions, ...meanwhile]
      return [
        { kind: 'revoked', tokens: revoked },
        ...updates.map(update => ({ kind: 'subscriptions' as const, update })),
      ]
    } finally {
      this.#meanwhile = null
    }
  }

  async #sendSnapshot(): Promise<void> {
    const { reactors } = this.#context
    const updates = await this.#readSnapshot()
    reactors.broadcast({ kind: 'reset' })
    for (const update of updates) reactors.broadcast(update)
    reactors.broadcast({ kind: 'subscriptions', update: { ...this.#plan.declared, removed: NOTHING_REMOVED } })
    reactors.broadcast({ kind: 'complete' })
  }

  /** Until it succeeds, reactors keep what they know. */
  #resendSnapshot(): void {
    this.#snapshots.run().catch((error: Error) => {
      this.#context.report('error', 'changes of other nodes could not be read', { CAUSE_OF_ERROR: error.message })
      clearTimeout(this.#retry)
      this.#retry = setTimeout(() => this.#resendSnapshot(), RETRY_MS)
    })
  }

  #sendDeclared(before: DeclaredApplications, after: DeclaredApplications): void {
    if (JSON.stringify(before) === JSON.stringify(after)) return
    const removed = {
      applications: missing(before.applications, after.applications, ({ id }) => id),
      keys: missing(before.keys, after.keys, consumerKeyId),
      subscriptions: missing(before.subscriptions, after.subscriptions, ({ id }) => id),
    }
    this.#context.reactors.broadcast({ kind: 'subscriptions', update: { ...after, removed } })
  }

  #handlers(): ControlCallHandlers {
    return {
      key: async ({ issuer }) => {
        if (issuer === this.#plan.ownIssuer && this.#keyManager !== null) await this.#keyManager.refreshKeys()
        else await this.#remote.keySets.refresh(issuer)
        return true
      },
      introspect: ({ token }) => {
        const { introspection } = this.#remote
        return this.#introspections.run(token, () =>
          timed(this.#context.metrics, 'remoteIntrospection', () =>
            (this.#keyManager ?? introspection).introspect(token),
          ),
        )
      },
      password: ({ user, password, address }) => {
        const name = JSON.stringify([user, password, address])
        return this.#logins.run(name, async () => this.#users().authenticate(user, password, address))
      },
      claims: async ({ user, tenant }) => {
        const retrieve = this.#modules.retriever
        if (retrieve !== null) return retrieve({ user, tenant })
        // A node without users adds nothing to the claims of tokens.
        return this.#keyManager === null ? {} : this.#keyManager.claims(user, tenant)
      },
      backendToken: ({ key, refused }) => this.#remote.backendTokens.get(key, refused),
      backendJwt: ({ claims }) => this.#modules.generate(claims),
      usage: async ({ rows }) => {
        this.#messaging?.reportUsage(rows)
        return true
      },
      analytics: async ({ lines, events }) => {
        if (this.#analytics === null) throw new ControlCallFailed('analytics events are not published')
        this.#analytics.publish(lines, events)
        return true
      },
      traces: async ({ records }) => {
        if (this.#traces === null) throw new ControlCallFailed('traces are not exported')
        this.#traces.add(records)
        return true
      },
    }
  }

  /** Throws ControlCallFailed. */
  #users(): LocalKeyManager {
    if (this.#keyManager === null) throw new ControlCallFailed('this node has no users: it has no key manager')
    return this.#keyManager
  }
}

/** Tells whether this node has a broker, sends reports or receives them. */
function needsMessaging({ configuration, receiver }: ControlPlan): boolean {
  const { throttle_decision_endpoints: brokers } = configuration['apim.throttling']
  return brokers.length + configuration['apim.throttling.url_group'].length > 0 || receiver !== null
}

async function sharedState(keyManager: LocalKeyManager): Promise<SharedState> {
  const [{ subscriptions, revoked }, policies] = await Promise.all([keyManager.snapshot(), keyManager.policies()])
  return { subscriptions, revoked, policies }
}

/** Names of the rows that `after` does not have any more. */
function missing<T>(before: readonly T[], after: readonly T[], name: (row: T) => string): readonly string[] {
  const staying = new Set(after.map(name))
  return before.map(name).filter(one => !staying.has(one))
}
