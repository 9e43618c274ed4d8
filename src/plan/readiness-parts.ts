/** Parts of a node that readiness tells of besides its threads: those that its configuration has (D620). */
import type { Configuration } from '../config/catalogue.ts'
import { poolSizes } from '../database/database-settings.ts'
import type { NodeComponents } from './node-components.ts'

/** In the order in which operators read them. */
export const CONFIGURED_PARTS = [
  'database',
  'shared database',
  'broker',
  'traffic managers',
  'redis',
  'access log',
  'analytics',
] as const

export type ConfiguredPart = (typeof CONFIGURED_PARTS)[number]

type Parts = Pick<NodeComponents, 'runsGateway' | 'runsKeyManager'>

export function configuredParts(
  configuration: Configuration,
  { runsGateway, runsKeyManager }: Parts,
  dataDir: string,
): ReadonlySet<ConfiguredPart> {
  const throttling = configuration['apim.throttling']
  const has: Readonly<Record<ConfiguredPart, boolean>> = {
    database: runsKeyManager,
    // Sections that name one database share its pool, and its outages.
    'shared database': runsKeyManager && poolSizes(configuration, dataDir).length > 1,
    broker: throttling.throttle_decision_endpoints.length > 0,
    'traffic managers': runsGateway && reportsToTrafficManagers(configuration),
    redis: runsGateway && configuration['apim.throttling.redis'].url !== '',
    'access log': runsGateway && configuration.access_log.target !== 'off',
    analytics: runsGateway && configuration['apim.analytics'].enable,
  }
  return new Set(CONFIGURED_PARTS.filter(part => has[part]))
}

/** True if a gateway of this configuration sends reports. */
export function reportsToTrafficManagers(configuration: Configuration): boolean {
  const groups = configuration['apim.throttling.url_group']
  return configuration['apim.throttling'].enable_data_publishing && groups.length > 0
}
