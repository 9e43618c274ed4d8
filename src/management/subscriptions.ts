/** Subscriptions, as those who own the applications see and change them. */
import type { Application, Subscription } from '../registry/entities.ts'
import type { Applications } from './applications.ts'
import type { ManagementCaller } from './callers.ts'
import { nameText, optional, PAGE, readBody, readQuery, text } from './fields.ts'
import { apiIdOf, paged } from './names.ts'
import { missing, Problem } from './problem.ts'
import { created, type ResourceApp, segment } from './resource-app.ts'
import type { ManagedApi, ManagementRoom } from './room.ts'
import { subscriptionShape } from './shapes.ts'

const SUBSCRIBE = ['apim:subscribe', 'apim:sub_manage', 'apim:admin']
const ANSWERED = [
  ...['subscriptionId', 'apiInfo', 'applicationInfo', 'status', 'requestedThrottlingPolicy', 'redirectionParams'],
]
const SUBSCRIPTION = { applicationId: text(64), apiId: text(600), throttlingPolicy: nameText(100) }

export function addSubscriptions(resources: ResourceApp, applications: Applications, room: () => ManagementRoom): void {
  const on = resources.on.bind(resources)
  on('get', '/subscriptions', SUBSCRIBE, async (context, caller) => {
    const wanted = { applicationId: optional(text(64), ''), apiId: optional(text(600), '') }
    const { applicationId, apiId, ...page } = readQuery(context.req.raw, { ...PAGE, ...wanted })
    const application = applicationId === '' ? null : await applications.get(applicationId, caller)
    if (application === null && apiId === '') throw missing('subscription: name applicationId or apiId')
    return context.json(await listed({ application, apiId, caller, page }, resources.base, applications, room))
  })
  on('post', '/subscriptions', SUBSCRIBE, async (context, caller) => {
    const given = await readBody(context.req.raw, SUBSCRIPTION, ANSWERED)
    const application = await applications.get(given.applicationId, caller)
    const api = await applications.api(given.apiId)
    const made = await applications.subscribe(application, api, given.throttlingPolicy, caller)
    return created(context, subscriptionShape(made, application, api), made.id)
  })
  on('get', '/subscriptions/:id', SUBSCRIBE, async (context, caller) => {
    const { subscription, application } = await applications.subscription(segment(context, 'id'), caller)
    const api = await apiOf(subscription, room)
    return context.json(subscriptionShape(subscription, application, api))
  })
  on('put', '/subscriptions/:id', SUBSCRIBE, async (context, caller) => {
    const { subscription, application } = await applications.subscription(segment(context, 'id'), caller)
    const given = await readBody(context.req.raw, SUBSCRIPTION, ANSWERED)
    const api = await applications.api(given.apiId)
    const isSame = given.applicationId === application.id && subscription.apiName === api.name
    if (!isSame || subscription.apiVersion !== api.version) throw missing('subscription of that API and application')
    const changed = await applications.setTier(subscription, api, given.throttlingPolicy, caller)
    return context.json(subscriptionShape(changed, application, api))
  })
  on('delete', '/subscriptions/:id', SUBSCRIBE, async (context, caller) => {
    const { subscription } = await applications.subscription(segment(context, 'id'), caller)
    // Or the next one would be open, with the same keys.
    if (isBlocked(subscription) && !caller.isAdmin) throw new Problem(409, 'a blocked subscription stays where it is')
    await applications.unsubscribe(subscription, caller)
    return context.body(null, 200)
  })
}

function isBlocked({ status }: Subscription): boolean {
  return status === 'BLOCKED' || status === 'PROD_ONLY_BLOCKED'
}

interface Listing {
  readonly application: Application | null
  readonly apiId: string
  readonly caller: ManagementCaller
  readonly page: { readonly offset: number; readonly limit: number }
}

async function listed(
  { application, apiId, caller, page }: Listing,
  base: string,
  applications: Applications,
  room: () => ManagementRoom,
) {
  const api = apiId === '' ? null : await applications.api(apiId)
  const { registry } = room()
  const of = {
    tenant: caller.tenant,
    ...(caller.isAdmin ? {} : { owner: caller.user }),
    ...(application === null ? {} : { applicationId: application.id }),
    ...(api === null ? {} : { apiName: api.name, apiVersion: api.version }),
  }
  const apis = await room().apis.list()
  const { total, subscriptions } = await registry.subscriptions.list(of, page)
  const rows = await Promise.all(
    subscriptions.map(async subscription => {
      const owner = application ?? (await registry.applications.get(subscription.applicationId))
      return owner !== null ? [subscriptionShape(subscription, owner, sameApi(apis, subscription))] : []
    }),
  )
  const query = [
    application === null ? '' : `applicationId=${application.id}`,
    api === null ? '' : `apiId=${apiIdOf(api)}`,
  ]
  const path = `${base}/subscriptions?${query.filter(part => part !== '').join('&')}`
  return paged(path, rows.flat(), page, total)
}

export function sameApi(
  apis: readonly ManagedApi[],
  { apiName, apiVersion }: { readonly apiName: string; readonly apiVersion: string },
): ManagedApi | null {
  return apis.find(({ name, version }) => name === apiName && version === apiVersion) ?? null
}

export async function apiOf(
  subscription: { readonly apiName: string; readonly apiVersion: string },
  room: () => ManagementRoom,
): Promise<ManagedApi | null> {
  return sameApi(await room().apis.list(), subscription)
}
