/** REST routes of throttling: policies of the administrators, and the tiers that portals offer. */
import { denyBody } from '../../throttle/policy-body.ts'
import { unitName } from '../../throttle/limit-body.ts'
import type { PolicyLevel, ThrottlingPolicy } from '../../throttle/policy.ts'
import type { AdminServices } from './admin-services.ts'
import { requireSuperTenant } from './authentication.ts'
import { type ListedPolicy, PolicyService } from './policy-service.ts'
import { notFoundProblem } from './problem.ts'
import { listRepresentation } from './representations.ts'
import { boolean, PAGE, readBody, readJson, readQuery } from './request-fields.ts'
import { createdResponse, pathParameter, type RestApp } from './rest-app.ts'

const SCOPES = ['apim:admin']
const READ_ONLY = ['conditionId', 'conditionType', 'conditionValue']
const LEVELS: readonly PolicyLevel[] = ['application', 'subscription', 'advanced', 'custom']

/** `/throttling/policies/{level}`, `/throttling/deny-policies` and `/throttling/deny-policy/{id}` of administrators. */
export function addThrottling(resources: RestApp, services: () => AdminServices): void {
  const { base } = resources
  const policies = new PolicyService(services)
  // Policies hold for the callers of every tenant, and deny policies name them.
  const route: RestApp['route'] = (verb, path, scopes, handler) => {
    resources.route(verb, path, scopes, (context, caller) => {
      requireSuperTenant(caller, 'see and change throttling policies')
      return handler(context, caller)
    })
  }
  for (const level of LEVELS) addPolicies({ base, route }, policies, level)
  const all = '/throttling/deny-policies'
  const one = '/throttling/deny-policy/:id'
  route('get', all, SCOPES, async context => {
    const page = readQuery(context.req.raw, PAGE)
    const denied = await policies.listDenied()
    const rows = denied.slice(page.offset, page.offset + page.limit).map(({ policy }) => denyBody(policy))
    return context.json(listRepresentation(`${base}${all}`, rows, page, denied.length))
  })
  route('post', all, SCOPES, async (context, { user }) => {
    const created = await policies.deny(await readJson(context.req.raw), user)
    context.header('Location', `${base}/throttling/deny-policy/${created.id}`)
    return context.json(denyBody(created), 201)
  })
  route('get', one, SCOPES, async context => {
    return context.json(denyBody((await policies.getDenied(pathParameter(context, 'id'))).policy))
  })
  route('patch', one, SCOPES, async (context, { user }) => {
    const { conditionStatus } = await readBody(context.req.raw, { conditionStatus: boolean() }, READ_ONLY)
    return context.json(denyBody(await policies.switchDenied(pathParameter(context, 'id'), conditionStatus, user)))
  })
  route('delete', one, SCOPES, async (context, { user }) => {
    await policies.removeDenied(pathParameter(context, 'id'), user)
    return context.body(null, 200)
  })
}

function addPolicies({ base, route }: Pick<RestApp, 'base' | 'route'>, policies: PolicyService, level: PolicyLevel) {
  const path = `/throttling/policies/${level}`
  route('get', path, SCOPES, async context => {
    const page = readQuery(context.req.raw, PAGE)
    const all = await policies.list(level)
    const rows = all.slice(page.offset, page.offset + page.limit).map(policyRepresentation)
    return context.json(listRepresentation(`${base}${path}`, rows, page, all.length))
  })
  route('post', path, SCOPES, async (context, { user }) => {
    const created = await policies.create(level, await readJson(context.req.raw), user)
    return createdResponse(context, policyRepresentation(created), created.id)
  })
  route('get', `${path}/:id`, SCOPES, async context => {
    return context.json(policyRepresentation(await policies.get(level, pathParameter(context, 'id'))))
  })
  route('put', `${path}/:id`, SCOPES, async (context, { user }) => {
    const body = await readJson(context.req.raw)
    return context.json(policyRepresentation(await policies.update(level, pathParameter(context, 'id'), body, user)))
  })
  route('delete', `${path}/:id`, SCOPES, async (context, { user }) => {
    await policies.remove(level, pathParameter(context, 'id'), user)
    return context.body(null, 200)
  })
}

function policyRepresentation({ id, body, source, warning }: ListedPolicy): object {
  return { policyId: id, ...body, isDeployed: true, source, ...(warning === '' ? {} : { warning }) }
}

/**
 * `/throttling-policies/{level}` of a portal: the tiers that its users choose from. `levels`: what the portal calls a
 * level.
 */
export function addTiers(
  { base, route }: RestApp,
  services: () => AdminServices,
  levels: Readonly<Record<string, PolicyLevel>>,
  scopes: readonly string[],
): void {
  const policies = new PolicyService(services)
  const levelOf = (name: string): PolicyLevel => {
    if (!Object.hasOwn(levels, name)) throw notFoundProblem(`level: there are ${Object.keys(levels).join(', ')}`)
    return levels[name]!
  }
  route('get', '/throttling-policies/:level', scopes, async context => {
    const page = readQuery(context.req.raw, PAGE)
    const name = pathParameter(context, 'level')
    const all = await policies.list(levelOf(name))
    const rows = all.slice(page.offset, page.offset + page.limit).map(each => tierRepresentation(each, name))
    return context.json(listRepresentation(`${base}/throttling-policies/${name}`, rows, page, all.length))
  })
  route('get', '/throttling-policies/:level/:id', scopes, async context => {
    const name = pathParameter(context, 'level')
    return context.json(tierRepresentation(await policies.get(levelOf(name), pathParameter(context, 'id')), name))
  })
}

function tierRepresentation({ policy, body }: ListedPolicy, policyLevel: string): object {
  const { name, quota } = policy
  const { displayName = name, description = '' } = body
  const limit = quota ?? { limit: 2_147_483_647, unit: 'min', units: 1, type: 'requests' }
  return {
    ...{ name, displayName, description, policyLevel, attributes: {}, tierPlan: 'FREE' },
    ...{ requestCount: limit.limit, quotaPolicyType: QUOTA_TYPES[limit.type as keyof typeof QUOTA_TYPES] },
    ...{ unitTime: limit.units, timeUnit: unitName(limit.unit as 'min') },
    stopOnQuotaReach: stops(policy),
  }
}

const QUOTA_TYPES = { requests: 'REQUESTCOUNT', bandwidth: 'BANDWIDTHVOLUME', events: 'EVENTCOUNT' } as const

function stops(policy: ThrottlingPolicy): boolean {
  return policy.level !== 'subscription' || policy.stopOnQuotaReach
}
