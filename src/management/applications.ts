/** Applications, their keys and subscriptions: what REST and command line both do with them, and who may. */
import type { Application, Client, Subscription } from '../registry/entities.ts'
import { mayReceiveCodes } from '../registry/redirect-uri.ts'
import type { Page } from '../registry/registry.ts'
import { apiIdOf, keyMappingIdOf } from './names.ts'
import { invalid, missing, Problem } from './problem.ts'
import type { ManagedApi, ManagementRoom } from './room.ts'

/** On whose behalf something is done. */
export interface Actor {
  readonly user: string
  readonly tenant: string
  readonly isAdmin: boolean
}

type KeyType = Client['keyType']

export interface NewKeys {
  readonly keyType: KeyType
  /** None: what is enabled of client credentials and refreshing. */
  readonly grants: readonly string[]
  readonly redirectUris: readonly string[]
  /** Seconds; 0: as configured. */
  readonly validityS: number
}

/** What may be subscribed to. */
const OPEN_STATES = ['PUBLISHED', 'PROTOTYPED', 'BLOCKED']
/** Grants that need a user with a browser, and an address to come back to. */
const CODE_GRANT = 'authorization_code'
const DEFAULT_GRANTS = ['client_credentials', 'refresh_token']
const KEYS_MAX = 20
export const UNLIMITED = 'Unlimited'

/** Throws Problem, and what the registry throws. */
export class Applications {
  readonly #room: () => ManagementRoom

  constructor(room: () => ManagementRoom) {
    this.#room = room
  }

  /** One that the actor may see. Of others nobody learns that they are there. */
  async get(id: string, actor: Actor): Promise<Application> {
    const application = await this.#room().registry.applications.get(id)
    if (!isSeen(application, actor)) throw missing('application')
    return application
  }

  /** By id or by name; an administrator may mean somebody else's. */
  async find(word: string, actor: Actor, owner = ''): Promise<Application> {
    const { registry } = this.#room()
    const byId = await registry.applications.get(word)
    if (byId !== null) return this.get(word, actor)
    const of = { tenant: actor.tenant, name: word, ...(owner === '' ? {} : { owner }) }
    const { applications } = await registry.applications.list(of, { offset: 0, limit: 1000 })
    const named = applications.filter(one => one.name === word && (actor.isAdmin || one.owner === actor.user))
    const [one, other] = named
    if (one === undefined) throw missing('application')
    if (other === undefined) return one
    const owners = named.slice(0, 10).map(each => each.owner)
    throw new Problem(409, `several owners have one of that name: ${owners.join(', ')}; name the owner, or its id`)
  }

  list(actor: Actor, page: Page, name = '') {
    const of = {
      tenant: actor.tenant,
      ...(actor.isAdmin ? {} : { owner: actor.user }),
      ...(name === '' ? {} : { name }),
    }
    return this.#room().registry.applications.list(of, page)
  }

  async create(given: Omit<Application, 'id' | 'createdMs' | 'owner' | 'tenant'>, actor: Actor): Promise<Application> {
    this.#refuseDeclared(given.name, actor.user, actor.tenant)
    const created = await this.#room().registry.applications.create({
      ...given,
      owner: actor.user,
      tenant: actor.tenant,
    })
    this.#told('application created', actor, { APPLICATION: created.name })
    return created
  }

  async update(
    application: Application,
    change: Partial<Pick<Application, 'name' | 'description' | 'tier' | 'attributes'>>,
    actor: Actor,
  ): Promise<Application> {
    const { owner, tenant } = application
    if (change.name !== undefined) this.#refuseDeclared(change.name, owner, tenant)
    const updated = await this.#room().registry.applications.update(application.id, change)
    this.#told('application changed', actor, { APPLICATION: updated.name })
    return updated
  }

  async remove({ id, name }: Application, actor: Actor): Promise<void> {
    await this.#room().registry.applications.remove(id)
    this.#told('application removed', actor, { APPLICATION: name })
  }

  /** Two of one name and owner would be one to those who look at a list. */
  #refuseDeclared(name: string, owner: string, tenant: string): void {
    const { applications } = this.#room().declared
    const isTaken = applications.some(one => one.name === name && one.owner === owner && one.tenant === tenant)
    if (isTaken) throw new Problem(409, `a file of the home declares an application ${name} already`)
  }

  /** What is declared and kept in the database as well refuses the next start. */
  #refuseDeclaredKey(consumerKey: string): void {
    const { declared, tokens } = this.#room()
    const isTaken = declared.keys.some(key => key.consumerKey === consumerKey && key.issuer === tokens.issuer)
    if (isTaken) throw new Problem(409, 'a file of the home says already whose key this is')
  }

  keys(application: Application): Promise<readonly Client[]> {
    return this.#room().registry.clients.ofApplication(application.id)
  }

  /** By consumer key, or by the id of its mapping. */
  async key(application: Application, word: string): Promise<Client> {
    const all = await this.keys(application)
    const found = all.find(({ consumerKey }) => consumerKey === word || keyMappingIdOf(consumerKey) === word)
    if (found === undefined) throw missing('key of this application')
    return found
  }

  /** The secret is told here and never again. */
  async generate(
    application: Application,
    { keyType, grants, redirectUris, validityS }: NewKeys,
    actor: Actor,
  ): Promise<{ readonly client: Client; readonly secret: string }> {
    const { registry } = this.#room()
    const wanted = this.#grants(grants, redirectUris)
    const before = await this.keys(application)
    if (before.some(client => client.keyType === keyType)) {
      throw new Problem(409, `the application has ${keyType} keys already; remove them, or renew their secret`)
    }
    const { owner, tenant, tokenType, name, id } = application
    const about = { owner, tenant, tokenType, keyType, redirectUris, validityS, isPublic: false }
    const made = await registry.clients.create({
      ...about,
      name: `${owner}_${name}_${keyType}`,
      applicationId: id,
      grants: wanted,
    })
    this.#told('keys generated', actor, { APPLICATION: name, KEY_TYPE: keyType, CONSUMER_KEY: made.client.consumerKey })
    return made
  }

  /** A client that was registered before becomes the application's. Its owner has to show the secret. */
  async map(application: Application, consumerKey: string, secret: string, keyType: KeyType, actor: Actor) {
    const { registry } = this.#room()
    const client = await registry.clients.authenticate(consumerKey, secret)
    const isRight = client !== null && !client.isPublic && client.tenant === application.tenant
    if (!isRight) throw invalid('consumerKey', 'there is no such client, or the secret is another one')
    this.#refuseDeclaredKey(consumerKey)
    const before = await this.keys(application)
    if (before.length >= KEYS_MAX) throw new Problem(409, `an application has at most ${KEYS_MAX} keys`)
    if (before.some(one => one.keyType === keyType))
      throw new Problem(409, `the application has ${keyType} keys already`)
    const mapped = await registry.clients.map(consumerKey, application.id, keyType)
    this.#told('keys mapped', actor, { APPLICATION: application.name, CONSUMER_KEY: consumerKey })
    return mapped
  }

  async updateKey(
    { consumerKey }: Client,
    { grants, redirectUris, validityS }: Omit<NewKeys, 'keyType'>,
    actor: Actor,
  ): Promise<Client> {
    const change = { grants: this.#grants(grants, redirectUris), redirectUris, validityS }
    const updated = await this.#room().registry.clients.update(consumerKey, change)
    this.#told('keys changed', actor, { CONSUMER_KEY: consumerKey })
    return updated
  }

  async renewSecret({ consumerKey, isPublic }: Client, actor: Actor): Promise<string> {
    if (isPublic) throw new Problem(409, 'a public client has no secret')
    const secret = await this.#room().registry.clients.renewSecret(consumerKey)
    this.#told('secret renewed', actor, { CONSUMER_KEY: consumerKey })
    return secret
  }

  async removeKey({ consumerKey }: Client, actor: Actor): Promise<void> {
    await this.#room().registry.clients.remove(consumerKey)
    this.#told('keys removed', actor, { CONSUMER_KEY: consumerKey })
  }

  #grants(asked: readonly string[], redirectUris: readonly string[]): readonly string[] {
    const { grants } = this.#room().tokens
    const wanted = asked.length === 0 ? DEFAULT_GRANTS.filter(grant => grants.includes(grant)) : [...new Set(asked)]
    const unknown = wanted.find(grant => !grants.includes(grant))
    if (unknown !== undefined) throw invalid('grantTypesToBeSupported', `there is only ${grants.join(', ')}`)
    if (!redirectUris.every(mayReceiveCodes)) {
      throw invalid('callbackUrl', 'expected https, http to this machine, or a private scheme, without a fragment')
    }
    if (wanted.includes(CODE_GRANT) && redirectUris.length === 0) {
      throw invalid('callbackUrl', 'is needed for authorization_code')
    }
    return wanted
  }

  async api(word: string): Promise<ManagedApi> {
    const all = await this.#room().apis.list()
    const found = all.find(api => apiIdOf(api) === word || `${api.name}:${api.version}` === word)
    if (found === undefined) throw missing('API')
    return found
  }

  async subscribe(application: Application, api: ManagedApi, tier: string, actor: Actor): Promise<Subscription> {
    if (!OPEN_STATES.includes(api.state)) throw new Problem(409, `the API is ${api.state}: nobody can subscribe to it`)
    mustHave(api, tier)
    const about = { applicationId: application.id, apiName: api.name, apiVersion: api.version }
    const made = await this.#room().registry.subscriptions.create({ ...about, tier, status: 'ACTIVE' })
    this.#told('subscribed', actor, { APPLICATION: application.name, API: `${api.name}:${api.version}` })
    return made
  }

  /** With the application, which the actor may see. */
  async subscription(id: string, actor: Actor): Promise<{ subscription: Subscription; application: Application }> {
    const subscription = await this.#room().registry.subscriptions.get(id)
    if (subscription === null) throw missing('subscription')
    const application = await this.#room().registry.applications.get(subscription.applicationId)
    if (!isSeen(application, actor)) throw missing('subscription')
    return { subscription, application }
  }

  async setStatus({ id }: Subscription, status: Subscription['status'], actor: Actor): Promise<Subscription> {
    const updated = await this.#room().registry.subscriptions.update(id, { status })
    this.#told('subscription changed', actor, { SUBSCRIPTION: id, STATUS: status })
    return updated
  }

  async setTier({ id }: Subscription, api: ManagedApi, tier: string, actor: Actor): Promise<Subscription> {
    mustHave(api, tier)
    const updated = await this.#room().registry.subscriptions.update(id, { tier })
    this.#told('subscription changed', actor, { SUBSCRIPTION: id, TIER: tier })
    return updated
  }

  async unsubscribe({ id }: Subscription, actor: Actor): Promise<void> {
    await this.#room().registry.subscriptions.remove(id)
    this.#told('unsubscribed', actor, { SUBSCRIPTION: id })
  }

  #told(event: string, { user, tenant }: Actor, fields: Readonly<Record<string, string>>): void {
    this.#room().report('info', event, { USER: user, TENANT: tenant, ...fields })
  }
}

function isSeen(application: Application | null, { user, tenant, isAdmin }: Actor): application is Application {
  return application?.tenant === tenant && (application.owner === user || isAdmin)
}

function mustHave({ tiers }: ManagedApi, tier: string): void {
  if (tiers.length > 0 && !tiers.includes(tier)) throw invalid('throttlingPolicy', `the API has ${tiers.join(', ')}`)
}
