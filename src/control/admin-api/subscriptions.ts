/** Subscription resources of the developer portal. */
import type { Application, Subscription } from '../registry/entities.ts'
import type { ApplicationService } from './application-service.ts'
import { ApprovalService } from './approval-service.ts'
import type { AdminCaller } from './authentication.ts'
import { nameText, optional, PAGE, readBody, readQuery, text } from './request-fields.ts'
import { apiIdOf, listRepresentation, subscriptionRepresentation } from './representations.ts'
import { notFoundProblem, Problem } from './problem.ts'
import { createdResponse, type RestApp, pathParameter } from './rest-app.ts'
import type { ManagedApi, AdminServices } from './admin-services.ts'

const SUBSCRIBE = ['apim:subscribe', 'apim:sub_manage', 'apim:admin']
const READ_ONLY = [
  ...['subscriptionId', 'apiInfo', 'applicationInfo', 'status', 'requestedThrottlingPolicy', 'redirectionParams'],
]
const SUBSCRIPTION = { applicationId: text(64), apiId: text(600), throttlingPolicy: nameText(100) }

export function addSubscriptions(
  resources: RestApp,
  applications: ApplicationService,
  services: () => AdminServices,
): void {
  const approvals = new ApprovalService(services)
  const pendingTierOf = async (subscription: Subscription) =>
    (await approvals.pendingTiers([subscription])).get(subscription.id)
  const { route } = resources
  route('get', '/subscriptions', SUBSCRIBE, async (context, caller) => {
    const filter = { applicationId: optional(text(64), ''), apiId: optional(text(600), '') }
    const { applicationId, apiId, ...page } = readQuery(context.req.raw, { ...PAGE, ...filter })
    const application = applicationId === '' ? null : await applications.get(applicationId, caller)
    if (application === null && apiId === '') throw notFoundProblem('subscription: give applicationId or apiId')
    return context.json(
      await subscriptionList({ application, apiId, caller, page }, resources.base, applications, services),
    )
  })
  route('post', '/subscriptions', SUBSCRIBE, async (context, caller) => {
    const body = await readBody(context.req.raw, SUBSCRIPTION, READ_ONLY)
    const application = await applications.get(body.applicationId, caller)
    const api = await applications.findApi(body.apiId)
    const created = await applications.subscribe(application, api, body.throttlingPolicy, caller)
    return createdResponse(context, subscriptionRepresentation(created, application, api), created.id)
  })
  route('get', '/subscriptions/:id', SUBSCRIBE, async (context, caller) => {
    const { subscription, application } = await applications.findSubscription(pathParameter(context, 'id'), caller)
    const api = await deployedApiOf(subscription, services)
    const pendingTier = await pendingTierOf(subscription)
    return context.json(subscriptionRepresentation(subscription, application, api, pendingTier))
  })
  route('put', '/subscriptions/:id', SUBSCRIBE, async (context, caller) => {
    const { subscription, application } = await applications.findSubscription(pathParameter(context, 'id'), caller)
    const body = await readBody(context.req.raw, SUBSCRIPTION, READ_ONLY)
    const api = await applications.findApi(body.apiId)
    const isSame = body.applicationId === application.id && subscription.apiName === api.name
    if (!isSame || subscription.apiVersion !== api.version)
      throw notFoundProblem('subscription of that API and application')
    const changed = await applications.setTier(subscription, application, api, body.throttlingPolicy, caller)
    return context.json(subscriptionRepresentation(changed.subscription, application, api, changed.pendingTier))
  })
  route('delete', '/subscriptions/:id', SUBSCRIBE, async (context, caller) => {
    const { subscription } = await applications.findSubscription(pathParameter(context, 'id'), caller)
    // A new subscription with the same keys would not be blocked.
    if (isBlocked(subscription) && !caller.isAdmin)
      throw new Problem(409, 'only an administrator can remove a blocked subscription')
    await applications.unsubscribe(subscription, caller)
    return context.body(null, 200)
  })
}

function isBlocked({ status }: Subscription): boolean {
  return status === 'BLOCKED' || status === 'PROD_ONLY_BLOCKED'
}

/** A list request of a caller. */
interface SubscriptionListRequest {
  readonly application: Application | null
  readonly apiId: string
  readonly caller: AdminCaller
  readonly page: { readonly offset: number; readonly limit: number }
}

async function subscriptionList(
  { application, apiId, caller, page }: SubscriptionListRequest,
  base: string,
  applications: ApplicationService,
  services: () => AdminServices,
) {
  const api = apiId === '' ? null : await applications.findApi(apiId)
  const { registry } = services()
  const query = {
    tenant: caller.tenant,
    ...(caller.isAdmin ? {} : { owner: caller.user }),
    ...(application === null ? {} : { applicationId: application.id }),
    ...(api === null ? {} : { apiName: api.name, apiVersion: api.version }),
  }
  const apis = await services().apis.list()
  const { total, subscriptions } = await registry.subscriptions.list(query, page)
  const tiers = await new ApprovalService(services).pendingTiers(subscriptions)
  const rows = await Promise.all(
    subscriptions.map(async subscription => {
      const owner = application ?? (await registry.applications.get(subscription.applicationId))
      if (owner === null) return []
      const deployed = findDeployed(apis, subscription)
      return [subscriptionRepresentation(subscription, owner, deployed, tiers.get(subscription.id))]
    }),
  )
  const filters = [
    application === null ? '' : `applicationId=${application.id}`,
    api === null ? '' : `apiId=${apiIdOf(api)}`,
  ]
  const path = `${base}/subscriptions?${filters.filter(part => part !== '').join('&')}`
  return listRepresentation(path, rows.flat(), page, total)
}

export function findDeployed(
  apis: readonly ManagedApi[],
  { apiName, apiVersion }: { readonly apiName: string; readonly apiVersion: string },
): ManagedApi | null {
  return apis.find(({ name, version }) => name === apiName && version === apiVersion) ?? null
}

export async function deployedApiOf(
  subscription: { readonly apiName: string; readonly apiVersion: string },
  services: () => AdminServices,
): Promise<ManagedApi | null> {
  return findDeployed(await services().apis.list(), subscription)
}
