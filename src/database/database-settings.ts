/** Connection settings of the two databases, from the configuration. */
import { join } from 'node:path'
import type { ConnectionOptions } from 'node:tls'
import { isLoopbackHost } from '../http1/host-name.ts'
import type { Configuration } from '../config/catalogue.ts'
import { ConfigurationErrors, type Diagnostic, Diagnostics } from '../config/diagnostics.ts'
import { type PoolSettings, WAITERS_MAX } from './connection-pool.ts'
import { InvalidJdbcUrl, type JdbcUrl, readEmbeddedUrl, readJdbcUrl, type ServerKind, TLS_HINTS } from './jdbc-url.ts'
import type { DialectName } from './pooled-dialect.ts'

export interface ConnectionSettings {
  readonly dialect: DialectName
  /** Kind and location for messages, without credentials. */
  readonly description: string
  readonly pool: PoolSettings
  /** File of the embedded database; '' for a server. */
  readonly file: string
  /** Null for the embedded database. */
  readonly server: ServerSettings | null
}

export interface ServerSettings {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly username: string
  readonly password: string
  /** PostgreSQL schema of the tables; '' for the default of the account. */
  readonly schema: string
  /** Name under which a PostgreSQL server lists the connections. */
  readonly applicationName: string
  /** Null for plain connections. */
  readonly tls: ServerTlsSettings | null
}

export interface ServerTlsSettings {
  /** The certificate must chain to a trusted authority. */
  readonly isVerified: boolean
  /** The certificate must name the host, too. */
  readonly isHostVerified: boolean
  /** PEM; '' for the well-known authorities. */
  readonly authorities: string
  /** PEM of the client certificate and its key; '' without one. */
  readonly certificate: string
  readonly key: string
}

interface DatabaseSettings {
  /** The same object where both sections name one database. */
  readonly apim: ConnectionSettings
  readonly shared: ConnectionSettings
  readonly warnings: readonly Diagnostic[]
}

/** Keys that both sections have. */
interface DatabaseSection {
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
const DEFAULT_PORTS = { mysql: 3306, postgre: 5432 } as const
const FILE = 'registry.db'

/** Throws ConfigurationErrors. */
export function databaseSettings(configuration: Configuration, dataDir: string): DatabaseSettings {
  const apimDb = configuration['database.apim_db']
  const sharedDb = configuration['database.shared_db']
  const pool: PoolSettings = {
    maxActive: apimDb['pool_options.maxActive'],
    maxWaitMs: apimDb['pool_options.maxWait'],
    testOnBorrow: apimDb['pool_options.testOnBorrow'],
    validationIntervalMs: apimDb['pool_options.validationInterval'],
    validationQuery: apimDb.validationQuery,
    connectMs: CONNECT_MS,
    statementMs: STATEMENT_MS,
  }
  const diagnostics = new Diagnostics()
  const apim = connectionSettings(sectionOf('database.apim_db', apimDb), pool, dataDir, diagnostics)
  const shared = connectionSettings(sectionOf('database.shared_db', sharedDb), pool, dataDir, diagnostics)
  if (apim === undefined || shared === undefined) throw new ConfigurationErrors(diagnostics.errors)
  if (apim.server !== null && shared.server === null) {
    diagnostics.warn(
      '',
      'database.shared_db.type',
      'is embedded although database.apim_db is a server: users, roles and tenants exist on this node only',
      'name the server in [database.shared_db] too where several nodes share it',
      '"h2"',
    )
  }
  const isOneDatabase = JSON.stringify([apim.file, apim.server]) === JSON.stringify([shared.file, shared.server])
  return { apim, shared: isOneDatabase ? apim : shared, warnings: diagnostics.warnings }
}

/** Sizes of the connection pool of one database, for `explain`. */
export interface PoolSize {
  readonly sections: readonly DatabaseSection['section'][]
  readonly connections: number
  readonly waitingMax: number
  readonly waitMs: number
}

/** One pool for each database that the sections name; the one of `apim_db` first. Throws ConfigurationErrors. */
export function poolSizes(configuration: Configuration, dataDir: string): readonly PoolSize[] {
  const { apim, shared } = databaseSettings(configuration, dataDir)
  const sizeOf = ({ pool }: ConnectionSettings, ...sections: PoolSize['sections']): PoolSize => {
    return { sections, connections: pool.maxActive, waitingMax: WAITERS_MAX, waitMs: pool.maxWaitMs }
  }
  if (apim === shared) return [sizeOf(apim, 'database.apim_db', 'database.shared_db')]
  return [sizeOf(apim, 'database.apim_db'), sizeOf(shared, 'database.shared_db')]
}

function sectionOf(
  section: DatabaseSection['section'],
  { type, url, hostname, port, name, username, password }: Configuration['database.shared_db'],
): DatabaseSection {
  return { section, type, url, hostname, port, name, username, password }
}

/** Undefined with an error in `diagnostics`. */
function connectionSettings(
  database: DatabaseSection,
  pool: PoolSettings,
  dataDir: string,
  diagnostics: Diagnostics,
): ConnectionSettings | undefined {
  const { section, type, url } = database
  try {
    if (type === 'h2') {
      readEmbeddedUrl(url)
      return embeddedSettings(pool, dataDir)
    }
    if (type !== 'mysql' && type !== 'postgre') {
      return diagnostics.error(
        '',
        `${section}.type`,
        'must be a supported database: h2 (embedded), postgre, or mysql (MySQL and MariaDB)',
        'choose one of them; oracle, mssql and db2 are not supported',
        JSON.stringify(type),
      )
    }
    if (url === '' && database.hostname === '') {
      throw new InvalidJdbcUrl(`must be set where type is ${type}`, 'set url, or hostname, port and name')
    }
    const read = url === '' ? undefined : readJdbcUrl(type, url)
    const server = serverSettings(database, type, read)
    warnAbout(section, type, server, read, diagnostics)
    const description = `${type} ${server.host}:${server.port}/${server.database}`
    const statementMs = read?.statementMs || STATEMENT_MS
    const connectMs = read?.connectMs || CONNECT_MS
    const dialect = type === 'mysql' ? 'mysql' : 'postgresql'
    return { dialect, description, pool: { ...pool, connectMs, statementMs }, file: '', server }
  } catch (error) {
    if (!(error instanceof InvalidJdbcUrl)) throw error
    return diagnostics.error('', `${section}.url`, error.message, error.hint, url === '' ? '' : '(set)')
  }
}

/** One connection: SQLite has one writer, and reads beside it would run in the same thread. */
function embeddedSettings(pool: PoolSettings, dataDir: string): ConnectionSettings {
  const file = join(dataDir, FILE)
  const single = { ...pool, maxActive: 1, testOnBorrow: false }
  return { dialect: 'sqlite', description: `h2 (${file})`, pool: single, file, server: null }
}

function serverSettings(section: DatabaseSection, type: ServerKind, read: JdbcUrl | undefined): ServerSettings {
  return {
    host: read?.host ?? section.hostname,
    port: (read?.port ?? section.port) || DEFAULT_PORTS[type],
    database: read?.database ?? section.name,
    username: section.username || (read?.username ?? ''),
    password: section.password || (read?.password ?? ''),
    schema: read?.schema ?? '',
    applicationName: read?.applicationName || 'sluice',
    tls: read?.tls ?? null,
  }
}

function warnAbout(
  section: DatabaseSection['section'],
  type: ServerKind,
  { host, tls }: ServerSettings,
  read: JdbcUrl | undefined,
  diagnostics: Diagnostics,
): void {
  const [key, value] = read === undefined ? [`${section}.hostname`, JSON.stringify(host)] : [`${section}.url`, '(set)']
  const warn = (expected: string, hint: string) => diagnostics.warn('', key, expected, hint, value)
  const ignored = read?.ignoredProperties ?? []
  if (ignored.length > 0) warn(`has properties without effect: ${ignored.join(', ')}`, 'remove them')
  if (isLoopbackHost(host)) return
  const hint = read === undefined ? `set url in place of hostname, and in it ${TLS_HINTS[type]}` : TLS_HINTS[type]
  if (tls === null) warn('sends passwords and tokens to the database without TLS', hint)
  else if (!tls.isVerified) warn('does not verify the certificate of the database', hint)
}

/** TLS options for a database server, as Node takes them; undefined for a plain connection. */
export function tlsOptions({ host, tls }: ServerSettings): ConnectionOptions | undefined {
  if (tls === null) return undefined
  const { isVerified, isHostVerified, authorities, certificate, key } = tls
  return {
    minVersion: 'TLSv1.2',
    rejectUnauthorized: isVerified,
    // RFC 6066 3: SNI names hosts, never addresses.
    ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
    ...(isHostVerified ? {} : { checkServerIdentity: () => undefined }),
    ...(authorities === '' ? {} : { ca: authorities }),
    ...(certificate === '' ? {} : { cert: certificate, key }),
  }
}
