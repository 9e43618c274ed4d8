/** REST API of publishers: API lifecycles, and blocking of subscriptions. */
import { targetState } from '../../apis/lifecycle-states.ts'
import { ApplicationService } from './application-service.ts'
import { type AdminAuthenticator, requireSuperTenant } from './authentication.ts'
import { oneOf, optional, PAGE, readQuery, text } from './request-fields.ts'
import {
  apiIdOf,
  apiInfoRepresentation,
  apiRepresentation,
  listRepresentation,
  subscriptionRepresentation,
} from './representations.ts'
import { Problem } from './problem.ts'
import { RestApp, pathParameter } from './rest-app.ts'
import type { ManagedApi, AdminServices } from './admin-services.ts'
import { addTiers } from './throttling.ts'
import { deployedApiOf, findDeployed } from './subscriptions.ts'

export const PUBLISHER = '/api/am/publisher/v4'

const VIEW = ['apim:api_view', 'apim:api_publish', 'apim:admin']
const PUBLISH = ['apim:api_publish', 'apim:admin']
const VIEW_SUBSCRIPTIONS = ['apim:subscription_view', 'apim:subscription_block', 'apim:admin']
const BLOCK = ['apim:subscription_block', 'apim:admin']
const API_ID = text(600)
const SUBSCRIPTION_ID = text(64)

export function publisherApp(services: () => AdminServices, authenticator: AdminAuthenticator): RestApp['app'] {
  const resources = new RestApp(PUBLISHER, authenticator, services)
  addApis(resources, services)
  addSubscriptions(resources, services)
  addTiers(resources, services, { api: 'advanced', subscription: 'subscription' }, VIEW)
  return resources.app
}

function addApis(resources: RestApp, services: () => AdminServices): void {
  const applications = new ApplicationService(services)
  const { route } = resources
  route('get', '/apis', VIEW, async context => {
    const { query, ...page } = readQuery(context.req.raw, { ...PAGE, query: optional(text(200), '') })
    const all = (await services().apis.list()).filter(({ name }) => name.toLowerCase().includes(nameFilter(query)))
    const rows = all.slice(page.offset, page.offset + page.limit).map(apiInfoRepresentation)
    return context.json(listRepresentation(`${PUBLISHER}/apis`, rows, page, all.length))
  })
  route('get', '/apis/:id', VIEW, async context => {
    return context.json(apiRepresentation(await applications.findApi(pathParameter(context, 'id'))))
  })
  route('get', '/apis/:id/lifecycle-state', VIEW, async context => {
    return context.json(lifecycleRepresentation(await applications.findApi(pathParameter(context, 'id'))))
  })
  route('post', '/apis/change-lifecycle', PUBLISH, async (context, caller) => {
    const fields = { apiId: API_ID, action: text(60), lifecycleChecklist: optional(text(600), '') }
    const { apiId, action } = readQuery(context.req.raw, fields)
    // APIs are files of the node and belong to its operator.
    requireSuperTenant(caller, 'change the lifecycle of APIs')
    const { name, version } = await applications.findApi(apiId)
    const change = services().apis.change({ name: `${name}:${version}`, action })
    const state = await change.catch((error: Error) => {
      throw new Problem(409, error.message)
    })
    services().report('info', 'lifecycle change requested', {
      USER: caller.user,
      API: `${name}:${version}`,
      ACTION: action,
    })
    if (action === 'Publish') await services().notices?.apiPublished({ name, version })
    const api = await applications.findApi(apiIdOf({ name, version }))
    return context.json({ workflowStatus: 'APPROVED', lifecycleState: lifecycleRepresentation({ ...api, state }) })
  })
}

function addSubscriptions(resources: RestApp, services: () => AdminServices): void {
  const applications = new ApplicationService(services)
  const { route } = resources
  route('get', '/subscriptions', VIEW_SUBSCRIPTIONS, async (context, caller) => {
    const { apiId, ...page } = readQuery(context.req.raw, { ...PAGE, apiId: optional(API_ID, '') })
    const api = apiId === '' ? null : await applications.findApi(apiId)
    const { tenant } = caller
    const of = api === null ? { tenant } : { tenant, apiName: api.name, apiVersion: api.version }
    const { registry, apis } = services()
    const { total, subscriptions } = await registry.subscriptions.list(of, page)
    const all = await apis.list()
    const rows = await Promise.all(
      subscriptions.map(async subscription => {
        const application = await registry.applications.get(subscription.applicationId)
        if (application === null) return []
        return [subscriptionRepresentation(subscription, application, findDeployed(all, subscription))]
      }),
    )
    return context.json(listRepresentation(`${PUBLISHER}/subscriptions`, rows.flat(), page, total))
  })
  route('post', '/subscriptions/block-subscription', BLOCK, async (context, caller) => {
    const blockState = oneOf('BLOCKED', 'PROD_ONLY_BLOCKED')
    const query = readQuery(context.req.raw, { subscriptionId: SUBSCRIPTION_ID, blockState })
    // A publisher may block subscriptions of every application of the tenant.
    const visible = await applications.findSubscription(query.subscriptionId, { ...caller, isAdmin: true })
    const changed = await applications.setStatus(visible.subscription, query.blockState, caller)
    return context.json(
      subscriptionRepresentation(changed, visible.application, await deployedApiOf(changed, services)),
    )
  })
  route('post', '/subscriptions/unblock-subscription', BLOCK, async (context, caller) => {
    const { subscriptionId } = readQuery(context.req.raw, { subscriptionId: SUBSCRIPTION_ID })
    const visible = await applications.findSubscription(subscriptionId, { ...caller, isAdmin: true })
    const changed = await applications.setStatus(visible.subscription, 'ACTIVE', caller)
    return context.json(
      subscriptionRepresentation(changed, visible.application, await deployedApiOf(changed, services)),
    )
  })
}

function lifecycleRepresentation({ state, actions, since }: ManagedApi) {
  const availableTransitions = actions.map(event => ({ event, targetState: titled(targetState(event) ?? '') }))
  return { state: titled(state), checkItems: [], availableTransitions, ...(since === '' ? {} : { updatedTime: since }) }
}

/** `PUBLISHED` is `Published` in the reference platform's API. */
function titled(state: string): string {
  return `${state.slice(0, 1)}${state.slice(1).toLowerCase()}`
}

/** Text of a filter such as `name:Orders`, or a part of a name, in lower case. */
function nameFilter(query: string): string {
  return query.replace(/^name:/, '').toLowerCase()
}
