/** The registry, the broker heartbeat and health checks of the reference platform; not acted on. */
import { withAliases, inert, repeatedSection, section } from '../key.ts'
import { integer, decimal, duration, flag, scalar, text, list } from '../kinds.ts'

const CHECKS = 'not built yet: health checks of databases and user stores'
const CUSTOM = 'classes cannot be loaded; `/healthz` and `/readyz` report the state of the gateway'
const BROKER = 'the gateway contains no broker; as a client it takes the heartbeat that its broker configures'

export const governance = section(
  'governance',
  'The registry of the reference platform.',
  {
    life_cycle_checklist_items_enabled: inert(
      flag(true, 'Show check lists in the life cycle of an API.'),
      'there is no portal to show check lists',
    ),
  },
  { roles: ['api-publisher'] },
)

export const heartbeat = section(
  'qpid.heartbeat',
  'Heartbeat between the broker of throttle decisions and its subscribers.',
  {
    delay: inert(duration(0, 's', 0, 86_400, 'Time between two heartbeats; 0: none.'), BROKER),
    timeout_factor: withAliases(
      ['timeoutFactor'],
      inert(decimal(2, '', 0, 1000, 'Number of delays without a heartbeat after which a channel is closed.'), BROKER),
    ),
  },
  { roles: ['traffic-manager'] },
)

const ORDER_MAX = 1_000_000
const ORDER = 'Order among the checks, lowest first.'

/** Documents write the keys of a checker with or without `health_checker.` before them. */
function pathWithLevel(key: string): readonly string[] {
  return [`health_checker.${key}`]
}

const checks = {
  enable: inert(flag(false, 'Run the checks.'), CHECKS),
  'super_tenant_health_checker.enable': inert(
    withAliases(pathWithLevel('super_tenant_health_checker.enable'), flag(true, 'Check user stores.')),
    CHECKS,
  ),
  'super_tenant_health_checker.order': inert(
    withAliases(pathWithLevel('super_tenant_health_checker.order'), integer(98, '', 0, ORDER_MAX, ORDER)),
    CHECKS,
  ),
  'super_tenant_health_checker.properties.monitored.user.stores': inert(
    withAliases(
      pathWithLevel('super_tenant_health_checker.properties.monitored.user.stores'),
      list([], 'Domains of the user stores to check; empty: all secondary ones.'),
    ),
    CHECKS,
  ),
  'data_source_health_checker.enable': inert(
    withAliases(pathWithLevel('data_source_health_checker.enable'), flag(true, 'Check databases.')),
    CHECKS,
  ),
  'data_source_health_checker.order': inert(
    withAliases(pathWithLevel('data_source_health_checker.order'), integer(97, '', 0, ORDER_MAX, ORDER)),
    CHECKS,
  ),
  'data_source_health_checker.properties.pool_usage_limit_percentage': inert(
    withAliases(
      [
        'data_source_health_checker.pool_usage_limit_percentage',
        ...pathWithLevel('data_source_health_checker.properties.pool_usage_limit_percentage'),
        ...pathWithLevel('data_source_health_checker.pool_usage_limit_percentage'),
      ],
      integer(80, '%', 1, 100, 'Share of used connections from which a pool counts as unhealthy.'),
    ),
    CHECKS,
  ),
  'data_source_health_checker.properties.monitored.datasources': inert(
    withAliases(
      pathWithLevel('data_source_health_checker.properties.monitored.datasources'),
      list([], 'JNDI names of the databases to check; empty: all.'),
    ),
    CHECKS,
  ),
}

export const healthCheck = section('carbon_health_check', 'Checks of user stores and databases.', checks)

export const healthChecker = repeatedSection(
  'health_checker',
  'A health check of the operator.',
  {
    name: inert(text('', 'Name of the check.'), CUSTOM),
    order: inert(integer(0, '', 0, ORDER_MAX, ORDER), CUSTOM),
    'properties.<name>': inert(scalar('A property of the check.'), CUSTOM),
  },
  { alternativeForm: 'table' },
)
