/**
 * The key manager's memory, whichever database it is in. Every method is one transaction; what has changed for gateways
 * is told to the listener once it is committed. Names are unique within their tenant, compared as configured.
 */
import type { Configuration } from '../config/catalogue.ts'
import type { RevokedFacts, SubscriptionNews } from '../identity/facts.ts'
import type { Application, Client, IssuedToken, Subscription, User } from './entities.ts'

/** What was asked for cannot be: the message says which field, and why. */
export class RegistryRefusal extends Error {
  override readonly name = 'RegistryRefusal'
  readonly reason: 'exists' | 'missing' | 'invalid' | 'in use'
  /** As documented of requests; '' where it is not about one. */
  readonly field: string

  constructor(reason: RegistryRefusal['reason'], field: string, message: string) {
    super(message)
    this.reason = reason
    this.field = field
  }
}

/** The database does not answer, or has refused; the cause is for the log and holds no credentials. */
export class RegistryUnavailable extends Error {
  override readonly name = 'RegistryUnavailable'
}

/** Told after the commit, and before the method that made the change answers; also of what other nodes have changed. */
export interface RegistryListener {
  subscriptions(news: SubscriptionNews): void
  revoked(tokens: readonly RevokedFacts[]): void
  /** Some were removed, locked, or given another password or other roles: who has remembered any of them asks again. */
  users?(): void
  /** Changes of other nodes were missed: only `facts()`, told anew, says what holds. */
  missed?(): void
}

export interface Page {
  readonly offset: number
  readonly limit: number
}

export interface Registry {
  listener: RegistryListener | null
  /** That of the super admin, where this start has made it: to be printed once. '' otherwise. */
  readonly generatedPassword: string
  readonly tenants: TenantStore
  readonly users: UserStore
  readonly applications: ApplicationStore
  readonly clients: ClientStore
  readonly subscriptions: SubscriptionStore
  readonly tokens: TokenStore
  /** All that gateways have to know. */
  facts(): Promise<{ readonly subscriptions: SubscriptionNews; readonly revoked: readonly RevokedFacts[] }>
  /** How guesses at passwords are counted from now on; what else there is of databases takes a restart. */
  reload(configuration: Configuration): void
  close(): Promise<void>
}

export interface TenantStore {
  list(): Promise<readonly string[]>
  create(domain: string): Promise<void>
}

export interface UserStore {
  get(id: string): Promise<User | null>
  find(name: string, tenant: string): Promise<User | null>
  list(tenant: string, page: Page): Promise<{ readonly total: number; readonly users: readonly User[] }>
  /**
   * Takes the same time whether or not there is such a user. Counts failures: `locked` for a while after too many.
   * `place`: the address that asks; one where the name has come with its password is not locked by failures elsewhere.
   */
  authenticate(name: string, tenant: string, password: string, place?: string): Promise<User | 'locked' | null>
  /** Another one after every change of the password, and of another account of the name; '' of nobody. No secret. */
  passwordMark(name: string, tenant: string): Promise<string>
  create(user: Pick<User, 'name' | 'tenant' | 'roles' | 'claims'>, password: string): Promise<User>
  update(id: string, change: Partial<Pick<User, 'roles' | 'claims' | 'isLocked'>>): Promise<User>
  setPassword(id: string, password: string): Promise<void>
  remove(id: string): Promise<void>
  roles(tenant: string): Promise<readonly string[]>
  createRole(tenant: string, role: string): Promise<void>
  removeRole(tenant: string, role: string): Promise<void>
}

export interface ApplicationStore {
  get(id: string): Promise<Application | null>
  list(
    of: { readonly tenant: string; readonly owner?: string; readonly name?: string },
    page: Page,
  ): Promise<{ readonly total: number; readonly applications: readonly Application[] }>
  create(application: Omit<Application, 'id' | 'createdMs'>): Promise<Application>
  update(
    id: string,
    change: Partial<Pick<Application, 'name' | 'description' | 'tier' | 'attributes'>>,
  ): Promise<Application>
  /** With its keys and subscriptions; its tokens are revoked. */
  remove(id: string): Promise<void>
}

export interface ClientStore {
  get(consumerKey: string): Promise<Client | null>
  ofApplication(applicationId: string): Promise<readonly Client[]>
  /** Takes the same time whether or not there is such a client. A public client has no secret to be right. */
  authenticate(consumerKey: string, secret: string): Promise<Client | null>
  /** The secret is told here and never again; '' of a public client. */
  create(client: Omit<Client, 'consumerKey'> & { readonly consumerKey?: string }): Promise<{
    readonly client: Client
    readonly secret: string
  }>
  update(
    consumerKey: string,
    change: Partial<Pick<Client, 'name' | 'grants' | 'redirectUris' | 'validityS' | 'tokenType'>>,
  ): Promise<Client>
  /** One without an application becomes that of this one; refused where it has one already. */
  map(consumerKey: string, applicationId: string, keyType: Client['keyType']): Promise<Client>
  renewSecret(consumerKey: string): Promise<string>
  /** Its tokens are revoked. */
  remove(consumerKey: string): Promise<void>
}

/** What is left out may be anything. */
export interface SubscriptionQuery {
  readonly applicationId?: string
  readonly apiName?: string
  readonly apiVersion?: string
  /** Of the application. */
  readonly tenant?: string
  readonly owner?: string
}

export interface SubscriptionStore {
  get(id: string): Promise<Subscription | null>
  list(
    of: SubscriptionQuery,
    page: Page,
  ): Promise<{ readonly total: number; readonly subscriptions: readonly Subscription[] }>
  create(subscription: Omit<Subscription, 'id' | 'createdMs'>): Promise<Subscription>
  update(id: string, change: Partial<Pick<Subscription, 'tier' | 'status'>>): Promise<Subscription>
  remove(id: string): Promise<void>
}

/** `user`: tokens that a user has allowed, not those of applications that are the user's. */
export type RevokedTokens =
  | { readonly id: string }
  | { readonly family: string }
  | { readonly consumerKey: string }
  | { readonly user: string; readonly tenant: string }

export interface TokenStore {
  /** `token`: what the client is given, of which a hash is kept, and more where it is configured. `data`: of codes. */
  add(token: string, issued: IssuedToken, data?: string): Promise<void>
  /** All of one answer, or none. Refused where the client is gone, or the family is revoked meanwhile. */
  addAll(
    tokens: readonly { readonly token: string; readonly issued: IssuedToken; readonly data?: string }[],
  ): Promise<void>
  /** The token itself, where `enable_token_encryption` had it kept; '' otherwise. */
  kept(id: string): Promise<string>
  /** By what a client shows; null for what was never given or is forgotten. */
  find(token: string): Promise<{ readonly issued: IssuedToken; readonly data: string } | null>
  /**
   * A code or refresh token is good for one use: ACTIVE becomes USED, and what it was before is answered, so that of
   * two at once only one is told ACTIVE.
   */
  use(token: string): Promise<{ readonly issued: IssuedToken; readonly data: string } | null>
  /** Of one token, its family, a client or a user: gateways are told of access tokens that still lasted. */
  revoke(which: RevokedTokens): Promise<void>
  /** One that was given elsewhere, or is not kept. */
  revokeFacts(facts: RevokedFacts, consumerKey: string): Promise<void>
  /** Removes what is over, into the table of audits where that is wanted; answers how many. */
  cleanUp(nowMs: number): Promise<number>
}
