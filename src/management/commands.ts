/**
 * What the command line asks: the same as REST, by whoever may open the control socket, which is the gateway's own
 * user. It comes as plain data, and is read as strictly as a body.
 */
import { SUPER_TENANT } from '../config/account-names.ts'
import type { Application, Client, Subscription } from '../registry/entities.ts'
import { Applications, UNLIMITED } from './applications.ts'
import { type Field, list, nameText, oneOf, optional, readMembers, text, texts, whole } from './fields.ts'
import { missing, Problem, problemOf } from './problem.ts'
import type { ManagementRoom } from './room.ts'
import { Users } from './users.ts'

/** `action`: `application create`, `key list`; the other members as the action has them. */
export interface ManagementRequest {
  readonly action: string
  readonly [member: string]: unknown
}

type Answering = (request: Readonly<Record<string, unknown>>) => Promise<object>

const EVERYWHERE = { tenant: optional(nameText(255), SUPER_TENANT) }
const OF_APPLICATION = { ...EVERYWHERE, application: nameText(100), owner: optional(nameText(255), '') }
const KEY_TYPE = optional(oneOf('PRODUCTION', 'SANDBOX'), 'PRODUCTION')
const ROWS = { limit: optional(whole(1, 10_000), 1000), offset: optional(whole(0, 1_000_000_000), 0) }
const WORDS = (max: number): Field<readonly string[]> => optional(list(nameText(255), max), [])
const ALL = { offset: 0, limit: 10_000 }

export class Commands {
  readonly #room: () => ManagementRoom
  readonly #applications: Applications
  readonly #users: Users
  readonly #actions: Readonly<Record<string, Answering>>

  constructor(room: () => ManagementRoom) {
    this.#room = room
    this.#applications = new Applications(room)
    this.#users = new Users(room)
    this.#actions = {
      ...this.#applicationActions(),
      ...this.#keyActions(),
      ...this.#subscriptionActions(),
      ...this.#userActions(),
    }
  }

  /** Throws Problem. */
  async run({ action, ...members }: ManagementRequest): Promise<object> {
    const run = Object.hasOwn(this.#actions, action) ? this.#actions[action] : undefined
    if (run === undefined) throw new Problem(400, `there is only: ${Object.keys(this.#actions).join(', ')}`)
    try {
      return await run(members)
    } catch (error) {
      throw problemOf(error)
    }
  }

  #actor(tenant: string, user = '') {
    return { user: user === '' ? this.#room().adminName : user, tenant, isAdmin: true }
  }

  async #of(given: Readonly<Record<string, unknown>>) {
    const { tenant, application, owner } = readMembers(given, OF_APPLICATION)
    const actor = this.#actor(tenant)
    return { actor, application: await this.#applications.find(application, actor, owner) }
  }

  #applicationActions(): Readonly<Record<string, Answering>> {
    return {
      'application list': async request => {
        const { tenant, limit, offset } = readMembers(request, { ...EVERYWHERE, ...ROWS })
        const found = await this.#applications.list(this.#actor(tenant), { limit, offset })
        const declared = this.#room().declared.applications.filter(one => one.tenant === tenant)
        const files =
          offset > 0 ? [] : declared.map(({ id, name, owner, tier }) => ({ id, name, owner, tier, source: 'file' }))
        return { total: found.total + declared.length, applications: [...found.applications.map(rowOf), ...files] }
      },
      'application create': async request => {
        const { tenant, owner, ...given } = readMembers(request, {
          ...EVERYWHERE,
          ...{ name: nameText(100), owner: optional(nameText(255), ''), tier: optional(nameText(100), UNLIMITED) },
          description: optional(text(512, 0), ''),
          tokenType: optional(oneOf('JWT', 'OPAQUE'), 'JWT'),
          attributes: optional(texts(20, 512), {}),
        })
        const actor = this.#actor(tenant, owner)
        if ((await this.#room().registry.users.find(actor.user, tenant)) === null) throw missing(`user ${actor.user}`)
        return rowOf(await this.#applications.create(given, actor))
      },
      'application show': async request => {
        const { application } = await this.#of(request)
        const { registry } = this.#room()
        const { subscriptions } = await registry.subscriptions.list({ applicationId: application.id }, ALL)
        const keys = await this.#applications.keys(application)
        return { ...rowOf(application), keys: keys.map(keyRow), subscriptions: subscriptions.map(subscriptionRow) }
      },
      'application delete': async request => {
        const { application, actor } = await this.#of(request)
        await this.#applications.remove(application, actor)
        return rowOf(application)
      },
    }
  }

  #keyActions(): Readonly<Record<string, Answering>> {
    const key = async ({ key: word = '', ...request }: Readonly<Record<string, unknown>>) => {
      const { application, actor } = await this.#of(request)
      return { actor, client: await this.#applications.key(application, String(word)) }
    }
    return {
      'key generate': async ({ type, grants, redirectUris, validityS, ...request }) => {
        const given = readMembers(
          { type, grants, redirectUris, validityS },
          {
            ...{ type: KEY_TYPE, grants: WORDS(20), redirectUris: optional(list(text(2048), 20), []) },
            validityS: optional(whole(0, 316_224_000), 0),
          },
        )
        const { application, actor } = await this.#of(request)
        const made = await this.#applications.generate(application, { ...given, keyType: given.type }, actor)
        return { ...keyRow(made.client), secret: made.secret }
      },
      'key list': async request => {
        const { application } = await this.#of(request)
        return { keys: (await this.#applications.keys(application)).map(keyRow) }
      },
      'key renew': async request => {
        const { client, actor } = await key(request)
        return { ...keyRow(client), secret: await this.#applications.renewSecret(client, actor) }
      },
      'key remove': async request => {
        const { client, actor } = await key(request)
        await this.#applications.removeKey(client, actor)
        return keyRow(client)
      },
      'key api': async ({ type, validityS, permittedIps, permittedReferers, ...request }) => {
        const given = readMembers(
          { type, validityS, permittedIps, permittedReferers },
          {
            ...{ type: KEY_TYPE, permittedIps: WORDS(20), permittedReferers: WORDS(20) },
            validityS: optional(whole(-1, 316_224_000), -1),
          },
        )
        const { application } = await this.#of(request)
        const { type: keyType, ...terms } = given
        const made = await this.#room().tokens.issueApiKey({ application, keyType, ...terms })
        return { apiKey: made.key, expires: new Date(made.expiresMs).toISOString() }
      },
      token: async ({ type, scopes, ...request }) => {
        const given = readMembers({ type, scopes }, { type: KEY_TYPE, scopes: WORDS(100) })
        const { application } = await this.#of(request)
        const client = (await this.#applications.keys(application)).find(({ keyType }) => keyType === given.type)
        if (client === undefined)
          throw new Problem(404, `the application has no ${given.type} keys; generate them first`)
        const { token, scopes: granted, validityS } = await this.#room().tokens.issue(client, given.scopes)
        return { accessToken: token, scopes: granted, expiresInS: validityS }
      },
    }
  }

  #subscriptionActions(): Readonly<Record<string, Answering>> {
    const one = async ({ api: word, ...request }: Readonly<Record<string, unknown>>) => {
      const { api } = readMembers({ api: word }, { api: text(600) })
      const { application, actor } = await this.#of(request)
      const { subscriptions } = await this.#room().registry.subscriptions.list({ applicationId: application.id }, ALL)
      const subscription = subscriptions.find(({ apiName, apiVersion }) => `${apiName}:${apiVersion}` === api)
      if (subscription === undefined) throw missing(`subscription of ${application.name} to ${api}`)
      return { subscription, actor }
    }
    const setStatus = (status: Subscription['status']): Answering => {
      return async request => {
        const { subscription, actor } = await one(request)
        return subscriptionRow(await this.#applications.setStatus(subscription, status, actor))
      }
    }
    return {
      'subscription list': async request => {
        const of = { api: optional(text(600), ''), application: optional(nameText(100), '') }
        const given = readMembers(request, { ...EVERYWHERE, ...of, owner: optional(nameText(255), ''), ...ROWS })
        const actor = this.#actor(given.tenant)
        const isAll = given.application === ''
        const application = isAll ? null : await this.#applications.find(given.application, actor, given.owner)
        const api = given.api === '' ? null : await this.#applications.api(given.api)
        const found = await this.#room().registry.subscriptions.list(
          {
            ...(application === null ? {} : { applicationId: application.id }),
            ...(api === null ? {} : { apiName: api.name, apiVersion: api.version }),
          },
          { limit: given.limit, offset: given.offset },
        )
        return { total: found.total, subscriptions: found.subscriptions.map(subscriptionRow) }
      },
      'subscription add': async ({ api: word, tier: wanted, ...request }) => {
        const given = readMembers({ api: word, tier: wanted }, { api: text(600), tier: optional(nameText(100), '') })
        const { application, actor } = await this.#of(request)
        const api = await this.#applications.api(given.api)
        const tier = given.tier === '' ? (api.tiers[0] ?? UNLIMITED) : given.tier
        return subscriptionRow(await this.#applications.subscribe(application, api, tier, actor))
      },
      'subscription block': setStatus('BLOCKED'),
      'subscription block-production': setStatus('PROD_ONLY_BLOCKED'),
      'subscription unblock': setStatus('ACTIVE'),
      'subscription remove': async request => {
        const { subscription, actor } = await one(request)
        await this.#applications.unsubscribe(subscription, actor)
        return subscriptionRow(subscription)
      },
    }
  }

  #userActions(): Readonly<Record<string, Answering>> {
    const OF_USER = { ...EVERYWHERE, name: nameText(255) }
    return {
      'user list': async request => {
        const { tenant, ...page } = readMembers(request, { ...EVERYWHERE, ...ROWS })
        return this.#users.list(this.#actor(tenant), page)
      },
      'user add': async request => {
        const fields = { ...OF_USER, password: text(256), roles: WORDS(100) }
        const { tenant, name, password, roles } = readMembers(request, fields)
        return this.#users.create({ name, roles, claims: {} }, password, this.#actor(tenant))
      },
      'user passwd': async request => {
        const { tenant, name, password } = readMembers(request, { ...OF_USER, password: text(256) })
        const actor = this.#actor(tenant)
        const user = await this.#users.named(name, actor)
        await this.#users.setPassword(user, password, actor)
        return user
      },
      'user remove': async request => {
        const { tenant, name } = readMembers(request, OF_USER)
        const actor = this.#actor(tenant)
        const user = await this.#users.named(name, actor)
        await this.#users.remove(user, actor)
        return user
      },
    }
  }
}

function rowOf({ id, name, owner, tenant, tier, description, tokenType, createdMs }: Application) {
  const created = new Date(createdMs).toISOString()
  return { id, name, owner, tenant, tier, description, tokenType, created, source: 'database' }
}

function keyRow({ consumerKey, keyType, grants, redirectUris, validityS }: Client) {
  return { consumerKey, keyType, grants, redirectUris, validityS }
}

function subscriptionRow({ id, applicationId, apiName, apiVersion, tier, status }: Subscription) {
  return { id, applicationId, api: `${apiName}:${apiVersion}`, tier, status }
}
