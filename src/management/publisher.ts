/** What publishers do: where APIs stand in their lives, and whose subscriptions are blocked. */
import { SUPER_TENANT } from '../config/account-names.ts'
import { targetOf } from '../config/lifecycle.ts'
import { Applications } from './applications.ts'
import type { Callers } from './callers.ts'
import { oneOf, optional, PAGE, readQuery, text } from './fields.ts'
import { apiIdOf, paged } from './names.ts'
import { missing, Problem } from './problem.ts'
import { ResourceApp, segment } from './resource-app.ts'
import type { ManagedApi, ManagementRoom } from './room.ts'
import { apiInfoShape, apiShape, subscriptionShape } from './shapes.ts'
import { apiOf, sameApi } from './subscriptions.ts'

export const PUBLISHER = '/api/am/publisher/v4'

const VIEW = ['apim:api_view', 'apim:api_publish', 'apim:admin']
const PUBLISH = ['apim:api_publish', 'apim:admin']
const VIEW_SUBSCRIPTIONS = ['apim:subscription_view', 'apim:subscription_block', 'apim:admin']
const BLOCK = ['apim:subscription_block', 'apim:admin']
const API_ID = text(600)
const SUBSCRIPTION_ID = text(64)

export function publisherApp(room: () => ManagementRoom, callers: Callers): ResourceApp['app'] {
  const resources = new ResourceApp(PUBLISHER, callers, room)
  addApis(resources, room)
  addSubscriptions(resources, room)
  return resources.app
}

function addApis(resources: ResourceApp, room: () => ManagementRoom): void {
  const applications = new Applications(room)
  const on = resources.on.bind(resources)
  on('get', '/apis', VIEW, async context => {
    const { query, ...page } = readQuery(context.req.raw, { ...PAGE, query: optional(text(200), '') })
    const all = (await room().apis.list()).filter(({ name }) => name.toLowerCase().includes(wordIn(query)))
    const rows = all.slice(page.offset, page.offset + page.limit).map(apiInfoShape)
    return context.json(paged(`${PUBLISHER}/apis`, rows, page, all.length))
  })
  on('get', '/apis/:id', VIEW, async context => {
    return context.json(apiShape(await applications.api(segment(context, 'id'))))
  })
  on('get', '/apis/:id/lifecycle-state', VIEW, async context => {
    return context.json(lifecycleShape(await applications.api(segment(context, 'id'))))
  })
  on('post', '/apis/change-lifecycle', PUBLISH, async (context, caller) => {
    const wanted = { apiId: API_ID, action: text(60), lifecycleChecklist: optional(text(600), '') }
    const { apiId, action } = readQuery(context.req.raw, wanted)
    // APIs are files of the node, and belong to whoever runs it.
    if (caller.tenant !== SUPER_TENANT) throw new Problem(403, 'APIs belong to the super tenant')
    const { name, version } = await applications.api(apiId)
    const change = room().apis.change({ name: `${name}:${version}`, action })
    const state = await change.catch((error: Error) => {
      throw new Problem(409, error.message)
    })
    room().report('info', 'lifecycle asked for', { USER: caller.user, API: `${name}:${version}`, ACTION: action })
    const api = await applications.api(apiIdOf({ name, version }))
    return context.json({ workflowStatus: 'APPROVED', lifecycleState: lifecycleShape({ ...api, state }) })
  })
}

function addSubscriptions(resources: ResourceApp, room: () => ManagementRoom): void {
  const applications = new Applications(room)
  const on = resources.on.bind(resources)
  on('get', '/subscriptions', VIEW_SUBSCRIPTIONS, async (context, caller) => {
    const { apiId, ...page } = readQuery(context.req.raw, { ...PAGE, apiId: optional(API_ID, '') })
    const api = apiId === '' ? null : await applications.api(apiId)
    const { tenant } = caller
    const of = api === null ? { tenant } : { tenant, apiName: api.name, apiVersion: api.version }
    const { registry, apis } = room()
    const { total, subscriptions } = await registry.subscriptions.list(of, page)
    const all = await apis.list()
    const rows = await Promise.all(
      subscriptions.map(async subscription => {
        const application = await registry.applications.get(subscription.applicationId)
        if (application === null) return []
        return [subscriptionShape(subscription, application, sameApi(all, subscription))]
      }),
    )
    return context.json(paged(`${PUBLISHER}/subscriptions`, rows.flat(), page, total))
  })
  on('post', '/subscriptions/block-subscription', BLOCK, async (context, caller) => {
    const blockState = oneOf('BLOCKED', 'PROD_ONLY_BLOCKED')
    const given = readQuery(context.req.raw, { subscriptionId: SUBSCRIPTION_ID, blockState })
    // Who may block, may block those of every application of the tenant.
    const found = await applications.subscription(given.subscriptionId, { ...caller, isAdmin: true })
    const changed = await applications.setStatus(found.subscription, given.blockState, caller)
    return context.json(subscriptionShape(changed, found.application, await apiOf(changed, room)))
  })
  on('post', '/subscriptions/unblock-subscription', BLOCK, async (context, caller) => {
    const { subscriptionId } = readQuery(context.req.raw, { subscriptionId: SUBSCRIPTION_ID })
    const found = await applications.subscription(subscriptionId, { ...caller, isAdmin: true })
    const isBlocked = ['BLOCKED', 'PROD_ONLY_BLOCKED', 'ACTIVE'].includes(found.subscription.status)
    if (!isBlocked) throw missing('blocked subscription')
    const changed = await applications.setStatus(found.subscription, 'ACTIVE', caller)
    return context.json(subscriptionShape(changed, found.application, await apiOf(changed, room)))
  })
}

function lifecycleShape({ state, actions, since }: ManagedApi) {
  const availableTransitions = actions.map(event => ({ event, targetState: titled(targetOf(event) ?? '') }))
  return { state: titled(state), checkItems: [], availableTransitions, ...(since === '' ? {} : { updatedTime: since }) }
}

/** `PUBLISHED` is `Published` there. */
function titled(state: string): string {
  return `${state.slice(0, 1)}${state.slice(1).toLowerCase()}`
}

/** `name:Orders`, or a part of a name. */
function wordIn(query: string): string {
  return query.replace(/^name:/, '').toLowerCase()
}
