/**
 * Who may do what, for all reactors: what this node keeps itself, and what it asks of others. Parts begin in the order
 * of `open`, and end in the opposite one; what a node does not need is never loaded.
 */
import { Assertions } from './assertions.ts'
import type { AuthorityPlan, PrimaryQuestion } from '../authority-messages.ts'
import { BackendModules } from './backend-modules.ts'
import type { DeclaredApplications } from '../identity/declared-applications.ts'
import {
  type IssuerKeys,
  keyName,
  NOTHING_REMOVED,
  type RevokedFacts,
  type SubscriptionNews,
} from '../identity/facts.ts'
import type { IdentityNews, Introspection, KnownUser } from '../identity/feed.ts'
import { InquiryFailed } from '../identity/identity-state.ts'
import { revocationKeyOf } from '../identity/jwt-claims.ts'
import { RevokedSet, SKEW_MAX_MS } from '../identity/revoked-set.ts'
import { readJwt } from '../identity/strict-jwt.ts'
import type { KeyManagerPart } from './key-manager-part.ts'
import type { ManagementRequest } from '../management/commands.ts'
import type { EventLog } from '../observe/events.ts'
import type { Answers, ReactorLines } from './reactor-lines.ts'
import { RemotePart } from './remote-part.ts'
import { RevocationNotifier } from './revocation-notifier.ts'
import { RevocationFile } from './revocation-file.ts'
import { OneAtATime } from '../structure/one-at-a-time.ts'
import { SharedAnswers } from '../structure/shared-answers.ts'

interface AuthorityOutlets {
  readonly lines: ReactorLines
  readonly report: EventLog['report']
  /** Of the primary. Rejects with why there is no answer. */
  readonly ask: (question: PrimaryQuestion) => Promise<object>
}

/** The last moment of a Date. */
const TIME_MAX_MS = 8.64e15
const AGAIN_MS = 5000

export class Authority {
  readonly #outlets: AuthorityOutlets
  readonly #assertions = new Assertions(issuer => this.#remote.keySets.look(issuer))
  readonly #remote: RemotePart
  #plan: AuthorityPlan
  #modules: BackendModules
  /** Null on a node without one. */
  #keyManager: KeyManagerPart | null = null
  /** Of a node without a database. */
  #revocations: RevocationFile | null = null
  readonly #revoked = new RevokedSet(SKEW_MAX_MS)
  /** Null where nobody else is told of revocations. */
  #notifier: RevocationNotifier | null = null
  /** Of two at once the older facts could be told last, and a change between them be lost. */
  readonly #telling = new OneAtATime(() => this.#tellFacts())
  /** What has changed while facts are read. */
  #meanwhile: SubscriptionNews[] | null = null
  #again: NodeJS.Timeout | undefined
  /** By token: of reactors that ask at the same time one asks for all, about what holds when it begins. */
  readonly #introspections = new SharedAnswers<Introspection>()
  /** By user, password and address. */
  readonly #logIns = new SharedAnswers<KnownUser | null>()

  private constructor(plan: AuthorityPlan, modules: BackendModules, outlets: AuthorityOutlets) {
    this.#plan = plan
    this.#modules = modules
    this.#outlets = outlets
    this.#assertions.renew(plan.issuers)
    const publish = (keys: IssuerKeys): void => this.#publish(keys)
    this.#remote = new RemotePart(plan, { publish, report: outlets.report })
  }

  /** Rejects with why this node cannot begin. Reactors have been told everything when it resolves. */
  static async open(plan: AuthorityPlan, outlets: AuthorityOutlets): Promise<Authority> {
    const modules = await BackendModules.load(plan.configuration['apim.jwt'], plan.home)
    const revocation = plan.configuration['apim.token.revocation']
    const notifier = await RevocationNotifier.load(revocation.notifier_impl, plan.home, outlets.report)
    const authority = new Authority(plan, modules, outlets)
    authority.#notifier = notifier
    outlets.lines.open(plan.epoch, authority.#answers())
    try {
      await (plan.runsKeyManager ? authority.#openKeyManager() : authority.#readRevocations())
      await authority.#telling.run()
      return authority
    } catch (error) {
      await authority.close()
      throw error
    }
  }

  /** Of the management listener; 0 without one. */
  get port(): number {
    return this.#keyManager?.port ?? 0
  }

  /** For whoever starts the node. */
  get said(): readonly string[] {
    const password = this.#keyManager?.generatedPassword ?? ''
    const { username } = this.#plan.configuration.super_admin
    return password === '' ? [] : [`password of ${username}: ${password} (made now, and kept in the data folder)`]
  }

  /** Rejects with why not; then everything is as it was. */
  async reload(plan: AuthorityPlan): Promise<void> {
    const modules = await BackendModules.load(plan.configuration['apim.jwt'], plan.home)
    await this.#keyManager?.reload(plan)
    this.#modules = modules
    const { declared } = this.#plan
    this.#plan = plan
    this.#assertions.renew(plan.issuers)
    this.#remote.renew(plan)
    this.#tellDeclared(declared, plan.declared)
  }

  /** For the command line. Rejects with an error whose message may be told. */
  manage(request: ManagementRequest): Promise<object> {
    if (request.action === 'token revoke') return this.#revokeToken(request.token)
    if (this.#keyManager === null) return Promise.reject(new InquiryFailed('this node has no key manager'))
    return this.#keyManager.manage(request)
  }

  async close(): Promise<void> {
    clearTimeout(this.#again)
    await this.#keyManager?.close()
    await this.#remote.close()
  }

  async #openKeyManager(): Promise<void> {
    const { KeyManagerPart: Part } = await import('./key-manager-part.ts')
    const { report, ask } = this.#outlets
    this.#keyManager = await Part.open(this.#plan, {
      report,
      ask,
      subscriptions: news => this.#subscriptionsChanged(news),
      revoked: tokens => this.#revoke(tokens),
      users: () => this.#usersChanged(),
      keys: keys => this.#publish(keys),
      missed: () => this.#tellAgain(),
      verifyAssertion: assertion => this.#assertions.verify(assertion),
    })
    this.#publish(this.#keyManager.keys)
  }

  async #readRevocations(): Promise<void> {
    const revocation = this.#plan.configuration['apim.token.revocation']
    if (!revocation.enable_persistent_notifier) return
    this.#revocations = new RevocationFile(this.#plan.dataDir)
    this.#revoked.add(this.#revocations.read(), Date.now())
    this.#outlets.lines.tell({ kind: 'revoked', tokens: this.#revoked.entries(Date.now()) })
  }

  #publish(keys: IssuerKeys): void {
    this.#assertions.learn(keys)
    this.#outlets.lines.tell({ kind: 'keys', issuers: [keys] })
  }

  #revoke(tokens: readonly RevokedFacts[]): void {
    this.#introspections.forget()
    this.#outlets.lines.tell({ kind: 'revoked', tokens })
    this.#notifier?.tell(tokens)
  }

  #usersChanged(): void {
    this.#logIns.forget()
    this.#outlets.lines.tell({ kind: 'users' })
  }

  /** JWTs name themselves; of others only whoever has given them knows the end. */
  async #revokeToken(token: unknown): Promise<object> {
    const jwt = typeof token === 'string' ? readJwt(token) : 'no text'
    if (typeof jwt === 'string') throw new InquiryFailed('it is no JWT: revoke it at the key manager that has given it')
    const { exp } = jwt.claims
    if (exp === undefined) throw new InquiryFailed('it never ends: take its key away, or its subscription')
    // RFC 7519 2: of any size, and fractions of seconds as well. Files and databases take whole numbers.
    const expiresMs = Math.min(Math.ceil(exp * 1000), TIME_MAX_MS)
    const revoked = { key: revocationKeyOf(jwt), expiresMs }
    const consumerKey = [jwt.claims.azp, jwt.claims.client_id].find(name => typeof name === 'string')
    if (this.#keyManager !== null) await this.#keyManager.revoke(revoked, String(consumerKey ?? ''))
    else {
      this.#revoked.add([revoked], Date.now())
      this.#revoke([revoked])
      // In force in any case; whoever has asked learns that a restart would forget it.
      await this.#revocations?.write(() => this.#revoked.entries(Date.now()))
    }
    return { revoked: revoked.key, until: new Date(revoked.expiresMs).toISOString() }
  }

  #subscriptionsChanged(news: SubscriptionNews): void {
    this.#outlets.lines.tell({ kind: 'subscriptions', news })
    this.#meanwhile?.push(news)
  }

  /** What changes while the facts are read is told again behind them: they may be older than it. */
  async #readFacts(): Promise<readonly IdentityNews[]> {
    if (this.#keyManager === null) return []
    const meanwhile: SubscriptionNews[] = []
    this.#meanwhile = meanwhile
    try {
      const { subscriptions, revoked } = await this.#keyManager.facts()
      const news = [subscriptions, ...meanwhile]
      return [
        { kind: 'revoked', tokens: revoked },
        ...news.map(each => ({ kind: 'subscriptions' as const, news: each })),
      ]
    } finally {
      this.#meanwhile = null
    }
  }

  async #tellFacts(): Promise<void> {
    const { lines } = this.#outlets
    const facts = await this.#readFacts()
    lines.tell({ kind: 'anew' })
    for (const news of facts) lines.tell(news)
    const { applications, keys, subscriptions } = this.#plan.declared
    const declared = { applications, keys, subscriptions, removed: NOTHING_REMOVED }
    lines.tell({ kind: 'subscriptions', news: declared })
    lines.tell({ kind: 'complete' })
  }

  /** What had been told holds until all is told anew. */
  #tellAgain(): void {
    this.#telling.run().catch((error: Error) => {
      this.#outlets.report('error', 'changes of other nodes could not be read', { CAUSE_OF_ERROR: error.message })
      clearTimeout(this.#again)
      this.#again = setTimeout(() => this.#tellAgain(), AGAIN_MS)
    })
  }

  #tellDeclared(before: DeclaredApplications, after: DeclaredApplications): void {
    if (JSON.stringify(before) === JSON.stringify(after)) return
    const removed = {
      applications: gone(before.applications, after.applications, ({ id }) => id),
      keys: gone(before.keys, after.keys, keyName),
      subscriptions: gone(before.subscriptions, after.subscriptions, ({ id }) => id),
    }
    const { applications, keys, subscriptions } = after
    this.#outlets.lines.tell({ kind: 'subscriptions', news: { applications, keys, subscriptions, removed } })
  }

  #answers(): Answers {
    return {
      key: async ({ issuer }) => {
        await this.#remote.keySets.look(issuer)
        return true
      },
      introspect: ({ token }) => {
        const { introspector } = this.#remote
        return this.#introspections.ask(token, () => (this.#keyManager ?? introspector).introspect(token))
      },
      password: ({ user, password, address }) => {
        const name = JSON.stringify([user, password, address])
        return this.#logIns.ask(name, async () => this.#users().password(user, password, address))
      },
      claims: async ({ user, tenant }) => {
        const retrieve = this.#modules.retriever
        if (retrieve !== null) return retrieve({ user, tenant })
        // A node without users has nothing to add to what their tokens say.
        return this.#keyManager === null ? {} : this.#keyManager.claims(user, tenant)
      },
      backendToken: ({ key, refused }) => this.#remote.backendTokens.get(key, refused),
      backendJwt: ({ claims }) => this.#modules.generate(claims),
    }
  }

  /** Throws InquiryFailed. */
  #users(): KeyManagerPart {
    if (this.#keyManager === null) throw new InquiryFailed('this node has no users: it has no key manager')
    return this.#keyManager
  }
}

function gone<T>(before: readonly T[], after: readonly T[], name: (row: T) => string): readonly string[] {
  const staying = new Set(after.map(name))
  return before.map(name).filter(one => !staying.has(one))
}
