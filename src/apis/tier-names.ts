/** Finds names of tiers that no policy has, in applications and API definitions of the home. */
import type { Configuration } from '../config/catalogue.ts'
import { formatValue, type Diagnostic } from '../config/diagnostics.ts'
import { nearest } from '../config/nearest.ts'
import { type PolicyLevel, UNLIMITED } from '../throttle/policy.ts'
import { type ApiDefinition, operationsOf } from './api-definition.ts'
import type { DeclaredApplication } from './application-files.ts'

/** Names that are shown; the further ones are counted. */
const SHOWN_MAX = 50

/** Names of the policies in force, by level. */
type TierNames = Readonly<Record<Exclude<PolicyLevel, 'custom'>, ReadonlySet<string>>>

const NO_UNLIMITED = 'set apim.throttling.enable_unlimited_tier = true, or name another tier'

interface NamedTier extends Pick<Diagnostic, 'where' | 'key'> {
  readonly level: keyof TierNames
  readonly name: string
}

/**
 * Warns of each unknown name once per place. The registry may know further policies, which are not at hand while files
 * are read: the hint says so where `hasRegistry`.
 */
export function unknownTiers(
  applications: readonly DeclaredApplication[],
  apis: readonly ApiDefinition[],
  tiers: TierNames,
  hasRegistry: boolean,
): readonly Diagnostic[] {
  return unknownNames([...applications.flatMap(ofApplication), ...apis.flatMap(ofApi)], tiers, hasRegistry)
}

/** Warns of each tier that the configuration names and no policy defines. */
export function unknownSettingTiers(
  throttling: Configuration['apim.throttling'],
  tiers: TierNames,
  hasRegistry: boolean,
): readonly Diagnostic[] {
  const named = (level: keyof TierNames, key: 'unauthenticated_tier' | 'token_tier' | 'revoke_tier'): NamedTier => {
    return { level, name: throttling[key], where: '', key: `apim.throttling.${key}` }
  }
  const all = [
    named('subscription', 'unauthenticated_tier'),
    named('advanced', 'token_tier'),
    named('advanced', 'revoke_tier'),
  ]
  return unknownNames(all, tiers, hasRegistry)
}

function unknownNames(named: readonly NamedTier[], tiers: TierNames, hasRegistry: boolean): readonly Diagnostic[] {
  const unknown = named.filter(({ level, name }) => name !== '' && !tiers[level].has(name))
  const further = unknown[SHOWN_MAX]
  const shown = unknown.slice(0, SHOWN_MAX).map(({ level, name, where, key }) => {
    const guess = nearest(name, [...tiers[level]])
    const add = `add policies/${level}/${name}.yaml${hasRegistry ? ', unless the registry has the policy' : ''}`
    const other = guess === '' ? add : `did you mean ${guess}? Otherwise ${add}`
    // Missing only where the key says so, and then a policy of the name is left out too.
    const hint = name === UNLIMITED ? NO_UNLIMITED : other
    return { where, key, given: formatValue(name), expected: `is no ${level} policy of this home`, hint }
  })
  if (further === undefined) return shown
  const expected = `${unknown.length - SHOWN_MAX} further names of tiers are not known`
  return [...shown, { where: further.where, key: further.key, given: '', expected, hint: 'correct these first' }]
}

function ofApplication({ tier, tierWhere, subscriptions }: DeclaredApplication): readonly NamedTier[] {
  return [
    { level: 'application', name: tier, where: tierWhere, key: 'tier' },
    ...subscriptions.map(({ tier: name, tierWhere: where }, at) => {
      return { level: 'subscription', name, where, key: `subscriptions[${at}].tier` } as const
    }),
  ]
}

/** Operations of one API that share a tier are told once. */
function ofApi(api: ApiDefinition): readonly NamedTier[] {
  const { name, version, access, clientCertificates } = api
  const where = `API ${name}:${version}`
  const ofResources = new Set(operationsOf(api).map(({ tier }) => tier))
  return [
    { level: 'advanced', name: access.tier, where, key: 'apiThrottlingPolicy' },
    ...[...ofResources].map(tier => {
      return { level: 'advanced', name: tier, where, key: 'operations.throttlingPolicy' } as const
    }),
    ...access.plans.map(plan => ({ level: 'subscription', name: plan, where, key: 'policies' }) as const),
    ...clientCertificates.map(({ tier }) => ({ level: 'subscription', name: tier, where, key: 'tierName' }) as const),
  ]
}
