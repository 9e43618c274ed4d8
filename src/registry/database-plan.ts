/** From the sections of the configuration to the databases: which there are, and on which terms. */
import { join } from 'node:path'
import { isLoopbackHost } from '../structure/host-name.ts'
import type { Configuration } from '../config/catalogue.ts'
import { ConfigurationFaults, type Fault } from '../config/fault.ts'
import type { PoolTerms } from './connection-pool.ts'
import type { DatabaseTerms, ServerTerms } from './database-terms.ts'
import { type JdbcUrl, readEmbeddedUrl, readJdbcUrl, type ServerKind, UnfitUrl } from './jdbc-url.ts'

interface DatabasePlan {
  /** The same object where both are one database. */
  readonly apim: DatabaseTerms
  readonly shared: DatabaseTerms
  readonly warnings: readonly Fault[]
}

/** Of both sections. */
interface Given {
  readonly section: 'database.apim_db' | 'database.shared_db'
  readonly type: Configuration['database.apim_db']['type']
  readonly url: string
  readonly hostname: string
  readonly port: number
  readonly name: string
  readonly username: string
  readonly password: string
}

const CONNECT_MS = 10_000
const STATEMENT_MS = 15_000
const USUAL_PORTS = { mysql: 3306, postgre: 5432 } as const
const FILE = 'registry.db'

/** Throws ConfigurationFaults. */
export function databasePlan(configuration: Configuration, dataDir: string): DatabasePlan {
  const apimDb = configuration['database.apim_db']
  const sharedDb = configuration['database.shared_db']
  const pool: PoolTerms = {
    maxActive: apimDb['pool_options.maxActive'],
    maxWaitMs: apimDb['pool_options.maxWait'],
    testOnBorrow: apimDb['pool_options.testOnBorrow'],
    validationIntervalMs: apimDb['pool_options.validationInterval'],
    validationQuery: apimDb.validationQuery,
    connectMs: CONNECT_MS,
    statementMs: STATEMENT_MS,
  }
  const { type, url, hostname, port, name, username, password } = apimDb
  const findings: Findings = { faults: [], warnings: [] }
  const apim = termsOf(
    { section: 'database.apim_db', type, url, hostname, port, name, username, password },
    pool,
    dataDir,
    findings,
  )
  const shared = termsOf(
    {
      section: 'database.shared_db',
      type: sharedDb.type,
      url: sharedDb.url,
      hostname: '',
      port: 0,
      name: '',
      username: sharedDb.username,
      password: sharedDb.password,
    },
    pool,
    dataDir,
    findings,
  )
  if (apim === null || shared === null) throw new ConfigurationFaults(findings.faults)
  if (apim.server !== null && shared.server === null) findings.warnings.push(ACCOUNTS_APART)
  const areOne = JSON.stringify([apim.file, apim.server]) === JSON.stringify([shared.file, shared.server])
  return { apim, shared: areOne ? apim : shared, warnings: findings.warnings }
}

const ACCOUNTS_APART: Fault = {
  where: '',
  key: 'database.shared_db.type',
  given: '"h2"',
  expected: 'is embedded while database.apim_db is a server: users, roles and tenants are those of this node alone',
  remedy: 'name the server in [database.shared_db], too, where several nodes use it',
}

interface Findings {
  readonly faults: Fault[]
  readonly warnings: Fault[]
}

/** Null with a fault. */
function termsOf(given: Given, pool: PoolTerms, dataDir: string, findings: Findings): DatabaseTerms | null {
  const { section, type, url } = given
  try {
    if (type === 'h2') {
      readEmbeddedUrl(url)
      return embedded(pool, dataDir)
    }
    if (type !== 'mysql' && type !== 'postgre') {
      findings.faults.push({
        where: '',
        key: `${section}.type`,
        given: JSON.stringify(type),
        expected: 'must be a database that there is a driver for: h2 (embedded), postgre, or mysql (MySQL and MariaDB)',
        remedy: 'choose one of them; oracle, mssql and db2 are not supported',
      })
      return null
    }
    if (url === '' && given.hostname === '') throw new UnfitUrl('must be set, unless type is h2', 'say where it is')
    const read = url === '' ? undefined : readJdbcUrl(type, url)
    const server = serverOf(given, type, read)
    findings.warnings.push(...warningsOf(section, server, read))
    const place = `${type} ${server.host}:${server.port}/${server.database}`
    const statementMs = read?.statementMs || STATEMENT_MS
    const connectMs = read?.connectMs || CONNECT_MS
    const flavour = type === 'mysql' ? 'mysql' : 'postgresql'
    return { flavour, place, pool: { ...pool, connectMs, statementMs }, file: '', server }
  } catch (error) {
    if (!(error instanceof UnfitUrl)) throw error
    findings.faults.push({
      where: '',
      key: `${section}.url`,
      given: url === '' ? '' : '(set)',
      expected: error.message,
      remedy: error.remedy,
    })
    return null
  }
}

/** One connection: there is one writer, and what reads beside it would read in the same thread. */
function embedded(pool: PoolTerms, dataDir: string): DatabaseTerms {
  const file = join(dataDir, FILE)
  const one = { ...pool, maxActive: 1, testOnBorrow: false }
  return { flavour: 'sqlite', place: `h2 (${file})`, pool: one, file, server: null }
}

function serverOf(given: Given, type: ServerKind, read: JdbcUrl | undefined): ServerTerms {
  return {
    host: read?.host ?? given.hostname,
    port: (read?.port ?? given.port) || USUAL_PORTS[type],
    database: read?.database ?? given.name,
    username: given.username || (read?.username ?? ''),
    password: given.password || (read?.password ?? ''),
    schema: read?.schema ?? '',
    applicationName: read?.applicationName || 'sluice',
    tls: read?.tls ?? null,
  }
}

function warningsOf(section: Given['section'], server: ServerTerms, read: JdbcUrl | undefined): readonly Fault[] {
  const warnings: Fault[] = []
  const warn = (expected: string, remedy: string) =>
    warnings.push({ where: '', key: `${section}.url`, given: '(set)', expected, remedy })
  const ignored = read?.ignored ?? []
  if (ignored.length > 0) warn(`has properties that nothing acts on: ${ignored.join(', ')}`, 'leave them out')
  if (isLoopbackHost(server.host)) return warnings
  const modes = read === undefined ? 'url with sslmode or sslMode' : 'sslmode=verify-full or sslMode=VERIFY_IDENTITY'
  if (server.tls === null) warn('passwords and tokens travel to the database in the clear', `set a ${modes}`)
  else if (!server.tls.isVerified) warn('the certificate of the database is not verified', `set a ${modes}`)
  return warnings
}
