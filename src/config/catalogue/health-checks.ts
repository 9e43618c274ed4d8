/** Health checks of a node, heartbeats of the broker, and keys of the platform's registry, which are not acted on. */
import { isTrue } from '../conditions.ts'
import { actsIf, allActIf, inert, live, repeatedSection, required, section, withAliases } from '../key.ts'
import { integer, decimal, duration, flag, scalar, text, list } from '../kinds.ts'

const ENABLED = isTrue('carbon_health_check.enable')

export const governance = section(
  'governance',
  'The registry of the reference platform.',
  {
    life_cycle_checklist_items_enabled: inert(
      flag(true, 'Show check lists in the life cycle of an API.'),
      'the life cycle of an API has no check lists',
    ),
  },
  { roles: ['api-publisher'] },
)

export const heartbeat = section(
  'qpid.heartbeat',
  'Heartbeats between a node and the message broker.',
  {
    delay: duration(
      0,
      's',
      0,
      86_400,
      'Time between two heartbeats; 0: 5 seconds, because a silent broker must be noticed.',
    ),
    timeout_factor: withAliases(
      ['timeoutFactor'],
      decimal(2, '', 0, 1000, 'Number of delays without a heartbeat after which the connection is closed.'),
    ),
  },
  { roles: ['api-key-manager', 'gateway-worker', 'traffic-manager'] },
)

const ORDER_MAX = 1_000_000
const ORDER = 'Order among the checks, lowest first.'

/** Documents write the keys of a checker with or without `health_checker.` before them. */
function pathWithLevel(key: string): readonly string[] {
  return [`health_checker.${key}`]
}

const checks = {
  enable: live(
    flag(
      false,
      'Run the checks at `/api/health-check/v1.0/health` of the management listener: 200, or 503 if one fails.',
    ),
  ),
  ...allActIf(ENABLED, {
    'super_tenant_health_checker.enable': live(
      withAliases(pathWithLevel('super_tenant_health_checker.enable'), flag(true, 'Check user stores.')),
    ),
    ...allActIf(isTrue('.super_tenant_health_checker.enable'), {
      'super_tenant_health_checker.order': live(
        withAliases(pathWithLevel('super_tenant_health_checker.order'), integer(98, '', 0, ORDER_MAX, ORDER)),
      ),
      'super_tenant_health_checker.properties.monitored.user.stores': live(
        withAliases(
          pathWithLevel('super_tenant_health_checker.properties.monitored.user.stores'),
          list([], 'Domains of the user stores to check; empty: all. The only one is `PRIMARY`, in the database.'),
        ),
      ),
    }),
    'data_source_health_checker.enable': live(
      withAliases(pathWithLevel('data_source_health_checker.enable'), flag(true, 'Check databases.')),
    ),
    ...allActIf(isTrue('.data_source_health_checker.enable'), {
      'data_source_health_checker.order': live(
        withAliases(pathWithLevel('data_source_health_checker.order'), integer(97, '', 0, ORDER_MAX, ORDER)),
      ),
      'data_source_health_checker.properties.pool_usage_limit_percentage': live(
        withAliases(
          [
            'data_source_health_checker.pool_usage_limit_percentage',
            ...pathWithLevel('data_source_health_checker.properties.pool_usage_limit_percentage'),
            ...pathWithLevel('data_source_health_checker.pool_usage_limit_percentage'),
          ],
          integer(80, '%', 1, 100, 'Share of used connections above which a database server counts as unhealthy.'),
        ),
      ),
      'data_source_health_checker.properties.monitored.datasources': live(
        withAliases(
          pathWithLevel('data_source_health_checker.properties.monitored.datasources'),
          list(
            [],
            'Databases to check, `jdbc/WSO2AM_DB` and `jdbc/WSO2SHARED_DB`, or `apim_db` and `shared_db`; empty: all.',
          ),
        ),
      ),
    }),
  }),
}

const DATA_SOURCE = /^(?:jdbc\/WSO2(?:AM|SHARED)_DB|(?:database\.)?(?:apim|shared)_db)$/i

export const healthCheck = section(
  'carbon_health_check',
  'Checks of user stores and databases, for a load balancer.',
  allActIf(isTrue('management.enable'), checks),
  {
    roles: ['api-key-manager'],
    rules: [
      {
        keys: ['super_tenant_health_checker.properties.monitored.user.stores'],
        must: 'monitored.user.stores can name PRIMARY alone: there is no other user store to check',
        severity: 'warning',
        holds: it =>
          it['super_tenant_health_checker.properties.monitored.user.stores'].every(name => /^primary$/i.test(name)),
      },
      {
        keys: ['data_source_health_checker.properties.monitored.datasources'],
        must: 'monitored.datasources can name jdbc/WSO2AM_DB and jdbc/WSO2SHARED_DB alone: there is no other to check',
        severity: 'warning',
        holds: it =>
          it['data_source_health_checker.properties.monitored.datasources'].every(name => DATA_SOURCE.test(name)),
      },
    ],
  },
)

export const healthChecker = repeatedSection(
  'health_checker',
  'A health check of the operator.',
  allActIf(isTrue('management.enable'), {
    name: actsIf(
      ENABLED,
      live(
        required(
          text(
            '',
            'ES module, relative to the home folder: `checkHealth({ properties })` gives `{ key: value }`, or throws.',
          ),
        ),
      ),
    ),
    order: actsIf(ENABLED, live(integer(0, '', 0, ORDER_MAX, ORDER))),
    'properties.<name>': actsIf(ENABLED, live(scalar('A property of the check, passed to its module as text.'))),
  }),
  { alternativeForm: 'table', roles: ['api-key-manager'] },
)
