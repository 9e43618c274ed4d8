/**
 * `[carbon_health_check]`: checks of databases, the user store, and modules of the operator, at one address of the
 * management listener. A response never has the cause of a failure; the log does.
 */
import { loadModule } from '../config/module-file.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { EventLog } from '../observe/events.ts'
import { SingleFlight } from '../runtime/single-flight.ts'
import { withTimeout } from '../runtime/with-timeout.ts'
import type { Registry } from './registry/registry.ts'

export const HEALTH_PATH = '/api/health-check/v1.0/health'

/** Milliseconds for one check. */
const CHECK_MS = 5000
const PROPERTIES = 'properties.'
/** JNDI names of the reference platform. */
const DATA_SOURCES = { 'jdbc/wso2am_db': 'database.apim_db', 'jdbc/wso2shared_db': 'database.shared_db' } as const
const PRIMARY = 'PRIMARY'

type Entries = Readonly<Record<string, string>>

interface HealthCheck {
  readonly order: number
  /** Rejects with Unhealthy, or with any error. */
  run(registry: Pick<Registry, 'databases' | 'users'>): Promise<Entries>
}

interface HealthError {
  readonly code: string
  readonly message: string
  readonly description: string
}

class Unhealthy extends Error {
  override readonly name = 'Unhealthy'
  readonly shown: HealthError

  /** `cause`: for the log. */
  constructor(code: string, message: string, description: string, cause = description) {
    super(cause)
    this.shown = { code, message, description }
  }
}

export class HealthChecks {
  /** In the order in which they run; null where they are off. */
  readonly #checks: readonly HealthCheck[] | null
  readonly #runs = new SingleFlight<readonly (Entries | HealthError)[]>()

  private constructor(checks: readonly HealthCheck[] | null) {
    this.#checks = checks
  }

  /** `home`: folder that contains the modules. Rejects with ModuleError. */
  static async load(configuration: Configuration, home: string): Promise<HealthChecks> {
    const settings = configuration.carbon_health_check
    if (!settings.enable) return new HealthChecks(null)
    const own = await Promise.all(configuration.health_checker.map(row => moduleCheck(row, home)))
    const checks = [
      ...(settings['data_source_health_checker.enable'] ? [databaseCheck(settings)] : []),
      ...(settings['super_tenant_health_checker.enable'] ? [userStoreCheck(settings)] : []),
      ...own,
    ]
    return new HealthChecks(checks.toSorted((one, other) => one.order - other.order))
  }

  /** Requests at the same time share one run. */
  async respond(registry: Registry, report: EventLog['report']): Promise<Response> {
    const checks = this.#checks
    if (checks === null) return Response.json({ code: 404, message: 'health checks are off' }, { status: 404 })
    const results = await this.#runs.run('', () => runAll(checks, registry, report))
    const errors = results.filter(result => 'code' in result && 'description' in result)
    if (errors.length > 0) return Response.json({ errors }, { status: 503 })
    const health = results.flatMap(result => Object.entries(result).map(([key, value]) => ({ key, value })))
    return Response.json({ health })
  }
}

async function runAll(
  checks: readonly HealthCheck[],
  registry: Registry,
  report: EventLog['report'],
): Promise<readonly (Entries | HealthError)[]> {
  const results: (Entries | HealthError)[] = []
  for (const check of checks) {
    try {
      const late = () => new Error(`no result within ${CHECK_MS} ms`)
      results.push(
        await withTimeout(
          Promise.try(() => check.run(registry)),
          CHECK_MS,
          late,
        ),
      )
    } catch (error) {
      const failure =
        error instanceof Unhealthy ? error : new Unhealthy('HC_00001', UNAVAILABLE, 'see the log', String(error))
      report('warn', 'health check failed', { CODE: failure.shown.code, CAUSE_OF_ERROR: failure.message })
      results.push(failure.shown)
    }
  }
  return results
}

const UNAVAILABLE = 'A health check has failed'

type Settings = Configuration['carbon_health_check']

/** Databases with one connection, the embedded ones, have no share of used connections. */
function databaseCheck(settings: Settings): HealthCheck {
  const limit = settings['data_source_health_checker.properties.pool_usage_limit_percentage']
  const monitored = settings['data_source_health_checker.properties.monitored.datasources']
  const isMonitored = (section: string): boolean =>
    monitored.length === 0 || monitored.some(name => dataSourceSection(name) === section)
  return {
    order: settings['data_source_health_checker.order'],
    run: async registry => {
      const entries: Record<string, string> = {}
      for (const { sections, connections, usedConnections, ping } of registry.databases()) {
        const names = sections.filter(isMonitored)
        if (names.length === 0) continue
        const used = usedConnections()
        await ping().catch((error: Error) => {
          throw new Unhealthy(
            'HC_00001',
            'A database does not answer',
            `${names.join(' and ')}: see the log`,
            error.message,
          )
        })
        const share = Math.round((used / connections) * 100)
        if (connections > 1 && share > limit) {
          const used = `${share} % of ${connections} connections are used`
          const description = `${names.join(' and ')}: ${used}, the limit is ${limit} %`
          throw new Unhealthy('HC_00002', 'The connections of a database are nearly used up', description)
        }
        for (const name of names) {
          entries[name] = 'available'
          entries[`${name}.used_connections`] = `${used} of ${connections}`
        }
      }
      return entries
    },
  }
}

/** The section of a data source, by its JNDI name or by its section; '' for another name. */
function dataSourceSection(name: string): string {
  const lower = name.toLowerCase()
  if (Object.hasOwn(DATA_SOURCES, lower)) return DATA_SOURCES[lower as keyof typeof DATA_SOURCES]
  return Object.values(DATA_SOURCES).find(section => section === lower || section === `database.${lower}`) ?? ''
}

/** There is one user store, PRIMARY, in the database. */
function userStoreCheck(settings: Settings): HealthCheck {
  const monitored = settings['super_tenant_health_checker.properties.monitored.user.stores']
  const isMonitored = monitored.length === 0 || monitored.some(name => name.toUpperCase() === PRIMARY)
  return {
    order: settings['super_tenant_health_checker.order'],
    run: async ({ users }) => {
      if (!isMonitored) return {}
      await users.list('carbon.super', { offset: 0, limit: 1 }).catch((error: Error) => {
        throw new Unhealthy('HC_00003', 'A user store does not answer', `${PRIMARY}: see the log`, error.message)
      })
      return { [`user_store.${PRIMARY}`]: 'available' }
    },
  }
}

async function moduleCheck(row: Configuration['health_checker'][number], home: string): Promise<HealthCheck> {
  const given = Object.keys(row).filter(key => key.startsWith(PROPERTIES))
  const { name, order } = row
  const values: Readonly<Record<string, unknown>> = row
  const properties = Object.fromEntries(given.map(key => [key.slice(PROPERTIES.length), String(values[key])]))
  const check = await loadModule(home, name, 'checkHealth')
  return {
    order,
    run: async () => {
      const failed = (cause: string) =>
        new Unhealthy('HC_00004', UNAVAILABLE, `${name}: see the log`, `${name}: ${cause}`)
      const result = await Promise.try(() => check({ properties })).catch((error: unknown) => {
        throw failed(error instanceof Error ? error.message : 'it threw no error')
      })
      if (typeof result !== 'object' || result === null) throw failed('the result is not an object')
      return Object.fromEntries(Object.entries(result).map(([key, value]) => [key, String(value)]))
    },
  }
}
