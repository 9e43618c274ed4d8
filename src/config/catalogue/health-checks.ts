/** The registry, the broker, and the checks of what a node depends on. */
import { alsoSpelled, inert, repeatedSection, section } from '../key.ts'
import { count, decimal, duration, flag, scalar, text, words } from '../kinds.ts'
import { needsFlag } from './agreements.ts'

const CHECKS = 'not built yet: what would be checked comes with the databases and user stores'
const CUSTOM = 'a class that would do this check cannot be loaded; `/healthz` and `/readyz` say what the gateway knows'
const BROKER = 'there is no broker in the gateway: it is a client of one, whose heartbeat the broker configures'

export const governance = section(
  'governance',
  'The registry of the reference platform.',
  {
    life_cycle_checklist_items_enabled: inert(
      flag(true, 'Show check lists in the life cycle of an API.'),
      'check lists are shown by a portal, and there is none',
    ),
  },
  { roles: ['api-publisher'] },
)

export const heartbeat = section(
  'qpid.heartbeat',
  'Signs of life between the broker of throttle decisions and its subscribers.',
  {
    delay: inert(duration(0, 's', 0, 86_400, 'Time between two pings; 0: none.'), BROKER),
    timeout_factor: alsoSpelled(
      ['timeoutFactor'],
      inert(decimal(2, '', 0, 1000, 'How many delays a subscriber may stay silent before its channel ends.'), BROKER),
    ),
  },
  { roles: ['traffic-manager'] },
)

const ORDER_MAX = 1_000_000
const ORDER = 'Place among the checks, the lowest first.'

/** A checker is a table below `health_checker`; documents leave that level out, or write it. */
function spelt(key: string): readonly string[] {
  return [`health_checker.${key}`]
}

const checks = {
  enable: inert(flag(false, 'Check at all.'), CHECKS),
  'super_tenant_health_checker.enable': inert(
    alsoSpelled(spelt('super_tenant_health_checker.enable'), flag(true, 'Check user stores.')),
    CHECKS,
  ),
  'super_tenant_health_checker.order': inert(
    alsoSpelled(spelt('super_tenant_health_checker.order'), count(98, '', 0, ORDER_MAX, ORDER)),
    CHECKS,
  ),
  'super_tenant_health_checker.properties.monitored.user.stores': inert(
    alsoSpelled(
      spelt('super_tenant_health_checker.properties.monitored.user.stores'),
      words([], 'Domains of the user stores to check; empty: all secondary ones.'),
    ),
    CHECKS,
  ),
  'data_source_health_checker.enable': inert(
    alsoSpelled(spelt('data_source_health_checker.enable'), flag(true, 'Check databases.')),
    CHECKS,
  ),
  'data_source_health_checker.order': inert(
    alsoSpelled(spelt('data_source_health_checker.order'), count(97, '', 0, ORDER_MAX, ORDER)),
    CHECKS,
  ),
  'data_source_health_checker.properties.pool_usage_limit_percentage': inert(
    alsoSpelled(
      [
        'data_source_health_checker.pool_usage_limit_percentage',
        ...spelt('data_source_health_checker.properties.pool_usage_limit_percentage'),
        ...spelt('data_source_health_checker.pool_usage_limit_percentage'),
      ],
      count(80, '%', 1, 100, 'Share of a pool in use from which it counts as unhealthy.'),
    ),
    CHECKS,
  ),
  'data_source_health_checker.properties.monitored.datasources': inert(
    alsoSpelled(
      spelt('data_source_health_checker.properties.monitored.datasources'),
      words([], 'JNDI names of the databases to check; empty: all.'),
    ),
    CHECKS,
  ),
}

export const healthCheck = section('carbon_health_check', 'Checks of user stores and databases.', checks, {
  rules: [
    needsFlag('super_tenant_health_checker.enable', 'enable'),
    needsFlag('data_source_health_checker.enable', 'enable'),
  ],
})

export const healthChecker = repeatedSection(
  'health_checker',
  "A check of an operator's own.",
  {
    name: inert(text('', 'Name of the check.'), CUSTOM),
    order: inert(count(0, '', 0, ORDER_MAX, ORDER), CUSTOM),
    'properties.<name>': inert(scalar('A property of the check.'), CUSTOM),
  },
  { otherForm: 'table' },
)
