/**
 * Operations on applications, their keys and subscriptions, with access control; shared by REST and the command line.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Application, Client, Subscription, Workflow } from '../registry/entities.ts'
import { isAllowedRedirectUri } from '../registry/redirect-uri.ts'
import type { Page } from '../registry/entities.ts'
import { ApprovalService, KEY_REQUESTS } from './approval-service.ts'
import { apiIdOf, keyMappingIdOf } from './representations.ts'
import { PolicyService } from './policy-service.ts'
import { invalidProblem, notFoundProblem, Problem } from './problem.ts'
import type { ManagedApi, AdminServices } from './admin-services.ts'

/** The user on whose behalf an operation runs. */
export interface Actor {
  readonly user: string
  readonly tenant: string
  readonly isAdmin: boolean
}

type KeyType = Client['keyType']

export interface KeyRequest {
  readonly keyType: KeyType
  /** Empty for the default: client credentials and refresh token, where enabled. */
  readonly grants: readonly string[]
  readonly redirectUris: readonly string[]
  /** Seconds; 0 for the configured life. */
  readonly validityS: number
}

/** Lifecycle states in which an API accepts subscriptions. */
const SUBSCRIBABLE_STATES = ['PUBLISHED', 'PROTOTYPED', 'BLOCKED']
/** The grant that needs a redirect URI. */
const CODE_GRANT = 'authorization_code'
const DEFAULT_GRANTS = ['client_credentials', 'refresh_token']
const KEYS_MAX = 20
export const UNLIMITED = 'Unlimited'

/** Statuses of a subscription that was approved, or needed no approval. */
const IN_USE: readonly Subscription['status'][] = ['ACTIVE', 'BLOCKED', 'PROD_ONLY_BLOCKED']

/** Keys with their secret, or the request for them, which waits for approval. */
type GeneratedKeys =
  | { readonly client: Client; readonly secret: string; readonly request: null }
  | { readonly request: Workflow }

/** Methods reject with Problem and registry errors. */
export class ApplicationService {
  readonly #services: () => AdminServices
  readonly #approvals: ApprovalService
  readonly #policies: PolicyService

  constructor(services: () => AdminServices) {
    this.#services = services
    this.#approvals = new ApprovalService(services)
    this.#policies = new PolicyService(services)
  }

  /** An application that the actor may see; others are reported as unknown. */
  async get(id: string, actor: Actor): Promise<Application> {
    const application = await this.#services().registry.applications.get(id)
    if (!isVisible(application, actor)) throw notFoundProblem('application')
    return application
  }

  /** Finds an application by id or name; for an administrator also one of another owner. */
  async find(nameOrId: string, actor: Actor, owner = ''): Promise<Application> {
    const { registry } = this.#services()
    const byId = await registry.applications.get(nameOrId)
    if (byId !== null) return this.get(nameOrId, actor)
    const of = { tenant: actor.tenant, name: nameOrId, ...(owner === '' ? {} : { owner }) }
    const { applications } = await registry.applications.list(of, { offset: 0, limit: 1000 })
    const named = applications.filter(one => one.name === nameOrId && (actor.isAdmin || one.owner === actor.user))
    const [one, other] = named
    if (one === undefined) throw notFoundProblem('application')
    if (other === undefined) return one
    const owners = named.slice(0, 10).map(each => each.owner)
    throw new Problem(
      409,
      `several owners have an application of this name: ${owners.join(', ')}; give the owner or the id`,
    )
  }

  list(actor: Actor, page: Page, name = '') {
    const of = {
      tenant: actor.tenant,
      ...(actor.isAdmin ? {} : { owner: actor.user }),
      ...(name === '' ? {} : { name }),
    }
    return this.#services().registry.applications.list(of, page)
  }

  async create(given: Omit<Application, 'id' | 'createdMs' | 'owner' | 'tenant'>, actor: Actor): Promise<Application> {
    this.#refuseDeclared(given.name, actor.user, actor.tenant)
    const { name, tier, description } = given
    await this.#policies.requireTier('application', tier)
    const about = { applicationName: name, tier, description }
    const approval = this.#approvals.requestFor('AM_APPLICATION_CREATION', actor, about)
    const created = await this.#services().registry.applications.create(
      { ...given, owner: actor.user, tenant: actor.tenant },
      approval,
    )
    this.#report('application created', actor, { APPLICATION: created.name })
    if (approval !== null) await this.#approvals.requested(approval.kind, actor, created.name)
    return created
  }

  async update(
    application: Application,
    change: Partial<Pick<Application, 'name' | 'description' | 'tier' | 'attributes'>>,
    actor: Actor,
  ): Promise<Application> {
    const { owner, tenant } = application
    if (change.name !== undefined) this.#refuseDeclared(change.name, owner, tenant)
    if (change.tier !== undefined && change.tier !== application.tier)
      await this.#policies.requireTier('application', change.tier)
    const updated = await this.#services().registry.applications.update(application.id, change)
    this.#report('application changed', actor, { APPLICATION: updated.name })
    return updated
  }

  async remove({ id, name }: Application, actor: Actor): Promise<void> {
    await this.#services().registry.applications.remove(id)
    this.#report('application removed', actor, { APPLICATION: name })
  }

  /** Refuses the name of an application that a file declares: in a list both would look alike. */
  #refuseDeclared(name: string, owner: string, tenant: string): void {
    const { applications } = this.#services().declared
    const isTaken = applications.some(one => one.name === name && one.owner === owner && one.tenant === tenant)
    if (isTaken) throw new Problem(409, `a file in applications/ declares an application ${name}`)
  }

  /** Refuses a key that a file declares: in the database too, it would prevent the next start. */
  #refuseDeclaredKey(consumerKey: string): void {
    const { declared, tokens } = this.#services()
    const isTaken = declared.keys.some(key => key.consumerKey === consumerKey && key.issuer === tokens.issuer)
    if (isTaken) throw new Problem(409, 'a file in applications/ declares this key')
  }

  listKeys(application: Application): Promise<readonly Client[]> {
    return this.#services().registry.clients.listForApplication(application.id)
  }

  /** Finds a key by consumer key or mapping id. */
  async findKey(application: Application, keyOrId: string): Promise<Client> {
    const all = await this.listKeys(application)
    const found = all.find(({ consumerKey }) => consumerKey === keyOrId || keyMappingIdOf(consumerKey) === keyOrId)
    if (found === undefined) throw notFoundProblem('key of this application')
    return found
  }

  /** The secret is returned here and never again. Where keys need approval, the first call requests it. */
  async generateKeys(
    application: Application,
    { keyType, grants, redirectUris, validityS }: KeyRequest,
    actor: Actor,
  ): Promise<GeneratedKeys> {
    const { registry } = this.#services()
    await this.#approvals.requireApproved(application)
    const wanted = this.#grants(grants, redirectUris)
    const before = await this.listKeys(application)
    if (before.some(client => client.keyType === keyType)) {
      throw new Problem(409, `the application has ${keyType} keys already; remove them or renew the secret`)
    }
    const request = await this.#requestKeys(application, keyType, actor, {
      grantTypes: wanted.join(' '),
      callbackUrl: redirectUris.join(','),
    })
    if (request !== null) return { request }
    const { owner, tenant, tokenType, name, id } = application
    const about = { owner, tenant, tokenType, keyType, redirectUris, validityS, isPublic: false }
    const created = await registry.clients.create({
      ...about,
      name: `${owner}_${name}_${keyType}`,
      applicationId: id,
      grants: wanted,
    })
    this.#report('keys generated', actor, {
      APPLICATION: name,
      KEY_TYPE: keyType,
      CONSUMER_KEY: created.client.consumerKey,
    })
    return { ...created, request: null }
  }

  /**
   * The request for keys that waits, or was rejected and is made again; null: the keys may be generated now. A request
   * for other keys replaces one that waits or was approved.
   */
  async #requestKeys(
    { id, name }: Application,
    keyType: KeyType,
    actor: Actor,
    properties: Readonly<Record<string, string>>,
  ): Promise<Workflow | null> {
    const { workflows } = this.#services().registry
    const kind = KEY_REQUESTS[keyType]
    const approval = this.#approvals.requestFor(kind, actor, { applicationName: name, keyType, ...properties })
    if (approval === null) {
      // A request of the time when keys needed approval is settled by this.
      await workflows.remove(id, kind, id)
      return null
    }
    const known = (await workflows.bySubject(kind, [id])).get(id)
    const isSame = known !== undefined && isDeepStrictEqual(known.properties, approval.properties)
    if (isSame && known.status === 'CREATED') return known
    if (isSame && known.status === 'APPROVED' && (await workflows.consume(known.id))) return null
    const request = await workflows.request(id, id, approval)
    await this.#approvals.requested(kind, actor, name)
    return request
  }

  /** Maps an existing client to the application. The caller proves ownership by the secret. */
  async mapKeys(
    application: Application,
    consumerKey: string,
    secret: string,
    keyType: KeyType,
    actor: Actor,
  ): Promise<{ readonly client: Client; readonly request: null } | { readonly request: Workflow }> {
    const { registry } = this.#services()
    await this.#approvals.requireApproved(application)
    const client = await registry.clients.authenticate(consumerKey, secret)
    const isRight = client !== null && !client.isPublic && client.tenant === application.tenant
    if (!isRight) throw invalidProblem('consumerKey', 'unknown client or wrong secret')
    this.#refuseDeclaredKey(consumerKey)
    const before = await this.listKeys(application)
    if (before.length >= KEYS_MAX) throw new Problem(409, `an application can have at most ${KEYS_MAX} keys`)
    if (before.some(one => one.keyType === keyType))
      throw new Problem(409, `the application has ${keyType} keys already`)
    const request = await this.#requestKeys(application, keyType, actor, { consumerKey })
    if (request !== null) return { request }
    const mapped = await registry.clients.mapToApplication(consumerKey, application.id, keyType)
    this.#report('keys mapped', actor, { APPLICATION: application.name, CONSUMER_KEY: consumerKey })
    return { client: mapped, request: null }
  }

  async updateKey(
    { consumerKey }: Client,
    { grants, redirectUris, validityS }: Omit<KeyRequest, 'keyType'>,
    actor: Actor,
  ): Promise<Client> {
    const change = { grants: this.#grants(grants, redirectUris), redirectUris, validityS }
    const updated = await this.#services().registry.clients.update(consumerKey, change)
    this.#report('keys changed', actor, { CONSUMER_KEY: consumerKey })
    return updated
  }

  async renewSecret({ consumerKey, isPublic }: Client, actor: Actor): Promise<string> {
    if (isPublic) throw new Problem(409, 'a public client has no secret')
    const secret = await this.#services().registry.clients.renewSecret(consumerKey)
    this.#report('secret renewed', actor, { CONSUMER_KEY: consumerKey })
    return secret
  }

  async removeKey({ consumerKey }: Client, actor: Actor): Promise<void> {
    await this.#services().registry.clients.remove(consumerKey)
    this.#report('keys removed', actor, { CONSUMER_KEY: consumerKey })
  }

  #grants(asked: readonly string[], redirectUris: readonly string[]): readonly string[] {
    const { grants } = this.#services().tokens
    const wanted = asked.length === 0 ? DEFAULT_GRANTS.filter(grant => grants.includes(grant)) : [...new Set(asked)]
    const unknown = wanted.find(grant => !grants.includes(grant))
    if (unknown !== undefined) throw invalidProblem('grantTypesToBeSupported', `supported grants: ${grants.join(', ')}`)
    if (!redirectUris.every(isAllowedRedirectUri)) {
      throw invalidProblem(
        'callbackUrl',
        'expected https, http to localhost, or a private-use scheme, without a fragment',
      )
    }
    if (wanted.includes(CODE_GRANT) && redirectUris.length === 0) {
      throw invalidProblem('callbackUrl', 'is required for authorization_code')
    }
    return wanted
  }

  async findApi(nameOrId: string): Promise<ManagedApi> {
    const all = await this.#services().apis.list()
    const found = all.find(api => apiIdOf(api) === nameOrId || `${api.name}:${api.version}` === nameOrId)
    if (found === undefined) throw notFoundProblem('API')
    return found
  }

  async subscribe(application: Application, api: ManagedApi, tier: string, actor: Actor): Promise<Subscription> {
    if (!SUBSCRIBABLE_STATES.includes(api.state))
      throw new Problem(409, `the API is ${api.state} and accepts no subscriptions`)
    requireTier(api, tier)
    await this.#policies.requireTier('subscription', tier)
    await this.#approvals.requireApproved(application)
    const about = { applicationId: application.id, apiName: api.name, apiVersion: api.version }
    const approval = this.#approvals.requestFor('AM_SUBSCRIPTION_CREATION', actor, {
      ...subscriptionProperties(application, api),
      tier,
    })
    const status = approval === null ? 'ACTIVE' : 'ON_HOLD'
    const created = await this.#services().registry.subscriptions.create({ ...about, tier, status }, approval)
    this.#report('subscription created', actor, { APPLICATION: application.name, API: `${api.name}:${api.version}` })
    if (approval !== null) await this.#approvals.requested(approval.kind, actor, application.name)
    return created
  }

  /** A subscription whose application the actor may see. */
  async findSubscription(id: string, actor: Actor): Promise<{ subscription: Subscription; application: Application }> {
    const subscription = await this.#services().registry.subscriptions.get(id)
    if (subscription === null) throw notFoundProblem('subscription')
    const application = await this.#services().registry.applications.get(subscription.applicationId)
    if (!isVisible(application, actor)) throw notFoundProblem('subscription')
    return { subscription, application }
  }

  async setStatus({ id }: Subscription, status: Subscription['status'], actor: Actor): Promise<Subscription> {
    const updated = await this.#services().registry.subscriptions.update(id, { status }, IN_USE)
    this.#report('subscription changed', actor, { SUBSCRIPTION: id, STATUS: status })
    return updated
  }

  /** Where subscriptions need approval, the old policy holds until the change is approved. */
  async setTier(
    subscription: Subscription,
    application: Application,
    api: ManagedApi,
    tier: string,
    actor: Actor,
  ): Promise<{ readonly subscription: Subscription; readonly pendingTier: string }> {
    requireTier(api, tier)
    const { id, tier: currentTier, status } = subscription
    if (tier !== currentTier) await this.#policies.requireTier('subscription', tier)
    const { subscriptions, workflows } = this.#services().registry
    const approval = this.#approvals.requestFor('AM_SUBSCRIPTION_UPDATE', actor, {
      ...subscriptionProperties(application, api),
      ...{ currentTier, tier },
    })
    if (approval !== null && tier !== currentTier) {
      if (!IN_USE.includes(status)) throw new Problem(409, `the subscription is ${status}`)
      await workflows.request(application.id, id, approval)
      await this.#approvals.requested(approval.kind, actor, application.name)
      return { subscription, pendingTier: tier }
    }
    const updated = await subscriptions.update(id, { tier }, IN_USE)
    // A change that waited is overtaken.
    await workflows.remove(application.id, 'AM_SUBSCRIPTION_UPDATE', id)
    this.#report('subscription changed', actor, { SUBSCRIPTION: id, TIER: tier })
    return { subscription: updated, pendingTier: '' }
  }

  async unsubscribe({ id }: Subscription, actor: Actor): Promise<void> {
    await this.#services().registry.subscriptions.remove(id)
    this.#report('subscription removed', actor, { SUBSCRIPTION: id })
  }

  #report(event: string, { user, tenant }: Actor, fields: Readonly<Record<string, string>>): void {
    this.#services().report('info', event, { USER: user, TENANT: tenant, ...fields })
  }
}

function isVisible(application: Application | null, { user, tenant, isAdmin }: Actor): application is Application {
  return application?.tenant === tenant && (application.owner === user || isAdmin)
}

/** Properties of a request, for those who decide. */
function subscriptionProperties({ name }: Application, api: ManagedApi): Readonly<Record<string, string>> {
  return { applicationName: name, apiName: api.name, apiVersion: api.version, apiContext: api.context }
}

function requireTier({ tiers }: ManagedApi, tier: string): void {
  if (tiers.length > 0 && !tiers.includes(tier))
    throw invalidProblem('throttlingPolicy', `the API offers ${tiers.join(', ')}`)
}
