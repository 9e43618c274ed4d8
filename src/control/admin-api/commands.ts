/**
 * Commands of the command line: the operations of the REST API for whoever may open the control socket, which is the
 * gateway's own user. Commands are validated as strictly as request bodies.
 */
import { SUPER_TENANT } from '../../auth/account-names.ts'
import type { Application, Client, Subscription, Workflow } from '../registry/entities.ts'
import { ApplicationService, UNLIMITED } from './application-service.ts'
import { ApprovalService, KEY_REQUESTS } from './approval-service.ts'
import {
  type Field,
  list,
  nameText,
  oneOf,
  optional,
  readMembers,
  text,
  textMap,
  integer,
  scopeText,
} from './request-fields.ts'
import { notFoundProblem, Problem, problemOf } from './problem.ts'
import type { AdminServices, Notices } from './admin-services.ts'
import { type ManagementAction, throttleCommands } from './throttle-commands.ts'
import { UserService } from './user-service.ts'

/** `action` such as `application create`; the other members are its parameters. */
export interface ManagementCommand {
  readonly action: string
  readonly [member: string]: unknown
}

const TENANT_FIELDS = { tenant: optional(nameText(255), SUPER_TENANT) }
const APPLICATION_FIELDS = { ...TENANT_FIELDS, application: nameText(100), owner: optional(nameText(255), '') }
const KEY_TYPE = optional(oneOf('PRODUCTION', 'SANDBOX'), 'PRODUCTION')
const PAGE_FIELDS = { limit: optional(integer(1, 10_000), 1000), offset: optional(integer(0, 1_000_000_000), 0) }
const nameList = (max: number): Field<readonly string[]> => optional(list(nameText(255), max), [])
const FIRST_PAGE = { offset: 0, limit: 10_000 }

export class ManagementCommands {
  readonly #services: () => AdminServices
  readonly #applications: ApplicationService
  readonly #approvals: ApprovalService
  readonly #users: UserService
  readonly #actions: Readonly<Record<string, ManagementAction>>

  constructor(services: () => AdminServices) {
    this.#services = services
    this.#applications = new ApplicationService(services)
    this.#approvals = new ApprovalService(services)
    this.#users = new UserService(services)
    this.#actions = {
      ...this.#applicationActions(),
      ...this.#keyActions(),
      ...this.#subscriptionActions(),
      ...this.#approvalActions(),
      ...this.#userActions(),
      'mail list': () => this.#notices().status(),
      'mail retry': async () => ({ retried: await this.#notices().retry() }),
      ...throttleCommands(services),
    }
  }

  /** Rejects with Problem. */
  async run({ action, ...members }: ManagementCommand): Promise<object> {
    const run = Object.hasOwn(this.#actions, action) ? this.#actions[action] : undefined
    if (run === undefined)
      throw new Problem(400, `unknown action; known actions: ${Object.keys(this.#actions).join(', ')}`)
    try {
      return await run(members)
    } catch (error) {
      throw problemOf(error)
    }
  }

  #notices(): Notices {
    const { notices } = this.#services()
    if (notices === null) throw new Problem(409, 'no mail is sent: [apim.notification] has no hostname')
    return notices
  }

  #actor(tenant: string, user = '') {
    return { user: user === '' ? this.#services().adminName : user, tenant, isAdmin: true }
  }

  async #applicationOf(fields: Readonly<Record<string, unknown>>) {
    const { tenant, application, owner } = readMembers(fields, APPLICATION_FIELDS)
    const actor = this.#actor(tenant)
    return { actor, application: await this.#applications.find(application, actor, owner) }
  }

  async #applicationRow(application: Application) {
    return applicationRow(application, (await this.#approvals.statuses([application])).get(application.id))
  }

  #applicationActions(): Readonly<Record<string, ManagementAction>> {
    return {
      'application list': async request => {
        const { tenant, limit, offset } = readMembers(request, { ...TENANT_FIELDS, ...PAGE_FIELDS })
        const found = await this.#applications.list(this.#actor(tenant), { limit, offset })
        const declared = this.#services().declared.applications.filter(one => one.tenant === tenant)
        const files =
          offset > 0
            ? []
            : declared.map(({ id, name, owner, tier }) => ({
                id,
                name,
                owner,
                tier,
                status: 'APPROVED',
                source: 'file',
              }))
        const statuses = await this.#approvals.statuses(found.applications)
        const rows = found.applications.map(one => applicationRow(one, statuses.get(one.id)))
        return { total: found.total + declared.length, applications: [...rows, ...files] }
      },
      'application create': async request => {
        const { tenant, owner, ...fields } = readMembers(request, {
          ...TENANT_FIELDS,
          ...{ name: nameText(100), owner: optional(nameText(255), ''), tier: optional(nameText(100), UNLIMITED) },
          description: optional(text(512, 0), ''),
          tokenType: optional(oneOf('JWT', 'OPAQUE'), 'JWT'),
          attributes: optional(textMap(20, 512), {}),
        })
        const actor = this.#actor(tenant, owner)
        if ((await this.#services().registry.users.find(actor.user, tenant)) === null)
          throw notFoundProblem(`user ${actor.user}`)
        return this.#applicationRow(await this.#applications.create(fields, actor))
      },
      'application show': async request => {
        const { application } = await this.#applicationOf(request)
        const { registry } = this.#services()
        const { subscriptions } = await registry.subscriptions.list({ applicationId: application.id }, FIRST_PAGE)
        const keys = await this.#applications.listKeys(application)
        return {
          ...(await this.#applicationRow(application)),
          keys: keys.map(keyRow),
          subscriptions: subscriptions.map(subscriptionRow),
        }
      },
      'application delete': async request => {
        const { application, actor } = await this.#applicationOf(request)
        await this.#applications.remove(application, actor)
        return applicationRow(application)
      },
    }
  }

  #keyActions(): Readonly<Record<string, ManagementAction>> {
    const findKey = async ({ key: keyOrId = '', ...request }: Readonly<Record<string, unknown>>) => {
      const { application, actor } = await this.#applicationOf(request)
      return { actor, client: await this.#applications.findKey(application, String(keyOrId)) }
    }
    return {
      'key generate': async ({ type, grants, redirectUris, validityS, ...request }) => {
        const fields = readMembers(
          { type, grants, redirectUris, validityS },
          {
            ...{ type: KEY_TYPE, grants: nameList(20), redirectUris: optional(list(text(2048), 20), []) },
            validityS: optional(integer(0, 316_224_000), 0),
          },
        )
        const { application, actor } = await this.#applicationOf(request)
        const created = await this.#applications.generateKeys(application, { ...fields, keyType: fields.type }, actor)
        if (created.request !== null) return keyRequestRow(created.request)
        return { ...keyRow(created.client), secret: created.secret }
      },
      'key list': async request => {
        const { application } = await this.#applicationOf(request)
        const requests = (await this.#approvals.keyRequests(application)).map(keyRequestRow)
        const keys = (await this.#applications.listKeys(application)).map(keyRow)
        return requests.length === 0 ? { keys } : { keys, requests }
      },
      'key renew': async request => {
        const { client, actor } = await findKey(request)
        return { ...keyRow(client), secret: await this.#applications.renewSecret(client, actor) }
      },
      'key remove': async request => {
        const { client, actor } = await findKey(request)
        await this.#applications.removeKey(client, actor)
        return keyRow(client)
      },
      'key api': async ({ type, validityS, permittedIps, permittedReferers, ...request }) => {
        const fields = readMembers(
          { type, validityS, permittedIps, permittedReferers },
          {
            ...{ type: KEY_TYPE, permittedIps: nameList(20), permittedReferers: nameList(20) },
            validityS: optional(integer(-1, 316_224_000), -1),
          },
        )
        const { application } = await this.#applicationOf(request)
        await this.#approvals.requireApproved(application)
        const { type: keyType, ...limits } = fields
        const created = await this.#services().tokens.issueApiKey({ application, keyType, ...limits })
        return { apiKey: created.key, expires: new Date(created.expiresMs).toISOString() }
      },
      token: async ({ type, scopes, ...request }) => {
        const fields = readMembers({ type, scopes }, { type: KEY_TYPE, scopes: optional(list(scopeText(), 100), []) })
        const { application } = await this.#applicationOf(request)
        const client = (await this.#applications.listKeys(application)).find(({ keyType }) => keyType === fields.type)
        if (client === undefined)
          throw new Problem(404, `the application has no ${fields.type} keys; generate keys first`)
        const { token, scopes: granted, validityS } = await this.#services().tokens.issueToken(client, fields.scopes)
        return { accessToken: token, scopes: granted, expiresInS: validityS }
      },
    }
  }

  async #subscriptionOf({ api: nameAndVersion, ...request }: Readonly<Record<string, unknown>>) {
    const { api } = readMembers({ api: nameAndVersion }, { api: text(600) })
    const { application, actor } = await this.#applicationOf(request)
    const { subscriptions } = await this.#services().registry.subscriptions.list(
      { applicationId: application.id },
      FIRST_PAGE,
    )
    const subscription = subscriptions.find(({ apiName, apiVersion }) => `${apiName}:${apiVersion}` === api)
    if (subscription === undefined) throw notFoundProblem(`subscription of ${application.name} to ${api}`)
    return { subscription, actor }
  }

  /** `approve` and `reject` of subscriptions, applications and keys. */
  #approvalActions(): Readonly<Record<string, ManagementAction>> {
    const REASON = { reason: optional(text(2048), '') }
    const actionsFor = (
      word: string,
      decision: 'APPROVED' | 'REJECTED',
    ): Readonly<Record<string, ManagementAction>> => ({
      [`subscription ${word}`]: async ({ reason: given, ...request }) => {
        const { reason } = readMembers({ reason: given }, REASON)
        const { subscription, actor } = await this.#subscriptionOf(request)
        const { id, applicationId } = subscription
        const kinds = ['AM_SUBSCRIPTION_CREATION', 'AM_SUBSCRIPTION_UPDATE'] as const
        const { id: workflow } = await this.#approvals.find(applicationId, id, kinds)
        await this.#approvals.decide(workflow, decision, reason, actor)
        return subscriptionRow((await this.#applications.findSubscription(id, actor)).subscription)
      },
      [`application ${word}`]: async ({ reason: given, ...request }) => {
        const { reason } = readMembers({ reason: given }, REASON)
        const { application, actor } = await this.#applicationOf(request)
        const { id } = await this.#approvals.find(application.id, application.id, ['AM_APPLICATION_CREATION'])
        await this.#approvals.decide(id, decision, reason, actor)
        return this.#applicationRow(application)
      },
      [`key ${word}`]: async ({ type, reason: given, ...request }) => {
        const fields = readMembers({ type, reason: given }, { ...REASON, type: KEY_TYPE })
        const { application, actor } = await this.#applicationOf(request)
        const { id } = await this.#approvals.find(application.id, application.id, [KEY_REQUESTS[fields.type]])
        return keyRequestRow(await this.#approvals.decide(id, decision, fields.reason, actor))
      },
    })
    return { ...actionsFor('approve', 'APPROVED'), ...actionsFor('reject', 'REJECTED') }
  }

  #subscriptionActions(): Readonly<Record<string, ManagementAction>> {
    const setStatus = (status: Subscription['status']): ManagementAction => {
      return async request => {
        const { subscription, actor } = await this.#subscriptionOf(request)
        return subscriptionRow(await this.#applications.setStatus(subscription, status, actor))
      }
    }
    return {
      'subscription list': async request => {
        const of = { api: optional(text(600), ''), application: optional(nameText(100), '') }
        const fields = readMembers(request, {
          ...TENANT_FIELDS,
          ...of,
          owner: optional(nameText(255), ''),
          ...PAGE_FIELDS,
        })
        const actor = this.#actor(fields.tenant)
        const isAll = fields.application === ''
        const application = isAll ? null : await this.#applications.find(fields.application, actor, fields.owner)
        const api = fields.api === '' ? null : await this.#applications.findApi(fields.api)
        const found = await this.#services().registry.subscriptions.list(
          {
            ...(application === null ? {} : { applicationId: application.id }),
            ...(api === null ? {} : { apiName: api.name, apiVersion: api.version }),
          },
          { limit: fields.limit, offset: fields.offset },
        )
        return { total: found.total, subscriptions: found.subscriptions.map(subscriptionRow) }
      },
      'subscription add': async ({ api: apiName, tier: tierName, ...request }) => {
        const fields = readMembers(
          { api: apiName, tier: tierName },
          { api: text(600), tier: optional(nameText(100), '') },
        )
        const { application, actor } = await this.#applicationOf(request)
        const api = await this.#applications.findApi(fields.api)
        const tier = fields.tier === '' ? (api.tiers[0] ?? UNLIMITED) : fields.tier
        return subscriptionRow(await this.#applications.subscribe(application, api, tier, actor))
      },
      'subscription block': setStatus('BLOCKED'),
      'subscription block-production': setStatus('PROD_ONLY_BLOCKED'),
      'subscription unblock': setStatus('ACTIVE'),
      'subscription remove': async request => {
        const { subscription, actor } = await this.#subscriptionOf(request)
        await this.#applications.unsubscribe(subscription, actor)
        return subscriptionRow(subscription)
      },
    }
  }

  #userActions(): Readonly<Record<string, ManagementAction>> {
    const USER_FIELDS = { ...TENANT_FIELDS, name: nameText(255) }
    return {
      'user list': async request => {
        const { tenant, ...page } = readMembers(request, { ...TENANT_FIELDS, ...PAGE_FIELDS })
        return this.#users.list(this.#actor(tenant), page)
      },
      'user add': async request => {
        const fields = { ...USER_FIELDS, password: text(256), roles: nameList(100) }
        const { tenant, name, password, roles } = readMembers(request, fields)
        return this.#users.create({ name, roles, claims: {} }, password, this.#actor(tenant))
      },
      'user passwd': async request => {
        const { tenant, name, password } = readMembers(request, { ...USER_FIELDS, password: text(256) })
        const actor = this.#actor(tenant)
        const user = await this.#users.findByName(name, actor)
        await this.#users.setPassword(user, password, actor)
        return user
      },
      'user remove': async request => {
        const { tenant, name } = readMembers(request, USER_FIELDS)
        const actor = this.#actor(tenant)
        const user = await this.#users.findByName(name, actor)
        await this.#users.remove(user, actor)
        return user
      },
    }
  }
}

function applicationRow(application: Application, status: Workflow['status'] = 'APPROVED') {
  const { id, name, owner, tenant, tier, description, tokenType, createdMs } = application
  const created = new Date(createdMs).toISOString()
  return { id, name, owner, tenant, tier, description, tokenType, created, status, source: 'database' }
}

/** Keys that wait for approval, were rejected, or can be generated now. */
function keyRequestRow({ id, kind, status, requester, createdMs }: Workflow) {
  const keyType = kind === KEY_REQUESTS.SANDBOX ? 'SANDBOX' : 'PRODUCTION'
  return { request: id, keyType, status, requester, created: new Date(createdMs).toISOString() }
}

function keyRow({ consumerKey, keyType, grants, redirectUris, validityS }: Client) {
  return { consumerKey, keyType, grants, redirectUris, validityS }
}

function subscriptionRow({ id, applicationId, apiName, apiVersion, tier, status }: Subscription) {
  return { id, applicationId, api: `${apiName}:${apiVersion}`, tier, status }
}
