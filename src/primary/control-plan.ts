/** Makes the plan of the control thread from the active state. */
import { backendTokenPlans } from '../plan/backend-planning.ts'
import type { ApiRecord, ControlPlan } from '../plan/control-messages.ts'
import { operationsOf } from '../apis/api-definition.ts'
import { applicationRecords } from '../apis/application-files.ts'
import type { Configuration } from '../config/catalogue.ts'
import { authPlan } from '../plan/auth-planning.ts'
import { managementPlan } from '../plan/management-plan.ts'
import { nodeComponents } from '../plan/node-components.ts'
import { receiverPlan } from '../plan/receiver-planning.ts'
import { throttlePlan } from '../plan/throttle-planning.ts'
import { type ApiPlan, type ReactorPlan, TOKEN_API_NAMES } from '../plan/reactor-plan.ts'
import { type ActiveState, ISSUER } from './active-state.ts'
import type { Installation } from './home-loading.ts'

/** Memory that the threads of a node share. */
export type SharedMemory = Pick<ReactorPlan, 'authVersion' | 'metrics' | 'reactors'>

export function controlPlan(
  active: ActiveState,
  { home, dataDir }: Installation,
  shared: SharedMemory,
  databaseWaitMs: number,
): ControlPlan {
  const { configuration } = active.configured
  const { issuers } = authPlan(configuration)
  const { byDefinition, ofSequences } = active.planned
  const clients = active.tls?.plans.clients ?? []
  return {
    configuration,
    home,
    dataDir,
    databaseWaitMs,
    apis: apiRecords(active),
    runsKeyManager: nodeComponents(configuration).runsKeyManager,
    runsGateway: nodeComponents(configuration).runsGateway,
    receiver: receiverPlan(configuration, active.tls?.plans ?? null),
    trust: Object.fromEntries(clients.map(({ match, plan }) => [match, plan])),
    ownIssuer: issuers.find(({ isOwn }) => isOwn)!.issuer,
    takesIssuer: takesIssuer(active),
    issuers,
    backends: [...backendTokenPlans([...byDefinition.keys()]), ...ofSequences.tokens],
    management: managementPlan(configuration, active.tls?.plans ?? null),
    declared: applicationRecords(active.declared, configuration),
    throttling: throttlePlan(configuration, active.policies),
    authVersion: shared.authVersion,
    metrics: shared.metrics,
    // Behind the columns of the reactors and of the primary.
    column: shared.reactors + 1,
  }
}

/** True if the issuer of this node is that of its database, if there is one: the operator has named none. */
export function takesIssuer({ configured: { configuration, keys } }: ActiveState): boolean {
  if (!nodeComponents(configuration).runsKeyManager || configuration['database.apim_db'].type === 'h2') return false
  return !keys.some(({ path, where }) => path === ISSUER && where !== '')
}

/** True if the control thread sends requests over TLS, so that a trust store has to be opened. */
export function callsOverTls(configuration: Configuration): boolean {
  const keySets = configuration['apim.jwt.issuer'].map(row => row['jwks.url'])
  const { runsKeyManager, runsGateway } = nodeComponents(configuration)
  const usesKeyManager = !runsKeyManager && runsGateway
  const services = usesKeyManager ? [configuration['apim.key_manager'].service_url] : []
  const throttling = configuration['apim.throttling']
  const groups = configuration['apim.throttling.url_group']
  const messaging = [
    ...throttling.throttle_decision_endpoints,
    ...groups.flatMap(group => [...group.traffic_manager_urls, ...group.traffic_manager_auth_urls]),
  ]
  const analytics = configuration['apim.analytics.url_group']
    .filter(() => configuration['apim.analytics'].enable)
    .flatMap(group => [...group.analytics_url, ...group.analytics_auth_url])
  const workflow = configuration['apim.workflow']
  const engine = runsKeyManager && workflow.enable && workflow.call_engine ? [workflow.service_url] : []
  const traces = [configuration.tracing['otlp.endpoint']]
  return [...keySets, ...services, ...engine, ...messaging, ...analytics, ...traces].some(url =>
    /^(?:https|ssl|amqps):/i.test(url),
  )
}

function apiRecords({ planned }: ActiveState): readonly ApiRecord[] {
  const declared = [...planned.byDefinition].filter(([{ name }]) => !TOKEN_API_NAMES.includes(name))
  return declared.map(([definition, { plan }]) => ({
    name: plan.name,
    version: plan.version,
    context: plan.paths[0]!,
    provider: definition.access.provider,
    state: plan.lifecycle.state,
    tiers: definition.access.plans,
    scopes: scopesOf(plan),
  }))
}

/** Scopes that resources require, and scopes that are bound to roles. */
function scopesOf(plan: ApiPlan): ApiRecord['scopes'] {
  const { scopeRoles } = plan.access
  const names = new Set([...operationsOf(plan).flatMap(({ scopes }) => scopes), ...Object.keys(scopeRoles)])
  return Array.from(names, name => ({ name, roles: Object.hasOwn(scopeRoles, name) ? scopeRoles[name]! : [] }))
}
