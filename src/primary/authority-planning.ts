/** From what is in force to what the authority is told. */
import type { ApiFacts, AuthorityPlan } from '../authority-messages.ts'
import { backendTokenPlans } from './backend-planning.ts'
import type { Configuration } from '../config/catalogue.ts'
import { declaredFacts } from './declared-planning.ts'
import { identityPlan } from './identity-planning.ts'
import type { InForce } from './in-force.ts'
import { managementPlan } from './management-planning.ts'
import { partsOf } from './node-parts.ts'
import type { ApiPlan, ReactorPlan } from '../plan.ts'
import { TOKEN_APIS } from '../token-apis.ts'

interface Surroundings {
  readonly home: string
  readonly dataDir: string
  /** Of any reactor: what all threads share. */
  readonly plan: Pick<ReactorPlan, 'identityEpoch' | 'metrics' | 'reactors'>
}

export function authorityPlan(inForce: InForce, { home, dataDir, plan }: Surroundings): AuthorityPlan {
  const { configuration } = inForce.configured
  const { issuers } = identityPlan(configuration)
  const clients = inForce.tls?.plans.clients ?? []
  return {
    configuration,
    home,
    dataDir,
    apis: apiFacts(inForce),
    runsKeyManager: partsOf(configuration).runsKeyManager,
    trust: Object.fromEntries(clients.map(({ match, plan }) => [match, plan])),
    ownIssuer: issuers.find(({ isOwn }) => isOwn)!.issuer,
    issuers,
    backends: backendTokenPlans([...inForce.planned.byDefinition.keys()]),
    management: managementPlan(configuration, inForce.tls?.plans ?? null),
    declared: declaredFacts(inForce.declared, configuration),
    epoch: plan.identityEpoch,
    metrics: plan.metrics,
    // Behind those of the reactors and of the primary.
    column: plan.reactors + 1,
  }
}

/** Whether others are asked over TLS, so that it has to be known whom to trust. */
export function asksSecured(configuration: Configuration): boolean {
  const keySets = configuration['apim.jwt.issuer'].map(row => row['jwks.url'])
  const services = partsOf(configuration).runsKeyManager ? [] : [configuration['apim.key_manager'].service_url]
  return [...keySets, ...services].some(url => /^https:/i.test(url))
}

function apiFacts({ planned }: InForce): readonly ApiFacts[] {
  const declared = [...planned.byDefinition].filter(([{ name }]) => !TOKEN_APIS.includes(name))
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

/** Those that resources ask for, and those that have roles. */
function scopesOf({ resources, access: { scopeRoles } }: ApiPlan): ApiFacts['scopes'] {
  const names = new Set([...resources.flatMap(({ scopes }) => scopes), ...Object.keys(scopeRoles)])
  return Array.from(names, name => ({ name, roles: scopeRoles[name] ?? [] }))
}
